# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzz targets. In a plain build replay.c runs each corpus through its target (make check). With
# configure --enable-fuzzing (clang) libFuzzer is the main program instead; `make fuzz` makes such a
# build below fuzz-build/ and runs each target for FUZZ_SECONDS. New inputs and findings stay there.
FUZZ_TARGETS = ring perf_map jitdump ibs perf_data session dcookies ledger control symbols \
	symbols_file archive abi events module row_table stacks
FUZZ_SECONDS = 600
check_PROGRAMS += $(fuzz_programs)
TESTS += tests/fuzz/test_corpus.sh
EXTRA_DIST += tests/fuzz/test_corpus.sh tests/fuzz/corpus tests/fuzz/fuzz_jit.h \
	tests/fuzz/fuzz_dir.h tests/fuzz/fuzz_log.h

fuzz_programs = \
	tests/fuzz/fuzz_ring \
	tests/fuzz/fuzz_ibs \
	tests/fuzz/fuzz_perf_map \
	tests/fuzz/fuzz_jitdump \
	tests/fuzz/fuzz_session \
	tests/fuzz/fuzz_dcookies \
	tests/fuzz/fuzz_ledger \
	tests/fuzz/fuzz_stacks \
	tests/fuzz/fuzz_perf_data \
	tests/fuzz/fuzz_control \
	tests/fuzz/fuzz_symbols \
	tests/fuzz/fuzz_symbols_file \
	tests/fuzz/fuzz_archive \
	tests/fuzz/fuzz_abi \
	tests/fuzz/fuzz_events \
	tests/fuzz/fuzz_module \
	tests/fuzz/fuzz_row_table

if ENABLE_FUZZING
fuzz_main =
else
fuzz_main = tests/fuzz/replay.c
endif

tests_fuzz_fuzz_ring_SOURCES = $(fuzz_main) tests/fuzz/fuzz_ring.c
tests_fuzz_fuzz_ring_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_ibs_SOURCES = $(fuzz_main) tests/fuzz/fuzz_ibs.c tests/ibs/ibs_text.c \
	tests/ibs/ibs_text.h tests/ibs/data_src.c
tests_fuzz_fuzz_ibs_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_perf_map_SOURCES = $(fuzz_main) tests/fuzz/fuzz_perf_map.c
tests_fuzz_fuzz_perf_map_LDADD = daemon/libpipeline.a libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_jitdump_SOURCES = $(fuzz_main) tests/fuzz/fuzz_jitdump.c
tests_fuzz_fuzz_jitdump_LDADD = daemon/libpipeline.a libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_session_SOURCES = $(fuzz_main) tests/fuzz/fuzz_session.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_session_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_dcookies_SOURCES = $(fuzz_main) tests/fuzz/fuzz_dcookies.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_dcookies_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_ledger_SOURCES = $(fuzz_main) tests/fuzz/fuzz_ledger.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_ledger_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_stacks_SOURCES = $(fuzz_main) tests/fuzz/fuzz_stacks.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_stacks_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_perf_data_SOURCES = $(fuzz_main) tests/fuzz/fuzz_perf_data.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_perf_data_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a \
	$(ZSTD_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_control_SOURCES = $(fuzz_main) tests/fuzz/fuzz_control.c
tests_fuzz_fuzz_control_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_fuzz_fuzz_control_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a \
	$(SYSTEMD_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_symbols_SOURCES = $(fuzz_main) tests/fuzz/fuzz_symbols.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_symbols_LDADD = tools/libreport.a libop/libop.a $(BFD_LIBS) $(IBERTY_LIBS) \
	$(MODULE_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_symbols_file_SOURCES = $(fuzz_main) tests/fuzz/fuzz_symbols_file.c \
	tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_symbols_file_LDADD = tools/libreport.a libop/libop.a $(BFD_LIBS) $(IBERTY_LIBS) \
	$(MODULE_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_archive_SOURCES = $(fuzz_main) tests/fuzz/fuzz_archive.c tests/fuzz/fuzz_dir.c \
	tests/fuzz/fuzz_log.c tools/oparchive/check.c tools/oparchive/copy.c \
	tools/oparchive/earlier.c tools/oparchive/elf_extent.c
tests_fuzz_fuzz_archive_CPPFLAGS = $(AM_CPPFLAGS) $(MD_CFLAGS)
tests_fuzz_fuzz_archive_LDADD = tools/libreport.a libop/libop.a $(MD_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_abi_SOURCES = $(fuzz_main) tests/fuzz/fuzz_abi.c tests/fuzz/fuzz_dir.c \
	tests/fuzz/fuzz_log.c tools/opimport/foreign.c tools/common/output.c \
	tools/common/progress.c tools/common/formatting.c
tests_fuzz_fuzz_abi_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(SYSTEMD_CFLAGS)
tests_fuzz_fuzz_abi_LDADD = libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_events_SOURCES = $(fuzz_main) tests/fuzz/fuzz_events.c tests/fuzz/fuzz_dir.c \
	tests/fuzz/fuzz_log.c
tests_fuzz_fuzz_events_LDADD = tools/libreport.a libop/libop.a $(FUZZ_ENGINE)

tests_fuzz_fuzz_module_SOURCES = $(fuzz_main) tests/fuzz/fuzz_module.c tests/fuzz/fuzz_dir.c
tests_fuzz_fuzz_module_LDADD = tools/libreport.a libop/libop.a $(MODULE_LIBS) $(FUZZ_ENGINE)

tests_fuzz_fuzz_row_table_SOURCES = $(fuzz_main) tests/fuzz/fuzz_row_table.c \
	tests/unwind/hostile_walk.h
tests_fuzz_fuzz_row_table_LDADD = daemon/libpipeline.a libop/libop.a $(ZSTD_LIBS) $(FUZZ_ENGINE)

# As long an input as reaches what it leads to: as many events as a perf.data file may have.
FUZZ_MAX_BYTES = case $$t in perf_data) max=131072;; *) max=16384;; esac

fuzz:
	$(MKDIR_P) fuzz-build
	test -e fuzz-build/config.status || (cd fuzz-build && $(abs_top_srcdir)/configure --quiet \
		--enable-fuzzing --enable-sanitizers CC=clang CFLAGS="-g -O1")
	$(MAKE) -C fuzz-build $(fuzz_programs)
	cd fuzz-build && for t in $(FUZZ_TARGETS); do \
		$(MKDIR_P) tests/fuzz/found/$$t && $(FUZZ_MAX_BYTES) && \
		tests/fuzz/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) -max_len=$$max -timeout=5 -print_final_stats=1 \
			-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/$$t \
			$(abs_top_srcdir)/tests/fuzz/corpus/$$t || exit 1; done

clean-local: clean-fuzz
clean-fuzz:
	rm -rf fuzz-build
