# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/process/guard.c libop/process/guard.h \
	libop/process/helper.c libop/process/helper.h \
	libop/process/lock.c libop/process/lock.h \
	libop/process/nursery.c libop/process/nursery.h \
	libop/process/pass.c libop/process/pass.h \
	libop/process/stop.c libop/process/stop.h \
	libop/process/threads.c libop/process/threads.h
EXTRA_DIST += libop/process/README.md
