# SPDX-License-Identifier: GPL-3.0-or-later
# What the rings cost, and the pipeline behind them. Built with the tests, run by `make bench-ring`,
# `make bench-sim` and `make bench`.
if ENABLE_TESTS
check_PROGRAMS += tests/bench/bench_memory tests/bench/bench_swap tests/bench/bench_ring \
	tests/bench/bench_sim tests/bench/bench_files tests/bench/bench_stacks tests/bench/bench_tick
endif

tests_bench_bench_memory_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_memory.c \
	tests/bench/peer.h \
	tests/bench/peer_lttng.c tests/bench/peer_lttng.h \
	tests/bench/peer_memcpy.c \
	tests/bench/peer_ring.c
tests_bench_bench_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CK_CFLAGS) $(URCU_CFLAGS)
# All peers alike: where a loop of some bytes begins must not decide (the same code, 16 bytes
# further on, took 24 ns for a record instead of 15).
tests_bench_bench_memory_CFLAGS = $(AM_CFLAGS) -falign-functions=64 -falign-loops=32
tests_bench_bench_memory_LDADD = libop/libop.a
if OPD_PEER_CK
tests_bench_bench_memory_SOURCES += tests/bench/peer_ck.c
tests_bench_bench_memory_LDADD += $(CK_LIBS)
endif
if OPD_PEER_URCU
tests_bench_bench_memory_SOURCES += tests/bench/peer_wfcqueue.c
tests_bench_bench_memory_LDADD += $(URCU_LIBS)
endif

EXTRA_DIST += tests/bench/lttng.sh
if OPD_PEER_LTTNG
# As LTTng's own programs are built: its headers have neither our warnings nor our banned functions.
check_PROGRAMS += tests/bench/lttng_writer
tests_bench_lttng_writer_SOURCES = tests/bench/lttng_writer.c tests/bench/lttng_events.h \
	tests/bench/bench.h
tests_bench_lttng_writer_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir) $(LTTNG_CFLAGS)
tests_bench_lttng_writer_CFLAGS = -std=gnu11 -pthread -Wall
tests_bench_lttng_writer_LDFLAGS = -pthread
tests_bench_lttng_writer_LDADD = $(LTTNG_LIBS) -ldl
BENCH_LTTNG = OPD_BENCH_LTTNG="$(srcdir)/tests/bench/lttng.sh tests/bench/lttng_writer"
endif

tests_bench_bench_swap_SOURCES = tests/bench/bench.h tests/bench/bench_swap.c
tests_bench_bench_swap_LDADD = libop/libop.a

tests_bench_bench_tick_SOURCES = tests/bench/bench.h tests/bench/bench_tick.c
tests_bench_bench_tick_LDADD = libop/libop.a

tests_bench_bench_ring_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_ring.c \
	tests/bench/capture_run.c tests/bench/capture_run.h \
	tests/bench/perf_peer.c tests/bench/perf_peer.h
tests_bench_bench_ring_LDADD = daemon/libpipeline.a libop/libop.a

tests_bench_bench_sim_SOURCES = \
	tests/bench/bench.h \
	tests/bench/bench_sim.c \
	tests/bench/load.c tests/bench/load.h \
	tests/bench/sim.c tests/bench/sim.h \
	tests/bench/sim_stacks.c tests/bench/sim_stacks.h
tests_bench_bench_sim_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_bench_bench_sim_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS)

tests_bench_bench_files_SOURCES = tests/bench/bench.h tests/bench/bench_files.c
tests_bench_bench_files_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_bench_bench_files_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS)

tests_bench_bench_stacks_SOURCES = tests/bench/bench.h tests/bench/bench_stacks.c
tests_bench_bench_stacks_LDADD = libop/libop.a

.PHONY: bench-stack-store
bench-stack-store: all check-programs
	@tests/bench/bench_stacks $(BENCH_STACKS_FLAGS)

# Programs, and seconds: BENCH_TICK_FLAGS="100 60".
.PHONY: bench-tick
bench-tick: all check-programs
	@tests/bench/bench_tick $(BENCH_TICK_FLAGS)

.PHONY: bench-ring bench-sim bench-files
# Both run, also when the first misses an aim; a host that allows no events (77) has been told so.
bench-ring: all check-programs
	@rc=0; $(BENCH_LTTNG) tests/bench/bench_memory $(BENCH_MEMORY_FLAGS) || rc=1; echo; \
		tests/bench/bench_swap $(BENCH_SWAP_FLAGS) || rc=1; echo; \
		tests/bench/bench_ring $(BENCH_RING_FLAGS) || { test $$? -eq 77 || rc=1; }; exit $$rc

# Needs no privileges: the CPUs are made up.
bench-sim: all check-programs
	@tests/bench/bench_sim $(BENCH_SIM_FLAGS)

# Neither privileges nor events: what sample files cost on the disk of TMPDIR.
bench-files: all check-programs
	@tests/bench/bench_files $(BENCH_FILES_FLAGS)
