# SPDX-License-Identifier: GPL-3.0-or-later
# opannotate
bin_PROGRAMS += tools/opannotate
tools_opannotate_SOURCES = \
	tools/annotate.c tools/annotate.h \
	tools/annotate_assembly.c \
	tools/annotate_code.c tools/annotate_code.h \
	tools/annotate_html.c \
	tools/annotate_page.c tools/annotate_page.h \
	tools/annotate_source.c \
	tools/annotation.c tools/annotation.h \
	tools/opannotate.c \
	tools/opannotate_options.c tools/opannotate_options.h
tools_opannotate_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS)
tools_opannotate_LDADD = tools/libcode.a tools/libreport.a libop/libop.a $(OPCODES_LIBS) $(POPT_LIBS) $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

# Code and sources as text: beside libreport because only what uses it is to be linked with libopcodes.
noinst_LIBRARIES += tools/libcode.a
tools_libcode_a_SOURCES = \
	tools/code.c tools/code.h \
	tools/code_core.c tools/code_core.h \
	tools/code_names.c tools/code_names.h \
	tools/code_windows.c tools/code_windows.h \
	tools/source_file.c tools/source_file.h
tools_libcode_a_CPPFLAGS = $(AM_CPPFLAGS)
tools_libcode_a_CFLAGS = $(AM_CFLAGS)

dist_man_MANS += doc/opannotate.1
