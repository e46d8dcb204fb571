# SPDX-License-Identifier: GPL-3.0-or-later
if HAVE_NCURSES
bin_PROGRAMS += bin/optop
dist_man_MANS += doc/optop.1
endif
bin_optop_SOURCES = \
	tools/optop/daemon.c tools/optop/daemon.h \
	tools/optop/main.c \
	tools/optop/past.c tools/optop/past.h \
	tools/optop/reading.c tools/optop/reading.h \
	tools/optop/screen.c \
	tools/optop/top.c tools/optop/top.h
bin_optop_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(NCURSES_CFLAGS)
bin_optop_LDADD = tools/libreport.a libop/libop.a $(NCURSES_LIBS) $(POPT_LIBS) $(BFD_LIBS) $(DW_LIBS) $(ELF_LIBS) \
	$(IBERTY_LIBS) $(MODULE_LIBS)
EXTRA_DIST += tools/optop/README.md
