/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which file a process runs: what speaks for it, and what this machine knows about it. */
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "tools/opimport/witness.h"

#define PIE  0x555555554000u
#define LIBS 0x7ffff7a00000u
#define PID  77u

/* ---- what speaks for a file ---- */

/* Of each pair the first one is the executable. */
static const struct {
	const char *comm, *path;
	uint64_t base;
	const char *other;
	uint64_t other_base;
} pairs[] = {
	{ "echo", "/usr/bin/echo", PIE, "/lib/libc.so.6", LIBS },
	{ "", "/usr/bin/echo", PIE, "/lib/ld-linux-x86-64.so.2", 0x2aaaaaaab000 },
	{ "other", "/opt/echo", PIE, "/opt/font", LIBS },
	{ "other", "/opt/echo", 0x400000, "/opt/font", LIBS },
	{ "other", "/opt/echo", 0xaaaadeaf0000, "/opt/font", 0xffff80000000 },
	{ "other", "/usr/bin/echo", LIBS, "/opt/font", LIBS },
	{ "echo", "/opt/echo", LIBS, "/opt/font", PIE },
	{ "a-name-of-many-", "/opt/a-name-of-many-letters", LIBS, "/opt/a-name-of-many", PIE + 0x10000000000 },
	{ "libc.so.6", "/opt/echo", PIE, "/lib/libc.so.6", LIBS },
	{ "ld-linux-x86-64", "/lib/ld-linux-x86-64.so.2", LIBS, "/opt/echo", 0x400000 },
	{ "main", "/system/bin/app_process64", 0x6000000000, "/system/framework/boot.oat", 0x70000000 },
	{ "", "/opt/libtool", LIBS, "/dev/dri/card0", PIE },
	{ "", "/lib/libc-2.31.so", LIBS, "/lib/ld-2.31.so", LIBS },
};

static void the_executable_has_more(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(pairs); i++) {
		unsigned int own = opd_app_evidence(pairs[i].path, pairs[i].base, pairs[i].comm);
		unsigned int other = opd_app_evidence(pairs[i].other, pairs[i].other_base, pairs[i].comm);

		if (own <= other)
			fail_msg("pair %zu: %u is not above %u", i, own, other);
	}
}

/* ---- choosing ---- */

struct space {
	struct op_dcookie_table *table;
	struct opd_mm mm;
	uint64_t cookies[4];
	size_t nr;
};

static int space_setup(void **state)
{
	static struct opd_mapset_account account;
	struct space *space = calloc(1, sizeof(*space));

	space->table = op_dcookie_table_new();
	space->mm.maps = opd_mapset_new(&account);
	*state = space;
	return 0;
}

static int space_teardown(void **state)
{
	struct space *space = *state;

	opd_mapset_put(space->mm.maps);
	op_dcookie_table_free(space->table);
	free(space);
	return 0;
}

static void map(struct space *space, const char *path, uint64_t start)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = path } };
	struct opd_mapping mapping = { .start = start, .end = start + 0x1000, .from_ns = 1 };

	mapping.cookie = space->cookies[space->nr++] = op_dcookie_get(space->table, &id);
	assert_int_equal(opd_mapset_add(&space->mm.maps, &mapping, 0), 0);
}

static uint64_t choose(const struct space *space, const struct opd_app_witness *witness)
{
	return opd_app_choose(space->table, PID, &space->mm, witness);
}

struct asked {
	const char *path; /* of the file that the answer is for */
	int answer;
	size_t nr_asked;
};

static int answer(void *arg, uint32_t pid, const struct op_image_id *file, const struct opd_mapping *mapping OP_UNUSED)
{
	struct asked *asked = arg;

	assert_int_equal(pid, PID);
	asked->nr_asked++;
	return strcmp(file->name.name, asked->path) ? 0 : asked->answer;
}

static void nobody_is_asked_in_vain(void **state)
{
	struct asked asked = { .path = "" };
	const struct opd_app_witness witness = { answer, &asked };
	struct space *space = *state;

	map(space, "/lib/libc.so.6", 0x155555000000);
	map(space, "/opt/program", PIE);
	assert_int_equal(choose(space, &witness), space->cookies[1]);
	assert_int_equal(asked.nr_asked, 0);
}

static void a_witness_decides(void **state)
{
	struct asked asked = { .path = "/opt/second" };
	const struct opd_app_witness witness = { answer, &asked };
	struct space *space = *state;

	map(space, "/opt/first", LIBS);
	map(space, "/opt/second", LIBS + 0x10000);
	assert_int_equal(choose(space, NULL), space->cookies[0]);
	assert_int_equal(choose(space, &witness), space->cookies[0]);
	assert_int_equal(asked.nr_asked, 2);
	asked.answer = OPD_APP_HEADERS;
	assert_int_equal(choose(space, &witness), space->cookies[1]);
	asked = (struct asked){ .path = "/opt/first", .answer = -1 };
	assert_int_equal(choose(space, &witness), space->cookies[1]);
}

/* A process without its executable: no library takes its place. A lone file is the executable. */
static void libraries_are_no_applications(void **state)
{
	struct asked asked = { .path = "/lib/libm.so.6", .answer = OPD_APP_EXE };
	const struct opd_app_witness witness = { answer, &asked };
	struct space *space = *state;

	assert_int_equal(choose(space, &witness), OP_DCOOKIE_NONE);
	map(space, "/lib/libc.so.6", LIBS);
	assert_int_equal(choose(space, NULL), space->cookies[0]);
	map(space, "/lib/libm.so.6", LIBS + 0x10000);
	assert_int_equal(choose(space, NULL), OP_DCOOKIE_NONE);
	assert_int_equal(choose(space, &witness), space->cookies[1]);
}

/* ---- program headers ---- */

static enum opi_elf_kind kind_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct op_build_id id;
	enum opi_elf_kind kind;

	assert_true(fd >= 0);
	kind = opi_elf_look(fd, &id);
	close(fd);
	return kind;
}

struct line {
	struct op_image_id file;
	struct opd_mapping mapping;
	char path[PATH_MAX];
};

/* The first executable mapping of a file whose path has this part. */
static bool find_line(const char *part, struct line *ret_line)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char text[PATH_MAX + 256];
	bool found = false;

	while (maps && !found && fgets(text, sizeof(text), maps)) {
		unsigned long start, end, offset, inode;
		unsigned int maj, min;

		*ret_line = (struct line){ 0 };
		found = sscanf(text, "%lx-%lx r-xp %lx %x:%x %lu %4095s", &start, &end, &offset, &maj, &min, &inode,
			       ret_line->path) == 7 &&
			strstr(ret_line->path, part);
		ret_line->file.name = (struct op_image_name){ .kind = OP_IMAGE_FILE, .name = ret_line->path };
		ret_line->file.device = makedev(maj, min);
		ret_line->file.inode = inode;
		ret_line->mapping = (struct opd_mapping){ .start = start, .end = end, .key = offset };
	}
	fclose(maps);
	return found;
}

static void headers_tell_libraries_apart(void **state OP_UNUSED)
{
	struct line line;

	assert_int_equal(kind_of("/proc/self/exe"), OPI_ELF_EXECUTABLE);
	assert_int_equal(kind_of("/proc/self/maps"), OPI_ELF_UNKNOWN);
	/* Both have an entry, and libc.so.6 has an interpreter. Sanitizers link none of them. */
	if (find_line("/libc.so", &line))
		assert_int_equal(kind_of(line.path), OPI_ELF_LIBRARY);
	if (find_line("/ld-", &line))
		assert_int_equal(kind_of(line.path), OPI_ELF_LIBRARY);
}

/* Cut anywhere, with any byte turned over. */
static void damaged_headers(void **state OP_UNUSED)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = memfd_create("damaged", MFD_CLOEXEC);
	uint8_t bytes[2048];
	struct op_build_id id;

	assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 0xff;
		assert_int_equal(pwrite(copy, bytes, sizeof(bytes), 0), sizeof(bytes));
		assert_in_range(opi_elf_look(copy, &id), OPI_ELF_UNKNOWN, OPI_ELF_LIBRARY);
		bytes[i] ^= 0xff;
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_int_equal(ftruncate(copy, (off_t)i), 0);
		assert_in_range(opi_elf_look(copy, &id), OPI_ELF_UNKNOWN, OPI_ELF_LIBRARY);
	}
	close(copy);
	close(fd);
}

/* ---- processes ---- */

static void a_process_must_be_the_recorded_one(void **state OP_UNUSED)
{
	struct op_perf_features features = { 0 };
	struct opi_witness witness;
	struct line line;
	char exe[PATH_MAX] = "";
	uint32_t pid = (uint32_t)getpid();

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_true(find_line(exe, &line));
	opi_witness_init(&witness, &features, -1);
	assert_int_equal(witness.witness.look(&witness, pid, &line.file, &line.mapping), OPD_APP_EXE);
	/* Elsewhere, another file, an earlier recording, another process: only the file is left. */
	line.mapping.start += 0x1000;
	line.mapping.end += 0x1000;
	assert_int_equal(witness.witness.look(&witness, pid, &line.file, &line.mapping), 0);
	line.mapping.key += 0x1000;
	assert_int_equal(witness.witness.look(&witness, pid, &line.file, &line.mapping), OPD_APP_EXE);
	line.file.inode++;
	assert_int_equal(witness.witness.look(&witness, pid, &line.file, &line.mapping), 0);
	line.file.inode--;
	assert_int_equal(witness.witness.look(&witness, (uint32_t)getppid(), &line.file, &line.mapping), 0);
	witness.recorded_at = time(NULL) - 86400;
	assert_int_equal(witness.witness.look(&witness, pid, &line.file, &line.mapping), 0);
}

/* Without a process, a file counts that has the build-id of the recording. */
static void a_file_must_be_the_recorded_one(void **state OP_UNUSED)
{
	struct op_perf_features features = { 0 };
	struct opi_witness witness;
	struct op_build_id id;
	struct line line;
	char exe[PATH_MAX] = "";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(opi_elf_look(fd, &id), OPI_ELF_EXECUTABLE);
	close(fd);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_true(find_line(exe, &line));
	if (!id.nr_bytes)
		skip();
	opi_witness_init(&witness, &features, -1);
	memcpy(line.file.build_id, id.bytes, id.nr_bytes);
	line.file.build_id_bytes = id.nr_bytes;
	assert_int_equal(witness.witness.look(&witness, UINT32_MAX, &line.file, &line.mapping), OPD_APP_HEADERS);
	line.file.build_id[0] ^= 1;
	assert_int_equal(witness.witness.look(&witness, UINT32_MAX, &line.file, &line.mapping), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_executable_has_more),
		cmocka_unit_test_setup_teardown(nobody_is_asked_in_vain, space_setup, space_teardown),
		cmocka_unit_test_setup_teardown(a_witness_decides, space_setup, space_teardown),
		cmocka_unit_test_setup_teardown(libraries_are_no_applications, space_setup, space_teardown),
		cmocka_unit_test(headers_tell_libraries_apart),
		cmocka_unit_test(damaged_headers),
		cmocka_unit_test(a_process_must_be_the_recorded_one),
		cmocka_unit_test(a_file_must_be_the_recorded_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
