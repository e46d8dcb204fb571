# SPDX-License-Identifier: GPL-3.0-or-later
# opimport
bin_PROGRAMS += tools/opimport
tools_opimport_SOURCES = \
	tools/opimport.c tools/opimport.h \
	tools/opimport_foreign.c \
	tools/opimport_kernel.c \
	tools/opimport_options.c \
	tools/opimport_report.c \
	tools/opimport_session.c \
	tools/opimport_warn.c
tools_opimport_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(SYSTEMD_CFLAGS)
tools_opimport_LDADD = tools/libreport.a daemon/libopd.a libop/libop.a $(ZSTD_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/opimport.1
