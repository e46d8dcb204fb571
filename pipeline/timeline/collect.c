/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/timeline/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/sys.h"
#include "libop/session/directory.h"
#include "libop/unwind/row_table.h"
#include "pipeline/count/count.h"
#include "pipeline/ledger/event_sums.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/runtimes/names.h"
#include "pipeline/stacks/stack.h"
#include "pipeline/stacks/tables.h"

#define PLACES 1024u /* power of two */

/* The node of an image in a span: for samples like these only their code is looked up below it. */
struct opd_timeline_place {
	struct opd_file_key key;
	uint32_t node, span;
	uint16_t cgroup_slot;
	bool is_kernel;
};

/* a smaller difference of two clocks is one that is slewed */
#define STEP_NS ((uint64_t)OP_NS_PER_S)

static struct op_timeline_clocks read_clocks(void)
{
	return (struct op_timeline_clocks){ .wall_ns = op_sys_wall_ns(), .boot_ns = op_sys_boot_ns(), .mono_ns = op_now_ns() };
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0 ? b - a : a - b;
}

/* ---- what is added ---- */

/* The span of a time; it gets `amount` of an event. */
static struct op_minute *span_of(struct opd_timeline *timeline, uint64_t time_ns, size_t event, uint64_t amount)
{
	if (time_ns >= timeline->end_mono_ns) {
		timeline->events[event].next += amount;
		return &timeline->next;
	}
	timeline->events[event].present += amount;
	return &timeline->present;
}

/* A caller's position is behind its call, which may be the end of its function. */
static struct op_minute_step code_step(const struct opd_timeline *timeline, uint64_t image, uint64_t position, bool is_kernel,
				       bool is_caller)
{
	const struct op_row_table *table = timeline->tables && !is_kernel ? opd_tables_peek(timeline->tables, image) : NULL;
	const struct op_row_function *function;

	position -= is_caller && position;
	function = table ? op_row_table_function(table, position) : NULL;
	if (function)
		return (struct op_minute_step){ OP_MINUTE_FUNCTION, function->start, image };
	return (struct op_minute_step){ is_kernel ? OP_MINUTE_KERNEL_PLACE : OP_MINUTE_PLACE, position, image };
}

static struct op_minute_step thread_step(int64_t tgid, int64_t tid, int64_t cpu)
{
	uint64_t process = tgid < 0 ? 0 : (uint64_t)tgid, thread = tid < 0 ? 0 : (uint64_t)tid;

	return (struct op_minute_step){ OP_MINUTE_THREAD, process << 32 | (thread & UINT32_MAX), (uint64_t)(cpu + 1) };
}

/* The way to the image of a sample. Returns the number of steps. */
static size_t make_steps(const struct opd_timeline *timeline, struct op_minute *minute, const struct opd_keyed_sample *sample,
			 struct op_minute_step *steps)
{
	const struct opd_file_key *key = &sample->key;
	uint32_t cgroup = 0;
	size_t nr = 0;

	steps[nr++] = (struct op_minute_step){ OP_MINUTE_SAMPLES, key->event, 0 };
	steps[nr++] = (struct op_minute_step){ OP_MINUTE_APP, 0, key->app_cookie };
	if (sample->cgroup_slot != OPD_CGROUP_NONE && timeline->count->cgroups)
		cgroup = op_minute_text(minute, opd_cgroups_path(timeline->count->cgroups, sample->cgroup_slot));
	if (cgroup)
		steps[nr++] = (struct op_minute_step){ OP_MINUTE_CGROUP, cgroup, 0 };
	if ((key->tgid & key->tid & key->cpu) != OP_CLASS_ALL)
		steps[nr++] = thread_step(key->tgid, key->tid, key->cpu);
	steps[nr++] = (struct op_minute_step){ OP_MINUTE_IMAGE, 0, key->image_cookie };
	return nr;
}

/* The place of the image of a sample in a span. NULL: there was no room; the sample is counted. */
static const struct opd_timeline_place *find_place(struct opd_timeline *timeline, struct op_minute *minute,
						   const struct opd_keyed_sample *sample)
{
	const struct opd_file_key *key = &sample->key;
	uint64_t class = ((uint64_t)(uint32_t)key->tid << 40) + key->event;
	uint64_t hash = op_hash_u64(key->image_cookie + (key->app_cookie << 24) + class);
	uint32_t span = minute == &timeline->next ? timeline->next_number : timeline->present_number, node;
	struct opd_timeline_place *place = &timeline->places[hash & (PLACES - 1)];
	struct op_minute_step steps[5];
	bool is_whole;

	if (op_likely(place->span == span && place->cgroup_slot == sample->cgroup_slot && !memcmp(&place->key, key, sizeof(*key))))
		return place;
	node = op_minute_way(minute, steps, make_steps(timeline, minute, sample, steps), &is_whole);
	if (!is_whole) {
		minute->nodes[node].rest += sample->amount;
		return NULL;
	}
	*place = (struct opd_timeline_place){
		.key = *key,
		.node = node,
		.span = span,
		.cgroup_slot = sample->cgroup_slot,
		.is_kernel = op_dcookie_row(timeline->count->table, key->image_cookie)->id.is_kernel,
	};
	return place;
}

static void add_sample(struct opd_timeline *timeline, const struct opd_keyed_sample *sample)
{
	struct op_minute *minute = span_of(timeline, sample->time_ns, sample->key.event, sample->amount);
	const struct opd_timeline_place *place = find_place(timeline, minute, sample);
	struct op_minute_step step;

	if (op_unlikely(!place))
		return;
	step = code_step(timeline, sample->key.image_cookie, sample->offset, place->is_kernel, false);
	op_minute_add_below(minute, place->node, &step, sample->amount);
}

void opd_timeline_add_sample(const struct opd_timeline *timeline, struct op_minute *minute, const struct opd_keyed_sample *sample)
{
	bool is_kernel = op_dcookie_row(timeline->count->table, sample->key.image_cookie)->id.is_kernel;
	struct op_minute_step steps[6];
	size_t nr = make_steps(timeline, minute, sample, steps);

	steps[nr++] = code_step(timeline, sample->key.image_cookie, sample->offset, is_kernel, false);
	(void)op_minute_add(minute, steps, nr, sample->amount);
}

/* The image as the file of stacks names it; images beyond the limit of the session share a name. */
static uint64_t filed_image(const struct op_dcookie_table *table, uint64_t image)
{
	return image == OP_DCOOKIE_NONE || op_dcookie_row(table, image)->name ? image : op_dcookie_overflow(table);
}

static struct op_minute_step stack_thread_step(const struct opd_count *count, const struct op_sample *sample)
{
	int64_t tgid = -1, tid = -1, cpu = -1;

	if (count->separate_thread) {
		tgid = sample->pid;
		tid = sample->tid;
	}
	if (count->separate_cpu)
		cpu = sample->cpu;
	return thread_step(tgid, tid, cpu);
}

struct op_minute_step *opd_timeline_new_steps(void)
{
	return calloc(OPD_STACK_ALL_MAX + OP_MINUTE_NR_KINDS, sizeof(struct op_minute_step));
}

static const char *stack_name(const struct opd_stack *stack, const struct opd_resolved *frame)
{
	return opd_runtime_names_get(stack->names, frame->runtime_name);
}

void opd_timeline_add_stack(const struct opd_timeline *timeline, struct op_minute *minute, const struct opd_stack *stack)
{
	const struct op_dcookie_table *table = timeline->count->table;
	struct op_minute_step *step = timeline->steps;
	uint32_t comm = op_minute_text(minute, stack->comm), cgroup = op_minute_text(minute, stack->cgroup);

	*step++ = (struct op_minute_step){ OP_MINUTE_STACKS, stack->event, 0 };
	*step++ = (struct op_minute_step){ OP_MINUTE_APP, 0, filed_image(table, stack->app_cookie) };
	if (comm)
		*step++ = (struct op_minute_step){ OP_MINUTE_COMM, comm, 0 };
	if (cgroup)
		*step++ = (struct op_minute_step){ OP_MINUTE_CGROUP, cgroup, 0 };
	if (timeline->count->separate_thread || timeline->count->separate_cpu)
		*step++ = stack_thread_step(timeline->count, stack->sample);
	if (stack->end != OP_STACK_END_complete)
		*step++ = (struct op_minute_step){ OP_MINUTE_END, stack->end, 0 };
	if (stack->state)
		*step++ = (struct op_minute_step){ OP_MINUTE_STATE, stack->state, 0 };
	for (size_t i = stack->nr_frames; i-- > 0;) {
		const struct opd_resolved *frame = &stack->frames[i];
		uint64_t image = filed_image(table, frame->location.cookie);
		bool is_filed = image == frame->location.cookie;
		uint32_t name = frame->runtime_name ? op_minute_text(minute, stack_name(stack, frame)) : 0;

		if (name)
			*step++ = (struct op_minute_step){ OP_MINUTE_RUNTIME, name, 0 };
		if (frame->runtime_name)
			continue;
		*step++ = code_step(timeline, image, is_filed ? frame->location.offset : 0, frame->is_kernel, i);
	}
	(void)op_minute_add_waits(minute, timeline->steps, (size_t)(step - timeline->steps), stack->weight,
				  stack->state && !stack->goes_on);
}

/* ---- the ledger ---- */

static bool is_in_ledger(const struct opd_timeline *timeline, size_t event)
{
	return timeline->count->events[event].role != OP_EVENT_MEMORY;
}

/* What the session has stored of an event so far. */
static uint64_t session_stored(const struct opd_timeline *timeline, size_t event)
{
	const struct opd_ledger *ledger = timeline->ledger;
	const struct op_ledger_event *base;
	struct op_ledger_event sum;

	opd_sum_event(ledger->capture, event, &sum);
	base = op_session_ledger_find(&ledger->base, &sum);
	return sum.stored - ledger->before[event].stored + (base ? base->stored : 0);
}

static int add_row(struct op_minute *minute, uint32_t event, const char *name, uint64_t now, uint64_t before)
{
	return now == before ? 0 : op_minute_add_row(minute, event, name, (int64_t)(now - before));
}

/* What was received is what became of it, so that each span adds up as a ledger does. */
static int add_numbers(struct op_minute *minute, uint32_t number, const struct opd_timeline_event *event,
		       const struct op_ledger_event *now)
{
	const struct op_ledger_event *before = &event->before;
	uint64_t others = now->filtered + op_ledger_lost(now) - before->filtered - op_ledger_lost(before);
	const struct {
		const char *name;
		uint64_t now, before;
	} rows[] = {
		{ "stored", event->present, 0 },
		{ "received", event->present + others, 0 },
		{ "filtered", now->filtered, before->filtered },
		{ "unattributed", now->unattributed, before->unattributed },
		{ "lost_kernel", now->lost_kernel, before->lost_kernel },
	};
	char name[64];
	int err = op_minute_add_row(minute, number, "before", (int64_t)event->stored_before);

	for (size_t i = 0; i < op_array_size(rows) && !err; i++)
		err = add_row(minute, number, rows[i].name, rows[i].now, rows[i].before);
	for (size_t i = 0; i < OP_NR_LOSS && !err; i++) {
		snprintf(name, sizeof(name), "lost_%s", op_loss_name((enum op_loss)i));
		err = add_row(minute, number, name, now->lost[i], before->lost[i]);
	}
	for (size_t i = 0; i < OP_NR_STACK_ENDS && !err; i++) {
		snprintf(name, sizeof(name), "end_%s", op_stack_end_name((enum op_stack_end)i));
		err = add_row(minute, number, name, now->ends[i], before->ends[i]);
	}
	return err;
}

/* What became of switches. */
static int add_switches(struct opd_timeline *timeline, uint32_t event)
{
	struct op_wait_ledger now = timeline->ledger->waits;
	char name[OP_WAIT_NUMBER_BYTES];
	const uint64_t *number;
	int err = 0;

	for (size_t i = 0; !err && (number = op_wait_ledger_number(&now, i, name)); i++)
		err = add_row(&timeline->present, event, name, *number, *op_wait_ledger_number(&timeline->waits_before, i, name));
	return err;
}

/*
 * Adds the ledger to the present span, and begins to count for the next one: also after an error,
 * or the next span would count from where the lost one began. What was stored is what the span has:
 * samples that belong to the next one are in the ledger already.
 */
static int add_ledger(struct opd_timeline *timeline)
{
	int err = 0;

	for (size_t i = 0; i < timeline->count->nr_events; i++) {
		struct opd_timeline_event *event = &timeline->events[i];
		struct op_ledger_event now;

		if (!is_in_ledger(timeline, i))
			continue;
		opd_sum_event(timeline->ledger->capture, i, &now);
		if (!err)
			err = add_numbers(&timeline->present, (uint32_t)i, event, &now);
		if (!err && op_event_is_time(now.role))
			err = add_switches(timeline, (uint32_t)i);
		event->before = now;
		event->stored_before += event->present;
		event->present = event->next;
		event->next = 0;
	}
	timeline->waits_before = timeline->ledger->waits;
	return err;
}

/* ---- the life of a span ---- */

int opd_timeline_add_events(const struct opd_timeline *timeline, struct op_minute *minute)
{
	char name[OP_EVENT_NAME_BYTES + 64];
	uint32_t number;

	for (size_t i = 0; i < timeline->count->nr_events; i++) {
		const struct op_event *event = &timeline->count->events[i];
		int err;

		snprintf(name, sizeof(name), "%s:%llu:0x%x", event->name, (unsigned long long)event->count, event->unit_mask);
		err = op_minute_event(minute, name, op_event_is_time(event->role) ? OP_UNIT_MICROSECONDS : OP_UNIT_SAMPLES,
				      (uint32_t)event->role, &number);
		if (err || number != i)
			return err ? err : -EEXIST; /* the same event twice */
	}
	return 0;
}

static int make_span(const struct opd_timeline *timeline, struct op_minute *minute)
{
	int err = op_minute_init(minute, timeline->max_nodes);

	if (!err)
		err = opd_timeline_add_events(timeline, minute);
	if (err)
		op_minute_free(minute);
	return err;
}

static void set_end(struct opd_timeline *timeline, const struct op_timeline_clocks *now)
{
	timeline->end_wall_ns = (now->wall_ns / timeline->interval_ns + 1) * timeline->interval_ns;
	timeline->end_mono_ns = now->mono_ns + (timeline->end_wall_ns - now->wall_ns);
}

/* A span that cannot begin is tried again and again, and is one span that is lost. */
static void note_unopened(struct opd_timeline *timeline, uint64_t wall_ns)
{
	uint64_t begin_ns = wall_ns / timeline->interval_ns * timeline->interval_ns;

	if (timeline->unopened_wall_ns != begin_ns)
		timeline->nr_no_memory++;
	timeline->unopened_wall_ns = begin_ns;
	if (timeline->gap == OP_GAP_NONE)
		timeline->gap = OP_GAP_UNWRITTEN;
}

static int make_spans(struct opd_timeline *timeline)
{
	int err;

	if (timeline->dir_fd < 0)
		timeline->dir_fd = op_session_open_current(timeline->count->session_fd);
	err = timeline->dir_fd < 0 ? timeline->dir_fd : make_span(timeline, &timeline->present);
	if (err)
		return err;
	err = make_span(timeline, &timeline->next);
	if (err)
		op_minute_free(&timeline->present);
	return err;
}

/* `samples` are stored already and are the first of the span. */
static void open_span(struct opd_timeline *timeline, const struct opd_keyed_sample *samples, size_t nr)
{
	struct op_timeline_clocks now = read_clocks();
	int err = make_spans(timeline);

	if (err) {
		if (err != -ENOENT) /* there is no session before its first sample */
			note_unopened(timeline, now.wall_ns);
		return;
	}
	timeline->unopened_wall_ns = 0;
	timeline->present.begin = now;
	timeline->present.gap = timeline->gap;
	timeline->gap = OP_GAP_NONE;
	timeline->present_number = ++timeline->nr_spans;
	timeline->next_number = ++timeline->nr_spans;
	set_end(timeline, &now);
	for (size_t i = 0; i < timeline->count->nr_events; i++) {
		struct opd_timeline_event *event = &timeline->events[i];

		event->present = event->next = 0;
		if (!is_in_ledger(timeline, i))
			continue;
		opd_sum_event(timeline->ledger->capture, i, &event->before);
		event->stored_before = session_stored(timeline, i);
	}
	timeline->waits_before = timeline->ledger->waits;
	for (size_t i = 0; i < nr; i++)
		if (samples[i].is_stored)
			timeline->events[samples[i].key.event].stored_before -= samples[i].amount;
	opd_host_state_read(&timeline->host_state, NULL);
	timeline->last_turn = now;
	timeline->is_open = true;
}

static void drop_spans(struct opd_timeline *timeline)
{
	if (timeline->is_open) {
		op_minute_free(&timeline->present);
		op_minute_free(&timeline->next);
	}
	timeline->is_open = false;
}

/* The present span is over: the program takes it. */
static void hand_over(struct opd_timeline *timeline, const struct op_timeline_clocks *end)
{
	int fd = fcntl(timeline->dir_fd, F_DUPFD_CLOEXEC, 0), err;

	timeline->present.end = *end;
	opd_host_state_read(&timeline->host_state, &timeline->present);
	err = add_ledger(timeline);
	if (fd < 0 || err) {
		timeline->nr_no_memory++;
		op_minute_free(&timeline->present);
		if (fd >= 0)
			close(fd);
		timeline->gap = OP_GAP_UNWRITTEN;
		return;
	}
	timeline->host.take(timeline->host.host, &timeline->present, fd);
	timeline->present = (struct op_minute){ 0 };
}

static bool join_next(struct opd_timeline *timeline)
{
	struct op_timeline_clocks end = timeline->present.end;

	if (op_minute_merge(&timeline->present, &timeline->next)) {
		timeline->nr_no_memory++;
		timeline->gap = OP_GAP_UNWRITTEN;
		drop_spans(timeline);
		return false;
	}
	timeline->present.end = end;
	for (size_t i = 0; i < timeline->count->nr_events; i++) {
		timeline->events[i].present += timeline->events[i].next;
		timeline->events[i].next = 0;
	}
	return true;
}

/* Ends all that is collected. The next span begins with the next turn or sample. */
static void cut(struct opd_timeline *timeline, const struct op_timeline_clocks *end, uint32_t gap)
{
	if (!timeline->is_open)
		return;
	timeline->gap = gap;
	if (!join_next(timeline))
		return;
	hand_over(timeline, end);
	op_minute_free(&timeline->next);
	timeline->is_open = false;
}

/* The present span is over, and the next one has begun at its end. */
static void go_on(struct opd_timeline *timeline, const struct op_timeline_clocks *now)
{
	struct op_timeline_clocks end = {
		.wall_ns = timeline->end_wall_ns,
		.mono_ns = timeline->end_mono_ns,
		.boot_ns = now->boot_ns - (now->mono_ns - timeline->end_mono_ns),
	};

	hand_over(timeline, &end);
	timeline->present = timeline->next;
	timeline->present_number = timeline->next_number;
	timeline->next_number = ++timeline->nr_spans;
	timeline->present.begin = end;
	timeline->present.gap = timeline->gap;
	timeline->gap = OP_GAP_NONE;
	set_end(timeline, now);
	if (make_span(timeline, &timeline->next)) {
		timeline->nr_no_memory++;
		timeline->gap = OP_GAP_UNWRITTEN;
		op_minute_free(&timeline->present);
		timeline->is_open = false;
	}
}

/* The disk is slow: the present span takes the samples of the next one. */
static void lengthen(struct opd_timeline *timeline, const struct op_timeline_clocks *now)
{
	if (!join_next(timeline))
		return;
	timeline->present.flags |= OP_TIMELINE_IS_LATE;
	timeline->nr_late++;
	op_minute_clear(&timeline->next);
	timeline->next_number = ++timeline->nr_spans;
	if (opd_timeline_add_events(timeline, &timeline->next)) {
		timeline->nr_no_memory++;
		timeline->gap = OP_GAP_UNWRITTEN;
		drop_spans(timeline);
		return;
	}
	set_end(timeline, now);
}

/* ---- the sink ---- */

/* A slot that was taken back may be another cgroup's now. */
static void check_slots(struct opd_timeline *timeline)
{
	const struct opd_cgroups *cgroups = timeline->count->cgroups;

	if (op_likely(!cgroups || cgroups->nr_taken_back == timeline->nr_taken_back))
		return;
	memset(timeline->places, 0, PLACES * sizeof(*timeline->places));
	timeline->nr_taken_back = cgroups->nr_taken_back;
}

static void take_samples(void *host, struct opd_keyed_sample *samples, size_t nr)
{
	struct opd_timeline *timeline = host;

	if (op_unlikely(!timeline->is_open)) {
		if (!timeline->interval_ns)
			return;
		open_span(timeline, samples, nr);
	}
	check_slots(timeline);
	for (size_t i = 0; i < nr && timeline->is_open; i++)
		if (samples[i].is_stored)
			add_sample(timeline, &samples[i]);
}

static void take_stack(void *host, struct opd_stack *stack)
{
	struct opd_timeline *timeline = host;

	if (op_unlikely(!timeline->is_open) && timeline->interval_ns)
		open_span(timeline, NULL, 0);
	if (timeline->is_open)
		opd_timeline_add_stack(timeline, span_of(timeline, stack->sample->time_ns, stack->event, stack->weight), stack);
}

/* Where a clock stepped or the host slept, the span ends at the turn before. */
static void check_clocks(struct opd_timeline *timeline, const struct op_timeline_clocks *now)
{
	const struct op_timeline_clocks *last = &timeline->last_turn;
	bool has_slept = distance(now->boot_ns - last->boot_ns, now->mono_ns - last->mono_ns) > STEP_NS;
	bool has_stepped = distance(now->wall_ns - last->wall_ns, now->boot_ns - last->boot_ns) > STEP_NS;

	if (has_slept || has_stepped)
		cut(timeline, last, has_slept ? OP_GAP_SUSPENDED : OP_GAP_NONE);
}

static void end_turn(void *host, uint64_t now_ns, uint64_t horizon_ns)
{
	struct opd_timeline *timeline = host;
	struct op_timeline_clocks now = read_clocks();

	(void)now_ns;
	if (timeline->is_open)
		check_clocks(timeline, &now);
	if (!*timeline->is_sampling || !timeline->interval_ns)
		cut(timeline, &now, timeline->interval_ns ? OP_GAP_PAUSED : OP_GAP_DISABLED);
	else if (!timeline->is_open)
		open_span(timeline, NULL, 0);
	else if (horizon_ns >= timeline->end_mono_ns && timeline->host.is_busy(timeline->host.host))
		lengthen(timeline, &now);
	else if (horizon_ns >= timeline->end_mono_ns)
		go_on(timeline, &now);
	timeline->last_turn = now;
	timeline->count->limit.space.taken_bytes += timeline->host.take_growth(timeline->host.host);
}

void opd_timeline_end_session(struct opd_timeline *timeline)
{
	struct op_timeline_clocks now = read_clocks();

	cut(timeline, &now, OP_GAP_FIRST);
	timeline->gap = OP_GAP_FIRST;
	if (timeline->dir_fd >= 0)
		close(timeline->dir_fd);
	timeline->dir_fd = -1;
}

static void close_sink(void *host)
{
	opd_timeline_end_session(host);
}

/* ---- opening and closing ---- */

int opd_timeline_open(struct opd_timeline *timeline)
{
	const struct opd_sink sink = {
		.name = "timeline", .sample = take_samples, .stack = take_stack, .end_turn = end_turn, .close = close_sink,
		.host = timeline,
	};
	size_t nr_events = timeline->count->nr_events;

	timeline->dir_fd = -1;
	timeline->is_open = false;
	timeline->gap = OP_GAP_FIRST;
	timeline->events = calloc(nr_events + 1, sizeof(*timeline->events));
	timeline->places = calloc(PLACES, sizeof(*timeline->places));
	timeline->steps = opd_timeline_new_steps();
	if (!timeline->events || !timeline->places || !timeline->steps) {
		opd_timeline_close(timeline);
		return -ENOMEM;
	}
	opd_sinks_add(&timeline->count->sinks, &sink);
	return 0;
}

void opd_timeline_reset(struct opd_timeline *timeline)
{
	drop_spans(timeline);
	timeline->gap = OP_GAP_FIRST;
}

void opd_timeline_close(struct opd_timeline *timeline)
{
	drop_spans(timeline);
	opd_host_state_free(&timeline->host_state);
	free(timeline->events);
	free(timeline->places);
	free(timeline->steps);
	timeline->events = NULL;
	timeline->places = NULL;
	timeline->steps = NULL;
}
