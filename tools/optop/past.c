/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/past.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/text.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"
#include "libop/timeline/read.h"

struct search {
	int samples_fd;
	uint64_t wall_ns;
	bool is_earlier;
	bool any;
	struct top_span found;
};

static void offer(struct search *search, const struct op_block *block)
{
	uint64_t begin_ns = op_block_first_ns(&block->tail);
	bool is_earlier = search->is_earlier;

	if (is_earlier ? begin_ns >= search->wall_ns : begin_ns <= search->wall_ns)
		return;
	if (search->any && (is_earlier ? begin_ns <= search->found.begin_ns : begin_ns >= search->found.begin_ns))
		return;
	search->found = (struct top_span){ begin_ns, op_block_last_ns(&block->tail) };
	search->any = true;
}

/* A selection has the block at its edge, too; that is why the one next to it is looked at. */
static void search_timeline(struct search *search, struct op_timeline *timeline)
{
	size_t nr = op_timeline_nr_selected(timeline), first = search->is_earlier && nr > 2 ? nr - 2 : 0;
	struct op_block block;

	for (size_t i = first; i < nr && i < first + 2; i++)
		if (!op_timeline_block(timeline, i, &block))
			offer(search, &block);
}

static int search_session(const char *name, void *arg)
{
	struct search *search = arg;
	struct op_timeline *timeline;
	int fd, err;

	if (*name == '.')
		return 0;
	fd = openat(search->samples_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* it was removed, or is no directory */
	err = op_timeline_open(fd, OP_SESSION_TIMELINE, &timeline);
	close(fd);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = search->is_earlier ? op_timeline_select(timeline, 0, search->wall_ns)
				 : op_timeline_select(timeline, search->wall_ns, UINT64_MAX);
	if (!err)
		search_timeline(search, timeline);
	op_timeline_close(timeline);
	return err == -ENOMEM ? err : 0;
}

static int find(const char *session_dir, struct search *search, struct top_span *ret_span)
{
	struct op_text path = { 0 };
	int err;

	op_text_printf(&path, "%s/samples", session_dir);
	search->samples_fd = path.failed ? -1 : open(op_text_get(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (search->samples_fd < 0) {
		err = path.failed ? -ENOMEM : -errno;
	} else {
		err = op_session_visit_dir(search->samples_fd, ".", search_session, search);
		close(search->samples_fd);
	}
	op_text_free(&path);
	if (!err && !search->any)
		err = -ENOENT;
	if (!err)
		*ret_span = search->found;
	return err;
}

int top_past_before(const char *session_dir, uint64_t wall_ns, struct top_span *ret_span)
{
	return find(session_dir, &(struct search){ .wall_ns = wall_ns, .is_earlier = true }, ret_span);
}

int top_past_after(const char *session_dir, uint64_t wall_ns, struct top_span *ret_span)
{
	return find(session_dir, &(struct search){ .wall_ns = wall_ns }, ret_span);
}
