/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The feature sections of a perf.data file: where and how it was recorded. Source:
 * perf.data-file-format.txt in tools/perf/Documentation of the kernel. Every length is checked, and
 * unknown sections are skipped. One thread.
 */
#ifndef OP_PERF_FEATURE_H
#define OP_PERF_FEATURE_H

#include "libop/base/compiler.h"
#include "libop/events/ibs_derived.h"
#include "libop/perf/data_event.h"
#include "libop/perf/record.h"

#define OP_PERF_FEATURES_MAX 256u

enum op_perf_feature {
	OP_PERF_FEATURE_BUILD_ID = 2,
	OP_PERF_FEATURE_HOSTNAME = 3,
	OP_PERF_FEATURE_OS_RELEASE = 4,
	OP_PERF_FEATURE_VERSION = 5,
	OP_PERF_FEATURE_ARCH = 6,
	OP_PERF_FEATURE_NR_CPUS = 7,
	OP_PERF_FEATURE_CPU_DESC = 8,
	OP_PERF_FEATURE_CPU_ID = 9,
	OP_PERF_FEATURE_CMDLINE = 11,
	OP_PERF_FEATURE_EVENT_DESC = 12,
	OP_PERF_FEATURE_PMU_MAPPINGS = 16,
	OP_PERF_FEATURE_DIR_FORMAT = 24,
	OP_PERF_FEATURE_COMPRESSED = 27,
};

struct op_perf_features {
	uint32_t nr_cpus;         /* 0: not known, as with the others */
	uint32_t compressed_from; /* the largest uncompressed size of a compressed record */
	uint64_t dir_version;     /* of a directory with several files */
	bool has_pmus;            /* the file has a list of PMUs */
	uint32_t ibs_pmu_types[OP_IBS_NR_KINDS]; /* perf_event_attr.type of AMD's samplers */
	char *hostname, *os_release, *version, *arch, *cpu_desc, *cpu_id; /* NULL: not known */
	char *cmdline; /* the words, joined by blanks */
	struct op_htable build_ids;
};

/*
 * True for an event whose samples have the registers of an IBS sampler. That is known from samples
 * (data_shape.h), from the PMU or, in a file without a list of PMUs, from the name of the event.
 */
bool op_perf_is_ibs(const struct op_perf_features *features, const struct op_perf_event *event,
		    enum op_ibs_kind *ret_kind) OP_NONNULL OP_MUST_CHECK;

/* True for an event of an IBS sampler that was recorded without the registers. */
bool op_perf_lacks_registers(const struct op_perf_features *features, const struct op_perf_event *event) OP_NONNULL OP_MUST_CHECK;

/* False: nothing of this feature is read. */
bool op_perf_feature_is_used(uint64_t feature);

/* Reads one section. 0, also for an unknown or an empty one; -EBADMSG: damaged; -ENOMEM. */
int op_perf_feature_read(struct op_perf_features *features, struct op_perf_events *events, uint64_t feature, const uint8_t *bytes,
			 size_t nr_bytes, bool swapped) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Reads one entry of the list of build-ids, a record with a header. 0, -EBADMSG or -ENOMEM. */
int op_perf_build_id_read(struct op_perf_features *features, const uint8_t *record, size_t nr_bytes,
			  bool swapped) OP_NONNULL OP_MUST_CHECK;

/*
 * The build-id of an image by its name in mappings, also [kernel.kallsyms]SYMBOL; NULL: not known.
 */
const struct op_build_id *op_perf_build_id_of(const struct op_perf_features *features, const char *name) OP_NONNULL;

void op_perf_features_free(struct op_perf_features *features) OP_NONNULL;

#endif
