# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/fetch/debuginfod.c tools/fetch/debuginfod.h \
	tools/fetch/download.h \
	tools/fetch/living.c tools/fetch/living.h \
	tools/fetch/mapped_files.c tools/fetch/mapped_files.h
if HAVE_DEBUGINFOD
tools_libreport_a_SOURCES += tools/fetch/download.c
else
tools_libreport_a_SOURCES += tools/fetch/download_none.c
endif
EXTRA_DIST += tools/fetch/README.md
