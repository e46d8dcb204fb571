/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/copy.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <sha2.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "tools/oparchive/elf_extent.h"

#define BUFFER_BYTES 65536
#define BLOCK_BYTES  512u /* of st_blocks */

static_assert(OPR_SUM_DIGITS + 1 == SHA256_DIGEST_STRING_LENGTH, "SHA256End writes that many bytes");

/* ---- holes ---- */

/*
 * The next data from a position on, up to the next hole; the whole rest on file systems without
 * holes. Without data, both are the end of the file.
 */
static int find_data(int fd, uint64_t at, uint64_t *ret_start, uint64_t *ret_end)
{
	off_t start = op_sys_lseek(fd, (off_t)at, SEEK_DATA), end;

	if (start == -ENXIO) {
		start = op_sys_lseek(fd, 0, SEEK_END);
		if (start < 0)
			return (int)start;
		*ret_start = *ret_end = op_max_u64(at, (uint64_t)start);
		return 0;
	}
	if (start < 0) {
		*ret_start = at;
		*ret_end = UINT64_MAX;
		return 0;
	}
	end = op_sys_lseek(fd, start, SEEK_HOLE);
	*ret_start = (uint64_t)start;
	*ret_end = end > start ? (uint64_t)end : UINT64_MAX;
	return 0;
}

/* Counts the bytes of holes before `end`, until there are too many. */
static int count_holes(const struct opr_copy *copy, uint64_t end, uint64_t *ret_nr_bytes)
{
	uint64_t nr_bytes = 0, start, data_end;

	for (uint64_t at = 0; at < end && nr_bytes <= OPR_HOLE_BYTES_MAX; at = data_end) {
		int err = op_stop_is_set(copy->stop) ? -EINTR : find_data(copy->fd, at, &start, &data_end);

		if (err)
			return err;
		nr_bytes += op_min_u64(start, end) - at;
		if (start == data_end)
			break;
	}
	*ret_nr_bytes = nr_bytes;
	return 0;
}

int opr_copy_begin(struct opr_copy *copy, int fd, const struct stat *st, const struct op_stop *stop)
{
	uint64_t file_bytes = (uint64_t)st->st_size, nr_bytes = 0, end;
	int err;

	*copy = (struct opr_copy){ .fd = fd, .stop = stop, .end = UINT64_MAX };
	copy->is_sparse = (uint64_t)st->st_blocks * BLOCK_BYTES < file_bytes;
	if (!copy->is_sparse || file_bytes <= OPR_HOLE_BYTES_MAX)
		return 0;
	err = count_holes(copy, file_bytes, &nr_bytes);
	if (err || nr_bytes <= OPR_HOLE_BYTES_MAX)
		return err;
	if (opr_elf_end(fd, file_bytes, &end) < 0)
		return -EFBIG;
	err = count_holes(copy, end, &nr_bytes);
	if (!err)
		copy->end = end;
	return !err && nr_bytes > OPR_HOLE_BYTES_MAX ? -EFBIG : err;
}

/* ---- bytes ---- */

struct copying {
	struct opr_copy *copy;
	SHA2_CTX sha;
	int fd_to;
	uint64_t data_end; /* of the data that is being copied */
	uint8_t buffer[BUFFER_BYTES];
};

static int pass_hole(struct copying *copying, uint64_t nr_bytes)
{
	static const uint8_t zeros[BUFFER_BYTES];
	struct opr_copy *copy = copying->copy;

	for (uint64_t left = nr_bytes; left;) {
		size_t part = op_min_u64(left, sizeof(zeros));

		if (op_stop_is_set(copy->stop))
			return -EINTR;
		SHA256Update(&copying->sha, zeros, part);
		left -= part;
	}
	copy->nr_bytes += nr_bytes;
	return 0;
}

/* Moves on to the next data. */
static int pass_holes(struct copying *copying)
{
	struct opr_copy *copy = copying->copy;
	uint64_t start;
	int err;

	if (!copy->is_sparse || copy->nr_bytes < copying->data_end)
		return 0;
	err = find_data(copy->fd, copy->nr_bytes, &start, &copying->data_end);
	copy->is_unreadable = err != 0;
	return err ? err : pass_hole(copying, op_min_u64(start, copy->end) - copy->nr_bytes);
}

/* *ret_nr_bytes is 0 at the end. */
static int copy_some(struct copying *copying, size_t *ret_nr_bytes)
{
	struct opr_copy *copy = copying->copy;
	uint64_t left = op_min_u64(copy->is_sparse ? copying->data_end : UINT64_MAX, copy->end) - copy->nr_bytes;
	ssize_t got;
	int err = 0;

	do {
		if (op_stop_is_set(copy->stop))
			return -EINTR;
		got = op_sys_pread(copy->fd, copying->buffer, op_min_u64(left, BUFFER_BYTES), (off_t)copy->nr_bytes);
	} while (got == -EINTR);
	copy->is_unreadable = got < 0;
	if (got < 0)
		return (int)got;
	SHA256Update(&copying->sha, copying->buffer, (size_t)got);
	if (copying->fd_to >= 0)
		err = op_sys_pwrite_all(copying->fd_to, copying->buffer, (size_t)got, (off_t)copy->nr_bytes);
	copy->nr_bytes += (uint64_t)got;
	*ret_nr_bytes = (size_t)got;
	return err;
}

int opr_copy_run(struct opr_copy *copy, int fd_to)
{
	struct copying *copying = calloc(1, sizeof(*copying));
	size_t got = 1;
	int err = 0;

	if (!copying)
		return -ENOMEM;
	copying->copy = copy;
	copying->fd_to = fd_to;
	SHA256Init(&copying->sha);
	while (!err && got) {
		err = pass_holes(copying);
		if (!err)
			err = copy_some(copying, &got);
	}
	/* The file may end with a hole. */
	if (!err && fd_to >= 0 && copy->is_sparse)
		err = op_sys_ftruncate(fd_to, (off_t)copy->nr_bytes);
	SHA256End(&copying->sha, copy->digits);
	free(copying);
	return err;
}

/* ---- the mode of a copy: only users who may read the file may read its copy ---- */

#define OWNER_MODES 0700
#define OTHER_MODES (S_IROTH | S_IXOTH)

/* Whether others may pass all directories of an absolute path. */
static bool lets_others_pass(const char *dir)
{
	bool passes = *dir == '/';

	for (const char *end = dir; passes && *end;) {
		struct stat st;
		char *part;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		part = strndup(dir, (size_t)(end - dir));
		passes = part && !stat(part, &st) && (st.st_mode & S_IXOTH);
		free(part);
	}
	return passes;
}

static bool others_reach(struct opr_archive_access *access, int fd)
{
	char link[32], dir[PATH_MAX];
	ssize_t nr_bytes;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	nr_bytes = readlink(link, dir, sizeof(dir) - 1);
	if (nr_bytes <= 0 || dir[0] != '/')
		return false;
	dir[nr_bytes] = '\0';
	strrchr(dir, '/')[1] = '\0';
	if (access->dir && !strcmp(access->dir, dir))
		return access->others_enter;
	free(access->dir);
	access->dir = strdup(dir);
	access->others_enter = lets_others_pass(dir);
	return access->others_enter;
}

mode_t opr_archive_mode(struct opr_archive_access *access, int fd, const struct stat *st)
{
	mode_t owner = (st->st_mode & OWNER_MODES) | S_IRUSR, others = st->st_mode & OTHER_MODES;
	struct statfs fs;

	if (!others || fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || !others_reach(access, fd))
		return owner;
	return owner | others | (st->st_mode & others << 3);
}

void opr_archive_access_free(struct opr_archive_access *access)
{
	free(access->dir);
	*access = (struct opr_archive_access){ 0 };
}
