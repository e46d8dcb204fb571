/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the bytes of Python mean: tables of lines, whose truth is what Python 3.9 and 3.11 say of
 * the same function (dis.findlinestarts, co_lines), and strings. And where functions stand among
 * native frames.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "libop/unwind/runtime_words.h"
#include "pipeline/runtimes/python.h"
#include "pipeline/stacks/merge.h"

struct span {
	uint32_t start, end, line;
};

/* Of 3.11, of a function that begins in line 1. */
static const uint8_t locations[] = {
	128, 0,	  216, 8,   9,	 128, 65,  221, 13,  18,  144, 49, 137, 88,  140, 88,  240, 0,	 7,   5,   34,	240, 0,	  7,
	5,   34,  136, 1,   216, 11,  12,  136, 113, 137, 53,  240, 0,	 6,   9,   34,	216, 12,  13,  144, 17,	 137, 70, 136,
	65,  136, 65,  240, 6,	 2,   17,  31,	240, 0,	  2,   17,  31,	 216, 27,  28,	216, 27,  28,  240, 3,	 1,   27,  30,
	240, 3,	  2,   17,  31,	 241, 0,   2,	17,  31,  244, 0,   2,	 17,  31,  224, 31,  32,  244, 5,   2,	 17,  34,  136,
	65,  136, 65,  240, 6,	 3,   5,   13,	216, 15,  16,  229, 8,	 9,   136, 33,	137, 4,	  140, 4,   136, 4,   136, 4,
	248, 141, 1,   136, 33,	 137, 4,   140, 4,   136, 4,   136, 4,	 248, 248, 248,
};
static const struct span of_locations[] = {
	{ 0, 2, 1 },	   { 2, 6, 2 },	    { 6, 40, 3 },    { 40, 50, 4 },   { 50, 62, 5 },   { 62, 66, 8 },
	{ 66, 68, 9 },	   { 68, 70, 10 },  { 70, 72, 9 },   { 72, 88, 8 },   { 88, 90, 10 },  { 90, 104, 8 },
	{ 104, 106, 11 },  { 106, 108, 12 }, { 108, 140, 14 }, { 140, 142, 0 }, { 142, 174, 14 }, { 174, 180, 0 },
};

/* Of 3.9, of the same function. */
static const uint8_t lnotab[] = { 0, 1, 4, 1,	12, 1, 8, 1, 10, 3, 6, 1, 2, 1, 2, 255,
				  2, 255, 4, 2, 2, 254, 6, 3, 2, 1, 4, 2, 8, 254, 2, 2 };
static const struct span of_lnotab[] = {
	{ 0, 4, 2 },   { 4, 16, 3 },  { 16, 24, 4 },  { 24, 34, 5 },  { 34, 40, 8 },  { 40, 42, 9 },  { 42, 44, 10 },
	{ 44, 46, 9 }, { 46, 50, 8 }, { 50, 52, 10 }, { 52, 58, 8 }, { 58, 60, 11 }, { 60, 64, 12 }, { 64, 72, 14 },
	{ 72, 74, 12 }, { 74, 88, 14 },
};

/* Of 3.10, by PEP 626: pairs of how far, and how many lines more; -128: no line. */
static const uint8_t pep_626[] = { 4, 1, 6, 2, 2, 128, 8, 255 };
static const struct span of_pep_626[] = { { 0, 4, 11 }, { 4, 10, 13 }, { 10, 12, 0 }, { 12, 20, 12 }, { 20, 22, 0 } };

static void check(enum opd_python_lines lines, const uint8_t *table, size_t nr_bytes, uint32_t first_line,
		  const struct span *spans, size_t nr_spans)
{
	for (size_t i = 0; i < nr_spans; i++)
		for (uint32_t position = spans[i].start; position < spans[i].end; position += 2)
			assert_int_equal(opd_python_line(lines, table, nr_bytes, first_line, position), spans[i].line);
}

static void test_lines(void **state OP_UNUSED)
{
	check(OPD_PYTHON_LOCATIONS, locations, sizeof(locations), 1, of_locations, op_array_size(of_locations));
	check(OPD_PYTHON_LNOTAB, lnotab, sizeof(lnotab), 1, of_lnotab, op_array_size(of_lnotab));
	check(OPD_PYTHON_PEP_626, pep_626, sizeof(pep_626), 10, of_pep_626, op_array_size(of_pep_626));
}

/* A table that is cut has no line behind its end; any bytes end the reading. */
static void test_damaged_lines(void **state OP_UNUSED)
{
	uint8_t bytes[64];

	assert_int_equal(opd_python_line(OPD_PYTHON_LOCATIONS, locations, 2, 1, 100), 0);
	assert_int_equal(opd_python_line(OPD_PYTHON_LOCATIONS, locations, 0, 1, 0), 0);
	assert_int_equal(opd_python_line(OPD_PYTHON_PEP_626, pep_626, 3, 10, 6), 0);
	srand(1);
	for (size_t round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rand();
		for (enum opd_python_lines lines = OPD_PYTHON_LNOTAB; lines <= OPD_PYTHON_LOCATIONS; lines++)
			(void)opd_python_line(lines, bytes, (size_t)rand() % sizeof(bytes), (uint32_t)rand(),
					      (uint32_t)rand() % 300);
	}
}

static void expect_text(const void *bytes, size_t nr_bytes, uint32_t width, const char *wanted)
{
	struct op_text text = { 0 };

	opd_python_add_string(&text, bytes, nr_bytes, width);
	assert_string_equal(op_text_get(&text), wanted);
	op_text_free(&text);
}

static void test_strings(void **state OP_UNUSED)
{
	static const uint16_t wide[] = { 'a', 0x20ac, 0 };
	static const uint32_t widest[] = { 0x1f40d, 0x110000, 'b' };

	expect_text("name", 4, 0, "name");
	expect_text("caf\xe9", 4, 1, "caf\xc3\xa9");
	expect_text(wide, sizeof(wide), 2, "a\xe2\x82\xac?");
	expect_text(widest, sizeof(widest) - 1, 4, "\xf0\x9f\x90\x8d?");
	expect_text(widest, sizeof(widest), 4, "\xf0\x9f\x90\x8d?b");
}

/* ---- merging ---- */

#define PYTHON 7u /* the image; its loop is at 100 to 200 */
#define OTHER  8u

static struct opd_stack stack;
static char order[64];

/* 'L' is a frame in the loop, 'p' another one of the interpreter, 'x' one of another image. */
static void put_native(const char *frames)
{
	stack.nr_frames = strlen(frames);
	for (size_t i = 0; i < stack.nr_frames; i++)
		stack.frames[i] = (struct opd_resolved){
			.location = { frames[i] == 'x' ? OTHER : PYTHON, (frames[i] == 'L' ? 150 : 300) + (i ? 1 : 0) },
		};
}

/* The leaf first; functions are their numbers. "0|" is one that native code called. */
static void expect_merged(const char *native, const char *calls, const char *wanted)
{
	struct opd_interpreter_stack *runtime = calloc(1, sizeof(*runtime) + strlen(calls) * sizeof(*runtime->calls));
	size_t nr = 0;

	runtime->cookie = PYTHON;
	runtime->loop_start = 100;
	runtime->loop_end = 200;
	for (const char *at = calls; *at; at++) {
		if (*at == '|')
			runtime->calls[runtime->nr_frames - 1].is_entry = true;
		else
			runtime->calls[runtime->nr_frames++] =
				(struct opd_interpreter_call){ .name = (uint32_t)(*at - '0'), .line = 40 };
	}
	put_native(native);
	opd_stack_merge(&stack, runtime);
	for (size_t i = 0; i < stack.nr_frames; i++) {
		const struct opd_resolved *frame = &stack.frames[i];
		bool is_loop = frame->location.offset < 200;

		if (frame->runtime_name)
			assert_int_equal(frame->location.offset, 40);
		order[nr++] = frame->runtime_name ? (char)('0' + frame->runtime_name)
			      : frame->location.cookie == OTHER ? 'x'
			      : is_loop ? 'L'
					: 'p';
		/* every frame but the leaf is one behind its call */
		if (!frame->runtime_name)
			assert_int_equal(frame->location.offset, (is_loop ? 150 : 300) + (i ? 1 : 0));
	}
	order[nr] = '\0';
	assert_string_equal(order, wanted);
	free(runtime);
}

static void test_merge(void **state OP_UNUSED)
{
	expect_merged("pLpx", "12|", "p12Lpx");           /* function 1 calls C code */
	expect_merged("Lpx", "12|", "12Lpx");             /* the sample was in the loop itself */
	expect_merged("xLpxLp", "1|23|", "x1Lpx23Lp");    /* native code between two loops */
	expect_merged("xLpxLp", "1|2|3|", "x1Lpx2Lp3");   /* the copy of the stack was too short */
	expect_merged("x", "12|3|", "x123");              /* there is no loop in it */
	expect_merged("xLpLp", "1|", "x1LpLp");           /* a loop whose function is not known */
	expect_merged("xLp", "", "xLp");
	expect_merged("pp", "12|", "12pp"); /* an interpreter of tail calls has no loop */
	expect_merged("xpp", "1|2|", "x12pp");
}

/* ---- layouts ---- */

static struct op_row_word words[OP_ROW_WORDS_MAX];
static struct op_row_table image = { .words = words };

static void set_word(uint32_t word, uint64_t value)
{
	size_t i = 0;

	while (i < image.nr_words && le32toh(words[i].word) != word)
		i++;
	words[i] = (struct op_row_word){ .word = htole32(word), .value = htole64(value) };
	image.nr_words += i == image.nr_words;
}

/* A Python 3.13 with its own offsets, of a build where all are others than in Debian's. */
static const struct {
	uint32_t word;
	uint64_t value;
} own_offsets[] = {
	{ 0, OP_PYTHON_COOKIE }, { 1, 0x030d01f0 }, { 2, 0 }, { 3, 400000 }, { 5, 640 }, { 6, 300000 }, { 9, 7400 }, { 19, 800 },
	{ 21, 16 }, { 23, 80 }, { 24, 160 }, { 28, 112 }, { 29, 16 }, { 30, 8 }, { 31, 64 }, { 33, 78 }, { 34, 300 }, { 35, 120 },
	{ 37, 136 }, { 38, 144 }, { 39, 76 }, { 43, 208 }, { 65, 16 }, { 66, 32 }, { 68, 32 }, { 69, 16 }, { 70, 48 },
};

static void make_image(void)
{
	image.nr_words = 0;
	set_word(OP_WORD_PYTHON_VERSION, 0x030d01f0);
	for (size_t i = 0; i < op_array_size(own_offsets); i++)
		set_word(OP_WORD_PYTHON_OFFSETS + own_offsets[i].word, own_offsets[i].value);
}

static struct opd_python_layout layout_of(void)
{
	struct opd_python_layout layout;
	enum opd_python_lines lines;
	const char *why;

	assert_true(opd_python_layout(&image, &layout, &lines, &why));
	assert_int_equal(lines, OPD_PYTHON_LOCATIONS);
	return layout;
}

static void own_offsets_of_python(void **state OP_UNUSED)
{
	struct opd_python_layout layout;

	make_image();
	layout = layout_of();
	assert_int_equal(layout.interpreters, 640);
	assert_int_equal(layout.threads, 7400);
	assert_int_equal(layout.next, 16);
	assert_int_equal(layout.frame, 80);
	assert_int_equal(layout.thread_id, 160);
	assert_int_equal(layout.previous, 16);
	assert_int_equal(layout.code, 8);
	assert_int_equal(layout.instruction, 64);
	assert_int_equal(layout.owner, 78);
	assert_int_equal(layout.file, 120);
	assert_int_equal(layout.name, 136);
	assert_int_equal(layout.table, 144);
	assert_int_equal(layout.first_line, 76);
	assert_int_equal(layout.first_instruction, 208);
	assert_int_equal(layout.ascii, 48);
	assert_int_equal(layout.compact, 64);
	assert_int_equal(layout.frame_bytes, 80);
	assert_int_equal(layout.key, 2164); /* it is not among them */
}

/* With one value that cannot be, and where one is missing, opd's own table holds. */
static void forged_offsets_of_python(void **state OP_UNUSED)
{
	static const uint64_t wild[] = { 1, 5, (4u << 20) + 8, UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX - 7, UINT64_MAX };
	struct opd_python_layout of_table;

	image.nr_words = 0;
	set_word(OP_WORD_PYTHON_VERSION, 0x030d01f0);
	of_table = layout_of();
	for (size_t i = 1; i < op_array_size(own_offsets); i++) {
		if (own_offsets[i].word == 2)
			continue;
		for (size_t k = 0; k < op_array_size(wild); k++) {
			struct opd_python_layout layout;
			bool is_possible = own_offsets[i].word == 33 && wild[k] < 112; /* a byte */

			make_image();
			set_word(OP_WORD_PYTHON_OFFSETS + own_offsets[i].word, wild[k]);
			layout = layout_of();
			if (!is_possible)
				assert_memory_equal(&layout, &of_table, sizeof(layout));
		}
		make_image();
		set_word(OP_WORD_PYTHON_OFFSETS + own_offsets[i].word, own_offsets[i].value);
		words[i + 1].word = htole32(1u << 20); /* it is missing */
		assert_int_equal(layout_of().interpreters, of_table.interpreters);
	}
}

static void refused_pythons(void **state OP_UNUSED)
{
	struct opd_python_layout layout;
	enum opd_python_lines lines;
	const char *why = NULL;

	make_image();
	set_word(OP_WORD_PYTHON_OFFSETS + 2, 1);
	assert_false(opd_python_layout(&image, &layout, &lines, &why));
	assert_string_equal(why, "it is a free-threaded build");
	make_image();
	set_word(OP_WORD_MUSL, 1);
	assert_false(opd_python_layout(&image, &layout, &lines, &why));
	assert_string_equal(why, "its C library is musl");
	make_image();
	set_word(OP_WORD_PYTHON_VERSION, 0x030f00a0);
	assert_false(opd_python_layout(&image, &layout, &lines, &why));
	assert_string_equal(why, "it is newer than Python 3.14");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(own_offsets_of_python),
		cmocka_unit_test(forged_offsets_of_python),
		cmocka_unit_test(refused_pythons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
