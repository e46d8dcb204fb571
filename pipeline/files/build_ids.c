/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/build_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/sys.h"

/*
 * The argument of PROCMAP_QUERY; older headers do not have it. The kernel describes the mapping at
 * an address.
 */
struct map_query {
	uint64_t bytes, flags, address;
	uint64_t start, end, rights, page_bytes, offset, inode;
	uint32_t maj, min;
	/* sizes of the two buffers; the second becomes the length */
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id; /* pointers */
};

#define MAP_QUERY _IOWR('f', 17, struct map_query)

static_assert(sizeof(struct map_query) == 104, "struct procmap_query");

/* What opd asks a looker, and what the looker answers. */
struct question {
	uint32_t pid;
	uint64_t address;
};

struct answer {
	uint64_t device, inode;
	struct op_build_id id;
};

/* In the looker, or in opd without one. */
static int query(const struct question *question, struct answer *ret_answer)
{
	struct answer answer = { 0 };
	struct map_query argument = {
		.bytes = sizeof(argument),
		.address = question->address,
		.build_id_bytes = sizeof(answer.id.bytes),
		.build_id = (uintptr_t)answer.id.bytes,
	};
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%u/maps", question->pid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = op_sys_ioctl(fd, MAP_QUERY, &argument);
	close(fd);
	if (err < 0)
		return err;
	answer.device = makedev(argument.maj, argument.min);
	answer.inode = argument.inode;
	answer.id.nr_bytes = (uint8_t)op_min_u64(argument.build_id_bytes, sizeof(answer.id.bytes));
	*ret_answer = answer;
	return 0;
}

int opd_build_ids_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	struct question asked;
	struct answer got;
	int err;

	if (nr_bytes != sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	err = query(&asked, &got);
	if (!err)
		op_text_add_bytes(answer, &got, sizeof(got));
	return err;
}

/*
 * On an overlay, device and inode of a file depend on the interface and on the kernel version. An
 * inode without its device says nothing: any user can have a file system with chosen inodes.
 */
static bool is_answer_for(const struct opd_mapped *mapped, const struct opd_located *located, const struct answer *answer)
{
	bool is_recorded = answer->inode == mapped->inode && answer->device == mapped->device;
	bool is_located = located && answer->inode == located->mapped_inode && answer->device == located->mapped_device;

	return answer->inode && (is_recorded || is_located);
}

static int ask_looker(const struct opd_mapped *mapped, struct question *question, struct answer *ret_answer)
{
	struct opd_look_about about = opd_mount_view_about(mapped->mount_view, mapped->pid);
	struct iovec part = { question, sizeof(*question) };
	struct op_text text = { 0 };
	uint32_t any = 0;
	int err;

	if (op_sys_is_gone(mapped->pid))
		return -ESRCH;
	err = opd_look(mapped->mount_views->lookers, &about, OPD_LOOK_BUILD_ID, &part, 1, -1, &any, &text);
	if (!err && text.length != sizeof(*ret_answer))
		err = -EBUSY;
	if (!err)
		memcpy(ret_answer, text.data, sizeof(*ret_answer));
	op_text_free(&text);
	return err;
}

int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped *mapped, const struct opd_located *located,
		      struct op_build_id *ret_id)
{
	struct question question = { .pid = mapped->pid, .address = mapped->start };
	struct answer answer;
	int err;

	if (ids->is_unknown)
		return -ENOTTY;
	if (mapped->mount_views && mapped->mount_views->lookers)
		err = ask_looker(mapped, &question, &answer);
	else
		err = query(&question, &answer);
	if (err == -ENOTTY)
		ids->is_unknown = true;
	if (err < 0)
		return err;
	if (!is_answer_for(mapped, located, &answer) || answer.id.nr_bytes > sizeof(answer.id.bytes))
		return -ESTALE;
	*ret_id = answer.id;
	return 0;
}
