/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images that only stacks, or other records of a session, name: callers in which no sample is. */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/base/grow.h"
#include "libop/session/dcookie.h"
#include "libop/session/parts.h"
#include "tools/common/log.h"
#include "tools/profile/image_list.h"
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

struct cookies {
	uint64_t *values;
	size_t nr, capacity;
	bool failed; /* no memory */
};

static void add_cookie(uint64_t cookie, void *arg)
{
	struct cookies *cookies = arg;

	if (op_grow(&cookies->values, &cookies->capacity, cookies->nr + 1))
		cookies->values[cookies->nr++] = cookie;
	else
		cookies->failed = true;
}

/* The images that the records of a session name, each once. */
static int read_cookies(int dir_fd, struct cookies *cookies)
{
	struct op_part_reading reading = { .see_image = add_cookie, .arg = cookies };
	size_t nr_kept = 0;

	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		if (part->read && part->read(dir_fd, part->name, &reading) == -ENOMEM)
			cookies->failed = true;
	if (cookies->failed)
		return opr_no_memory();
	if (cookies->nr)
		qsort(cookies->values, cookies->nr, sizeof(*cookies->values), compare_cookies);
	for (size_t i = 0; i < cookies->nr; i++)
		if (!nr_kept || cookies->values[nr_kept - 1] != cookies->values[i])
			cookies->values[nr_kept++] = cookies->values[i];
	cookies->nr = nr_kept;
	return 0;
}

static bool is_of_profile(const struct opr_image_cache *images, const char *name)
{
	size_t nr = op_nr_leading(images->images, images->nr_images, image, strcmp(image->name, name) <= 0);

	return nr && !strcmp(images->images[nr - 1].name, name);
}

static int add_row(const struct opa_run *run, struct found *found, size_t session, const struct op_dcookie_row *row)
{
	struct named named = { .image_name = op_dcookie_name(row) };

	named.name = opr_session_image_name(&run->report.selection.profile, session, &named.image_name);
	if (!named.name)
		return opr_no_memory();
	if (is_of_profile(&run->report.images, named.name)) {
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
	const struct opr_session *from = &run->report.selection.profile.sessions[session];
	struct cookies cookies = { 0 };
	int err = from->images ? read_cookies(from->dir_fd, &cookies) : 0;

	for (size_t i = 0; i < cookies.nr && !err; i++)
		if (op_dcookie_has(from->images, cookies.values[i]) && op_dcookie_row(from->images, cookies.values[i])->name)
			err = add_row(run, found, session, op_dcookie_row(from->images, cookies.values[i]));
	free(cookies.values);
	return err;
}

/* As the images of the profile. */
static int add_found(struct opa_run *run, const struct found *found)
{
	struct opr_named_image *list = calloc(found->nr_images, sizeof(*list));
	struct opr_image_cache of_profile = run->report.images;
	int err;

	if (!list)
		return opr_no_memory();
	for (size_t i = 0; i < found->nr_images; i++)
		list[i] = (struct opr_named_image){ found->images[i].name, &found->images[i].image_name };
	run->report.images = (struct opr_image_cache){ 0 };
	err = opr_image_cache_init_list(&run->report.images, &run->report.selection.profile, &run->report.selection.finder,
					&run->options->query.naming, list, found->nr_images);
	if (!err)
		err = opa_add_images(run);
	if (!err && run->options->output_dir)
		err = opa_note_packages(run);
	opr_image_cache_free(&run->report.images);
	run->report.images = of_profile;
	free(list);
	return err;
}

int opa_add_stack_images(struct opa_run *run)
{
	const struct opr_profile *profile = &run->report.selection.profile;
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
