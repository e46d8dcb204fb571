# SPDX-License-Identifier: GPL-3.0-or-later
# What reads a recording and feeds it to the pipeline; tests and fuzzers link it too.
noinst_LIBRARIES += tools/libimport.a
tools_libimport_a_SOURCES = \
	tools/opimport/backlog.c tools/opimport/backlog.h \
	tools/opimport/cpu_table.c tools/opimport/cpu_table.h \
	tools/opimport/event_match.c tools/opimport/event_match.h \
	tools/opimport/import.c tools/opimport/import.h \
	tools/opimport/spill.c tools/opimport/spill.h \
	tools/opimport/stacks.c tools/opimport/stacks.h \
	tools/opimport/witness.c tools/opimport/witness.h

bin_PROGRAMS += bin/opimport
bin_opimport_SOURCES = \
	tools/opimport/foreign.c \
	tools/opimport/kernel_match.c \
	tools/opimport/main.c tools/opimport/opimport.h \
	tools/opimport/options.c \
	tools/opimport/report.c \
	tools/opimport/session.c \
	tools/opimport/warn.c
bin_opimport_LDADD = tools/libimport.a tools/libreport.a pipeline/libpipeline.a libop/libop.a \
	$(ZSTD_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/opimport.1
EXTRA_DIST += tools/opimport/README.md
