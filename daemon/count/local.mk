# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/count/count.c daemon/count/count.h \
	daemon/count/file_limit.c daemon/count/file_limit.h \
	daemon/count/file_name.c daemon/count/file_name.h \
	daemon/count/image_filter.c daemon/count/image_filter.h \
	daemon/count/jit_objects.c daemon/count/jit_objects.h \
	daemon/count/memory_limit.c daemon/count/memory_limit.h \
	daemon/count/sample_file.c daemon/count/sample_file.h \
	daemon/count/session_files.c daemon/count/session_files.h \
	daemon/count/stacks.c daemon/count/stacks.h \
	daemon/count/state.h
EXTRA_DIST += daemon/count/README.md
