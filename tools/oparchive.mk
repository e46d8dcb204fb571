# SPDX-License-Identifier: GPL-3.0-or-later
# oparchive
bin_PROGRAMS += tools/oparchive
tools_oparchive_SOURCES = \
	tools/archive_check.c tools/archive_check.h \
	tools/archive_copy.c tools/archive_copy.h \
	tools/archive_earlier.c tools/archive_earlier.h \
	tools/archive_kernel.c tools/archive_kernel.h \
	tools/archive_lock.c tools/archive_lock.h \
	tools/archive_mode.c tools/archive_mode.h \
	tools/archive_writer.c tools/archive_writer.h \
	tools/elf_extent.c tools/elf_extent.h \
	tools/oparchive.c tools/oparchive.h \
	tools/oparchive_images.c \
	tools/oparchive_tell.c
tools_oparchive_CPPFLAGS = $(AM_CPPFLAGS)
tools_oparchive_LDADD = tools/libcode.a tools/libreport.a libop/libop.a $(POPT_LIBS) $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

dist_man_MANS += doc/oparchive.1
