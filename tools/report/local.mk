# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/report/call_block.c tools/report/call_block.h \
	tools/report/callgraph.c tools/report/callgraph.h \
	tools/report/columns.c tools/report/columns.h \
	tools/report/diff_rows.c tools/report/diff_rows.h \
	tools/report/function_name.c tools/report/function_name.h \
	tools/report/image_rows.c tools/report/image_rows.h \
	tools/report/inlined.c tools/report/inlined.h \
	tools/report/make_rows.c tools/report/make_rows.h \
	tools/report/memory_rows.c tools/report/memory_rows.h \
	tools/report/quote.c tools/report/quote.h \
	tools/report/run.c tools/report/run.h \
	tools/report/summary_rows.c tools/report/summary_rows.h \
	tools/report/symbol_rows.c tools/report/symbol_rows.h \
	tools/report/symbol_sort.c tools/report/symbol_sort.h \
	tools/report/text_line.c tools/report/text_line.h \
	tools/report/unnamed_code.c tools/report/unnamed_code.h \
	tools/report/write_csv.c \
	tools/report/write_json.c \
	tools/report/write_text.c \
	tools/report/write_xml.c tools/report/write_xml.h \
	tools/report/writer.c tools/report/writer.h \
	tools/report/xml_elements.c tools/report/xml_elements.h \
	tools/report/xml_tables.c tools/report/xml_tables.h
EXTRA_DIST += tools/report/README.md
