# SPDX-License-Identifier: GPL-3.0-or-later
# The pipeline, from the rings to the sample files: opd and opimport link it. It uses libop alone.
noinst_LIBRARIES += daemon/libpipeline.a
daemon_libpipeline_a_SOURCES =
include $(srcdir)/daemon/capture/local.mk
include $(srcdir)/daemon/look/local.mk
include $(srcdir)/daemon/locate/local.mk
include $(srcdir)/daemon/resolve/local.mk
include $(srcdir)/daemon/jit/local.mk
include $(srcdir)/daemon/unwind/local.mk
include $(srcdir)/daemon/tables/local.mk
include $(srcdir)/daemon/count/local.mk
include $(srcdir)/daemon/keep/local.mk
include $(srcdir)/daemon/pipeline/local.mk

# The daemon around it. main.c is a few lines; the rest is a library, which tests and fuzzers link.
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
daemon_opd_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS) \
	$(POPT_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)
EXTRA_DIST += daemon/README.md
