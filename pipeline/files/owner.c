/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/sys.h"

#define PROC_BYTES 8192 /* of /proc/PID/status and stat */
/* file systems and /proc/PID/stat round times to a tick, a hundredth of a second at most */
#define TOLERANCE_NS ((uint64_t)20 * OP_NS_PER_MS)
/* the same for file systems that round to seconds */
#define WHOLE_S_NS   ((uint64_t)2 * OP_NS_PER_S)

/* What follows `key` in /proc/PID/status; NULL: nothing. */
static const char *find_line(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? line + strlen(key) : NULL;
}

/* "NSpid:\t100\t7": the last number is that of the innermost namespace. */
static void read_ns_pid(struct opd_jit_owner *owner, const char *status)
{
	const char *line = find_line(status, "\nNSpid:");
	unsigned int nr_levels = 0;

	owner->ns_pid = owner->pid;
	while (line && *line == '\t') {
		char *end;

		owner->ns_pid = (uint32_t)strtoul(line + 1, &end, 10);
		line = end;
		nr_levels++;
	}
	owner->in_host_pids = nr_levels <= 1;
}

static ssize_t read_proc(const struct opd_jit_owner *owner, const char *name, char text[PROC_BYTES])
{
	int fd = owner->proc_fd < 0 ? -ENOENT : op_sys_openat(owner->proc_fd, name, O_RDONLY | O_CLOEXEC, 0);
	ssize_t nr = fd < 0 ? fd : op_sys_read(fd, text, PROC_BYTES - 1);

	if (fd >= 0)
		close(fd);
	if (nr >= 0)
		text[nr] = '\0';
	return nr;
}

/* Converts a time of another clock to CLOCK_REALTIME, by the present distance of the two clocks. */
static uint64_t wall_ns(clockid_t clock, uint64_t then_ns)
{
	/*
	 * The order matters: when the host stands still between the two reads, the result is too
	 * early, and an older file is accepted. That is the harmless error.
	 */
	uint64_t real_ns = op_clock_ns(CLOCK_REALTIME), now_ns = op_clock_ns(clock);

	return real_ns - op_min_u64(real_ns, now_ns - op_min_u64(now_ns, then_ns));
}

/*
 * Reads field 22 of /proc/PID/stat. Field 2, the name, may contain blanks and brackets; the last
 * bracket ends it.
 */
static void read_begin(struct opd_jit_owner *owner)
{
	char text[PROC_BYTES];
	ssize_t nr = read_proc(owner, "stat", text);
	const char *at = nr > 0 ? strrchr(text, ')') : NULL;
	uint64_t tick_ns = OP_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return;
	owner->began_ns = op_max_u64(owner->began_ns, wall_ns(CLOCK_BOOTTIME, strtoull(at + 1, NULL, 10) * tick_ns));
}

/* Reads who the process is. When it is gone, what was known stays. */
static void read_identity(struct opd_jit_owner *owner)
{
	char status[PROC_BYTES];
	const char *uids;

	if (read_proc(owner, "status", status) <= 0)
		return;
	uids = find_line(status, "\nUid:\t");
	if (!uids)
		return;
	uids += strcspn(uids, "\t\n");
	owner->uid = (uid_t)strtoul(uids, NULL, 10);
	read_ns_pid(owner, status);
	owner->is_known = true;
}

bool opd_jit_owner_uid(uint32_t pid, uid_t *ret_uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st) < 0)
		return false;
	*ret_uid = st.st_uid;
	return true;
}

void opd_jit_owner_begin(struct opd_jit_owner *owner, uint32_t pid, uint64_t began_ns)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	*owner = (struct opd_jit_owner){
		.pid = pid,
		.began_ns = began_ns ? wall_ns(OP_CLOCK, began_ns) : 0,
		.proc_fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0),
	};
}

void opd_jit_owner_learn(struct opd_jit_owner *owner)
{
	read_identity(owner);
	read_begin(owner);
}

void opd_jit_owner_init(struct opd_jit_owner *owner, uint32_t pid, uint64_t began_ns)
{
	opd_jit_owner_begin(owner, pid, began_ns);
	opd_jit_owner_learn(owner);
}

/* The state is the letter behind the name in /proc/PID/stat. */
static bool is_zombie(const struct opd_jit_owner *owner)
{
	char text[PROC_BYTES];
	const char *at = read_proc(owner, "stat", text) > 0 ? strrchr(text, ')') : NULL;

	return at && (!strncmp(at, ") Z", 3) || !strncmp(at, ") X", 3));
}

void opd_jit_owner_learn_ended(struct opd_jit_owner *owner, uint32_t parent_pid, uint64_t began_ns)
{
	struct opd_jit_owner parent;
	uint32_t pid = owner->pid;

	opd_jit_owner_learn(owner);
	if (owner->is_known && is_zombie(owner))
		return;
	opd_jit_owner_close(owner);
	*owner = (struct opd_jit_owner){ .pid = pid, .ns_pid = pid, .proc_fd = -1, .began_ns = wall_ns(OP_CLOCK, began_ns) };
	if (!parent_pid)
		return;
	opd_jit_owner_init(&parent, parent_pid, 0);
	owner->uid = parent.uid;
	owner->is_known = owner->in_host_pids = parent.is_known && parent.in_host_pids;
	opd_jit_owner_close(&parent);
}

void opd_jit_owner_init_ended(struct opd_jit_owner *owner, uint32_t pid, uint32_t parent_pid, uint64_t began_ns)
{
	opd_jit_owner_begin(owner, pid, began_ns);
	opd_jit_owner_learn_ended(owner, parent_pid, began_ns);
}

static bool is_owned(struct opd_jit_owner *owner, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return false;
	if (!st->st_uid || st->st_uid == owner->uid)
		return true;
	read_identity(owner); /* the process may have changed its user */
	return st->st_uid == owner->uid;
}

/* Opens a checked file for reading through its O_PATH descriptor. Takes over path_fd. */
static int open_checked(struct opd_jit_owner *owner, int path_fd, struct stat *ret_stat)
{
	char path[32];
	struct stat st;
	int fd = op_sys_fstat(path_fd, &st);

	if (!fd && !is_owned(owner, &st))
		fd = -EPERM;
	if (!fd) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	}
	close(path_fd);
	if (fd >= 0)
		*ret_stat = st;
	return fd;
}

int opd_jit_owner_open(struct opd_jit_owner *owner, const char *path, struct stat *ret_stat)
{
	int root_fd, fd;

	if (!owner->is_known)
		return -ENOENT;
	root_fd = op_sys_openat(owner->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0 && !owner->in_host_pids)
		return -ENOENT;
	/*
	 * The process is gone. The host's /tmp may differ from opd's, because a service manager can
	 * give opd a private one.
	 */
	if (root_fd < 0)
		root_fd = op_sys_openat(AT_FDCWD, "/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0) {
		fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	} else {
		fd = op_sys_open_in_root(root_fd, path, O_PATH);
		/*
		 * Without openat2(2) the path is followed step by step, without links to
		 * directories.
		 */
		if (fd == -ENOSYS)
			fd = op_file_open_below(root_fd, path + strspn(path, "/"), O_PATH, 0);
		close(root_fd);
	}
	return fd < 0 ? fd : open_checked(owner, fd, ret_stat);
}

int opd_jit_owner_open_mapped(struct opd_jit_owner *owner, uint64_t start, uint64_t end, const char *path, struct stat *ret_stat)
{
	char name[64];
	int fd;

	if (!owner->is_known)
		return -ENOENT;
	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)start, (unsigned long long)end);
	fd = op_sys_openat(owner->proc_fd, name, O_PATH | O_CLOEXEC, 0);
	return fd < 0 ? opd_jit_owner_open(owner, path, ret_stat) : open_checked(owner, fd, ret_stat);
}

bool opd_jit_owner_is_older(const struct opd_jit_owner *owner, const struct stat *st)
{
	uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;

	return mtime_ns + (st->st_mtim.tv_nsec ? TOLERANCE_NS : WHOLE_S_NS) < owner->began_ns;
}

void opd_jit_owner_close(struct opd_jit_owner *owner)
{
	if (owner->proc_fd >= 0)
		close(owner->proc_fd);
	owner->proc_fd = -1;
}
