/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JIT code whose files a looker has open: a looker that ends, answers that do not come, and what
 * asking costs.
 */
#include "tests/unit/pair.h"
#include "tests/unit/test_box.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/process/helper.h"
#include "pipeline/files/lookers.h"
#include "pipeline/jit/space.h"

#define BASE     UINT64_C(0x7f0000000000)
#define NR_TRIES 20000

static bool *looker_ends; /* with the next reading; shared with the lookers */

static int answer(const char *question, size_t nr_bytes, int fd, struct op_text *text)
{
	uint32_t look;

	memcpy(&look, question, sizeof(look));
	if (look == OPD_LOOK_READ && *looker_ends) {
		*looker_ends = false;
		_exit(0);
	}
	return opd_look_answer(question, nr_bytes, fd, text);
}

static const struct op_helper_kind kind = { "opd-test", NULL, answer };

struct world {
	struct op_nursery *nursery;
	struct opd_lookers *lookers;
	struct op_dcookie_table *table;
	struct opd_jit jit;
	struct opd_jit_space *space;
	uint64_t now_ns;
};

static void begin(struct world *world)
{
	const struct opd_jit_process process = { .pid = (uint32_t)getpid(), .about = { .pid = (uint32_t)getpid() } };

	*world = (struct world){ .table = op_dcookie_table_new(), .now_ns = OP_NS_PER_S };
	looker_ends = mmap(NULL, sizeof(*looker_ends), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(looker_ends, MAP_FAILED);
	assert_int_equal(op_nursery_start(&kind, 1, &world->nursery), 0);
	assert_int_equal(opd_lookers_new(world->nursery, 0, &world->lookers), 0);
	opd_jit_init(&world->jit, world->table);
	world->jit.lookers = world->lookers;
	for (int i = 0; i < NR_TRIES && !(world->space && world->space->owner.is_known); i++) {
		opd_jit_space_put(world->space);
		assert_int_equal(opd_jit_space_new(&world->jit, &process, &world->space), 0);
	}
	assert_true(world->space->owner.is_known);
}

static void end(struct world *world)
{
	opd_jit_space_put(world->space);
	opd_jit_free(&world->jit);
	op_dcookie_table_free(world->table);
	opd_lookers_free(world->lookers);
	op_nursery_stop(world->nursery);
	munmap(looker_ends, sizeof(*looker_ends));
}

static void put_words(int fd, const uint64_t *words, size_t nr_words)
{
	assert_int_equal(op_sys_write_all(fd, words, nr_words * sizeof(*words)), 0);
}

static void put_load(int fd, uint64_t start)
{
	const uint64_t words[] = { PAIR(0, 72), 1, PAIR(1, 0), start, start, 8, 1, htole64('f'), 0 };

	put_words(fd, words, op_array_size(words));
}

/* A new file with so many functions. */
static void put_dump(const struct box *box, uint64_t nr_functions)
{
	const uint64_t header[] = { PAIR(0x4a695444, 1), PAIR(40, 0), 0, 0, 0 };
	int fd = openat(box->fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	put_words(fd, header, op_array_size(header));
	for (uint64_t i = 0; i < nr_functions; i++)
		put_load(fd, BASE + i * 0x100);
	close(fd);
	assert_int_equal(renameat(box->fd, "new", box->fd, "jit-1.dump"), 0);
}

/* On a busy machine a looker may need several visits. */
static void await_functions(struct world *world, size_t nr)
{
	for (int i = 0; i < NR_TRIES && opd_jit_map_count(&world->space->map) != nr; i++) {
		const struct opd_jit_times times = { .now_ns = world->now_ns += OP_NS_PER_S };

		opd_jit_space_refresh(world->space, &times);
		usleep(100);
	}
	assert_int_equal(opd_jit_map_count(&world->space->map), nr);
}

static void a_dump_is_opened_again_when_its_looker_ended(void **state)
{
	const struct box *box = *state;
	struct world world;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/jit-1.dump", box->path);
	begin(&world);
	put_dump(box, 1);
	while (opd_jit_space_open_dump(world.space, 0, 0, path))
		usleep(100);
	await_functions(&world, 1);
	*looker_ends = true;
	fd = openat(box->fd, "jit-1.dump", O_WRONLY | O_APPEND | O_CLOEXEC);
	put_load(fd, BASE + 0x100);
	await_functions(&world, 2);
	assert_false(*looker_ends);
	close(fd);
	end(&world);
}

/* A map with one function, and a sample there that waits for its name. */
static void put_map(struct world *world, char path[64])
{
	const char *line = "7f0000000000 40 function\n";
	int fd;

	snprintf(path, 64, "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(op_sys_write_all(fd, line, strlen(line)), 0);
	close(fd);
	world->space->waiting = opd_jit_waiting_new(&world->jit.waits, world->space->owner.pid, world->space->owner.uid,
						    opd_jit_space_label(world->space));
	assert_true(opd_jit_waiting_add(world->space->waiting, BASE + 1, 1, false));
}

static void a_map_without_an_answer_is_read_in_the_next_visit(void **state OP_UNUSED)
{
	struct world world;
	char path[64];

	begin(&world);
	put_map(&world, path);
	*looker_ends = true;
	for (int i = 0; i < NR_TRIES && *looker_ends; i++) {
		world.now_ns += OP_NS_PER_MS / 10;
		opd_jit_space_refresh(world.space, &(struct opd_jit_times){ .now_ns = world.now_ns });
		usleep(100);
	}
	assert_false(*looker_ends);
	assert_int_equal(opd_jit_map_count(&world.space->map), 0);
	assert_true(world.space->put_off);
	for (int i = 0; i < NR_TRIES && !opd_jit_map_count(&world.space->map); i++) {
		world.now_ns += OP_NS_PER_MS / 10;
		opd_jit_space_refresh(world.space, &(struct opd_jit_times){ .now_ns = world.now_ns });
		usleep(100);
	}
	assert_int_equal(world.jit.counters[OP_JIT_named_late], 1);
	unlink(path);
	end(&world);
}

/* The samples of a process that has ended get their names when the answer comes. */
static void an_ended_process_is_asked_until_it_answers(void **state OP_UNUSED)
{
	struct world world;
	char path[64];

	begin(&world);
	put_map(&world, path);
	opd_lookers_wait_until(world.lookers, op_now_ns() - 1);
	world.now_ns += OP_NS_PER_S; /* there is time for a reading */
	opd_jit_space_ends(world.space, &(struct opd_jit_times){ .now_ns = world.now_ns });
	assert_int_equal(world.jit.counters[OP_JIT_put_off], 0);
	opd_lookers_wait_until(world.lookers, 0);
	assert_true(opd_jit_space_is_useful(world.space));
	opd_jit_space_put(world.space);
	world.space = NULL;
	for (int i = 0; i < NR_TRIES && world.jit.spaces; i++) {
		world.now_ns += OP_NS_PER_MS / 10;
		opd_jit_read_ended(&world.jit, &(struct opd_jit_times){ .now_ns = world.now_ns });
		usleep(100);
	}
	assert_int_equal(world.jit.counters[OP_JIT_named_late], 1);
	unlink(path);
	end(&world);
}

static void another_file_in_its_place_is_no_dump(void **state)
{
	const struct box *box = *state;
	struct world world;
	char path[64];

	snprintf(path, sizeof(path), "%s/jit-1.dump", box->path);
	begin(&world);
	put_dump(box, 1);
	while (opd_jit_space_open_dump(world.space, 0, 0, path))
		usleep(100);
	await_functions(&world, 1);
	put_dump(box, 3);
	*looker_ends = true;
	for (int i = 0; i < 100; i++) {
		const struct opd_jit_times times = { .now_ns = world.now_ns += OP_NS_PER_S };

		opd_jit_space_refresh(world.space, &times);
	}
	assert_false(*looker_ends);
	assert_int_equal(opd_jit_map_count(&world.space->map), 1);
	end(&world);
}

static void the_first_question_is_charged(void **state OP_UNUSED)
{
	struct world world;

	begin(&world);
	assert_true(world.jit.counters[OP_JIT_cpu_ns] > 0);
	assert_true(world.jit.budget.left_ns < 0); /* nothing was granted yet */
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		box_test(a_dump_is_opened_again_when_its_looker_ended),
		cmocka_unit_test(a_map_without_an_answer_is_read_in_the_next_visit),
		cmocka_unit_test(an_ended_process_is_asked_until_it_answers),
		box_test(another_file_in_its_place_is_no_dump),
		cmocka_unit_test(the_first_question_is_charged),
	};

	return cmocka_run_group_tests_name("jit_space", tests, NULL, NULL);
}
