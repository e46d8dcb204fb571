# SPDX-License-Identifier: GPL-3.0-or-later
# ophelp
bin_PROGRAMS += tools/ophelp
tools_ophelp_SOURCES = \
	tools/event_spec.c tools/event_spec.h \
	tools/help_check.c \
	tools/help_events.c tools/help_events.h \
	tools/help_host.c \
	tools/help_pfm.c \
	tools/help_write.c \
	tools/host_cpu.c tools/host_cpu.h \
	tools/ophelp.c \
	tools/pfm_names.c tools/pfm_names.h
tools_ophelp_CPPFLAGS = $(AM_CPPFLAGS)
tools_ophelp_LDADD = tools/libreport.a libop/libop.a $(PFM_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/ophelp.1
