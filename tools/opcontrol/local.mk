# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/opcontrol
bin_opcontrol_SOURCES = \
	tools/events/pfm_names.c tools/events/pfm_names.h \
	tools/events/user_events.c tools/events/user_events.h \
	tools/opcontrol/daemon.c \
	tools/opcontrol/history.c \
	tools/opcontrol/holder.c \
	tools/opcontrol/main.c tools/opcontrol/opcontrol.h \
	tools/opcontrol/options.c tools/opcontrol/options.h \
	tools/opcontrol/prometheus.c \
	tools/opcontrol/requests.c \
	tools/opcontrol/save.c \
	tools/opcontrol/setup.c \
	tools/opcontrol/setup_file.c \
	tools/opcontrol/spawn.c \
	tools/opcontrol/status.c \
	tools/opcontrol/summary.c \
	tools/opcontrol/unit.c
bin_opcontrol_LDADD = tools/libreport.a libop/libop.a $(ZSTD_LIBS) $(PFM_LIBS) $(POPT_LIBS) $(SYSTEMD_LIBS)
EXTRA_DIST += tools/opcontrol/README.md
