# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/pipeline/arcs.c daemon/pipeline/arcs.h \
	daemon/pipeline/attribute.h \
	daemon/pipeline/drain.c daemon/pipeline/drain.h \
	daemon/pipeline/ibs_sample.c daemon/pipeline/ibs_sample.h \
	daemon/pipeline/pipeline.c daemon/pipeline/pipeline.h \
	daemon/pipeline/visit.c daemon/pipeline/visit.h
EXTRA_DIST += daemon/pipeline/README.md
