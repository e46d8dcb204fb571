# SPDX-License-Identifier: GPL-3.0-or-later
daemon_libpipeline_a_SOURCES += \
	daemon/jit/address_map.c daemon/jit/address_map.h \
	daemon/jit/pieces.c daemon/jit/pieces.h \
	daemon/jit/functions.c daemon/jit/functions.h \
	daemon/jit/budget.c daemon/jit/budget.h \
	daemon/jit/mapset.c daemon/jit/mapset.h \
	daemon/jit/debug_line.c daemon/jit/debug_line.h \
	daemon/jit/elf_host.h \
	daemon/jit/jitdump.c daemon/jit/jitdump.h \
	daemon/jit/object.c daemon/jit/object.h \
	daemon/jit/owner.c daemon/jit/owner.h \
	daemon/jit/owner_ask.c daemon/jit/owner_ask.h \
	daemon/jit/perf_map.c daemon/jit/perf_map.h \
	daemon/jit/space.c daemon/jit/space.h \
	daemon/jit/waiting.c daemon/jit/waiting.h
EXTRA_DIST += daemon/jit/README.md
