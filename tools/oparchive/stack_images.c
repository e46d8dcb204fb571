/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images that only stacks name: callers in which no sample is. */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/base/grow.h"
#include "libop/session/dcookie.h"
#include "libop/session/layout.h"
#include "libop/stacks/format.h"
#include "libop/stacks/read.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

struct named {
	char *name;
	struct op_image_name image_name; /* of a row of the session */
};

struct found {
	struct named *images;
	size_t nr_images, capacity;
};

static int compare_cookies(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The cookies of a tree, each once. Freed by the caller; NULL: no memory. */
static uint64_t *cookies_of(const struct op_stack_tree *tree, size_t *ret_nr)
{
	uint64_t *cookies = calloc(tree->nr_nodes, sizeof(*cookies));
	size_t nr = 0, nr_kept = 0;

	if (!cookies)
		return NULL;
	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		if (op_stack_has_image(&tree->nodes[i]))
			cookies[nr++] = tree->nodes[i].image;
	qsort(cookies, nr, sizeof(*cookies), compare_cookies);
	for (size_t i = 0; i < nr; i++)
		if (!nr_kept || cookies[nr_kept - 1] != cookies[i])
			cookies[nr_kept++] = cookies[i];
	*ret_nr = nr_kept;
	return cookies;
}

static bool is_of_profile(const struct opr_image_cache *images, const char *name)
{
	size_t nr = op_nr_leading(images->images, images->nr_images, image, strcmp(image->name, name) <= 0);

	return nr && !strcmp(images->images[nr - 1].name, name);
}

static int add_row(const struct opa_run *run, struct found *found, size_t session, const struct op_dcookie_row *row)
{
	struct named named = { .image_name = op_dcookie_name(row) };

	named.name = opr_session_image_name(&run->selection.profile, session, &named.image_name);
	if (!named.name)
		return opr_no_memory();
	if (is_of_profile(&run->images, named.name)) {
		free(named.name);
		return 0;
	}
	if (!op_grow(&found->images, &found->capacity, found->nr_images + 1)) {
		free(named.name);
		return opr_no_memory();
	}
	found->images[found->nr_images++] = named;
	return 0;
}

/* A damaged file is in the archive as it is: opcheck tells of it. */
static int add_session(const struct opa_run *run, struct found *found, size_t session)
{
	const struct opr_session *from = &run->selection.profile.sessions[session];
	struct op_stack_tree tree;
	uint64_t *cookies;
	size_t nr_cookies = 0;
	int err = from->images ? op_stacks_read(from->dir_fd, OP_SESSION_STACKS, &tree) : -ENOENT;

	if (err)
		return err == -ENOMEM ? opr_no_memory() : 0;
	cookies = cookies_of(&tree, &nr_cookies);
	err = cookies ? 0 : opr_no_memory();
	for (size_t i = 0; i < nr_cookies && !err; i++) {
		if (op_dcookie_has(from->images, cookies[i]) && op_dcookie_row(from->images, cookies[i])->name)
			err = add_row(run, found, session, op_dcookie_row(from->images, cookies[i]));
	}
	free(cookies);
	op_stack_tree_free(&tree);
	return err;
}

/* As the images of the profile. */
static int add_found(struct opa_run *run, const struct found *found)
{
	const struct opr_symbol_options none = { .root = run->options->root };
	struct opr_named_image *list = calloc(found->nr_images, sizeof(*list));
	struct opr_image_cache of_profile = run->images;
	int err;

	if (!list)
		return opr_no_memory();
	for (size_t i = 0; i < found->nr_images; i++)
		list[i] = (struct opr_named_image){ found->images[i].name, &found->images[i].image_name };
	run->images = (struct opr_image_cache){ 0 };
	err = opr_image_cache_init_list(&run->images, &run->selection.profile, &run->selection.finder, &none, list,
					found->nr_images);
	if (!err)
		err = opa_add_images(run);
	if (!err && run->options->output_dir)
		err = opa_note_packages(run);
	opr_image_cache_free(&run->images);
	run->images = of_profile;
	free(list);
	return err;
}

int opa_add_stack_images(struct opa_run *run)
{
	const struct opr_profile *profile = &run->selection.profile;
	struct found found = { 0 };
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions && !err; i++)
		if (profile->sessions[i].parent == i && opa_is_whole(profile, i))
			err = add_session(run, &found, i);
	if (!err && found.nr_images)
		err = add_found(run, &found);
	for (size_t i = 0; i < found.nr_images; i++)
		free(found.images[i].name);
	free(found.images);
	return err;
}
