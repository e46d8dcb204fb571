# SPDX-License-Identifier: GPL-3.0-or-later
# opgprof
bin_PROGRAMS += tools/opgprof
tools_opgprof_SOURCES = \
	tools/gmon.c tools/gmon.h \
	tools/opgprof.c
tools_opgprof_CPPFLAGS = $(AM_CPPFLAGS)
tools_opgprof_LDADD = tools/libreport.a libop/libop.a $(POPT_LIBS) $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

dist_man_MANS += doc/opgprof.1
