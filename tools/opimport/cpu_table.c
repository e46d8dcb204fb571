/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/cpu_table.h"
#include "daemon/capture/memory_source.h"

#include <errno.h>
#include <unistd.h>

#include "tools/opimport/import.h"
#include "daemon/resolve/sideband.h"
#include "libop/base/clock.h"

#define RING_BYTES     (64u * 1024)
#define SIDEBAND_BYTES (1024u * 1024)
#define NUMBERS        65536u

struct opi_import_cpu {
	struct op_mring_pair pair;
	struct op_mring_pair_writer writer;
	struct op_mring sideband;
	struct op_mring_writer sideband_writer; /* of the first CPU */
};

static void free_cpu(struct opi_import_cpu *cpu)
{
	if (!cpu)
		return;
	op_mring_pair_destroy(&cpu->pair);
	op_mring_destroy(&cpu->sideband);
	free(cpu);
}

static int open_cpu(size_t sideband_bytes, struct opi_import_cpu **ret_cpu)
{
	struct opi_import_cpu *cpu = calloc(1, sizeof(*cpu));
	int err;

	if (!cpu)
		return -ENOMEM;
	/* The writer fences for itself: it rests while the ring is read. */
	err = op_mring_pair_create(RING_BYTES, OP_MRING_FENCE | OP_MRING_OWN_WRITER, &cpu->pair);
	if (!err)
		err = op_mring_create(sideband_bytes, 0, OP_MRING_OWN_WRITER, &cpu->sideband);
	if (!err) {
		op_mring_close_fds(&cpu->pair.rings[0]);
		op_mring_close_fds(&cpu->pair.rings[1]);
		op_mring_close_fds(&cpu->sideband);
		err = op_mring_pair_writer_open(&cpu->pair, &cpu->writer);
	}
	if (!err)
		err = op_mring_writer_open(&cpu->sideband, &cpu->sideband_writer);
	if (err)
		free_cpu(cpu);
	else
		*ret_cpu = cpu;
	return err;
}

static struct opd_memory_cpu memory_of(const struct opi_import_cpus *cpus, const struct opi_import_cpu *cpu, uint32_t number)
{
	return (struct opd_memory_cpu){ .cpu = number, .pair = &cpu->pair, .sideband = &cpu->sideband, .ids = cpus->ids };
}

static void keep(struct opi_import_cpus *cpus, struct opi_import_cpu *cpu, uint32_t number)
{
	cpus->cpus[cpus->nr_cpus++] = cpu;
	cpus->by_number[number] = (uint16_t)cpus->nr_cpus;
}

int opi_import_cpus_open(struct opi_import_cpus *cpus, struct opd_pipeline *pipeline, const struct op_event *events,
			 size_t nr_events, const uint64_t *ids)
{
	struct opi_import_cpus fresh = {
		.pipeline = pipeline,
		.ids = ids,
		.cpus = calloc(OPI_IMPORT_CPUS_MAX, sizeof(*fresh.cpus)),
		.by_number = calloc(NUMBERS, sizeof(uint16_t)),
	};
	struct opi_import_cpu *cpu = NULL;
	int err = fresh.cpus && fresh.by_number ? open_cpu(SIDEBAND_BYTES, &cpu) : -ENOMEM;

	if (!err) {
		struct opd_memory_cpu memory = memory_of(&fresh, cpu, 0);

		err = opd_capture_open_memory(&pipeline->capture, events, nr_events, &memory, 1);
	}
	if (err) {
		free_cpu(cpu);
		opi_import_cpus_close(&fresh);
		return err;
	}
	keep(&fresh, cpu, 0);
	*cpus = fresh;
	return 0;
}

static int add(struct opi_import_cpus *cpus, uint32_t number)
{
	struct opi_import_cpu *cpu;
	struct opd_memory_cpu memory;
	int err = open_cpu((size_t)sysconf(_SC_PAGESIZE), &cpu);

	if (err)
		return err;
	memory = memory_of(cpus, cpu, number);
	err = opd_capture_add_memory(&cpus->pipeline->capture, &memory);
	if (err)
		free_cpu(cpu);
	else
		keep(cpus, cpu, number);
	return err;
}

/* With a pair of its own, or the first. */
static int join(struct opi_import_cpus *cpus, uint32_t number)
{
	int err = cpus->is_full || cpus->nr_cpus == OPI_IMPORT_CPUS_MAX ? -EMFILE : add(cpus, number);

	if (err != -EMFILE && err != -ENFILE && err != -ENOMEM)
		return err;
	cpus->is_full = true;
	cpus->by_number[number] = 1;
	cpus->nr_shared++;
	return 0;
}

static int find(struct opi_import_cpus *cpus, uint32_t number, uint32_t *ret_index)
{
	int err = op_likely(cpus->by_number[number]) ? 0 : join(cpus, number);

	if (!err)
		*ret_index = cpus->by_number[number] - 1u;
	return err;
}

static void leave(struct opi_import_cpus *cpus)
{
	if (cpus->ring)
		op_mring_pair_leave(&cpus->cpus[cpus->index]->writer);
	cpus->ring = NULL;
}

static int drain_sideband(struct opi_import_cpus *cpus)
{
	struct opd_pipeline *pipeline = cpus->pipeline;
	struct opd_sideband_loss loss; /* none: it is read before it is full */

	pipeline->count.now_ns = op_now_ns();
	if (!op_ring_pending(&pipeline->capture.cpus[0].sideband))
		return 0;
	return opd_sideband_drain(&pipeline->capture, &pipeline->resolver, UINT64_MAX, &loss);
}

/* The side band has what is older than what is in the rings. */
static int visit(struct opi_import_cpus *cpus, uint32_t index)
{
	struct opd_cpu *cpu = &cpus->pipeline->capture.cpus[index];
	struct op_ring *ring;
	int err = drain_sideband(cpus);

	if (err || !cpu->source->pending(cpu))
		return err;
	err = cpu->source->swap(cpu);
	if (err)
		return err;
	ring = cpu->source->read_ring(cpu);
	if (!ring)
		return -EAGAIN;
	opd_drain_ring(cpus->pipeline, cpu, ring);
	return 0;
}

/* What is in the first pair is of one CPU, where that makes a difference. */
static int take_turn(struct opi_import_cpus *cpus, uint32_t number)
{
	struct opd_cpu *cpu = &cpus->pipeline->capture.cpus[0];
	int err;

	if (!cpus->pipeline->count.separate_cpu || cpu->cpu == number)
		return 0;
	err = visit(cpus, 0);
	if (!err)
		cpu->cpu = number;
	return err;
}

/* To enter costs a fence: it is done for all records of one CPU that follow each other. One whose number cannot be is taken for CPU 0. */
static int enter(struct opi_import_cpus *cpus, uint32_t number)
{
	uint32_t of_pair = op_likely(number < NUMBERS) ? number : 0, index;
	int err = find(cpus, of_pair, &index);

	leave(cpus);
	if (!err && op_unlikely(!index))
		err = take_turn(cpus, of_pair);
	if (err)
		return err;
	cpus->number = number;
	cpus->index = index;
	cpus->ring = op_mring_pair_enter(&cpus->cpus[index]->writer);
	return 0;
}

static int put(struct op_mring_writer *ring, const struct perf_event_header *record)
{
	struct perf_event_header *out;
	int err = op_mring_reserve(ring, record->size, &out);

	if (err)
		return err;
	memcpy(out, record, record->size);
	op_mring_commit(ring);
	return 0;
}

static int make_room(struct opi_import_cpus *cpus)
{
	int err;

	leave(cpus);
	err = visit(cpus, cpus->index);
	return err ? err : enter(cpus, cpus->number);
}

int opi_import_cpus_put(struct opi_import_cpus *cpus, uint32_t number, const struct perf_event_header *record)
{
	int err = 0;

	if (op_unlikely(!cpus->ring || number != cpus->number))
		err = enter(cpus, number);
	if (!err && op_unlikely(!op_mring_has_room(cpus->ring, record->size, false)))
		err = make_room(cpus);
	return err ? err : put(cpus->ring, record);
}

int opi_import_cpus_put_sideband(struct opi_import_cpus *cpus, const struct perf_event_header *record)
{
	struct op_mring_writer *ring = &cpus->cpus[0]->sideband_writer;
	int err = 0;

	if (op_unlikely(!op_mring_has_room(ring, record->size, false)))
		err = drain_sideband(cpus);
	cpus->sideband_records++;
	return err ? err : put(ring, record);
}

int opi_import_cpus_visit_all(struct opi_import_cpus *cpus)
{
	int err = 0;

	leave(cpus);
	for (uint32_t i = 0; !err && i < cpus->nr_cpus; i++)
		err = visit(cpus, i);
	return err;
}

void opi_import_cpus_close(struct opi_import_cpus *cpus)
{
	leave(cpus);
	for (size_t i = 0; i < cpus->nr_cpus; i++)
		free_cpu(cpus->cpus[i]);
	free(cpus->cpus);
	free(cpus->by_number);
	*cpus = (struct opi_import_cpus){ 0 };
}
