# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/resolve/application.c pipeline/resolve/application.h \
	pipeline/resolve/cgroups.c pipeline/resolve/cgroups.h \
	pipeline/resolve/image.c pipeline/resolve/image.h \
	pipeline/resolve/jit_lookup.c pipeline/resolve/jit_lookup.h \
	pipeline/resolve/kernel_code.c pipeline/resolve/kernel_code.h \
	pipeline/resolve/kernel_map.c pipeline/resolve/kernel_map.h \
	pipeline/resolve/proc_scan.c pipeline/resolve/proc_scan.h \
	pipeline/resolve/process.c pipeline/resolve/process.h \
	pipeline/resolve/program.c pipeline/resolve/program.h \
	pipeline/resolve/rescan.c pipeline/resolve/rescan.h \
	pipeline/resolve/resolver.c pipeline/resolve/resolver.h \
	pipeline/resolve/sideband.c pipeline/resolve/sideband.h \
	pipeline/resolve/stat_cache.c pipeline/resolve/stat_cache.h
EXTRA_DIST += pipeline/resolve/README.md
