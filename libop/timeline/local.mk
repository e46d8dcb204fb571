# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/timeline/append.c libop/timeline/append.h \
	libop/timeline/block.c libop/timeline/block.h \
	libop/timeline/bytes.c libop/timeline/bytes.h \
	libop/timeline/decode.c libop/timeline/decode.h \
	libop/timeline/encode.c libop/timeline/encode.h \
	libop/timeline/format.h \
	libop/timeline/minute.c libop/timeline/minute.h \
	libop/timeline/read.c libop/timeline/read.h \
	libop/timeline/thin.c libop/timeline/thin.h
EXTRA_DIST += libop/timeline/README.md
