# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/opcheck
bin_opcheck_SOURCES = \
	tools/opcheck/findings.c tools/opcheck/findings.h \
	tools/opcheck/found.h \
	tools/opcheck/header.c tools/opcheck/header.h \
	tools/opcheck/ledger.c tools/opcheck/ledger.h \
	tools/opcheck/location.c tools/opcheck/location.h \
	tools/opcheck/main.c \
	tools/opcheck/misplaced.c tools/opcheck/misplaced.h \
	tools/opcheck/ownership.c tools/opcheck/ownership.h \
	tools/opcheck/sample_file.c tools/opcheck/sample_file.h \
	tools/opcheck/session.c tools/opcheck/session.h \
	tools/opcheck/shares.c tools/opcheck/shares.h \
	tools/opcheck/timeline.c tools/opcheck/timeline.h \
	tools/opcheck/unnamed.c tools/opcheck/unnamed.h
bin_opcheck_LDADD = tools/libreport.a libop/libop.a $(ZSTD_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/opcheck.1
EXTRA_DIST += tools/opcheck/README.md
