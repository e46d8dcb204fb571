/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/waits/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/log.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "libop/perf/stack_record.h"
#include "pipeline/drive/stack_records.h"
#include "pipeline/files/lookers.h"
#include "pipeline/stacks/state.h"
#include "pipeline/waits/open.h"

#define QUANTUM_MIN_NS    (20ull * OP_NS_PER_MS)
#define QUANTUM_FIRST_NS  (200ull * OP_NS_PER_MS) /* until the load is known */
#define RUNNABLE_FACTOR   4u /* of the quantum: a CPU that is full makes many short waits */
#define STEER_NS          (250ull * OP_NS_PER_MS)
#define TURN_NS           (500ull * OP_NS_PER_MS) /* twice the usual one */
#define RING_SHARE        4u /* of a ring, which others use as well */
#define RECORD_MORE_BYTES 1024u /* of a record, beside the copy of the stack */
#define TELL_SHARE        1000u /* readings of open waits take one part of so many of a CPU */
#define TELL_LONGEST_NS   (60ull * OP_NS_PER_S)
#define COPIES_OF_TURN    64u
#define COPIES_OF_DUMP    1024u
#define FRAMES_OF_KICK    24u /* of the interrupt and of our program, at most */

/* The scheduler's own functions, which every wait ends in. */
enum { SCHEDULE_INNER, SCHEDULE, NR_FUNCTIONS };
static const char *const function_names[NR_FUNCTIONS] = { "__schedule", "schedule" };

#define NR_NAMES 1024u /* of wakers in a session: names are made by anybody */

struct opd_waits {
	struct opd_pipeline *pipeline;
	struct opd_wait_program *program;
	struct opd_open_waits *open;
	uint32_t event; /* its index in the capture */
	uint64_t *directed; /* for each CPU of the capture, the id of its event */
	struct { uint64_t start, end; } functions[NR_FUNCTIONS];
	uint64_t rest_ns[OP_NR_WAIT_STATES]; /* less than a microsecond, for the next record */
	uint32_t last_epoch;
	uint64_t budget, record_bytes, quantum_ns;
	uint64_t nr_asked, steer_ns; /* records until then */
	uint64_t lost_us;
	uint64_t tell_ns;
	uint64_t nr_records;
	uint64_t told_ns[OP_NR_WAIT_STATES]; /* of waits that the iterator told */
	uint64_t names[2 * NR_NAMES]; /* hashes of the names of wakers in the session; 0: free */
	size_t nr_names;
};

/* ---- the kernel's part of a stack ---- */

static void note_symbol(struct opd_waits *waits, const struct op_kallsyms_line *line, uint64_t ends[NR_FUNCTIONS])
{
	for (size_t i = 0; i < NR_FUNCTIONS; i++) {
		if (!strcmp(line->name, function_names[i])) {
			waits->functions[i].start = line->address;
			ends[i] = UINT64_MAX;
		} else if (waits->functions[i].start && line->address > waits->functions[i].start) {
			ends[i] = op_min_u64(ends[i], line->address);
		}
	}
}

/*
 * The end of a function is the start of the next one. The list is not sorted by address over all
 * of it, but within the kernel's text.
 */
static void read_functions(struct opd_waits *waits)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	uint64_t ends[NR_FUNCTIONS] = { 0 };
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		struct op_kallsyms_line parsed;

		if (op_kallsyms_parse(line, &parsed))
			note_symbol(waits, &parsed, ends);
	}
	if (file)
		fclose(file);
	for (size_t i = 0; i < NR_FUNCTIONS; i++)
		waits->functions[i].end = ends[i];
}

static bool is_in(const struct opd_waits *waits, size_t function, uint64_t address)
{
	return address > waits->functions[function].start && address <= waits->functions[function].end;
}

/* How many words of the chain come before the function that waits. */
static size_t words_of_scheduler(const struct opd_waits *waits, const struct op_chain *chain)
{
	size_t nr = op_min_u64(chain->nr_words, FRAMES_OF_KICK), skipped = 0;

	for (size_t i = 0; i < nr; i++)
		if (is_in(waits, SCHEDULE_INNER, chain->words[i]))
			skipped = i + 1;
	if (skipped && skipped < chain->nr_words && is_in(waits, SCHEDULE, chain->words[skipped]))
		skipped++;
	return skipped < chain->nr_words ? skipped : 0;
}

/* For what is of no CPU. */
static struct opd_event *any_account(const struct opd_waits *waits)
{
	return &waits->pipeline->capture.cpus[0].events[waits->event];
}

/* ---- records ---- */

static bool is_of(const struct op_event *event)
{
	return event->role == OP_EVENT_WAITS;
}

static void book(struct opd_waits *waits, struct opd_stack_sample *taken, uint32_t state, uint64_t ns)
{
	uint64_t *rest_ns;

	if (!ns || !state || state >= OP_NR_WAIT_STATES)
		return;
	rest_ns = &waits->rest_ns[state];
	*rest_ns += ns;
	taken->weight = *rest_ns / 1000u;
	taken->state = state;
	if (!taken->weight)
		return;
	*rest_ns %= 1000u;
	waits->nr_records += !taken->goes_on;
	opd_stack_records_take(waits->pipeline, taken);
}

/* Without the scheduler, the sample is where the wait was called. */
static void skip_scheduler(const struct opd_waits *waits, const struct op_stack_record *record, struct opd_stack_sample *taken)
{
	size_t skipped = record->has_chain ? words_of_scheduler(waits, &record->chain) : 0;

	if (!skipped)
		return;
	taken->nr_skipped = (uint32_t)skipped;
	taken->sample.ip = record->chain.words[skipped] - 1;
	taken->sample.mode = OP_CPUMODE_KERNEL;
}

/* False: it is no record of the program. */
static bool begin_sample(const struct opd_waits *waits, struct opd_stack_sample *taken, struct op_stack_record *ret_record)
{
	const struct opd_capture *capture = &waits->pipeline->capture;
	const struct opd_stacks *stacks = waits->pipeline->stacks;
	const struct op_stack_layout layout = {
		.sample_type = opd_capture_sample_type(capture, &capture->events[waits->event]),
		.registers = stacks->registers,
		.machine = stacks->machine,
	};

	if (op_stack_record(taken->header, taken->sample.mode, &layout, ret_record) < 0)
		return false;
	skip_scheduler(waits, ret_record, taken);
	return true;
}

/* Whether a session has room for the name of a waker, or has it already. */
static bool has_room_for_name(struct opd_waits *waits, const char *name)
{
	uint64_t hash = op_hash_bytes(1, name, strlen(name)) | 1u;
	size_t slot = (size_t)(hash >> 1) % op_array_size(waits->names);

	while (waits->names[slot] && waits->names[slot] != hash)
		slot = (slot + 1) % op_array_size(waits->names);
	if (waits->names[slot])
		return true;
	if (waits->nr_names == NR_NAMES)
		return false;
	waits->names[slot] = hash;
	waits->nr_names++;
	return true;
}

static struct opd_waker waker_of(struct opd_waits *waits, const struct opd_wait_record *wait)
{
	struct opd_waker waker = {
		.is_known = wait->waker, .is_interrupt = wait->by_interrupt, .pid = wait->waker_pid, .tid = wait->waker
	};

	if (!waker.is_known)
		return waker;
	memcpy(waker.name, wait->waker_name, sizeof(waker.name) - 1);
	if (!has_room_for_name(waits, waker.name))
		snprintf(waker.name, sizeof(waker.name), "(other)");
	return waker;
}

static void take(void *host, const struct opd_record *record)
{
	struct opd_waits *waits = host;
	struct opd_stack_sample taken = {
		.header = record->header,
		.sample = *record->sample,
		.account = record->account,
		.event = record->event,
	};
	struct op_stack_record stack;
	struct opd_wait_record wait;

	opd_stack_records_join(waits->pipeline, &taken);
	if (!begin_sample(waits, &taken, &stack) || stack.nr_raw_bytes < sizeof(wait)) {
		record->account->received++;
		record->account->lost[OP_LOSS_undecodable]++;
		return;
	}
	memcpy(&wait, stack.raw, sizeof(wait));
	if (wait.is_long) {
		uint64_t told_ns = opd_open_waits_end(waits->open, taken.sample.tid, wait.begin_ns, &taken.goes_on);

		waits->told_ns[wait.state[0] % OP_NR_WAIT_STATES] += told_ns;
		wait.weight_ns[0] += told_ns;
	}
	taken.waker = waker_of(waits, &wait);
	for (size_t i = 0; i < OPD_WAIT_PARTS; i++) {
		book(waits, &taken, wait.state[i], wait.weight_ns[i]);
		taken.goes_on = false;
		taken.waker = (struct opd_waker){ 0 }; /* then it waits for a CPU */
	}
}

/* ---- threads that wait now ---- */

static void book_open(void *host, const struct opd_wait_open *open, const struct perf_event_header *header, uint64_t ns,
		      bool goes_on)
{
	struct opd_waits *waits = host;
	struct opd_stack_sample taken = {
		.header = header, .account = any_account(waits), .event = waits->event, .goes_on = goes_on
	};
	struct op_stack_record stack;

	waits->told_ns[open->state % OP_NR_WAIT_STATES] += ns;
	if (!op_record_sample(header, &taken.sample) && begin_sample(waits, &taken, &stack))
		book(waits, &taken, open->state, ns);
}

/* The next reading comes later where one takes long: on a host with very many threads. */
static void read_open(struct opd_waits *waits, uint64_t open_ns, size_t max_copies)
{
	static struct op_rate rate;
	uint64_t begin_ns = op_now_ns(), now_ns;
	int fd, err;

	opd_wait_program_control(waits->program)->open_ns = open_ns;
	fd = opd_wait_program_read(waits->program);
	err = fd < 0 ? fd : opd_open_waits_read(waits->open, fd, max_copies);
	if (fd >= 0)
		close(fd);
	if (err)
		op_log_failure(&rate, op_now_ns(), "reading the threads that wait", err);
	now_ns = op_now_ns();
	waits->tell_ns = now_ns + op_min_u64(op_max_u64(OPD_WAITS_TELL_NS, TELL_SHARE * (now_ns - begin_ns)), TELL_LONGEST_NS);
}

/* Time that no record has. */
static void book_lost(struct opd_waits *waits)
{
	const struct opd_wait_cpu *cpu;
	uint64_t ns = 0;

	for (uint32_t i = 0; (cpu = opd_wait_program_cpu(waits->program, i)); i++)
		ns += cpu->lost_ns;
	any_account(waits)->lost_samples += ns / 1000u - waits->lost_us;
	waits->lost_us = ns / 1000u;
}

void opd_waits_tell(struct opd_waits *waits)
{
	if (!opd_wait_program_control(waits->program)->epoch)
		return;
	/* the second reading proves the copies of the first */
	read_open(waits, 0, COPIES_OF_DUMP);
	read_open(waits, 0, 0);
	book_lost(waits);
	opd_count_flush(&waits->pipeline->count);
}

/* ---- turns ---- */

static void set_quantum(struct opd_waits *waits, uint64_t quantum_ns)
{
	struct opd_wait_control *control = opd_wait_program_control(waits->program);

	waits->quantum_ns = op_min_u64(op_max_u64(quantum_ns, QUANTUM_MIN_NS), OPD_WAIT_QUANTUM_MAX);
	for (uint32_t i = 0; i < OPD_WAIT_STATES; i++)
		control->quantum_ns[i] = i == OPD_WAIT_RUNNABLE || i == OPD_WAIT_PREEMPTED ?
						 op_min_u64(waits->quantum_ns * RUNNABLE_FACTOR, OPD_WAIT_QUANTUM_MAX) :
						 waits->quantum_ns;
}

/* Records that the quantum has asked for, whether there was room for them or not. */
static uint64_t nr_asked(const struct opd_waits *waits)
{
	const struct opd_wait_cpu *cpu;
	uint64_t nr = 0;

	for (uint32_t i = 0; (cpu = opd_wait_program_cpu(waits->program, i)); i++)
		nr += cpu->asked;
	return nr;
}

/* Twice the records need twice the quantum. It falls slowly: a burst comes again. */
static void steer(struct opd_waits *waits, uint64_t now_ns)
{
	uint64_t ns = now_ns - waits->steer_ns, nr, rate, wanted_ns;

	if (ns < STEER_NS)
		return;
	nr = nr_asked(waits);
	rate = (nr - waits->nr_asked) * waits->record_bytes * OP_NS_PER_MS / (ns / 1000);
	wanted_ns = waits->quantum_ns * (rate + 1) / (waits->budget + 1);
	if (wanted_ns > waits->quantum_ns)
		set_quantum(waits, op_min_u64(wanted_ns, 4 * waits->quantum_ns));
	else if (rate < waits->budget / 2 && waits->quantum_ns > QUANTUM_MIN_NS)
		set_quantum(waits, waits->quantum_ns * 3 / 4);
	waits->nr_asked = nr;
	waits->steer_ns = now_ns;
}

/* CPUs come and go. */
static void direct(struct opd_waits *waits)
{
	const struct opd_capture *capture = &waits->pipeline->capture;
	static struct op_rate rate;

	for (size_t c = 0; c < capture->nr_cpus; c++) {
		const struct opd_cpu *cpu = &capture->cpus[c];
		const struct opd_event *event = &cpu->events[waits->event];
		int err;

		if (!cpu->online || event->fd < 0 || waits->directed[c] == event->id)
			continue;
		err = opd_wait_program_direct(waits->program, cpu->cpu, event->fd);
		if (err)
			op_log_failure(&rate, op_now_ns(), "directing waits to the ring of a CPU", err);
		else
			waits->directed[c] = event->id;
	}
}

uint64_t opd_waits_sum(const struct opd_waits *waits, struct op_wait_ledger *ret_sums)
{
	struct op_wait_ledger sums = { .records = waits->nr_records };
	uint64_t total_ns[OP_NR_WAIT_STATES];
	const struct opd_wait_cpu *cpu;

	memcpy(total_ns, waits->told_ns, sizeof(total_ns));
	for (uint32_t i = 0; (cpu = opd_wait_program_cpu(waits->program, i)); i++) {
		sums.switches += cpu->switches;
		sums.idle += cpu->idle;
		sums.kernel += cpu->kernel;
		sums.emitted += cpu->emitted;
		sums.skipped += cpu->skipped;
		sums.lost += cpu->lost;
		for (uint32_t s = 0; s < OP_NR_WAIT_STATES; s++)
			total_ns[s] += cpu->total_ns[s];
	}
	for (uint32_t s = 0; s < OP_NR_WAIT_STATES; s++)
		sums.total_us[s] = total_ns[s] / 1000u;
	*ret_sums = sums;
	return waits->quantum_ns;
}

void opd_waits_begin(struct opd_waits *waits)
{
	direct(waits);
	opd_wait_program_control(waits->program)->epoch = ++waits->last_epoch;
	read_open(waits, UINT64_MAX / 2, 0); /* finds the threads that are there */
}

static void turn(void *host)
{
	struct op_wait_ledger sums;
	struct opd_waits *waits = host;
	uint64_t now_ns = op_now_ns();

	direct(waits);
	opd_wait_program_take_kicks(waits->program);
	opd_wait_program_control(waits->program)->round++;
	steer(waits, now_ns);
	book_lost(waits);
	opd_waits_sum(waits, &sums);
	opd_ledger_set_waits(&waits->pipeline->ledger, &sums);
	if (opd_wait_program_control(waits->program)->epoch && now_ns >= waits->tell_ns)
		read_open(waits, OP_NS_PER_S, COPIES_OF_TURN);
}

static void finish(void *host, uint64_t wait_ns OP_UNUSED)
{
	struct opd_waits *waits = host;

	opd_waits_tell(waits);
	opd_open_waits_forget(waits->open);
	if (!waits->pipeline->capture.enabled)
		opd_wait_program_control(waits->program)->epoch = 0;
}

/* Before a reset opd_sources_finish has booked all: then there is nothing. */
static void begin_session(void *host, bool is_reset OP_UNUSED)
{
	struct opd_waits *waits = host;

	opd_open_waits_begin_session(waits->open);
	memset(waits->names, 0, sizeof(waits->names));
	waits->nr_names = 0;
}

/* ---- opening ---- */

static uint32_t find_event(const struct opd_capture *capture)
{
	uint32_t index = 0;

	while (index + 1 < capture->nr_opened && !is_of(&capture->events[index]))
		index++;
	return index;
}

/* As many records in a turn as the budget has for one CPU, and no more than a quarter of a ring. */
static void set_grant(struct opd_waits *waits)
{
	const struct opd_capture *capture = &waits->pipeline->capture;
	uint64_t ring_bytes = capture->stack_ring_bytes ? capture->stack_ring_bytes : capture->ring_bytes;
	uint64_t nr_bytes = opd_plan_wait_bytes(waits->budget, capture->nr_online) * TURN_NS / OP_NS_PER_S;

	waits->record_bytes = capture->events[waits->event].stack_bytes + RECORD_MORE_BYTES;
	nr_bytes = op_min_u64(nr_bytes, ring_bytes / RING_SHARE);
	opd_wait_program_control(waits->program)->grant = (uint32_t)op_max_u64(nr_bytes / waits->record_bytes, 1);
}

static int open_waits(struct opd_waits *waits)
{
	const struct opd_pipeline *pipeline = waits->pipeline;
	const struct op_event *event = &pipeline->capture.events[waits->event];
	const struct opd_open_layout layout = {
		.sample_type = opd_capture_sample_type(&pipeline->capture, event),
		.registers = pipeline->stacks->registers,
		.machine = pipeline->stacks->machine,
		.stack_bytes = event->stack_bytes,
	};

	return opd_open_waits_new(pipeline->resolver.processes.mount_views.lookers, &layout, book_open, waits, &waits->open);
}

int opd_waits_new(struct opd_pipeline *pipeline, struct opd_wait_program *program, uint64_t budget, struct opd_waits **ret_waits)
{
	struct opd_waits *waits = calloc(1, sizeof(*waits));
	const struct opd_record_source source = {
		.name = "waits",
		.is_of = is_of,
		.take = take,
		.turn = turn,
		.finish = finish,
		.begin_session = begin_session,
		.host = waits,
	};
	int err = -ENOMEM;

	if (!waits)
		return err;
	*waits = (struct opd_waits){ .pipeline = pipeline, .program = program, .event = find_event(&pipeline->capture),
				     .budget = budget, .steer_ns = op_now_ns() };
	waits->directed = calloc(pipeline->capture.nr_cpus, sizeof(*waits->directed));
	if (waits->directed)
		err = open_waits(waits);
	if (err) {
		opd_waits_free(waits);
		return err;
	}
	read_functions(waits);
	set_quantum(waits, QUANTUM_FIRST_NS);
	set_grant(waits);
	opd_record_source_add(&pipeline->sources, &source);
	*ret_waits = waits;
	return 0;
}

void opd_waits_free(struct opd_waits *waits)
{
	if (!waits)
		return;
	opd_open_waits_free(waits->open);
	free(waits->directed);
	free(waits);
}
