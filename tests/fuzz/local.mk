# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzz targets: the corpora in `make check`, libFuzzer in `make fuzz` (clang; FUZZ_SECONDS each; new inputs and findings stay in the build directory).
check_PROGRAMS += tests/fuzz/replay_ring tests/fuzz/replay_perf_map tests/fuzz/replay_jitdump tests/fuzz/replay_ibs tests/fuzz/replay_perf_data \
	tests/fuzz/replay_session tests/fuzz/replay_dcookies tests/fuzz/replay_ledger tests/fuzz/replay_control \
	tests/fuzz/replay_symbols tests/fuzz/replay_symbols_file tests/fuzz/replay_archive tests/fuzz/replay_abi tests/fuzz/replay_events tests/fuzz/replay_module
TESTS += tests/fuzz/test_corpus.sh
EXTRA_DIST += tests/fuzz/test_corpus.sh tests/fuzz/corpus tests/fuzz/fuzz_jit.h tests/fuzz/fuzz_dir.h tests/fuzz/fuzz_log.h

tests_fuzz_replay_ring_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_ring.c
tests_fuzz_replay_ring_LDADD = libop/libop.a
tests_fuzz_replay_perf_map_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_perf_map.c
tests_fuzz_replay_perf_map_LDADD = daemon/libpipeline.a libop/libop.a
tests_fuzz_replay_jitdump_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_jitdump.c
tests_fuzz_replay_jitdump_LDADD = daemon/libpipeline.a libop/libop.a
tests_fuzz_replay_ibs_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_ibs.c
tests_fuzz_replay_ibs_LDADD = libop/libop.a
tests_fuzz_replay_session_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_session.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_session_LDADD = libop/libop.a
tests_fuzz_replay_dcookies_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_dcookies.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_dcookies_LDADD = libop/libop.a
tests_fuzz_replay_ledger_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_ledger.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_ledger_LDADD = libop/libop.a
tests_fuzz_replay_perf_data_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_perf_data.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_perf_data_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a $(ZSTD_LIBS)

tests_fuzz_replay_control_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_control.c
tests_fuzz_replay_control_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_fuzz_replay_control_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS)

tests_fuzz_replay_symbols_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_symbols.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_symbols_LDADD = tools/libreport.a libop/libop.a $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)
tests_fuzz_replay_symbols_file_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_symbols_file.c tests/fuzz/fuzz_dir.c
tests_fuzz_replay_symbols_file_LDADD = tools/libreport.a libop/libop.a $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

FUZZ_ARCHIVE_SOURCES = tests/fuzz/fuzz_archive.c tests/fuzz/fuzz_dir.c tests/fuzz/fuzz_log.c tools/oparchive/check.c tools/oparchive/copy.c tools/oparchive/earlier.c tools/oparchive/elf_extent.c
FUZZ_ABI_SOURCES = tests/fuzz/fuzz_abi.c tests/fuzz/fuzz_dir.c tests/fuzz/fuzz_log.c tools/opimport/foreign.c tools/common/standard_output.c
FUZZ_EVENTS_SOURCES = tests/fuzz/fuzz_events.c tests/fuzz/fuzz_dir.c tests/fuzz/fuzz_log.c
FUZZ_MODULE_SOURCES = tests/fuzz/fuzz_module.c tests/fuzz/fuzz_dir.c

tests_fuzz_replay_archive_SOURCES = tests/fuzz/replay.c $(FUZZ_ARCHIVE_SOURCES)
tests_fuzz_replay_archive_CPPFLAGS = $(AM_CPPFLAGS) $(MD_CFLAGS)
tests_fuzz_replay_archive_LDADD = tools/libreport.a libop/libop.a $(MD_LIBS)
tests_fuzz_replay_abi_SOURCES = tests/fuzz/replay.c $(FUZZ_ABI_SOURCES)
tests_fuzz_replay_abi_CPPFLAGS = $(AM_CPPFLAGS) $(POPT_CFLAGS) $(SYSTEMD_CFLAGS)
tests_fuzz_replay_abi_LDADD = libop/libop.a
tests_fuzz_replay_events_SOURCES = tests/fuzz/replay.c $(FUZZ_EVENTS_SOURCES)
tests_fuzz_replay_events_LDADD = tools/libreport.a libop/libop.a
tests_fuzz_replay_module_SOURCES = tests/fuzz/replay.c $(FUZZ_MODULE_SOURCES)
tests_fuzz_replay_module_LDADD = tools/libreport.a libop/libop.a $(MODULE_LIBS)

FUZZ_CC = clang
FUZZ_CFLAGS = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS = 600
FUZZ_TARGETS = ring perf_map jitdump ibs perf_data session dcookies ledger control symbols symbols_file archive abi events module
CLEANFILES += $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)

# Compiled in one go, since the library's objects are not instrumented; what a target only leads to may come from them.
FUZZ_LIBS = tools/libimport.a daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS) $(ZSTD_LIBS) -pthread
FUZZ_BUILD = $(MKDIR_P) tests/fuzz && \
	$(FUZZ_CC) -std=gnu11 $(FUZZ_CFLAGS) $(DEFS) -I. $(AM_CPPFLAGS) -U_FORTIFY_SOURCE -o $@
FUZZ_JIT_FILES = \
	$(srcdir)/daemon/jit/address_map.c $(srcdir)/daemon/resolve/mapset.c $(srcdir)/daemon/jit/perf_map.c $(srcdir)/daemon/jit/jitdump.c \
	$(srcdir)/daemon/jit/object.c $(srcdir)/daemon/jit/debug_line.c \
	$(srcdir)/libop/base/file.c $(srcdir)/libop/base/htable.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_ring: $(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring/reader.c $(srcdir)/libop/base/sys.c $(srcdir)/libop/ring/reader.h config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring/reader.c $(srcdir)/libop/base/sys.c $(FUZZ_LIBS)

tests/fuzz/fuzz_perf_map: $(srcdir)/tests/fuzz/fuzz_perf_map.c $(srcdir)/tests/fuzz/fuzz_jit.h $(FUZZ_JIT_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_perf_map.c $(FUZZ_JIT_FILES) $(FUZZ_LIBS)

tests/fuzz/fuzz_jitdump: $(srcdir)/tests/fuzz/fuzz_jitdump.c $(srcdir)/tests/fuzz/fuzz_jit.h $(FUZZ_JIT_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_jitdump.c $(FUZZ_JIT_FILES) $(FUZZ_LIBS)

FUZZ_IBS_FILES = \
	$(srcdir)/libop/events/ibs.c $(srcdir)/libop/events/ibs_cpu.c $(srcdir)/libop/events/ibs_data_src.c $(srcdir)/libop/events/ibs_derived.c \
	$(srcdir)/libop/events/ibs_meaning.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/perf/chain.c

tests/fuzz/fuzz_ibs: $(srcdir)/tests/fuzz/fuzz_ibs.c $(FUZZ_IBS_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_ibs.c $(FUZZ_IBS_FILES) $(FUZZ_LIBS)

FUZZ_SESSION_FILES = \
	$(srcdir)/libop/odb/abi.c $(srcdir)/libop/base/guard.c $(srcdir)/libop/odb/odb.c $(srcdir)/libop/odb/file_image.c $(srcdir)/libop/odb/read.c $(srcdir)/libop/odb/repair.c \
	$(srcdir)/libop/odb/replace.c $(srcdir)/libop/session/layout.c $(srcdir)/libop/session/list.c $(srcdir)/libop/session/list_parallel.c $(srcdir)/libop/session/walk.c $(srcdir)/libop/odb/mangle.c $(srcdir)/libop/base/file.c \
	$(srcdir)/libop/base/text.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/base/sys.c

FUZZ_DIR_FILES = $(srcdir)/tests/fuzz/fuzz_dir.c $(srcdir)/tests/fuzz/fuzz_dir.h

tests/fuzz/fuzz_session: $(srcdir)/tests/fuzz/fuzz_session.c $(FUZZ_DIR_FILES) $(FUZZ_SESSION_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_session.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_SESSION_FILES) $(FUZZ_LIBS)

FUZZ_DCOOKIES_FILES = \
	$(srcdir)/libop/session/dcookie.c $(srcdir)/libop/session/dcookie_file.c $(srcdir)/libop/session/dcookie_name.c $(srcdir)/libop/odb/mangle.c \
	$(srcdir)/libop/base/htable.c $(srcdir)/libop/base/file.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_dcookies: $(srcdir)/tests/fuzz/fuzz_dcookies.c $(FUZZ_DIR_FILES) $(FUZZ_DCOOKIES_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_dcookies.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_DCOOKIES_FILES) $(FUZZ_LIBS)

FUZZ_LEDGER_FILES = \
	$(srcdir)/libop/session/ledger_file.c $(srcdir)/libop/session/ledger.c \
	$(srcdir)/libop/base/file.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_ledger: $(srcdir)/tests/fuzz/fuzz_ledger.c $(FUZZ_DIR_FILES) $(FUZZ_LEDGER_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_ledger.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_LEDGER_FILES) $(FUZZ_LIBS)

FUZZ_CONTROL_FILES = \
	$(srcdir)/daemon/server.c $(srcdir)/daemon/jobs.c $(srcdir)/libop/control/protocol.c $(srcdir)/libop/session/close.c $(srcdir)/libop/base/file.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_control: $(srcdir)/tests/fuzz/fuzz_control.c $(FUZZ_CONTROL_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(SYSTEMD_CFLAGS) $(srcdir)/tests/fuzz/fuzz_control.c $(FUZZ_CONTROL_FILES) $(FUZZ_LIBS)

FUZZ_PERF_FILES = \
	$(srcdir)/tools/opimport/event_match.c $(srcdir)/libop/events/event_list.c \
	$(srcdir)/libop/perf/data.c $(srcdir)/libop/perf/data_open.c $(srcdir)/libop/perf/data_event.c $(srcdir)/libop/perf/data_feature.c \
	$(srcdir)/libop/perf/data_input.c $(srcdir)/libop/perf/data_parts.c $(srcdir)/libop/perf/data_raw.c $(srcdir)/libop/perf/data_record.c $(srcdir)/libop/perf/data_shape.c $(srcdir)/libop/perf/data_zstd.c $(srcdir)/libop/perf/record.c $(srcdir)/libop/base/stop.c \
	$(FUZZ_IBS_FILES) $(srcdir)/libop/base/htable.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_perf_data: $(srcdir)/tests/fuzz/fuzz_perf_data.c $(FUZZ_DIR_FILES) $(FUZZ_PERF_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_perf_data.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_PERF_FILES) $(FUZZ_LIBS)

FUZZ_SYMBOL_FILES = \
	$(srcdir)/tools/symbols/pack.c $(srcdir)/tools/symbols/symbols.c $(srcdir)/tools/symbols/bfd_file.c $(srcdir)/tools/symbols/debug_file.c $(srcdir)/tools/symbols/packed_file.c $(srcdir)/tools/symbols/kallsyms.c \
	$(srcdir)/tools/symbols/debug_damage.c
FUZZ_SYMBOL_LIBS = tools/libreport.a $(FUZZ_LIBS) $(BFD_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS)

tests/fuzz/fuzz_symbols: $(srcdir)/tests/fuzz/fuzz_symbols.c $(FUZZ_DIR_FILES) $(FUZZ_SYMBOL_FILES) config.h tools/libreport.a daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_symbols.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_SYMBOL_FILES) $(FUZZ_SYMBOL_LIBS)

tests/fuzz/fuzz_symbols_file: $(srcdir)/tests/fuzz/fuzz_symbols_file.c $(FUZZ_DIR_FILES) $(FUZZ_SYMBOL_FILES) config.h tools/libreport.a daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(srcdir)/tests/fuzz/fuzz_symbols_file.c $(srcdir)/tests/fuzz/fuzz_dir.c $(FUZZ_SYMBOL_FILES) $(FUZZ_SYMBOL_LIBS)

FUZZ_ARCHIVE_FILES = \
	$(FUZZ_ARCHIVE_SOURCES:%=$(srcdir)/%) $(srcdir)/tools/common/archive.c $(srcdir)/tools/profile/archive_sums.c $(srcdir)/tools/common/words.c \
	$(srcdir)/libop/base/file.c $(srcdir)/libop/base/htable.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_archive: $(FUZZ_ARCHIVE_FILES) config.h tools/libreport.a daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(MD_CFLAGS) $(FUZZ_ARCHIVE_FILES) $(FUZZ_SYMBOL_LIBS) $(MD_LIBS)

FUZZ_ABI_FILES = \
	$(FUZZ_ABI_SOURCES:%=$(srcdir)/%) $(srcdir)/libop/odb/abi.c $(srcdir)/libop/odb/odb.c $(srcdir)/libop/odb/file_image.c $(srcdir)/libop/odb/read.c \
	$(srcdir)/libop/base/file.c $(srcdir)/libop/base/guard.c $(srcdir)/libop/base/parse.c $(srcdir)/libop/base/text.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_abi: $(FUZZ_ABI_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(POPT_CFLAGS) $(SYSTEMD_CFLAGS) $(FUZZ_ABI_FILES) $(FUZZ_LIBS)

FUZZ_EVENTS_FILES = $(FUZZ_EVENTS_SOURCES:%=$(srcdir)/%) $(srcdir)/tools/events/description_files.c $(srcdir)/libop/base/parse.c

tests/fuzz/fuzz_events: $(FUZZ_EVENTS_FILES) config.h tools/libreport.a daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(FUZZ_EVENTS_FILES) tools/libreport.a $(FUZZ_LIBS)

FUZZ_MODULE_FILES = $(FUZZ_MODULE_SOURCES:%=$(srcdir)/%) $(srcdir)/tools/symbols/module_file.c $(srcdir)/libop/base/sys.c

tests/fuzz/fuzz_module: $(FUZZ_MODULE_FILES) config.h daemon/libopd.a daemon/libpipeline.a libop/libop.a
	$(FUZZ_BUILD) $(LZMA_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS) $(FUZZ_MODULE_FILES) $(FUZZ_LIBS) $(MODULE_LIBS)

fuzz-programs: $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)

# As long an input as reaches what it leads to: as many events as a perf.data file may have.
FUZZ_MAX_BYTES = case $$t in perf_data) max=131072;; *) max=16384;; esac

fuzz: fuzz-programs
	@for t in $(FUZZ_TARGETS); do \
		$(MKDIR_P) tests/fuzz/found/$$t && $(FUZZ_MAX_BYTES) && \
		tests/fuzz/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) -max_len=$$max -timeout=5 -print_final_stats=1 \
			-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/$$t $(srcdir)/tests/fuzz/corpus/$$t || exit 1; done
