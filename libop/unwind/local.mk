# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/unwind/node_words.h \
	libop/unwind/row_names.c \
	libop/unwind/row_table.c libop/unwind/row_table.h \
	libop/unwind/runtime_words.h
EXTRA_DIST += libop/unwind/README.md
