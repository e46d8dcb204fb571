/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/cpu_table.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "pipeline/capture/memory_source.h"
#include "pipeline/resolve/sideband.h"

#define RING_BYTES     (64u * 1024)
#define SIDEBAND_BYTES (1024u * 1024)
#define NUMBERS        65536u

struct opi_cpu {
	struct op_mring_pair pair;
	struct op_mring_pair_writer writer;
	struct op_mring sideband;
	struct op_mring_writer sideband_writer; /* used of CPU 0 */
};

static void free_cpu(struct opi_cpu *cpu)
{
	if (!cpu)
		return;
	op_mring_pair_destroy(&cpu->pair);
	op_mring_destroy(&cpu->sideband);
	free(cpu);
}

/* One record with a stack may be as long as a usual ring. */
static size_t ring_bytes(const struct opi_cpu_table *table)
{
	return table->has_stacks ? 2 * RING_BYTES : RING_BYTES;
}

static int open_cpu(const struct opi_cpu_table *table, size_t sideband_bytes, struct opi_cpu **ret_cpu)
{
	struct opi_cpu *cpu = calloc(1, sizeof(*cpu));
	int err;

	if (!cpu)
		return -ENOMEM;
	/* The writer needs no membarrier(2): it stands still while the ring is read. */
	err = op_mring_pair_create(ring_bytes(table), OP_MRING_FENCE | OP_MRING_OWN_WRITER, &cpu->pair);
	if (!err)
		err = op_mring_create(sideband_bytes, 0, OP_MRING_OWN_WRITER, &cpu->sideband);
	if (err)
		goto fail;
	op_mring_close_fds(&cpu->pair.rings[0]);
	op_mring_close_fds(&cpu->pair.rings[1]);
	op_mring_close_fds(&cpu->sideband);
	err = op_mring_pair_writer_open(&cpu->pair, &cpu->writer);
	if (!err)
		err = op_mring_writer_open(&cpu->sideband, &cpu->sideband_writer);
	if (err)
		goto fail;
	*ret_cpu = cpu;
	return 0;

fail:
	free_cpu(cpu);
	return err;
}

static struct opd_memory_cpu memory_of(const struct opi_cpu_table *table, const struct opi_cpu *cpu, uint32_t number)
{
	return (struct opd_memory_cpu){ .cpu = number, .pair = &cpu->pair, .sideband = &cpu->sideband, .ids = table->ids };
}

static void append(struct opi_cpu_table *table, struct opi_cpu *cpu, uint32_t number)
{
	table->cpus[table->nr_cpus++] = cpu;
	table->by_number[number] = (uint16_t)table->nr_cpus;
}

int opi_cpu_table_open(struct opi_cpu_table *table, struct opd_pipeline *pipeline, const struct op_event *events, size_t nr_events,
		       const uint64_t *ids)
{
	struct opi_cpu_table fresh = {
		.pipeline = pipeline,
		.ids = ids,
		.cpus = calloc(OPI_CPU_TABLE_MAX, sizeof(*fresh.cpus)),
		.by_number = calloc(NUMBERS, sizeof(uint16_t)),
	};
	struct opi_cpu *cpu = NULL;
	int err;

	for (size_t i = 0; i < nr_events; i++)
		fresh.has_stacks |= op_event_has_stack(&events[i]);
	err = fresh.cpus && fresh.by_number ? open_cpu(&fresh, SIDEBAND_BYTES, &cpu) : -ENOMEM;
	if (!err) {
		struct opd_memory_cpu memory = memory_of(&fresh, cpu, 0);

		err = opd_capture_open_memory(&pipeline->capture, events, nr_events, &memory, 1);
	}
	if (err) {
		free_cpu(cpu);
		opi_cpu_table_close(&fresh);
		return err;
	}
	append(&fresh, cpu, 0);
	*table = fresh;
	return 0;
}

static int add(struct opi_cpu_table *table, uint32_t number)
{
	struct opi_cpu *cpu;
	struct opd_memory_cpu memory;
	int err = open_cpu(table, (size_t)sysconf(_SC_PAGESIZE), &cpu);

	if (err)
		return err;
	memory = memory_of(table, cpu, number);
	err = opd_capture_add_memory(&table->pipeline->capture, &memory);
	if (err)
		free_cpu(cpu);
	else
		append(table, cpu, number);
	return err;
}

/* Gives a CPU a pair of its own, or that of CPU 0. */
static int assign_pair(struct opi_cpu_table *table, uint32_t number)
{
	int err = table->is_full || table->nr_cpus == OPI_CPU_TABLE_MAX ? -EMFILE : add(table, number);

	if (err != -EMFILE && err != -ENFILE && err != -ENOMEM)
		return err;
	table->is_full = true;
	table->by_number[number] = 1;
	table->nr_shared++;
	return 0;
}

static int find(struct opi_cpu_table *table, uint32_t number, uint32_t *ret_index)
{
	int err = op_likely(table->by_number[number]) ? 0 : assign_pair(table, number);

	if (!err)
		*ret_index = table->by_number[number] - 1u;
	return err;
}

static void leave(struct opi_cpu_table *table)
{
	if (table->ring)
		op_mring_pair_leave(&table->cpus[table->index]->writer);
	table->ring = NULL;
}

static int drain_sideband(struct opi_cpu_table *table)
{
	struct opd_pipeline *pipeline = table->pipeline;
	struct opd_sideband_loss loss; /* always none: the ring is read before it is full */

	pipeline->count.now_ns = op_now_ns();
	if (!op_ring_pending(&pipeline->capture.cpus[0].sideband))
		return 0;
	return opd_sideband_drain(&pipeline->capture, &pipeline->resolver, UINT64_MAX, &loss);
}

/* Reads the side band first: its records are older than those of the ring. */
static int visit(struct opi_cpu_table *table, uint32_t index)
{
	struct opd_cpu *cpu = &table->pipeline->capture.cpus[index];
	struct op_ring *ring;
	int err = drain_sideband(table);

	if (err || !cpu->source->pending(cpu))
		return err;
	err = cpu->source->swap(cpu);
	if (err)
		return err;
	ring = cpu->source->read_ring(cpu);
	if (!ring)
		return -EAGAIN;
	opd_drain_ring(table->pipeline, cpu, ring);
	return 0;
}

/* The pair of CPU 0 has records of one CPU at a time, if samples are separated by CPU. */
static int change_cpu(struct opi_cpu_table *table, uint32_t number)
{
	struct opd_cpu *cpu = &table->pipeline->capture.cpus[0];
	int err;

	if (!table->pipeline->count.separate_cpu || cpu->cpu == number)
		return 0;
	err = visit(table, 0);
	if (!err)
		cpu->cpu = number;
	return err;
}

/* Entering a ring costs a fence: once for successive records. Impossible numbers mean CPU 0. */
static int enter(struct opi_cpu_table *table, uint32_t number)
{
	uint32_t of_pair = op_likely(number < NUMBERS) ? number : 0, index;
	int err = find(table, of_pair, &index);

	leave(table);
	if (!err && op_unlikely(!index))
		err = change_cpu(table, of_pair);
	if (err)
		return err;
	table->number = number;
	table->index = index;
	table->ring = op_mring_pair_enter(&table->cpus[index]->writer);
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

static int empty_ring(struct opi_cpu_table *table)
{
	int err;

	leave(table);
	err = visit(table, table->index);
	return err ? err : enter(table, table->number);
}

int opi_cpu_table_put(struct opi_cpu_table *table, uint32_t number, const struct perf_event_header *record)
{
	int err = 0;

	if (op_unlikely(!table->ring || number != table->number))
		err = enter(table, number);
	if (!err && op_unlikely(!op_mring_has_room(table->ring, record->size, false)))
		err = empty_ring(table);
	return err ? err : put(table->ring, record);
}

int opi_cpu_table_put_sideband(struct opi_cpu_table *table, const struct perf_event_header *record)
{
	struct op_mring_writer *ring = &table->cpus[0]->sideband_writer;
	int err = 0;

	if (op_unlikely(!op_mring_has_room(ring, record->size, false)))
		err = drain_sideband(table);
	table->sideband_records++;
	return err ? err : put(ring, record);
}

int opi_cpu_table_visit_all(struct opi_cpu_table *table)
{
	int err = 0;

	leave(table);
	for (uint32_t i = 0; !err && i < table->nr_cpus; i++)
		err = visit(table, i);
	return err;
}

void opi_cpu_table_close(struct opi_cpu_table *table)
{
	leave(table);
	for (size_t i = 0; i < table->nr_cpus; i++)
		free_cpu(table->cpus[i]);
	free(table->cpus);
	free(table->by_number);
	*table = (struct opi_cpu_table){ 0 };
}
