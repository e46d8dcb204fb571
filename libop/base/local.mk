# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/base/atomic.h \
	libop/base/banned.h \
	libop/base/build_id.c libop/base/build_id.h \
	libop/base/clock.h \
	libop/base/compiler.h \
	libop/base/file.c libop/base/file.h \
	libop/base/file_path.c libop/base/file_path.h \
	libop/base/grow.h \
	libop/base/htable.c libop/base/htable.h \
	libop/base/log.c libop/base/log.h \
	libop/base/nearest.c libop/base/nearest.h \
	libop/base/parse.c libop/base/parse.h \
	libop/base/seal.c libop/base/seal.h \
	libop/base/sys.c libop/base/sys.h \
	libop/base/text.c libop/base/text.h
EXTRA_DIST += libop/base/README.md
