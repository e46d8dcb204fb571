# SPDX-License-Identifier: GPL-3.0-or-later
# libop: what daemon and tools share. One source a line.
noinst_LIBRARIES += libop/libop.a
libop_libop_a_SOURCES = \
	libop/atomic.h \
	libop/banned.h \
	libop/abi.c libop/abi.h \
	libop/arc_stats.h \
	libop/build_id.c libop/build_id.h \
	libop/chain.c libop/chain.h \
	libop/clock.h \
	libop/compiler.h \
	libop/config.c libop/config.h \
	libop/control.c libop/control.h libop/jit_stats.h \
	libop/daemonrc.c libop/daemonrc.h \
	libop/damaged.c libop/damaged.h \
	libop/dcookie.c libop/dcookie.h libop/dcookie_table.h \
	libop/dcookie_file.c \
	libop/dcookie_name.c \
	libop/dcookie_seen.c \
	libop/event_ibs.c libop/event_ibs.h \
	libop/events.c libop/events.h \
	libop/file.c libop/file.h \
	libop/file_place.c libop/file_place.h \
	libop/guard.c libop/guard.h \
	libop/htable.c libop/htable.h \
	libop/ibs.c libop/ibs.h libop/ibs_fields.h \
	libop/ibs_cpu.c libop/ibs_cpu.h \
	libop/ibs_data_src.c \
	libop/ibs_events.c libop/ibs_events.h \
	libop/ibs_host.c libop/ibs_host.h \
	libop/ibs_meaning.c libop/ibs_meaning.h \
	libop/ibs_request.c libop/ibs_request.h \
	libop/ibs_stats.c libop/ibs_stats.h \
	libop/ledger.c libop/ledger.h \
	libop/jit_object.c libop/jit_object.h \
	libop/mangle.c libop/mangle.h \
	libop/mem.c libop/mem.h \
	libop/odb.c libop/odb.h \
	libop/odb_file.c libop/odb_file.h \
	libop/odb_keep.c libop/odb_keep.h \
	libop/odb_read.c \
	libop/odb_repair.c \
	libop/odb_replace.c \
	libop/parse.c libop/parse.h \
	libop/perf_shape.c libop/perf_shape.h libop/perf_data.c libop/perf_data.h libop/perf_open.c libop/perf_reader.h \
	libop/perf_event.c libop/perf_event.h \
	libop/perf_feature.c libop/perf_feature.h \
	libop/perf_input.c libop/perf_input.h \
	libop/perf_parts.c \
	libop/perf_raw.c libop/perf_raw.h \
	libop/perf_record.c libop/perf_record.h \
	libop/perf_zstd.c libop/perf_zstd.h \
	libop/record.c libop/record.h \
	libop/ring.c libop/ring.h \
	libop/ring_aux.c libop/ring_aux.h \
	libop/ring_memory.c libop/ring_memory.h \
	libop/ring_memory_pair.c libop/ring_memory_pair.h \
	libop/process_token.c libop/process_token.h \
	libop/ring_pair.c libop/ring_pair.h \
	libop/seal.c libop/seal.h \
	libop/lock.c libop/lock.h \
	libop/session.c libop/session.h \
	libop/session_list.c \
	libop/session_grove.c \
	libop/session_walk.c libop/session_walk.h \
	libop/session_open.c \
	libop/threads.c libop/threads.h \
	libop/session_close.c libop/session_close.h \
	libop/session_ledger.c libop/session_ledger.h \
	libop/session_import.c libop/session_import.h \
	libop/session_pending.c libop/session_pending.h \
	libop/session_stats.c libop/session_stats.h \
	libop/session_sum.c \
	libop/sha256.c libop/sha256.h \
	libop/stop.c libop/stop.h \
	libop/sys.c libop/sys.h \
	libop/text.c libop/text.h libop/tracepoint.c libop/tracepoint.h
libop_libop_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZSTD_CFLAGS)
libop_libop_a_CFLAGS = $(AM_CFLAGS)
