# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/symbols/bfd_file.c tools/symbols/bfd_file.h \
	tools/symbols/cache.c tools/symbols/cache.h \
	tools/symbols/debug_path.c tools/symbols/debug_path.h \
	tools/symbols/demangle.c tools/symbols/demangle.h \
	tools/symbols/image_debug.c tools/symbols/image_debug.h \
	tools/symbols/image_identity.c tools/symbols/image_identity.h \
	tools/symbols/image_path.c tools/symbols/image_path.h \
	tools/symbols/lines.c tools/symbols/lines.h \
	tools/symbols/module_file.c tools/symbols/module_file.h \
	tools/symbols/object_look.c tools/symbols/object_look.h \
	tools/symbols/pack.c tools/symbols/pack.h \
	tools/symbols/parallel_read.c tools/symbols/parallel_read.h \
	tools/symbols/symbol_sources.h tools/symbols/read_kallsyms.c tools/symbols/read_object.c \
	tools/symbols/serialize.c tools/symbols/serialize.h \
	tools/symbols/symbols.c tools/symbols/symbols.h
EXTRA_DIST += tools/symbols/README.md
