/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The feature sections of a perf.data file, which say where and how it was recorded. Source: perf.data-file-format.txt in the
 * kernel's tools/perf/Documentation. Nothing in them is trusted: every length is checked, what is not known is passed over. One
 * thread.
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

struct op_perf_build_id {
	uint8_t bytes[OP_BUILD_ID_BYTES_MAX];
	uint8_t nr_bytes;
};

struct op_perf_features {
	/* As the file has them, NULL where it says nothing. */
	char *hostname, *os_release, *version, *arch, *cpu_desc, *cpu_id;
	char *cmdline;            /* the words with blanks between them */
	uint32_t nr_cpus;         /* 0: not told */
	uint64_t dir_version;     /* 0: not in a directory, or in one alone */
	uint32_t compressed_from; /* bytes at most in the original of a compressed record; 0: not told */
	bool has_pmus;            /* there was a list of PMUs */
	uint32_t ibs_pmu_types[OP_IBS_NR_KINDS]; /* perf_event_attr.type of AMD's samplers; 0: not told */
	struct op_htable build_ids;
};

/*
 * True for an event whose samples have the registers of an IBS sampler: by what was recognised, by PMU or, where the file has no list of PMUs,
 * by name.
 */
bool op_perf_is_ibs(const struct op_perf_features *features, const struct op_perf_event *event,
		    enum op_ibs_kind *ret_kind) OP_NONNULL OP_MUST_CHECK;

/* True for an event of an IBS sampler that was recorded without the registers. */
bool op_perf_lacks_registers(const struct op_perf_features *features, const struct op_perf_event *event) OP_NONNULL OP_MUST_CHECK;

/* Takes one section in. 0, also for one that opd does not know; -EBADMSG: it does not hold what it should; -ENOMEM. */
int op_perf_feature_read(struct op_perf_features *features, struct op_perf_events *events, uint64_t feature, const uint8_t *bytes,
			 size_t nr_bytes, bool swapped) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* One entry of the list of build-ids, a record with a header. 0, -EBADMSG or -ENOMEM. */
int op_perf_build_id_read(struct op_perf_features *features, const uint8_t *record, size_t nr_bytes,
			  bool swapped) OP_NONNULL OP_MUST_CHECK;

/* The build-id of an image by the name that mappings have, also [kernel.kallsyms] with a symbol behind it; NULL: the file does not say. */
const struct op_perf_build_id *op_perf_build_id_of(const struct op_perf_features *features, const char *name) OP_NONNULL;

void op_perf_features_free(struct op_perf_features *features) OP_NONNULL;

#endif
