/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/image_list.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

#define IMAGES_OF_PART 3 /* application, image, and the one that is called */

/* ---- image files that took the place of another one ---- */

/* The path that a sample file would have if application and image had their plain names. */
static char *plain_path(const struct opr_session *session, const struct op_sample_name *name, const char *image)
{
	struct op_sample_name plain = *name;
	struct opr_identity identity = opr_session_identity(session, &name->app, name->app.name);
	bool has_path = name->app.kind == OP_IMAGE_FILE && !opr_session_program(session, &name->app);
	char *app = has_path ? strndup(identity.path, identity.path_length) : NULL;
	struct op_text path = { 0 };

	plain.image.name = image;
	if (app)
		plain.app.name = app;
	op_mangle(&plain, &path);
	free(app);
	return op_text_steal(&path);
}

static int add_other_file(struct opr_image_cache *cache, const struct opr_session *session, const struct op_sample_name *name)
{
	struct opr_identity identity = opr_session_identity(session, &name->image, name->image.name);
	struct opr_other_file *other;

	if (name->image.kind != OP_IMAGE_FILE || !identity.told_apart)
		return 0;
	if (!op_grow(&cache->other_files, &cache->other_files_capacity, cache->nr_other_files + 1))
		return opr_no_memory();
	other = &cache->other_files[cache->nr_other_files++];
	*other = (struct opr_other_file){ .identity = identity, .image = strndup(identity.path, identity.path_length) };
	other->sample_file = other->image ? plain_path(session, name, other->image) : NULL;
	return other->sample_file ? 0 : opr_no_memory();
}

static int find_other_files(struct opr_image_cache *cache, const struct opr_profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_list *list = &profile->sessions[i].list;

		for (size_t j = 0; j < list->nr_files && !err; j++)
			err = add_other_file(cache, &profile->sessions[i], &list->files[j].name);
	}
	return err;
}

/* ---- the list ---- */

/* An application that is no image comes behind an image of its name. */
static int compare_to_keep(const void *left, const void *right)
{
	const struct opr_image *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->image_name == &opr_no_file) - (b->image_name == &opr_no_file);
}

/* An image that is in the list several times has the samples of all. */
static void keep_each_once(struct opr_image_cache *cache, size_t nr_images)
{
	size_t nr_kept = 0;

	if (nr_images)
		qsort(cache->images, nr_images, sizeof(*cache->images), compare_to_keep);
	for (size_t i = 0; i < nr_images; i++) {
		const struct opr_image *image = &cache->images[i];

		if (!nr_kept || strcmp(cache->images[nr_kept - 1].name, image->name) != 0) {
			cache->images[nr_kept++] = *image;
			continue;
		}
		cache->images[nr_kept - 1].nr_samples += image->nr_samples;
		cache->images[nr_kept - 1].is_wanted |= image->is_wanted;
	}
	cache->nr_images = nr_kept;
}

static int start(struct opr_image_cache *cache, struct opr_finder *finder, const struct opr_naming *naming, size_t nr_images)
{
	cache->finder = finder;
	cache->naming = naming;
	cache->names_end_ns = naming->time_ns ? op_now_ns() + naming->time_ns : 0;
	cache->images = calloc(nr_images + 1, sizeof(*cache->images));
	return cache->images ? 0 : opr_no_memory();
}

static int finish(struct opr_image_cache *cache, const struct opr_profile *profile, size_t nr_images)
{
	keep_each_once(cache, nr_images);
	for (size_t i = 0; i < cache->nr_images; i++) {
		struct opr_image *image = &cache->images[i];

		image->identity = opr_profile_identity(profile, image->image_name, image->name);
		cache->nr_samples += image->nr_samples;
	}
	return find_other_files(cache, profile);
}

int opr_image_cache_init_list(struct opr_image_cache *cache, const struct opr_profile *profile, struct opr_finder *finder,
			      const struct opr_naming *naming, const struct opr_named_image *list, size_t nr_list)
{
	int err = start(cache, finder, naming, nr_list);

	if (err)
		return err;
	for (size_t i = 0; i < nr_list; i++)
		cache->images[i] = (struct opr_image){ .name = list[i].name, .image_name = list[i].image_name, .is_wanted = true };
	return finish(cache, profile, nr_list);
}

static uint64_t count_samples(const struct opr_profile *profile, const struct opr_part *part)
{
	uint64_t nr_samples = 0;

	for (size_t i = 0; i < part->nr_files && !part->callee; i++)
		nr_samples += profile->files[part->first_file + i].total;
	return nr_samples;
}

int opr_image_cache_init(struct opr_image_cache *cache, const struct opr_profile *profile, struct opr_finder *finder,
			 const struct opr_naming *naming)
{
	size_t nr_images = 0;
	int err = start(cache, finder, naming, IMAGES_OF_PART * profile->nr_parts);

	if (err)
		return err;
	for (size_t i = 0; i < profile->nr_parts; i++) {
		const struct opr_part *part = &profile->parts[i];

		cache->images[nr_images++] = (struct opr_image){ .name = part->app, .image_name = part->app_name };
		cache->images[nr_images++] = (struct opr_image){ .name = part->image,
								 .image_name = part->image_name,
								 .nr_samples = count_samples(profile, part),
								 .is_wanted = true };
		if (part->callee)
			cache->images[nr_images++] =
				(struct opr_image){ .name = part->callee, .image_name = part->callee_name, .is_wanted = true };
	}
	return finish(cache, profile, nr_images);
}
