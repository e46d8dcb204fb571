# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/control/arc_stats.h \
	libop/control/deep_stats.h \
	libop/control/config.c libop/control/config.h \
	libop/control/daemonrc.c libop/control/daemonrc.h \
	libop/control/ibs_stats.c libop/control/ibs_stats.h \
	libop/control/jit_stats.h \
	libop/control/protocol.c libop/control/protocol.h \
	libop/control/runtime_stats.h \
	libop/control/stack_setup.c libop/control/stack_setup.h
EXTRA_DIST += libop/control/README.md
