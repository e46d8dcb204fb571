# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests have a fragment for each part; system tests are Python programs that use the built
# programs.
if ENABLE_TESTS
include $(srcdir)/tests/unit/daemon.mk
include $(srcdir)/tests/unit/control.mk
include $(srcdir)/tests/unit/opreport.mk
include $(srcdir)/tests/unit/ring.mk
include $(srcdir)/tests/unit/ibs.mk
include $(srcdir)/tests/ring/local.mk
include $(srcdir)/tests/unwind/local.mk
include $(srcdir)/tests/fuzz/local.mk
include $(srcdir)/tests/system/storm.mk

check_PROGRAMS += tests/system/work tests/system/fault_oracle tests/system/crowd \
	tests/system/hanging tests/system/family \
	tests/system/perf_data tests/system/jit_work tests/system/jit_storm \
	tests/system/faultshim.so \
	tests/system/clockshim.so
check_PROGRAMS += tests/systemd/reach
endif

include $(srcdir)/tests/model/local.mk
include $(srcdir)/tests/machines/local.mk
include $(srcdir)/tests/bench/ring.mk

tests_system_work_SOURCES = tests/system/work.c
tests_system_work_CFLAGS = -std=gnu11 -pthread -g -O1 -fno-omit-frame-pointer $(WARN_CFLAGS)
tests_system_work_LDFLAGS = -pthread

tests_system_crowd_SOURCES = tests/system/crowd.c
tests_system_crowd_CFLAGS = -std=gnu11 -g -O1 $(WARN_CFLAGS)

tests_system_family_SOURCES = tests/system/family.c
tests_system_family_CFLAGS = -std=gnu11 -pthread -g -O1 $(WARN_CFLAGS)
tests_system_family_LDFLAGS = -pthread

tests_system_hanging_SOURCES = tests/system/hanging.c
tests_system_hanging_CFLAGS = -std=gnu11 -g -O1 $(WARN_CFLAGS)

tests_system_fault_oracle_SOURCES = tests/system/fault_oracle.c

tests_system_faultshim_so_SOURCES = tests/system/faultshim.c
tests_system_faultshim_so_CFLAGS = -std=gnu11 -fPIC -U_FORTIFY_SOURCE $(WARN_CFLAGS)
tests_system_faultshim_so_LDFLAGS = -shared
tests_system_clockshim_so_SOURCES = tests/system/clockshim.c
tests_system_clockshim_so_CFLAGS = -std=gnu11 -fPIC -U_FORTIFY_SOURCE $(WARN_CFLAGS)
tests_system_clockshim_so_LDFLAGS = -shared
tests_system_jit_work_SOURCES = tests/system/jit_work.c
tests_system_jit_storm_SOURCES = tests/system/jit_storm.c

tests_systemd_reach_SOURCES = tests/systemd/reach.c

tests_system_perf_data_SOURCES = tests/system/perf_data.c
tests_system_perf_data_LDADD = libop/libop.a

EXTRA_DIST += tests/README.md tests/layers.py tests/unit/test_layers.py tests/format/reader.py \
	tests/format/agree.py tests/unit/cmocka_all.h tests/unit/memory_ring.h \
	tests/unit/pair.h tests/unit/sample_writer.h tests/unit/sideband_records.h tests/unit/test_box.h \
	tests/unit/kernel_events.h tests/unit/pipeline.h tests/unit/pipeline_cpu.h \
	tests/unit/record_text.h tests/golden tests/style.py \
	tests/cppcheck.txt tests/system/opdtest.py tests/system/elfsyms.py tests/system/hot.py \
	tests/system/mapped.c tests/system/bare.c tests/system/hand.lds \
	tests/system/test_mappings.py tests/system/test_moved_over.py tests/system/test_names.py tests/system/test_places.py \
	tests/system/test_hanging.py tests/system/test_impostor.py \
	tests/system/test_processes.py tests/system/test_agreement.py \
	tests/system/test_attribution.py tests/system/test_bounds.py \
	tests/system/test_build_ids.py tests/system/test_cgroup.py \
	tests/system/test_cgroup_storm.py tests/system/test_limits.py \
	tests/system/test_kernel_threads.py tests/system/test_process_names.py \
	tests/system/test_control.py tests/system/test_dcookies.py tests/system/test_errors.py \
	tests/system/test_hostile.py tests/system/test_readers.py \
	tests/system/test_hotplug.py tests/system/faultload.py tests/system/test_fault_kill.py \
	tests/system/test_fault_stacks.py \
	tests/system/test_fault_dump.py tests/system/test_fault_space.py \
	tests/system/test_fault_pages.py tests/system/test_fault_tree.py \
	tests/system/test_fault_rotate.py tests/system/test_headers.py \
	tests/system/test_many_files.py tests/system/test_jit.py tests/system/test_kernel.py \
	tests/system/test_modules.py tests/system/opd_test_module.c tests/system/test_opcheck.py \
	tests/system/test_opcontrol.py tests/system/test_apply.py tests/system/test_overwrite.py \
	tests/system/test_page_faults.py tests/system/test_privileges.py \
	tests/system/test_restart.py tests/system/test_leftovers.py tests/system/test_service.py \
	tests/system/test_socket.py tests/system/test_rotation.py tests/system/test_clock.py \
	tests/system/test_sessions.py tests/system/test_span.py tests/system/test_shares.py \
	tests/system/test_swaps.py tests/system/test_storm.py tests/system/test_import.py \
	tests/system/test_ocount.py tests/system/counted.c tests/system/test_optop.py \
	tests/system/operftest.py tests/system/test_operf.py \
	tests/system/test_operf_pid.py tests/system/test_operf_session.py \
	tests/system/test_operf_limits.py \
	tests/system/test_import_forms.py tests/system/test_import_losses.py \
	tests/system/test_import_stop.py tests/system/test_import_names.py \
	tests/system/test_import_stacks.py \
	tests/system/test_applications.py tests/system/renamed.c \
	tests/system/test_detached.py tests/system/test_jit_storm.py tests/system/test_jit_late.py \
	tests/system/test_jit_runtimes.py \
	tests/system/perf_swap.py tests/system/test_turns.py \
	tests/system/browser.py tests/system/page_shots.py tests/system/test_page.py \
	tests/system/test_speedscope.py tests/system/test_firefox_profiler.py \
	tests/system/stacks.c tests/system/test_stack_shares.py tests/system/test_stack_capture.py \
	tests/system/hostile_stacks.c tests/system/test_stack_hostile.py \
	tests/system/table_liar.c tests/system/test_table_helper.py tests/system/test_table_cache.py \
	tests/system/secret.c tests/system/test_stack_secrets.py tests/system/test_stack_space.py \
	tests/system/calls.c tests/system/test_callgraph.py tests/system/test_tracepoint.py \
	tests/system/test_wakeup.py tests/system/long_soak.py tests/system/test_perf_script.py \
	tests/system/test_separate.py tests/system/test_image_filter.py \
	tests/system/unit_daemon.py tests/systemd/test_container.py tests/systemd/own_cgroup.py \
	tests/systemd/unit_checks.py tests/systemd/long_unit.py tests/bench/bench.py \
	tests/bench/bench_disk.py tests/bench/disk_parts.py tests/bench/bench_import.py \
	tests/bench/bench_operf.py tests/bench/bench_report.py tests/bench/bench_retention.py \
	tests/bench/bench_names.py tests/bench/bench_stacks.py tests/bench/bench_bolt.py tests/bench/bench_optop.py \
	tests/bench/bench_libdwfl.py tests/bench/bench_stack_cost.py

LONG_KILLS = 500
BAD_IMAGES = 10000
INLINE_ADDRESSES = 10000
MUTANTS = 10000
LONG_CUTS = 30
LONG_FILES = 20000
LONG_CYCLES = 1000
LONG_REQUESTS = 100000
OPD_TEST_ENV = OPD_BUILD=$(abs_top_builddir) OPD_SOURCE=$(abs_top_srcdir)

.PHONY: check-programs check-system check-user check-unit check-long bench bench-disk bench-operf bench-report \
	bench-retention bench-names bench-stacks bench-libdwfl bench-bolt bench-optop fuzz fuzz-programs
check-programs: $(check_PROGRAMS)

# The real daemon on real perf events: as root.
check-system: all check-programs
	@for t in $(srcdir)/tests/system/test_*.py; do \
		echo "== $$t"; env $(OPD_TEST_ENV) python3 $$t; rc=$$?; \
		test $$rc -eq 0 || test $$rc -eq 77 || exit 1; done

# The same by an opd that is a user of its own, with the capabilities of the unit.
check-user:
	$(MAKE) OPD_TEST_ENV="$(OPD_TEST_ENV) OPD_RUN_AS=user" check-system

# The same inside the sandbox of the unit, in a container that systemd has booted; UNIT_FLAGS=WORD:
# only tests with this in their names.
check-unit: all check-programs
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/systemd/long_unit.py $(UNIT_FLAGS) || test $$? -eq 77

check-long: all check-programs
	$(srcdir)/scripts/test --long
	tests/ring/torture --records=$(TORTURE_RECORDS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_fault_kill.py $(LONG_KILLS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_fault_rotate.py $(LONG_CUTS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_many_files.py $(LONG_FILES)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_ibs.py --records=$(IBS_RECORDS) || test $$? -eq 77
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_storm.py --long
	srcdir=$(srcdir) python3 $(srcdir)/tests/unit/test_bad_images.py $(BAD_IMAGES)
	srcdir=$(srcdir) python3 $(srcdir)/tests/unit/test_inline.py $(INLINE_ADDRESSES)
	python3 $(srcdir)/tests/unit/test_row_tables.py $(MUTANTS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_limits.py --long
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_cgroup_storm.py --long || test $$? -eq 77
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_socket.py --requests=$(LONG_REQUESTS) --cycles=$(LONG_CYCLES)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_overwrite.py --long || test $$? -eq 77
	$(MAKE) check-user
	$(MAKE) check-unit
	$(MAKE) check-machines
	$(MAKE) check-foreign
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/long_soak.py $(LONG_FLAGS)

# 10^7 samples: BENCH_DISK_FLAGS=10000000.
bench-disk: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_disk.py $(BENCH_DISK_FLAGS)

bench-operf: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_operf.py $(BENCH_OPERF_FLAGS)

# 300 s beside perf record: BENCH_REPORT_FLAGS=300.
bench-report: all check-programs
	@env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench_report.py $(BENCH_REPORT_FLAGS)

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
		env $(OPD_TEST_ENV) python3 $(srcdir)/tests/bench/bench.py $(BENCH_FLAGS) || rc=1; exit $$rc
