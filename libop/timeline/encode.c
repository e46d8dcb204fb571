/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define SHARE_ALL ((uint64_t)1 << 50)

/* A node on its way into the payload. */
struct sent {
	uint64_t self, rest;
	uint64_t share;  /* of itself and all below in its event, in units of 1/SHARE_ALL */
	uint32_t node;   /* in the span */
	uint32_t parent; /* the same */
	uint32_t key;    /* number of its event, image, text or code */
	uint16_t records;
	uint8_t kind;
	bool is_stack;   /* below a node of kind STACKS */
	bool is_kept;
};

/* A place of code: image, kind and value. */
struct code {
	uint64_t image, value;
	uint32_t kind;
};

struct plan {
	const struct op_minute *minute;
	struct sent *sent;    /* by the number of the node; then the kept ones in their order */
	uint32_t nr_kept;
	struct code *code;    /* sorted, each once */
	uint64_t *images;     /* the same */
	uint32_t *texts;      /* the new number of each text; NONE: not used */
	uint32_t nr_code, nr_images;
};

/* ---- what is kept ---- */

static int compare_shares(const void *a, const void *b)
{
	const struct sent *x = *(struct sent *const *)a, *y = *(struct sent *const *)b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* A parent has at least the share of its child, and comes first: so what is kept is a tree. */
static int keep_largest(struct plan *plan, bool of_stacks, uint32_t most)
{
	struct sent **all = calloc(plan->minute->nr_nodes, sizeof(*all));
	uint32_t nr = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 1; i < plan->minute->nr_nodes; i++)
		if (plan->sent[i].is_stack == of_stacks && plan->sent[i].share > 0)
			all[nr++] = &plan->sent[i];
	if (most && nr > most)
		qsort(all, nr, sizeof(*all), compare_shares);
	for (uint32_t i = 0; i < nr; i++)
		all[i]->is_kept = !most || i < most;
	free(all);
	return 0;
}

/*
 * In floating point no sum of weights overflows, and that of a parent is never less than a child's.
 */
static int weigh(struct plan *plan)
{
	const struct op_minute *minute = plan->minute;
	double *sums = calloc(minute->nr_nodes, sizeof(*sums));
	uint32_t *events = calloc(minute->nr_nodes, sizeof(*events)); /* the nodes below the root */

	for (uint32_t i = 0; sums && events && i < minute->nr_nodes; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		plan->sent[i] = (struct sent){ .self = node->self, .rest = node->rest, .records = node->records, .node = i,
					       .parent = node->parent, .kind = (uint8_t)node->kind };
		plan->sent[i].is_stack = node->kind == OP_MINUTE_STACKS || (i && plan->sent[node->parent].is_stack);
		sums[i] = (double)node->self + (double)node->rest;
		events[i] = node->parent ? events[node->parent] : i;
	}
	for (uint32_t i = minute->nr_nodes; sums && events && i-- > 1;)
		sums[plan->sent[i].parent] += sums[i];
	for (uint32_t i = 1; sums && events && i < minute->nr_nodes; i++)
		plan->sent[i].share = sums[i] > 0 ? 1 + (uint64_t)(sums[i] / sums[events[i]] * (double)SHARE_ALL) : 0;
	free(events);
	free(sums);
	return sums && events ? 0 : -ENOMEM;
}

static int choose(struct plan *plan, const struct op_encode_limits *limits)
{
	int err = weigh(plan);

	if (!err)
		err = keep_largest(plan, false, limits->max_samples);
	if (!err)
		err = keep_largest(plan, true, limits->max_stacks);
	for (uint32_t i = plan->minute->nr_nodes; i-- > 1;) {
		struct sent *sent = &plan->sent[i], *parent;

		if (sent->is_kept)
			continue;
		parent = &plan->sent[sent->parent];
		parent->rest += sent->self + sent->rest;
		parent->records = (uint16_t)op_min_u64((uint64_t)parent->records + sent->records, UINT16_MAX);
	}
	return err;
}

/* ---- tables ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_code(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

#define DROP_DOUBLES(array, nr, compare)                                                      \
	do {                                                                                  \
		uint32_t kept_ = 0;                                                           \
                                                                                              \
		qsort(array, nr, sizeof(*(array)), compare);                                  \
		for (uint32_t i_ = 0; i_ < (nr); i_++)                                        \
			if (!kept_ || compare(&(array)[kept_ - 1], &(array)[i_]))             \
				(array)[kept_++] = (array)[i_];                               \
		(nr) = kept_;                                                                 \
	} while (0)

static bool has_image(uint32_t kind)
{
	return kind == OP_MINUTE_APP || kind == OP_MINUTE_IMAGE || op_minute_is_code(kind);
}

/* The images, the code and the texts that kept nodes and rows have. */
static int collect(struct plan *plan)
{
	const struct op_minute *minute = plan->minute;

	plan->images = calloc(minute->nr_nodes, sizeof(*plan->images));
	plan->code = calloc(minute->nr_nodes, sizeof(*plan->code));
	plan->texts = calloc(minute->nr_texts, sizeof(*plan->texts));
	if (!plan->images || !plan->code || !plan->texts)
		return -ENOMEM;
	for (uint32_t i = 0; i < minute->nr_texts; i++)
		plan->texts[i] = NONE;
	for (uint32_t i = 1; i < minute->nr_nodes; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		if (!plan->sent[i].is_kept)
			continue;
		if (has_image(node->kind))
			plan->images[plan->nr_images++] = node->image;
		if (op_minute_is_code(node->kind))
			plan->code[plan->nr_code++] = (struct code){ node->image, node->value, node->kind };
		if (op_minute_has_text(node->kind))
			plan->texts[node->value] = 0;
	}
	for (uint32_t i = 0; i < minute->nr_events; i++)
		plan->texts[minute->events[i].text] = 0;
	for (uint32_t i = 0; i < minute->nr_rows; i++)
		plan->texts[minute->rows[i].text] = 0;
	DROP_DOUBLES(plan->images, plan->nr_images, compare_u64);
	DROP_DOUBLES(plan->code, plan->nr_code, compare_code);
	return plan->nr_images > OP_TIMELINE_IMAGES_MAX || plan->nr_code > OP_TIMELINE_CODE_MAX ? -E2BIG : 0;
}

static uint32_t image_number(const struct plan *plan, uint64_t image)
{
	return (uint32_t)op_nr_leading(plan->images, plan->nr_images, row, *row < image);
}

static uint32_t key_of(const struct plan *plan, const struct op_minute_node *node)
{
	const struct code code = { node->image, node->value, node->kind };

	switch ((enum op_minute_kind)node->kind) {
	case OP_MINUTE_SAMPLES:
	case OP_MINUTE_STACKS:
		return (uint32_t)node->value;
	case OP_MINUTE_APP:
	case OP_MINUTE_IMAGE:
		return image_number(plan, node->image);
	case OP_MINUTE_COMM:
	case OP_MINUTE_CGROUP:
	case OP_MINUTE_RUNTIME:
		return plan->texts[node->value];
	case OP_MINUTE_FUNCTION:
	case OP_MINUTE_PLACE:
	case OP_MINUTE_KERNEL_FUNCTION:
	case OP_MINUTE_KERNEL_PLACE:
		return (uint32_t)op_nr_leading(plan->code, plan->nr_code, row, compare_code(row, &code) < 0);
	case OP_MINUTE_THREAD:
	case OP_MINUTE_END:
	case OP_MINUTE_STATE:
	case OP_MINUTE_ROOT:
	case OP_MINUTE_NR_KINDS:
		break;
	}
	return 0;
}

/* ---- the order of nodes ---- */

static int compare_siblings(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	uint32_t x_kind = op_minute_is_code(x->kind) ? OP_MINUTE_FUNCTION : x->kind;
	uint32_t y_kind = op_minute_is_code(y->kind) ? OP_MINUTE_FUNCTION : y->kind;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x_kind != y_kind)
		return x_kind < y_kind ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* A node before its children, these by kind and key. `sent` has the kept ones by their parents. */
static int order(struct plan *plan)
{
	uint32_t nr_nodes = plan->minute->nr_nodes, nr_ordered = 0, nr_waiting = 0;
	uint32_t *begins = calloc(nr_nodes + 1u, sizeof(*begins)); /* of the children of a node */
	uint32_t *waiting = calloc(nr_nodes + 1u, sizeof(*waiting));
	struct sent *ordered = calloc(nr_nodes, sizeof(*ordered));

	for (uint32_t i = 0; begins && i < plan->nr_kept; i++)
		begins[plan->sent[i].parent + 1]++;
	for (uint32_t i = 0; begins && i < nr_nodes; i++)
		begins[i + 1] += begins[i];
	if (begins && waiting && ordered) {
		for (uint32_t i = begins[1]; i-- > begins[0];)
			waiting[nr_waiting++] = i;
		while (nr_waiting) {
			const struct sent *next = &plan->sent[waiting[--nr_waiting]];

			ordered[nr_ordered++] = *next;
			for (uint32_t i = begins[next->node + 1]; i-- > begins[next->node];)
				waiting[nr_waiting++] = i;
		}
		free(plan->sent);
		plan->sent = ordered;
		ordered = NULL;
	}
	free(ordered);
	free(waiting);
	free(begins);
	return nr_ordered == plan->nr_kept ? 0 : -ENOMEM;
}

/* ---- sections ---- */

static void add_section(struct op_bytes *bytes, enum op_timeline_section section, struct op_bytes *content)
{
	op_bytes_add_u64(bytes, section);
	op_bytes_add_u64(bytes, content->length);
	op_bytes_add(bytes, content->data, content->length);
	bytes->failed |= content->failed;
	op_bytes_free(content);
}

static void add_texts(struct plan *plan, struct op_bytes *bytes)
{
	struct op_bytes content = { 0 };
	uint32_t nr = 1;

	for (uint32_t i = 1; i < plan->minute->nr_texts; i++)
		nr += plan->texts[i] != NONE;
	op_bytes_add_u64(&content, nr - 1);
	nr = 1;
	for (uint32_t i = 1; i < plan->minute->nr_texts; i++) {
		const char *text = plan->minute->texts[i];

		if (plan->texts[i] == NONE)
			continue;
		plan->texts[i] = nr++;
		op_bytes_add_u64(&content, strlen(text));
		op_bytes_add(&content, text, strlen(text));
	}
	plan->texts[0] = 0;
	add_section(bytes, OP_SECTION_TEXTS, &content);
}

static void add_events(const struct plan *plan, struct op_bytes *bytes)
{
	const struct op_minute *minute = plan->minute;
	struct op_bytes content = { 0 };

	op_bytes_add_u64(&content, minute->nr_events);
	for (uint32_t i = 0; i < minute->nr_events; i++) {
		op_bytes_add_u64(&content, plan->texts[minute->events[i].text]);
		op_bytes_add_u64(&content, minute->events[i].unit);
		op_bytes_add_u64(&content, minute->events[i].role);
	}
	add_section(bytes, OP_SECTION_EVENTS, &content);
}

static void add_images(const struct plan *plan, struct op_bytes *bytes)
{
	struct op_bytes content = { 0 };

	op_bytes_add_u64(&content, plan->nr_images);
	for (uint32_t i = 0; i < plan->nr_images; i++)
		op_bytes_add_u64(&content, plan->images[i] - (i ? plan->images[i - 1] : 0));
	add_section(bytes, OP_SECTION_IMAGES, &content);
}

static void add_code(const struct plan *plan, struct op_bytes *bytes)
{
	struct op_bytes content = { 0 };
	const struct code *code = plan->code;

	op_bytes_add_u64(&content, plan->nr_code);
	for (uint32_t i = 0; i < plan->nr_code; i++)
		op_bytes_add_u64(&content, image_number(plan, code[i].image) - (i ? image_number(plan, code[i - 1].image) : 0));
	for (uint32_t i = 0; i < plan->nr_code; i++)
		op_bytes_add_u64(&content, code[i].kind);
	for (uint32_t i = 0; i < plan->nr_code; i++) {
		bool is_next = i && code[i].image == code[i - 1].image && code[i].kind == code[i - 1].kind;

		op_bytes_add_u64(&content, code[i].value - (is_next ? code[i - 1].value : 0));
	}
	add_section(bytes, OP_SECTION_CODE, &content);
}

/* How many levels the node before must be left for its parent, from its child on: 0 is a child. */
static void add_ups(const struct plan *plan, struct op_bytes *content, const uint32_t *parents)
{
	uint32_t before = 0; /* the node before */

	for (uint32_t i = 0; i < plan->nr_kept; i++) {
		uint32_t nr_up = 0;

		for (uint32_t at = before; at != plan->sent[i].parent; at = parents[at])
			nr_up++;
		op_bytes_add_u64(content, nr_up);
		before = plan->sent[i].node;
	}
}

/* Of code, how much more than that of the last sibling: siblings are in the order of their code. */
static void add_keys(const struct plan *plan, struct op_bytes *content, uint32_t *last_codes)
{
	for (uint32_t i = 0; i < plan->nr_kept; i++) {
		const struct sent *sent = &plan->sent[i];
		const struct op_minute_node *node = &plan->minute->nodes[sent->node];

		if (node->kind == OP_MINUTE_THREAD) {
			op_bytes_add_u64(content, node->value >> 32);
			op_bytes_add_u64(content, node->value & UINT32_MAX);
			op_bytes_add_u64(content, node->image);
		} else if (node->kind == OP_MINUTE_END || node->kind == OP_MINUTE_STATE) {
			op_bytes_add_u64(content, node->value);
		} else if (op_minute_is_code(node->kind)) {
			op_bytes_add_u64(content, sent->key - last_codes[sent->parent]);
			last_codes[sent->parent] = sent->key;
		} else {
			op_bytes_add_u64(content, sent->key);
		}
	}
}

/* Column by column: numbers of one column are alike, so they pack well. */
static void add_nodes(const struct plan *plan, struct op_bytes *bytes)
{
	uint32_t *parents = calloc(plan->minute->nr_nodes, sizeof(*parents));
	uint32_t *last_codes = calloc(plan->minute->nr_nodes, sizeof(*last_codes));
	struct op_bytes content = { .failed = !parents || !last_codes };

	for (uint32_t i = 0; parents && i < plan->minute->nr_nodes; i++)
		parents[i] = plan->minute->nodes[i].parent;
	op_bytes_add_u64(&content, plan->nr_kept);
	if (parents)
		add_ups(plan, &content, parents);
	for (uint32_t i = 0; i < plan->nr_kept; i++)
		op_bytes_add_u64(&content, plan->sent[i].kind);
	if (last_codes)
		add_keys(plan, &content, last_codes);
	for (uint32_t i = 0; i < plan->nr_kept; i++)
		op_bytes_add_u64(&content, plan->sent[i].self);
	for (uint32_t i = 0; i < plan->nr_kept; i++)
		op_bytes_add_u64(&content, plan->sent[i].rest);
	add_section(bytes, OP_SECTION_NODES, &content);
	free(last_codes);
	free(parents);
}

static void add_ledger(const struct plan *plan, struct op_bytes *bytes)
{
	const struct op_minute *minute = plan->minute;
	struct op_bytes content = { 0 };

	op_bytes_add_u64(&content, minute->nr_rows);
	for (uint32_t i = 0; i < minute->nr_rows; i++) {
		op_bytes_add_u64(&content, minute->rows[i].event);
		op_bytes_add_u64(&content, plan->texts[minute->rows[i].text]);
		op_bytes_add_s64(&content, minute->rows[i].amount);
	}
	add_section(bytes, OP_SECTION_LEDGER, &content);
}

static void add_context(const struct plan *plan, struct op_bytes *bytes)
{
	const struct op_minute *minute = plan->minute;
	struct op_bytes content = { 0 };

	op_bytes_add_u64(&content, minute->nr_context);
	for (uint32_t i = 0; i < minute->nr_context; i++) {
		op_bytes_add_u64(&content, minute->context[i].kind);
		op_bytes_add_u64(&content, minute->context[i].index);
		op_bytes_add_u64(&content, minute->context[i].value);
	}
	add_section(bytes, OP_SECTION_CONTEXT, &content);
}

/* A number for each node, if one has records. */
static void add_records(const struct plan *plan, struct op_bytes *bytes)
{
	struct op_bytes content = { 0 };
	bool has_some = false;

	for (uint32_t i = 0; i < plan->nr_kept; i++) {
		op_bytes_add_u64(&content, plan->sent[i].records);
		has_some |= plan->sent[i].records;
	}
	if (has_some)
		add_section(bytes, OP_SECTION_RECORDS, &content);
	else
		op_bytes_free(&content);
}

/* The kept nodes, in their order in the payload. Needs the numbers of the texts. */
static int arrange(struct plan *plan)
{
	for (uint32_t i = 1; i < plan->minute->nr_nodes; i++)
		if (plan->sent[i].is_kept) {
			plan->sent[plan->nr_kept] = plan->sent[i];
			plan->sent[plan->nr_kept].key = key_of(plan, &plan->minute->nodes[i]);
			plan->nr_kept++;
		}
	if (plan->nr_kept >= OP_TIMELINE_NODES_MAX)
		return -E2BIG;
	qsort(plan->sent, plan->nr_kept, sizeof(*plan->sent), compare_siblings);
	return order(plan);
}

int op_minute_encode(const struct op_minute *minute, const struct op_encode_limits *limits, struct op_bytes *bytes)
{
	struct plan plan = { .minute = minute, .sent = calloc(minute->nr_nodes, sizeof(*plan.sent)) };
	int err = plan.sent ? choose(&plan, limits) : -ENOMEM;

	if (err)
		goto out;
	err = collect(&plan);
	if (err)
		goto out;
	add_texts(&plan, bytes);
	err = arrange(&plan);
	if (err)
		goto out;
	add_events(&plan, bytes);
	add_images(&plan, bytes);
	add_code(&plan, bytes);
	add_nodes(&plan, bytes);
	add_ledger(&plan, bytes);
	add_context(&plan, bytes);
	add_records(&plan, bytes);
	err = bytes->failed ? -ENOMEM : bytes->length > OP_TIMELINE_RAW_MAX ? -E2BIG : 0;
out:
	free(plan.sent);
	free(plan.code);
	free(plan.images);
	free(plan.texts);
	return err;
}
