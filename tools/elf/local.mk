# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/elf/bfd_file.c tools/elf/bfd_file.h \
	tools/elf/bytes.h \
	tools/elf/debug_path.c tools/elf/debug_path.h \
	tools/elf/demangle.c tools/elf/demangle.h \
	tools/elf/dwarf_file.c tools/elf/dwarf_file.h \
	tools/elf/dwp_file.c tools/elf/dwp_file.h \
	tools/elf/elf_file.c tools/elf/elf_file.h \
	tools/elf/frame_entries.c tools/elf/frame_entries.h \
	tools/elf/frame_ranges.c tools/elf/frame_ranges.h \
	tools/elf/go_file.c tools/elf/go_file.h \
	tools/elf/go_table.c tools/elf/go_table.h \
	tools/elf/line_table.c tools/elf/line_table.h \
	tools/elf/lines.c tools/elf/lines.h \
	tools/elf/module_file.c tools/elf/module_file.h \
	tools/elf/open_file.c tools/elf/open_file.h \
	tools/elf/symbol_table.c tools/elf/symbol_table.h
EXTRA_DIST += tools/elf/README.md
