/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/profile.h"

#include <errno.h>
#include <unistd.h>

#include "libop/process/guard.h"
#include "tools/common/log.h"

const struct op_image_name opr_no_file = { .kind = OP_IMAGE_KERNEL, .name = "no-process" };

size_t opr_profile_nr_left_out(const struct opr_profile *profile)
{
	size_t nr_left_out = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_left_out += profile->sessions[i].bad_paths.nr_words + profile->sessions[i].damaged.nr_words;
	return nr_left_out;
}

int opr_profile_end(const struct opr_profile *profile)
{
	size_t nr_left_out = opr_profile_nr_left_out(profile);

	if (op_guard_nr_broken())
		return opr_error(-EIO, "stored symbols were lost while they were shown, names may be missing: run it again");
	if (!nr_left_out)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out (see the warnings): the report is incomplete", nr_left_out,
			 nr_left_out == 1 ? "file or directory was" : "files and directories were");
}

bool opr_profile_is_ours(const struct opr_profile *profile)
{
	for (size_t i = 0; i < profile->nr_sessions; i++)
		if (profile->sessions[i].has_ledger || profile->sessions[i].images)
			return true;
	return false;
}

void opr_file_free(struct opr_file *file)
{
	free(file->app);
	free(file->image);
	free(file->application);
	free(file->callee);
	op_odb_samples_free(&file->kept);
}

void opr_profile_drop_empty(struct opr_profile *profile)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < profile->nr_files; i++) {
		if (profile->files[i].total)
			profile->files[nr_kept++] = profile->files[i];
		else
			opr_file_free(&profile->files[i]);
	}
	profile->nr_files = nr_kept;
}

static void free_session(struct opr_session *session, bool is_parent)
{
	if (session->dir_fd >= 0)
		close(session->dir_fd);
	op_session_list_free(&session->list);
	op_session_ledger_free(&session->ledger);
	opr_words_free(&session->bad_paths);
	opr_words_free(&session->damaged);
	if (is_parent) {
		opr_window_free(session->window);
		op_dcookie_table_free(session->images);
	}
	free(session->path);
	free(session->real_path);
	free(session->cgroup);
}

void opr_profile_free(struct opr_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->nr_files; i++)
		opr_file_free(&profile->files[i]);
	for (size_t i = 0; i < profile->nr_sessions; i++)
		free_session(&profile->sessions[i], profile->sessions[i].parent == i);
	for (size_t i = 0; i < profile->nr_session_fds; i++)
		if (profile->session_fds[i] >= 0)
			close(profile->session_fds[i]);
	free(profile->session_fds);
	free(profile->files);
	free(profile->parts);
	free(profile->sessions);
	*profile = (struct opr_profile){ 0 };
}

/* ---- order and parts ---- */

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
	if (!order && !a->is_group)
		order = compare_kinds(&a->name->image, &b->name->image);
	return order || a->is_group ? order : compare_kinds(&a->name->callee, &b->name->callee);
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

	if (profile->nr_files)
		qsort(profile->files, profile->nr_files, sizeof(*profile->files), compare_files);
	err = add_sessions ? 0 : check_sessions(profile);
	if (err < 0)
		return err;
	profile->parts = calloc(profile->nr_files + 1, sizeof(*profile->parts));
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
