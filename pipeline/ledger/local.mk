# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/ledger/cookie_file.c pipeline/ledger/cookie_file.h \
	pipeline/ledger/event_sums.c pipeline/ledger/event_sums.h \
	pipeline/ledger/ledger.c pipeline/ledger/ledger.h \
	pipeline/ledger/recover.c pipeline/ledger/recover.h \
	pipeline/ledger/stats_dir.c pipeline/ledger/stats_dir.h
EXTRA_DIST += pipeline/ledger/README.md
