# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/ocount
bin_ocount_SOURCES = \
	tools/events/pfm_names.c tools/events/pfm_names.h \
	tools/events/user_events.c tools/events/user_events.h \
	tools/ocount/counters.c tools/ocount/counters.h \
	tools/ocount/events.c tools/ocount/events.h \
	tools/ocount/main.c \
	tools/ocount/options.c tools/ocount/options.h \
	tools/ocount/results.c tools/ocount/results.h
bin_ocount_LDADD = tools/libreport.a pipeline/libpipeline.a libop/libop.a $(ZSTD_LIBS) $(PFM_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/ocount.1
EXTRA_DIST += tools/ocount/README.md
