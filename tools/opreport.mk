# SPDX-License-Identifier: GPL-3.0-or-later
# opreport, and the library that the tools which read sample files share.
noinst_LIBRARIES += tools/libreport.a
tools_libreport_a_SOURCES = \
	tools/archive.c tools/archive.h \
	tools/archive_sums.c tools/archive_sums.h \
	tools/child.c tools/child.h \
	tools/callgraph.c tools/callgraph.h \
	tools/completion.c tools/completion.h \
	tools/cpu_types.c tools/cpu_types.h \
	tools/debug_damage.c tools/debug_damage.h \
	tools/demangle.c tools/demangle.h \
	tools/diff_report.c tools/diff_report.h \
	tools/elf_id.c tools/elf_id.h \
	tools/escape.c tools/escape.h \
	tools/event_files.c tools/event_files.h \
	tools/grow.h \
	tools/image_cache.c tools/image_cache.h \
	tools/image_debug.c tools/image_debug.h \
	tools/object_look.c tools/object_look.h \
	tools/image_identity.c tools/image_identity.h \
	tools/image_report.c tools/image_report.h \
	tools/image_siblings.c tools/image_siblings.h \
	tools/images.c tools/images.h \
	tools/interrupt.c tools/interrupt.h \
	tools/line_table.c tools/line_table.h \
	tools/mem_report.c tools/mem_report.h \
	tools/missing_symbols.c tools/missing_symbols.h \
	tools/module_file.c tools/module_file.h \
	tools/option_table.c tools/option_table.h \
	tools/option_values.c tools/option_values.h \
	tools/output.c tools/output.h \
	tools/packages.c tools/packages.h \
	tools/percent.c tools/percent.h \
	tools/profile.c tools/profile.h \
	tools/parallel_sort.c tools/parallel_sort.h \
	tools/profile_read.c tools/profile_read.h \
	tools/profile_classes.c tools/profile_classes.h \
	tools/profile_spec.c tools/profile_spec.h \
	tools/report_csv.c \
	tools/report_json.c \
	tools/report_log.c tools/report_log.h \
	tools/report_text.c \
	tools/report_writer.c tools/report_writer.h \
	tools/report_xml.c tools/report_xml.h \
	tools/selection.c tools/selection.h \
	tools/session_dir.c tools/session_dir.h \
	tools/session_hint.c tools/session_hint.h \
	tools/session_images.c \
	tools/session_span.c tools/session_span.h \
	tools/session_stats.c tools/session_stats.h \
	tools/spec_words.c \
	tools/standard_output.c tools/standard_output.h \
	tools/summary.c tools/summary.h \
	tools/cache_dir.c tools/cache_dir.h \
	tools/session_listing.c tools/session_listing.h \
	tools/symbol_cache.c tools/symbol_cache.h \
	tools/symbol_pack.c tools/symbol_pack.h \
	tools/symbol_jobs.c tools/symbol_jobs.h \
	tools/symbol_report.c tools/symbol_report.h \
	tools/symbol_sort.c tools/symbol_sort.h \
	tools/symbols.c tools/symbols.h \
	tools/symbols_bfd.c tools/symbols_bfd.h \
	tools/symbols_debug.c \
	tools/symbols_file.c tools/symbols_file.h \
	tools/symbols_kallsyms.c \
	tools/symbols_lines.h \
	tools/when.c tools/when.h \
	tools/words.c tools/words.h \
	tools/xml_index.c tools/xml_index.h \
	tools/xml_tables.c tools/xml_tables.h \
	tools/xml_writer.c tools/xml_writer.h
tools_libreport_a_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(LZMA_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS)
tools_libreport_a_CFLAGS = $(AM_CFLAGS)

bin_PROGRAMS += tools/opreport
tools_opreport_SOURCES = \
	tools/opreport.c \
	tools/opreport_options.c tools/opreport_options.h \
	tools/opreport_xml.c tools/opreport_xml.h
tools_opreport_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS)
tools_opreport_LDADD = tools/libreport.a libop/libop.a $(POPT_LIBS) $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

dist_man_MANS += doc/opreport.1
