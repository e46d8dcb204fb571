# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests of the pipeline: ring to sample file.
daemon_unit_tests = tests/unit/test_ring tests/unit/test_record tests/unit/test_stack_record tests/unit/test_stack_samples \
	tests/unit/test_dcookie \
	tests/unit/test_dcookie_file tests/unit/test_dcookie_seen tests/unit/test_cookie_file \
	tests/unit/test_odb tests/unit/test_odb_faults tests/unit/test_odb_power \
	tests/unit/test_stacks tests/unit/test_stack_session \
	tests/unit/test_mapset tests/unit/test_process tests/unit/test_kernel_map \
	tests/unit/test_bpf_code tests/unit/test_jit tests/unit/test_jit_crowd \
	tests/unit/test_jit_pieces tests/unit/test_jit_space tests/unit/test_jit_waiting \
	tests/unit/test_jit_budget \
	tests/unit/test_mounts tests/unit/test_locate tests/unit/test_build_ids tests/unit/test_stat_cache \
	tests/unit/test_helper tests/unit/test_lookers tests/unit/test_walk \
	tests/unit/test_tables \
	tests/unit/test_cgroups tests/unit/test_cpus tests/unit/test_arcs tests/unit/test_drain \
	tests/unit/test_ledger tests/unit/test_rotate tests/unit/test_unwritten \
	tests/unit/test_syncer tests/unit/test_retain tests/unit/test_session_sizes \
	tests/unit/test_file_limit \
	tests/unit/test_image_filter tests/unit/test_source tests/unit/test_perf_data \
	tests/unit/test_perf_stacks \
	tests/unit/test_import tests/unit/test_plan tests/unit/test_visit tests/unit/test_rescan \
	tests/unit/test_program tests/unit/test_application \
	tests/unit/test_capture_loss tests/unit/test_stack_event tests/unit/test_opd_exit tests/unit/test_text \
	tests/unit/test_htable tests/unit/test_log
if HAVE_SECCOMP
daemon_unit_tests += tests/unit/test_call_filter
endif
check_PROGRAMS += $(daemon_unit_tests)
TESTS += $(daemon_unit_tests) tests/unit/test_row_tables.py tests/unit/test_libdwfl.py tests/unit/test_stack_files.py
EXTRA_DIST += tests/unit/test_row_tables.py tests/unit/test_libdwfl.py tests/unit/test_stack_files.py \
	tests/format/stacks.py

tests_unit_test_perf_data_SOURCES = tests/unit/test_perf_data.c tests/unit/cmocka_all.h
tests_unit_test_perf_data_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_perf_data_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a \
	$(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_test_perf_stacks_SOURCES = tests/unit/test_perf_stacks.c tests/unit/cmocka_all.h
tests_unit_test_perf_stacks_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_perf_stacks_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a \
	$(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_test_log_SOURCES = tests/unit/test_log.c tests/unit/cmocka_all.h
tests_unit_test_log_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_log_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sd_journal_sendv
tests_unit_test_log_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)

tests_unit_test_application_SOURCES = tests/unit/test_application.c tests/unit/cmocka_all.h
tests_unit_test_application_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_application_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a \
	$(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_test_import_SOURCES = tests/unit/test_import.c tests/unit/cmocka_all.h
tests_unit_test_import_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_import_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_memfd_create
tests_unit_test_import_LDADD = tools/libimport.a daemon/libpipeline.a libop/libop.a $(ZSTD_LIBS) \
	$(CMOCKA_LIBS)

tests_unit_test_ring_SOURCES = tests/unit/test_ring.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_stack_record_SOURCES = tests/unit/test_stack_record.c tests/unit/cmocka_all.h
tests_unit_test_stack_record_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_stack_record_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_record_SOURCES = tests/unit/test_record.c tests/unit/cmocka_all.h
tests_unit_test_record_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_record_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_htable_SOURCES = tests/unit/test_htable.c tests/unit/cmocka_all.h
tests_unit_test_htable_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_htable_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_dcookie_SOURCES = tests/unit/test_dcookie.c tests/unit/cmocka_all.h
tests_unit_test_dcookie_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_dcookie_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_dcookie_seen_SOURCES = tests/unit/test_dcookie_seen.c tests/unit/cmocka_all.h \
	tests/unit/test_box.h
tests_unit_test_dcookie_seen_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_dcookie_seen_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_dcookie_file_SOURCES = tests/unit/test_dcookie_file.c tests/unit/cmocka_all.h
tests_unit_test_dcookie_file_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_dcookie_file_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_cookie_file_SOURCES = tests/unit/test_cookie_file.c tests/unit/cmocka_all.h
tests_unit_test_cookie_file_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_cookie_file_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_cookie_file_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_write \
	-Wl,--wrap=op_sys_write_all -Wl,--wrap=op_sys_fsync -Wl,--wrap=op_sys_renameat \
	-Wl,--wrap=op_sys_ftruncate

tests_unit_test_odb_SOURCES = tests/unit/test_odb.c tests/unit/odb_box.h tests/unit/cmocka_all.h
tests_unit_test_odb_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_odb_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_odb_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fallocate \
	-Wl,--wrap=op_sys_renameat -Wl,--wrap=op_sys_fsync

tests_unit_test_odb_faults_SOURCES = tests/unit/test_odb_faults.c tests/unit/odb_box.h \
	tests/unit/still_clock.h tests/unit/cmocka_all.h
tests_unit_test_odb_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_odb_faults_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_odb_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fallocate \
	-Wl,--wrap=op_sys_renameat -Wl,--wrap=clock_gettime

tests_unit_test_stacks_SOURCES = tests/unit/test_stacks.c tests/unit/stack_box.h \
	tests/unit/still_clock.h tests/unit/test_box.h tests/unit/cmocka_all.h
tests_unit_test_stacks_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_stacks_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_stacks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fallocate -Wl,--wrap=clock_gettime

tests_unit_test_odb_power_SOURCES = tests/unit/test_odb_power.c tests/unit/cmocka_all.h \
	tests/unit/sample_writer.h
tests_unit_test_odb_power_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_odb_power_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_odb_power_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fsync \
	-Wl,--wrap=op_sys_symlinkat

tests_unit_test_mapset_SOURCES = tests/unit/test_mapset.c tests/unit/cmocka_all.h
tests_unit_test_mapset_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mapset_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_cgroups_SOURCES = tests/unit/test_cgroups.c tests/unit/cmocka_all.h
tests_unit_test_cgroups_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_cgroups_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_process_SOURCES = tests/unit/test_process.c tests/unit/cmocka_all.h
tests_unit_test_process_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_process_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_program_SOURCES = tests/unit/test_program.c tests/unit/cmocka_all.h
tests_unit_test_program_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_program_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_bpf_code_SOURCES = tests/unit/test_bpf_code.c tests/unit/cmocka_all.h
tests_unit_test_bpf_code_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bpf_code_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_bpf_code_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_bpf

tests_unit_test_kernel_map_SOURCES = tests/unit/test_kernel_map.c tests/unit/cmocka_all.h
tests_unit_test_kernel_map_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_kernel_map_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_waiting_SOURCES = tests/unit/test_jit_waiting.c tests/unit/cmocka_all.h
tests_unit_test_jit_waiting_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_waiting_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_crowd_SOURCES = tests/unit/test_jit_crowd.c tests/unit/cmocka_all.h \
	tests/unit/still_clock.h tests/unit/test_box.h
tests_unit_test_jit_crowd_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_crowd_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_test_jit_crowd_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_space_SOURCES = tests/unit/test_jit_space.c tests/unit/cmocka_all.h \
	tests/unit/test_box.h
tests_unit_test_jit_space_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_space_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_pieces_SOURCES = tests/unit/test_jit_pieces.c tests/unit/cmocka_all.h
tests_unit_test_jit_pieces_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_pieces_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_budget_SOURCES = tests/unit/test_jit_budget.c tests/unit/cmocka_all.h
tests_unit_test_jit_budget_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_budget_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_test_jit_budget_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_jit_SOURCES = tests/unit/test_jit.c tests/unit/cmocka_all.h \
	tests/unit/still_clock.h tests/unit/test_box.h
tests_unit_test_jit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_open_in_root \
	-Wl,--wrap=op_sys_open_dir_below -Wl,--wrap=clock_gettime
tests_unit_test_jit_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_mounts_SOURCES = tests/unit/test_mounts.c tests/unit/cmocka_all.h
tests_unit_test_mounts_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mounts_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_locate_SOURCES = tests/unit/test_locate.c tests/unit/cmocka_all.h
tests_unit_test_locate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_locate_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_helper_SOURCES = tests/unit/test_helper.c tests/unit/cmocka_all.h
tests_unit_test_helper_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_helper_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_lookers_SOURCES = tests/unit/test_lookers.c tests/unit/cmocka_all.h
tests_unit_test_lookers_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_lookers_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_tables_SOURCES = tests/unit/test_tables.c tests/unit/cmocka_all.h tests/unit/test_box.h
tests_unit_test_tables_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_tables_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_call_filter_SOURCES = tests/unit/test_call_filter.c tests/unit/cmocka_all.h
tests_unit_test_call_filter_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_call_filter_LDADD = daemon/libopd.a libop/libop.a $(CMOCKA_LIBS) $(SECCOMP_LIBS)

tests_unit_test_stat_cache_SOURCES = tests/unit/test_stat_cache.c tests/unit/cmocka_all.h
tests_unit_test_stat_cache_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_stat_cache_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opd_look
tests_unit_test_stat_cache_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_build_ids_SOURCES = tests/unit/test_build_ids.c tests/unit/cmocka_all.h
tests_unit_test_build_ids_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_build_ids_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id -Wl,--wrap=op_sys_ioctl
tests_unit_test_build_ids_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_cpus_SOURCES = tests/unit/test_cpus.c tests/unit/cmocka_all.h
tests_unit_test_cpus_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_cpus_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_stack_samples_SOURCES = tests/unit/test_stack_samples.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/pipeline.h tests/unit/pipeline_cpu.h \
	tests/unit/sideband_records.h
tests_unit_test_stack_samples_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_stack_samples_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opd_tables_find \
	-Wl,--wrap=opd_tables_turn -Wl,--wrap=opd_tables_is_busy -Wl,--wrap=clock_gettime
tests_unit_test_stack_samples_LDADD = daemon/libpipeline.a libop/libop.a $(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_test_arcs_SOURCES = tests/unit/test_arcs.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/sideband_records.h tests/unit/pipeline.h \
	tests/unit/pipeline_cpu.h
tests_unit_test_arcs_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_arcs_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_test_arcs_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_drain_SOURCES = tests/unit/test_drain.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/sideband_records.h tests/unit/pipeline.h \
	tests/unit/pipeline_cpu.h
tests_unit_test_drain_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_drain_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_drain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_fallocate

tests_unit_test_source_SOURCES = tests/unit/test_source.c tests/unit/cmocka_all.h \
	tests/bench/load.c tests/bench/load.h \
	tests/bench/sim.c tests/bench/sim.h
tests_unit_test_source_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_source_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)
tests_unit_test_source_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c tests/unit/cmocka_all.h
tests_unit_test_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_plan_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_rescan_SOURCES = tests/unit/test_rescan.c tests/unit/cmocka_all.h
tests_unit_test_rescan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_rescan_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_visit_SOURCES = tests/unit/test_visit.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/pipeline.h tests/unit/sideband_records.h
tests_unit_test_visit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_visit_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_visit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_ioctl

tests_unit_test_opd_exit_SOURCES = tests/unit/test_opd_exit.c tests/unit/cmocka_all.h \
	tests/unit/kernel_events.h tests/unit/sample_writer.h
tests_unit_test_opd_exit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_opd_exit_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a \
	$(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(POPT_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)
tests_unit_test_opd_exit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_ioctl -Wl,--wrap=op_sys_fsync \
	-Wl,--wrap=op_sys_syncfs

tests_unit_test_text_SOURCES = tests/unit/test_text.c tests/unit/cmocka_all.h
tests_unit_test_text_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_text_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_text_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=reallocarray

tests_unit_test_capture_loss_SOURCES = tests/unit/test_capture_loss.c tests/unit/cmocka_all.h \
	tests/unit/kernel_events.h tests/unit/memory_ring.h tests/unit/pipeline.h
tests_unit_test_capture_loss_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_capture_loss_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_capture_loss_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_perf_event_open \
	-Wl,--wrap=op_sys_read -Wl,--wrap=opd_cpu_online_id

tests_unit_test_stack_event_SOURCES = tests/unit/test_stack_event.c tests/unit/cmocka_all.h
tests_unit_test_stack_event_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_stack_event_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_stack_event_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_perf_event_open \
	-Wl,--wrap=op_stack_machine

rotation_wraps = -pthread -Wl,--wrap=op_sys_wall_ns -Wl,--wrap=op_sys_boot_ns \
	-Wl,--wrap=op_sys_mkdirat -Wl,--wrap=op_sys_rename_new -Wl,--wrap=op_sys_rename_exchange \
	-Wl,--wrap=op_sys_pwrite_all -Wl,--wrap=op_sys_renameat -Wl,--wrap=op_sys_write_all \
	-Wl,--wrap=op_sys_fsync

tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c tests/unit/rotation.h \
	tests/unit/cmocka_all.h tests/unit/pipeline.h
tests_unit_test_ledger_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_ledger_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)
tests_unit_test_ledger_LDFLAGS = $(AM_LDFLAGS) $(rotation_wraps)

tests_unit_test_rotate_SOURCES = tests/unit/test_rotate.c tests/unit/rotation.h \
	tests/unit/cmocka_all.h tests/unit/pipeline.h
tests_unit_test_rotate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_rotate_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)
tests_unit_test_rotate_LDFLAGS = $(AM_LDFLAGS) $(rotation_wraps)

tests_unit_test_unwritten_SOURCES = tests/unit/test_unwritten.c tests/unit/rotation.h \
	tests/unit/cmocka_all.h tests/unit/pipeline.h
tests_unit_test_unwritten_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_unwritten_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a \
	$(CMOCKA_LIBS) $(SYSTEMD_LIBS)
tests_unit_test_unwritten_LDFLAGS = $(AM_LDFLAGS) $(rotation_wraps)

tests_unit_test_syncer_SOURCES = tests/unit/test_syncer.c tests/unit/cmocka_all.h \
	tests/unit/sample_writer.h
tests_unit_test_syncer_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_syncer_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_syncer_LDFLAGS = $(AM_LDFLAGS) -pthread -Wl,--wrap=op_sys_fsync

tests_unit_test_retain_SOURCES = tests/unit/test_retain.c tests/unit/cmocka_all.h \
	tests/unit/sample_writer.h
tests_unit_test_retain_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_retain_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)
tests_unit_test_retain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_wall_ns \
	-Wl,--wrap=op_sys_boot_ns -Wl,--wrap=op_file_publish -Wl,--wrap=op_sys_statvfs \
	-Wl,--wrap=op_session_remove

tests_unit_test_session_sizes_SOURCES = tests/unit/test_session_sizes.c tests/unit/cmocka_all.h \
	tests/unit/sample_writer.h
tests_unit_test_session_sizes_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_session_sizes_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a \
	$(CMOCKA_LIBS)
tests_unit_test_session_sizes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_getdents

tests_unit_test_image_filter_SOURCES = tests/unit/test_image_filter.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/sideband_records.h tests/unit/pipeline.h \
	tests/unit/pipeline_cpu.h
tests_unit_test_image_filter_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_image_filter_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_stack_session_SOURCES = tests/unit/test_stack_session.c tests/unit/pipeline.h \
	tests/unit/cmocka_all.h
tests_unit_test_stack_session_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_stack_session_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_stack_session_LDFLAGS = $(AM_LDFLAGS) -pthread

tests_unit_test_file_limit_SOURCES = tests/unit/test_file_limit.c tests/unit/cmocka_all.h \
	tests/unit/pipeline.h
tests_unit_test_file_limit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_file_limit_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_file_limit_LDFLAGS = $(AM_LDFLAGS) -pthread

tests_unit_test_walk_SOURCES = tests/unit/test_walk.c tests/unit/cmocka_all.h
tests_unit_test_walk_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_walk_LDADD = daemon/libpipeline.a libop/libop.a $(ZSTD_LIBS) $(CMOCKA_LIBS)
