# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/capture/cpu_rings.c daemon/capture/cpu_rings.h \
	daemon/capture/cpus.c daemon/capture/cpus.h \
	daemon/capture/plan.c daemon/capture/plan.h \
	daemon/capture/source.c daemon/capture/source.h \
	daemon/capture/swappers.c daemon/capture/swappers.h
