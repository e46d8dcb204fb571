# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/files/build_ids.c pipeline/files/build_ids.h \
	pipeline/files/far_file.c pipeline/files/far_file.h \
	pipeline/files/identity.c pipeline/files/identity.h \
	pipeline/files/locate.c pipeline/files/locate.h \
	pipeline/files/locate_ask.c pipeline/files/locate_ask.h \
	pipeline/files/looker.c \
	pipeline/files/lookers.c pipeline/files/lookers.h \
	pipeline/files/mount_view.c pipeline/files/mount_view.h \
	pipeline/files/mounts.c pipeline/files/mounts.h \
	pipeline/files/node_heap.c pipeline/files/node_heap.h \
	pipeline/files/node_layout.h \
	pipeline/files/node_text.c pipeline/files/node_text.h \
	pipeline/files/owner.c pipeline/files/owner.h \
	pipeline/files/owner_ask.c pipeline/files/owner_ask.h \
	pipeline/files/pass_file.c pipeline/files/pass_file.h \
	pipeline/files/proc_maps.c pipeline/files/proc_maps.h \
	pipeline/files/stack_copy.c pipeline/files/stack_copy.h \
	pipeline/files/unchanged.c pipeline/files/unchanged.h
EXTRA_DIST += pipeline/files/README.md
