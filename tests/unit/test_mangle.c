/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libop/odb/mangle.h"

#define REGION "1234.0x7ffc00001000.0x7ffc00003000"

static const struct {
	const char *path;
	struct op_sample_name name;
} sound[] = {
	{ "{root}/usr/bin/ls/{dep}/{root}/usr/bin/ls/TIMER.0.0.all.all.all",
	  { { OP_IMAGE_FILE, "/usr/bin/ls", 0, 0, 0 },
	    { OP_IMAGE_FILE, "/usr/bin/ls", 0, 0, 0 },
	    { 0 },
	    false,
	    "TIMER",
	    0,
	    0,
	    -1,
	    -1,
	    -1 } },
	{ "{root}/a b,c:d.(e)/{dep}/{kern}/no-vmlinux/CYCLES.100000.65.12.13.3",
	  { { OP_IMAGE_FILE, "/a b,c:d.(e)", 0, 0, 0 },
	    { OP_IMAGE_KERNEL, "no-vmlinux", 0, 0, 0 },
	    { 0 },
	    false,
	    "CYCLES",
	    100000,
	    65,
	    12,
	    13,
	    3 } },
	{ "{root}/bin/x/{dep}/{anon:[vdso]}/" REGION "/TIMER.1000000.0.all.all.all",
	  { { OP_IMAGE_FILE, "/bin/x", 0, 0, 0 },
	    { OP_IMAGE_ANON, "[vdso]", 1234, 0x7ffc00001000, 0x7ffc00003000 },
	    { 0 },
	    false,
	    "TIMER",
	    1000000,
	    0,
	    -1,
	    -1,
	    -1 } },
	{ "{kern}/ext4/{dep}/{kern}/ext4/{cg}/{root}/vmlinux/TIMER.0.0.all.all.all",
	  { { OP_IMAGE_KERNEL, "ext4", 0, 0, 0 },
	    { OP_IMAGE_KERNEL, "ext4", 0, 0, 0 },
	    { OP_IMAGE_FILE, "/vmlinux", 0, 0, 0 },
	    true,
	    "TIMER",
	    0,
	    0,
	    -1,
	    -1,
	    -1 } },
};

static void assert_image(const struct op_image_name *a, const struct op_image_name *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->tgid, b->tgid);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
}

static void assert_name(const struct op_sample_name *a, const struct op_sample_name *b)
{
	assert_image(&a->app, &b->app);
	assert_image(&a->image, &b->image);
	assert_int_equal(a->has_callee, b->has_callee);
	if (a->has_callee)
		assert_image(&a->callee, &b->callee);
	assert_string_equal(a->event, b->event);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->unit_mask, b->unit_mask);
	assert_int_equal(a->tgid, b->tgid);
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(a->cpu, b->cpu);
}

static void test_both_ways(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(sound); i++) {
		struct op_text path = { 0 };
		struct op_sample_name name;
		char *storage;

		op_mangle(&sound[i].name, &path);
		assert_string_equal(op_text_get(&path), sound[i].path);
		assert_int_equal(op_unmangle(sound[i].path, &name, &storage, NULL), 0);
		assert_name(&name, &sound[i].name);
		free(storage);
		op_text_free(&path);
	}
}

static void test_reader_is_tolerant(void **state OP_UNUSED)
{
	struct op_sample_name name;
	char *storage;

	assert_int_equal(op_unmangle("{root}//usr//bin/ls/{dep}/{root}//lib/x/EV.1.0x41.all.all.all", &name, &storage, NULL), 0);
	assert_string_equal(name.app.name, "/usr/bin/ls");
	assert_string_equal(name.image.name, "/lib/x");
	assert_int_equal(name.unit_mask, 0x41);
	free(storage);
}

static const char *const bad[] = {
	"",
	"/",
	"foo",
	"{root}",
	"{root}/",
	"{dep}",
	"{root}/{dep}/{root}/x/TIMER.0.0.all.all.all",
	"{root}/foo.txt",
	"{root}/usr/bin/ls/TIMER.0.0.all.all.all",
	"{other}/x/{dep}/{root}/x/TIMER.0.0.all.all.all",
	"{anon:x}/1.0x1.0x2/{dep}/{root}/x/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{kern}/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{kern}/a/b/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/usr/x/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{root}/x/{cg}/x/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.all.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0..all.all.all",
	"{root}/x/{dep}/{root}/x/.0.0.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.all.all.",
	"{root}/x/{dep}/{root}/x/TIMER.-1.0.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.1x.0.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.4294967296.all.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.-5.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.2147483648.all.all",
	"{root}/x/{dep}/{root}/x/TIMER.0.0.all.All.all",
	"{root}/x/{dep}/{root}/x/.swp",
	"{root}/x/{dep}/{anon:x}/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{anon:x/1.0x1.0x2/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{anon:x}/1.0x1/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{anon:x}/1.0x1.zz/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{anon:x}/-1.0x1.0x2/TIMER.0.0.all.all.all",
	"{root}/x/{dep}/{anon:x}/1.0x1.0x10000000000000000/TIMER.0.0.all.all.all",
};

static void test_foreign_names(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(bad); i++) {
		struct op_sample_name name;
		const char *why = NULL;
		char *storage = NULL;
		int err = op_unmangle(bad[i], &name, &storage, &why);

		if (err != -EINVAL)
			fail_msg("%s: %d", bad[i], err);
		assert_null(storage);
		assert_non_null(why);
	}
}

static void assert_written(const struct op_sample_name *name, const char *expected)
{
	struct op_text path = { 0 };

	op_mangle(name, &path);
	assert_string_equal(op_text_get(&path), expected);
	op_text_free(&path);
}

/* memfd_create(2) lets any process choose a mapping's name, slashes and dots included. */
static void test_names_stay_below_the_session(void **state OP_UNUSED)
{
	struct op_sample_name name = { .app = { .kind = OP_IMAGE_FILE, .name = "/memfd:a/../../.././x" },
				       .image = { .kind = OP_IMAGE_KERNEL, .name = "../y" },
				       .event = "TIMER",
				       .tgid = -1,
				       .tid = -1,
				       .cpu = -1 };

	assert_written(&name, "{root}/memfd:a/{..}/{..}/{..}/{.}/x/{dep}/{kern}/.._y/TIMER.0.0.all.all.all");
	name.app = (struct op_image_name){ .kind = OP_IMAGE_KERNEL, .name = ".." };
	name.image = (struct op_image_name){ .kind = OP_IMAGE_ANON, .name = "a/../b", .tgid = 1, .start = 2, .end = 3 };
	assert_written(&name, "{kern}/{..}/{dep}/{anon:a_.._b}/1.0x2.0x3/TIMER.0.0.all.all.all");
	name.image = (struct op_image_name){ .kind = OP_IMAGE_FILE, .name = "/x/{dep}/{cg}/y" };
	assert_written(&name, "{kern}/{..}/{dep}/{root}/x/{{dep}}/{{cg}}/y/TIMER.0.0.all.all.all");
}

/*
 * The kernel reports "/" for a file whose mount was removed. A recording of another machine may
 * have "" or ".".
 */
static void test_names_without_a_component(void **state OP_UNUSED)
{
	static const char *const names[] = { "/", "//", "////", "", "/(no path)", "/(no path)/" };
	struct op_sample_name name = { .event = "TIMER", .tgid = -1, .tid = -2, .cpu = INT32_MIN };

	for (size_t i = 0; i < op_array_size(names); i++) {
		name.app.name = name.image.name = names[i];
		assert_written(&name, "{root}/(no path)/{dep}/{root}/(no path)/TIMER.0.0.all.all.all");
	}
	name.image = (struct op_image_name){ .kind = OP_IMAGE_KERNEL, .name = "" };
	assert_written(&name, "{root}/(no path)/{dep}/{kern}/{}/TIMER.0.0.all.all.all");
	name.image = (struct op_image_name){ .kind = OP_IMAGE_ANON, .name = "x", .tgid = -2, .start = 1, .end = 2 };
	assert_written(&name, "{root}/(no path)/{dep}/{anon:x}/2147483646.0x1.0x2/TIMER.0.0.all.all.all");
}

#define ODD_NAMES  20000
#define ODD_PARTS  6
#define ODD_BYTES  64

static const char *const odd_parts[] = { "/",
					 ".",
					 "..",
					 "{dep}",
					 "{cg}",
					 "{root}",
					 "{kern}",
					 "{anon:x}",
					 "{",
					 "}",
					 "{.}",
					 "{}",
					 "a",
					 ".jo",
					 "x.1",
					 " ",
					 "\n",
					 "\xff",
					 "TIMER.0.0.all.all.all",
					 "//" };

static void make_odd(unsigned int *seed, char odd[ODD_BYTES * ODD_PARTS])
{
	odd[0] = '\0';
	for (int nr = rand_r(seed) % ODD_PARTS; nr > 0; nr--) {
		size_t at = strlen(odd);

		snprintf(odd + at, ODD_BYTES, "%s", odd_parts[(size_t)rand_r(seed) % op_array_size(odd_parts)]);
	}
}

static void make_odd_image(unsigned int *seed, char odd[ODD_BYTES * ODD_PARTS], struct op_image_name *image)
{
	make_odd(seed, odd);
	*image = (struct op_image_name){ .kind = rand_r(seed) % 2 ? OP_IMAGE_FILE : OP_IMAGE_KERNEL, .name = odd };
}

/*
 * Any name gives the path of a sample file that reads back as the same name and stays below the
 * session.
 */
static void test_any_name_is_read_again(void **state OP_UNUSED)
{
	unsigned int seed = 1;

	for (unsigned int i = 0; i < ODD_NAMES; i++) {
		char app[ODD_BYTES * ODD_PARTS], image[ODD_BYTES * ODD_PARTS], callee[ODD_BYTES * ODD_PARTS], *storage, *part,
			*rest;
		struct op_sample_name name = { .event = "TIMER", .tgid = -1, .tid = 5, .cpu = 0, .has_callee = i % 2 }, again;
		struct op_text path = { 0 };

		make_odd_image(&seed, app, &name.app);
		make_odd_image(&seed, image, &name.image);
		make_odd_image(&seed, callee, &name.callee);
		op_mangle(&name, &path);
		if (op_unmangle(op_text_get(&path), &again, &storage, NULL))
			fail_msg("%s", op_text_get(&path));
		assert_int_equal(again.app.kind, name.app.kind);
		assert_int_equal(again.image.kind, name.image.kind);
		assert_int_equal(again.has_callee, name.has_callee);
		assert_written(&again, op_text_get(&path));
		rest = path.data;
		while ((part = strsep(&rest, "/")))
			assert_true(*part && strcmp(part, ".") != 0 && strcmp(part, "..") != 0);
		free(storage);
		op_text_free(&path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_reader_is_tolerant),
		cmocka_unit_test(test_foreign_names),
		cmocka_unit_test(test_names_stay_below_the_session),
		cmocka_unit_test(test_names_without_a_component),
		cmocka_unit_test(test_any_name_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
