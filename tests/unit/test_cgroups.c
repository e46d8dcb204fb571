/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cgroups: the right hierarchy, names from the side band and from the file system, slots, and the
 * limits of both tables.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/text.h"
#include "libop/odb/mangle.h"
#include "pipeline/resolve/cgroups.h"
#include "tests/unit/test_box.h"

static char dir[BOX_PATH_BYTES];
static char mountinfo[64];

/* A line for a mount of v1/ or v2/. */
static void add_mount(const char *name, const char *rest)
{
	FILE *file = fopen(mountinfo, "a");

	fprintf(file, "1 0 0:1 / %s/%s rw shared:1 - %s\n", dir, name, rest);
	fclose(file);
}

static void forget_mounts(void)
{
	unlink(mountinfo);
}

static uint64_t make_dir(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static int hierarchy_setup(void **state OP_UNUSED)
{
	if (box_make(dir))
		return -1;
	snprintf(mountinfo, sizeof(mountinfo), "%s/mountinfo", dir);
	make_dir("v1");
	make_dir("v2");
	return 0;
}

static int hierarchy_teardown(void **state OP_UNUSED)
{
	return box_remove(dir);
}

static const char *path_of(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns)
{
	uint32_t slot = opd_cgroups_slot(cgroups, id, now_ns);

	return slot == OPD_CGROUP_NONE ? NULL : opd_cgroups_path(cgroups, slot);
}

static void finds_the_hierarchy(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	uint64_t in_v1 = make_dir("v1/a"), in_v2 = make_dir("v2/a");

	add_mount("v2", "cgroup2 cgroup2 rw");
	add_mount("v1", "cgroup cgroup rw,cpu,perf_event");
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	assert_string_equal(path_of(&cgroups, in_v1, 1), "/a");
	assert_string_equal(path_of(&cgroups, in_v2, 1), "/(unknown cgroup)");
	opd_cgroups_free(&cgroups);
	forget_mounts();
	add_mount("v1", "cgroup cgroup rw,cpu,perf_events");
	add_mount("v2", "cgroup2 cgroup2 rw");
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	assert_string_equal(path_of(&cgroups, in_v2, 1), "/a");
	opd_cgroups_free(&cgroups);
	forget_mounts();
	add_mount("v2", "tmpfs tmpfs rw\nno line of mountinfo");
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	assert_null(cgroups.mount_path);
	assert_string_equal(path_of(&cgroups, in_v2, 1), "/(unknown cgroup)");
	opd_cgroups_free(&cgroups);
}

/* In a cgroup namespace the kernel reports longer paths than the file system has. */
static void leaves_out_what_is_above(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	uint64_t deep;

	add_mount("v2", "cgroup2 cgroup2 rw");
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	cgroups.seeks_root = true;
	assert_int_equal(opd_cgroups_add(&cgroups, 77, "/machine/payload/gone"), 0);
	assert_string_equal(path_of(&cgroups, 77, 1), "/machine/payload/gone");
	make_dir("v2/a");
	deep = make_dir("v2/a/b");
	assert_int_equal(opd_cgroups_add(&cgroups, deep, "/machine/payload/a/b"), 0);
	assert_string_equal(path_of(&cgroups, deep, 1), "/a/b");
	assert_int_equal(opd_cgroups_add(&cgroups, 78, "/machine/payload/brief"), 0);
	assert_string_equal(path_of(&cgroups, 78, 1), "/brief");
	assert_int_equal(opd_cgroups_add(&cgroups, 79, "/machine/payloads/x"), 0);
	assert_string_equal(path_of(&cgroups, 79, 1), "/machine/payloads/x");
	opd_cgroups_free(&cgroups);
}

/*
 * Unknown cgroups are searched once a second. The side band makes a cgroup known at once. A removed
 * cgroup keeps its name.
 */
static void learns(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	uint64_t deep, dotted, hidden, late;
	char path[128];

	add_mount("v2", "cgroup2 cgroup2 rw");
	make_dir("v2/system.slice");
	deep = make_dir("v2/system.slice/cron.service");
	dotted = make_dir("v2/system.slice/..dotted");
	hidden = make_dir("v2/.hidden");
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	assert_string_equal(path_of(&cgroups, deep, OP_NS_PER_S), "/system.slice/cron.service");
	assert_string_equal(path_of(&cgroups, dotted, OP_NS_PER_S), "/system.slice/..dotted");
	assert_string_equal(path_of(&cgroups, hidden, OP_NS_PER_S), "/.hidden");
	assert_int_equal(cgroups.by_id.nr_entries, 5);
	assert_string_equal(path_of(&cgroups, 1, OP_NS_PER_S), "/(unknown cgroup)");
	late = make_dir("v2/late");
	assert_string_equal(path_of(&cgroups, late, OP_NS_PER_S + 1), "/(unknown cgroup)");
	assert_string_equal(path_of(&cgroups, late, 2 * OP_NS_PER_S), "/late");
	assert_int_equal(opd_cgroups_add(&cgroups, 77, "/told"), 0);
	assert_string_equal(path_of(&cgroups, 77, 2 * OP_NS_PER_S), "/told");
	assert_int_equal(opd_cgroups_add(&cgroups, 77, "/another of that number"), 0);
	assert_string_equal(path_of(&cgroups, 77, 2 * OP_NS_PER_S), "/another of that number");
	snprintf(path, sizeof(path), "%s/v2/late", dir);
	assert_int_equal(rmdir(path), 0);
	assert_string_equal(path_of(&cgroups, late, 9 * (uint64_t)OP_NS_PER_S), "/late");
	opd_cgroups_free(&cgroups);
}

static void slots_are_by_path(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	uint32_t slot;

	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	assert_int_equal(opd_cgroups_add(&cgroups, 1, "/service"), 0);
	assert_int_equal(opd_cgroups_add(&cgroups, 2, "/service"), 0);
	slot = opd_cgroups_slot(&cgroups, 1, 1);
	assert_int_not_equal(slot, OPD_CGROUP_NONE);
	assert_int_equal(opd_cgroups_slot(&cgroups, 2, 1), slot);
	assert_int_equal(cgroups.nr_slots, 1);
	opd_cgroups_forget_slots(&cgroups);
	assert_int_equal(cgroups.nr_slots, 0);
	assert_string_equal(path_of(&cgroups, 2, 1), "/service");
	opd_cgroups_free(&cgroups);
}

static void both_tables_are_bounded(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	char path[32];

	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	for (uint64_t id = 1; id <= 3 * (uint64_t)OPD_CGROUPS_KNOWN_MAX; id++) {
		snprintf(path, sizeof(path), "/scope-%llu", (unsigned long long)id);
		assert_int_equal(opd_cgroups_add(&cgroups, id, path), 0);
		if (id <= 10)
			assert_string_equal(path_of(&cgroups, id, 1), path);
	}
	assert_true(cgroups.by_id.nr_entries <= OPD_CGROUPS_KNOWN_MAX);
	assert_int_equal(cgroups.by_id.nr_entries + cgroups.nr_forgotten, 3 * OPD_CGROUPS_KNOWN_MAX);
	assert_true(cgroups.nr_bytes <= OPD_CGROUPS_BYTES_MAX);
	assert_string_equal(path_of(&cgroups, 10, 1), "/scope-10"); /* it has samples */
	for (uint64_t id = 1; id <= 2 * (uint64_t)OPD_CGROUP_SLOTS_MAX; id++) {
		snprintf(path, sizeof(path), "/slot-%llu", (unsigned long long)id);
		assert_int_equal(opd_cgroups_add(&cgroups, 1000000 + id, path), 0);
		opd_cgroups_slot(&cgroups, 1000000 + id, 1);
	}
	assert_int_equal(cgroups.nr_slots, OPD_CGROUP_SLOTS_MAX);
	assert_int_equal(opd_cgroups_slot(&cgroups, 1000000 + 2 * OPD_CGROUP_SLOTS_MAX, 1), OPD_CGROUP_NONE);
	assert_true(opd_cgroups_are_given(&cgroups));
	assert_string_equal(path_of(&cgroups, 1000001, 1), "/slot-1");
	opd_cgroups_free(&cgroups);
}

/*
 * A cgroup with samples since the last time is not chosen. A slot that was taken back goes to
 * another cgroup, and its old cgroup gets another slot.
 */
static void slots_are_taken_back(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	uint32_t slots[OPD_CGROUP_SLOTS_MAX + 1], nr_chosen = 0;
	char path[32];

	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	for (uint64_t id = 1; id <= OPD_CGROUP_SLOTS_MAX + 1; id++) {
		snprintf(path, sizeof(path), "/slot-%llu", (unsigned long long)id);
		assert_int_equal(opd_cgroups_add(&cgroups, id, path), 0);
		slots[id - 1] = opd_cgroups_slot(&cgroups, id, 1);
	}
	assert_int_equal(slots[OPD_CGROUP_SLOTS_MAX], OPD_CGROUP_NONE);
	opd_cgroups_choose(&cgroups);
	for (uint32_t i = 0; i < OPD_CGROUP_SLOTS_MAX; i++)
		nr_chosen += opd_cgroups_is_chosen(&cgroups, slots[i]);
	assert_int_equal(nr_chosen, OPD_CGROUP_SLOTS_MAX / 4);
	opd_cgroups_take_back(&cgroups);
	assert_int_equal(cgroups.nr_slots, 3 * OPD_CGROUP_SLOTS_MAX / 4);
	assert_int_equal(cgroups.nr_taken_back, OPD_CGROUP_SLOTS_MAX / 4);
	assert_int_equal(cgroups.by_path.nr_entries, cgroups.nr_slots);
	for (uint64_t id = OPD_CGROUP_SLOTS_MAX + 1; id; id--) {
		snprintf(path, sizeof(path), "/slot-%llu", (unsigned long long)id);
		if (opd_cgroups_are_given(&cgroups))
			break;
		assert_string_equal(path_of(&cgroups, id, 1), path);
	}
	opd_cgroups_choose(&cgroups);
	assert_false(opd_cgroups_is_chosen(&cgroups, opd_cgroups_slot(&cgroups, OPD_CGROUP_SLOTS_MAX + 1, 1)));
	opd_cgroups_take_back(&cgroups);
	opd_cgroups_forget_slots(&cgroups);
	assert_int_equal(cgroups.nr_slots, 0);
	assert_int_equal(cgroups.nr_free, OPD_CGROUP_SLOTS_MAX);
	opd_cgroups_free(&cgroups);
}

/* A cgroup that is made and removed many times has one path and many numbers. */
static void numbers_of_one_path_are_bounded(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;

	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	for (uint64_t id = 1; id <= 2 * (uint64_t)OPD_CGROUPS_KNOWN_MAX; id++) {
		assert_int_equal(opd_cgroups_add(&cgroups, id, "/service"), 0);
		assert_string_equal(path_of(&cgroups, id, 1), "/service");
		assert_true(cgroups.by_id.nr_entries <= OPD_CGROUPS_KNOWN_MAX);
	}
	assert_int_equal(cgroups.nr_slots, 1);
	opd_cgroups_free(&cgroups);
}

static void long_paths_are_bounded(void **state OP_UNUSED)
{
	struct opd_cgroups cgroups;
	char path[4000];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(opd_cgroups_init(&cgroups, mountinfo), 0);
	for (uint64_t id = 1; id <= 3 * (uint64_t)OPD_CGROUPS_BYTES_MAX / sizeof(path); id++) {
		assert_int_equal(opd_cgroups_add(&cgroups, id, path), 0);
		assert_true(cgroups.nr_bytes <= OPD_CGROUPS_BYTES_MAX + sizeof(path) + 100);
	}
	assert_true(cgroups.nr_forgotten > 0);
	opd_cgroups_free(&cgroups);
}

/* Directory names with characters that are special elsewhere, in both directions. */
static void names(void **state OP_UNUSED)
{
	static const struct {
		const char *cgroup, *path;
	} rows[] = {
		{ "/", "cgroup/" },
		{ "/system.slice/a b.service", "cgroup/system.slice/a b.service/" },
		{ "/{root}/{dep}/x", "cgroup/{{root}}/{{dep}}/x/" },
		{ "/{{root}}", "cgroup/{{{root}}}/" },
		{ "/../a/.", "cgroup/{..}/a/{.}/" },
		{ "/{/}/a\nb", "cgroup/{/}/a\nb/" },
	};

	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct op_text text = { 0 };
		char *back;

		op_mangle_cgroup(rows[i].cgroup, &text);
		assert_string_equal(op_text_get(&text), rows[i].path);
		back = op_unmangle_cgroup(op_text_get(&text) + strlen(OP_CGROUP_DIR));
		assert_string_equal(back, rows[i].cgroup);
		free(back);
		op_text_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_the_hierarchy, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(leaves_out_what_is_above, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(learns, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(slots_are_by_path, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(both_tables_are_bounded, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(slots_are_taken_back, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(numbers_of_one_path_are_bounded, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test_setup_teardown(long_paths_are_bounded, hierarchy_setup, hierarchy_teardown),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
