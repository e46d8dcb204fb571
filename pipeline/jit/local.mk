# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/jit/address_map.c pipeline/jit/address_map.h \
	pipeline/jit/budget.c pipeline/jit/budget.h \
	pipeline/jit/debug_line.c pipeline/jit/debug_line.h \
	pipeline/jit/elf_host.h \
	pipeline/jit/functions.c pipeline/jit/functions.h \
	pipeline/jit/jitdump.c pipeline/jit/jitdump.h \
	pipeline/jit/mapset.c pipeline/jit/mapset.h \
	pipeline/jit/object.c pipeline/jit/object.h \
	pipeline/jit/perf_map.c pipeline/jit/perf_map.h \
	pipeline/jit/pieces.c pipeline/jit/pieces.h \
	pipeline/jit/space.c pipeline/jit/space.h \
	pipeline/jit/spans.c pipeline/jit/spans.h \
	pipeline/jit/waiting.c pipeline/jit/waiting.h
EXTRA_DIST += pipeline/jit/README.md
