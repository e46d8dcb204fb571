# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/ring/aux_area.c libop/ring/aux_area.h \
	libop/ring/kernel_pair.c libop/ring/kernel_pair.h \
	libop/ring/memory.c libop/ring/memory.h \
	libop/ring/memory_pair.c libop/ring/memory_pair.h \
	libop/ring/process_token.c libop/ring/process_token.h \
	libop/ring/reader.c libop/ring/reader.h
EXTRA_DIST += libop/ring/README.md
