# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/symbols/cache.c tools/symbols/cache.h \
	tools/symbols/image_cache.c tools/symbols/image_cache.h \
	tools/symbols/image_debug.c tools/symbols/image_debug.h \
	tools/symbols/image_identity.c tools/symbols/image_identity.h \
	tools/symbols/image_path.c tools/symbols/image_path.h \
	tools/symbols/kept.c tools/symbols/kept.h \
	tools/symbols/object_look.c tools/symbols/object_look.h \
	tools/symbols/pack.c tools/symbols/pack.h \
	tools/symbols/parallel_read.c tools/symbols/parallel_read.h \
	tools/symbols/symbol_sources.h tools/symbols/read_go.c tools/symbols/read_kallsyms.c tools/symbols/read_object.c \
	tools/symbols/read_plt.c tools/symbols/read_ranges.c tools/symbols/read_sized.c \
	tools/symbols/read_table.c \
	tools/symbols/source_set.c tools/symbols/source_set.h \
	tools/symbols/serialize.c tools/symbols/serialize.h \
	tools/symbols/symbols.c tools/symbols/symbols.h
EXTRA_DIST += tools/symbols/README.md
