/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file that is replaced between two looks at its path: every answer is that of one file. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#include "libop/base/sys.h"
#include "libop/process/lock.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/leftovers.h"
#include "tools/common/output.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/elf/module_file.h"
#include "tools/profile/image_list.h"
#include "tools/symbols/parallel_read.h"
#include "tools/symbols/symbol_sources.h"
#include "tests/unit/test_box.h"

#define PATH_BYTES (BOX_PATH_BYTES + 16)

/* What the test looks for in its own program. */
int test_replaced_landmark(void);

int __attribute__((noinline)) test_replaced_landmark(void)
{
	return 1;
}

static void change_file(const char *dir, const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static const char *replaced; /* the path, and another file that takes it */
static char replacement[PATH_BYTES];
static bool is_early; /* before the file is opened, else once it was opened */

static void replace_now(void)
{
	if (replaced)
		assert_int_equal(rename(replacement, replaced), 0);
	replaced = NULL;
}

bool __real_opr_module_is_packed(const char *path);
bool __wrap_opr_module_is_packed(const char *path);

bool __wrap_opr_module_is_packed(const char *path)
{
	if (replaced && is_early && !strcmp(path, replaced))
		replace_now();
	return __real_opr_module_is_packed(path);
}

bool __real_opr_bfd_has_debug_info(bfd *abfd);
bool __wrap_opr_bfd_has_debug_info(bfd *abfd);

bool __wrap_opr_bfd_has_debug_info(bfd *abfd)
{
	if (replaced && !is_early && !strcmp(bfd_get_filename(abfd), replaced))
		replace_now();
	return __real_opr_bfd_has_debug_info(abfd);
}

asymbol **__real_opr_bfd_read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged);
asymbol **__wrap_opr_bfd_read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged);

asymbol **__wrap_opr_bfd_read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged)
{
	if (replaced && !is_early && !strcmp(bfd_get_filename(abfd), replaced))
		replace_now();
	return __real_opr_bfd_read_table(abfd, ret_nr_symbols, is_damaged);
}

static void make_image(char dir[BOX_PATH_BYTES], char image[PATH_BYTES])
{
	char command[64];

	assert_int_equal(box_make(dir), 0);
	snprintf(image, PATH_BYTES, "%s/image", dir);
	snprintf(command, sizeof(command), "cp /proc/%d/exe image", (int)getpid());
	change_file(dir, command);
}

/* A FIFO that takes the place of an image in the last moment keeps nobody waiting. */
static void test_fifo_in_last_moment(void **state)
{
	char dir[BOX_PATH_BYTES], image[PATH_BYTES];

	(void)state;
	make_image(dir, image);
	snprintf(replacement, sizeof(replacement), "%s/fifo", dir);
	assert_int_equal(mkfifo(replacement, 0644), 0);
	replaced = image;
	is_early = true;
	alarm(60);
	assert_null(opr_bfd_open(image));
	alarm(0);
	assert_null(replaced);
	change_file(dir, "rm -r ./*");
	assert_int_equal(rmdir(dir), 0);
}

/*
 * The debug file is replaced as soon as it was opened: its symbols, its lines, and what the cache
 * keeps of it are those of the file that was opened.
 */
static void test_debug_file_that_is_replaced(void **state)
{
	char dir[BOX_PATH_BYTES], image[PATH_BYTES], debug[PATH_BYTES];
	struct opr_symbols symbols = { 0 };
	const struct opr_symbol_options options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL };
	struct opr_lines *lines = NULL;
	const char *file;
	unsigned int line;
	uint64_t vma = 0;
	struct stat st;

	(void)state;
	make_image(dir, image);
	change_file(dir, "objcopy --only-keep-debug image debug && strip image && objcopy --add-gnu-debuglink=debug image");
	snprintf(debug, sizeof(debug), "%s/debug", dir);
	snprintf(replacement, sizeof(replacement), "%s/other", dir);
	is_early = false;

	change_file(dir, "cp debug whole && echo none >other");
	assert_int_equal(stat(debug, &st), 0);
	replaced = debug;
	assert_int_equal(opr_symbols_read_bfd(&symbols, image, image, &options), 0);
	assert_null(replaced);
	assert_string_equal(symbols.debug_path, debug);
	assert_int_equal(symbols.debug_size, st.st_size);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (!strcmp(symbols.symbols[i].name, "test_replaced_landmark"))
			vma = symbols.symbols[i].vma;
	assert_int_not_equal(vma, 0);
	opr_symbols_free(&symbols);

	change_file(dir, "cp whole debug && echo none >other");
	replaced = debug;
	assert_int_equal(opr_lines_open(image, image, NULL, NULL, &lines), 0);
	assert_null(replaced);
	assert_true(opr_lines_find(lines, vma, &file, &line));
	assert_non_null(strstr(file, "test_replaced_files.c"));
	opr_lines_close(lines);
	change_file(dir, "rm -r ./*");
	assert_int_equal(rmdir(dir), 0);
}

/* ---- a new directory ---- */

/* A new directory of this name is replaced by a link at once; NULL: none. */
static const char *replaced_dir;
static char link_target[PATH_BYTES];

int __real_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode);
int __wrap_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode);

int __wrap_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	int err = __real_op_sys_mkdirat(dir_fd, path, mode);
	const char *slash = strrchr(path, '/');

	if (!err && replaced_dir && !strcmp(slash ? slash + 1 : path, replaced_dir)) {
		assert_int_equal(unlinkat(dir_fd, path, AT_REMOVEDIR), 0);
		assert_int_equal(symlinkat(link_target, dir_fd, path), 0);
	}
	return err;
}

/* The owner of a directory puts a link to another file where a directory has just been made. */
static void test_new_directory_that_is_replaced(void **state OP_UNUSED)
{
	static const char *const names[] = { "session", "samples", "current" };
	char directory[BOX_PATH_BYTES], session_dir[PATH_BYTES], command[2 * PATH_BYTES + 32];
	struct stat st;
	int opened;

	for (size_t i = 0; i < op_array_size(names); i++) {
		assert_int_equal(box_make(directory), 0);
		snprintf(session_dir, sizeof(session_dir), "%s/session", directory);
		snprintf(link_target, sizeof(link_target), "%s/secret", directory);
		snprintf(command, sizeof(command), "touch %s && chmod 600 %s", link_target, link_target);
		assert_int_equal(system(command), 0);
		replaced_dir = names[i];
		opened = op_session_open(session_dir);
		replaced_dir = NULL;
		assert_true(opened < 0);
		assert_int_equal(stat(link_target, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(st.st_uid, geteuid());
		assert_int_equal(box_remove(directory), 0);
	}
}

/* ---- the cache ---- */

static bool has_symbol(const char *image, const char *name)
{
	struct opr_symbols symbols = { 0 };
	struct opr_symbol_job job = { .path = image,
				      .name = image,
				      .options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL },
				      .symbols = &symbols };
	bool has_it = false;

	assert_int_equal(opr_symbol_jobs_run(&job, 1), 0);
	assert_int_equal(job.err, 0);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		has_it |= !strcmp(symbols.symbols[i].name, name);
	opr_symbols_free(&symbols);
	return has_it;
}

/*
 * A user's path leads to a program of root's, and beside that path lies a debug file of the user's,
 * or one that others may write. Its names are not kept for the program.
 */
static void test_cache_of_strangers_debug_file(void **state)
{
	static const struct {
		uid_t owner;
		mode_t mode;
		bool is_believed;
	} strangers[] = { { 65534, 0644, false }, { 0, 0664, true }, { 0, 0646, true } };
	char dir[BOX_PATH_BYTES], image[PATH_BYTES], path[PATH_BYTES], debug[PATH_BYTES];

	(void)state;
	if (geteuid())
		skip();
	make_image(dir, image);
	change_file(dir, "chmod 755 image && mkdir evil && objcopy --only-keep-debug image d");
	change_file(dir, "sed s/test_replaced_landmark/test_replaced_lordship/g d >evil/d");
	change_file(dir, "strip image && objcopy --add-gnu-debuglink=evil/d image && ln -s ../image evil/image");
	snprintf(path, sizeof(path), "%s/evil/image", dir);
	snprintf(debug, sizeof(debug), "%s/evil/d", dir);
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	for (size_t i = 0; i < op_array_size(strangers); i++) {
		assert_int_equal(chown(debug, strangers[i].owner, 0), 0);
		assert_int_equal(chmod(debug, strangers[i].mode), 0);
		assert_int_equal(has_symbol(path, "test_replaced_lordship"), strangers[i].is_believed);
		assert_false(has_symbol(image, "test_replaced_lordship"));
	}
	setenv("OPD_CACHE_DIR", "", 1);
	change_file(dir, "rm -r ./*");
	assert_int_equal(rmdir(dir), 0);
}

/* ---- an image that is replaced during a report ---- */

/* `other` has the same code, and another build-id, in digits[12]. */
static void make_other(const char *dir, const char *image, char digits[OP_BUILD_ID_DIGITS])
{
	struct stat st;

	assert_int_equal(opr_elf_build_id(image, digits, &st), 0);
	change_file(dir, "readelf -S -W image | sed -n 's/.*note.gnu.build-id *NOTE *[0-9a-f]* \\([0-9a-f]*\\).*/\\1/p' >at && "
			 "cp image other && printf OTHER | dd of=other bs=1 seek=$((0x$(cat at) + 16)) conv=notrunc status=none");
}

static struct opr_image *load_image(struct opr_image_cache *cache, struct opr_finder *finder, const char *name,
				    const struct op_image_name *image_name)
{
	static const struct opr_profile profile;
	static const struct opr_naming naming = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL };
	const struct opr_words nowhere = { 0 };
	const struct opr_named_image list = { name, image_name };
	struct opr_image *image;

	assert_int_equal(opr_finder_init(finder, NULL, &nowhere), 0);
	assert_int_equal(opr_image_cache_init_list(cache, &profile, finder, &naming, &list, 1), 0);
	image = opr_image_cache_find(cache, name);
	assert_non_null(image);
	assert_int_equal(image->state, OPR_IMAGE_FOUND);
	replace_now();
	assert_int_equal(opr_image_cache_read(cache), 0);
	assert_int_equal(opr_image_load(cache, image), 0);
	return image;
}

/* Its build-id was the one of the samples when it was found: the names are of another file. */
static void test_image_of_another_build_id(void **state OP_UNUSED)
{
	char dir[BOX_PATH_BYTES], path[PATH_BYTES], digits[OP_BUILD_ID_DIGITS], name[PATH_BYTES + 32];

	make_image(dir, path);
	make_other(dir, path, digits);
	snprintf(name, sizeof(name), "%s (build-id %.12s)", path, digits);
	snprintf(replacement, sizeof(replacement), "%s/other", dir);
	for (int is_replaced = 0; is_replaced <= 1; is_replaced++) {
		const struct op_image_name image_name = { .kind = OP_IMAGE_FILE, .name = name };
		struct opr_image_cache cache = { 0 };
		struct opr_finder finder = { 0 };
		const struct opr_image *image;

		replaced = is_replaced ? path : NULL;
		image = load_image(&cache, &finder, name, &image_name);
		assert_int_equal(image->is_object, !is_replaced);
		assert_int_equal(image->symbols.nr_symbols > 0, !is_replaced);
		assert_int_equal(image->state, is_replaced ? OPR_IMAGE_REPLACED : OPR_IMAGE_FOUND);
		opr_image_cache_free(&cache);
		opr_finder_free(&finder);
	}
	change_file(dir, "rm -r ./*");
	assert_int_equal(rmdir(dir), 0);
}

/* Lines and code are of the file whose symbols were read, or there are none. */
static void test_lines_and_code_of_another_file(void **state OP_UNUSED)
{
	const struct opr_symbol_options options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL };
	char dir[BOX_PATH_BYTES], image[PATH_BYTES];
	const struct opr_symbol *landmark = NULL;
	struct opr_symbols symbols = { 0 };
	struct opr_lines *lines = NULL;
	uint8_t *code = NULL;
	size_t nr_bytes;

	make_image(dir, image);
	change_file(dir, "cp image other");
	assert_int_equal(opr_symbols_read_bfd(&symbols, image, image, &options), 0);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (!strcmp(symbols.symbols[i].name, "test_replaced_landmark"))
			landmark = &symbols.symbols[i];
	assert_non_null(landmark);
	assert_int_equal(opr_lines_open(image, image, NULL, &symbols.file, &lines), 0);
	opr_lines_close(lines);
	assert_int_equal(opr_symbols_code(&symbols, landmark, &code, &nr_bytes), 0);
	free(code);
	change_file(dir, "mv other image");
	assert_int_equal(opr_lines_open(image, image, NULL, &symbols.file, &lines), -ESTALE);
	assert_int_equal(opr_symbols_code(&symbols, landmark, &code, &nr_bytes), -ESTALE);
	opr_symbols_free(&symbols);
	change_file(dir, "rm -r ./*");
	assert_int_equal(rmdir(dir), 0);
}

/* ---- a report in the place of an older one ---- */

static char page[PATH_BYTES], secret[PATH_BYTES];

static bool is_page(int fd OP_UNUSED)
{
	return true;
}

/* The owner of the directory puts a link to another file there after the look at the page. */
static bool is_page_no_more(int fd OP_UNUSED)
{
	assert_int_equal(unlink(page), 0);
	assert_int_equal(symlink(secret, page), 0);
	return true;
}

static void make_page(char dir[BOX_PATH_BYTES])
{
	assert_int_equal(box_make(dir), 0);
	snprintf(page, sizeof(page), "%s/page", dir);
	snprintf(secret, sizeof(secret), "%s/secret", dir);
	change_file(dir, "echo old >page && chmod 640 page && echo mine >secret");
}

static void test_page_in_whose_place_a_link_is(void **state OP_UNUSED)
{
	struct opr_output output;
	char dir[BOX_PATH_BYTES];
	int err;

	make_page(dir);
	err = opr_output_replace(&output, page, is_page_no_more, "page");
	if (!err) {
		fputs("report\n", output.out);
		err = opr_output_close(&output);
	}
	change_file(dir, "test \"$(cat secret)\" = mine && test \"$(ls -A | xargs)\" = 'page secret'");
	assert_true(err < 0);
	assert_int_equal(box_remove(dir), 0);
}

/* A file that takes the place of the page while the report is made is the user's. */
static void test_page_that_is_replaced(void **state OP_UNUSED)
{
	struct opr_output output;
	char dir[BOX_PATH_BYTES];

	for (int is_replaced = 0; is_replaced <= 1; is_replaced++) {
		make_page(dir);
		assert_int_equal(opr_output_replace(&output, page, is_page, "page"), 0);
		fputs("report\n", output.out);
		if (is_replaced)
			change_file(dir, "mv secret page");
		assert_int_equal(opr_output_close(&output), is_replaced ? -EEXIST : 0);
		change_file(dir, is_replaced ? "test \"$(cat page)\" = mine && test \"$(ls -A)\" = page"
					     : "test \"$(cat page)\" = report && test \"$(stat -c %a page)\" = 640 && "
					       "test \"$(ls -A | xargs)\" = 'page secret'");
		assert_int_equal(box_remove(dir), 0);
	}
}

/* ---- locks and directories of a session directory ---- */

int __real_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);

/* Where another daemon begins once the stale lock is open; NULL: none. */
static const char *lock_dir;

int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	int fd = __real_op_sys_openat(dir_fd, path, flags, mode);

	if (lock_dir && !strcmp(path, OP_SESSION_LOCK)) {
		change_file(lock_dir, "rm " OP_SESSION_LOCK " && echo 1 >" OP_SESSION_LOCK);
		lock_dir = NULL;
	}
	return fd;
}

static void test_stale_lock_that_is_replaced(void **state OP_UNUSED)
{
	char dir[BOX_PATH_BYTES];
	int dir_fd, fd;

	assert_int_equal(box_make(dir), 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(op_lock_take_stale(dir_fd, OP_SESSION_LOCK), -ENOENT);
	change_file(dir, "echo 2 >" OP_SESSION_LOCK);
	lock_dir = dir;
	assert_int_equal(op_lock_take_stale(dir_fd, OP_SESSION_LOCK), -ENOENT);
	assert_null(lock_dir);
	fd = op_lock_take_stale(dir_fd, OP_SESSION_LOCK);
	assert_true(fd >= 0);
	assert_int_equal(op_lock_take_stale(dir_fd, OP_SESSION_LOCK), -EWOULDBLOCK);
	close(fd);
	close(dir_fd);
	assert_int_equal(box_remove(dir), 0);
}

/* An import makes nothing behind a link that the owner of the session directory puts there. */
static void test_import_behind_a_link(void **state OP_UNUSED)
{
	char dir[BOX_PATH_BYTES], session_dir[PATH_BYTES], name[OP_SESSION_IMPORT_BYTES], line[160];
	int session_fd, fd;

	assert_int_equal(box_make(dir), 0);
	snprintf(session_dir, sizeof(session_dir), "%s/session", dir);
	session_fd = op_session_open(session_dir);
	assert_true(session_fd >= 0);
	fd = op_session_import_begin(session_fd, name);
	assert_true(fd >= 0);
	snprintf(line, sizeof(line), "mkdir outside && mv session/tmp/%s moved && ln -s ../../outside session/tmp/%s", name, name);
	change_file(dir, line);
	assert_int_equal(op_session_prepare(fd), 0);
	close(fd);
	change_file(dir, "test -z \"$(ls -A outside)\" && test -d moved/samples/current");
	change_file(dir, "rm -r session/tmp && ln -s ../outside session/tmp");
	assert_true(op_session_import_begin(session_fd, name) < 0);
	change_file(dir, "test -z \"$(ls -A outside)\"");
	close(session_fd);
	assert_int_equal(box_remove(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo_in_last_moment),
		cmocka_unit_test(test_debug_file_that_is_replaced),
		cmocka_unit_test(test_new_directory_that_is_replaced),
		cmocka_unit_test(test_cache_of_strangers_debug_file),
		cmocka_unit_test(test_image_of_another_build_id),
		cmocka_unit_test(test_lines_and_code_of_another_file),
		cmocka_unit_test(test_page_in_whose_place_a_link_is),
		cmocka_unit_test(test_page_that_is_replaced),
		cmocka_unit_test(test_stale_lock_that_is_replaced),
		cmocka_unit_test(test_import_behind_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
