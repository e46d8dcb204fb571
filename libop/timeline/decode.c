/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/grow.h"
#include "libop/timeline/bytes.h"

#define NR_SECTIONS (OP_SECTION_RECORDS + 1)
#define TOTAL_MAX   ((uint64_t)1 << 63)

struct code {
	uint64_t value;
	uint32_t image; /* its number */
	uint32_t kind;
};

struct tables {
	uint64_t *images;
	struct code *code;
	uint32_t nr_images, nr_code;
};

/* Makes room for so many items in an array of a span. False: no memory. */
#define MAKE_ROOM(minute, array, capacity, nr) op_grow(&(minute)->array, &(minute)->capacity, nr)

/* What comes before the items of a section: how many there are. Each takes min_bytes or more. */
static uint32_t count_items(struct op_bytes_input *input, uint32_t most, uint32_t min_bytes)
{
	return (uint32_t)op_bytes_u64_to(input, op_min_u64(most, (uint64_t)(input->end - input->at) / min_bytes));
}

static int read_texts(struct op_minute *minute, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_TEXTS_MAX - 1, 1);

	if (!MAKE_ROOM(minute, texts, text_capacity, nr + 1u))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !input->failed; i++) {
		size_t nr_bytes = (size_t)op_bytes_u64_to(input, OP_TIMELINE_TEXT_BYTES);
		const char *text = (const char *)op_bytes_take(input, nr_bytes);

		if (!text || !nr_bytes || memchr(text, 0, nr_bytes))
			return -EBADMSG;
		minute->texts[minute->nr_texts] = strndup(text, nr_bytes);
		if (!minute->texts[minute->nr_texts])
			return -ENOMEM;
		minute->text_bytes += nr_bytes;
		minute->nr_texts++;
	}
	return 0;
}

static int read_events(struct op_minute *minute, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_EVENTS_MAX, 3);

	if (nr && !MAKE_ROOM(minute, events, event_capacity, nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct op_minute_event *event = &minute->events[i];

		event->text = (uint32_t)op_bytes_u64_to(input, minute->nr_texts - 1);
		event->unit = (uint32_t)op_bytes_u64_to(input, UINT32_MAX);
		event->role = (uint32_t)op_bytes_u64_to(input, UINT32_MAX);
		if (!event->text)
			return -EBADMSG;
	}
	minute->nr_events = nr;
	return 0;
}

static int read_images(struct tables *tables, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_IMAGES_MAX, 1);
	uint64_t image = 0;

	tables->images = calloc(nr + 1u, sizeof(*tables->images));
	if (!tables->images)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t more = op_bytes_u64_to(input, UINT64_MAX - image);

		if (i && !more)
			return -EBADMSG;
		image += more;
		tables->images[i] = image;
	}
	tables->nr_images = nr;
	return 0;
}

static bool is_after(const struct code *code, const struct code *before)
{
	if (code->image != before->image)
		return code->image > before->image;
	return code->kind != before->kind ? code->kind > before->kind : code->value > before->value;
}

static int read_code(struct tables *tables, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_CODE_MAX, 3), image = 0;

	tables->code = calloc(nr + 1u, sizeof(*tables->code));
	if (!tables->code)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		image += (uint32_t)op_bytes_u64_to(input, UINT32_MAX - image);
		if (image >= tables->nr_images)
			return -EBADMSG;
		tables->code[i].image = image;
	}
	for (uint32_t i = 0; i < nr; i++) {
		tables->code[i].kind = (uint32_t)op_bytes_u64_to(input, OP_MINUTE_NR_KINDS - 1);
		if (!op_minute_is_code(tables->code[i].kind))
			return -EBADMSG;
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct code *code = &tables->code[i];
		bool is_next = i && code->image == code[-1].image && code->kind == code[-1].kind;
		uint64_t before = is_next ? code[-1].value : 0;

		code->value = before + op_bytes_u64_to(input, UINT64_MAX - before);
		if (i && !is_after(code, code - 1))
			return -EBADMSG;
	}
	tables->nr_code = nr;
	return 0;
}

/* ---- nodes ---- */

static int read_parents(struct op_minute *minute, struct op_bytes_input *input, uint32_t nr)
{
	uint32_t depth = 0; /* of the node before */

	for (uint32_t i = 1; i <= nr; i++) {
		uint32_t nr_up = (uint32_t)op_bytes_u64_to(input, depth), parent = i - 1;

		if (depth - nr_up >= OP_TIMELINE_DEPTH_MAX)
			return -EBADMSG;
		depth = depth - nr_up + 1;
		while (nr_up--)
			parent = minute->nodes[parent].parent;
		minute->nodes[i] = (struct op_minute_node){ .parent = parent };
	}
	return 0;
}

static int read_kinds(struct op_minute *minute, struct op_bytes_input *input, uint32_t nr)
{
	for (uint32_t i = 1; i <= nr; i++) {
		struct op_minute_node *node = &minute->nodes[i];

		node->kind = (uint16_t)op_bytes_u64_to(input, OP_MINUTE_NR_KINDS - 1);
		if (!op_minute_may_lie_below(node->kind, minute->nodes[node->parent].kind))
			return -EBADMSG;
	}
	return 0;
}

static void read_code_key(const struct tables *tables, struct op_bytes_input *input, struct op_minute_node *node,
			  uint32_t *last_code)
{
	uint32_t number;

	if (*last_code >= tables->nr_code) {
		input->failed = true;
		return;
	}
	number = *last_code + (uint32_t)op_bytes_u64_to(input, tables->nr_code - 1 - *last_code);
	*last_code = number;
	node->value = tables->code[number].value;
	node->image = tables->images[tables->code[number].image];
	if (tables->code[number].kind != node->kind)
		input->failed = true;
}

static void read_key(const struct op_minute *minute, const struct tables *tables, struct op_bytes_input *input,
		     struct op_minute_node *node, uint32_t *last_codes)
{
	switch ((enum op_minute_kind)node->kind) {
	case OP_MINUTE_SAMPLES:
	case OP_MINUTE_STACKS:
		node->value = op_bytes_u64_to(input, minute->nr_events ? minute->nr_events - 1 : 0);
		input->failed |= !minute->nr_events;
		return;
	case OP_MINUTE_APP:
	case OP_MINUTE_IMAGE:
		if (tables->nr_images)
			node->image = tables->images[op_bytes_u64_to(input, tables->nr_images - 1)];
		else
			input->failed = true;
		return;
	case OP_MINUTE_COMM:
	case OP_MINUTE_CGROUP:
	case OP_MINUTE_RUNTIME:
		node->value = op_bytes_u64_to(input, minute->nr_texts - 1);
		return;
	case OP_MINUTE_THREAD:
		node->value = op_bytes_u64_to(input, UINT32_MAX) << 32;
		node->value |= op_bytes_u64_to(input, UINT32_MAX);
		node->image = op_bytes_u64_to(input, (uint64_t)UINT32_MAX + 1);
		return;
	case OP_MINUTE_END:
	case OP_MINUTE_STATE:
		node->value = op_bytes_u64_to(input, UINT32_MAX);
		return;
	case OP_MINUTE_FUNCTION:
	case OP_MINUTE_PLACE:
	case OP_MINUTE_KERNEL_FUNCTION:
	case OP_MINUTE_KERNEL_PLACE:
		read_code_key(tables, input, node, &last_codes[node->parent]);
		return;
	case OP_MINUTE_ROOT:
	case OP_MINUTE_NR_KINDS:
		input->failed = true;
		return;
	}
}

static int read_weights(struct op_minute *minute, struct op_bytes_input *input, uint32_t nr)
{
	uint64_t total = 0;

	for (uint32_t i = 1; i <= nr; i++) {
		minute->nodes[i].self = op_bytes_u64_to(input, TOTAL_MAX - 1 - total);
		total += minute->nodes[i].self;
	}
	for (uint32_t i = 1; i <= nr; i++) {
		minute->nodes[i].rest = op_bytes_u64_to(input, TOTAL_MAX - 1 - total);
		total += minute->nodes[i].rest;
	}
	return input->failed ? -EBADMSG : 0;
}

static int read_nodes(struct op_minute *minute, const struct tables *tables, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_NODES_MAX - 1, 5), *last_codes;
	int err;

	if (!MAKE_ROOM(minute, nodes, node_capacity, nr + 1u))
		return -ENOMEM;
	err = read_parents(minute, input, nr);
	if (!err)
		err = read_kinds(minute, input, nr);
	if (err)
		return err;
	last_codes = calloc(nr + 1u, sizeof(*last_codes));
	if (!last_codes)
		return -ENOMEM;
	for (uint32_t i = 1; i <= nr && !input->failed; i++)
		read_key(minute, tables, input, &minute->nodes[i], last_codes);
	free(last_codes);
	err = read_weights(minute, input, nr);
	if (!err)
		minute->nr_nodes = nr + 1;
	return err;
}

/* ---- rows ---- */

static int read_ledger(struct op_minute *minute, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_ROWS_MAX, 3);

	if (nr && !MAKE_ROOM(minute, rows, row_capacity, nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct op_minute_row *row = &minute->rows[i];

		row->event = (uint32_t)op_bytes_u64_to(input, minute->nr_events ? minute->nr_events - 1 : 0);
		row->text = (uint32_t)op_bytes_u64_to(input, minute->nr_texts - 1);
		row->amount = op_bytes_s64(input);
		if (!minute->nr_events || !row->text)
			return -EBADMSG;
	}
	minute->nr_rows = nr;
	return 0;
}

static int read_context(struct op_minute *minute, struct op_bytes_input *input)
{
	uint32_t nr = count_items(input, OP_TIMELINE_ROWS_MAX, 3);

	if (nr && !MAKE_ROOM(minute, context, context_capacity, nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct op_minute_context *row = &minute->context[i];

		row->kind = (uint32_t)op_bytes_u64_to(input, UINT32_MAX);
		row->index = (uint32_t)op_bytes_u64_to(input, UINT32_MAX);
		row->value = op_bytes_u64(input);
	}
	minute->nr_context = nr;
	return 0;
}

static void read_records(struct op_minute *minute, struct op_bytes_input *input)
{
	for (uint32_t i = 1; i < minute->nr_nodes; i++)
		minute->nodes[i].records = (uint16_t)op_bytes_u64_to(input, UINT16_MAX);
}

/* Each section at most once; unknown ones are skipped, and so is what a section has behind. */
static int find_sections(const uint8_t *payload, size_t nr_bytes, struct op_bytes_input sections[NR_SECTIONS])
{
	struct op_bytes_input input = { .at = payload, .end = payload + nr_bytes };

	while (input.at < input.end) {
		uint64_t number = op_bytes_u64(&input), length = op_bytes_u64(&input);
		const uint8_t *content = op_bytes_take(&input, length);

		if (!content || (number < NR_SECTIONS && sections[number].at))
			return -EBADMSG;
		if (number < NR_SECTIONS)
			sections[number] = (struct op_bytes_input){ .at = content, .end = content + length };
	}
	return 0;
}

static int decode(struct op_minute *minute, struct op_bytes_input sections[NR_SECTIONS], struct tables *tables)
{
	int err = 0;

	for (size_t i = OP_SECTION_TEXTS; !err && i < NR_SECTIONS; i++) {
		struct op_bytes_input *input = &sections[i];

		if (!input->at && i == OP_SECTION_RECORDS)
			continue;
		if (!input->at)
			return -EBADMSG;
		switch ((enum op_timeline_section)i) {
		case OP_SECTION_TEXTS:
			err = read_texts(minute, input);
			break;
		case OP_SECTION_EVENTS:
			err = read_events(minute, input);
			break;
		case OP_SECTION_IMAGES:
			err = read_images(tables, input);
			break;
		case OP_SECTION_CODE:
			err = read_code(tables, input);
			break;
		case OP_SECTION_NODES:
			err = read_nodes(minute, tables, input);
			break;
		case OP_SECTION_LEDGER:
			err = read_ledger(minute, input);
			break;
		case OP_SECTION_CONTEXT:
			err = read_context(minute, input);
			break;
		case OP_SECTION_RECORDS:
			read_records(minute, input);
			break;
		}
		if (!err && input->failed)
			err = -EBADMSG;
	}
	return err;
}

int op_minute_decode(struct op_minute *minute, const uint8_t *payload, size_t nr_bytes)
{
	struct op_bytes_input sections[NR_SECTIONS] = { 0 };
	struct tables tables = { 0 };
	int err;

	op_minute_clear(minute);
	err = nr_bytes > OP_TIMELINE_RAW_MAX ? -EBADMSG : find_sections(payload, nr_bytes, sections);
	if (!err)
		err = decode(minute, sections, &tables);
	free(tables.images);
	free(tables.code);
	if (err)
		op_minute_clear(minute);
	return err;
}
