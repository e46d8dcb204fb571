# SPDX-License-Identifier: GPL-3.0-or-later
# opd runs it for each image; people do not.
pkglibexec_PROGRAMS = tools/opd-tables/opd-tables
noinst_LIBRARIES += tools/opd-tables/libtables.a
tools_opd_tables_libtables_a_SOURCES = \
	tools/opd-tables/cfi.c tools/opd-tables/cfi.h \
	tools/opd-tables/frame_state.c tools/opd-tables/frame_state.h \
	tools/opd-tables/filter.h \
	tools/opd-tables/functions.c tools/opd-tables/functions.h \
	tools/opd-tables/go.c tools/opd-tables/go.h \
	tools/opd-tables/image.c tools/opd-tables/image.h \
	tools/opd-tables/rows.c tools/opd-tables/rows.h \
	tools/opd-tables/table.c tools/opd-tables/table.h \
	tools/opd-tables/words.c tools/opd-tables/words.h
if HAVE_SECCOMP
tools_opd_tables_libtables_a_SOURCES += tools/opd-tables/filter.c
else
tools_opd_tables_libtables_a_SOURCES += tools/opd-tables/filter_none.c
endif
tools_opd_tables_opd_tables_SOURCES = tools/opd-tables/main.c
tools_opd_tables_opd_tables_LDADD = tools/opd-tables/libtables.a tools/libreport.a libop/libop.a $(ELF_LIBS) $(SECCOMP_LIBS) \
	$(ZSTD_LIBS) $(LZMA_LIBS)
EXTRA_DIST += tools/opd-tables/README.md
