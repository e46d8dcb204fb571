# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzz targets: the corpus in `make check`, libFuzzer in `make fuzz` (clang; FUZZ_SECONDS each; new inputs and findings stay in the build directory).
check_PROGRAMS += tests/fuzz/replay_ring tests/fuzz/replay_session
TESTS += tests/fuzz/test_corpus.sh
EXTRA_DIST += tests/fuzz/test_corpus.sh tests/fuzz/corpus

tests_fuzz_replay_ring_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_ring.c
tests_fuzz_replay_ring_LDADD = libop/libop.a

tests_fuzz_replay_session_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_session.c
tests_fuzz_replay_session_LDADD = libop/libop.a

FUZZ_CC = clang
FUZZ_CFLAGS = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS = 600
CLEANFILES += tests/fuzz/fuzz_ring tests/fuzz/fuzz_session

# Compiled in one go: the library's objects are not instrumented.
tests/fuzz/fuzz_ring: $(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring.c $(srcdir)/libop/sys.c $(srcdir)/libop/ring.h config.h
	$(MKDIR_P) tests/fuzz
	$(FUZZ_CC) -std=gnu11 $(FUZZ_CFLAGS) $(DEFS) -I. $(AM_CPPFLAGS) -U_FORTIFY_SOURCE -o $@ \
		$(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring.c $(srcdir)/libop/sys.c

fuzz: tests/fuzz/fuzz_ring
	$(MKDIR_P) tests/fuzz/found/ring
	tests/fuzz/fuzz_ring -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=5 -print_final_stats=1 \
		-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/ring $(srcdir)/tests/fuzz/corpus/ring

fuzz_session_sources = tests/fuzz/fuzz_session.c libop/odb.c libop/odb_file.c libop/odb_read.c libop/odb_repair.c libop/odb_replace.c \
	libop/session.c libop/mangle.c libop/file.c libop/text.c libop/parse.c libop/sys.c

tests/fuzz/fuzz_session: $(fuzz_session_sources) config.h
	$(MKDIR_P) tests/fuzz
	$(FUZZ_CC) -std=gnu11 $(FUZZ_CFLAGS) $(DEFS) -I. $(AM_CPPFLAGS) -U_FORTIFY_SOURCE -o $@ $(fuzz_session_sources:%=$(srcdir)/%)

fuzz-session: tests/fuzz/fuzz_session
	$(MKDIR_P) tests/fuzz/found/session
	tests/fuzz/fuzz_session -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=5 -print_final_stats=1 \
		-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/session $(srcdir)/tests/fuzz/corpus/session

fuzz: fuzz-session
