/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tools/profile/spec.h"

#define MAX_WORDS 4

static const struct op_sample_name sample = {
	.app = { .kind = OP_IMAGE_FILE, .name = "/usr/bin/app" },
	.image = { .kind = OP_IMAGE_FILE, .name = "/usr/lib/libx.so" },
	.event = "CYCLES",
	.count = 100000,
	.unit_mask = 0x41,
	.tgid = 100,
	.tid = 101,
	.cpu = OP_CLASS_ALL,
};

static const struct {
	const char *words[MAX_WORDS];
	bool matches;
} matches[] = {
	{ { NULL }, true },
	{ { "/usr/bin/app" }, true },
	{ { "/usr/lib/libx.so" }, true },
	{ { "app" }, false },
	{ { "*app" }, true },
	{ { "/other", "/usr/lib/*" }, true },
	{ { "image:/usr/bin/app" }, true },
	{ { "image:/usr/lib/libx.so" }, false },
	{ { "lib-image:/usr/lib/libx.so" }, true },
	{ { "lib-image:/usr/bin/app" }, false },
	{ { "image-exclude:/usr/bin/app" }, false },
	{ { "image-exclude:*libx*" }, false },
	{ { "image-exclude:/other" }, true },
	{ { "image:/other,/usr/bin/app" }, true },
	{ { "event:CYCLES" }, true },
	{ { "event:CYCLE" }, false },
	{ { "event:MISSES,CYCLES" }, true },
	{ { "count:100000" }, true },
	{ { "count:10000" }, false },
	{ { "unit-mask:65" }, true },
	{ { "unit-mask:0x41" }, true },
	{ { "unit-mask:41" }, false },
	{ { "tgid:100", "tid:101" }, true },
	{ { "tgid:100", "tid:100" }, false },
	{ { "tid:all" }, true },
	{ { "cpu:0" }, false }, /* not separated by CPU: it has not the samples of one CPU */
	{ { "cpu:all" }, true },
	{ { "event:NOPE", "event:CYCLES" }, true }, /* the last value counts */
	{ { "unitmask:65" }, false },               /* no tag: the name of an image */
};

/* An image that replaced another one matches by both of its names. */
static const struct {
	const char *word;
	bool matches;
} told_apart[] = {
	{ "/usr/bin/app", true },
	{ "/usr/bin/app (build-id 0123456789ab)", true },
	{ "/usr/bin/app (build-id 0123456789ac)", false },
	{ "image:/usr/bin/app", true },
	{ "image:/usr/bin/ap", false },
	{ "image-exclude:/usr/bin/app", false },
	{ "lib-image:/usr/lib/libx.so", true },
	{ "image-exclude:/usr/lib/libx.so", false },
	{ "*.so", true },
};

static size_t count_words(const char *const words[])
{
	size_t nr_words = 0;

	while (nr_words < MAX_WORDS && words[nr_words])
		nr_words++;
	return nr_words;
}

static bool matches_file(const struct opr_spec *spec, const char *app, const char *image)
{
	return opr_spec_match(spec, &sample) && opr_spec_match_images(spec, app, NULL, image);
}

static void test_matching(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(matches); i++) {
		struct opr_spec spec = { 0 };

		assert_int_equal(opr_spec_parse(&spec, matches[i].words, count_words(matches[i].words)), 0);
		if (matches_file(&spec, "/usr/bin/app", "/usr/lib/libx.so") != matches[i].matches)
			fail_msg("%s", matches[i].words[0] ? matches[i].words[0] : "no words");
		opr_spec_free(&spec);
	}
}

static void test_told_apart(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(told_apart); i++) {
		struct opr_spec spec = { 0 };

		assert_int_equal(opr_spec_parse(&spec, &told_apart[i].word, 1), 0);
		if (matches_file(&spec, "/usr/bin/app (build-id 0123456789ab)", "/usr/lib/libx.so (inode 7)") !=
		    told_apart[i].matches)
			fail_msg("%s", told_apart[i].word);
		opr_spec_free(&spec);
	}
}

static void test_errors(void **state OP_UNUSED)
{
	static const char *const bad[][MAX_WORDS] = {
		{ "count:x" },
		{ "count:" },
		{ "tid:-1" },
		{ "cpu:1,x" },
		{ "count:0x10" },
		{ "unit-mask:" },
		{ "unit-mask:0xg" },
		{ "event:A", "event:A" },
		{ "archive:" },
		{ "session:" },
	};

	for (size_t i = 0; i < op_array_size(bad); i++) {
		struct opr_spec spec = { 0 };

		if (opr_spec_parse(&spec, bad[i], count_words(bad[i])) != -EINVAL)
			fail_msg("%s", bad[i][0]);
		opr_spec_free(&spec);
	}
}

static void test_blocks(void **state OP_UNUSED)
{
	static char x[] = "x", y[] = "y", a[] = "a", b[] = "b", c[] = "c", open[] = "{", close[] = "}", empty[] = "{}";
	static const struct {
		char *words[8];
		size_t nr_all;
		int err;
		bool differential;
		size_t nr_words[2];
		const char *last[2];
	} cases[] = {
		{ { a, b }, 2, 0, false, { 2, 2 }, { "b", "b" } },
		{ { open, a, close, open, b, c, close }, 7, 0, true, { 1, 2 }, { "a", "c" } },
		{ { x, open, a, close, y, empty }, 6, 0, true, { 3, 2 }, { "a", "y" } },
		{ { empty, empty, x }, 3, 0, true, { 1, 1 }, { "x", "x" } },
		{ { empty, empty }, 2, 0, false, { 0, 0 }, { NULL, NULL } },
		{ { empty, open, a, close }, 4, -EINVAL, false, { 0 }, { NULL } },
		{ { open, a, close }, 3, -EINVAL, false, { 0 }, { NULL } },
		{ { a, close }, 2, -EINVAL, false, { 0 }, { NULL } },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		char *given[8];
		struct opr_spec_words split = { 0 };
		struct opr_words words = { .words = given, .nr_words = cases[i].nr_all };

		memcpy(given, cases[i].words, sizeof(given));
		assert_int_equal(opr_spec_words_split(&split, &words), cases[i].err);
		assert_int_equal(split.differential, cases[i].differential);
		for (size_t side = 0; side < 2; side++) {
			const char *last = cases[i].last[side];

			assert_int_equal(split.sides[side].nr_words, cases[i].nr_words[side]);
			if (last)
				assert_string_equal(split.sides[side].words[cases[i].nr_words[side] - 1], last);
		}
		opr_spec_words_free(&split);
	}
}

static void test_sessions(void **state OP_UNUSED)
{
	static const char *const words[] = { "session:old,./x\\,y", "session-exclude:b" };
	struct opr_spec spec = { 0 };

	assert_int_equal(opr_spec_parse(&spec, NULL, 0), 0);
	assert_int_equal(spec.sessions.nr_words, 1);
	assert_string_equal(spec.sessions.words[0], "current");
	opr_spec_free(&spec);
	spec = (struct opr_spec){ 0 };
	assert_int_equal(opr_spec_parse(&spec, words, 2), 0);
	assert_int_equal(spec.sessions.nr_words, 2);
	assert_string_equal(spec.sessions.words[0], "old");
	assert_string_equal(spec.sessions.words[1], "./x,y");
	assert_true(opr_words_have(&spec.session_exclude, "b"));
	opr_spec_free(&spec);
}

/* An existing path matches as it was written and by the file that it leads to. */
static void test_links(void **state OP_UNUSED)
{
	static const char *const words[] = { "/proc/self/exe" };
	struct opr_spec spec = { 0 };
	char *real = realpath(words[0], NULL);

	assert_non_null(real);
	assert_int_equal(opr_spec_parse(&spec, words, 1), 0);
	assert_true(matches_file(&spec, real, "/x"));
	assert_true(matches_file(&spec, "/proc/self/exe", "/x"));
	opr_spec_free(&spec);
	free(real);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matching), cmocka_unit_test(test_told_apart), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_blocks),   cmocka_unit_test(test_sessions),   cmocka_unit_test(test_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
