# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/pipeline/arcs.c daemon/pipeline/arcs.h \
	daemon/pipeline/attribute.h \
	daemon/pipeline/drain.c daemon/pipeline/drain.h \
	daemon/pipeline/ibs_sample.c daemon/pipeline/ibs_sample.h \
	daemon/pipeline/pipeline.c daemon/pipeline/pipeline.h \
	daemon/pipeline/stack_queue.c daemon/pipeline/stack_queue.h \
	daemon/pipeline/stack_state.c daemon/pipeline/stack_state.h \
	daemon/pipeline/stack_walk.c daemon/pipeline/stack_walk.h \
	daemon/pipeline/stacks.c daemon/pipeline/stacks.h \
	daemon/pipeline/visit.c daemon/pipeline/visit.h
EXTRA_DIST += daemon/pipeline/README.md
