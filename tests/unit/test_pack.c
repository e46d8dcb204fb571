/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pack of a session: its size, that no sample is lost or doubled, damage, files again. */
#define BOX_IN_MEMORY
#include "tests/unit/test_box.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "daemon/jobs/write_out.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"
#include "libop/session/contents.h"
#include "libop/session/list.h"
#include "libop/session/pack.h"
#include "libop/session/pack_all.h"
#include "libop/session/parts.h"
#include "libop/session/sum.h"
#include "tests/unit/sample_writer.h"
#include "tools/opcheck/session.h"
#include "tools/oparchive/store.h"

#define NR_FILES (OP_SESSION_PACK_MIN + 100u)
#define SESSION	 "samples/one"
#define KEYS_MAX 40u
#define KILLS	 12
/* what a file in a pack takes: its path, the header, 16 bytes for each of its nodes, its row */
#define FILE_BYTES_MAX 1024u

/* ---- what happens between two system calls ---- */

static struct {
	/* calls since packed.new was made; the process is killed at the call kill_at, 0: never */
	uint64_t nr_calls, kill_at;
	int nr_getdents_left;       /* `act` runs before the call that makes it 0 */
	const char *before_open;    /* and before this path is opened */
	void (*act)(void);
	int nr_unlinks_left, unlink_err, syncfs_err;
} seam;

static struct {
	const struct box *box;
	int fd;
} beside;

static void count_call(void)
{
	if (++seam.nr_calls == seam.kill_at)
		kill(getpid(), SIGKILL);
}

static void act(void)
{
	void (*what)(void) = seam.act;

	seam.act = NULL;
	if (what)
		what();
}

int __real_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	if (!strcmp(path, OP_SESSION_PACK_NEW))
		seam.nr_calls = 0;
	count_call();
	if (seam.before_open && !strcmp(path, seam.before_open))
		act();
	return __real_op_sys_openat(dir_fd, path, flags, mode);
}

ssize_t __real_op_sys_getdents(int fd, void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_getdents(int fd, void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_getdents(int fd, void *buffer, size_t nr_bytes)
{
	if (seam.nr_getdents_left && !--seam.nr_getdents_left)
		act();
	return __real_op_sys_getdents(fd, buffer, nr_bytes);
}

int __real_op_sys_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_op_sys_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_op_sys_unlinkat(int dir_fd, const char *path, int flags)
{
	count_call();
	if (seam.nr_unlinks_left && !--seam.nr_unlinks_left)
		return seam.unlink_err;
	return __real_op_sys_unlinkat(dir_fd, path, flags);
}

/* It would wait for what all other programs write. */
int __wrap_op_sys_syncfs(int fd);
int __wrap_op_sys_syncfs(int fd OP_UNUSED)
{
	return seam.syncfs_err;
}

/* Temporary files of a compiler, as a build host has them. */
static char *path_of(uint32_t index, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX,
		 "{root}/home/build/jobs/work-%u/tests/conftest.%u/{dep}/{root}/usr/lib/x86_64-linux-gnu/"
		 "lib%s.so.6/TIMER.1000000.0.all.all.all",
		 index / 40, index / 2, index % 2 ? "c" : "m");
	return path;
}

/* Key 0 is among them; the last key of some files has a full count and goes on in another node. */
static uint32_t samples_of(uint32_t index, struct sample samples[KEYS_MAX + 1])
{
	uint32_t nr = index % KEYS_MAX + 1;

	for (uint32_t i = 0; i < nr; i++)
		samples[i] = (struct sample){ i * (uint64_t)0x10, index + i + 1 };
	if (index % 3)
		return nr;
	samples[nr] = samples[nr - 1];
	samples[nr - 1].value = UINT32_MAX;
	return nr + 1;
}

static struct op_odb_header header_of(uint32_t index)
{
	struct op_odb_header header = sample_header();

	header.mtime = 1700000000 + index;
	header.ctr_count = 1000000;
	return header;
}

static void write_file(int dir_fd, uint32_t index)
{
	struct sample samples[KEYS_MAX + 1];
	uint32_t nr = samples_of(index, samples);
	struct op_odb_header header = header_of(index);
	char path[PATH_MAX];

	sample_write(dir_fd, path_of(index, path), &header, samples, nr);
}

static int make_session(const struct box *box)
{
	int fd;

	sample_make_dirs(box->fd, "tmp/x");
	sample_make_dirs(box->fd, SESSION "/x");
	fd = openat(box->fd, SESSION, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (uint32_t i = 0; i < NR_FILES; i++)
		write_file(fd, i);
	return fd;
}

static void end_session(const struct box *box, int fd)
{
	close(fd);
	assert_int_equal(op_session_remove(box->fd, "samples"), 0);
}

static bool has(int fd, const char *path)
{
	return !faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static uint64_t disk_bytes(const struct box *box)
{
	uint64_t nr_bytes = 0;

	assert_int_equal(op_session_disk_bytes(box->fd, SESSION, &nr_bytes), 0);
	return nr_bytes;
}

static void check_file(int fd, uint32_t index)
{
	struct op_odb_header header = header_of(index);
	struct sample samples[KEYS_MAX + 1];
	uint32_t nr = samples_of(index, samples), at = 0;
	struct op_odb_samples found = { 0 };
	struct op_odb_fault fault;
	char path[PATH_MAX];

	assert_int_equal(op_session_read_samples(fd, path_of(index, path), &found, &fault), 0);
	assert_memory_equal(&found.header, &header, sizeof(header));
	for (uint32_t i = 0; i < found.nr_nodes; i++) {
		if (!found.nodes[i].value)
			continue;
		assert_true(at < nr);
		assert_int_equal(found.nodes[i].key, samples[at].key);
		assert_int_equal(found.nodes[i].value, samples[at++].value);
	}
	assert_int_equal(at, nr);
	op_odb_samples_free(&found);
}

/* Each file once, in the order of paths, with its samples. */
static void check_all(int fd, size_t nr_packed)
{
	struct op_session_list list;
	size_t nr = 0;

	assert_int_equal(op_session_list(fd, &list, NULL), 0);
	assert_int_equal(list.nr_files, NR_FILES);
	for (size_t i = 0; i < list.nr_files; i++) {
		nr += list.files[i].is_packed;
		assert_true(!i || strcmp(list.files[i - 1].path, list.files[i].path) < 0);
	}
	op_session_list_free(&list);
	if (nr_packed != SIZE_MAX)
		assert_int_equal(nr, nr_packed);
	for (uint32_t i = 0; i < NR_FILES; i++)
		check_file(fd, i);
}

/* The old code kept a block for each file and each directory: on a disk 18 KiB for a file. */
static void a_closed_session_is_small(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);
	uint64_t before = disk_bytes(box), after;

	op_session_compact(fd);
	after = disk_bytes(box);
	print_message("%llu bytes a file before, %llu after\n", (unsigned long long)(before / NR_FILES),
		      (unsigned long long)(after / NR_FILES));
	assert_true(after <= (uint64_t)NR_FILES * FILE_BYTES_MAX);
	assert_true(has(fd, OP_SESSION_PACKED));
	assert_false(has(fd, OP_SESSION_PACK_NEW));
	assert_false(has(fd, "{root}/home"));
	check_all(fd, NR_FILES);
	/* Once more changes nothing. */
	op_session_compact(fd);
	check_all(fd, NR_FILES);
	end_session(box, fd);
}

/* The genuine tools read a session of this size as it is. */
static void a_small_session_stays(void **state)
{
	const struct box *box = *state;
	int fd;

	sample_make_dirs(box->fd, SESSION "/x");
	fd = openat(box->fd, SESSION, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; i < OP_SESSION_PACK_MIN - 1; i++)
		write_file(fd, i);
	op_session_compact(fd);
	assert_false(has(fd, OP_SESSION_PACKED));
	end_session(box, fd);
}

static uint64_t nr_nodes_of(int fd, uint32_t index)
{
	char path[PATH_MAX];
	uint32_t nr = 0;

	assert_int_equal(op_odb_read_nr_nodes(fd, path_of(index, path), &nr), 0);
	return nr;
}

static void sample_files_again(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);

	op_session_compact(fd);
	assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	assert_false(has(fd, OP_SESSION_PACKED));
	check_all(fd, 0);
	assert_true(nr_nodes_of(fd, 7) == 8);
	assert_int_equal(op_session_unpack(box->fd, SESSION), -ENOENT);
	end_session(box, fd);
}

/* By all files of the session. */
static uint64_t stored(int fd)
{
	struct op_session_ledger ledger = { 0 };
	uint64_t nr_bad, nr;

	assert_int_equal(op_session_ledger_add_files(&ledger, fd, &nr_bad), 0);
	assert_int_equal(nr_bad, 0);
	assert_int_equal(ledger.nr_events, 1);
	nr = ledger.events[0].stored;
	op_session_ledger_free(&ledger);
	return nr;
}

/* A file hides what the pack has at its path; the next pack has the file's. */
static void a_file_hides_the_pack(void **state)
{
	const struct box *box = *state;
	struct op_odb_header header = header_of(5);
	struct sample more = { 0x50, 12345 };
	struct op_odb_samples found;
	struct op_odb_fault fault;
	int fd = make_session(box);
	uint64_t before = stored(fd), expected = before + 12345;
	struct sample hidden[KEYS_MAX + 1];
	uint32_t nr_hidden = samples_of(5, hidden);
	char path[PATH_MAX];

	op_session_compact(fd);
	assert_int_equal(stored(fd), before);
	for (uint32_t i = 0; i < nr_hidden; i++)
		expected -= hidden[i].value;
	sample_write(fd, path_of(5, path), &header, &more, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(op_session_read_samples(fd, path, &found, &fault), 0);
		assert_int_equal(found.nodes[0].value, 12345);
		assert_int_equal(found.nr_nodes, 1);
		op_odb_samples_free(&found);
		assert_int_equal(stored(fd), expected);
		op_session_compact(fd);
		assert_false(has(fd, path));
	}
	end_session(box, fd);
}

/* A daemon is killed while it packs, many times: each file is there once, at any moment. */
static void killed_while_it_packs(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box), nr_interrupted = 0;
	uint64_t nr_calls;

	assert_int_equal(op_session_pack(fd), 0);
	nr_calls = seam.nr_calls;
	assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	for (unsigned int i = 0; i < KILLS; i++) {
		pid_t pid;

		pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			seam.nr_calls = nr_calls; /* it counts from packed.new on */
			seam.kill_at = (i + 1) * nr_calls / (KILLS + 1);
			_exit(op_session_pack(fd));
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		nr_interrupted += has(fd, OP_SESSION_PACK_NEW) || (has(fd, OP_SESSION_PACKED) && has(fd, "{root}/home"));
		check_all(fd, SIZE_MAX);
		if (has(fd, OP_SESSION_PACKED))
			assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	}
	print_message("%d of %d kills were in the middle\n", nr_interrupted, KILLS);
	assert_true(nr_interrupted == KILLS);
	end_session(box, fd);
}

static void put_pack(int fd, const uint8_t *bytes, size_t nr_bytes)
{
	int pack_fd;

	sample_write_bytes(fd, OP_SESSION_PACKED, bytes, nr_bytes);
	pack_fd = openat(fd, OP_SESSION_PACKED, O_RDWR | O_CLOEXEC);
	assert_int_equal(op_seal_append(pack_fd), 0);
	close(pack_fd);
}

/* Whoever may write the file may say anything in it; its seal is right. */
static void hostile_packs(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	const struct box *box = *state;
	int fd = make_session(box), pack_fd;
	uint8_t *bytes;
	size_t nr_bytes, nr_lists = 0;

	op_session_compact(fd);
	pack_fd = openat(fd, OP_SESSION_PACKED, O_RDONLY | O_CLOEXEC);
	nr_bytes = (size_t)lseek(pack_fd, 0, SEEK_END) - 16; /* without the seal */
	bytes = test_malloc(nr_bytes);
	assert_int_equal(pread(pack_fd, bytes, nr_bytes, 0), nr_bytes);
	close(pack_fd);
	/* the head, the first path and the last rows of the index */
	for (size_t i = 0; i < 120; i++) {
		size_t at = i < 80 ? i : nr_bytes - (i - 79);

		for (size_t j = 0; j < op_array_size(values); j++) {
			uint8_t before = bytes[at];
			struct op_session_list list;
			struct op_pack pack;
			int err;

			bytes[at] = values[j];
			put_pack(fd, bytes, nr_bytes);
			bytes[at] = before;
			err = op_session_list(fd, &list, NULL);
			assert_true(!err || err == -EBADMSG);
			if (!err)
				op_session_list_free(&list);
			nr_lists += !err;
			if (op_pack_open(fd, OP_SESSION_PACKED, &pack))
				continue;
			for (uint32_t k = 0; k < 2; k++) {
				struct op_odb_samples samples;
				uint32_t index = k ? pack.nr_files - 1 : 0;

				err = op_pack_read(&pack, index, &samples);
				assert_true(!err || err == -EBADMSG);
				if (!err)
					op_odb_samples_free(&samples);
			}
			op_pack_close(&pack);
		}
	}
	assert_true(nr_lists > 0);
	/* A cut. */
	for (size_t cut = 0; cut < nr_bytes; cut += nr_bytes / 7) {
		struct op_session_list list;
		char *bad_path = NULL;

		sample_write_bytes(fd, OP_SESSION_PACKED, bytes, cut);
		assert_int_equal(op_session_list(fd, &list, &bad_path), -EBADMSG);
		assert_string_equal(bad_path, OP_SESSION_PACKED);
		free(bad_path);
	}
	test_free(bytes);
	end_session(box, fd);
}

static void check_damage(int fd)
{
	struct op_session_list list;
	char *bad_path = NULL;

	assert_int_equal(op_session_list(fd, &list, &bad_path), -EBADMSG);
	assert_string_equal(bad_path, OP_SESSION_PACKED);
	free(bad_path);
}

/* A link and a FIFO are damage, which --repair and the next daemon put aside, as a bad seal is. */
static void no_packs(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box), pack_fd;
	struct op_pack pack;
	char byte;

	op_session_compact(fd);
	pack_fd = openat(fd, OP_SESSION_PACKED, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(pack_fd, &byte, 1, 5000), 1);
	byte = (char)(byte ^ 4);
	assert_int_equal(pwrite(pack_fd, &byte, 1, 5000), 1);
	close(pack_fd);
	assert_int_equal(op_pack_open(fd, OP_SESSION_PACKED, &pack), 0);
	assert_int_equal(op_pack_check(&pack), -EBADMSG);
	op_pack_close(&pack);
	check_damage(fd);
	assert_int_equal(op_session_unpack(box->fd, SESSION), -EBADMSG);
	assert_false(has(fd, "{root}/home"));
	assert_int_equal(renameat(fd, OP_SESSION_PACKED, fd, "other"), 0);
	assert_int_equal(symlinkat("other", fd, OP_SESSION_PACKED), 0);
	check_damage(fd);
	assert_int_equal(unlinkat(fd, OP_SESSION_PACKED, 0), 0);
	assert_int_equal(mkfifoat(fd, OP_SESSION_PACKED, 0644), 0);
	check_damage(fd);
	end_session(box, fd);
}

/* The file that is made is that of the session's owner, and no file of somebody else. */
static void owner_and_links(void **state)
{
	static const uid_t owner = 65534;
	const struct box *box = *state;
	int fd = make_session(box);
	struct stat st;

	sample_write_bytes(box->fd, "victim", "secret", 6);
	assert_int_equal(linkat(box->fd, "victim", fd, OP_SESSION_PACK_NEW, 0), 0);
	if (!geteuid())
		assert_int_equal(fchown(fd, owner, owner), 0);
	op_session_compact(fd);
	assert_int_equal(fstatat(fd, OP_SESSION_PACKED, &st, 0), 0);
	if (!geteuid())
		assert_int_equal(st.st_uid, owner);
	assert_int_equal(linkat(box->fd, "victim", fd, OP_SESSION_PACK_NEW, 0), 0);
	assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	check_all(fd, 0);
	assert_int_equal(fstatat(box->fd, "victim", &st, 0), 0);
	assert_int_equal(st.st_size, 6);
	end_session(box, fd);
}

/* One --unpack at a time, and none beside the packer. */
static void unpack_is_alone(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);

	op_session_compact(fd);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(op_session_unpack(box->fd, SESSION), -EBUSY);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	sample_write_bytes(fd, "closing", "", 0);
	assert_int_equal(op_session_unpack(box->fd, SESSION), -EBUSY);
	assert_int_equal(unlinkat(fd, "closing", 0), 0);
	assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	end_session(box, fd);
}

static void pack_it(void)
{
	assert_int_equal(op_session_pack(beside.fd), 0);
}

static void unpack_it(void)
{
	assert_int_equal(op_session_unpack(beside.box->fd, SESSION), 0);
}

static void remove_it(void)
{
	assert_int_equal(renameat(beside.box->fd, SESSION, beside.box->fd, "tmp/removed"), 0);
}

/* The packer removes the directory that is being listed, wherever the list is. */
static void list_beside_the_packer(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);

	beside.fd = fd;
	beside.box = box;
	for (int i = 1; i < 200; i += 50) {
		struct op_session_list list;

		seam.nr_getdents_left = 2 * i; /* the packer's own list comes later */
		seam.act = pack_it;
		assert_int_equal(op_session_list(fd, &list, NULL), 0);
		assert_int_equal(list.nr_files, NR_FILES);
		op_session_list_free(&list);
		seam.nr_getdents_left = 0;
		assert_int_equal(op_session_unpack(box->fd, SESSION), 0);
	}
	end_session(box, fd);
}

static void readers_beside_unpack(void **state)
{
	const struct box *box = *state;
	struct op_session_list list;
	int fd = make_session(box);

	beside.fd = fd;
	beside.box = box;
	seam.before_open = OP_SESSION_PACKED;
	for (int i = 0; i < 2; i++) {
		op_session_compact(fd);
		seam.act = unpack_it;
		if (i) {
			check_file(fd, 7);
			continue;
		}
		assert_int_equal(op_session_list(fd, &list, NULL), 0);
		assert_int_equal(list.nr_files, NR_FILES);
		op_session_list_free(&list);
	}
	seam.before_open = NULL;
	end_session(box, fd);
}

/* Retention removes the session meanwhile: nobody makes it anew. */
static void unpack_of_a_removed_session(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);

	beside.box = box;
	op_session_compact(fd);
	seam.before_open = OP_SESSION_PACK_NEW;
	seam.act = remove_it;
	(void)!op_session_unpack(box->fd, SESSION);
	seam.before_open = NULL;
	assert_false(has(box->fd, SESSION));
	assert_int_equal(op_session_remove(box->fd, "tmp"), 0);
	end_session(box, fd);
}

/* What cannot be removed stays, and only that. A file that is gone is no error. */
static void files_that_stay(void **state)
{
	static const int errors[] = { -EIO, -ENOENT };
	const struct box *box = *state;

	for (size_t i = 0; i < op_array_size(errors); i++) {
		struct op_session_list list;
		int fd = make_session(box);
		size_t nr_left = 0;

		seam.unlink_err = errors[i];
		seam.nr_unlinks_left = 1; /* the first file */
		assert_int_equal(op_session_pack(fd), errors[i] == -ENOENT ? 0 : errors[i]);
		seam.nr_unlinks_left = 0;
		assert_int_equal(op_session_list(fd, &list, NULL), 0);
		assert_int_equal(list.nr_files, NR_FILES);
		for (size_t j = 0; j < list.nr_files; j++)
			nr_left += !list.files[j].is_packed;
		assert_true(nr_left <= 1);
		op_session_list_free(&list);
		end_session(box, fd);
	}
}

/* A file that may not be on the disk is not packed: it could come back torn, and hide the pack. */
static void only_what_is_on_the_disk(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);

	seam.syncfs_err = -EIO;
	assert_int_equal(op_session_pack(fd), -EIO);
	seam.syncfs_err = 0;
	assert_false(has(fd, OP_SESSION_PACKED));
	check_all(fd, 0);
	end_session(box, fd);
}

/* A dump took the files before the session was closed and packed. Nothing is missing. */
static void a_dump_beside_the_packer(void **state)
{
	static const uint32_t numbers[] = { 10, 100 }; /* files one by one, and together */
	const struct box *box = *state;

	for (size_t i = 0; i < op_array_size(numbers); i++) {
		struct opd_write_out *out;
		const char *failed = "";
		char path[PATH_MAX];
		int fd = make_session(box);

		assert_int_equal(renameat(box->fd, SESSION, box->fd, "samples/current"), 0);
		out = opd_write_out_new(box->fd, false);
		assert_non_null(out);
		out->paths = calloc(numbers[i], sizeof(*out->paths));
		out->nr_paths = numbers[i];
		for (uint32_t j = 0; j < numbers[i]; j++)
			assert_true(asprintf(&out->paths[j], "samples/current/%s", path_of(j, path)) > 0);
		assert_int_equal(op_session_pack(fd), 0);
		assert_int_equal(opd_write_out_write(out, &failed), 0);
		/* What the pack has not is missing. */
		assert_int_equal(unlinkat(fd, OP_SESSION_PACKED, 0), 0);
		assert_int_equal(opd_write_out_write(out, &failed), -ENOENT);
		opd_write_out_free(out);
		end_session(box, fd);
	}
}

static void pack_at_the_fifth(uint64_t nr_files, void *arg OP_UNUSED)
{
	if (nr_files == 5)
		act();
}

static void ignore_problem(const struct opk_problem *problem OP_UNUSED, void *arg OP_UNUSED)
{
}

/* A file is counted once, before it is packed or after. */
static void opcheck_beside_the_packer(void **state)
{
	const struct box *box = *state;
	int fd = make_session(box);
	struct opk_check check = {
		.dir_fd = fd, .top_fd = -1, .closed = true, .report = ignore_problem, .progress = pack_at_the_fifth
	};
	uint64_t nr = stored(fd);

	beside.fd = fd;
	seam.act = pack_it;
	assert_int_equal(opk_session_check(&check), 0);
	assert_true(has(fd, OP_SESSION_PACKED));
	assert_int_equal(check.nr_files, NR_FILES);
	assert_int_equal(check.nr_samples, nr);
	end_session(box, fd);
}

/* A file that is packed before it is open comes from the pack under the same name. */
static void an_archive_beside_the_packer(void **state)
{
	const struct box *box = *state;
	struct opr_archive_writer writer;
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/archive", box->path);
	sample_write_bytes(box->fd, "from-the-pack", "packed", 6);
	assert_int_equal(opr_archive_writer_init(&writer, dir, stdout), 0);
	assert_int_equal(opr_archive_add_below(&writer, box->fd, "gone", "gone", "/file"), -ENOENT);
	assert_int_equal(opr_archive_add_below(&writer, box->fd, "from-the-pack", "pack", "/file"), 0);
	assert_true(has(box->fd, "archive/file"));
	opr_archive_undo(&writer);
	opr_archive_writer_free(&writer);
	assert_false(has(box->fd, "archive/file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_closed_session_is_small, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(a_small_session_stays, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(sample_files_again, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(a_file_hides_the_pack, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(killed_while_it_packs, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(hostile_packs, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(no_packs, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(owner_and_links, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(unpack_is_alone, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(list_beside_the_packer, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(readers_beside_unpack, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(unpack_of_a_removed_session, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(files_that_stay, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(only_what_is_on_the_disk, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(a_dump_beside_the_packer, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(opcheck_beside_the_packer, box_setup, box_teardown),
		cmocka_unit_test_setup_teardown(an_archive_beside_the_packer, box_setup, box_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
