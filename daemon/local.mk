# SPDX-License-Identifier: GPL-3.0-or-later
# opd: main.c is a few lines, the rest is a library that tests, fuzzers and benchmarks link. In the order of the pipeline.
noinst_LIBRARIES += daemon/libopd.a
daemon_libopd_a_SOURCES = \
	daemon/plan.c daemon/plan.h \
	daemon/capture.c daemon/capture.h \
	daemon/source.c daemon/source.h \
	daemon/swappers.c daemon/swappers.h \
	daemon/sideband.c daemon/sideband.h \
	daemon/mapset.c daemon/mapset.h \
	daemon/process.c daemon/process.h \
	daemon/proc_scan.c daemon/proc_scan.h \
	daemon/mounts.c daemon/mounts.h \
	daemon/place.c daemon/place.h \
	daemon/generation.c daemon/generation.h \
	daemon/locate.c daemon/locate.h \
	daemon/looked.c daemon/looked.h \
	daemon/build_ids.c daemon/build_ids.h \
	daemon/image.c daemon/image.h \
	daemon/bpf_code.c daemon/bpf_code.h \
	daemon/kallsyms.c daemon/kallsyms.h \
	daemon/kernel_map.c daemon/kernel_map.h \
	daemon/cgroups.c daemon/cgroups.h daemon/cgroup_root.c daemon/cgroup_root.h \
	daemon/resolve.c daemon/resolve.h \
	daemon/settle.c daemon/settle.h \
	daemon/recover.c daemon/recover.h \
	daemon/rescan.c daemon/rescan.h \
	daemon/forget.c daemon/forget.h \
	daemon/jit.c daemon/jit.h daemon/jit_space.h \
	daemon/jit_owner.c daemon/jit_owner.h \
	daemon/perf_map.c daemon/perf_map.h \
	daemon/jitdump.c daemon/jitdump.h \
	daemon/jit_map.c daemon/jit_map.h \
	daemon/elf_host.h \
	daemon/count.c daemon/count.h daemon/count_file.c daemon/count_file.h daemon/count_name.c daemon/count_out.c daemon/memory_limit.c daemon/memory_limit.h \
	daemon/file_limit.c daemon/file_limit.h \
	daemon/image_filter.c daemon/image_filter.h \
	daemon/jit_lines.c daemon/jit_lines.h \
	daemon/jit_object.c daemon/jit_object.h \
	daemon/jit_write.c daemon/jit_write.h \
	daemon/cookie_file.c daemon/cookie_file.h \
	daemon/ibs.c daemon/ibs.h \
	daemon/arcs.c daemon/arcs.h \
	daemon/drain.c daemon/drain.h \
	daemon/visit.c daemon/visit.h \
	daemon/import.c daemon/import.h daemon/import_events.c \
	daemon/held.c daemon/held.h daemon/spill.c daemon/spill.h \
	daemon/import_cpus.c daemon/import_cpus.h \
	daemon/jobs.c daemon/jobs.h \
	daemon/sync.c daemon/sync.h \
	daemon/turn.c \
	daemon/dump.c daemon/write_out.h \
	daemon/unwritten.c daemon/unwritten.h \
	daemon/resume.c \
	daemon/status.c \
	daemon/stats_dir.c daemon/stats_dir.h \
	daemon/book.c daemon/book.h \
	daemon/rotate.c daemon/rotate.h \
	daemon/retain.c daemon/retain.h \
	daemon/age.c daemon/age.h \
	daemon/server.c daemon/server.h \
	daemon/cpus.c daemon/cpus.h \
	daemon/log.c daemon/log.h \
	daemon/log_journal.c \
	daemon/privileges.c daemon/privileges.h \
	daemon/opd.c daemon/opd.h \
	daemon/service.c daemon/service.h \
	daemon/opd_control.c \
	daemon/opd_session.c daemon/opd_state.h
daemon_libopd_a_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS) $(POPT_CFLAGS) $(CAP_CFLAGS)
daemon_libopd_a_CFLAGS = $(AM_CFLAGS)

sbin_PROGRAMS += daemon/opd
daemon_opd_SOURCES = daemon/main.c
daemon_opd_LDADD = daemon/libopd.a libop/libop.a $(SYSTEMD_LIBS) $(POPT_LIBS) $(CAP_LIBS)
