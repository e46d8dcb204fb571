# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzz targets: the corpus in `make check`, libFuzzer in `make fuzz` (clang; FUZZ_SECONDS each; new inputs and findings stay in the build directory).
check_PROGRAMS += tests/fuzz/replay_ring
TESTS += tests/fuzz/test_corpus.sh
EXTRA_DIST += tests/fuzz/test_corpus.sh tests/fuzz/corpus

tests_fuzz_replay_ring_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_ring.c
tests_fuzz_replay_ring_LDADD = libop/libop.a

FUZZ_CC = clang
FUZZ_CFLAGS = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS = 600
CLEANFILES += tests/fuzz/fuzz_ring

# Compiled in one go: the library's objects are not instrumented.
tests/fuzz/fuzz_ring: $(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring.c $(srcdir)/libop/sys.c $(srcdir)/libop/ring.h config.h
	$(MKDIR_P) tests/fuzz
	$(FUZZ_CC) -std=gnu11 $(FUZZ_CFLAGS) $(DEFS) -I. $(AM_CPPFLAGS) -U_FORTIFY_SOURCE -o $@ \
		$(srcdir)/tests/fuzz/fuzz_ring.c $(srcdir)/libop/ring.c $(srcdir)/libop/sys.c

fuzz: tests/fuzz/fuzz_ring
	$(MKDIR_P) tests/fuzz/found/ring
	tests/fuzz/fuzz_ring -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=5 -print_final_stats=1 \
		-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/ring $(srcdir)/tests/fuzz/corpus/ring
