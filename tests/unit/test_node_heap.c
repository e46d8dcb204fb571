/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Functions in the heap of V8: with a proof they have a name, a file and a line; without one, or
 * where memory is not as it should be, they have none. Hostile memory does not take long.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/node_memory.h"

#define SOURCE    "// first\nlet x;\nfunction f() {}\r\nfunction g() {}\n"
#define POSITION  26 /* in the third line */
#define POSITION2 43 /* in the fourth */
#define READS_MAX 40000u

static struct node_memory memory;
static struct opd_node_layout layout;
static struct op_text answer;
static struct opd_node_found found;
static struct opd_node_line lines[OPD_NODE_LINES_MAX];
static char name[OPD_NODE_NAME_MAX + 1], file[OPD_NODE_NAME_MAX + 1];

static int setup(void **state OP_UNUSED)
{
	memset(&memory, 0, sizeof(memory));
	memory.nr_words = 16384; /* in front of it pcs may be looked for */
	node_layout(&layout, 11);
	return 0;
}

static int setup_18(void **state)
{
	setup(state);
	node_layout(&layout, 10);
	return 0;
}

static int teardown(void **state OP_UNUSED)
{
	op_text_free(&answer);
	answer = (struct op_text){ 0 };
	return 0;
}

/* Reads one function. */
static enum opd_node_outcome read_one(const struct opd_node_wanted *wanted)
{
	const char *name_bytes, *file_bytes, *line_bytes;
	size_t at = 0;

	op_text_truncate(&answer, 0);
	opd_node_read(&layout, wanted, 1, node_read, &memory, &answer);
	assert_true(opd_node_next(&answer, &at, &found, &name_bytes, &file_bytes, &line_bytes));
	assert_int_equal(at, answer.length);
	assert_true(found.nr_lines <= op_array_size(lines));
	if (found.nr_lines)
		memcpy(lines, line_bytes, found.nr_lines * sizeof(*lines));
	memcpy(name, name_bytes, found.nr_name_bytes);
	name[found.nr_name_bytes] = 0;
	memcpy(file, file_bytes, found.nr_file_bytes);
	file[found.nr_file_bytes] = 0;
	return found.outcome;
}

static struct node_function make(void)
{
	uint64_t script = node_script(&memory, &layout, "/srv/app.js", SOURCE);

	return node_function(&memory, &layout, node_scope(&memory, &layout, node_string(&memory, "f"), 0, POSITION), script);
}

static void a_function_has_name_file_and_line(void **state OP_UNUSED)
{
	struct node_function made = make();

	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	assert_string_equal(name, "f");
	assert_string_equal(file, "/srv/app.js");
	assert_int_equal(found.line, 3);
	assert_int_equal(found.shared, made.shared);
	assert_int_equal(found.bytecode, made.bytecode);
	assert_int_equal(found.script, made.script);
}

static void other_versions_are_refused(void **state OP_UNUSED)
{
	struct opd_node_layout other;

	assert_true(opd_node_layout_is_known(&layout));
	other = layout;
	other.minor = 4;
	assert_false(opd_node_layout_is_known(&other));
	other = layout;
	other.tagged_bytes = 4; /* compressed pointers */
	assert_false(opd_node_layout_is_known(&other));
	other = layout;
	other.shared_name = -8;
	assert_false(opd_node_layout_is_known(&other));
	other = layout;
	other.array_data = 1 << 20;
	assert_false(opd_node_layout_is_known(&other));
}

/* The frame has another bytecode: the collector put another function there. */
static void a_moved_function_is_not_named(void **state OP_UNUSED)
{
	struct node_function made = make(), other = make();

	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = other.function, .bytecode = made.bytecode }),
			 OPD_NODE_MOVED);
	/* a function is no proof alone: it is a frame of V8's own code */
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function }), OPD_NODE_NATIVE);
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.script }),
			 OPD_NODE_NATIVE);
	/* what stands there cannot be read */
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = 0x5001 }), OPD_NODE_MOVED);
}

static void a_forwarding_address_is_followed(void **state OP_UNUSED)
{
	struct node_function made = make(), old = make();

	*node_at(&memory, old.function, 0) = made.function - 1;
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = old.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	assert_int_equal(found.shared, made.shared);
	*node_at(&memory, old.function, 0) = old.function - 1; /* to itself */
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = old.function, .bytecode = made.bytecode }),
			 OPD_NODE_MOVED);
}

static void a_script_knows_its_functions(void **state OP_UNUSED)
{
	struct node_function made = make(), other = make();
	struct opd_node_wanted wanted = { .function = other.function, .bytecode = made.bytecode, .scripts = { made.script } };
	uint64_t table = node_object(&memory, layout.type_weak_array, 5);

	*node_at(&memory, made.script, 88) = table;
	*node_at(&memory, table, 8) = node_smi(3);
	*node_at(&memory, table, 16) = 3; /* cleared */
	*node_at(&memory, table, 24) = other.shared | 2;
	*node_at(&memory, table, 32) = made.shared | 2;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.shared, made.shared);
	*node_at(&memory, table, 8) = node_smi(INT32_MAX);
	*node_at(&memory, table, 32) = 0;
	memory.nr_reads = 0;
	assert_int_not_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_true(memory.nr_reads < READS_MAX);
}

static void baseline_code_has_the_bytecode(void **state OP_UNUSED)
{
	struct node_function made = make();
	uint64_t code = node_object(&memory, layout.type_code, 10);

	*node_at(&memory, code, 16) = made.bytecode;
	*node_at(&memory, made.shared, 8) = code;
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
}

/* Baseline code has it in its frame. */
static void feedback_has_the_function(void **state OP_UNUSED)
{
	struct node_function made = make(), other = make();
	uint64_t feedback = node_object(&memory, 250, 8);
	struct opd_node_wanted wanted = { .function = other.function, .bytecode = made.bytecode, .feedback = feedback };

	*node_at(&memory, feedback, 24) = other.shared;
	assert_int_equal(read_one(&wanted), OPD_NODE_MOVED);
	*node_at(&memory, feedback, 16) = made.shared;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.shared, made.shared);
}

/* Optimized code of Node 20; returns where the instructions begin. */
static uint64_t make_code(const struct node_function *made, uint32_t nr_bytes)
{
	uint64_t code = node_object(&memory, layout.type_code, 10), deopt = node_object(&memory, layout.type_array, 12), stream;
	bool is_20 = layout.major == 11;
	size_t header = is_20 ? 2 : 16;

	*node_at(&memory, deopt, 8) = node_smi(9);
	*node_at(&memory, deopt, 16 + 6 * 8) = made->shared;
	node_raw(&memory, 64);
	memory.nr_words += (8 - (memory.nr_words + 3 + header) % 8) % 8;
	stream = node_object(&memory, is_20 ? 252 : layout.type_code, header + nr_bytes / 8 + 8);
	if (!is_20)
		code = stream;
	*node_at(&memory, code, 16) = deopt;
	*node_at(&memory, code, is_20 ? 56 : 40) = nr_bytes;
	*node_at(&memory, code, 48) = 0x17d;
	if (is_20)
		*node_at(&memory, stream, 8) = code;
	return stream - 1 + header * 8;
}

static void compiled_code_says_whose_it_is(void **state OP_UNUSED)
{
	struct node_function made = make(), other = make();
	uint64_t start = make_code(&made, 20480);

	assert_int_equal(start % 64, 0);
	for (uint64_t at = 0; at < 20480; at += 1000) {
		assert_int_equal(read_one(&(struct opd_node_wanted){ .function = other.function, .pc = start + at }),
				 OPD_NODE_NAMED);
		assert_int_equal(found.shared, made.shared);
		assert_int_equal(found.code_start, start);
		assert_int_equal(found.code_end, start + 20480);
	}
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .pc = start + 20480 }), OPD_NODE_MOVED);
	/* the code of a regular expression has no function */
	*node_at(&memory, layout.major == 11 ? *node_at(&memory, start - 15, 8) : start - 127, 16) = 0;
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .pc = start + 8 }), OPD_NODE_NATIVE);
}

static void builtins_have_no_file(void **state OP_UNUSED)
{
	struct node_function made = node_function(&memory, &layout, node_string(&memory, "map"), 0);

	*node_at(&memory, made.shared, 8) = node_smi(300);
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function }), OPD_NODE_NAMED);
	assert_string_equal(name, "map");
	assert_string_equal(file, "");
	assert_int_equal(found.line, 0);
}

static void a_function_without_a_name_has_an_inferred_one(void **state OP_UNUSED)
{
	uint64_t script = node_script(&memory, &layout, "file:///srv/a%20b.mjs", SOURCE);
	uint64_t inferred = node_cons(&memory, node_string(&memory, "app"), node_string(&memory, ".run"), 7);
	struct node_function made = node_function(&memory, &layout, node_scope(&memory, &layout, 0, inferred, POSITION2), script);

	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	assert_string_equal(name, "app.run");
	assert_string_equal(file, "/srv/a b.mjs");
	assert_int_equal(found.line, 4);
	*node_at(&memory, made.shared, 16) = node_scope(&memory, &layout, 0, 0, POSITION);
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	assert_string_equal(name, "(anonymous)");
}

static void ends_of_lines_are_searched(void **state OP_UNUSED)
{
	struct node_function made = make();
	uint64_t ends = node_object(&memory, layout.type_array, 6);
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };

	*node_at(&memory, made.script, 8) = 0; /* the source is not needed */
	*node_at(&memory, made.script, 56) = ends;
	*node_at(&memory, ends, 8) = node_smi(4);
	for (int32_t i = 0; i < 4; i++)
		*node_at(&memory, ends, 16 + 8 * i) = node_smi((const int32_t[]){ 8, 15, 32, 48 }[i]);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.line, 3);
	*node_at(&memory, made.script, 24) = node_smi(100); /* of the file */
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.line, 103);
	*node_at(&memory, ends, 8) = node_smi(INT32_MAX);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.line, 0);
	assert_string_equal(name, "f");
}

static void a_known_function_is_not_read_again(void **state OP_UNUSED)
{
	struct node_function made = make();
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };

	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	wanted.shared = found.shared;
	wanted.fingerprint = found.fingerprint;
	wanted.function = 0; /* it is not needed any more */
	assert_int_equal(read_one(&wanted), OPD_NODE_SAME);
	assert_int_equal(found.nr_name_bytes, 0);
	*node_at(&memory, made.shared, 40) += 1;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
}

static void many_locals_have_a_table_of_names(void **state OP_UNUSED)
{
	struct node_function made = make();
	uint64_t scope = node_object(&memory, layout.type_scope, 110);

	*node_at(&memory, scope, 8) = node_smi(NODE_SCOPE_NAMED);
	*node_at(&memory, scope, 24) = node_smi(80);
	*node_at(&memory, scope, 32 + 8 * (1 + 80)) = node_string(&memory, "many");
	*node_at(&memory, scope, 32 + 8 * (1 + 80 + 2)) = node_smi(POSITION);
	*node_at(&memory, made.shared, 16) = scope;
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	assert_string_equal(name, "many");
	assert_int_equal(found.line, 3);
	*node_at(&memory, scope, 24) = node_smi(1 << 30);
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_FAULT);
	*node_at(&memory, scope, 24) = node_smi(-1);
	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_FAULT);
}

static void set_name(const struct node_function *made, uint64_t string)
{
	*node_at(&memory, made->scope, 32) = string;
}

static void strings_of_all_shapes_are_read(void **state OP_UNUSED)
{
	struct node_function made = make();
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };
	uint64_t wide = node_object(&memory, 32, 4), slice = node_object(&memory, 43, 4), thin = node_object(&memory, 45, 3);
	uint64_t external = node_object(&memory, 42, 4), characters = node_raw(&memory, 2);
	static const uint16_t text[] = { 'a', 0xfc, 0x20ac, 0xd83d, 0xde00, 0xdc00 };

	*node_at(&memory, wide, 8) = (uint64_t)op_array_size(text) << 32;
	memcpy(node_at(&memory, wide, 16), text, sizeof(text));
	set_name(&made, wide);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_string_equal(name, "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80?");
	*node_at(&memory, slice, 8) = 4ull << 32;
	*node_at(&memory, slice, 16) = node_string(&memory, "look here");
	*node_at(&memory, slice, 24) = node_smi(5);
	set_name(&made, slice);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_string_equal(name, "here");
	*node_at(&memory, thin, 8) = 9ull << 32;
	*node_at(&memory, thin, 16) = *node_at(&memory, slice, 16);
	set_name(&made, node_cons(&memory, slice, node_cons(&memory, thin, slice, 13), 17));
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_string_equal(name, "herelook herehere");
	memcpy(node_at(&memory, characters | 1, 0), "external", 8);
	*node_at(&memory, external, 8) = 8ull << 32;
	*node_at(&memory, external, 24) = characters;
	set_name(&made, external);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_string_equal(name, "external");
	/* a string that lies about its part */
	*node_at(&memory, slice, 24) = node_smi(6);
	set_name(&made, slice);
	assert_int_equal(read_one(&wanted), OPD_NODE_FAULT);
}

static void long_names_are_cut(void **state OP_UNUSED)
{
	struct node_function made = make();
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };
	static char text[10001];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text + sizeof(text) - 5, "last", 4);
	set_name(&made, node_string(&memory, text));
	*node_at(&memory, made.script, 16) = node_string(&memory, text);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(strlen(name), OPD_NODE_NAME_MAX);
	assert_int_equal(name[OPD_NODE_NAME_MAX - 1], 'x');
	assert_int_equal(strlen(file), OPD_NODE_NAME_MAX);
	assert_string_equal(file + OPD_NODE_NAME_MAX - 4, "last");
}

/* Strings that are parts of themselves, and that claim any length. */
static void loops_end(void **state OP_UNUSED)
{
	struct node_function made = make();
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };
	uint64_t cons = node_cons(&memory, 0, 0, UINT32_MAX), thin = node_object(&memory, 45, 3);
	uint64_t left = node_string(&memory, "x");

	*node_at(&memory, cons, 16) = cons;
	*node_at(&memory, cons, 24) = cons;
	set_name(&made, cons);
	assert_int_equal(read_one(&wanted), OPD_NODE_LIMIT);
	*node_at(&memory, cons, 16) = left;
	memory.nr_reads = 0;
	read_one(&wanted);
	assert_true(memory.nr_reads < READS_MAX);
	*node_at(&memory, thin, 8) = 5ull << 32;
	*node_at(&memory, thin, 16) = thin;
	set_name(&made, thin);
	assert_int_equal(read_one(&wanted), OPD_NODE_LIMIT);
	/* the source is a loop: only the line is missing */
	set_name(&made, left);
	*node_at(&memory, made.script, 8) = thin;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.line, 0);
}

/* All functions of a question together may read so much. */
static void a_question_is_bounded(void **state OP_UNUSED)
{
	static struct opd_node_wanted wanted[OPD_NODE_WANTED_MAX];
	struct node_function made = make();
	uint64_t table = node_object(&memory, layout.type_weak_array, 9000);

	*node_at(&memory, made.script, 88) = table;
	*node_at(&memory, table, 8) = node_smi(8900);
	for (int32_t i = 0; i < 8900; i++)
		*node_at(&memory, table, 16 + 8 * i) = made.shared | 2;
	for (size_t i = 0; i < op_array_size(wanted); i++) {
		wanted[i] = (struct opd_node_wanted){ .bytecode = node_object(&memory, layout.type_bytecode, 2),
						      .scripts = { made.script } };
	}
	memory.nr_reads = 0;
	opd_node_read(&layout, wanted, op_array_size(wanted), node_read, &memory, &answer);
	assert_true(memory.nr_reads < READS_MAX);
	assert_int_equal(answer.length, op_array_size(wanted) * sizeof(found));
}

/* Each word of the memory of a function becomes something else: no crash, and an end. */
static void any_word_may_be_wrong(void **state OP_UNUSED)
{
	struct node_function made = make();
	uint64_t start = make_code(&made, 256);
	const struct opd_node_wanted wanted[] = {
		{ .function = made.function, .bytecode = made.bytecode, .scripts = { made.script } }, { .pc = start + 100 }
	};
	uint64_t values[] = {
		0, 1, 3, UINT64_MAX, made.function, made.shared, made.script, node_smi(INT32_MAX), node_smi(-1), INT64_MAX
	};

	for (size_t i = 16384; i < memory.nr_words; i++) {
		uint64_t before = memory.words[i];

		for (size_t j = 0; j < op_array_size(values); j++) {
			memory.words[i] = values[j];
			memory.nr_reads = 0;
			op_text_truncate(&answer, 0);
			opd_node_read(&layout, wanted, op_array_size(wanted), node_read, &memory, &answer);
			assert_true(memory.nr_reads < READS_MAX);
		}
		memory.words[i] = before;
	}
}

/* An answer that is cut off, or whose lengths are wrong, is no answer. */
static void damaged_answers_are_refused(void **state OP_UNUSED)
{
	struct node_function made = make();
	const char *texts[3];
	size_t at = 0;

	assert_int_equal(read_one(&(struct opd_node_wanted){ .function = made.function, .bytecode = made.bytecode }),
			 OPD_NODE_NAMED);
	answer.length--;
	assert_false(opd_node_next(&answer, &at, &found, &texts[0], &texts[1], &texts[2]));
	answer.length = sizeof(found) - 1;
	assert_false(opd_node_next(&answer, &at, &found, &texts[0], &texts[1], &texts[2]));
	assert_int_equal(at, 0);
}

/* A number of a table of positions. */
static void add_number(uint8_t table[], size_t *nr_bytes, int64_t number)
{
	uint64_t left = (uint64_t)number << 1 ^ (uint64_t)(number >> 63);

	do
		table[(*nr_bytes)++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
	while (left >>= 7);
}

/* Offset 0 is in the function's line, 5 in the next one, 9 in the first one of the script. */
static void bytecode_has_lines(void **state OP_UNUSED)
{
	static const int64_t numbers[] = {
		0, 2 * (POSITION + 1), -5 - 1, 2 * (POSITION2 - POSITION), 2, 0, 2, 2 * (3 - POSITION2)
	};
	struct node_function made = make();
	uint64_t positions = node_object(&memory, 190, 8);
	struct opd_node_wanted wanted = { .function = made.function, .bytecode = made.bytecode };
	uint8_t table[64];
	size_t nr_bytes = 0;

	for (size_t i = 0; i < op_array_size(numbers); i++)
		add_number(table, &nr_bytes, numbers[i]);
	memcpy(node_at(&memory, positions, 16), table, nr_bytes);
	*node_at(&memory, positions, 8) = node_smi((int32_t)nr_bytes);
	*node_at(&memory, made.bytecode, 32) = positions;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 3);
	assert_memory_equal(lines, ((const struct opd_node_line[]){ { 0, 3 }, { 5, 4 }, { 9, 1 } }), 3 * sizeof(*lines));
	/* a table that is cut off, and a length that is wrong */
	*node_at(&memory, positions, 8) = node_smi(5);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 2);
	*node_at(&memory, positions, 8) = node_smi(INT32_MAX);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 0);
	assert_string_equal(name, "f");
}

#define IN(number) ((int64_t)(number) << 31)

/*
 * A call at offset 10; at 20 one in a function that is inlined in one that is inlined; at 30 one in
 * a function that is not there.
 */
static void optimized_code_has_lines_at_its_calls(void **state OP_UNUSED)
{
	static const int64_t numbers[] = {
		10, 2 * (POSITION + 1), 10, IN(2) - 2 * POSITION, 10, IN(3) - IN(2),
	};
	struct node_function made = make();
	uint64_t positions = node_object(&memory, 190, 10), inlined = node_object(&memory, 190, 6), start, code;
	struct opd_node_wanted wanted = { 0 };
	uint8_t table[64];
	size_t nr_bytes = 0;

	for (size_t i = 0; i < op_array_size(numbers); i++)
		add_number(table, &nr_bytes, numbers[i]);
	memcpy(node_at(&memory, positions, 16), table, nr_bytes);
	*node_at(&memory, positions, 8) = node_smi((int32_t)nr_bytes);
	*node_at(&memory, inlined, 8) = node_smi(32);
	*node_at(&memory, inlined, 16) = 2 * (POSITION2 + 1);
	*node_at(&memory, inlined, 32) = 2 * 7 + IN(1);
	start = make_code(&made, 512);
	code = layout.major == 11 ? *node_at(&memory, start - 15, 8) : start - 127;
	*node_at(&memory, code, 24) = positions;
	*node_at(&memory, *node_at(&memory, code, 16), 16 + 7 * 8) = inlined;
	wanted.pc = start + 8;
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 2);
	assert_memory_equal(lines, ((const struct opd_node_line[]){ { 10, 3 }, { 20, 4 } }), 2 * sizeof(*lines));
	/* a circle, and a length that is wrong */
	*node_at(&memory, inlined, 16) = 2 * (POSITION2 + 1) + IN(2);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 1);
	*node_at(&memory, inlined, 8) = node_smi(INT32_MAX);
	assert_int_equal(read_one(&wanted), OPD_NODE_NAMED);
	assert_int_equal(found.nr_lines, 1);
	assert_string_equal(name, "f");
}

int main(void)
{
#define BOTH(test) cmocka_unit_test_setup_teardown(test, setup, teardown), cmocka_unit_test_setup_teardown(test, setup_18, teardown)
	const struct CMUnitTest tests[] = {
		BOTH(a_function_has_name_file_and_line),
		BOTH(other_versions_are_refused),
		BOTH(a_moved_function_is_not_named),
		BOTH(a_forwarding_address_is_followed),
		BOTH(a_script_knows_its_functions),
		BOTH(baseline_code_has_the_bytecode),
		BOTH(feedback_has_the_function),
		BOTH(compiled_code_says_whose_it_is),
		BOTH(builtins_have_no_file),
		BOTH(a_function_without_a_name_has_an_inferred_one),
		BOTH(ends_of_lines_are_searched),
		BOTH(a_known_function_is_not_read_again),
		BOTH(many_locals_have_a_table_of_names),
		BOTH(strings_of_all_shapes_are_read),
		BOTH(long_names_are_cut),
		BOTH(loops_end),
		BOTH(bytecode_has_lines),
		BOTH(optimized_code_has_lines_at_its_calls),
		BOTH(a_question_is_bounded),
		BOTH(any_word_may_be_wrong),
		BOTH(damaged_answers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
