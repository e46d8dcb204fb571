/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/stores.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/profile/image_name.h"
#include "tools/profile/select_files.h"
#include "tools/profile/spans.h"
#include "tools/stacks/select_stacks.h"

static int compare_cookies(const void *left, const void *right)
{
	const struct opr_named *a = left, *b = right;

	return (a->cookie > b->cookie) - (a->cookie < b->cookie);
}

struct opr_named *opr_store_named(const struct opr_store *store, uint64_t cookie)
{
	const struct opr_named key = { .cookie = cookie };

	return store->nr_images ? bsearch(&key, store->images, store->nr_images, sizeof(key), compare_cookies) : NULL;
}

struct naming {
	struct opr_profile *profile;
	struct opr_store *store;
	int err;
};

/* A store may be damaged, so its cookies are looked up in a list of those that exist. */
static void name_row(struct op_dcookie_row *row, void *arg)
{
	struct naming *naming = arg;
	struct opr_store *store = naming->store;
	struct opr_named *named;

	if (!row->name || naming->err)
		return;
	if (!op_grow(&store->images, &store->capacity, store->nr_images + 1)) {
		naming->err = opr_no_memory();
		return;
	}
	named = &store->images[store->nr_images];
	*named = (struct opr_named){ .cookie = row->cookie, .image_name = op_dcookie_name(row), .row = row };
	named->name = opr_stack_image_name(naming->profile, store->session, &named->image_name);
	if (!named->name) {
		naming->err = opr_no_memory();
		return;
	}
	store->nr_images++;
}

static bool make_room(struct opr_store *store)
{
	store->nodes = calloc(store->tree.nr_nodes, sizeof(struct opr_call_node *));
	store->ends = calloc(store->tree.nr_nodes, sizeof(*store->ends));
	store->flags = calloc(store->tree.nr_nodes, sizeof(*store->flags));
	return store->nodes && store->ends && store->flags;
}

/* A stack ends in the function that waited, and who woke it is a fact beside. */
static int take_wakers(struct opr_store *store)
{
	for (uint32_t i = 1; i < store->tree.nr_nodes; i++) {
		struct op_stack_node *node = &store->tree.nodes[i], *parent = &store->tree.nodes[node->parent];

		if (node->kind != OP_STACK_WAKER || !node->count)
			continue;
		if (!op_grow(&store->wakers, &store->waker_capacity, store->nr_wakers + 1))
			return opr_no_memory();
		store->wakers[store->nr_wakers++] =
			(struct opr_store_waker){ node->parent, node->value, node->image, node->count, node->records };
		if (__builtin_add_overflow(parent->count, node->count, &parent->count))
			parent->count = UINT64_MAX;
		parent->records = (uint16_t)op_min_u64((uint64_t)parent->records + node->records, OP_STACK_RECORDS_MAX);
		node->count = 0;
		node->records = 0;
	}
	return 0;
}

static int add_store(struct opr_stores *stores, struct opr_profile *profile, size_t session_index)
{
	const struct opr_session *session = &profile->sessions[session_index];
	struct naming naming = { .profile = profile };
	struct opr_store *store;
	int err;

	if (!op_grow(&stores->list, &stores->capacity, stores->nr_stores + 1))
		return opr_no_memory();
	store = &stores->list[stores->nr_stores];
	*store = (struct opr_store){ .session = session_index };
	err = session->window ? opr_window_stacks(session->window, &store->tree) :
				op_stacks_read(session->dir_fd, OP_SESSION_STACKS, &store->tree);
	if (err == -ENOENT)
		return 0;
	if (err == -EBADMSG) {
		opr_warn("%s/" OP_SESSION_STACKS " is damaged or of a later version and is left out", session->path);
		return opr_stacks_keep(profile->earlier, session->dir_fd);
	}
	if (err)
		return opr_error(err, "%s/" OP_SESSION_STACKS ": %s", session->path, strerror(-err));
	stores->nr_stores++;
	stores->nr_nodes += store->tree.nr_nodes;
	if (store->tree.nr_damaged || store->tree.nr_cut)
		opr_warn("%s/" OP_SESSION_STACKS ": %" PRIu32 " damaged nodes are left out", session->path,
			 store->tree.nr_damaged + store->tree.nr_cut);
	if (!make_room(store))
		return opr_no_memory();
	naming.store = store;
	naming.err = opr_stacks_subtract(&store->tree, profile->earlier, session->dir_fd);
	if (!naming.err)
		naming.err = take_wakers(store);
	if (session->images)
		op_dcookie_visit(session->images, name_row, &naming);
	if (store->nr_images)
		qsort(store->images, store->nr_images, sizeof(*store->images), compare_cookies);
	return naming.err;
}

int opr_stores_open(struct opr_stores *stores, struct opr_selection *selection, bool is_optional)
{
	struct opr_profile *profile = &selection->profile;
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions && !err; i++) {
		opr_progress_count("reading the stacks of sessions", i, profile->nr_sessions);
		if (profile->sessions[i].parent != i)
			continue;
		err = add_store(stores, profile, i);
	}
	if (!err && !stores->nr_stores && !is_optional)
		err = opr_error(-ENOENT, "there are no stacks: opcontrol --setup --stacks=on and operf --stacks take them");
	return err;
}

static void free_store(struct opr_store *store)
{
	for (size_t n = 0; n < store->nr_images && !store->is_span; n++)
		free(store->images[n].name);
	if (!store->is_span)
		free(store->images);
	free(store->nodes);
	free(store->ends);
	free(store->flags);
	free(store->wakers);
	op_stack_tree_free(&store->tree);
}

/* ---- spans ---- */

#define SPAN_NODES_MAX 1000000u /* of all spans: about 60 MB */

/* The trees of the spans become those of the stores. 0 or -ENOMEM. */
static int add_span_stores(struct opr_stores *stores, size_t of, struct opr_time_spans *spans)
{
	for (size_t i = 0; i < spans->nr_spans; i++) {
		struct opr_time_span *span = &spans->spans[i];
		struct opr_store *store;

		if (!op_grow(&stores->list, &stores->capacity, stores->nr_stores + 1))
			return -ENOMEM;
		store = &stores->list[stores->nr_stores++];
		*store = (struct opr_store){ .session = stores->list[of].session,
					     .is_span = true,
					     .span = { span->begin_ns, span->end_ns, span->nr_lost },
					     .tree = span->stacks,
					     .images = stores->list[of].images,
					     .nr_images = stores->list[of].nr_images };
		span->stacks = (struct op_stack_tree){ 0 };
		if (!make_room(store))
			return -ENOMEM;
		stores->nr_spans++;
		stores->nr_nodes += store->tree.nr_nodes;
	}
	return 0;
}

/* Gives the spans of all sessions their places in time: few sessions have spans between others. */
static void number_spans(struct opr_stores *stores, size_t nr_whole)
{
	for (size_t i = nr_whole; i < stores->nr_stores; i++)
		for (size_t j = nr_whole; j < i; j++) {
			bool is_later = stores->list[j].span.begin_ns > stores->list[i].span.begin_ns;

			stores->list[is_later ? j : i].span_index++;
		}
}

static void drop_spans(struct opr_stores *stores, size_t nr_whole)
{
	while (stores->nr_stores > nr_whole) {
		struct opr_store *store = &stores->list[--stores->nr_stores];

		stores->nr_nodes -= store->tree.nr_nodes;
		free_store(store);
	}
	stores->nr_spans = 0;
}

int opr_stores_add_spans(struct opr_stores *stores, const struct opr_profile *profile, size_t max_spans)
{
	uint64_t until_ns = profile->until_ns ? profile->until_ns : UINT64_MAX;
	size_t nr_whole = stores->nr_stores;
	bool has_all = nr_whole;
	int err = 0;

	for (size_t i = 0; i < nr_whole && has_all && !err; i++) {
		const struct opr_session *session = &profile->sessions[stores->list[i].session];
		struct opr_time_spans spans = { 0 };

		opr_progress_count("reading the stacks by time", i, nr_whole);
		err = opr_time_spans_read(session->dir_fd, profile->since_ns, until_ns, op_max_u64(max_spans / nr_whole, 1),
				     SPAN_NODES_MAX / nr_whole, &spans);
		has_all = spans.nr_spans;
		if (!err)
			err = add_span_stores(stores, i, &spans);
		opr_time_spans_free(&spans);
	}
	if (!has_all)
		drop_spans(stores, nr_whole);
	number_spans(stores, nr_whole);
	return err ? opr_no_memory() : 0;
}

void opr_stores_free(struct opr_stores *stores)
{
	for (size_t i = 0; i < stores->nr_stores; i++)
		free_store(&stores->list[i]);
	free(stores->list);
}
