/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A simulated host: a memory pair and a side band for each of its CPUs, the load that writes to
 * them, and opd's pipeline that reads them.
 */
#ifndef BENCH_SIM_H
#define BENCH_SIM_H

#include "daemon/sync.h"
#include "libop/base/compiler.h"
#include "libop/ring/memory_pair.h"
#include "pipeline/drive/drain.h"
#include "tests/bench/load.h"

struct sim_cpu {
	struct op_mring_pair pair;
	struct op_mring sideband;
	struct op_mring_pair_writer writer; /* the load's thread */
	struct op_mring_writer sideband_writer;
};

struct sim {
	struct load *load;
	struct op_event event;
	struct opd_pipeline pipeline;
	struct sim_cpu *cpus;
	uint32_t nr_cpus;
	int dir_fd; /* the session directory, a new one */
	char dir[64];
	bool keep_session;
};

struct sim_config {
	struct load_config load;
	size_t ring_bytes, sideband_bytes;
	size_t max_open_files;
	bool keep_session; /* the caller removes it */
};

/* 0 or -errno; then nothing is left. */
int sim_open(const struct sim_config *config, struct sim *ret_sim) OP_NONNULL OP_MUST_CHECK;

/* Also removes the session directory, unless it is to be kept. */
void sim_close(struct sim *sim) OP_NONNULL;

/* Bytes that the write ring of a CPU takes. The load's thread. */
size_t sim_room(struct sim *sim, uint32_t cpu) OP_NONNULL;

/* One visit to a CPU, as the sync thread does it, with the side band up to now_ns. 0 or -errno. */
int sim_visit(struct sim *sim, uint32_t cpu, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* Ends a sync thread, which writes all samples out first. 0 or -errno. */
int sim_quit(struct opd_sync *sync) OP_NONNULL OP_MUST_CHECK;

/* Records that found no room. */
uint64_t sim_dropped(const struct sim *sim) OP_NONNULL;

/*
 * What is wrong with the sample files, compared with what the load made: samples and places, 0 and
 * 0 when nothing is.
 */
struct sim_check {
	uint64_t nr_files, nr_places, nr_samples; /* that are right */
	uint64_t wrong_places, wrong_samples;
};

/* 0, or -errno when a file cannot be read: the first such file's path is on stderr. */
int sim_check(const struct sim *sim, struct sim_check *ret_check) OP_NONNULL OP_MUST_CHECK;

#endif
