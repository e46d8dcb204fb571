/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/short_images.h"

static int find_in_one(struct opr_short_names *names, const struct opr_words *images)
{
	int err = 0;

	for (size_t i = 0; i < images->nr_words && !err; i++)
		err = opr_short_names_add(names, images->words[i]);
	if (!err)
		opr_short_names_end(names);
	return err;
}

static bool has_base(const struct opr_short_names *names, const char *base)
{
	for (size_t i = 0; i < names->nr_names; i++)
		if (!strcmp(opr_base_name(names->names[i].full), base))
			return true;
	return false;
}

/* Adds the images of a profile whose base name is not enough in one of the two. */
static int add_ambiguous(struct opr_short_names *names, const struct opr_words *images, const struct opr_short_names of_one[2])
{
	int err = 0;

	for (size_t i = 0; i < images->nr_words && !err; i++) {
		const char *base = opr_base_name(images->words[i]);

		if (has_base(&of_one[0], base) || has_base(&of_one[1], base))
			err = opr_short_names_add(names, images->words[i]);
	}
	return err;
}

int opr_short_images_find(struct opr_short_names *names, const struct opr_stack_sums *first, const struct opr_stack_sums *second)
{
	struct opr_short_names of_one[2] = { { 0 } };
	int err;

	if (!second)
		return find_in_one(names, &first->images);
	err = find_in_one(&of_one[0], &first->images);
	if (err)
		goto out;
	err = find_in_one(&of_one[1], &second->images);
	if (err)
		goto out;
	err = add_ambiguous(names, &first->images, of_one);
	if (err)
		goto out;
	err = add_ambiguous(names, &second->images, of_one);
	if (!err)
		opr_short_names_end(names);
out:
	opr_short_names_free(&of_one[0]);
	opr_short_names_free(&of_one[1]);
	return err;
}

const char *opr_short_image(const struct opr_short_names *names, const char *full)
{
	return opr_short_name(names, full) ?: opr_base_name(full);
}

static void shorten(char *name, const struct opr_short_names *names)
{
	const char *shown = opr_short_image(names, name);

	memmove(name, shown, strlen(shown) + 1);
}

static void shorten_function(struct op_hlink *link, void *arg)
{
	struct opr_call_function *function = op_container_of(link, struct opr_call_function, link);
	bool is_app = function->kind == OPR_CALL_GROUP && function->place.label == OP_STACK_APP;
	const struct opr_short_names *const *names = arg;

	shorten(is_app ? function->name : function->image, *names);
}

void opr_short_images_set(const struct opr_short_names *names, struct opr_call_tree *tree, struct opr_stack_contexts *contexts)
{
	op_htable_visit(&tree->functions, shorten_function, &names);
	for (size_t i = 0; contexts && i < contexts->nr_rows; i++)
		shorten(contexts->rows[i].app, names);
}
