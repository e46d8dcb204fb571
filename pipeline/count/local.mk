# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/count/count.c pipeline/count/count.h \
	pipeline/count/file_limit.c pipeline/count/file_limit.h \
	pipeline/count/file_name.c pipeline/count/file_name.h \
	pipeline/count/file_sinks.c pipeline/count/file_sinks.h \
	pipeline/count/image_filter.c pipeline/count/image_filter.h \
	pipeline/count/jit_objects.c pipeline/count/jit_objects.h \
	pipeline/count/memory_limit.c pipeline/count/memory_limit.h \
	pipeline/count/sample_file.c pipeline/count/sample_file.h \
	pipeline/count/session_files.c pipeline/count/session_files.h \
	pipeline/count/sink.c pipeline/count/sink.h \
	pipeline/count/stack_file.c pipeline/count/stack_file.h \
	pipeline/count/state.h
EXTRA_DIST += pipeline/count/README.md
