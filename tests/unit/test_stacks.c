/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The store of stacks: writer and reader of one file, libop/stacks. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/process/guard.h"
#include "libop/session/stack_part.h"
#include "libop/stacks/runtime_name.h"
#include "libop/base/sys.h"
#include "libop/session/wait_states.h"
#include "tests/unit/stack_box.h"
#include "tests/unit/still_clock.h"
#include "tests/unit/disk.h"

#define NR_STACKS  3000u
#define NR_KILLS   20
#define NR_MUTANTS 2000

static const struct op_stack_frame some_frames[] = {
	{ .image = 7, .value = 100 }, { .image = 7, .value = 200 }, { .image = 9, .value = 300, .is_kernel = true }
};

static const struct op_stack_path some_path = {
	.event = 1,
	.app = 7,
	.comm = "a long name of 22 bytes",
	.cgroup = "/system.slice/postgresql.service",
	.tgid = 12,
	.tid = 13,
	.cpu = 5,
	.end = OP_STACK_END_cut,
};

static void add_some(struct op_stacks *stacks, size_t nr_frames, uint64_t amount)
{
	assert_int_equal(op_stacks_add(stacks, &some_path, some_frames, nr_frames, amount), 0);
}

/* ---- what is in the file ---- */

static void test_path(void **state)
{
	static const enum op_stack_kind kinds[] = {
		OP_STACK_KERNEL_FRAME, OP_STACK_FRAME, OP_STACK_FRAME, OP_STACK_END,   OP_STACK_THREAD,
		OP_STACK_CGROUP,       OP_STACK_COMM,  OP_STACK_APP,   OP_STACK_EVENT, OP_STACK_ROOT,
	};
	static const uint64_t values[] = { 300, 200, 100, OP_STACK_END_cut, 12ull << 32 | 13 };
	struct op_stacks *stacks = open_stacks(*state);
	const struct op_stack_node *nodes;
	struct op_stack_tree tree;
	char comm[OP_STACK_PIECE_BYTES], *text;
	uint32_t at;

	add_some(stacks, 3, 5);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	nodes = tree.nodes;
	at = tree.nr_nodes - 1;
	for (size_t i = 0; i < op_array_size(kinds); i++, at = nodes[at].parent) {
		assert_int_equal(nodes[at].kind, kinds[i]);
		assert_int_equal(nodes[at].count, i ? 0 : 5);
		if (i < op_array_size(values))
			assert_int_equal(nodes[at].value, values[i]);
		if (kinds[i] == OP_STACK_COMM) {
			op_stack_comm(&nodes[at], comm);
			assert_string_equal(comm, "a long name of ");
		}
		if (kinds[i] == OP_STACK_CGROUP || kinds[i] == OP_STACK_EVENT) {
			text = op_stack_text(&tree, nodes[at].value);
			assert_string_equal(text, kinds[i] == OP_STACK_EVENT ? stack_events[1] : some_path.cgroup);
			free(text);
		}
		if (kinds[i] == OP_STACK_APP)
			assert_int_equal(nodes[at].image, 7);
		if (kinds[i] == OP_STACK_THREAD)
			assert_int_equal(nodes[at].image, 5);
	}
	assert_int_equal(sum_of_stacks(&tree), 5);
	assert_int_equal(tree.no_room + tree.nr_cut + tree.nr_damaged, 0);
	op_stack_tree_free(&tree);
}

/* What is there is found again, also after the file was closed. */
static void test_same_nodes(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	struct op_stack_tree tree;
	uint32_t nr_nodes;

	add_some(stacks, 3, 1);
	nr_nodes = op_stacks_nr_nodes(stacks);
	add_some(stacks, 3, 1);
	add_some(stacks, 2, 1);
	assert_int_equal(op_stacks_nr_nodes(stacks), nr_nodes);
	op_stacks_close(stacks);
	stacks = open_stacks(*state);
	assert_int_equal(op_stacks_total(stacks), 3);
	add_some(stacks, 3, 1);
	assert_int_equal(op_stacks_nr_nodes(stacks), nr_nodes);
	assert_int_equal(op_stacks_total(stacks), 4);
	assert_false(op_stacks_is_broken(stacks));
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nr_nodes, nr_nodes);
	assert_int_equal(tree.nodes[nr_nodes - 1].count, 3);
	assert_int_equal(tree.nodes[nr_nodes - 2].count, 1);
	op_stack_tree_free(&tree);
}

/* Also beside the writer, and the file grows. */
static void test_many(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	const struct box *box = *state;
	struct op_stack_tree tree;
	struct stat st;

	for (uint64_t i = 0; i < NR_STACKS; i++)
		assert_int_equal(add_ith(stacks, i), 0);
	tree = read_stacks(box);
	assert_int_equal(sum_of_stacks(&tree), NR_STACKS);
	assert_int_equal(tree.nr_nodes, op_stacks_nr_nodes(stacks));
	assert_true(tree.nr_nodes > 1000);
	op_stack_tree_free(&tree);
	op_stacks_close(stacks);
	assert_int_equal(fstatat(box->fd, STACKS, &st, 0), 0);
	stacks = open_stacks(box);
	assert_int_equal(st.st_size, op_stacks_file_bytes(op_stacks_nr_nodes(stacks)));
	op_stacks_close(stacks);
}

static uint64_t file_under(void *arg, uint64_t image)
{
	uint64_t *nr_calls = arg;

	++*nr_calls;
	return image == 9 ? 1000 : image;
}

static void test_count_image(void **state)
{
	struct op_stacks_setup setup = stack_setup;
	const struct box *box = *state;
	struct op_stack_tree tree;
	struct op_stacks *stacks;
	uint64_t nr_calls = 0;

	setup.count_image = file_under;
	setup.arg = &nr_calls;
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	add_some(stacks, 2, 1);
	assert_int_equal(nr_calls, 3); /* the application, and two frames */
	add_some(stacks, 2, 1);
	assert_int_equal(nr_calls, 3);
	add_some(stacks, 3, 1);
	add_some(stacks, 3, 1);
	op_stacks_close(stacks);
	tree = read_stacks(box);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].image, 1000);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].count, 2);
	op_stack_tree_free(&tree);
}

/* ---- waits ---- */

static void add_wait(struct op_stacks *stacks, enum op_wait_state wait, bool goes_on, uint64_t us)
{
	struct op_stack_path path = some_path;

	path.state = wait;
	path.goes_on = goes_on;
	assert_int_equal(op_stacks_add(stacks, &path, some_frames, 2, us), 0);
}

/* A node below the last frame of a wait; where there is little room, the wait ends at the frame. */
static void test_wakers(void **state)
{
	struct op_stack_path path = some_path;
	struct op_stacks *stacks = open_stacks(*state);
	uint32_t thread, interrupt, unknown, frame;
	struct op_stack_tree tree;
	char *name;

	path.state = OP_WAIT_blocked;
	path.waker = "keeper of the lock";
	path.waker_app = 7;
	assert_int_equal(op_stacks_add(stacks, &path, some_frames, 2, 100), 0);
	thread = op_stacks_last_node(stacks);
	assert_int_equal(op_stacks_add(stacks, &path, some_frames, 2, 20), 0);
	assert_int_equal(op_stacks_last_node(stacks), thread);
	path.waker = "";
	path.waker_app = 0;
	assert_int_equal(op_stacks_add(stacks, &path, some_frames, 2, 3), 0);
	interrupt = op_stacks_last_node(stacks);
	path.waker = NULL;
	assert_int_equal(op_stacks_add(stacks, &path, some_frames, 2, 4000), 0);
	unknown = op_stacks_last_node(stacks);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nodes[thread].kind, OP_STACK_WAKER);
	assert_int_equal(tree.nodes[thread].count, 120);
	assert_int_equal(tree.nodes[thread].records, 2);
	assert_int_equal(tree.nodes[thread].image, 7);
	assert_true(op_stack_has_image(&tree.nodes[thread]) && !op_stack_has_image(&tree.nodes[interrupt]));
	name = op_stack_text(&tree, tree.nodes[thread].value);
	assert_string_equal(name, "keeper of the lock");
	free(name);
	frame = tree.nodes[thread].parent;
	assert_int_equal(frame, unknown);
	assert_int_equal(tree.nodes[interrupt].parent, frame);
	assert_int_equal(tree.nodes[interrupt].value, 0);
	assert_int_equal(tree.nodes[frame].count, 4000);
	/* no other place, and no text that is none */
	assert_true(op_stack_is_sound(tree.nodes, thread));
	tree.nodes[thread].value = frame;
	assert_false(op_stack_is_sound(tree.nodes, thread));
	tree.nodes[thread].value = 0;
	tree.nodes[thread].parent = 0;
	assert_false(op_stack_is_sound(tree.nodes, thread));
	op_stack_tree_free(&tree);
}

static void test_waits(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	struct op_stack_tree tree;
	uint32_t blocked, disk, at;

	add_wait(stacks, OP_WAIT_blocked, false, 1000);
	blocked = op_stacks_last_node(stacks);
	add_wait(stacks, OP_WAIT_blocked, false, 500);
	add_wait(stacks, OP_WAIT_blocked, true, 70);
	add_wait(stacks, OP_WAIT_disk, false, 30);
	disk = op_stacks_last_node(stacks);
	add_some(stacks, 2, 1);
	assert_true(blocked != disk && disk != op_stacks_last_node(stacks));
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nodes[blocked].count, 1570);
	assert_int_equal(tree.nodes[blocked].records, 2);
	assert_int_equal(tree.nodes[disk].records, 1);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].records, 0);
	at = tree.nodes[tree.nodes[disk].parent].parent;
	assert_int_equal(tree.nodes[at].kind, OP_STACK_STATE);
	assert_int_equal(tree.nodes[at].value, OP_WAIT_disk);
	assert_int_equal(tree.nodes[tree.nodes[at].parent].kind, OP_STACK_END);
	op_stack_tree_free(&tree);
	stacks = open_stacks(*state);
	assert_int_equal(op_stacks_event_total(stacks, 0), 0);
	assert_int_equal(op_stacks_event_total(stacks, 1), 1601);
	for (uint32_t i = 0; i < OP_STACK_RECORDS_MAX + 5u; i++)
		add_wait(stacks, OP_WAIT_disk, false, 1);
	assert_int_equal(op_stacks_event_total(stacks, 1), 1601 + OP_STACK_RECORDS_MAX + 5u);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nodes[disk].records, OP_STACK_RECORDS_MAX);
	op_stack_tree_free(&tree);
}

static void add_runtime_stack(struct op_stacks *stacks, uint64_t line)
{
	const struct op_stack_frame frames[] = {
		{ .image = 3, .value = 100 },
		{ .image = 3, .value = 41, .text = "python\037/srv/app.py\037main\03740", .text_id = 7 },
		{ .image = 3, .value = line, .text = "python\037/srv/app.py\037App.handler\0372", .text_id = 2 },
		{ .image = 4, .value = 300, .is_kernel = true },
	};

	assert_int_equal(op_stacks_add(stacks, &some_path, frames, 4, 1), 0);
}

/* Functions of a runtime lie between native frames, and have the text of their name. */
static void test_runtime_frames(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	struct op_runtime_name name;
	struct op_stack_tree tree;
	uint32_t leaf, at;
	char *text;

	add_runtime_stack(stacks, 5);
	leaf = op_stacks_last_node(stacks);
	add_runtime_stack(stacks, 6);
	assert_true(op_stacks_last_node(stacks) != leaf);
	add_runtime_stack(stacks, 5);
	assert_int_equal(op_stacks_last_node(stacks), leaf);
	op_stacks_close(stacks);
	stacks = open_stacks(*state);
	add_runtime_stack(stacks, 5);
	assert_int_equal(op_stacks_last_node(stacks), leaf);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nr_damaged, 0);
	assert_int_equal(tree.nodes[leaf].count, 3);
	at = tree.nodes[leaf].parent;
	assert_int_equal(tree.nodes[at].kind, OP_STACK_RUNTIME_FRAME);
	assert_int_equal(tree.nodes[at].value >> 32, 5);
	assert_int_equal(tree.nodes[at].image, 3);
	text = op_stack_text(&tree, tree.nodes[at].value & UINT32_MAX);
	assert_true(op_runtime_name_parse(text, &name));
	assert_int_equal(name.runtime, OP_RUNTIME_python);
	assert_string_equal(name.file, "/srv/app.py");
	assert_string_equal(name.function, "App.handler");
	assert_int_equal(name.line, 2);
	free(text);
	at = tree.nodes[at].parent;
	assert_int_equal(tree.nodes[at].kind, OP_STACK_RUNTIME_FRAME);
	assert_int_equal(tree.nodes[tree.nodes[at].parent].kind, OP_STACK_FRAME);
	op_stack_tree_free(&tree);
}

static void test_runtime_names(void **state OP_UNUSED)
{
	static const char *const wrong[] = { "", "python", "python\037a\037b", "cobol\037a\037b\0371", "python\037a\037b\0371x" };
	struct op_text text = { 0 };
	struct op_runtime_name name;
	char longest[3000];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "begin", 5);
	memcpy(longest + sizeof(longest) - 4, "end", 3);
	op_runtime_name_write(&text, OP_RUNTIME_ruby, longest, longest, UINT32_MAX);
	assert_in_range(text.length, 900, OP_RUNTIME_NAME_MAX - 1);
	assert_true(op_runtime_name_parse(text.data, &name));
	assert_string_equal(name.file + strlen(name.file) - 3, "end");
	assert_memory_equal(name.function, "begin", 5);
	assert_int_equal(name.line, UINT32_MAX);
	op_text_truncate(&text, 0);
	op_runtime_name_write(&text, OP_RUNTIME_perl, "a\037b\n", "\033[1m", 0);
	assert_true(op_runtime_name_parse(text.data, &name));
	assert_string_equal(name.file, "a?b?");
	assert_string_equal(name.function, "?[1m");
	free(op_text_steal(&text));
	for (size_t i = 0; i < op_array_size(wrong); i++) {
		char *copy = strdup(wrong[i]);

		assert_false(op_runtime_name_parse(copy, &name));
		free(copy);
	}
}

/* Samples and microseconds without room are counted apart. */
static void test_waits_without_room(void **state)
{
	static const char *const names[] = { "STACKS:1:0x0", "WAIT:1:0x0" };
	struct op_stacks_setup setup = { .events = names, .nr_events = 2, .max_bytes = op_stacks_file_bytes(19) };
	struct op_session_ledger ledger = { 0 };
	struct op_stack_path path = { .event = 0, .app = 1, .comm = "a" };
	struct op_stack_tree tree;
	struct op_stacks *stacks;
	const struct box *box = *state;

	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	for (uint64_t i = 0; i < 3; i++) {
		const struct op_stack_frame frames[] = { { .image = 1, .value = i }, { .image = 2, .value = i } };

		path.event = i != 0;
		path.state = i ? OP_WAIT_blocked : OP_WAIT_NONE;
		(void)!op_stacks_add(stacks, &path, frames, 2, i ? 1000 : 1);
	}
	op_stacks_close(stacks);
	tree = read_stacks(box);
	assert_int_equal(tree.no_room, 0);
	assert_int_equal(tree.no_room_us, 1000);
	assert_int_equal(op_session_ledger_add_stacks(&ledger, &tree), 0);
	assert_int_equal(ledger.nr_events, 2);
	assert_string_equal(ledger.events[1].name, OP_WAITS_NAME);
	assert_int_equal(ledger.events[0].role, OP_EVENT_STACKS);
	assert_int_equal(ledger.events[1].role, OP_EVENT_WAITS);
	assert_int_equal(ledger.events[0].ends[OP_STACK_END_complete], 1);
	assert_int_equal(ledger.events[1].stored, 2000);
	assert_int_equal(ledger.events[1].ends[OP_STACK_END_complete], 1000);
	assert_int_equal(ledger.events[1].ends[OP_STACK_END_no_room], 1000);
	op_session_ledger_free(&ledger);
	op_stack_tree_free(&tree);
}

/* ---- no room ---- */

static void check_no_room(const struct box *box, struct op_stacks *stacks, int expected)
{
	uint64_t nr_refused = 0;
	struct op_stack_tree tree;

	for (uint64_t i = 0; i < NR_STACKS; i++) {
		int err = add_ith(stacks, i);

		assert_true(!err || err == expected);
		nr_refused += err != 0;
	}
	assert_true(nr_refused > 0 && nr_refused < NR_STACKS);
	assert_int_equal(op_stacks_total(stacks), NR_STACKS);
	tree = read_stacks(box);
	assert_int_equal(sum_of_stacks(&tree), NR_STACKS);
	assert_int_equal(tree.no_room, nr_refused);
	assert_int_equal(tree.nodes[0].count, 0);
	op_stack_tree_free(&tree);
}

static void test_max_bytes(void **state)
{
	struct op_stacks_setup setup = stack_setup;
	const struct box *box = *state;
	struct op_stacks *stacks;
	struct stat st;

	setup.max_bytes = 40000;
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	check_no_room(box, stacks, -EDQUOT);
	assert_int_equal(fstatat(box->fd, STACKS, &st, 0), 0);
	assert_in_range(st.st_size, 40000 - sizeof(struct op_stack_node), 40000);
	op_stacks_close(stacks);
	/* It opens with a smaller limit, too, and counts what it knows. */
	setup.max_bytes = 100;
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	assert_int_equal(add_ith(stacks, 0), 0);
	op_stacks_close(stacks);
}

/* In the second half of the file the places of samples in a function share a node. */
static void test_leaf_start(void **state)
{
	static const struct op_stack_frame frames[] = { { .image = 7, .value = 100 }, { .image = 7, .value = 1000 } };
	struct op_stack_path path = some_path;
	struct op_stacks_setup setup = stack_setup;
	struct op_stack_frame leaf[] = { frames[0], frames[1] };
	uint64_t at_start = 0, nr_places = 0;
	struct op_stacks *stacks;
	struct op_stack_tree tree;

	setup.max_bytes = op_stacks_file_bytes(200);
	assert_int_equal(op_stacks_open(((const struct box *)*state)->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	path.leaf_start = frames[1].value;
	for (uint64_t i = 1; i <= 1000; i++) {
		leaf[1].value = frames[1].value + i % 500;
		assert_int_equal(op_stacks_add(stacks, &path, leaf, 2, 1), 0);
	}
	assert_in_range(op_stacks_nr_nodes(stacks), 100, 103);
	tree = read_stacks(*state);
	for (uint32_t i = 0; i < tree.nr_nodes; i++) {
		at_start += tree.nodes[i].value == frames[1].value ? tree.nodes[i].count : 0;
		nr_places += tree.nodes[i].count == 2;
	}
	assert_in_range(nr_places, 80, 100);
	assert_int_equal(at_start, 1000 - 2 * nr_places);
	op_stack_tree_free(&tree);
	/* Without a start a place gets its node. */
	path.leaf_start = 0;
	leaf[1].value = 5000;
	assert_int_equal(op_stacks_add(stacks, &path, leaf, 2, 1), 0);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].value, 5000);
	op_stack_tree_free(&tree);
}

static void test_session_space(void **state)
{
	struct op_odb_space space = { .taken_bytes = 50000, .kept_bytes = 10000, .max_bytes = 100000 };
	struct op_stacks_setup setup = stack_setup;
	const struct box *box = *state;
	struct op_stacks *stacks;
	struct stat st;

	setup.space = &space;
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	check_no_room(box, stacks, -EDQUOT);
	assert_true(space.taken_bytes + space.kept_bytes <= space.max_bytes);
	assert_int_equal(fstatat(box->fd, STACKS, &st, 0), 0);
	assert_int_equal(space.taken_bytes, 50000 + (uint64_t)st.st_blocks * 512);
	op_stacks_close(stacks);
	assert_int_equal(fstatat(box->fd, STACKS, &st, 0), 0);
	assert_int_equal(space.taken_bytes, 50000 + (uint64_t)st.st_blocks * 512);
	/* The owner of the space knows of a file that is there. */
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &setup, &stacks), 0);
	op_stacks_close(stacks);
	assert_int_equal(space.taken_bytes, 50000 + (uint64_t)st.st_blocks * 512);
}

/* The disk is full; later it has room again. */
static void test_full_disk(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	uint32_t nr_nodes;

	disk_fails.fallocate = -ENOSPC;
	check_no_room(*state, stacks, -ENOSPC);
	nr_nodes = op_stacks_nr_nodes(stacks);
	disk_fails.fallocate = 0;
	passed_ns += 100000000;
	for (uint64_t i = 0; i < NR_STACKS; i++)
		assert_int_equal(add_ith(stacks, i), 0);
	assert_true(op_stacks_nr_nodes(stacks) > nr_nodes);
	op_stacks_close(stacks);
}

static void test_no_file_on_full_disk(void **state)
{
	const struct box *box = *state;
	struct op_stacks *stacks;

	disk_fails.fallocate = -ENOSPC;
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), -ENOSPC);
	disk_fails.fallocate = 0;
	op_stacks_close(open_stacks(box));
}

/* ---- a kill at any moment ---- */

static void kill_writer(const struct box *box, unsigned int delay_us)
{
	int ready[2], status;
	uint64_t nr_added = 0;
	struct op_stack_tree tree;
	struct op_stacks *stacks;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		stacks = open_stacks(box);
		for (uint64_t i = 0;; i++)
			if (add_ith(stacks, i % 100000) || write(ready[1], &i, sizeof(i)) != sizeof(i))
				_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &nr_added, sizeof(nr_added)), sizeof(nr_added));
	usleep(delay_us);
	kill(pid, SIGKILL);
	while (read(ready[0], &nr_added, sizeof(nr_added)) == sizeof(nr_added))
		;
	close(ready[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	tree = read_stacks(box);
	assert_int_equal(tree.nr_damaged, 0);
	/* One stack may have been added and not told. */
	assert_in_range(sum_of_stacks(&tree), nr_added + 1, nr_added + 2);
	op_stack_tree_free(&tree);
	stacks = open_stacks(box);
	assert_int_equal(op_stacks_nr_cut(stacks), 0);
	assert_int_equal(add_ith(stacks, 0), 0);
	op_stacks_close(stacks);
	assert_int_equal(unlinkat(box->fd, STACKS, 0), 0);
}

static void test_kill(void **state)
{
	/* The pipe holds the writer up until it is read, so the delay need not be long. */
	for (unsigned int i = 0; i < NR_KILLS; i++)
		kill_writer(*state, i * 37);
}

/* ---- damage ---- */

static void patch(const struct box *box, off_t offset, const void *bytes, size_t nr_bytes)
{
	int fd = openat(box->fd, STACKS, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, nr_bytes, offset), nr_bytes);
	close(fd);
}

static uint32_t make_file(const struct box *box, uint64_t nr_stacks)
{
	struct op_stacks *stacks = open_stacks(box);
	uint32_t nr_nodes;

	for (uint64_t i = 0; i < nr_stacks; i++)
		assert_int_equal(add_ith(stacks, i), 0);
	nr_nodes = op_stacks_nr_nodes(stacks);
	op_stacks_close(stacks);
	return nr_nodes;
}

/* A power cut lost a page: reader and writer keep what comes before it. */
static void test_lost_page(void **state)
{
	static const char zeros[512];
	uint32_t nr_nodes = make_file(*state, NR_STACKS), nr_kept = 4096 / 32 - 2;
	struct op_stack_tree tree;
	struct op_stacks *stacks;

	patch(*state, 4096, zeros, sizeof(zeros));
	tree = read_stacks(*state);
	assert_int_equal(tree.nr_nodes, nr_kept);
	assert_int_equal(tree.nr_damaged, nr_nodes - nr_kept);
	op_stack_tree_free(&tree);
	stacks = open_stacks(*state);
	assert_int_equal(op_stacks_nr_cut(stacks), nr_nodes - nr_kept);
	assert_int_equal(op_stacks_nr_nodes(stacks), nr_kept);
	for (uint64_t i = 0; i < NR_STACKS; i++)
		assert_int_equal(add_ith(stacks, i), 0);
	assert_int_equal(op_stacks_nr_nodes(stacks), nr_nodes);
	op_stacks_close(stacks);
	tree = read_stacks(*state);
	assert_int_equal(tree.nr_damaged, 0);
	assert_int_equal(tree.nr_cut, nr_nodes - nr_kept);
	op_stack_tree_free(&tree);
}

static void test_short_file(void **state)
{
	uint32_t nr_nodes = make_file(*state, 100);
	const struct box *box = *state;
	struct op_stack_tree tree;
	struct op_stacks *stacks;
	int fd = openat(box->fd, STACKS, O_RDWR);

	assert_int_equal(ftruncate(fd, (off_t)op_stacks_file_bytes(nr_nodes - 9) - 5), 0);
	tree = read_stacks(box);
	assert_int_equal(tree.nr_nodes, nr_nodes - 10);
	assert_int_equal(tree.nr_damaged, 10);
	op_stack_tree_free(&tree);
	stacks = open_stacks(box);
	assert_int_equal(op_stacks_nr_cut(stacks), 10);
	op_stacks_close(stacks);
	for (off_t length = 0; length < (off_t)op_stacks_file_bytes(1); length++) {
		assert_int_equal(ftruncate(fd, length), 0);
		assert_int_equal(op_stacks_read(box->fd, STACKS, &tree), -EBADMSG);
		assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), -EBADMSG);
	}
	close(fd);
}

/* Any bytes: no crash, and the writer leaves what the reader takes as a whole. */
static void test_mutants(void **state)
{
	uint32_t nr_nodes = make_file(*state, 200);
	const struct box *box = *state;
	int fd = openat(box->fd, STACKS, O_RDWR);
	size_t nr_bytes = (size_t)op_stacks_file_bytes(nr_nodes);
	uint8_t *sound = test_malloc(nr_bytes);

	assert_int_equal(pread(fd, sound, nr_bytes, 0), nr_bytes);
	srandom(1);
	for (int i = 0; i < NR_MUTANTS; i++) {
		struct op_stack_tree tree;
		struct op_stacks *stacks;
		uint32_t nr_read;

		assert_int_equal(pwrite(fd, sound, nr_bytes, 0), nr_bytes);
		assert_int_equal(ftruncate(fd, (off_t)nr_bytes), 0);
		for (int k = 0; k < 4; k++) {
			uint8_t byte = (uint8_t)random();

			patch(box, random() % (k ? (long)nr_bytes : 64), &byte, 1);
		}
		if (op_stacks_read(box->fd, STACKS, &tree) < 0) {
			assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), -EBADMSG);
			continue;
		}
		nr_read = tree.nr_nodes;
		for (uint32_t k = 0; k < nr_read; k++)
			if (tree.nodes[k].kind == OP_STACK_TEXT)
				free(op_stack_text(&tree, k));
		op_stack_tree_free(&tree);
		stacks = open_stacks(box);
		assert_true(op_stacks_nr_nodes(stacks) >= nr_read);
		for (uint64_t k = 0; k < 20; k++)
			assert_int_equal(add_ith(stacks, k), 0);
		op_stacks_close(stacks);
		tree = read_stacks(box);
		assert_int_equal(tree.nr_damaged, 0);
		op_stack_tree_free(&tree);
	}
	test_free(sound);
	close(fd);
}

static void test_foreign(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	const struct box *box = *state;
	static const uint32_t number = 3;

	add_some(stacks, 1, 1);
	patch(box, offsetof(struct op_stacks_header, nr_nodes), &number, sizeof(number));
	assert_true(op_stacks_is_broken(stacks));
	assert_int_equal(op_stacks_add(stacks, &some_path, some_frames, 3, 1), -EIO);
	op_stacks_close(stacks);
	assert_int_equal(unlinkat(box->fd, STACKS, 0), 0);
	stacks = open_stacks(box);
	add_some(stacks, 1, 1);
	assert_int_equal(unlinkat(box->fd, STACKS, 0), 0);
	assert_true(op_stacks_is_broken(stacks));
	op_stacks_close(stacks);
}

static void test_truncated_under_map(void **state)
{
	struct op_stacks *stacks = open_stacks(*state);
	const struct box *box = *state;
	int fd = openat(box->fd, STACKS, O_RDWR);

	assert_int_equal(op_guard_install(), 0); /* cmocka has handlers of its own, until now */
	add_some(stacks, 3, 1);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(op_stacks_add(stacks, &some_path, some_frames, 3, 1), -EIO);
	assert_int_equal(op_stacks_add(stacks, &some_path, some_frames, 2, 1), -EIO);
	assert_true(op_stacks_is_broken(stacks));
	op_stacks_close(stacks);
	close(fd);
}

static void test_no_file_of_stacks(void **state)
{
	const struct box *box = *state;
	struct op_stack_tree tree;
	struct op_stacks *stacks;

	assert_int_equal(op_stacks_read(box->fd, STACKS, &tree), -ENOENT);
	assert_int_equal(mkfifoat(box->fd, STACKS, 0600), 0);
	assert_int_equal(op_stacks_read(box->fd, STACKS, &tree), -EBADMSG);
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), -EBADMSG);
	assert_int_equal(unlinkat(box->fd, STACKS, 0), 0);
	assert_int_equal(symlinkat("/dev/zero", box->fd, STACKS), 0);
	assert_int_equal(op_stacks_read(box->fd, STACKS, &tree), -ELOOP);
	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), -ELOOP);
}

/* Writes stacks into a directory: test_stacks DIRECTORY NUMBER, for test_stack_files.py. */
static int write_stacks(const char *directory, uint64_t nr_stacks)
{
	int dir_fd = open(directory, O_RDONLY | O_DIRECTORY), err = 0;
	struct op_stacks *stacks;

	if (dir_fd < 0 || op_stacks_open(dir_fd, STACKS, STACKS_TMP, &stack_setup, &stacks) < 0)
		return 1;
	for (uint64_t i = 0; !err && i < nr_stacks; i++)
		err = add_ith(stacks, i);
	op_stacks_close(stacks);
	close(dir_fd);
	return err < 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		box_test(test_path),
		box_test(test_same_nodes),
		box_test(test_many),
		box_test(test_waits),
		box_test(test_wakers),
		box_test(test_waits_without_room),
		box_test(test_runtime_frames),
		cmocka_unit_test(test_runtime_names),
		box_test(test_count_image),
		box_test(test_max_bytes),
		box_test(test_session_space),
		box_test(test_leaf_start),
		box_test(test_full_disk),
		box_test(test_no_file_on_full_disk),
		box_test(test_kill),
		box_test(test_lost_page),
		box_test(test_short_file),
		box_test(test_mutants),
		box_test(test_foreign),
		box_test(test_truncated_under_map),
		box_test(test_no_file_of_stacks),
	};

	if (argc == 3)
		return write_stacks(argv[1], strtoull(argv[2], NULL, 10));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
