# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/readers/far_memory.c pipeline/readers/far_memory.h \
	pipeline/readers/java.c pipeline/readers/java.h \
	pipeline/readers/java_code.c pipeline/readers/java_code.h \
	pipeline/readers/java_format.h \
	pipeline/readers/java_layout.c pipeline/readers/java_layout.h
EXTRA_DIST += pipeline/readers/README.md
