# SPDX-License-Identifier: GPL-3.0-or-later
# systemd runs it for opd; people do not.
pkglibexec_PROGRAMS += tools/opd-events/opd-events
noinst_LIBRARIES += tools/opd-events/libevents.a
tools_opd_events_libevents_a_SOURCES = \
	tools/opd-events/filter.h \
	tools/opd-events/rule.c tools/opd-events/rule.h \
	tools/opd-events/serve.c tools/opd-events/serve.h
if HAVE_SECCOMP
tools_opd_events_libevents_a_SOURCES += tools/opd-events/filter.c
else
tools_opd_events_libevents_a_SOURCES += tools/opd-events/filter_none.c
endif
tools_opd_events_opd_events_SOURCES = tools/opd-events/main.c
tools_opd_events_opd_events_LDADD = tools/opd-events/libevents.a libop/libop.a $(CAP_LIBS) $(SECCOMP_LIBS)
EXTRA_DIST += tools/opd-events/README.md
