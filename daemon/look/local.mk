# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/look/far_file.c daemon/look/far_file.h \
	daemon/look/identity.c daemon/look/identity.h \
	daemon/look/lookers.c daemon/look/lookers.h \
	daemon/look/pass_file.c daemon/look/pass_file.h
EXTRA_DIST += daemon/look/README.md
