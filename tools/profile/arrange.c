/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/arrange.h"

#include <errno.h>

#include "tools/common/log.h"

static int compare_numbers(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

/* A file of a process may have the same name as a part of the kernel: {root}/ext4, {kern}/ext4. */
static int compare_kinds(const struct op_image_name *a, const struct op_image_name *b)
{
	return compare_numbers(a->kind == OP_IMAGE_KERNEL, b->kind == OP_IMAGE_KERNEL);
}

static int compare_parts(const struct opr_file *a, const struct opr_file *b)
{
	int order = strcmp(a->app, b->app);

	if (!order)
		order = strcmp(a->image, b->image);
	if (!order)
		order = strcmp(a->callee ? a->callee : "", b->callee ? b->callee : "");
	if (!order && !a->is_cgroup)
		order = compare_kinds(&a->name->image, &b->name->image);
	return order || a->is_cgroup ? order : compare_kinds(&a->name->callee, &b->name->callee);
}

static int compare_files(const void *left, const void *right)
{
	const struct opr_file *a = left, *b = right;
	int order = compare_parts(a, b);

	if (!order)
		order = compare_numbers(a->class_index, b->class_index);
	if (!order)
		order = strcmp(a->path, b->path);
	return order ? order : compare_numbers(a->session, b->session);
}

/*
 * Refuses the same file in two sessions: counts of two sessions are added up only when the user
 * asks for it.
 */
static int check_sessions(const struct opr_profile *profile)
{
	for (size_t i = 1; i < profile->nr_files; i++) {
		const struct opr_file *a = &profile->files[i - 1], *b = &profile->files[i];

		if (profile->sessions[a->session].parent == profile->sessions[b->session].parent)
			continue; /* cgroups of one session */
		if (!compare_parts(a, b) && a->class_index == b->class_index && !strcmp(a->path, b->path))
			return opr_error(-EINVAL,
					 "sample file parsed twice ? %s/%s and %s/%s (choose one of these sessions; opreport "
					 "--merge=lib adds them up, oparchive takes one after the other into a directory)",
					 profile->sessions[a->session].path, a->path, profile->sessions[b->session].path,
					 b->path);
	}
	return 0;
}

int opr_profile_arrange(struct opr_profile *profile, bool add_sessions)
{
	struct opr_part *part = NULL;
	int err;

	qsort(profile->files, profile->nr_files, sizeof(*profile->files), compare_files);
	err = add_sessions ? 0 : check_sessions(profile);
	if (err < 0)
		return err;
	profile->parts = calloc(profile->nr_files, sizeof(*profile->parts));
	if (!profile->parts)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];

		if (!part || compare_parts(&profile->files[part->first_file], file)) {
			part = &profile->parts[profile->nr_parts++];
			*part = (struct opr_part){ .app = file->app,
						   .image = file->image,
						   .app_name = file->app_name,
						   .image_name = &file->name->image,
						   .callee = file->callee,
						   .callee_name = &file->name->callee,
						   .first_file = i };
		}
		part->nr_files++;
	}
	opr_verbose(OPR_TOPIC_stats, "%zu sample files, %zu images of applications", profile->nr_files, profile->nr_parts);
	return 0;
}
