# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/count/count.c daemon/count/count.h \
	daemon/count/file_limit.c daemon/count/file_limit.h \
	daemon/count/file_name.c \
	daemon/count/image_filter.c daemon/count/image_filter.h \
	daemon/count/memory_limit.c daemon/count/memory_limit.h \
	daemon/count/out.c \
	daemon/count/sample_file.c daemon/count/sample_file.h
