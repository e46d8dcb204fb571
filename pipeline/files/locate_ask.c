/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/locate_ask.h"

#include <errno.h>

#define RECENT_VIEWS 32u

/*
 * The question: this, the name of the mapping, and the root of its view, each string with a NUL.
 * opd and its lookers are one program, so the structs need no form of their own. The pointers in
 * them mean nothing.
 */
struct question {
	struct opd_mapped mapped;
	bool has_view;
	uint64_t mnt_ns, user_ns;
	uint32_t seen_pid;
};

/* ---- in the looker ---- */

/* The views of the last questions, whose mounts are kept. */
static struct opd_mount_views looker_views;
static struct opd_mount_view *recent[RECENT_VIEWS];

static struct opd_mount_view *view_of(const struct question *question, const char *root)
{
	struct opd_mount_view **slot = &recent[question->mnt_ns % RECENT_VIEWS];
	struct opd_place place = { .mnt_ns = question->mnt_ns, .user_ns = question->user_ns };
	struct opd_mount_view *view = NULL;

	snprintf(place.root, sizeof(place.root), "%s", root);
	if (!question->has_view || opd_mount_view_get(&looker_views, &place, &view) < 0 || !view)
		return NULL;
	view->seen_pid = question->seen_pid;
	opd_mount_view_put(*slot);
	*slot = view;
	return view;
}

int opd_locate_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	struct opd_located located;
	struct question asked;
	int err;

	if (nr_bytes < sizeof(asked) + 2)
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	asked.mapped.name = question + sizeof(asked);
	asked.mapped.mount_views = &looker_views;
	asked.mapped.mount_view = view_of(&asked, asked.mapped.name + strlen(asked.mapped.name) + 1);
	asked.mapped.stat_cache = NULL;
	asked.mapped.build_ids = NULL;
	err = opd_locate(&asked.mapped, &located);
	if (err)
		return err;
	op_text_add_bytes(answer, &located, sizeof(located));
	op_text_add(answer, op_text_get(&located.path));
	op_text_free(&located.path);
	return 0;
}

/* ---- in opd ---- */

/* What the host has at the path is unknown. So the image does not get the plain name. */
static int locate_by_record(const struct opd_mapped *mapped, struct opd_located *ret_located)
{
	struct opd_mapped recorded = *mapped;
	int err;

	recorded.is_foreign = true;
	err = opd_locate(&recorded, ret_located);
	if (!err)
		ret_located->host_has_another = true;
	return err;
}

static int take_answer(const struct op_text *answer, struct opd_located *ret_located)
{
	struct opd_located located;

	if (answer->length < sizeof(located))
		return -EBUSY;
	memcpy(&located, answer->data, sizeof(located));
	located.path = (struct op_text){ 0 };
	op_text_add(&located.path, answer->data + sizeof(located));
	if (located.path.failed)
		return -ENOMEM;
	*ret_located = located;
	return 0;
}

int opd_locate_ask(const struct opd_mapped *mapped, struct opd_located *ret_located)
{
	const struct opd_mount_view *view = mapped->mount_view;
	struct opd_look_about about = opd_mount_view_about(view, mapped->pid);
	struct question question = { .mapped = *mapped, .has_view = view };
	struct iovec parts[] = {
		{ &question, sizeof(question) },
		{ (void *)(uintptr_t)mapped->name, strlen(mapped->name) + 1 }, // NOLINT(performance-no-int-to-ptr)
		{ view ? view->root : (char[1]){ 0 }, view ? strlen(view->root) + 1 : 1 },
	};
	struct op_text answer = { 0 };
	uint32_t any = 0;
	int err;

	if (mapped->is_foreign || !mapped->mount_views->lookers)
		return opd_locate(mapped, ret_located);
	if (view) {
		question.mnt_ns = view->mnt_ns;
		question.user_ns = view->user_ns;
		question.seen_pid = view->seen_pid;
	}
	err = opd_look(mapped->mount_views->lookers, &about, OPD_LOOK_LOCATE, parts, op_array_size(parts), -1, &any, &answer);
	if (!err)
		err = take_answer(&answer, ret_located);
	op_text_free(&answer);
	return err && err != -ENOMEM ? locate_by_record(mapped, ret_located) : err;
}
