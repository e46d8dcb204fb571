/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/look/pass_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/process/pass.h"
#include "libop/base/sys.h"

/* The path follows, with a NUL; "": none. The pointer means nothing there. */
struct question {
	struct opd_pass_wanted wanted;
};

struct opd_file_stamp opd_file_stamp(const struct stat *st)
{
	return (struct opd_file_stamp){
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec,
		.nr_bytes = (uint64_t)st->st_size,
	};
}

/* ---- in the looker, or in opd without one ---- */

static bool is_wanted(const struct stat *st, const struct opd_pass_wanted *wanted)
{
	struct opd_file_stamp stamp = opd_file_stamp(st);

	if (wanted->mtime_ns)
		return stamp.mtime_ns == wanted->mtime_ns && (!wanted->nr_bytes || stamp.nr_bytes == wanted->nr_bytes);
	if ((wanted->device && st->st_dev != wanted->device) || (wanted->max_mtime_ns && stamp.mtime_ns > wanted->max_mtime_ns))
		return false;
	return !wanted->inode || (uint64_t)st->st_ino == wanted->inode;
}

/* A server of FUSE is a program of some user, and says whose files it has. */
static bool is_served(int path_fd)
{
	struct statfs fs;

	return fstatfs(path_fd, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC;
}

static int check(int path_fd, const struct opd_pass_wanted *wanted, struct opd_passed *ret_passed)
{
	struct stat st;
	int err = op_sys_fstat(path_fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if (!is_wanted(&st, wanted))
		return -ESTALE;
	*ret_passed = (struct opd_passed){
		.stamp = opd_file_stamp(&st),
		.uid = st.st_uid,
		.is_owners = !(st.st_mode & (S_IWGRP | S_IWOTH)) && !is_served(path_fd),
	};
	return 0;
}

/* Only a regular file is opened: a device may do something then. */
static int pass_path(const char *path, const struct opd_pass_wanted *wanted, int socket_fd, struct opd_passed *ret_passed)
{
	int path_fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), fd;
	struct iovec part = { (char[]){ 0 }, 1 };
	char same[40];
	ssize_t nr;

	if (path_fd < 0)
		return path_fd;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", path_fd);
	fd = check(path_fd, wanted, ret_passed);
	if (!fd && socket_fd >= 0)
		fd = op_sys_openat(AT_FDCWD, same, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	close(path_fd);
	if (fd < 0 || socket_fd < 0)
		return fd;
	nr = op_pass_send(socket_fd, &part, 1, fd, MSG_DONTWAIT);
	close(fd);
	return nr < 0 ? (int)nr : 0;
}

static int pass(const struct opd_pass_wanted *wanted, const char *path, int socket_fd, struct opd_passed *ret_passed)
{
	char mapping[80];
	int err = -ENOENT;

	if (wanted->about.pid && wanted->end) {
		snprintf(mapping, sizeof(mapping), "/proc/%u/map_files/%llx-%llx", wanted->about.pid,
			 (unsigned long long)wanted->start, (unsigned long long)wanted->end);
		err = pass_path(mapping, wanted, socket_fd, ret_passed);
	}
	return err && *path ? pass_path(path, wanted, socket_fd, ret_passed) : err;
}

/* The filter of a looker allows one descriptor for this, so the socket becomes that one. */
int opd_pass_file_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	struct opd_passed passed;
	struct question asked;
	int pass_fd = -1, err;

	if (nr_bytes <= sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	if (fd >= 0) {
		pass_fd = op_sys_fcntl(fd, F_DUPFD_CLOEXEC, OPD_PASS_FD);
		if (pass_fd < 0)
			return pass_fd;
	}
	err = pass(&asked.wanted, question + sizeof(asked), pass_fd, &passed);
	if (pass_fd >= 0)
		close(pass_fd);
	if (!err)
		op_text_add_bytes(answer, &passed, sizeof(passed));
	return err;
}

/* ---- in opd ---- */

int opd_pass_file(struct opd_lookers *lookers, const struct opd_pass_wanted *wanted, int socket_fd, struct opd_passed *ret_passed)
{
	const char *path = wanted->path ? wanted->path : "";
	struct question question = { .wanted = *wanted };
	struct iovec parts[] = {
		{ &question, sizeof(question) },
		{ (void *)(uintptr_t)path, strlen(path) + 1 }, // NOLINT(performance-no-int-to-ptr)
	};
	struct op_text answer = { 0 };
	uint32_t any = 0;
	int err;

	if (!lookers)
		return pass(wanted, path, socket_fd, ret_passed);
	err = opd_look(lookers, &wanted->about, OPD_LOOK_PASS, parts, op_array_size(parts), socket_fd, &any, &answer);
	if (!err && answer.length != sizeof(*ret_passed))
		err = -EBUSY;
	if (!err)
		memcpy(ret_passed, answer.data, sizeof(*ret_passed));
	op_text_free(&answer);
	return err;
}
