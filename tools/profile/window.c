/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/window.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "libop/base/parse.h"
#include "libop/session/layout.h"
#include "libop/timeline/read.h"

/* The samples of one sample file. */
struct entry {
	struct op_hlink link;
	char *path;
	struct op_odb_node *nodes;
	size_t nr_nodes, capacity;
};

/* What the nodes above say of a node. */
struct above {
	uint32_t kind; /* SAMPLES or STACKS */
	uint32_t event;
	uint32_t cgroup; /* a text */
	uint64_t app, image, thread, cpu;
	uint64_t callee; /* of a call; else OP_DCOOKIE_NONE */
};

#define PLACES 1024u

/* Where samples with this above them go; file is NULL: nowhere. */
struct place {
	struct above above;
	struct entry *file, *of_cgroup;
	bool is_set;
};

struct opr_window {
	struct opr_window_span span;
	struct op_minute minute; /* all blocks added up */
	struct op_htable entries;
	struct place places[PLACES]; /* the last ones, by their hash */
};

/* ---- samples ---- */

static struct above step_down(struct above above, const struct op_minute_node *node)
{
	switch (node->kind) {
	case OP_MINUTE_SAMPLES:
	case OP_MINUTE_STACKS:
		above.kind = node->kind;
		above.event = (uint32_t)node->value;
		break;
	case OP_MINUTE_APP:
		above.app = above.image = node->image;
		break;
	case OP_MINUTE_CGROUP:
		above.cgroup = (uint32_t)node->value;
		break;
	case OP_MINUTE_THREAD:
		above.thread = node->value;
		above.cpu = node->image;
		break;
	default:
		if (node->kind == OP_MINUTE_IMAGE || op_minute_is_code(node->kind))
			above.image = node->image;
		break;
	}
	return above;
}

/* "NAME:COUNT:0xMASK"; the name may have colons. Cuts the text. False: it is not of that form. */
static bool split_event(char *text, struct op_sample_name *name)
{
	char *mask = strrchr(text, ':'), *count, *end;

	if (!mask)
		return false;
	*mask++ = '\0';
	count = strrchr(text, ':');
	if (!count)
		return false;
	*count++ = '\0';
	name->event = text;
	name->count = strtoull(count, &end, 10);
	if (*end || end == count)
		return false;
	name->unit_mask = (uint32_t)strtoul(mask, &end, 0);
	return !*end && end != mask;
}

static struct entry *find_entry(const struct opr_window *window, const char *path)
{
	uint64_t hash = op_hash_bytes(0, path, strlen(path));

	for (struct op_hlink *link = op_htable_first(&window->entries, hash); link; link = op_htable_next(link)) {
		struct entry *entry = op_container_of(link, struct entry, link);

		if (!strcmp(entry->path, path))
			return entry;
	}
	return NULL;
}

static struct entry *get_entry(struct opr_window *window, const char *path)
{
	struct entry *entry = find_entry(window, path);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->path = strdup(path);
	if (!entry->path || op_htable_insert(&window->entries, &entry->link, op_hash_bytes(0, path, strlen(path)))) {
		free(entry->path);
		free(entry);
		return NULL;
	}
	return entry;
}

static int add_samples(struct entry *entry, uint64_t key, uint64_t amount)
{
	for (; entry && amount; amount -= op_min_u64(amount, UINT32_MAX)) {
		if (!op_grow(&entry->nodes, &entry->capacity, entry->nr_nodes + 1))
			return -ENOMEM;
		entry->nodes[entry->nr_nodes++] =
			(struct op_odb_node){ .key = key, .value = (uint32_t)op_min_u64(amount, UINT32_MAX) };
	}
	return 0;
}

static bool is_same(const struct above *a, const struct above *b)
{
	return a->kind == b->kind && a->event == b->event && a->cgroup == b->cgroup && a->app == b->app && a->image == b->image &&
	       a->thread == b->thread && a->cpu == b->cpu && a->callee == b->callee;
}

/* Makes the sample file of what is above, and that of the cgroup, as opd does. 0 or -ENOMEM. */
static int make_place(struct opr_window *window, const struct op_dcookie_table *images, const struct above *above,
		      struct place *place)
{
	const struct op_minute *minute = &window->minute;
	char *event = strdup(minute->texts[minute->events[above->event].text]);
	struct op_sample_name name = {
		.app = op_dcookie_name(op_dcookie_row(images, above->app)),
		.image = op_dcookie_name(op_dcookie_row(images, above->image)),
		.tgid = above->thread ? (int32_t)(above->thread >> 32) : OP_CLASS_ALL,
		.tid = above->thread ? (int32_t)above->thread : OP_CLASS_ALL,
		.cpu = above->cpu ? (int32_t)(above->cpu - 1) : OP_CLASS_ALL,
		.has_callee = above->callee != OP_DCOOKIE_NONE,
		.callee = op_dcookie_name(op_dcookie_row(images, above->callee)),
	};
	struct op_text path = { 0 };
	bool failed = !event;

	*place = (struct place){ .above = *above };
	if (event && split_event(event, &name) && op_dcookie_has(images, above->app) && op_dcookie_has(images, above->image)) {
		op_mangle(&name, &path);
		place->file = path.failed ? NULL : get_entry(window, op_text_get(&path));
		op_text_truncate(&path, 0);
		if (above->cgroup) {
			op_mangle_cgroup(minute->texts[above->cgroup], &path);
			op_mangle(&name, &path);
			place->of_cgroup = path.failed ? NULL : get_entry(window, op_text_get(&path));
		}
		failed = !place->file || (above->cgroup && !place->of_cgroup);
	}
	place->is_set = !failed;
	op_text_free(&path);
	free(event);
	return failed ? -ENOMEM : 0;
}

/* Adds to the sample file, and to that of the cgroup. Most nodes are below one that was there. */
static int add_to_files(struct opr_window *window, const struct op_dcookie_table *images, const struct above *above, uint64_t key,
			uint64_t amount)
{
	uint64_t hash = op_hash_u64(above->image + (above->app << 20) + (above->callee << 40) + above->thread + above->event);
	struct place *place = &window->places[hash % PLACES];
	int err = place->is_set && is_same(&place->above, above) ? 0 : make_place(window, images, above, place);

	if (err)
		return err;
	if (!place->file)
		window->span.nr_nowhere += amount;
	err = add_samples(place->file, key, amount);
	return err ? err : add_samples(place->of_cgroup, key, amount);
}

/* ---- calls ---- */

/* Waits are times: they stand for no samples and make no calls. */
static bool is_of_samples(const struct op_minute *minute, const struct above *above)
{
	return above->kind == OP_MINUTE_STACKS && minute->events[above->event].unit != OP_UNIT_MICROSECONDS;
}

/* Sets how many stacks go through each node. Returns how many there are. */
static uint64_t sum_stacks(const struct op_minute *minute, const struct above *above, uint64_t *sums)
{
	uint64_t nr_stacks = 0;

	for (uint32_t i = minute->nr_nodes; i-- > 1;) {
		const struct op_minute_node *node = &minute->nodes[i];

		sums[i] += node->self + node->rest;
		sums[node->parent] += sums[i];
		if (is_of_samples(minute, &above[i]) && node->kind == OP_MINUTE_STACKS)
			nr_stacks += sums[i];
	}
	return nr_stacks;
}

/* The event whose samples the calls of opd are scaled to: the first one with samples of its own. */
static uint64_t first_event(const struct op_minute *minute, const struct above *above, uint32_t *ret_event)
{
	uint64_t nr_samples = 0;

	*ret_event = UINT32_MAX;
	for (uint32_t i = 1; i < minute->nr_nodes; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		if (above[i].kind != OP_MINUTE_SAMPLES || !(node->self | node->rest))
			continue;
		if (above[i].event < *ret_event)
			*ret_event = above[i].event;
	}
	for (uint32_t i = 1; i < minute->nr_nodes; i++)
		if (above[i].kind == OP_MINUTE_SAMPLES && above[i].event == *ret_event)
			nr_samples += minute->nodes[i].self + minute->nodes[i].rest;
	return nr_samples;
}

/*
 * A session has calls in files of their own, which a timeline does not repeat. They follow from the
 * stacks: a stack stands for as many samples as the window has of the first event for each stack.
 */
static int make_calls(struct opr_window *window, const struct op_dcookie_table *images, const struct above *above)
{
	const struct op_minute *minute = &window->minute;
	uint64_t *sums = calloc(minute->nr_nodes + 1u, sizeof(*sums)), nr_stacks, nr_samples;
	uint32_t event;
	int err = 0;

	if (!sums)
		return -ENOMEM;
	nr_stacks = sum_stacks(minute, above, sums);
	nr_samples = first_event(minute, above, &event);
	for (uint32_t i = 1; i < minute->nr_nodes && nr_stacks && nr_samples && !err; i++) {
		const struct op_minute_node *node = &minute->nodes[i], *caller = &minute->nodes[node->parent];
		struct above call = above[node->parent];

		if (!is_of_samples(minute, &above[i]) || !op_minute_is_code(node->kind) || !op_minute_is_code(caller->kind))
			continue;
		call.event = event;
		call.callee = node->image;
		/* opcontrol --callgraph has the return address, which is in the caller */
		err = add_to_files(window, images, &call, (caller->value + 1) << 32 | (node->value & UINT32_MAX),
				   (uint64_t)((double)sums[i] * (double)nr_samples / (double)nr_stacks + 0.5));
	}
	free(sums);
	return err;
}

static int make_files(struct opr_window *window, const struct op_dcookie_table *images)
{
	const struct op_minute *minute = &window->minute;
	struct above *above = calloc(minute->nr_nodes + 1u, sizeof(*above));
	int err = above ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < minute->nr_nodes && !err; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		above[i] = step_down(above[node->parent], node);
		if (above[i].kind != OP_MINUTE_SAMPLES || !(node->self | node->rest))
			continue;
		if (!above[i].app)
			window->span.nr_nowhere += node->self + node->rest;
		else
			err = add_to_files(window, images, &above[i], op_minute_is_code(node->kind) ? node->value : OPR_WINDOW_REST,
					   node->self + node->rest);
	}
	if (!err)
		err = make_calls(window, images, above);
	free(above);
	return err;
}

bool opr_window_has(const struct opr_window *window, const char *path)
{
	return find_entry(window, path);
}

int opr_window_samples(const struct opr_window *window, const char *path, struct op_odb_samples *samples)
{
	const struct entry *entry = find_entry(window, path);
	size_t nr_nodes = entry ? entry->nr_nodes : 0;
	struct op_odb_node *nodes = calloc(nr_nodes + 1, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	if (nr_nodes)
		memcpy(nodes, entry->nodes, nr_nodes * sizeof(*nodes));
	free(samples->nodes);
	samples->nodes = nodes;
	samples->nr_nodes = (uint32_t)nr_nodes;
	return 0;
}

/* ---- stacks ---- */

struct building {
	const struct op_minute *minute;
	struct op_stack_tree tree;
	size_t capacity;
	uint32_t *texts; /* of each text the node where it ends; 0: not made yet */
	bool failed;
};

static uint32_t add_node(struct building *building, uint32_t parent, enum op_stack_kind kind, uint64_t value, uint64_t image)
{
	struct op_stack_tree *tree = &building->tree;

	if (building->failed || tree->nr_nodes >= OP_STACKS_NODES_MAX ||
	    !op_grow(&tree->nodes, &building->capacity, tree->nr_nodes + 1)) {
		building->failed = true;
		return 0;
	}
	tree->nodes[tree->nr_nodes] =
		(struct op_stack_node){ .parent = parent, .kind = (uint16_t)kind, .value = value, .image = image };
	return tree->nr_nodes++;
}

static uint32_t add_text(struct building *building, uint32_t text)
{
	const char *string = building->minute->texts[text];
	size_t length = strlen(string);
	uint32_t node = building->texts[text];

	if (node)
		return node;
	for (size_t at = 0; at < length; at += OP_STACK_PIECE_BYTES) {
		char piece[OP_STACK_PIECE_BYTES] = "";
		uint64_t halves[2];

		memcpy(piece, string + at, op_min_u64(length - at, sizeof(piece)));
		memcpy(halves, piece, sizeof(halves));
		node = add_node(building, node, OP_STACK_TEXT, halves[0], halves[1]);
	}
	building->texts[text] = node;
	return node;
}

/*
 * A caller is where it goes on, so a position in it is one more than the start of its function.
 * Samples of the function itself are at a node beside it.
 */
static uint32_t add_code(struct building *building, const struct op_minute_node *node, uint32_t parent)
{
	bool is_kernel = node->kind == OP_MINUTE_KERNEL_FUNCTION || node->kind == OP_MINUTE_KERNEL_PLACE;
	enum op_stack_kind kind = is_kernel ? OP_STACK_KERNEL_FRAME : OP_STACK_FRAME;

	if (node->self) {
		uint32_t leaf = add_node(building, parent, kind, node->value, node->image);

		if (leaf) {
			building->tree.nodes[leaf].count = node->self;
			building->tree.nodes[leaf].records = node->records;
		}
	}
	return add_node(building, parent, kind, node->value + 1, node->image);
}

static uint32_t add_stack_node(struct building *building, const struct op_minute_node *node, uint32_t parent)
{
	char comm[OP_STACK_PIECE_BYTES] = "";
	uint64_t halves[2];

	switch (node->kind) {
	case OP_MINUTE_STACKS:
		return add_node(building, 0, OP_STACK_EVENT, add_text(building, building->minute->events[node->value].text), 0);
	case OP_MINUTE_APP:
		return add_node(building, parent, OP_STACK_APP, 0, node->image);
	case OP_MINUTE_COMM:
		snprintf(comm, sizeof(comm), "%s", building->minute->texts[node->value]);
		memcpy(halves, comm, sizeof(halves));
		return add_node(building, parent, OP_STACK_COMM, halves[0], halves[1]);
	case OP_MINUTE_CGROUP:
		return add_node(building, parent, OP_STACK_CGROUP, add_text(building, (uint32_t)node->value), 0);
	case OP_MINUTE_THREAD:
		return add_node(building, parent, OP_STACK_THREAD, node->value, node->image);
	case OP_MINUTE_RUNTIME:
		return add_node(building, parent, OP_STACK_RUNTIME_FRAME, add_text(building, (uint32_t)node->value), 0);
	case OP_MINUTE_END:
		return node->value ? add_node(building, parent, OP_STACK_END, node->value, 0) : parent;
	case OP_MINUTE_STATE:
		/* of a later opd: the time is below the node above */
		if (!node->value || node->value >= OP_NR_WAIT_STATES)
			return parent;
		return add_node(building, parent, OP_STACK_STATE, node->value, 0);
	default:
		return op_minute_is_code(node->kind) ? add_code(building, node, parent) : parent;
	}
}

/* Samples that belong below the node, where no room was left. */
static void add_rest(struct building *building, const struct op_minute_node *node, uint32_t made, bool is_time)
{
	uint64_t rest = node->rest + (op_minute_is_code(node->kind) ? 0 : node->self);

	if (!made || !rest)
		return;
	building->tree.nodes[made].count += rest;
	if (!op_minute_is_code(node->kind) || !node->self)
		building->tree.nodes[made].records = (uint16_t)op_min_u64(
			(uint64_t)building->tree.nodes[made].records + node->records, OP_STACK_RECORDS_MAX);
	*(is_time ? &building->tree.no_room_us : &building->tree.no_room) += node->rest;
}

int opr_minute_stacks(const struct op_minute *minute, struct op_stack_tree *ret_tree)
{
	struct building building = { .minute = minute, .texts = calloc(minute->nr_texts + 1u, sizeof(*building.texts)) };
	uint32_t *made = calloc(minute->nr_nodes + 1u, sizeof(*made));
	bool *is_stack = calloc(minute->nr_nodes + 1u, sizeof(*is_stack));

	building.failed = !building.texts || !made || !is_stack;
	add_node(&building, 0, OP_STACK_ROOT, 0, 0);
	for (uint32_t i = 1; i < minute->nr_nodes && !building.failed; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		is_stack[i] = node->kind == OP_MINUTE_STACKS || is_stack[node->parent];
		if (!is_stack[i])
			continue;
		made[i] = add_stack_node(&building, node, made[node->parent]);
		add_rest(&building, node, made[i], node->records);
	}
	free(building.texts);
	free(made);
	free(is_stack);
	if (building.failed) {
		op_stack_tree_free(&building.tree);
		return -ENOMEM;
	}
	*ret_tree = building.tree;
	return 0;
}

int opr_window_stacks(const struct opr_window *window, struct op_stack_tree *ret_tree)
{
	return opr_minute_stacks(&window->minute, ret_tree);
}

/* ---- the ledger ---- */

static uint64_t amount_of(const struct op_minute *minute, uint32_t event, const char *prefix, const char *name)
{
	size_t length = strlen(prefix);

	for (uint32_t i = 0; i < minute->nr_rows; i++) {
		const char *text = minute->texts[minute->rows[i].text];

		if (minute->rows[i].event == event && !strncmp(text, prefix, length) && !strcmp(text + length, name))
			return minute->rows[i].amount > 0 ? (uint64_t)minute->rows[i].amount : 0;
	}
	return 0;
}

static bool is_event(const struct op_minute *minute, uint32_t index, const struct op_ledger_event *event)
{
	char *text = strdup(minute->texts[minute->events[index].text]);
	struct op_sample_name name = { 0 };
	bool is = text && split_event(text, &name) && !strcmp(name.event, event->name) && name.count == event->count &&
		  name.unit_mask == event->unit_mask;

	free(text);
	return is;
}

static void set_event(const struct op_minute *minute, uint32_t index, struct op_ledger_event *event)
{
	event->received = amount_of(minute, index, "", "received");
	event->stored = amount_of(minute, index, "", "stored");
	event->unattributed = amount_of(minute, index, "", "unattributed");
	event->filtered = amount_of(minute, index, "", "filtered");
	event->lost_kernel = amount_of(minute, index, "", "lost_kernel");
	for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++)
		event->lost[reason] = amount_of(minute, index, "lost_", op_loss_name(reason));
	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		event->ends[end] = amount_of(minute, index, "end_", op_stack_end_name(end));
	event->taken = event->received + event->lost_kernel;
	event->enabled_ns = event->counted_ns = 0;
}

static void set_waits(const struct op_minute *minute, struct op_session_ledger *ledger)
{
	char name[OP_WAIT_NUMBER_BYTES];
	uint64_t *number;
	uint32_t index = 0;

	while (index < minute->nr_events && minute->events[index].role != OP_EVENT_WAITS)
		index++;
	for (size_t i = 0; (number = op_wait_ledger_number(&ledger->waits, i, name)); i++)
		*number = amount_of(minute, index, "", name);
}

void opr_window_set_ledger(const struct opr_window *window, struct op_session_ledger *ledger)
{
	const struct op_minute *minute = &window->minute;

	for (size_t i = 0; i < ledger->nr_events; i++) {
		struct op_ledger_event *event = &ledger->events[i];
		uint32_t index = 0;

		while (index < minute->nr_events && !is_event(minute, index, event))
			index++;
		set_event(minute, index, event);
	}
	set_waits(minute, ledger);
	ledger->begin_ns = window->span.begin_ns;
	ledger->end_ns = window->span.end_ns;
	ledger->paused_ns = ledger->end_ns - ledger->begin_ns - window->span.covered_ns;
	ledger->is_stopped = true;
}

/* ---- a window ---- */

const struct opr_window_span *opr_window_span(const struct opr_window *window)
{
	return &window->span;
}

static void add_span(struct opr_window_span *span, const struct op_minute *minute)
{
	uint64_t first_ns = op_min_u64(minute->begin.wall_ns, minute->end.wall_ns);
	uint64_t last_ns = op_max_u64(minute->begin.wall_ns, minute->end.wall_ns),
		 length_ns = minute->end.mono_ns - minute->begin.mono_ns;

	span->begin_ns = span->nr_blocks ? op_min_u64(span->begin_ns, first_ns) : first_ns;
	span->end_ns = op_max_u64(span->end_ns, last_ns);
	span->covered_ns += length_ns;
	span->grain_ns = op_max_u64(span->grain_ns, length_ns);
	span->nr_blocks++;
}

static int read_blocks(struct opr_window *window, struct op_timeline *timeline)
{
	struct op_minute minute;
	uint64_t offset;
	int err = op_minute_init(&minute, 0);

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		add_span(&window->span, &minute);
		err = op_minute_merge(&window->minute, &minute);
	}
	op_minute_free(&minute);
	window->span.nr_damaged = op_timeline_nr_damaged(timeline, &offset);
	window->span.covered_ns = op_min_u64(window->span.covered_ns, window->span.end_ns - window->span.begin_ns);
	return err == -ENODATA ? 0 : err;
}

int opr_window_read(int dir_fd, const struct op_dcookie_table *images, uint64_t since_ns, uint64_t until_ns,
		    struct opr_window **ret_window)
{
	struct op_timeline *timeline = NULL;
	struct opr_window *window = calloc(1, sizeof(*window));
	int err;

	if (!window)
		return -ENOMEM;
	err = op_timeline_open(dir_fd, OP_SESSION_TIMELINE, &timeline);
	if (err)
		goto out;
	err = op_minute_init(&window->minute, 0);
	if (err)
		goto out;
	err = op_timeline_select(timeline, since_ns, until_ns);
	if (err)
		goto out;
	err = read_blocks(window, timeline);
	if (err)
		goto out;
	err = make_files(window, images);
	if (err)
		goto out;
	*ret_window = window;
	window = NULL;
out:
	op_timeline_close(timeline);
	opr_window_free(window);
	return err;
}

static void free_entry(struct op_hlink *link, void *arg)
{
	struct entry *entry = op_container_of(link, struct entry, link);

	op_htable_remove(arg, link);
	free(entry->path);
	free(entry->nodes);
	free(entry);
}

void opr_window_free(struct opr_window *window)
{
	if (!window)
		return;
	op_htable_visit(&window->entries, free_entry, &window->entries);
	op_htable_free(&window->entries);
	op_minute_free(&window->minute);
	free(window);
}
