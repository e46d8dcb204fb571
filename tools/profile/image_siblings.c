/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/image_siblings.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

/* The path that a sample file would have if application and image had their plain names. */
static char *plain_path(const struct opr_session *session, const struct op_sample_name *name, const char *image)
{
	struct op_sample_name plain = *name;
	struct opr_identity identity = opr_session_identity(session, &name->app, name->app.name);
	char *app = name->app.kind == OP_IMAGE_FILE ? strndup(identity.path, identity.path_length) : NULL;
	struct op_text path = { 0 };

	plain.image.name = image;
	if (app)
		plain.app.name = app;
	op_mangle(&plain, &path);
	free(app);
	return op_text_steal(&path);
}

static int add(struct opr_siblings *siblings, const struct opr_session *session, const struct op_sample_name *name)
{
	struct opr_identity identity = opr_session_identity(session, &name->image, name->image.name);
	struct opr_sibling *item;

	if (name->image.kind != OP_IMAGE_FILE || !identity.told_apart)
		return 0;
	if (!op_grow(&siblings->items, &siblings->capacity, siblings->nr_items + 1))
		return opr_no_memory();
	item = &siblings->items[siblings->nr_items++];
	*item = (struct opr_sibling){ .identity = identity, .image = strndup(identity.path, identity.path_length) };
	item->sample_file = item->image ? plain_path(session, name, item->image) : NULL;
	return item->sample_file ? 0 : opr_no_memory();
}

int opr_siblings_find(struct opr_siblings *siblings, const struct opr_profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_list *list = &profile->sessions[i].list;

		for (size_t j = 0; j < list->nr_files && !err; j++)
			err = add(siblings, &profile->sessions[i], &list->files[j].name);
	}
	return err;
}

bool opr_siblings_have(const struct opr_siblings *siblings, const char *image)
{
	for (size_t i = 0; i < siblings->nr_items; i++)
		if (!strcmp(siblings->items[i].image, image))
			return true;
	return false;
}

bool opr_siblings_own(const struct opr_siblings *siblings, const struct opr_archive *archive, const char *sample_file,
		      const char *path)
{
	for (size_t i = 0; i < siblings->nr_items; i++)
		if (!strcmp(siblings->items[i].sample_file, sample_file) &&
		    opr_identity_agrees(&siblings->items[i].identity, archive, path))
			return true;
	return false;
}

void opr_siblings_free(struct opr_siblings *siblings)
{
	if (!siblings)
		return;
	for (size_t i = 0; i < siblings->nr_items; i++) {
		free(siblings->items[i].image);
		free(siblings->items[i].sample_file);
	}
	free(siblings->items);
	*siblings = (struct opr_siblings){ 0 };
}
