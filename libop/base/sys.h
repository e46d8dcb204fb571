/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The system calls that tests must be able to make fail: one line each, 0 or a result or -errno, errno is of no interest.
 * Tests replace them with the linker (--wrap=op_sys_openat), so nothing of the seam is in the shipped objects.
 */
#ifndef OP_SYS_H
#define OP_SYS_H

#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "libop/base/compiler.h"

int op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags) OP_MUST_CHECK;
int op_sys_ioctl(int fd, unsigned long request, void *arg);
int op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map) OP_MUST_CHECK;
int op_sys_munmap(void *map, size_t nr_bytes);
int op_sys_msync(void *map, size_t nr_bytes, int flags) OP_MUST_CHECK;
int op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode) OP_MUST_CHECK;

/* Opens a path as a process sees it whose root is root_fd: no link leads out of there. The last component is not followed. -ENOSYS as below. */
int op_sys_open_in_root(int root_fd, const char *path, int flags) OP_MUST_CHECK;

/*
 * The directory at a path of directories alone: no link is followed, and nothing leads above dir_fd. An O_PATH descriptor; -ENOSYS before
 * Linux 5.6 and below RestrictSUIDSGID= of systemd, which forbids openat2(2) since it cannot see what mode is asked for.
 */
int op_sys_open_dir_below(int dir_fd, const char *path) OP_MUST_CHECK;

/* The handle of the file at a path, a link is followed; handle->handle_bytes is the room that it has. */
struct file_handle;
int op_sys_name_to_handle(const char *path, struct file_handle *handle) OP_MUST_CHECK;

int op_sys_mkdirat(int dir_fd, const char *path, mode_t mode) OP_MUST_CHECK;
int op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK;
int op_sys_rename_new(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK; /* -EEXIST: nothing is replaced */

/* Each becomes the other, in one step; both must be there. -EINVAL or -ENOSYS where the file system or the kernel cannot. */
int op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path) OP_MUST_CHECK;
int op_sys_unlinkat(int dir_fd, const char *path, int flags);
int op_sys_linkat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK;
int op_sys_symlinkat(const char *target, int dir_fd, const char *path) OP_MUST_CHECK;
ssize_t op_sys_readlinkat(int dir_fd, const char *path, char *buffer, size_t nr_bytes) OP_MUST_CHECK;
int op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes) OP_MUST_CHECK;
off_t op_sys_lseek(int fd, off_t offset, int whence) OP_MUST_CHECK;
int op_sys_memfd_create(const char *name, unsigned int flags) OP_MUST_CHECK;
int op_sys_pidfd_open(pid_t pid) OP_MUST_CHECK; /* can be read when that process has ended; -ENOSYS before Linux 5.3 */
int op_sys_ftruncate(int fd, off_t nr_bytes) OP_MUST_CHECK;
int op_sys_fcntl(int fd, int command, int arg) OP_MUST_CHECK;
int op_sys_membarrier(int command) OP_MUST_CHECK;
int op_sys_bpf(int command, void *attr, size_t nr_bytes) OP_MUST_CHECK; /* attr: a union bpf_attr */

/* True when no process and no thread has this number, not even one that has ended and was not waited for. A tenth of what a look into /proc costs. */
bool op_sys_is_gone(uint32_t pid) OP_MUST_CHECK;

int op_sys_eventfd(unsigned int value, int flags) OP_MUST_CHECK;
int op_sys_fsync(int fd) OP_MUST_CHECK;
int op_sys_syncfs(int fd) OP_MUST_CHECK;
int op_sys_fstat(int fd, struct stat *ret_stat) OP_MUST_CHECK;
int op_sys_statvfs(int fd, struct statvfs *ret_statvfs) OP_MUST_CHECK;

/* When a file was made, 0 where the file system does not know, and when its contents changed last; since 1970. 0 or -errno. */
struct op_sys_times {
	uint64_t made_ns, changed_ns;
};
int op_sys_times(int fd, struct op_sys_times *ret_times) OP_NONNULL OP_MUST_CHECK;

uint64_t op_sys_wall_ns(void); /* since 1970: what the clock on the wall says, which may step */
uint64_t op_sys_boot_ns(void); /* since the machine started, time asleep included: it never steps */
ssize_t op_sys_read(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/*
 * The same, and -EAGAIN where it would wait, whatever others that have the file open say of that. Where the kernel has no such call for it (an
 * eventfd before Linux 5.8) it is -EAGAIN without O_NONBLOCK too, and waits only for who takes that away and empties the file between the
 * look at it and the read.
 */
ssize_t op_sys_read_now(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK;
ssize_t op_sys_getdents(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK; /* rows of struct dirent64 */
ssize_t op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset) OP_MUST_CHECK;
ssize_t op_sys_pwrite(int fd, const void *buffer, size_t nr_bytes, off_t offset) OP_MUST_CHECK;
ssize_t op_sys_write(int fd, const void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/*
 * Before there are threads, where the C library can: one heap for all of them, and no larger thresholds for giving memory back because large pieces
 * were freed once. Else a thread that had much for a while keeps it in a heap of its own, whose end op_sys_trim_memory does not see.
 */
void op_sys_use_one_heap(void);

/* Gives free memory of the heap back to the kernel, where the C library can. */
void op_sys_trim_memory(void);

/* Takes a file's pages out of the process's memory; they stay in the page cache, and come back when they are looked at. */
int op_sys_let_go(void *map, size_t nr_bytes);

/* Writes all bytes, also after short writes and signals. 0 or -errno. */
int op_sys_write_all(int fd, const void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/* The same at an offset. */
int op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset) OP_MUST_CHECK;

#endif
