# SPDX-License-Identifier: GPL-3.0-or-later
# What the rings cost. Built with the tests, run by `make bench-ring` and `make bench`.
if ENABLE_TESTS
check_PROGRAMS += tests/bench/bench_memory tests/bench/bench_ring
endif

tests_bench_bench_memory_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_memory.c \
	tests/bench/peer.h \
	tests/bench/peer_memcpy.c \
	tests/bench/peer_pair.c \
	tests/bench/peer_ring.c
tests_bench_bench_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CK_CFLAGS) $(URCU_CFLAGS)
tests_bench_bench_memory_LDADD = libop/libop.a
if OPD_PEER_CK
tests_bench_bench_memory_SOURCES += tests/bench/peer_ck.c
tests_bench_bench_memory_LDADD += $(CK_LIBS)
endif
if OPD_PEER_URCU
tests_bench_bench_memory_SOURCES += tests/bench/peer_wfcqueue.c
tests_bench_bench_memory_LDADD += $(URCU_LIBS)
endif

tests_bench_bench_ring_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_ring.c \
	tests/bench/capture_run.c tests/bench/capture_run.h \
	tests/bench/perf_peer.c tests/bench/perf_peer.h
tests_bench_bench_ring_LDADD = daemon/libopd.a libop/libop.a

.PHONY: bench-ring
# Both run, also when the first misses an aim; a host that allows no events (77) has been told so.
bench-ring: all check-programs
	@rc=0; tests/bench/bench_memory $(BENCH_MEMORY_FLAGS) || rc=1; echo; \
		tests/bench/bench_ring $(BENCH_RING_FLAGS) || { test $$? -eq 77 || rc=1; }; exit $$rc
