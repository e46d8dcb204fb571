/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays a perf.data file of `perf record --call-graph dwarf` in the order of time: which code each
 * process has mapped, and each sample with its registers and its copy of the stack. One thread.
 */
#ifndef TEST_RECORDING_H
#define TEST_RECORDING_H

#include "libop/perf/stack_record.h"

struct recorded_map {
	uint64_t start, end;
	uint64_t offset; /* in the file, of `start` */
	void *image;     /* as `open` says */
};

struct recorded_process {
	uint32_t pid;
	struct recorded_map *maps; /* ascending and disjoint */
	size_t nr_maps, capacity;
	uint64_t generation; /* another one after each change of the maps */
	void *state;         /* of the user; `forget` frees it */
};

struct recording_user {
	void *arg;
	/* What is mapped under a name; called for each mapping of code. */
	void *(*open)(void *arg, const char *name);
	void (*take)(void *arg, struct recorded_process *process, const struct op_stack_record *sample);
	void (*forget)(void *arg, struct recorded_process *process);
};

/* The mapping at an address; NULL: none. */
static inline const struct recorded_map *recorded_map_at(const struct recorded_process *process, uint64_t address)
{
	size_t nr = op_nr_leading(process->maps, process->nr_maps, row, row->start <= address);

	return nr && address < process->maps[nr - 1].end ? &process->maps[nr - 1] : NULL;
}

/* Ends the program with a message when the file cannot be read. */
void recording_play(const char *path, const struct recording_user *user) OP_NONNULL;

#endif
