/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/unit/sample_writer.h"
#include "tools/symbols/image_identity.h"
#include "tools/symbols/image_path.h"
#include "tests/unit/test_box.h"

static char directory[BOX_PATH_BYTES];
static char *search_dirs[1];
static int dir_fd;

static const char *const files[] = {
	"root/bin/app",   "search/a/lib.so",      "search/my-mod.ko",           "search/twice",
	"search/a/twice", "search/deep/er/plain", "root/bin/literal (inode 7)",
	"root/proc/kallsyms", "root/boot/vmlinux", "search/xz-mod.ko.xz", "search/a/gz,mod.ko.gz",
	"search/zst_mod.ko.zst", "search/other.ko.bz2",
};

static int image_files_setup(void **state OP_UNUSED)
{
	dir_fd = box_make_open(directory);
	if (dir_fd < 0 || asprintf(&search_dirs[0], "%s/search", directory) < 0)
		return -1;
	for (size_t i = 0; i < op_array_size(files); i++)
		sample_write_bytes(dir_fd, files[i], "x", 1);
	return 0;
}

static int image_files_teardown(void **state OP_UNUSED)
{
	static const char *const dirs[] = { "root/bin", "root/proc",      "root/boot",   "root/sys/kernel", "root/sys",
					    "root",     "search/deep/er", "search/deep", "search/a",        "search" };

	for (size_t i = 0; i < op_array_size(files); i++)
		unlinkat(dir_fd, files[i], 0);
	for (size_t i = 0; i < op_array_size(dirs); i++)
		unlinkat(dir_fd, dirs[i], AT_REMOVEDIR);
	close(dir_fd);
	free(search_dirs[0]);
	return rmdir(directory);
}

static const struct {
	enum op_image_kind kind;
	const char *name, *shown; /* in the file name, in reports */
	enum opr_image_state state;
	const char *path; /* below the directory */
} cases[] = {
	{ OP_IMAGE_FILE, "/bin/app", "/bin/app", OPR_IMAGE_FOUND, "/root/bin/app" },
	{ OP_IMAGE_FILE, "/usr/lib/lib.so", "/usr/lib/lib.so", OPR_IMAGE_FOUND, "/search/a/lib.so" },
	{ OP_IMAGE_FILE, "/x/nothing", "/x/nothing", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_FILE, "/x/twice", "/x/twice", OPR_IMAGE_AMBIGUOUS, NULL },
	{ OP_IMAGE_FILE, "/bin", "/bin", OPR_IMAGE_FOUND, "/root/bin" },
	{ OP_IMAGE_KERNEL, "my_mod", "/my_mod", OPR_IMAGE_FOUND, "/search/my-mod.ko" },
	{ OP_IMAGE_KERNEL, "xz_mod", "/xz_mod", OPR_IMAGE_FOUND, "/search/xz-mod.ko.xz" },
	{ OP_IMAGE_KERNEL, "gz_mod", "/gz_mod", OPR_IMAGE_FOUND, "/search/a/gz,mod.ko.gz" },
	{ OP_IMAGE_KERNEL, "zst_mod", "/zst_mod", OPR_IMAGE_FOUND, "/search/zst_mod.ko.zst" },
	{ OP_IMAGE_KERNEL, "other", "/other", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_KERNEL, "plain", "/plain", OPR_IMAGE_FOUND, "/search/deep/er/plain" },
	{ OP_IMAGE_KERNEL, "my", "/my", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_KERNEL, "my_module", "/my_module", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_KERNEL, "no-vmlinux", "/no-vmlinux", OPR_IMAGE_HAS_NO_FILE, NULL },
	{ OP_IMAGE_KERNEL, "no-mapping", "/no-mapping", OPR_IMAGE_HAS_NO_FILE, NULL },
	{ OP_IMAGE_FILE, "/no-mapping", "/no-mapping", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_FILE, "/bin/app (inode 1)", "/bin/app (inode 1)", OPR_IMAGE_REPLACED, NULL },
	{ OP_IMAGE_FILE, "/bin/app (inode 0)", "/bin/app (inode 0)", OPR_IMAGE_FOUND, "/root/bin/app" },
	{ OP_IMAGE_FILE, "/bin/gone (inode 1)", "/bin/gone (inode 1)", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_FILE, "/x/lib.so (inode 0)", "/x/lib.so (inode 0)", OPR_IMAGE_NOT_FOUND, NULL },
	{ OP_IMAGE_FILE, "/bin/literal (inode 7)", "/bin/literal (inode 7)", OPR_IMAGE_FOUND, "/root/bin/literal (inode 7)" },
	{ OP_IMAGE_FILE, "/bin/app (build-id 0123456789ab)", "/bin/app (build-id 0123456789ab)", OPR_IMAGE_REPLACED, NULL },
	{ OP_IMAGE_ANON, "[heap]", "[heap] (tgid:1 range:0x1-0x2)", OPR_IMAGE_HAS_NO_FILE, NULL },
};

static void check_case(struct opr_finder *finder, size_t i)
{
	const struct op_image_name image = { .kind = cases[i].kind, .name = cases[i].name };
	const struct opr_identity identity = opr_identity_of(cases[i].shown);
	enum opr_image_state found_state;
	char *path = NULL;

	assert_int_equal(opr_finder_find(finder, &image, cases[i].shown, &identity, &found_state, &path), 0);
	if (found_state != cases[i].state)
		fail_msg("%s: %d", cases[i].shown, found_state);
	assert_int_equal(path != NULL, cases[i].path != NULL);
	if (path)
		assert_string_equal(path + strlen(directory), cases[i].path);
	free(path);
}

static void test_finding(void **state OP_UNUSED)
{
	const struct opr_words dirs = { .words = search_dirs, .nr_words = 1 };
	struct opr_finder finder = { 0 };
	char *root;

	assert_true(asprintf(&root, "%s/root", directory) > 0);
	assert_int_equal(opr_finder_init(&finder, root, &dirs), 0);
	for (size_t i = 0; i < op_array_size(cases); i++)
		check_case(&finder, i);
	opr_finder_free(&finder);
	free(root);
}

/* What the table of a session says of files whose names say nothing. */
static void test_finding_by_row(void **state OP_UNUSED)
{
	static const struct {
		struct op_dcookie_row row;
		enum opr_image_state state;
	} rows[] = {
		{ { .id = { .inode = 1 } }, OPR_IMAGE_FOUND },
		{ { .id = { .build_id = { 1, 2, 3, 4, 5, 6 }, .build_id_bytes = 6 } }, OPR_IMAGE_REPLACED },
		{ { .id = { .inode = 1 }, .container = "one" }, OPR_IMAGE_REPLACED },
		{ { .id = { .inode = 1 }, .container = "one", .host_path = "/bin/app" }, OPR_IMAGE_FOUND },
	};
	const struct op_image_name image = { .kind = OP_IMAGE_FILE, .name = "/bin/app" };
	struct opr_finder finder = { 0 };
	char *root;

	assert_true(asprintf(&root, "%s/root", directory) > 0);
	assert_int_equal(opr_finder_init(&finder, root, &(struct opr_words){ 0 }), 0);
	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct op_dcookie_row row = rows[i].row;
		struct opr_identity identity;
		enum opr_image_state found;
		char *path = NULL;

		row.name = row.id.name.name = image.name;
		identity = opr_identity_of_row(&row);
		assert_int_equal(opr_finder_find(&finder, &image, image.name, &identity, &found, &path), 0);
		assert_int_equal(found, rows[i].state);
		free(path);
	}
	opr_finder_free(&finder);
	free(root);
}

static void test_search_directory_must_exist(void **state OP_UNUSED)
{
	static char missing[] = "/nothing", file[] = "/proc/version";
	char *words[] = { missing, file };
	struct opr_finder finder = { 0 };

	assert_int_equal(opr_finder_init(&finder, NULL, &(struct opr_words){ .words = words, .nr_words = 1 }), -ENOENT);
	assert_int_equal(opr_finder_init(&finder, NULL, &(struct opr_words){ .words = words + 1, .nr_words = 1 }), -ENOTDIR);
	opr_finder_free(&finder);
}

static void test_identities(void **state OP_UNUSED)
{
	static const struct {
		const char *name, *path;
		enum opr_identity_kind kind;
		uint64_t inode;
	} names[] = {
		{ "/a", "/a", OPR_IDENTITY_NONE, 0 },
		{ "", "", OPR_IDENTITY_NONE, 0 },
		{ "(inode 1)", "(inode 1)", OPR_IDENTITY_NONE, 0 },
		{ "/a (inode 12)", "/a", OPR_IDENTITY_INODE, 12 },
		{ "/a (inode 18446744073709551615)", "/a", OPR_IDENTITY_INODE, UINT64_MAX },
		{ "/a (inode 18446744073709551616)", "/a (inode 18446744073709551616)", OPR_IDENTITY_NONE, 0 },
		{ "/a (inode 0)", "/a", OPR_IDENTITY_UNKNOWN, 0 },
		{ "/a (inode )", "/a (inode )", OPR_IDENTITY_NONE, 0 },
		{ "/a (inode 12) ", "/a (inode 12) ", OPR_IDENTITY_NONE, 0 },
		{ "/a (inode 12", "/a (inode 12", OPR_IDENTITY_NONE, 0 },
		{ "/a(inode 12)", "/a(inode 12)", OPR_IDENTITY_NONE, 0 },
		{ "/a (deleted) (build-id 0123456789ab)", "/a (deleted)", OPR_IDENTITY_BUILD_ID, 0 },
		{ "/a (build-id 0123456789AB)", "/a (build-id 0123456789AB)", OPR_IDENTITY_NONE, 0 },
		{ "/a (build-id 0123456789a)", "/a (build-id 0123456789a)", OPR_IDENTITY_NONE, 0 },
	};

	for (size_t i = 0; i < op_array_size(names); i++) {
		struct opr_identity identity = opr_identity_of(names[i].name);
		char *path = opr_identity_path(names[i].name);

		assert_string_equal(path, names[i].path);
		assert_int_equal(identity.kind, names[i].kind);
		assert_int_equal(identity.inode, names[i].inode);
		free(path);
	}
}

/* A device without a disk may be anybody's, with any inode number. */
static void test_an_inode_is_of_a_device(void **state OP_UNUSED)
{
	const struct {
		dev_t device;
		bool agrees;
	} devices[] = { { 0, true }, { makedev(8, 1), true }, { makedev(0, 4095), false } };
	struct opr_identity identity = { .kind = OPR_IDENTITY_INODE };
	struct stat st;

	assert_int_equal(stat(directory, &st), 0);
	identity.inode = st.st_ino;
	identity.device = st.st_dev;
	assert_true(opr_identity_agrees(&identity, NULL, directory));
	for (size_t i = 0; i < op_array_size(devices); i++) {
		identity.device = devices[i].device;
		assert_int_equal(opr_identity_agrees(&identity, NULL, directory), devices[i].agrees);
	}
	identity.inode++;
	identity.device = st.st_dev;
	assert_false(opr_identity_agrees(&identity, NULL, directory));
}

/* What the row of a session says of a part of the kernel. */
static void expect_kernel(struct opr_finder *finder, enum op_image_kind kind, const char *name, enum opr_image_state state)
{
	const struct op_image_name image = { .kind = kind, .name = name };
	struct op_dcookie_row row = {
		.id = { .name = image, .build_id = { 0xaa }, .build_id_bytes = OP_BUILD_ID_BYTES_MAX, .is_kernel = true },
		.name = name
	};
	const struct opr_identity identity = opr_identity_of_row(&row);
	enum opr_image_state found_state;
	char *path = NULL;

	assert_false(identity.told_apart);
	assert_int_equal(opr_finder_find(finder, &image, name, &identity, &found_state, &path), 0);
	if (found_state != state)
		fail_msg("%s: %d", name, found_state);
	assert_int_equal(path != NULL, state == OPR_IMAGE_FOUND);
	free(path);
}

static void write_notes(uint8_t first)
{
	const uint8_t notes[36] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, first };

	sample_write_bytes(dir_fd, "root/sys/kernel/notes", (const char *)notes, sizeof(notes));
}

/*
 * Names of the kernel and of modules are the same after an upgrade, so only the build-id tells them
 * apart.
 */
static void test_kernel_is_known_by_its_build_id(void **state OP_UNUSED)
{
	const struct opr_words dirs = { .words = search_dirs, .nr_words = 1 };
	struct opr_finder finder = { 0 };
	char *root;

	assert_true(asprintf(&root, "%s/root", directory) > 0);
	assert_int_equal(opr_finder_init(&finder, root, &dirs), 0);
	expect_kernel(&finder, OP_IMAGE_FILE, "/proc/kallsyms", OPR_IMAGE_OTHER_KERNEL);
	write_notes(0xbb);
	expect_kernel(&finder, OP_IMAGE_FILE, "/proc/kallsyms", OPR_IMAGE_OTHER_KERNEL);
	write_notes(0xaa);
	expect_kernel(&finder, OP_IMAGE_FILE, "/proc/kallsyms", OPR_IMAGE_FOUND);
	expect_kernel(&finder, OP_IMAGE_FILE, "/boot/vmlinux", OPR_IMAGE_OTHER_KERNEL);
	expect_kernel(&finder, OP_IMAGE_FILE, "/boot/vmlinux-gone", OPR_IMAGE_NOT_FOUND);
	expect_kernel(&finder, OP_IMAGE_KERNEL, "my_mod", OPR_IMAGE_OTHER_KERNEL);
	expect_kernel(&finder, OP_IMAGE_KERNEL, "other_mod", OPR_IMAGE_NOT_FOUND);
	unlinkat(dir_fd, "root/sys/kernel/notes", 0);
	opr_finder_free(&finder);
	free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_finding_by_row),
		cmocka_unit_test(test_search_directory_must_exist),
		cmocka_unit_test(test_identities),
		cmocka_unit_test(test_an_inode_is_of_a_device),
		cmocka_unit_test(test_kernel_is_known_by_its_build_id),
	};

	return cmocka_run_group_tests(tests, image_files_setup, image_files_teardown);
}
