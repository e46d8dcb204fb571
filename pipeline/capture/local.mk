# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/capture/cpu_rings.c pipeline/capture/cpu_rings.h \
	pipeline/capture/cpus.c pipeline/capture/cpus.h \
	pipeline/capture/kernel_source.c pipeline/capture/kernel_source.h \
	pipeline/capture/memory_source.c pipeline/capture/memory_source.h \
	pipeline/capture/opener.c pipeline/capture/opener.h \
	pipeline/capture/plan.c pipeline/capture/plan.h \
	pipeline/capture/ring_memory.c pipeline/capture/ring_memory.h \
	pipeline/capture/stack_event.c pipeline/capture/stack_event.h \
	pipeline/capture/swappers.c pipeline/capture/swappers.h \
	pipeline/capture/task_source.c pipeline/capture/task_source.h
EXTRA_DIST += pipeline/capture/README.md
