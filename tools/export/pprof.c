/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile.proto of pprof (github.com/google/pprof, proto/profile.proto), compressed by gzip.
 * Its file is a message; strings, functions, mappings and locations are tables in it. A location is
 * an address with a line for each function that was inlined there.
 */
#include <errno.h>
#include <inttypes.h>
#include <zlib.h>

#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/export/export.h"
#include "tools/export/numbers.h"
#include "tools/stacks/arrange.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS = 10,
	PROFILE_COMMENT = 13,
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4, FUNCTION_LINE = 5 };

#define GZIP_WINDOW_BITS (MAX_WBITS + 16)
#define GZIP_MEMORY	 8

/* ---- messages ---- */

/*
 * Protocol Buffers (protobuf.dev, "Encoding"): a field is a tag, field number << 3 | wire type, and
 * a varint (type 0) or a length with so many bytes (type 2). A field with the value 0 or "" is left
 * out: readers take this as its default. The text may fail, see text.h.
 */
enum { VARINT, LENGTH = 2 };

static void pb_varint(struct op_text *message, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		op_text_add_char(message, (char)(value | 0x80));
	op_text_add_char(message, (char)value);
}

static void pb_number(struct op_text *message, unsigned int field, uint64_t value)
{
	if (!value)
		return;
	pb_varint(message, field << 3 | VARINT);
	pb_varint(message, value);
}

static void pb_length(struct op_text *message, unsigned int field, const void *bytes, size_t nr_bytes)
{
	pb_varint(message, field << 3 | LENGTH);
	pb_varint(message, nr_bytes);
	op_text_add_bytes(message, bytes, nr_bytes);
}

static void pb_bytes(struct op_text *message, unsigned int field, const void *bytes, size_t nr_bytes)
{
	if (nr_bytes)
		pb_length(message, field, bytes, nr_bytes);
}

/* Another message as a field, also when it is empty. Empties `part`. */
static void pb_message(struct op_text *message, unsigned int field, struct op_text *part)
{
	pb_length(message, field, op_text_get(part), part->length);
	message->failed |= part->failed;
	op_text_truncate(part, 0);
}

/* ---- the profile ---- */

struct function_key {
	size_t name, file, line;
};

struct mapping {
	const struct opr_call_image *image;
	uint64_t limit;
	bool has_lines, has_inlined;
};

struct pprof {
	const struct opr_stack_report *report;
	struct op_text message, part, inner;
	struct opr_numbers strings, functions, locations;
	struct opr_numbers images; /* keys: pointers */
	struct mapping *mappings;  /* by number of the image */
	size_t nr_mappings;
};

/* A name may have any bytes, and strings of Protocol Buffers are UTF-8. */
static size_t string_of(struct pprof *pprof, const char *name)
{
	return opr_number_of_escaped(&pprof->strings, name);
}

static size_t number_function(struct pprof *pprof, const struct opr_call_function *function)
{
	const struct function_key key = { string_of(pprof, opr_call_bare_name(function)),
					  string_of(pprof, function->place.source ?: ""), function->place.first_line };
	bool is_new;
	size_t id = opr_number_of(&pprof->functions, &key, sizeof(key), &is_new) + 1;

	if (is_new) {
		pb_number(&pprof->inner, FUNCTION_ID, id);
		pb_number(&pprof->inner, FUNCTION_NAME, key.name);
		pb_number(&pprof->inner, FUNCTION_SYSTEM_NAME, key.name);
		pb_number(&pprof->inner, FUNCTION_FILE, key.file);
		pb_number(&pprof->inner, FUNCTION_LINE, key.line);
		pb_message(&pprof->message, PROFILE_FUNCTION, &pprof->inner);
	}
	return id;
}

/* 0: no image. */
static size_t number_mapping(struct pprof *pprof, const struct opr_call_function *function, size_t nr_lines)
{
	const struct opr_call_image *image = function->place.image;
	struct mapping *mapping;
	size_t number;

	if (!image)
		return 0;
	number = opr_number_of(&pprof->images, &image, sizeof(const struct opr_call_image *), NULL);
	if (number >= pprof->nr_mappings) {
		mapping = reallocarray(pprof->mappings, number + 1, sizeof(*mapping));
		if (!mapping) {
			pprof->images.failed = true;
			return 0;
		}
		pprof->mappings = mapping;
		pprof->mappings[number] = (struct mapping){ .image = image };
		pprof->nr_mappings = number + 1;
	}
	mapping = &pprof->mappings[number];
	mapping->limit = op_max_u64(mapping->limit, function->place.vma + 1);
	mapping->has_lines |= function->place.line != 0;
	mapping->has_inlined |= nr_lines > 1;
	return number + 1;
}

/*
 * The location of a frame: path[0] is the function at the address, path[nr - 1] the innermost one
 * that was inlined there.
 */
static size_t number_location(struct pprof *pprof, const struct opr_call_function *const *path, size_t nr)
{
	bool is_new;
	size_t id = opr_number_of(&pprof->locations, path, nr * sizeof(*path), &is_new) + 1;
	struct op_text line = { 0 };

	if (!is_new)
		return id;
	pb_number(&pprof->part, LOCATION_ID, id);
	pb_number(&pprof->part, LOCATION_MAPPING, number_mapping(pprof, path[0], nr));
	pb_number(&pprof->part, LOCATION_ADDRESS, path[0]->place.vma);
	while (nr--) {
		pb_number(&line, LINE_FUNCTION, number_function(pprof, path[nr]));
		pb_number(&line, LINE_LINE, path[nr]->place.line);
		pb_message(&pprof->part, LOCATION_LINE, &line);
	}
	op_text_free(&line);
	pb_message(&pprof->message, PROFILE_LOCATION, &pprof->part);
	return id;
}

static void add_label(struct pprof *pprof, struct op_text *sample, const char *key, const char *value, uint64_t number)
{
	pb_number(&pprof->inner, LABEL_KEY, string_of(pprof, key));
	if (value)
		pb_number(&pprof->inner, LABEL_STRING, string_of(pprof, value));
	pb_number(&pprof->inner, LABEL_NUMBER, number);
	pb_message(sample, SAMPLE_LABEL, &pprof->inner);
}

static void add_labels(struct pprof *pprof, struct op_text *sample, const struct opr_call_function *group)
{
	static const char *const keys[OP_NR_STACK_KINDS] = {
		[OP_STACK_APP] = "application",
		[OP_STACK_COMM] = "process",
		[OP_STACK_CGROUP] = "cgroup",
	};

	if (group->place.label == OP_STACK_THREAD) {
		add_label(pprof, sample, "pid", NULL, group->place.thread >> 32);
		add_label(pprof, sample, "thread", NULL, group->place.thread & UINT32_MAX);
	} else if (keys[group->place.label]) {
		add_label(pprof, sample, keys[group->place.label], group->name, 0);
	}
}

static bool is_time(const struct pprof *pprof)
{
	return pprof->report->view != OPR_VIEW_CPU;
}

/* The values of a sample: one for each event, all but one 0. */
static void add_values(struct pprof *pprof, struct op_text *sample, const char *event, uint64_t nr_samples)
{
	const struct opr_words *events = &pprof->report->sums->events;

	/* A line of the report that has no event, as waits for work, is of the only one. */
	if (!*event && events->nr_words == 1)
		event = events->words[0];
	if (is_time(pprof))
		nr_samples = op_min_u64(nr_samples, INT64_MAX / 1000) * 1000;
	for (size_t i = 0; i < events->nr_words; i++)
		pb_varint(&pprof->inner, !strcmp(events->words[i], event) ? nr_samples : 0);
	pb_message(sample, SAMPLE_VALUE, &pprof->inner);
}

/* The locations of a stack, the innermost one first, and its labels. */
static void add_sample(struct pprof *pprof, const struct opr_call_node *node)
{
	const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1];
	size_t nr = opr_call_path(node, path), end = nr, nr_groups = 0;
	struct op_text sample = { 0 }, ids = { 0 };
	const char *event = "";

	opr_progress_tick();
	while (nr_groups < nr && path[nr_groups]->kind == OPR_CALL_GROUP)
		nr_groups++;
	for (size_t i = nr; i-- > nr_groups;) {
		if (path[i]->kind == OPR_CALL_INLINED && i > nr_groups)
			continue;
		pb_varint(&ids, number_location(pprof, path + i, end - i));
		end = i;
	}
	pb_bytes(&sample, SAMPLE_LOCATION, op_text_get(&ids), ids.length);
	for (size_t i = 0; i < nr_groups; i++) {
		if (path[i]->place.label == OP_STACK_EVENT)
			event = path[i]->name;
		add_labels(pprof, &sample, path[i]);
	}
	add_values(pprof, &sample, event, node->self);
	sample.failed |= ids.failed;
	pb_message(&pprof->message, PROFILE_SAMPLE, &sample);
	op_text_free(&sample);
	op_text_free(&ids);
}

static void add_mapping(struct pprof *pprof, size_t number)
{
	const struct mapping *mapping = &pprof->mappings[number];
	struct op_text *part = &pprof->part;

	pb_number(part, MAPPING_ID, number + 1);
	pb_number(part, MAPPING_LIMIT, mapping->limit);
	pb_number(part, MAPPING_FILE, string_of(pprof, mapping->image->name));
	pb_number(part, MAPPING_BUILD_ID, string_of(pprof, mapping->image->build_id));
	pb_number(part, MAPPING_HAS_FUNCTIONS, 1);
	pb_number(part, MAPPING_HAS_FILES, mapping->has_lines);
	pb_number(part, MAPPING_HAS_LINES, mapping->has_lines);
	pb_number(part, MAPPING_HAS_INLINED, mapping->has_inlined);
	pb_message(&pprof->message, PROFILE_MAPPING, part);
}

static void add_comments(struct pprof *pprof)
{
	struct op_text text = { 0 };
	char *rest = NULL;

	opr_stacks_describe(pprof->report, &text);
	for (char *line = text.failed ? NULL : strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		pb_number(&pprof->message, PROFILE_COMMENT, string_of(pprof, line));
	pprof->message.failed |= text.failed;
	op_text_free(&text);
}

static void make(struct pprof *pprof)
{
	const struct opr_stack_report *report = pprof->report;

	opr_number_of_string(&pprof->strings, ""); /* the first one, by the format */
	for (size_t i = 0; i < report->sums->events.nr_words; i++) {
		char *event = report->sums->events.words[i];

		pb_number(&pprof->part, TYPE_TYPE, string_of(pprof, event));
		pb_number(&pprof->part, TYPE_UNIT, string_of(pprof, is_time(pprof) ? "nanoseconds" : "count"));
		pb_message(&pprof->message, PROFILE_SAMPLE_TYPE, &pprof->part);
	}
	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		if (node->self)
			add_sample(pprof, node);
	for (size_t i = 0; i < pprof->nr_mappings; i++)
		add_mapping(pprof, i);
	add_comments(pprof);
	pb_number(&pprof->message, PROFILE_TIME_NS, report->recorded->begin_ns);
	pb_number(&pprof->message, PROFILE_DURATION_NS, report->recorded->recorded_ns);
	for (size_t i = 0; i < pprof->strings.nr_items; i++) {
		const struct opr_numbered *string = pprof->strings.items[i];

		/* Strings are numbered by their place, so the empty one is written, too. */
		op_text_add_bytes(&pprof->part, string->bytes, string->nr_bytes);
		pb_message(&pprof->message, PROFILE_STRING, &pprof->part);
	}
}

static int write_gzip(const struct op_text *message, FILE *out)
{
	unsigned char buffer[65536] = { 0 };
	z_stream stream = { 0 };
	size_t done = 0;
	int result;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return opr_no_memory();
	do {
		size_t nr_bytes = op_min_u64(message->length - done, sizeof(buffer));

		opr_progress_tick();
		if (!stream.avail_in) {
			stream.next_in = (unsigned char *)message->data + done;
			stream.avail_in = (unsigned int)nr_bytes;
			done += nr_bytes;
		}
		stream.next_out = buffer;
		stream.avail_out = sizeof(buffer);
		result = deflate(&stream, done == message->length ? Z_FINISH : Z_NO_FLUSH);
		fwrite(buffer, 1, sizeof(buffer) - stream.avail_out, out);
	} while (result != Z_STREAM_END);
	deflateEnd(&stream);
	return 0;
}

int opr_export_pprof(const struct opr_stack_report *report, FILE *out)
{
	struct pprof pprof = { .report = report };
	bool failed;
	int err;

	make(&pprof);
	failed = pprof.message.failed || pprof.part.failed || pprof.inner.failed || pprof.strings.failed ||
		 pprof.functions.failed || pprof.locations.failed || pprof.images.failed;
	err = failed ? opr_no_memory() : write_gzip(&pprof.message, out);
	opr_numbers_free(&pprof.strings);
	opr_numbers_free(&pprof.functions);
	opr_numbers_free(&pprof.locations);
	opr_numbers_free(&pprof.images);
	op_text_free(&pprof.message);
	op_text_free(&pprof.part);
	op_text_free(&pprof.inner);
	free(pprof.mappings);
	return err;
}
