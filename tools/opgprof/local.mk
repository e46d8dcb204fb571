# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/opgprof
bin_opgprof_SOURCES = \
	tools/opgprof/gmon.c tools/opgprof/gmon.h \
	tools/opgprof/main.c
bin_opgprof_LDADD = tools/libreport.a libop/libop.a $(POPT_LIBS) $(BFD_LIBS) $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) \
	$(MODULE_LIBS)

dist_man_MANS += doc/opgprof.1
EXTRA_DIST += tools/opgprof/README.md
