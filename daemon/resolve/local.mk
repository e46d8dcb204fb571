# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/resolve/application.c daemon/resolve/application.h \
	daemon/resolve/cgroups.c daemon/resolve/cgroups.h \
	daemon/resolve/image.c daemon/resolve/image.h \
	daemon/resolve/jit_lookup.c daemon/resolve/jit_lookup.h \
	daemon/resolve/kernel_code.c daemon/resolve/kernel_code.h \
	daemon/resolve/kernel_map.c daemon/resolve/kernel_map.h \
	daemon/resolve/naming.c daemon/resolve/naming.h \
	daemon/resolve/proc_scan.c daemon/resolve/proc_scan.h \
	daemon/resolve/process.c daemon/resolve/process.h \
	daemon/resolve/program.c daemon/resolve/program.h \
	daemon/resolve/rescan.c daemon/resolve/rescan.h \
	daemon/resolve/resolver.c daemon/resolve/resolver.h \
	daemon/resolve/sideband.c daemon/resolve/sideband.h \
	daemon/resolve/stat_cache.c daemon/resolve/stat_cache.h
EXTRA_DIST += daemon/resolve/README.md
