# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/events/cpu_types.c tools/events/cpu_types.h \
	tools/events/description_files.c tools/events/description_files.h
EXTRA_DIST += tools/events/README.md
