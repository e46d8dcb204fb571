# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/unwind/walk.c daemon/unwind/walk.h
EXTRA_DIST += daemon/unwind/README.md
