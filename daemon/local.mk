# SPDX-License-Identifier: GPL-3.0-or-later
# main.c is a few lines; the rest is a library, which tests and fuzzers link.
noinst_LIBRARIES += daemon/libopd.a
daemon_libopd_a_SOURCES = \
	daemon/call_filter.h \
	daemon/control.c \
	daemon/journal.c daemon/journal.h \
	daemon/main_thread.h \
	daemon/opd.c daemon/opd.h \
	daemon/privileges.c daemon/privileges.h \
	daemon/server.c daemon/server.h \
	daemon/service.c daemon/service.h \
	daemon/session.c \
	daemon/sync.c daemon/sync.h \
	daemon/turn.c daemon/turn.h
if HAVE_SECCOMP
daemon_libopd_a_SOURCES += daemon/call_filter.c
else
daemon_libopd_a_SOURCES += daemon/call_filter_none.c
endif
include $(srcdir)/daemon/jobs/local.mk

sbin_PROGRAMS += daemon/opd
daemon_opd_SOURCES = daemon/main.c
daemon_opd_LDADD = daemon/libopd.a pipeline/libpipeline.a libop/libop.a $(SYSTEMD_LIBS) \
	$(POPT_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS) $(ZSTD_LIBS)
EXTRA_DIST += daemon/README.md
