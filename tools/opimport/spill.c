/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define FIRST_BYTES (256u * 1024)
#define FILE_STEP   (1024u * 1024) /* a whole number of pages of any size */
#define NAME        "backlog"

void opi_spill_init(struct opi_spill *spill, int dir_fd, size_t memory_bytes)
{
	*spill = (struct opi_spill){ .dir_fd = dir_fd, .memory_bytes = memory_bytes };
}

/* Not every file system has files without a name. */
static int open_file(int dir_fd)
{
	int fd = op_sys_openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -EINVAL)
		return fd;
	fd = op_sys_openat(dir_fd, NAME, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		op_sys_unlinkat(dir_fd, NAME, 0);
	return fd;
}

/* Allocates the blocks, if possible: else a full disk is a signal at a write. */
static int extend(int fd, size_t nr_bytes)
{
	int err = op_sys_fallocate(fd, 0, 0, (off_t)nr_bytes);

	return err == -EOPNOTSUPP ? op_sys_ftruncate(fd, (off_t)nr_bytes) : err;
}

/* Makes the file larger, or makes it in the place of memory. */
static int grow_file(struct opi_spill *spill, size_t room)
{
	void *bytes;
	int fd = spill->is_file ? spill->fd : open_file(spill->dir_fd), err;

	if (fd < 0)
		return fd;
	err = extend(fd, room);
	if (!err)
		err = op_sys_mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &bytes);
	if (err) {
		if (!spill->is_file)
			close(fd);
		return err;
	}
	if (spill->is_file) {
		op_sys_munmap(spill->bytes, spill->room);
	} else {
		if (spill->length)
			memcpy(bytes, spill->bytes, spill->length);
		free(spill->bytes);
	}
	*spill = (struct opi_spill){ .dir_fd = spill->dir_fd,
				     .memory_bytes = spill->memory_bytes,
				     .bytes = bytes,
				     .length = spill->length,
				     .room = room,
				     .is_file = true,
				     .fd = fd };
	return 0;
}

static int grow_memory(struct opi_spill *spill, size_t room)
{
	uint8_t *bytes = realloc(spill->bytes, room);

	if (!bytes)
		return -ENOMEM;
	spill->bytes = bytes;
	spill->room = room;
	return 0;
}

int opi_spill_grow(struct opi_spill *spill, size_t nr_bytes)
{
	size_t needed = spill->length + nr_bytes, room = op_max_u64(op_max_u64(2 * spill->room, FIRST_BYTES), needed);

	if (!spill->is_file && needed <= spill->memory_bytes)
		return grow_memory(spill, op_min_u64(room, spill->memory_bytes));
	room = op_max_u64(spill->length + spill->length / 4, needed);
	room = (room + FILE_STEP - 1) / FILE_STEP * FILE_STEP;
	return grow_file(spill, room);
}

void opi_spill_free(struct opi_spill *spill)
{
	if (spill->is_file) {
		op_sys_munmap(spill->bytes, spill->room);
		close(spill->fd);
	} else {
		free(spill->bytes);
	}
	spill->bytes = NULL;
	spill->length = spill->room = 0;
	spill->is_file = false;
}
