// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A looker reads the memory of a made-up Java machine (java_box.h): layout, code, frames, scopes,
 * names and lines; then memory that is forged.
 */
#include "tests/unit/java_box.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/readers/java.h"

#define PAGES   4096u
#define MUTANTS 20000u

static int set_up(void **state)
{
	struct java_box *box = malloc(sizeof(*box));

	box_make(box);
	*state = box;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX];

static int place_at(struct java_box *box, uint64_t offset, bool is_exact, struct opd_java_place *ret_place)
{
	return opd_java_read_place(box_memory(box, PAGES), &box->layout, BOX_START + offset, is_exact, ret_place, scopes);
}

static void the_layout_is_that_of_its_tables(void **state)
{
	struct java_box *box = *state;
	struct opd_java_layout layout;

	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), 0);
	assert_memory_equal(&layout, &box->layout, sizeof(layout));
	box_put(box, BOX_STATICS + 32, 0, 4);
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EAGAIN);
	box_put(box, BOX_STATICS + 32, OPD_JAVA_OLD + 1, 4);
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EPROTONOSUPPORT);
}

/* Each field must be there, once, and have its type. */
static void a_field_that_is_missing_refuses(void **state)
{
	struct java_box *box = *state;
	struct opd_java_layout layout;
	size_t nr = 0;

	for (uint64_t at = BOX_STRUCTS; box->bytes[at - BOX_BASE + 1]; at += 56, nr++) {
		uint64_t other = 0;

		memcpy(&other, box->bytes + (at + 8 - BOX_BASE), 8);
		if (!strcmp((const char *)box->bytes + (other - BOX_BASE), "_other"))
			continue;
		box_put(box, at + 8, BOX_TEXTS, 8); /* another name */
		assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EPROTONOSUPPORT);
		box_put(box, at + 8, other, 8);
		memcpy(&other, box->bytes + (at + 16 - BOX_BASE), 8);
		box_put(box, at + 16, BOX_TEXTS, 8); /* another type */
		assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EPROTONOSUPPORT);
		box_put(box, at + 16, other, 8);
	}
	assert_true(nr > BOX_NR_FIELDS);
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), 0);
	box_put(box, BOX_STRUCTS + 6 * 56 + 32, 4097, 8); /* an offset beyond all structures */
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EBADMSG);
	/* a table without an end, in a circle of its own */
	box_put(box, BOX_VALUES + 8 * 2, 0, 8);
	assert_true(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout) < 0);
}

static void a_call_has_its_scopes(void **state)
{
	struct java_box *box = *state;
	struct opd_java_place place;

	assert_int_equal(place_at(box, 0x80, false, &place), 0);
	assert_int_equal(place.code, OPD_JAVA_COMPILED);
	assert_int_equal(place.frame_bytes, 48);
	assert_int_equal(place.blob, BOX_BLOB);
	assert_true(place.is_behind_call);
	assert_int_equal(place.original_pc, -1);
	assert_int_equal(place.nr_scopes, 1);
	assert_int_equal(scopes[0].method, box_method(0));
	assert_int_equal(scopes[0].bci, 5);
	/* where a method is inlined */
	assert_int_equal(place_at(box, 0x40, false, &place), 0);
	assert_false(place.is_behind_call);
	assert_int_equal(place.nr_scopes, 2);
	assert_int_equal(scopes[0].method, box_method(1));
	assert_int_equal(scopes[0].bci, 2);
	assert_int_equal(scopes[1].method, box_method(0));
	/* a frame that was deoptimized */
	assert_int_equal(place_at(box, 0x700, false, &place), 0);
	assert_int_equal(place.original_pc, 24);
	assert_int_equal(place.nr_scopes, 0);
}

static void a_leaf_has_a_shape(void **state)
{
	static const struct {
		uint64_t offset;
		enum opd_java_shape shape;
	} cases[] = {
		{ 0, OPD_JAVA_NO_FRAME }, { 11, OPD_JAVA_NO_FRAME },  { 12, OPD_JAVA_PUSHED },      { 0x10, OPD_JAVA_FULL },
		{ 0x50, OPD_JAVA_FULL },  { 0x100, OPD_JAVA_PUSHED }, { 0x101, OPD_JAVA_NO_FRAME }, { 0x102, OPD_JAVA_FULL },
	};
	struct java_box *box = *state;
	struct opd_java_place place;

	for (size_t i = 0; i < op_array_size(cases); i++) {
		assert_int_equal(place_at(box, cases[i].offset, true, &place), 0);
		assert_int_equal(place.shape, cases[i].shape);
		assert_true(place.from <= BOX_START + cases[i].offset && place.to > BOX_START + cases[i].offset);
	}
	/* what an answer holds for has one shape and one descriptor */
	assert_int_equal(place_at(box, 0x50, true, &place), 0);
	assert_int_equal(place.from, BOX_START + 0x41);
	assert_int_equal(place.to, BOX_START + 0x81);
	assert_int_equal(place_at(box, 0x90, true, &place), 0);
	assert_int_equal(place.to, BOX_START + 0x100);
	/* sub rsp, n; mov [rsp + m], rbp */
	box_put(box, BOX_START + 4, 0x20ec8148, 4);
	box_put(box, BOX_START + 8, 0x24900000, 4);
	box_put(box, BOX_START + 8, 0, 3);
	box_put(box, BOX_START + 11, 0x246c8948, 4);
	box_put(box, BOX_START + 15, 0x18, 1);
	assert_int_equal(place_at(box, 4, true, &place), 0);
	assert_int_equal(place.shape, OPD_JAVA_NO_FRAME);
	assert_int_equal(place_at(box, 11, true, &place), 0);
	assert_int_equal(place.shape, OPD_JAVA_MADE_ROOM);
}

/* What 21 has otherwise: the flags of a method, numbers, and the end of a prologue. */
static void a_newer_machine_is_known(void **state)
{
	/* as those of box_make, each byte one higher, and the end of the table is 0 all the same */
	static const uint8_t lines[] = { 0xff, 1, 15, 3 << 3 | 2, 0xff, 15, 192 + (582 - 191) % 64, (582 - 191) / 64 + 1, 0 };
	static const uint8_t scopes_21[] = { 1, 1, 2, 7, 2, 3, 4 };
	static const struct opd_java_line expected[] = { { 0, 7 }, { 3, 9 }, { 10, 300 } };
	uint64_t flags = BOX_STRUCTS + 56 * (6 + BOX_const_flags);
	struct java_box *box = *state;
	struct opd_java_layout layout;
	struct opd_java_place place;
	struct op_text text = { 0 };

	box_put(box, BOX_STATICS + 32, OPD_JAVA_NEW, 4);
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EPROTONOSUPPORT);
	box_put(box, BOX_INTS, box_text(box, "ConstMethodFlags::_misc_has_linenumber_table"), 8);
	box_put(box, flags + 8, box_text(box, "_flags._flags"), 8);
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), -EPROTONOSUPPORT);
	box_put(box, flags + 16, box_text(box, "u4"), 8);
	box->layout.version = OPD_JAVA_NEW;
	assert_int_equal(opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout), 0);
	assert_memory_equal(&layout, &box->layout, sizeof(layout));

	memcpy(box->bytes + (BOX_BLOB + 0x1400 - BOX_BASE), scopes_21, sizeof(scopes_21));
	assert_int_equal(place_at(box, 0x40, false, &place), 0);
	assert_int_equal(place.nr_scopes, 2);
	assert_int_equal(scopes[0].method, box_method(1));
	assert_int_equal(scopes[1].bci, 5);
	box_put(box, BOX_BLOB + 0x1406, 0, 1); /* no number has this byte */
	assert_int_equal(place_at(box, 0x40, false, &place), -EBADMSG);

	memcpy(box->bytes + (box_method(1) + 0x400 + BOX_SIZE + 20 - BOX_BASE), lines, sizeof(lines));
	assert_int_equal(opd_java_read_method(box_memory(box, PAGES), &box->layout, box_method(1), &text), 0);
	assert_memory_equal(text.data + sizeof(struct opd_java_method), expected, sizeof(expected));
	op_text_free(&text);

	/* push rbp; sub rsp, 32; cmp dword [r15 + 32], 1; jne, and the frame is complete */
	box_put(box, BOX_BLOB + 8 * BOX_blob_complete, 30, 4);
	box_put(box, BOX_START + 16, 0x1207f8141, 8);
	box_put(box, BOX_START + 24, 0x850f, 6);
	for (uint64_t offset = 10; offset < 30; offset++) {
		assert_int_equal(place_at(box, offset, true, &place), 0);
		assert_int_equal(place.shape, offset < 12 ? OPD_JAVA_NO_FRAME : offset < 16 ? OPD_JAVA_PUSHED : OPD_JAVA_FULL);
	}
	/* the same, and je over a call */
	box_put(box, BOX_BLOB + 8 * BOX_blob_complete, 31, 4);
	box_put(box, BOX_START + 24, 0xe80574, 7);
	for (uint64_t offset = 10; offset < 31; offset++) {
		assert_int_equal(place_at(box, offset, true, &place), 0);
		assert_int_equal(place.shape, offset < 12 ? OPD_JAVA_NO_FRAME : offset < 16 ? OPD_JAVA_PUSHED : OPD_JAVA_FULL);
	}
}

static void other_code_is_told_apart(void **state)
{
	struct java_box *box = *state;
	struct opd_java_place place;

	assert_int_equal(place_at(box, BOX_INTERPRETER + 0x900 - BOX_START, true, &place), 0);
	assert_int_equal(place.code, OPD_JAVA_INTERPRETER);
	assert_int_equal(place_at(box, 0x10000, true, &place), 0); /* beyond all code */
	assert_int_equal(place.code, OPD_JAVA_NO_CODE);
	assert_int_equal(place_at(box, 0x5800, true, &place), 0); /* a free segment */
	assert_int_equal(place.code, OPD_JAVA_NO_CODE);
	assert_int_equal(place_at(box, (uint64_t)-8, true, &place), 0); /* the header of the blob */
	assert_int_equal(place.code, OPD_JAVA_NO_CODE);
}

static void a_method_has_names_and_lines(void **state)
{
	struct java_box *box = *state;
	struct op_text text = { 0 };
	struct opd_java_method method;
	const struct opd_java_line expected[] = { { 0, 7 }, { 3, 9 }, { 10, 300 } };
	const char *at;

	assert_int_equal(opd_java_read_method(box_memory(box, PAGES), &box->layout, box_method(1), &text), 0);
	memcpy(&method, text.data, sizeof(method));
	assert_int_equal(method.nr_lines, 3);
	assert_int_equal(method.code_bytes, 20);
	at = text.data + sizeof(method);
	assert_memory_equal(at, expected, sizeof(expected));
	at += sizeof(expected);
	assert_string_equal(at, "a/b/Main.java");
	assert_string_equal(at + strlen(at) + 1, "a.b.Main.inner");
	op_text_free(&text);
}

static void a_fingerprint_tells_other_code(void **state)
{
	struct java_box *box = *state;
	uint64_t first, other;

	assert_int_equal(opd_java_fingerprint(box_memory(box, PAGES), &box->layout, BOX_BLOB, false, &first), 0);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_id, 4712, 4);
	assert_int_equal(opd_java_fingerprint(box_memory(box, PAGES), &box->layout, BOX_BLOB, false, &other), 0);
	assert_true(first != other);
	assert_int_equal(opd_java_fingerprint(box_memory(box, PAGES), &box->layout, box_method(0), true, &first), 0);
	box_put(box, box_method(0) + 8 * BOX_method_const, box_method(1) + 0x400, 8);
	assert_int_equal(opd_java_fingerprint(box_memory(box, PAGES), &box->layout, box_method(0), true, &other), 0);
	assert_true(first != other);
}

/* ---- forged memory ---- */

static int read_method(struct java_box *box, uint32_t nr_pages)
{
	struct op_text text = { 0 };
	int err = opd_java_read_method(box_memory(box, nr_pages), &box->layout, box_method(0), &text);

	op_text_free(&text);
	return err;
}

static void circles_end(void **state)
{
	struct java_box *box = *state;
	struct opd_java_place place;

	/* a map of segments that goes back before its start */
	box_put(box, BOX_SEGMAP, 1, 1);
	assert_int_equal(place_at(box, 0x80, false, &place), -EBADMSG);
	box_put(box, BOX_SEGMAP, 0, 1);
	/* a scope that is inlined in itself, and one in a later one */
	box_put(box, BOX_BLOB + 0x1404, 4, 1);
	assert_int_equal(place_at(box, 0x40, false, &place), -EBADMSG);
	box_put(box, BOX_BLOB + 0x1404, 5, 1);
	assert_int_equal(place_at(box, 0x40, false, &place), -EBADMSG);
	box_put(box, BOX_BLOB + 0x1404, 1, 1);
	/* a method behind the last one: the metadata end where the scopes begin */
	box_put(box, BOX_BLOB + 0x1405, 200, 1);
	assert_int_equal(place_at(box, 0x40, false, &place), -EBADMSG);
}

static void forged_sizes_are_refused(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x4000000 };
	const uint64_t at[] = { BOX_ARRAY + 8 * BOX_array_length,
				BOX_HEAP + 8 * BOX_heap_log2,
				BOX_BLOB + 8 * BOX_blob_size,
				BOX_BLOB + 8 * BOX_nmethod_metadata,
				BOX_BLOB + 8 * BOX_nmethod_pcs,
				BOX_BLOB + 8 * BOX_nmethod_pcs_end,
				BOX_POOL + 8 * BOX_pool_length,
				BOX_SYMBOLS + 8 * BOX_symbol_length,
				box_method(0) + 0x400 + 8 * BOX_const_code_size };
	struct java_box *box = *state;
	struct opd_java_place place;

	for (size_t i = 0; i < op_array_size(at); i++) {
		for (size_t j = 0; j < op_array_size(sizes); j++) {
			uint32_t before;

			memcpy(&before, box->bytes + (at[i] - BOX_BASE), sizeof(before));
			box_put(box, at[i], sizes[j], 4);
			assert_true(place_at(box, 0x40, false, &place) <= 0);
			assert_true(place_at(box, 0x40, true, &place) <= 0);
			assert_true(read_method(box, PAGES) <= 0);
			box_put(box, at[i], before, 4);
		}
	}
	assert_int_equal(read_method(box, PAGES), 0);
	assert_int_equal(read_method(box, 2), -EDQUOT);
	/* a line table without an end */
	memset(box->bytes + (box_method(0) + 0x400 + BOX_SIZE + 20 - BOX_BASE), 8, 0x900);
	assert_int_equal(read_method(box, PAGES), 0);
}

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* Words are cleared, and made to point anywhere. Every question ends, within its budget. */
static void mutants_end(void **state)
{
	struct java_box *box = *state, *good = malloc(sizeof(*good));
	struct opd_java_layout layout;
	struct opd_java_place place = { 0 };
	size_t nr_good = 0;
	uint64_t fingerprint;

	assert_non_null(good);
	memcpy(good, box, sizeof(*good));
	for (unsigned int i = 0; i < MUTANTS; i++) {
		for (unsigned int j = 0; j <= i % 4; j++) {
			uint64_t at = 0x18000 + next_random() % (BOX_BYTES - 0x18000) / 8 * 8, word = next_random();

			if (i % 8 == 7)
				at = next_random() % 0x9000 / 8 * 8;
			word = word % 3 ? BOX_BASE + word % BOX_BYTES : word >> word % 64;
			memcpy(box->bytes + at, &word, sizeof(word));
		}
		nr_good += !place_at(box, next_random() % 0x800, i & 1, &place);
		nr_good += !read_method(box, 88);
		assert_true(opd_java_fingerprint(box_memory(box, 88), &box->layout, BOX_BLOB, false, &fingerprint) <= 0);
		if (i % 8 == 7)
			(void)!opd_java_read_layout(box_memory(box, PAGES), BOX_BASE, &layout);
		assert_true(place.nr_scopes <= OPD_JAVA_SCOPES_MAX);
		if (i % 16 == 15)
			memcpy(box, good, sizeof(*good));
	}
	assert_true(nr_good > MUTANTS / 2);
	free(good);
}

/* ---- whose memory it is ---- */

/* A child that takes another user, as by execve of a program that has one, and waits. */
static pid_t begin_child(bool takes_user)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (takes_user && (setegid(65534) < 0 || seteuid(65534) < 0))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after a new user, which clears it */
		(void)!write(fds[1], "x", 1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void another_process_is_not_read(void **state OP_UNUSED)
{
	struct opd_java_question question = { .what = OPD_JAVA_CHECK };
	struct opd_far_memory *memory;
	struct op_text answer = { 0 };
	uint64_t who, other;
	char word[] = "a word";
	pid_t pid = begin_child(false);

	assert_int_equal(opd_far_memory_who((uint32_t)pid, &who), 0);
	assert_int_equal(opd_far_memory_open((uint32_t)pid, who, 1, &memory), 0);
	assert_int_equal(opd_far_memory_read(memory, (uintptr_t)word, word, 1), 0);
	opd_far_memory_close(memory);
	assert_int_equal(opd_far_memory_open((uint32_t)pid, who + 1, 1, &memory), -ESTALE);
	question.pid = (uint32_t)pid;
	question.who = who + ((uint64_t)1 << 32);
	assert_int_equal(opd_java_answer((const char *)&question, sizeof(question), &answer), -ESTALE);
	question.who = who;
	assert_int_equal(opd_java_answer((const char *)&question, sizeof(question), &answer), 0);
	op_text_free(&answer);
	end_child(pid);
	assert_true(opd_far_memory_who((uint32_t)pid, &other) < 0);
	assert_true(opd_far_memory_open_fd((uint32_t)pid, who) < 0);
	if (geteuid())
		return;
	pid = begin_child(true);
	assert_int_equal(opd_far_memory_who((uint32_t)pid, &other), 0);
	assert_int_equal(other, (uint64_t)65534 << 32 | 65534);
	assert_int_equal(opd_far_memory_open_fd((uint32_t)pid, who), -ESTALE);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_process_is_not_read),
		cmocka_unit_test_setup_teardown(the_layout_is_that_of_its_tables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_field_that_is_missing_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_call_has_its_scopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_leaf_has_a_shape, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_newer_machine_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_code_is_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_method_has_names_and_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_fingerprint_tells_other_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(circles_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forged_sizes_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mutants_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
