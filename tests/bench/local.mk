# SPDX-License-Identifier: GPL-3.0-or-later
# What opd costs, beside others.
.PHONY: bench bench-disk bench-operf bench-report bench-retention bench-names bench-stacks bench-libdwfl bench-bolt \
	bench-optop bench-stack-store bench-tick bench-ring bench-sim bench-files bench-timeline bench-waits \
	bench-runtimes

bench-stack-store: all check-programs
	@tests/bench/bench_stacks $(BENCH_STACKS_FLAGS)

# Programs, and seconds: BENCH_TICK_FLAGS="100 60".
bench-tick: all check-programs
	@tests/bench/bench_tick $(BENCH_TICK_FLAGS)

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

# 10^7 samples: BENCH_DISK_FLAGS=10000000.
bench-disk: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_disk.py $(BENCH_DISK_FLAGS)

bench-operf: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_operf.py $(BENCH_OPERF_FLAGS)

# 300 s beside perf record: BENCH_REPORT_FLAGS=300.
bench-report: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_report.py $(BENCH_REPORT_FLAGS)

# Neither privileges nor events: questions about a time, out of 30 days.
bench-timeline: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_timeline.py

# In a container of Debian: BENCH_NAMES_FLAGS="SECONDS --keep=DIR" or "--root=DIR".
bench-names: all
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_names.py $(BENCH_NAMES_FLAGS)

# How many pairs of runs: BENCH_BOLT_FLAGS=20.
bench-bolt: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_bolt.py $(BENCH_BOLT_FLAGS)

# Rounds: BENCH_OPTOP_FLAGS=10.
bench-optop: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_optop.py $(BENCH_OPTOP_FLAGS)

# Seconds for each program, and the rate: BENCH_STACKS_TIMES="20 99". Parts of what stacks cost:
# BENCH_STACKS_PARTS="cpu rss".
bench-stacks: all
	@rc=0; env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_stacks.py $(BENCH_STACKS_TIMES) || rc=1; \
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_stack_cost.py $(BENCH_STACKS_PARTS) || rc=1; exit $$rc

# Parts of it, and a budget: BENCH_WAITS_PARTS="sites ledger WaitBudget=16M".
bench-waits: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_waits.py $(BENCH_WAITS_PARTS)

# Parts of it: BENCH_RUNTIMES_PARTS="shares kernel".
bench-runtimes: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_runtimes.py $(BENCH_RUNTIMES_PARTS)

# Samples in all, and bytes of each copy: BENCH_LIBDWFL_FLAGS="100000 16384".
bench-libdwfl: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_libdwfl.py $(BENCH_LIBDWFL_FLAGS)

# Beside another opd: BENCH_RETENTION_FLAGS=/path/to/opd.
bench-retention: all
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_retention.py $(BENCH_RETENTION_FLAGS)

bench: all check-programs
	@rc=0; $(MAKE) --no-print-directory bench-ring || rc=1; echo; \
		$(MAKE) --no-print-directory bench-sim || rc=1; echo; \
		$(MAKE) --no-print-directory bench-files || rc=1; \
		env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_import.py || rc=1; echo; \
		$(MAKE) --no-print-directory bench-disk || rc=1; echo; \
		$(MAKE) --no-print-directory bench-operf || rc=1; echo; \
		$(MAKE) --no-print-directory bench-report || rc=1; echo; \
		$(MAKE) --no-print-directory bench-optop || rc=1; echo; \
		$(MAKE) --no-print-directory bench-timeline || rc=1; echo; \
		env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench.py $(BENCH_FLAGS) || rc=1; exit $$rc
