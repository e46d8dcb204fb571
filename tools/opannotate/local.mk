# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/opannotate
bin_opannotate_SOURCES = \
	tools/opannotate/annotation.c tools/opannotate/annotation.h \
	tools/opannotate/assembly.c \
	tools/opannotate/forms.c tools/opannotate/forms.h \
	tools/opannotate/html.c \
	tools/opannotate/inlines.c tools/opannotate/inlines.h \
	tools/opannotate/main.c \
	tools/opannotate/options.c tools/opannotate/options.h \
	tools/opannotate/page.c tools/opannotate/page.h \
	tools/opannotate/runtimes.c tools/opannotate/runtimes.h \
	tools/opannotate/source_list.c
bin_opannotate_LDADD = tools/libcode.a tools/libreport.a libop/libop.a $(OPCODES_LIBS) \
	$(POPT_LIBS) $(BFD_LIBS) $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

dist_man_MANS += doc/opannotate.1
EXTRA_DIST += tools/opannotate/README.md
