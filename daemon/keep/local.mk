# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/keep/cookie_file.c daemon/keep/cookie_file.h \
	daemon/keep/event_sums.c daemon/keep/event_sums.h \
	daemon/keep/ledger.c daemon/keep/ledger.h \
	daemon/keep/recover.c daemon/keep/recover.h \
	daemon/keep/stats_dir.c daemon/keep/stats_dir.h \
	daemon/keep/syncer.c daemon/keep/syncer.h \
	daemon/keep/trusted_clock.c daemon/keep/trusted_clock.h
EXTRA_DIST += daemon/keep/README.md
