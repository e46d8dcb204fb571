/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Thin wrappers of the system calls that tests make fail. They return 0 or a result, or -errno.
 * Tests replace them at link time (--wrap=op_sys_openat), so the shipped objects have no test code.
 */
#ifndef OP_SYS_H
#define OP_SYS_H

#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "libop/base/compiler.h"

int op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags) OP_MUST_CHECK;

/*
 * Who is asked when the kernel refuses an event with EACCES: a descriptor or -errno. NULL: nobody.
 * Set before there are threads.
 */
extern int (*op_sys_event_opener)(const struct perf_event_attr *attr, pid_t pid, int cpu);

int op_sys_ioctl(int fd, unsigned long request, void *arg);
int op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map) OP_MUST_CHECK;
int op_sys_munmap(void *map, size_t nr_bytes);
int op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode) OP_MUST_CHECK;

/*
 * Opens a path as a process whose root is root_fd sees it. Links stay inside that root; a link as
 * the last component is not followed. -ENOSYS: as below.
 */
int op_sys_open_in_root(int root_fd, const char *path, int flags) OP_MUST_CHECK;

/*
 * Opens a directory below dir_fd. No link is followed, and the path cannot leave dir_fd. An O_PATH
 * descriptor; -ENOSYS before Linux 5.6, and under RestrictSUIDSGID= of systemd: its filter refuses
 * openat2(2), because it cannot see the mode.
 */
int op_sys_open_dir_below(int dir_fd, const char *path) OP_MUST_CHECK;

/* The handle of an open file, also with O_PATH. handle->handle_bytes is the room of the handle. */
struct file_handle;
int op_sys_name_to_handle(int fd, struct file_handle *handle) OP_MUST_CHECK;

int op_sys_mkdirat(int dir_fd, const char *path, mode_t mode) OP_MUST_CHECK;
int op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK;

/* -EEXIST instead of replacing a file. */
int op_sys_rename_new(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK;

/* Exchanges two existing files in one step. -EINVAL or -ENOSYS: not supported. */
int op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path) OP_MUST_CHECK;
int op_sys_unlinkat(int dir_fd, const char *path, int flags);
int op_sys_linkat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) OP_MUST_CHECK;
int op_sys_symlinkat(const char *target, int dir_fd, const char *path) OP_MUST_CHECK;
ssize_t op_sys_readlinkat(int dir_fd, const char *path, char *buffer, size_t nr_bytes) OP_MUST_CHECK;
int op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes) OP_MUST_CHECK;
off_t op_sys_lseek(int fd, off_t offset, int whence) OP_MUST_CHECK;
int op_sys_memfd_create(const char *name, unsigned int flags) OP_MUST_CHECK;
/* readable when the process has ended; -ENOSYS before Linux 5.3 */
int op_sys_pidfd_open(pid_t pid) OP_MUST_CHECK;
int op_sys_ftruncate(int fd, off_t nr_bytes) OP_MUST_CHECK;
int op_sys_fcntl(int fd, int command, int arg) OP_MUST_CHECK;
int op_sys_membarrier(int command) OP_MUST_CHECK;
int op_sys_bpf(int command, void *attr, size_t nr_bytes) OP_MUST_CHECK; /* attr: a union bpf_attr */

/*
 * True when no process or thread has this number, not even a zombie. Costs a tenth of a look into
 * /proc.
 */
bool op_sys_is_gone(uint32_t pid) OP_MUST_CHECK;

int op_sys_eventfd(unsigned int value, int flags) OP_MUST_CHECK;
int op_sys_fsync(int fd) OP_MUST_CHECK;
int op_sys_syncfs(int fd) OP_MUST_CHECK;
int op_sys_fstat(int fd, struct stat *ret_stat) OP_MUST_CHECK;
int op_sys_statvfs(int fd, struct statvfs *ret_statvfs) OP_MUST_CHECK;

/*
 * Since 1970: the birth of a file, 0 when the file system does not record it, and its last
 * modification.
 */
struct op_sys_times {
	uint64_t made_ns, changed_ns;
};
int op_sys_times(int fd, struct op_sys_times *ret_times) OP_NONNULL OP_MUST_CHECK;

uint64_t op_sys_wall_ns(void); /* since 1970; this clock may step */
uint64_t op_sys_boot_ns(void); /* since the machine started, suspend included; it never steps */
ssize_t op_sys_read(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/*
 * Reads, but -EAGAIN instead of waiting, also when another process has cleared O_NONBLOCK. Where
 * the kernel has no call for that (an eventfd before Linux 5.8) it is -EAGAIN without O_NONBLOCK,
 * and it waits only when the other process clears O_NONBLOCK and empties the file in just that
 * moment.
 */
ssize_t op_sys_read_now(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK;
/* rows of struct dirent64 */
ssize_t op_sys_getdents(int fd, void *buffer, size_t nr_bytes) OP_MUST_CHECK;
ssize_t op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset) OP_MUST_CHECK;
ssize_t op_sys_write(int fd, const void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/*
 * Makes all threads use one heap with fixed thresholds, where the C library can. Otherwise a thread
 * keeps memory in a heap of its own, which op_sys_trim_memory does not see. Call before there are
 * threads.
 */
void op_sys_use_one_heap(void);

/* Returns free memory of the heap to the kernel, where the C library can. */
void op_sys_trim_memory(void);

/*
 * Unmaps the pages of a mapped file from the process; they stay in the page cache and return on
 * access.
 */
int op_sys_release_pages(void *map, size_t nr_bytes);

/* Writes all bytes, whatever short writes and signals come. 0 or -errno. */
int op_sys_write_all(int fd, const void *buffer, size_t nr_bytes) OP_MUST_CHECK;

/* The same at an offset. */
int op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset) OP_MUST_CHECK;

#endif
