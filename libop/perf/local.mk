# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/perf/chain.c libop/perf/chain.h \
	libop/perf/data.c libop/perf/data.h \
	libop/perf/data_event.c libop/perf/data_event.h \
	libop/perf/data_feature.c libop/perf/data_feature.h \
	libop/perf/data_input.c libop/perf/data_input.h \
	libop/perf/data_open.c libop/perf/data_open.h \
	libop/perf/data_parts.c libop/perf/data_parts.h \
	libop/perf/data_raw.c libop/perf/data_raw.h \
	libop/perf/data_record.c libop/perf/data_record.h \
	libop/perf/data_shape.c libop/perf/data_shape.h \
	libop/perf/data_zstd.c libop/perf/data_zstd.h \
	libop/perf/record.c libop/perf/record.h \
	libop/perf/stack_record.c libop/perf/stack_record.h
EXTRA_DIST += libop/perf/README.md
