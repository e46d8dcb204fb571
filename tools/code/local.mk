# SPDX-License-Identifier: GPL-3.0-or-later
# Code and sources as text. A library of its own, so that only its users link libopcodes.
noinst_LIBRARIES += tools/libcode.a
tools_libcode_a_SOURCES = \
	tools/code/core_file.c tools/code/core_file.h \
	tools/code/image_code.c tools/code/image_code.h \
	tools/code/listing.c tools/code/listing.h \
	tools/code/names.c tools/code/names.h \
	tools/code/source_file.c tools/code/source_file.h \
	tools/code/windows.c tools/code/windows.h
EXTRA_DIST += tools/code/README.md
