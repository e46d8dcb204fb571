# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/oparchive
bin_oparchive_SOURCES = \
	tools/oparchive/lock.c tools/oparchive/lock.h \
	tools/oparchive/check.c tools/oparchive/check.h \
	tools/oparchive/copy.c tools/oparchive/copy.h \
	tools/oparchive/earlier.c tools/oparchive/earlier.h \
	tools/oparchive/debug_files.c \
	tools/oparchive/elf_extent.c tools/oparchive/elf_extent.h \
	tools/oparchive/images.c \
	tools/oparchive/kernel.c tools/oparchive/kernel.h \
	tools/oparchive/main.c tools/oparchive/run.h \
	tools/oparchive/sessions.c tools/oparchive/stack_images.c \
	tools/oparchive/store.c tools/oparchive/store.h \
	tools/oparchive/left_out.c
bin_oparchive_LDADD = tools/libcode.a tools/libreport.a libop/libop.a $(MD_LIBS) $(POPT_LIBS) \
	$(BFD_LIBS) $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

dist_man_MANS += doc/oparchive.1
EXTRA_DIST += tools/oparchive/README.md
