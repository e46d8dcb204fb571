# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/tables/cache.c daemon/tables/cache.h \
	daemon/tables/disk.c daemon/tables/disk.h \
	daemon/tables/maker.c daemon/tables/maker.h \
	daemon/tables/tabler.c daemon/tables/tabler.h \
	daemon/tables/tables.c daemon/tables/tables.h \
	daemon/tables/vdso.c daemon/tables/vdso.h
EXTRA_DIST += daemon/tables/README.md
