# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/capture/cpu_rings.c daemon/capture/cpu_rings.h \
	daemon/capture/cpus.c daemon/capture/cpus.h \
	daemon/capture/kernel_source.c daemon/capture/kernel_source.h \
	daemon/capture/memory_source.c daemon/capture/memory_source.h \
	daemon/capture/plan.c daemon/capture/plan.h \
	daemon/capture/ring_memory.c daemon/capture/ring_memory.h \
	daemon/capture/stack_event.c daemon/capture/stack_event.h \
	daemon/capture/swappers.c daemon/capture/swappers.h \
	daemon/capture/task_source.c daemon/capture/task_source.h
EXTRA_DIST += daemon/capture/README.md
