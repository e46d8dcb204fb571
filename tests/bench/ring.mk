# SPDX-License-Identifier: GPL-3.0-or-later
# What the rings cost. Built with the tests, run by `make bench-ring` and `make bench`.
if ENABLE_TESTS
check_PROGRAMS += tests/bench/bench_ring
endif

tests_bench_bench_ring_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_ring.c \
	tests/bench/capture_run.c tests/bench/capture_run.h \
	tests/bench/perf_peer.c tests/bench/perf_peer.h
tests_bench_bench_ring_LDADD = libop/libop.a

.PHONY: bench-ring
bench-ring: all check-programs
	tests/bench/bench_ring $(BENCH_RING_FLAGS)
