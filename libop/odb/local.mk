# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/odb/abi.c libop/odb/abi.h \
	libop/odb/file_image.c libop/odb/file_image.h \
	libop/odb/format.h \
	libop/odb/keep.c libop/odb/keep.h \
	libop/odb/mangle.c libop/odb/mangle.h \
	libop/odb/odb.c libop/odb/odb.h \
	libop/odb/read.c libop/odb/read.h \
	libop/odb/recover.c libop/odb/recover.h \
	libop/odb/repair.c libop/odb/repair.h \
	libop/odb/replace.c libop/odb/replace.h
EXTRA_DIST += libop/odb/README.md
