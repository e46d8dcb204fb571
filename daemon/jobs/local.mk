# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libopd_a_SOURCES += \
	daemon/jobs/background.c daemon/jobs/background.h \
	daemon/jobs/dump.c daemon/jobs/dump.h \
	daemon/jobs/minutes.c daemon/jobs/minutes.h \
	daemon/jobs/queue.c daemon/jobs/queue.h \
	daemon/jobs/recording.c daemon/jobs/recording.h \
	daemon/jobs/resume.c daemon/jobs/resume.h \
	daemon/jobs/retain.c daemon/jobs/retain.h \
	daemon/jobs/rotate.c daemon/jobs/rotate.h \
	daemon/jobs/session_sizes.c daemon/jobs/session_sizes.h \
	daemon/jobs/status.c daemon/jobs/status.h \
	daemon/jobs/syncer.c daemon/jobs/syncer.h \
	daemon/jobs/trusted_clock.c daemon/jobs/trusted_clock.h \
	daemon/jobs/unwritten.c daemon/jobs/unwritten.h \
	daemon/jobs/write_out.c daemon/jobs/write_out.h
EXTRA_DIST += daemon/jobs/README.md
