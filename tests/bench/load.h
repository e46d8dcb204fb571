/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A generated load, the same for the same seed: the records of a busy host, and the expected
 * counts.
 *
 * Programs run as processes with many mappings. Each program has an executable of its own and
 * libraries of a common pool. A process runs for a few samples, stays in a function for some of
 * them, and at one address for some of these. How often functions, addresses, libraries and
 * processes come follows Zipf's law. Some samples are in the kernel. At intervals a process ends
 * and another one gets its pid (fork, exec), or it executes another program, or it maps another
 * library in the place of one. Every record has the layout that libop/perf/record.h reads.
 *
 * One thread.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/ring/memory.h"

#define LOAD_FIRST_PID      4200000u /* above any pid_max: /proc has nothing of it */
#define LOAD_KERNEL_START   0xffffffff81000000u
#define LOAD_KERNEL_END     0xffffffff82000000u
#define LOAD_EVENT_ID       77u
#define LOAD_FUNCTIONS      128u /* in an image */
#define LOAD_ADDRESSES      16u  /* that are hit, in a function */
#define LOAD_FUNCTION_BYTES 1024u
#define LOAD_STEP_BYTES     27u /* from one address to the next */
#define LOAD_PLACES         (LOAD_FUNCTIONS * LOAD_ADDRESSES)
/* from one sample to the next, on any CPU; more than a process has mappings */
#define LOAD_STEP_NS        250u

struct load_config {
	uint64_t seed;
	uint32_t nr_cpus;
	uint32_t nr_programs;
	uint32_t nr_processes;   /* at any time, one after another on the CPUs */
	uint32_t nr_mappings;    /* of each: the executable and libraries; 3 at least */
	uint32_t nr_libraries;   /* in the pool */
	uint32_t change_every;   /* samples between two changes of a process; 0: none */
	uint32_t kernel_percent; /* of the stays in a function */
};

struct load;

/* 0 and a load that load_free frees, or -ENOMEM. */
int load_new(const struct load_config *config, struct load **ret_load) OP_NONNULL OP_MUST_CHECK;
void load_free(struct load *load);

/* Where the side band of a CPU goes. */
void load_set_sideband(struct load *load, uint32_t cpu, struct op_mring_writer *sideband) OP_NONNULL;

/*
 * For a reader that runs at the same time and reads `clock`, too: each record has the time at which
 * it is written, and a record that depends on it has a later time, as in the kernel. With times of
 * the caller, a record may be older than an earlier visit of the reader that did not find it.
 */
void load_set_clock(struct load *load, uint64_t (*clock)(void)) OP_NONNULL;

/* Writes the exec and the mappings of every process. 0 or -ENOBUFS. */
int load_begin(struct load *load, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * Writes one sample of a CPU into `ring`, at time_ns (ignored with a clock), which grows by at
 * least LOAD_STEP_NS from call to call. The side-band records before that time are written first.
 * 0; -ENOSPC: no room for the sample, which the ring counts as dropped and the load does not count;
 * -ENOBUFS: no room in a side band, and the load cannot be used any more.
 */
int load_sample(struct load *load, uint32_t cpu, struct op_mring_writer *ring, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/* Samples and side-band records that are in rings. */
uint64_t load_samples(const struct load *load) OP_NONNULL;
uint64_t load_sideband_records(const struct load *load) OP_NONNULL;

/* The event that the samples are of. */
void load_event(struct op_event *ret_event) OP_NONNULL;

/* The expected contents of one sample file. */
struct load_file {
	const char *program, *image;
	const uint32_t *counts; /* LOAD_PLACES of them */
	uint64_t first_key;     /* in the image */
};

/* The key of a place. */
static inline uint64_t load_key(const struct load_file *file, uint32_t place)
{
	return file->first_key + place / LOAD_ADDRESSES * LOAD_FUNCTION_BYTES + place % LOAD_ADDRESSES * LOAD_STEP_BYTES;
}

/*
 * Calls `visit` for each file that has samples until it does not return 0. Returns its last result.
 */
int load_visit(const struct load *load, int (*visit)(const struct load_file *file, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

#endif
