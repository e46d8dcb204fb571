# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/locate/build_ids.c daemon/locate/build_ids.h \
	daemon/locate/locate.c daemon/locate/locate.h \
	daemon/locate/locate_ask.c daemon/locate/locate_ask.h \
	daemon/locate/looker.c daemon/locate/looker.h \
	daemon/locate/mount_view.c daemon/locate/mount_view.h \
	daemon/locate/mounts.c daemon/locate/mounts.h \
	daemon/locate/proc_maps.c daemon/locate/proc_maps.h \
	daemon/locate/unchanged.c daemon/locate/unchanged.h
EXTRA_DIST += daemon/locate/README.md
