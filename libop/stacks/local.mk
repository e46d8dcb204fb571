# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/stacks/format.c libop/stacks/format.h \
	libop/stacks/read.c libop/stacks/read.h \
	libop/stacks/runtime_name.c libop/stacks/runtime_name.h \
	libop/stacks/runtimes.h \
	libop/stacks/store.c libop/stacks/store.h
EXTRA_DIST += libop/stacks/README.md
