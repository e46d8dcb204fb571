# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/ophelp
bin_ophelp_SOURCES = \
	tools/events/pfm_names.c tools/events/pfm_names.h \
	tools/events/user_events.c tools/events/user_events.h \
	tools/ophelp/check_events.c \
	tools/ophelp/events.c tools/ophelp/events.h \
	tools/ophelp/host.c \
	tools/ophelp/main.c \
	tools/ophelp/pfm.c \
	tools/ophelp/write.c
bin_ophelp_LDADD = tools/libreport.a libop/libop.a $(PFM_LIBS) $(POPT_LIBS)

bin_PROGRAMS += bin/op-check-perfevents
bin_op_check_perfevents_SOURCES = tools/ophelp/check_perfevents.c
bin_op_check_perfevents_LDADD = libop/libop.a

dist_man_MANS += doc/ophelp.1 doc/op-check-perfevents.1
EXTRA_DIST += tools/ophelp/README.md
