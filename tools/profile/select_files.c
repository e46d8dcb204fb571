/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/select_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "tools/common/log.h"
#include "tools/profile/image_name.h"
#include "tools/profile/losses.h"
#include "tools/profile/session_hint.h"

/* ---- names ---- */

/*
 * ".../{anon:LABEL}/TGID.START.END/EVENT" to ".../{anon:LABEL}/TGID.jo", below the session. NULL:
 * no memory.
 */
static char *jit_object_path(const char *sample_path, int32_t tgid)
{
	struct op_text path = { 0 };

	op_text_add(&path, sample_path);
	for (int i = 0; i < 2 && !path.failed; i++) {
		const char *slash = strrchr(path.data, '/');

		op_text_truncate(&path, slash ? (size_t)(slash - path.data) : 0);
	}
	op_text_printf(&path, "/%" PRId32 ".jo", tgid);
	return op_text_steal(&path);
}

/*
 * The real path of a session; of an archived session the real path that it had on its host. The
 * descriptor is asked because the session may have been renamed. NULL: not found, or no memory.
 */
static char *find_real_path(const struct opr_archive *archive, int dir_fd)
{
	char path[32], *real, *home;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	real = realpath(path, NULL);
	home = real ? opr_archive_to_home(archive, real) : NULL;
	free(real);
	return home;
}

/*
 * The JIT object of a process makes all its anonymous regions one image. *ret_path stays NULL where
 * there is none.
 */
static int find_jit_object(const struct opr_archive *archive, struct opr_session *session, const char *sample_path, int32_t tgid,
			   char **ret_path)
{
	char *below = jit_object_path(sample_path, tgid);
	struct op_text path = { 0 };
	int err = below ? 0 : -ENOMEM;

	if (!err && !faccessat(session->dir_fd, below, F_OK, 0)) {
		if (!session->real_path)
			session->real_path = find_real_path(archive, session->dir_fd);
		op_text_printf(&path, "%s/%s", session->real_path ? session->real_path : session->path, below);
		*ret_path = op_text_steal(&path);
		err = *ret_path ? 0 : -ENOMEM;
	}
	free(below);
	return err;
}

/* The name of an image with samples at `sample_path`. NULL: no memory. */
static char *name_image(struct opr_profile *profile, size_t session, const struct op_image_name *image, const char *sample_path)
{
	char *object = NULL;

	if (image->kind == OP_IMAGE_ANON &&
	    find_jit_object(profile->archive, &profile->sessions[session], sample_path, image->tgid, &object) < 0)
		return NULL;
	return object ? object : opr_session_image_name(profile, session, image);
}

/*
 * The name of the caller's or the callee's image of a callgraph file. Its JIT object is beside the
 * samples of that image, not beside the callgraph file. NULL: no memory.
 */
static char *name_end_of_call(struct opr_profile *profile, const struct opr_file *file, const struct op_image_name *image)
{
	struct op_sample_name samples = *file->name;
	struct op_text path = { 0 };
	char *name = NULL;

	samples.image = *image;
	samples.has_callee = false;
	op_mangle(&samples, &path);
	if (!path.failed)
		name = name_image(profile, file->session, image, path.data);
	op_text_free(&path);
	return name;
}

/* Sets app, image and callee of a file. 0 or -ENOMEM. */
static int make_names(struct opr_profile *profile, struct opr_file *file)
{
	const struct op_sample_name *name = file->name;

	file->app = opr_session_image_name(profile, file->session, &name->app);
	if (name->has_callee) {
		file->image = name_end_of_call(profile, file, &name->image);
		file->callee = name_end_of_call(profile, file, &name->callee);
	} else {
		file->image = name_image(profile, file->session, &name->image, file->path);
	}
	return file->app && file->image && (file->callee || !name->has_callee) ? 0 : opr_no_memory();
}

/* ---- the choice ---- */

static bool is_selected(const struct opr_file *file, const struct opr_file_choice *choice)
{
	bool is_dependent = strcmp(file->app, file->image) || (file->callee && strcmp(file->app, file->callee));

	return !(choice->exclude_dependent && is_dependent) && opr_spec_match(choice->spec, file->name, file->app, file->image);
}

/*
 * Replaces the names of a selected file where a report is of cgroups, or adds up what an image has
 * in all applications.
 */
static int merge_names(struct opr_file *file, const struct opr_file_choice *choice, const char *cgroup)
{
	char *app, *image = NULL;

	if (choice->spec->by_cgroup) {
		app = strdup(cgroup);
		image = strdup(cgroup);
		file->is_cgroup = true;
	} else if (choice->merge->lib && strcmp(file->app, file->image)) {
		app = strdup(file->image);
		file->app_name = &file->name->image;
	} else {
		return 0;
	}
	free(file->app);
	file->app = app;
	if (file->is_cgroup) {
		free(file->image);
		file->image = image;
	}
	return file->app && file->image ? 0 : opr_no_memory();
}

static int select_file(struct opr_profile *profile, size_t session, const struct op_session_file *entry,
		       const struct opr_file_choice *choice)
{
	struct opr_file *file = &profile->files[profile->nr_files++];
	int err;

	*file = (struct opr_file){ .name = &entry->name, .path = entry->path, .session = session, .app_name = &entry->name.app };
	err = make_names(profile, file);
	if (err)
		return err;
	if (is_selected(file, choice))
		return merge_names(file, choice, profile->sessions[session].cgroup);
	profile->sessions[session].nr_unselected += !entry->name.has_callee;
	opr_file_free(file);
	profile->nr_files--;
	return 0;
}

/* A word without a tag names an image, but the user may have meant an archive or a session. */
static int report_none_selected(const struct opr_profile *profile, const struct opr_file_choice *choice, const char *session_dir)
{
	const struct opr_words *names = &choice->spec->names;
	struct op_text hint = { 0 };

	for (size_t i = 0; i < names->nr_words && !hint.length; i++)
		opr_hint_at_name(&hint, session_dir, names->words[i], false);
	opr_error(-ENOENT, "error: no sample files found: profile specification too strict ?%s%s", hint.length ? " " : "",
		  op_text_get(&hint));
	op_text_free(&hint);
	opr_losses_note_filtered(profile);
	return -ENOENT;
}

int opr_files_select(struct opr_profile *profile, const struct opr_file_choice *choice, const char *session_dir)
{
	size_t nr_files = 0;
	int err = 0;

	profile->merges_libs = choice->merge->lib;
	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_files += profile->sessions[i].list.nr_files;
	profile->files = calloc(nr_files, sizeof(*profile->files));
	if (!profile->files)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_list *list = &profile->sessions[i].list;

		for (size_t j = 0; j < list->nr_files && !err; j++)
			if (!list->files[j].name.has_callee || choice->spec->arcs)
				err = select_file(profile, i, &list->files[j], choice);
	}
	return !err && !profile->nr_files ? report_none_selected(profile, choice, session_dir) : err;
}
