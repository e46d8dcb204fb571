/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/memory_limit.h"

#include <dirent.h>
#include <errno.h>

#include "libop/odb/read.h"
#include "libop/session/memory_view.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"

#define MEMORY_DIR OP_SESSION_CURRENT "/" OP_MEM_DIR

void opd_memory_note(struct opd_count *count, struct opd_file *file, bool is_stranger)
{
	uint32_t nr_nodes = op_odb_nr_nodes(file->odb);

	if (!is_stranger)
		count->nr_memory_nodes += nr_nodes - op_min_u64(file->nr_memory_nodes, count->nr_memory_nodes);
	file->nr_memory_nodes = nr_nodes;
}

void opd_memory_note_gone(struct opd_count *count, struct opd_file *file)
{
	count->nr_memory_nodes -= op_min_u64(file->nr_memory_nodes, count->nr_memory_nodes);
	file->nr_memory_nodes = 0;
}

struct recount {
	int session_fd;
	uint64_t nr_nodes;
};

/* A damaged sample file has no nodes. It is put aside when it is opened. */
static int add_nodes(const char *path, unsigned char type, void *arg)
{
	struct recount *recount = arg;
	uint32_t nr_nodes = 0;
	int err = type == DT_REG ? op_odb_read_nr_nodes(recount->session_fd, path, &nr_nodes) : 0;

	recount->nr_nodes += nr_nodes;
	return err == -EBADMSG || err == -ENOENT ? 0 : err;
}

int opd_memory_recount(struct opd_count *count)
{
	struct recount recount = { .session_fd = count->session_fd };
	int err = op_session_walk(count->session_fd, MEMORY_DIR, add_nodes, &recount);

	if (!err)
		count->nr_memory_nodes = recount.nr_nodes;
	return err;
}
