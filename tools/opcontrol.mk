# SPDX-License-Identifier: GPL-3.0-or-later
# opcontrol
bin_PROGRAMS += tools/opcontrol
tools_opcontrol_SOURCES = \
	tools/completion.c tools/completion.h \
	tools/event_spec.c tools/event_spec.h \
	tools/opcontrol.c tools/opcontrol.h \
	tools/opcontrol_daemon.c \
	tools/opcontrol_daemonrc.c \
	tools/opcontrol_requests.c \
	tools/opcontrol_save.c \
	tools/opcontrol_setup.c \
	tools/opcontrol_spawn.c \
	tools/opcontrol_status.c \
	tools/opcontrol_unit.c \
	tools/pfm_names.c tools/pfm_names.h
tools_opcontrol_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(SYSTEMD_CFLAGS)
tools_opcontrol_LDADD = libop/libop.a $(PFM_LIBS) $(POPT_LIBS) $(SYSTEMD_LIBS)
