/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/pass_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/process/pass.h"
#include "libop/base/sys.h"

/* The path follows, with a NUL; "": none. The pointer means nothing there. */
struct question {
	struct opd_pass_wanted wanted;
};

bool opd_pass_is_wanted(const struct opd_file_identity *file, const struct opd_pass_wanted *wanted)
{
	return opd_file_is(file, &wanted->identity) && (!wanted->max_mtime_ns || file->mtime_ns <= wanted->max_mtime_ns);
}

/* ---- in the looker, or in opd without one ---- */

/* Only a regular file is opened: a device may do something then. */
static int open_regular(const char *path)
{
	int path_fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), fd;
	char same[40];
	struct stat st;

	if (path_fd < 0)
		return path_fd;
	fd = op_sys_fstat(path_fd, &st);
	if (!fd && !S_ISREG(st.st_mode))
		fd = -ENOEXEC;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", path_fd);
	if (!fd)
		fd = op_sys_openat(AT_FDCWD, same, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	close(path_fd);
	return fd;
}

static int pass_path(const char *path, const struct opd_pass_wanted *wanted, int socket_fd)
{
	int fd = open_regular(path), err;
	struct iovec part = { (char[]){ 0 }, 1 };
	struct opd_file_identity identity;
	ssize_t nr;

	if (fd < 0)
		return fd;
	err = opd_file_identify(fd, &identity);
	if (!err && !opd_pass_is_wanted(&identity, wanted))
		err = -ESTALE;
	nr = err ? err : op_pass_send(socket_fd, &part, 1, fd, MSG_DONTWAIT);
	close(fd);
	return nr < 0 ? (int)nr : 0;
}

static int pass(const struct opd_pass_wanted *wanted, const char *path, int socket_fd)
{
	char mapping[80];
	int err = -ENOENT;

	if (wanted->about.pid && wanted->end) {
		snprintf(mapping, sizeof(mapping), "/proc/%u/map_files/%llx-%llx", wanted->about.pid,
			 (unsigned long long)wanted->start, (unsigned long long)wanted->end);
		err = pass_path(mapping, wanted, socket_fd);
	}
	return err && *path ? pass_path(path, wanted, socket_fd) : err;
}

/* The filter of a looker allows one descriptor for this, so the socket becomes that one. */
int opd_pass_file_answer(const char *question, size_t nr_bytes, int fd)
{
	struct question asked;
	int pass_fd, err;

	if (nr_bytes <= sizeof(asked) || fd < 0)
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	pass_fd = op_sys_fcntl(fd, F_DUPFD_CLOEXEC, OPD_PASS_FD);
	if (pass_fd < 0)
		return pass_fd;
	err = pass(&asked.wanted, question + sizeof(asked), pass_fd);
	close(pass_fd);
	return err;
}

/* ---- in opd ---- */

int opd_pass_file(struct opd_lookers *lookers, const struct opd_pass_wanted *wanted, int socket_fd)
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
		return pass(wanted, path, socket_fd);
	err = opd_look(lookers, &wanted->about, OPD_LOOK_PASS, parts, op_array_size(parts), socket_fd, &any, &answer);
	op_text_free(&answer);
	return err;
}
