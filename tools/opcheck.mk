# SPDX-License-Identifier: GPL-3.0-or-later
# opcheck
bin_PROGRAMS += tools/opcheck
tools_opcheck_SOURCES = \
	tools/check_file.c tools/check_file.h \
	tools/check_header.c tools/check_header.h \
	tools/check_misfit.c tools/check_misfit.h \
	tools/check_place.c tools/check_place.h \
	tools/check_session.c tools/check_session.h \
	tools/check_tell.c tools/check_tell.h \
	tools/check_unnamed.c tools/check_unnamed.h \
	tools/check_tree.c tools/check_tree.h \
	tools/opcheck.c
tools_opcheck_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS)
tools_opcheck_LDADD = tools/libreport.a libop/libop.a $(POPT_LIBS)

dist_man_MANS += doc/opcheck.1
