# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/resolve/build_ids.c daemon/resolve/build_ids.h \
	daemon/resolve/cgroups.c daemon/resolve/cgroups.h \
	daemon/resolve/image.c daemon/resolve/image.h \
	daemon/resolve/jit_lookup.c daemon/resolve/jit_lookup.h \
	daemon/resolve/kernel_code.c daemon/resolve/kernel_code.h \
	daemon/resolve/kernel_map.c daemon/resolve/kernel_map.h \
	daemon/resolve/locate.c daemon/resolve/locate.h \
	daemon/resolve/mount_view.c daemon/resolve/mount_view.h \
	daemon/resolve/mounts.c daemon/resolve/mounts.h \
	daemon/resolve/proc_scan.c daemon/resolve/proc_scan.h \
	daemon/resolve/process.c daemon/resolve/process.h \
	daemon/resolve/rescan.c daemon/resolve/rescan.h \
	daemon/resolve/resolver.c daemon/resolve/resolver.h \
	daemon/resolve/sideband.c daemon/resolve/sideband.h
EXTRA_DIST += daemon/resolve/README.md
