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
	store->nodes = calloc(store->tree.nr_nodes, sizeof(struct opr_call_node *));
	store->ends = calloc(store->tree.nr_nodes, sizeof(*store->ends));
	store->flags = calloc(store->tree.nr_nodes, sizeof(*store->flags));
	if (!store->nodes || !store->ends || !store->flags)
		return opr_no_memory();
	naming.store = store;
	naming.err = opr_stacks_subtract(&store->tree, profile->earlier, session->dir_fd);
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

void opr_stores_free(struct opr_stores *stores)
{
	for (size_t i = 0; i < stores->nr_stores; i++) {
		struct opr_store *store = &stores->list[i];

		for (size_t n = 0; n < store->nr_images; n++)
			free(store->images[n].name);
		free(store->images);
		free(store->nodes);
		free(store->ends);
		free(store->flags);
		op_stack_tree_free(&store->tree);
	}
	free(stores->list);
}
