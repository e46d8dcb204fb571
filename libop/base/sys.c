/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#ifdef HAVE_MALLOC_TRIM
#include <malloc.h>
#endif
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libop/base/clock.h"

#define LARGE_BYTES (128 * 1024)

int (*op_sys_event_opener)(const struct perf_event_attr *attr, pid_t pid, int cpu);

int op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);

	if (fd < 0 && errno == EACCES && op_sys_event_opener && group_fd < 0)
		return op_sys_event_opener(attr, pid, cpu);
	return fd < 0 ? -errno : (int)fd;
}

int op_sys_ioctl(int fd, unsigned long request, void *arg)
{
	int result = ioctl(fd, request, arg);

	return result < 0 ? -errno : result;
}

int op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map)
{
	void *map = mmap(addr, nr_bytes, prot, flags, fd, offset);

	if (map == MAP_FAILED)
		return -errno;
	*ret_map = map;
	return 0;
}

int op_sys_munmap(void *map, size_t nr_bytes)
{
	return munmap(map, nr_bytes) < 0 ? -errno : 0;
}

int op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	int fd = openat(dir_fd, path, flags, mode);

	return fd < 0 ? -errno : fd;
}

static int open_resolving(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC), .resolve = resolve };
	long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int op_sys_open_in_root(int root_fd, const char *path, int flags)
{
	return open_resolving(root_fd, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int op_sys_open_dir_below(int dir_fd, const char *path)
{
	return open_resolving(dir_fd, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int op_sys_name_to_handle(int fd, struct file_handle *handle)
{
	int mount;

	return name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int op_sys_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	return mkdirat(dir_fd, path, mode) < 0 ? -errno : 0;
}

int op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path)
{
	return renameat(old_dir_fd, old_path, new_dir_fd, new_path) < 0 ? -errno : 0;
}

/*
 * Without RENAME_NOREPLACE in the file system we check first: two renames at the same time may then
 * overwrite.
 */
int op_sys_rename_new(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path)
{
	if (!renameat2(old_dir_fd, old_path, new_dir_fd, new_path, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!faccessat(new_dir_fd, new_path, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return op_sys_renameat(old_dir_fd, old_path, new_dir_fd, new_path);
}

int op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path)
{
	return renameat2(dir_fd, path, other_dir_fd, other_path, RENAME_EXCHANGE) < 0 ? -errno : 0;
}

int op_sys_unlinkat(int dir_fd, const char *path, int flags)
{
	return unlinkat(dir_fd, path, flags) < 0 ? -errno : 0;
}

int op_sys_linkat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path)
{
	return linkat(old_dir_fd, old_path, new_dir_fd, new_path, 0) < 0 ? -errno : 0;
}

int op_sys_symlinkat(const char *target, int dir_fd, const char *path)
{
	return symlinkat(target, dir_fd, path) < 0 ? -errno : 0;
}

ssize_t op_sys_readlinkat(int dir_fd, const char *path, char *buffer, size_t nr_bytes)
{
	ssize_t nr = readlinkat(dir_fd, path, buffer, nr_bytes);

	return nr < 0 ? -errno : nr;
}

int op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes)
{
	return fallocate(fd, mode, offset, nr_bytes) < 0 ? -errno : 0;
}

off_t op_sys_lseek(int fd, off_t offset, int whence)
{
	off_t at = lseek(fd, offset, whence);

	return at < 0 ? -errno : at;
}

int op_sys_memfd_create(const char *name, unsigned int flags)
{
	int fd = memfd_create(name, flags);

	return fd < 0 ? -errno : fd;
}

int op_sys_pidfd_open(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

int op_sys_bpf(int command, void *attr, size_t nr_bytes)
{
	long result = syscall(SYS_bpf, command, attr, nr_bytes);

	return result < 0 ? -errno : (int)result;
}

int op_sys_ftruncate(int fd, off_t nr_bytes)
{
	return ftruncate(fd, nr_bytes) < 0 ? -errno : 0;
}

int op_sys_fcntl(int fd, int command, int arg)
{
	int result = fcntl(fd, command, arg);

	return result < 0 ? -errno : result;
}

int op_sys_membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) < 0 ? -errno : 0;
}

bool op_sys_is_gone(uint32_t pid)
{
	return getpgid((pid_t)pid) < 0 && errno == ESRCH;
}

int op_sys_eventfd(unsigned int value, int flags)
{
	int fd = eventfd(value, flags);

	return fd < 0 ? -errno : fd;
}

int op_sys_fsync(int fd)
{
	return fsync(fd) < 0 ? -errno : 0;
}

int op_sys_syncfs(int fd)
{
	return syncfs(fd) < 0 ? -errno : 0;
}

int op_sys_fstat(int fd, struct stat *ret_stat)
{
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

int op_sys_statvfs(int fd, struct statvfs *ret_statvfs)
{
	return fstatvfs(fd, ret_statvfs) < 0 ? -errno : 0;
}

static uint64_t ns_of(const struct statx_timestamp *time)
{
	return time->tv_sec < 0 ? 0 : (uint64_t)time->tv_sec * OP_NS_PER_S + time->tv_nsec;
}

int op_sys_times(int fd, struct op_sys_times *ret_times)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &stx) < 0)
		return -errno;
	*ret_times = (struct op_sys_times){
		.made_ns = stx.stx_mask & STATX_BTIME ? ns_of(&stx.stx_btime) : 0,
		.changed_ns = ns_of(&stx.stx_mtime),
	};
	return 0;
}

uint64_t op_sys_wall_ns(void)
{
	return op_clock_ns(CLOCK_REALTIME);
}

uint64_t op_sys_boot_ns(void)
{
	return op_clock_ns(CLOCK_BOOTTIME);
}

ssize_t op_sys_read_now(int fd, void *buffer, size_t nr_bytes)
{
	struct iovec piece = { buffer, nr_bytes };
	ssize_t nr = preadv2(fd, &piece, 1, -1, RWF_NOWAIT);
	int flags;

	if (nr >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
		return nr < 0 ? -errno : nr;
	flags = op_sys_fcntl(fd, F_GETFL, 0);
	if (flags < 0)
		return flags;
	return flags & O_NONBLOCK ? op_sys_read(fd, buffer, nr_bytes) : -EAGAIN;
}

ssize_t op_sys_read(int fd, void *buffer, size_t nr_bytes)
{
	ssize_t nr = read(fd, buffer, nr_bytes);

	return nr < 0 ? -errno : nr;
}

ssize_t op_sys_getdents(int fd, void *buffer, size_t nr_bytes)
{
	ssize_t nr = getdents64(fd, buffer, nr_bytes);

	return nr < 0 ? -errno : nr;
}

ssize_t op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset)
{
	ssize_t nr = pread(fd, buffer, nr_bytes, offset);

	return nr < 0 ? -errno : nr;
}

ssize_t op_sys_write(int fd, const void *buffer, size_t nr_bytes)
{
	ssize_t nr = write(fd, buffer, nr_bytes);

	return nr < 0 ? -errno : nr;
}

/* A negative offset: the file position. */
static int write_all(int fd, const char *bytes, size_t nr_bytes, off_t offset)
{
	while (nr_bytes) {
		ssize_t nr = offset < 0 ? write(fd, bytes, nr_bytes) : pwrite(fd, bytes, nr_bytes, offset);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		bytes += nr;
		nr_bytes -= (size_t)nr;
		offset += offset < 0 ? 0 : nr;
	}
	return 0;
}

int op_sys_write_all(int fd, const void *buffer, size_t nr_bytes)
{
	return write_all(fd, buffer, nr_bytes, -1);
}

int op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset)
{
	return write_all(fd, buffer, nr_bytes, offset);
}

void op_sys_use_one_heap(void)
{
#ifdef HAVE_MALLOC_TRIM
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
#endif
}

int op_sys_release_pages(void *map, size_t nr_bytes)
{
	return madvise(map, nr_bytes, MADV_DONTNEED) < 0 ? -errno : 0;
}

void op_sys_trim_memory(void)
{
#ifdef HAVE_MALLOC_TRIM
	malloc_trim(0);
#endif
}
