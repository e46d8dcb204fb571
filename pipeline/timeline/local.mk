# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/timeline/by_time.c pipeline/timeline/by_time.h \
	pipeline/timeline/collect.c pipeline/timeline/collect.h \
	pipeline/timeline/host_state.c pipeline/timeline/host_state.h
EXTRA_DIST += pipeline/timeline/README.md
