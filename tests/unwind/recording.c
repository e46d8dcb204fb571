// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unwind/recording.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/perf/data_open.h"
#include "tests/die.h"

#define PIDS_MAX    (1u << 22) /* PID_MAX_LIMIT of Linux */
#define DATA_OFFSET 40u        /* in the file header: where the records are, and their bytes */
#define MMAP_NAME   32u        /* in the bodies of MMAP and MMAP2 */
#define MMAP2_NAME  64u
#define PARTS       (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* A record of the file, to be sorted. */
struct entry {
	uint64_t time_ns;
	const struct perf_event_header *header;
};

struct recording {
	const struct recording_user *user;
	const struct op_perf_events *events;
	struct recorded_process **processes; /* by pid */
	struct entry *entries;
	size_t nr_entries, capacity;
	uint64_t sample[(UINT16_MAX + 1) / 8]; /* as opd asks the kernel for it */
};

static void *grown(void *rows, size_t *capacity, size_t nr, size_t row_bytes)
{
	if (nr < *capacity)
		return rows;
	*capacity = *capacity ? 2 * *capacity : 16;
	rows = realloc(rows, *capacity * row_bytes);
	if (!rows)
		die("memory", -ENOMEM);
	return rows;
}

static uint32_t u32_at(const uint8_t *body, size_t offset)
{
	uint32_t number;

	memcpy(&number, body + offset, sizeof(number));
	return number;
}

static uint64_t u64_at(const uint8_t *body, size_t offset)
{
	uint64_t number;

	memcpy(&number, body + offset, sizeof(number));
	return number;
}

/* ---- processes ---- */

static struct recorded_process *process_of(struct recording *recording, uint32_t pid)
{
	struct recorded_process **place = &recording->processes[pid % PIDS_MAX];

	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (!*place)
			die("memory", -ENOMEM);
		(*place)->pid = pid;
	}
	return *place;
}

static void forget(struct recording *recording, uint32_t pid)
{
	struct recorded_process **place = &recording->processes[pid % PIDS_MAX];

	if (!*place)
		return;
	recording->user->forget(recording->user->arg, *place);
	free((*place)->maps);
	free(*place);
	*place = NULL;
}

static void insert_at(struct recorded_process *process, size_t at, const struct recorded_map *map)
{
	process->maps = grown(process->maps, &process->capacity, process->nr_maps, sizeof(*map));
	memmove(&process->maps[at + 1], &process->maps[at], (process->nr_maps++ - at) * sizeof(*map));
	process->maps[at] = *map;
}

/* Takes a range out of the mappings; one around it becomes two. */
static void unmap(struct recorded_process *process, uint64_t start, uint64_t end)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < process->nr_maps; i++) {
		struct recorded_map map = process->maps[i], rest = map;

		if (map.start < start && map.end > end) {
			process->maps[i].end = start;
			rest.start = end;
			rest.offset += end - map.start;
			insert_at(process, i + 1, &rest);
			return;
		}
		if (map.start >= start && map.start < end) {
			map.offset += op_min_u64(end, map.end) - map.start;
			map.start = op_min_u64(end, map.end);
		} else if (map.end > start && map.end <= end) {
			map.end = start;
		}
		if (map.start < map.end)
			process->maps[nr_kept++] = map;
	}
	process->nr_maps = nr_kept;
}

static void take_mmap(struct recording *recording, const struct perf_event_header *header, const uint8_t *body)
{
	size_t name = header->type == PERF_RECORD_MMAP2 ? MMAP2_NAME : MMAP_NAME;
	struct recorded_process *process;
	struct recorded_map map;

	if (header->misc & PERF_RECORD_MISC_MMAP_DATA || (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER)
		return;
	process = process_of(recording, u32_at(body, 0));
	map = (struct recorded_map){
		.start = u64_at(body, 8),
		.end = u64_at(body, 8) + u64_at(body, 16),
		.offset = u64_at(body, 24),
		.image = recording->user->open(recording->user->arg, (const char *)body + name),
	};
	unmap(process, map.start, map.end);
	insert_at(process, op_nr_leading(process->maps, process->nr_maps, row, row->start < map.start), &map);
	process->generation++;
}

static void take_fork(struct recording *recording, const uint8_t *body)
{
	uint32_t pid = u32_at(body, 0), parent_pid = u32_at(body, 4);
	const struct recorded_process *parent;
	struct recorded_process *child;

	if (pid == parent_pid)
		return;
	forget(recording, pid);
	parent = process_of(recording, parent_pid);
	child = process_of(recording, pid);
	for (size_t i = 0; i < parent->nr_maps; i++)
		insert_at(child, i, &parent->maps[i]);
	child->generation++;
}

static void take_comm(struct recording *recording, const struct perf_event_header *header, const uint8_t *body)
{
	struct recorded_process *process = process_of(recording, u32_at(body, 0));

	if (!(header->misc & PERF_RECORD_MISC_COMM_EXEC))
		return;
	process->nr_maps = 0;
	process->generation++;
}

/* ---- samples ---- */

static const struct op_perf_event *event_of(const struct recording *recording, const struct perf_event_header *header)
{
	const uint8_t *body = (const uint8_t *)(header + 1);
	uint32_t event = op_perf_events_of_sample(recording->events, body, header->size - sizeof(*header), false);

	return event == OP_PERF_NO_EVENT ? NULL : &recording->events->events[event];
}

/* Puts the parts behind the words of opd, so that opd's own reader of samples takes them. */
static void take_sample(struct recording *recording, const struct perf_event_header *header, const uint8_t *body)
{
	const struct op_perf_event *event = event_of(recording, header);
	struct perf_event_header *out = (void *)recording->sample;
	struct op_stack_layout layout = { .machine = EM_X86_64 };
	size_t nr_bytes = header->size - sizeof(*header), nr_fixed;
	struct op_stack_record sample;

	if (!event || !(event->attr.sample_type & PERF_SAMPLE_STACK_USER))
		return;
	nr_fixed = (size_t)event->layout.nr_bytes;
	layout.sample_type = OP_SAMPLE_TYPE | (event->attr.sample_type & PARTS);
	layout.registers = event->attr.sample_regs_user;
	if (nr_bytes < nr_fixed || nr_bytes - nr_fixed + OP_SAMPLE_RECORD_BYTES > UINT16_MAX)
		return;
	*out = *header;
	out->size = (uint16_t)(OP_SAMPLE_RECORD_BYTES + nr_bytes - nr_fixed);
	memcpy((uint8_t *)out + OP_SAMPLE_RECORD_BYTES, body + nr_fixed, nr_bytes - nr_fixed);
	if (op_stack_record(out, OP_CPUMODE_USER, &layout, &sample) < 0)
		die_since("a sample", "damaged");
	if (sample.has_registers && sample.nr_stack_bytes)
		recording->user->take(recording->user->arg, process_of(recording, u32_at(body, (size_t)event->layout.tid)),
				      &sample);
}

/* ---- the file ---- */

static uint64_t time_of(const struct recording *recording, const struct perf_event_header *header)
{
	const uint8_t *body = (const uint8_t *)(header + 1);
	const struct op_perf_layout *layout = &recording->events->events[0].layout;
	const struct op_perf_event *event;

	if (header->type != PERF_RECORD_SAMPLE)
		return layout->end_time > 0 ? u64_at((const uint8_t *)header + header->size - layout->end_time, 0) : 0;
	event = event_of(recording, header);
	return event && event->layout.time >= 0 ? u64_at(body, (size_t)event->layout.time) : 0;
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->header < b->header ? -1 : 1;
}

static void list(struct recording *recording, const uint8_t *at, const uint8_t *end)
{
	const struct perf_event_header *header;

	for (; (size_t)(end - at) >= sizeof(*header); at += header->size) {
		header = (const void *)at;
		if (header->size < sizeof(*header) || header->size > (size_t)(end - at))
			die_since("a record", "damaged");
		if (header->type > PERF_RECORD_MMAP2)
			continue;
		recording->entries =
			grown(recording->entries, &recording->capacity, recording->nr_entries, sizeof(*recording->entries));
		recording->entries[recording->nr_entries++] =
			(struct entry){ .time_ns = time_of(recording, header), .header = header };
	}
	qsort(recording->entries, recording->nr_entries, sizeof(*recording->entries), compare);
}

static void play(struct recording *recording)
{
	for (size_t i = 0; i < recording->nr_entries; i++) {
		const struct perf_event_header *header = recording->entries[i].header;
		const uint8_t *body = (const uint8_t *)(header + 1);

		if (header->type == PERF_RECORD_SAMPLE)
			take_sample(recording, header, body);
		else if (header->type == PERF_RECORD_MMAP || header->type == PERF_RECORD_MMAP2)
			take_mmap(recording, header, body);
		else if (header->type == PERF_RECORD_FORK)
			take_fork(recording, body);
		else if (header->type == PERF_RECORD_COMM)
			take_comm(recording, header, body);
		else if (header->type == PERF_RECORD_EXIT && u32_at(body, 0) == u32_at(body, 8))
			forget(recording, u32_at(body, 0));
	}
}

void recording_play(const char *path, const struct recording_user *user)
{
	static struct recording recording;
	struct op_perf_data *data;
	const char *why = NULL;
	uint8_t *bytes;
	uint64_t start;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path, -errno);
	err = op_perf_data_open(fd, NULL, &data, &why);
	if (err)
		die_since(path, why ? why : strerror(-err));
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED || op_perf_data_is_swapped(data) || op_perf_data_is_pipe(data))
		die_since(path, "not a plain file of this machine");
	recording = (struct recording){ .user = user, .events = op_perf_data_events(data) };
	recording.processes = calloc(PIDS_MAX, sizeof(struct recorded_process *));
	if (!recording.processes || !recording.events->nr_events)
		die_since(path, "no memory, or no events");
	start = u64_at(bytes, DATA_OFFSET);
	if (start > (uint64_t)st.st_size || u64_at(bytes, DATA_OFFSET + 8) > (uint64_t)st.st_size - start)
		die_since(path, "damaged");
	list(&recording, bytes + start, bytes + start + u64_at(bytes, DATA_OFFSET + 8));
	play(&recording);
	for (uint32_t pid = 0; pid < PIDS_MAX; pid++)
		forget(&recording, pid);
	free(recording.processes);
	free(recording.entries);
	munmap(bytes, (size_t)st.st_size);
	op_perf_data_close(data);
	close(fd);
}
