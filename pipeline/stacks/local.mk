# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/stacks/cache.c pipeline/stacks/cache.h \
	pipeline/stacks/disk.c pipeline/stacks/disk.h \
	pipeline/stacks/frames.c pipeline/stacks/frames.h \
	pipeline/stacks/helper_kinds.h \
	pipeline/stacks/maker.c pipeline/stacks/maker.h \
	pipeline/stacks/merge.c pipeline/stacks/merge.h \
	pipeline/stacks/queue.c pipeline/stacks/queue.h \
	pipeline/stacks/source.c pipeline/stacks/source.h \
	pipeline/stacks/stack.h \
	pipeline/stacks/state.c pipeline/stacks/state.h \
	pipeline/stacks/tabler.c pipeline/stacks/tabler.h \
	pipeline/stacks/tables.c pipeline/stacks/tables.h \
	pipeline/stacks/vdso.c pipeline/stacks/vdso.h \
	pipeline/stacks/waker.h \
	pipeline/stacks/walk.c pipeline/stacks/walk.h
EXTRA_DIST += pipeline/stacks/README.md
