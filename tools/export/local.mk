# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/export/bolt.c tools/export/bolt.h \
	tools/export/callgrind.c \
	tools/export/export.h \
	tools/export/firefox.c \
	tools/export/numbers.c tools/export/numbers.h \
	tools/export/perf_data.c \
	tools/export/pprof.c \
	tools/export/speedscope.c
EXTRA_DIST += tools/export/README.md
