/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define FIRST_BYTES (256u * 1024)
#define FILE_STEP   (1024u * 1024) /* a whole number of pages of any size */
#define NAME        "held"

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

/* With its blocks, where that can be had: there is no other way to learn that the disk is full than by a signal. */
static int extend(int fd, size_t nr_bytes)
{
	int err = op_sys_fallocate(fd, 0, 0, (off_t)nr_bytes);

	return err == -EOPNOTSUPP ? op_sys_ftruncate(fd, (off_t)nr_bytes) : err;
}

static int map(int fd, size_t nr_bytes, void **ret_map)
{
	int err = extend(fd, nr_bytes);

	return err ? err : op_sys_mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, ret_map);
}

static int become_file(struct opi_spill *spill, size_t room)
{
	void *bytes;
	int fd = open_file(spill->dir_fd), err;

	if (fd < 0)
		return fd;
	err = map(fd, room, &bytes);
	if (err) {
		close(fd);
		return err;
	}
	if (spill->length)
		memcpy(bytes, spill->bytes, spill->length);
	free(spill->bytes);
	spill->bytes = bytes;
	spill->room = room;
	spill->fd = fd;
	spill->is_file = true;
	return 0;
}

static int grow_file(struct opi_spill *spill, size_t room)
{
	void *bytes;
	int err = map(spill->fd, room, &bytes);

	if (err)
		return err;
	op_sys_munmap(spill->bytes, spill->room);
	spill->bytes = bytes;
	spill->room = room;
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
	return spill->is_file ? grow_file(spill, room) : become_file(spill, room);
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
