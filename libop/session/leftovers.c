/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/leftovers.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"
#include "libop/odb/file_image.h"
#include "libop/odb/recover.h"
#include "libop/session/contents.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/walk.h"

#define ANY_SUFFIX "XXXXXX"

static int lock_dir(int dir_fd, const char *path)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* mkdtemp(3) below a directory that is open. -EAGAIN: a sweep removed it before it was locked. */
static int make_once(int tmp_fd, char name[OP_SESSION_IMPORT_BYTES])
{
	char path[sizeof("/proc/self/fd//") + 10 + OP_SESSION_IMPORT_BYTES];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/" OP_SESSION_IMPORT ANY_SUFFIX, tmp_fd);
	if (!mkdtemp(path))
		return -errno;
	snprintf(name, OP_SESSION_IMPORT_BYTES, "%s", strrchr(path, '/') + 1);
	fd = lock_dir(tmp_fd, name);
	if (fd == -ENOENT)
		return -EAGAIN;
	if (fd >= 0 && (op_sys_fstat(fd, &st) < 0 || !st.st_nlink)) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

int op_session_import_begin(int session_fd, char name[OP_SESSION_IMPORT_BYTES])
{
	int tmp_fd = op_sys_openat(session_fd, OP_SESSION_TMP, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), fd;

	static_assert(sizeof(ANY_SUFFIX) == OP_SESSION_IMPORT_SUFFIX_BYTES + 1, "a suffix of mkdtemp(3)");
	if (tmp_fd < 0)
		return tmp_fd;
	do
		fd = make_once(tmp_fd, name);
	while (fd == -EAGAIN); /* -EWOULDBLOCK is the same number */
	close(tmp_fd);
	return fd;
}

struct sweeping {
	int session_fd;
	uint64_t nr_removed;
};

static int sweep_one(const char *name, void *arg)
{
	struct sweeping *sweeping = arg;
	char path[sizeof(OP_SESSION_TMP "/" OP_SESSION_IMPORT ANY_SUFFIX)];
	size_t nr_prefix = strlen(OP_SESSION_IMPORT);
	int fd;

	if (strncmp(name, OP_SESSION_IMPORT, nr_prefix) || strlen(name) != nr_prefix + OP_SESSION_IMPORT_SUFFIX_BYTES)
		return 0;
	snprintf(path, sizeof(path), OP_SESSION_TMP "/%s", name);
	fd = lock_dir(sweeping->session_fd, path);
	if (fd < 0)
		return 0; /* an import works there, or it belongs to another user */
	if (!op_session_remove(sweeping->session_fd, path))
		sweeping->nr_removed++;
	close(fd);
	return 0;
}

uint64_t op_session_import_sweep(int session_fd)
{
	struct sweeping sweeping = { .session_fd = session_fd };
	int err = op_session_visit_dir(session_fd, OP_SESSION_TMP, sweep_one, &sweeping);

	(void)err; /* the caller meets an error of tmp/ in its own work */
	return sweeping.nr_removed;
}

/* ---- replacements ---- */

struct sessions {
	char **paths; /* "samples/NAME" */
	size_t nr, capacity;
};

static int add_closed(const char *name, void *arg)
{
	struct sessions *sessions = arg;

	if (!strcmp(name, strrchr(OP_SESSION_CURRENT, '/') + 1))
		return 0;
	if (!op_grow(&sessions->paths, &sessions->capacity, sessions->nr + 1))
		return -ENOMEM;
	if (asprintf(&sessions->paths[sessions->nr], "samples/%s", name) < 0)
		return -ENOMEM;
	sessions->nr++;
	return 0;
}

int op_session_recover_pending(int session_fd, uint64_t *ret_nr_put_back)
{
	struct sessions sessions = { 0 };
	struct op_odb_moves moves = { .from = OP_SESSION_CURRENT };
	uint64_t nr_put_back = 0;
	int err = op_session_visit_dir(session_fd, "samples", add_closed, &sessions);

	moves.to = sessions.paths;
	moves.nr_to = sessions.nr;
	/* op_odb_recover removes links whose file it does not find: it must know all sessions. */
	if (!err)
		err = op_odb_recover(session_fd, OP_SESSION_TMP_SAMPLE, &moves, op_session_is_jit_object, &nr_put_back);
	for (size_t i = 0; i < sessions.nr; i++)
		free(sessions.paths[i]);
	free(sessions.paths);
	if (!err)
		*ret_nr_put_back = nr_put_back;
	return err;
}

/* ---- JIT objects ---- */

/*
 * Every writer puts the section headers last: they are in the file, and the last one is not all
 * zeros.
 */
static int check_end(int fd, const Elf64_Ehdr *header, uint64_t nr_bytes)
{
	uint64_t sections_end = header->e_shoff + (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
	uint8_t tail[sizeof(Elf64_Shdr)];
	size_t nr_read = 0, nr_zeros = 0;
	int err;

	if (header->e_shoff > nr_bytes || sections_end > nr_bytes || header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shnum)
		return -EBADMSG;
	err = op_file_read_at(fd, tail, sizeof(tail), (off_t)(nr_bytes - sizeof(tail)), &nr_read);
	while (nr_zeros < nr_read && !tail[nr_zeros])
		nr_zeros++;
	return err ? err : nr_zeros < sizeof(tail) ? 0 : -EBADMSG;
}

static int check_unsealed(int fd, uint64_t nr_bytes)
{
	Elf64_Ehdr header;
	size_t nr_read = 0;
	int err = op_file_read_at(fd, &header, sizeof(header), 0, &nr_read);

	if (err)
		return err;
	if (nr_read < sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
		return -EBADMSG;
	return check_end(fd, &header, nr_bytes);
}

int op_jit_object_check(int dir_fd, const char *path)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st), err;

	if (fd < 0)
		return fd;
	err = op_seal_check(fd);
	if (err == -EBADMSG && !op_seal_is_there(fd))
		err = check_unsealed(fd, (uint64_t)st.st_size);
	close(fd);
	return err;
}

/* ---- damaged files ---- */

#define DAMAGED_DIR "damaged"
#define DIR_MODE    0755

static int move_new(int parent_fd, const char *name, int session_fd, const char *aside)
{
	const char *aside_name;
	int aside_fd, err = op_file_make_dir_below(session_fd, DAMAGED_DIR, DIR_MODE);

	if (err && err != -EEXIST)
		return err;
	aside_fd = op_file_open_parent(session_fd, aside, false, &aside_name);
	if (aside_fd < 0)
		return aside_fd;
	err = op_sys_rename_new(parent_fd, name, aside_fd, aside_name);
	close(aside_fd);
	return err;
}

int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;
	const char *name;
	int parent_fd = op_file_open_parent(session_fd, path, false, &name), err;

	if (parent_fd < 0)
		return parent_fd;
	do {
		snprintf(aside, OP_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
			 (unsigned long long)nr_aside++);
		err = move_new(parent_fd, name, session_fd, aside);
	} while (err == -EEXIST);
	close(parent_fd);
	return err;
}
