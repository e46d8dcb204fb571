# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests of the reader side.
opreport_unit_tests = \
	tests/unit/test_child \
	tests/unit/test_code_windows \
	tests/unit/test_demangle \
	tests/unit/test_images \
	tests/unit/test_jit_object \
	tests/unit/test_mangle \
	tests/unit/test_module_file \
	tests/unit/test_object_look \
	tests/unit/test_odb_read \
	tests/unit/test_profile_spec \
	tests/unit/test_report \
	tests/unit/test_session \
	tests/unit/test_symbol_pack \
	tests/unit/test_symbols \
	tests/unit/test_threads \
	tests/unit/test_when
check_PROGRAMS += $(opreport_unit_tests) tests/unit/print_when
TESTS += $(opreport_unit_tests) tests/unit/test_opreport.sh tests/unit/test_opreport_forms.py \
	tests/unit/test_opreport_names.py tests/unit/test_opreport_xml.py tests/unit/test_opannotate.py \
	tests/unit/test_opgprof.py tests/unit/test_oparchive.py tests/unit/test_archives.py \
	tests/unit/test_foreign_elf.py \
	tests/unit/test_ophelp.py \
	tests/unit/test_opimport_abi.py tests/unit/test_completion.py \
	tests/unit/test_damaged_sessions.py tests/unit/test_bad_images.py tests/unit/test_symbol_sources.py \
	tests/unit/test_opreport_first.py tests/unit/test_when_forms.py \
	tests/unit/test_inline.py tests/unit/test_living.py tests/unit/test_gone_images.py tests/unit/test_debuginfod.py \
	tests/unit/test_stack_reports.py tests/unit/test_export_pprof.py \
	tests/unit/test_export_text.py tests/unit/test_export_perf.py tests/unit/test_export_firefox.py \
	tests/unit/test_export_bolt.py tests/unit/test_page.py tests/unit/test_progress.py \
	tests/unit/test_export_names.py tests/unit/test_minify.py
EXTRA_DIST += tests/unit/test_opreport.sh tests/unit/test_opreport_forms.py \
	tests/unit/test_opreport_names.py tests/unit/test_opreport_xml.py tests/unit/test_opannotate.py \
	tests/unit/test_opgprof.py tests/unit/test_oparchive.py tests/unit/test_archives.py \
	tests/unit/test_foreign_elf.py \
	tests/unit/test_ophelp.py \
	tests/unit/test_opimport_abi.py tests/unit/test_completion.py tests/unit/test_living.py tests/unit/test_gone_images.py \
	tests/unit/test_debuginfod.py \
	tests/unit/test_damaged_sessions.py tests/unit/test_bad_images.py \
	tests/unit/test_symbol_sources.py tests/unit/test_opreport_first.py tests/unit/test_when_forms.py \
	tests/unit/test_inline.py tests/unit/test_stack_reports.py tests/unit/stack_session.py \
	tests/unit/test_export_pprof.py tests/unit/pprof.proto tests/unit/test_export_text.py \
	tests/unit/test_export_perf.py tests/unit/test_export_firefox.py tests/unit/test_export_bolt.py \
	tests/unit/test_page.py tests/unit/page_data.py tests/unit/sample_files.py \
	tests/unit/test_progress.py tests/unit/test_export_names.py tests/unit/test_minify.py

opreport_test_libs = tools/libreport.a libop/libop.a $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS) \
	$(CMOCKA_LIBS)

# Symbols are read anew.
AM_TESTS_ENVIRONMENT = OPD_CACHE_DIR=; export OPD_CACHE_DIR;

tests_unit_test_child_SOURCES = tests/unit/test_child.c
tests_unit_test_child_CPPFLAGS = $(AM_CPPFLAGS) $(ZLIB_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_child_LDADD = tools/libcode.a $(opreport_test_libs) $(OPCODES_LIBS) $(BFD_LIBS)
tests_unit_test_child_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id -Wl,--wrap=time -Wl,--wrap=opr_bfd_open

tests_unit_test_symbol_pack_SOURCES = tests/unit/test_symbol_pack.c
tests_unit_test_symbol_pack_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_symbol_pack_LDADD = $(opreport_test_libs)

tests_unit_test_code_windows_SOURCES = tests/unit/test_code_windows.c
tests_unit_test_code_windows_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_code_windows_LDADD = tools/libcode.a $(opreport_test_libs)

tests_unit_test_object_look_SOURCES = tests/unit/test_object_look.c
tests_unit_test_object_look_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_object_look_LDADD = $(opreport_test_libs) $(BFD_LIBS)
tests_unit_test_object_look_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opr_lines_probe

tests_unit_test_demangle_SOURCES = tests/unit/test_demangle.c
tests_unit_test_demangle_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_demangle_LDADD = $(opreport_test_libs)

tests_unit_test_images_SOURCES = tests/unit/test_images.c tests/unit/sample_writer.h
tests_unit_test_images_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_images_LDADD = $(opreport_test_libs)

tests_unit_test_jit_object_SOURCES = tests/unit/test_jit_object.c tests/unit/test_box.h
tests_unit_test_jit_object_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_object_LDADD = daemon/libpipeline.a $(opreport_test_libs)
tests_unit_test_jit_object_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fstat

tests_unit_test_mangle_SOURCES = tests/unit/test_mangle.c
tests_unit_test_mangle_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mangle_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_module_file_SOURCES = tests/unit/test_module_file.c
tests_unit_test_module_file_CPPFLAGS = $(AM_CPPFLAGS) $(LZMA_CFLAGS) $(ZLIB_CFLAGS) \
	$(ZSTD_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_module_file_LDADD = $(opreport_test_libs)

tests_unit_test_odb_read_SOURCES = tests/unit/test_odb_read.c tests/unit/sample_writer.h
tests_unit_test_odb_read_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_odb_read_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_odb_read_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_pread -Wl,--wrap=op_sys_fstat

tests_unit_test_profile_spec_SOURCES = tests/unit/test_profile_spec.c
tests_unit_test_profile_spec_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_profile_spec_LDADD = $(opreport_test_libs)

tests_unit_test_report_SOURCES = tests/unit/test_report.c tests/unit/sample_writer.h
tests_unit_test_report_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_report_LDADD = $(opreport_test_libs)

tests_unit_test_session_SOURCES = tests/unit/test_session.c tests/unit/sample_writer.h
tests_unit_test_session_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_session_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_session_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=op_sys_openat \
	-Wl,--wrap=op_sys_mkdirat -Wl,--wrap=op_sys_fsync -Wl,--wrap=op_sys_renameat \
	-Wl,--wrap=op_nr_cpus


tests_unit_test_threads_SOURCES = tests/unit/test_threads.c
tests_unit_test_threads_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_threads_LDADD = $(opreport_test_libs)

tests_unit_test_symbols_SOURCES = tests/unit/test_symbols.c
tests_unit_test_symbols_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_symbols_LDADD = $(opreport_test_libs)

tests_unit_test_when_SOURCES = tests/unit/test_when.c
tests_unit_test_when_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_when_LDADD = $(opreport_test_libs)

tests_unit_print_when_SOURCES = tests/unit/print_when.c
tests_unit_print_when_CPPFLAGS = $(AM_CPPFLAGS)
tests_unit_print_when_LDADD = $(opreport_test_libs)
