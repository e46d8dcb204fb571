/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "libop/control/daemonrc.h"
#include "libop/base/file.h"
#include "tests/unit/test_box.h"

static const char full[] = "SESSION_DIR=/var/lib/oprofile\n"
			   "CHOSEN_EVENTS_0=TIMER:100000:0:1:1\n"
			   "CHOSEN_EVENTS_1=page-faults:1:0:0:1\n"
			   "NR_CHOSEN=2\n"
			   "SEPARATE_LIB=1\n"
			   "SEPARATE_KERNEL=0\n"
			   "SEPARATE_THREAD=1\n"
			   "SEPARATE_CPU=0\n"
			   "SEPARATE_CGROUP=1\n"
			   "VMLINUX=/boot/vmlinux-6.1\n"
			   "IMAGE_FILTER=/bin/a,/lib/b++.so\n"
			   "BUF_SIZE=200000\n"
			   "BUF_WATERSHED=50000\n"
			   "CPU_BUF_SIZE=0\n"
			   "CALLGRAPH=5\n"
			   "STACKS=200:4096\n"
			   "KERNEL_RANGE=ffffffff81000000,ffffffff82000000\n"
			   "XENIMAGE=none\n";

static const char empty[] = "NR_CHOSEN=0\n"
			    "SEPARATE_LIB=1\n"
			    "SEPARATE_KERNEL=1\n"
			    "SEPARATE_THREAD=0\n"
			    "SEPARATE_CPU=0\n"
			    "VMLINUX=none\n"
			    "IMAGE_FILTER=\n"
			    "CPU_BUF_SIZE=0\n"
			    "CALLGRAPH=0\n"
			    "XENIMAGE=none\n";

static int read_text(const struct box *box, const char *text, struct op_setup *setup, char **ret_why)
{
	assert_int_equal(op_file_publish(box->fd, "daemonrc", text, 0644), 0);
	return op_setup_read(setup, box->fd, "daemonrc", ret_why);
}

static void assert_written(const struct box *box, const struct op_setup *setup, const char *expected)
{
	char *text = NULL;

	assert_int_equal(op_setup_write(setup, box->fd, "written"), 0);
	assert_int_equal(op_file_read(box->fd, "written", 10000, &text), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_round_trip(void **state)
{
	struct op_setup setup;
	char *why = NULL;

	op_setup_init(&setup);
	assert_written(*state, &setup, empty);
	assert_int_equal(read_text(*state, full, &setup, &why), 0);
	assert_string_equal(setup.session_dir, "/var/lib/oprofile");
	assert_int_equal(setup.nr_events, 2);
	assert_true(setup.events[0].is_timer);
	assert_true(setup.events[1].every_event && !setup.events[1].kernel);
	assert_true(setup.separate_lib && !setup.separate_kernel && setup.separate_thread && !setup.separate_cpu);
	assert_true(setup.separate_cgroup);
	assert_string_equal(setup.vmlinux, "/boot/vmlinux-6.1");
	assert_string_equal(setup.image_filter, "/bin/a,/lib/b++.so");
	assert_int_equal(setup.buffer_size, 200000);
	assert_int_equal(setup.buffer_watershed, 50000);
	assert_int_equal(setup.callgraph, 5);
	assert_written(*state, &setup, full);
	assert_int_equal(read_text(*state, empty, &setup, &why), 0);
	assert_null(setup.session_dir);
	assert_null(setup.vmlinux);
	assert_int_equal(setup.nr_events, 0);
	assert_written(*state, &setup, empty);
	assert_null(why);
	op_setup_free(&setup);
}

static void test_defaults(void **state)
{
	struct box *box = *state;
	struct op_setup setup;
	char *why = NULL;

	op_setup_init(&setup);
	assert_true(setup.separate_lib && setup.separate_kernel);
	assert_int_equal(op_setup_read(&setup, box->fd, "daemonrc", &why), 0);
	assert_true(setup.separate_lib && setup.separate_kernel);
	assert_int_equal(read_text(box, "", &setup, &why), 0);
	assert_true(setup.separate_lib && setup.separate_kernel);
	assert_int_equal(setup.nr_events, 0);
	op_setup_free(&setup);
}

static void test_foreign_keys_pass(void **state)
{
	struct op_setup setup;
	char *why = NULL;

	op_setup_init(&setup);
	assert_int_equal(read_text(*state, "XEN_RANGE=1,2\n\nS390_HW_SAMPLER_BUFSIZE=5\nCALLGRAPH=\nCALLGRAPH=3", &setup, &why), 0);
	assert_int_equal(setup.callgraph, 3);
	op_setup_free(&setup);
}

static void test_stacks(void **state)
{
	static const struct {
		const char *line;
		struct op_stack_setup stacks;
	} cases[] = {
		{ "STACKS=\n", { 0 } },
		{ "STACKS=on\n", { .mode = OP_STACKS_ON } },
		{ "STACKS=off\n", { .mode = OP_STACKS_OFF } },
		{ "STACKS=event\n", { .mode = OP_STACKS_EVENT } },
		{ "STACKS=50\n", { .mode = OP_STACKS_ON, .rate_hz = 50 } },
		{ "STACKS=10000:0\n", { .mode = OP_STACKS_ON, .rate_hz = 10000, .has_bytes = true } },
		{ "STACKS=1:63488\n", { .mode = OP_STACKS_ON, .rate_hz = 1, .has_bytes = true, .bytes = 63488 } },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_text text = { 0 };
		struct op_setup setup;
		char *why = NULL;

		op_setup_init(&setup);
		setup.stacks = (struct op_stack_setup){ .mode = OP_STACKS_EVENT, .rate_hz = 9 };
		assert_int_equal(read_text(*state, cases[i].line, &setup, &why), 0);
		assert_int_equal(setup.stacks.mode, cases[i].stacks.mode);
		assert_int_equal(setup.stacks.rate_hz, cases[i].stacks.rate_hz);
		assert_int_equal(setup.stacks.has_bytes, cases[i].stacks.has_bytes);
		assert_int_equal(setup.stacks.bytes, cases[i].stacks.bytes);
		op_text_add(&text, "STACKS=");
		op_stack_setup_format(&setup.stacks, &text);
		op_text_add_char(&text, '\n');
		assert_string_equal(op_text_get(&text), cases[i].line);
		op_text_free(&text);
		op_setup_free(&setup);
	}
}

/* The error names the line, and the setup stays as it was. */
static void test_refusals(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "CALLGRAPH=1\nnonsense\n", "daemonrc:2: not KEY=value" },
		{ "=1\n", "daemonrc:1: the key has" },
		{ "CALL GRAPH=1\n", "daemonrc:1: the key has" },
		{ "SESSION_DIR=/a b\n", "daemonrc:1: the value of SESSION_DIR has" },
		{ "SESSION_DIR=/a;reboot\n", "daemonrc:1: the value of SESSION_DIR has" },
		{ "SESSION_DIR=/a=b\n", "daemonrc:1: the value of SESSION_DIR has" },
		{ "FOREIGN=$(x)\n", "daemonrc:1: the value of FOREIGN has" },
		{ "SEPARATE_LIB=2\n", "daemonrc:1: SEPARATE_LIB: 2 is more than 1" },
		{ "SEPARATE_LIB=yes\n", "daemonrc:1: SEPARATE_LIB: 'yes' is not a number" },
		{ "CALLGRAPH=128\n", "daemonrc:1: CALLGRAPH: 128 is more than 127" },
		{ "STACKS=maybe\n", "daemonrc:1: STACKS: unknown word 'maybe'; allowed: on, off, event, RATE[:BYTES]" },
		{ "STACKS=99:\n", "daemonrc:1: STACKS: unknown word '99:'; allowed" },
		{ "STACKS=99:63489\n", "daemonrc:1: STACKS: unknown word '99:63489'; allowed" },
		{ "STACKS=0\n", "daemonrc:1: STACKS: unknown word '0'; allowed" },
		{ "STACKS=00000000000000000099\n", "daemonrc:1: STACKS: unknown word '00000000000000000099'; allowed" },
		{ "NR_CHOSEN=129\n", "daemonrc:1: NR_CHOSEN: 129 is more than 128" },
		{ "CHOSEN_EVENTS_0=TIMER:5\n", "daemonrc:1: event TIMER:5: " },
		{ "CHOSEN_EVENTS_128=TIMER:10000\n", "daemonrc:1: there is no event number '128'" },
		{ "CHOSEN_EVENTS_x=TIMER:10000\n", "daemonrc:1: there is no event number 'x'" },
		{ "CHOSEN_EVENTS_0=TIMER:10000\nCHOSEN_EVENTS_2=TIMER:20000\nNR_CHOSEN=3\n",
		  "daemonrc:3: NR_CHOSEN is 3, but there is no CHOSEN_EVENTS_1" },
	};
	struct box *box = *state;

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_setup setup;
		char *why = NULL;

		op_setup_init(&setup);
		setup.callgraph = 99;
		assert_int_equal(read_text(box, cases[i].text, &setup, &why), -EINVAL);
		assert_int_equal(strncmp(why, box->path, strlen(box->path)), 0);
		assert_int_equal(strncmp(why + strlen(box->path) + 1, cases[i].why, strlen(cases[i].why)), 0);
		assert_int_equal(setup.callgraph, 99);
		free(why);
		op_setup_free(&setup);
	}
}

/* What a crash may leave: bytes that are no text. */
static void test_no_text(void **state)
{
	struct box *box = *state;
	struct op_setup setup;
	char *why = NULL;
	int fd = openat(box->fd, OP_SETUP_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_int_equal(write(fd, "CALLGRAPH=1\n\0\0\0", 15), 15);
	op_setup_init(&setup);
	assert_int_equal(op_setup_read(&setup, box->fd, OP_SETUP_NAME, &why), -EINVAL);
	assert_non_null(why);
	assert_non_null(strstr(why, "/daemonrc: holds NUL bytes"));
	free(why);
	why = NULL;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	for (size_t i = 0; i <= OP_FILE_MAX_BYTES / 16; i++)
		assert_int_equal(write(fd, "ABCDEFGHIJKLMNO\n", 16), 16);
	assert_int_equal(op_setup_read(&setup, box->fd, OP_SETUP_NAME, &why), -EINVAL);
	assert_non_null(strstr(why, "/daemonrc: too large"));
	free(why);
	close(fd);
	op_setup_free(&setup);
}

static void test_events_beyond_their_number(void **state)
{
	struct op_setup setup;
	char *why = NULL;

	op_setup_init(&setup);
	assert_int_equal(read_text(*state, "CHOSEN_EVENTS_0=TIMER:10000\nCHOSEN_EVENTS_1=TIMER:20000\nNR_CHOSEN=1\n", &setup, &why),
			 0);
	assert_int_equal(setup.nr_events, 1);
	assert_int_equal(setup.events[0].count, 10000);
	op_setup_free(&setup);
}

static void test_write_refuses_what_it_cannot_read(void **state)
{
	struct box *box = *state;
	struct op_setup setup;

	op_setup_init(&setup);
	setup.session_dir = strdup("/a b");
	assert_int_equal(op_setup_write(&setup, box->fd, "written"), -EINVAL);
	assert_int_equal(faccessat(box->fd, "written", F_OK, 0), -1);
	op_setup_free(&setup);
	assert_true(op_setup_value_ok("/usr/lib-2_x:1,y.z"));
	assert_true(op_setup_value_ok(""));
	assert_true(op_setup_images_ok("/a,/lib/b++.so"));
	assert_false(op_setup_value_ok("/lib/b++.so") || op_setup_images_ok("/a b"));
	assert_false(op_setup_value_ok("a\nb"));
	assert_false(op_setup_value_ok("\xc3\xa4"));
}

static void test_promote(void **state)
{
	struct box *box = *state;
	char *text = NULL;

	assert_int_equal(op_setup_promote(box->fd), 0);
	assert_int_equal(op_file_publish(box->fd, OP_SETUP_NAME, "old", 0644), 0);
	assert_int_equal(op_file_publish(box->fd, OP_SETUP_NEW_NAME, "new", 0644), 0);
	assert_int_equal(op_setup_promote(box->fd), 0);
	assert_int_equal(op_file_read(box->fd, OP_SETUP_NAME, 100, &text), 0);
	assert_string_equal(text, "new");
	assert_int_equal(faccessat(box->fd, OP_SETUP_NEW_NAME, F_OK, 0), -1);
	free(text);
}

/* Some editors put one before the first line. */
static void test_byte_order_mark(void **state)
{
	struct op_setup setup;
	char *why = NULL;

	op_setup_init(&setup);
	assert_int_equal(read_text(*state, "\xef\xbb\xbf" "CALLGRAPH=3\n", &setup, &why), 0);
	assert_int_equal(setup.callgraph, 3);
	assert_int_equal(read_text(*state, "CALLGRAPH=4\n\xef\xbb\xbfVMLINUX=/a\n", &setup, &why), -EINVAL);
	assert_non_null(strstr(why, "daemonrc:2: "));
	free(why);
	op_setup_free(&setup);
}

/*
 * An attacker who may write to the directory could make root read a secret file and copy its words
 * to another file.
 */
static void test_link(void **state)
{
	struct box *box = *state;
	struct op_setup setup;
	char *why = NULL;

	assert_int_equal(op_file_publish(box->fd, "elsewhere", "CALLGRAPH=3\n", 0600), 0);
	assert_int_equal(symlinkat("elsewhere", box->fd, OP_SETUP_NAME), 0);
	op_setup_init(&setup);
	assert_int_equal(op_setup_read(&setup, box->fd, OP_SETUP_NAME, &why), -EINVAL);
	assert_non_null(strstr(why, "/daemonrc: is a link"));
	assert_int_equal(setup.callgraph, 0);
	free(why);
	op_setup_free(&setup);
}

#define STRANGER 54320
#define OTHER	 54321

/* A directory below the box with this owner; the box is removed with its contents. */
static void make_dir_of(const struct box *box, const char *name, uid_t owner)
{
	assert_int_equal(mkdirat(box->fd, name, 0755), 0);
	assert_int_equal(fchownat(box->fd, name, owner, owner, 0), 0);
}

static int check_of(const struct box *box, const char *below)
{
	struct op_setup setup;
	char path[128], *why = NULL;
	int err;

	snprintf(path, sizeof(path), "%s/%s", box->path, below);
	op_setup_init(&setup);
	setup.session_dir = path;
	err = op_setup_check(&setup, box->fd, OP_SETUP_NEW_NAME, &why);
	assert_int_equal(setup.session_dir_owner, OP_SETUP_ANYBODY);
	if (err)
		assert_non_null(strstr(why, "daemonrc_new: SESSION_DIR: /tmp/"));
	free(why);
	return err;
}

/*
 * Reads a setup that names `below` the box, with these owners of the file and of its directory.
 * *ret_owner: the required owner of the named directory.
 */
static int read_of(const struct box *box, uid_t file, uid_t dir, const char *below, uid_t *ret_owner)
{
	struct op_setup setup;
	char text[128], *why = NULL;
	int err;

	snprintf(text, sizeof(text), "SESSION_DIR=%s/%s\n", box->path, below);
	assert_int_equal(fchown(box->fd, 0, 0), 0);
	assert_int_equal(op_file_publish(box->fd, OP_SETUP_NAME, text, 0644), 0);
	assert_int_equal(fchownat(box->fd, OP_SETUP_NAME, file, file, 0), 0);
	assert_int_equal(fchown(box->fd, dir, dir), 0);
	op_setup_init(&setup);
	err = op_setup_read(&setup, box->fd, OP_SETUP_NAME, &why);
	*ret_owner = setup.session_dir_owner;
	if (err)
		assert_non_null(strstr(why, "daemonrc: SESSION_DIR: /tmp/"));
	free(why);
	op_setup_free(&setup);
	/* A file that root would write there is refused before it is written. */
	if (!file || file == dir)
		assert_int_equal(check_of(box, below), err);
	return err;
}

/*
 * The setup of a user may name existing or future directories of that user only. The setup of root
 * may name any.
 */
static void test_whose_directory(void **state)
{
	static const struct {
		uid_t file, dir;
		const char *below;
		int err;
	} cases[] = {
		{ 0, 0, "roots", 0 },	       { 0, 0, "strangers", 0 },      { 0, 0, "none/below", 0 },
		{ STRANGER, STRANGER, "strangers", 0 },			      { 0, STRANGER, "strangers", 0 },
		{ STRANGER, 0, "strangers", 0 },			      { STRANGER, STRANGER, "strangers/none/below", 0 },
		{ STRANGER, STRANGER, "roots", -EINVAL },		      { 0, STRANGER, "roots", -EINVAL },
		{ STRANGER, 0, "roots", -EINVAL },			      { STRANGER, STRANGER, "others", -EINVAL },
		{ STRANGER, STRANGER, "others/none/below", -EINVAL },	      { STRANGER, STRANGER, "link", -EINVAL },
		{ STRANGER, STRANGER, "link/none", -EINVAL },		      { OTHER, STRANGER, "strangers", -EINVAL },
	};
	struct box *box = *state;

	if (geteuid())
		skip();
	make_dir_of(box, "roots", 0);
	make_dir_of(box, "strangers", STRANGER);
	make_dir_of(box, "others", OTHER);
	assert_int_equal(symlinkat("roots", box->fd, "link"), 0);
	for (size_t i = 0; i < op_array_size(cases); i++) {
		uid_t owner, wanted = cases[i].err || (!cases[i].file && !cases[i].dir) ? OP_SETUP_ANYBODY : STRANGER;

		assert_int_equal(read_of(box, cases[i].file, cases[i].dir, cases[i].below, &owner), cases[i].err);
		assert_int_equal(owner, wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		box_test(test_round_trip),
		box_test(test_defaults),
		box_test(test_foreign_keys_pass),
		box_test(test_stacks),
		box_test(test_refusals),
		box_test(test_no_text),
		box_test(test_events_beyond_their_number),
		box_test(test_write_refuses_what_it_cannot_read),
		box_test(test_promote),
		box_test(test_byte_order_mark),
		box_test(test_link),
		box_test(test_whose_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
