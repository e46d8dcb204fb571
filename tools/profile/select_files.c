/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/select_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/nearest.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"
#include "tools/profile/session_read.h"
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
 * The JIT object of a process makes all its anonymous regions one image. `below` is its path in the
 * session, which is freed; NULL: no memory. *ret_path stays NULL where there is none.
 */
static int find_jit_object(const struct opr_archive *archive, struct opr_session *session, char *below, char **ret_path)
{
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
	    find_jit_object(profile->archive, &profile->sessions[session], jit_object_path(sample_path, image->tgid), &object) < 0)
		return NULL;
	return object ? object : opr_session_image_name(profile, session, image);
}

char *opr_stack_image_name(struct opr_profile *profile, size_t session, const struct op_image_name *image)
{
	struct op_text below = { 0 };
	char *object = NULL;

	if (image->kind == OP_IMAGE_ANON) {
		op_mangle_jit_object(image, &below);
		if (find_jit_object(profile->archive, &profile->sessions[session], op_text_steal(&below), &object) < 0)
			return NULL;
	}
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
	const struct opr_session *session = &profile->sessions[file->session];
	const struct op_sample_name *name = file->name;
	struct op_image_name application;

	file->app = opr_session_image_name(profile, file->session, &name->app);
	if (opr_is_kernel_thread(session, &name->app))
		file->app_name = &opr_no_file;
	if (opr_session_program(session, &name->app)) {
		application = opr_session_application(session, &name->app);
		file->application = opr_session_image_name(profile, file->session, &application);
		if (!file->application)
			return opr_no_memory();
		file->app_name = &opr_no_file;
	}
	if (name->has_callee) {
		file->image = name_end_of_call(profile, file, &name->image);
		file->callee = name_end_of_call(profile, file, &name->callee);
	} else {
		file->image = name_image(profile, file->session, &name->image, file->path);
	}
	return file->app && file->image && (file->callee || !name->has_callee) ? 0 : opr_no_memory();
}

/* ---- the choice ---- */

static bool is_selected(const struct opr_file *file, const struct opr_query *query, const struct opr_spec *spec)
{
	const char *app = file->application ? file->application : file->app;
	bool is_dependent = strcmp(app, file->image) || (file->callee && strcmp(app, file->callee));

	return !(query->exclude_dependent && is_dependent) && opr_spec_match(spec, file->name) &&
	       opr_spec_match_images(spec, file->app, file->application, file->image);
}

/*
 * Replaces the names of a selected file where a report is of groups, or adds up what an image has
 * in all applications.
 */
static int merge_names(const struct opr_profile *profile, struct opr_file *file, const struct opr_query *query)
{
	char *app, *image = NULL;

	if (query->by != OPR_BY_NONE) {
		app = opr_group_of(profile, file, query->by);
		image = app && query->totals_only ? strdup(app) : NULL;
		file->is_group = query->totals_only;
		file->app_name = &opr_no_file;
	} else if (query->merge.merge.lib && strcmp(file->app, file->image)) {
		app = strdup(file->image);
		file->app_name = &file->name->image;
	} else {
		return 0;
	}
	free(file->app);
	file->app = app;
	if (file->is_group) {
		free(file->image);
		file->image = image;
	}
	return file->app && file->image ? 0 : opr_no_memory();
}

/* Keeps the selected files. */
static int keep_selected(struct opr_profile *profile, const struct opr_query *query, const struct opr_spec *spec)
{
	size_t nr_kept = 0;
	int err = 0;

	for (size_t i = 0; i < profile->nr_files; i++) {
		struct opr_file file = profile->files[i];
		struct opr_session *session = &profile->sessions[file.session];

		if (!err && is_selected(&file, query, spec)) {
			err = merge_names(profile, &file, query);
			profile->files[nr_kept++] = file;
		} else {
			session->nr_unselected += !file.name->has_callee;
			opr_file_free(&file);
		}
	}
	profile->nr_files = nr_kept;
	return err;
}

/* ---- words that name images ---- */

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The names of the images of all files, each once; the files own them. */
static int list_names(struct opr_image_names *names, const struct opr_profile *profile)
{
	size_t nr_kept = 0;

	names->names = calloc(3 * profile->nr_files + 1, sizeof(*names->names));
	if (!names->names)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_files; i++) {
		names->names[names->nr_names++] = profile->files[i].app;
		names->names[names->nr_names++] = profile->files[i].image;
		if (profile->files[i].application)
			names->names[names->nr_names++] = profile->files[i].application;
	}
	if (names->nr_names)
		qsort(names->names, names->nr_names, sizeof(*names->names), compare_names);
	for (size_t i = 0; i < names->nr_names; i++)
		if (!nr_kept || strcmp(names->names[nr_kept - 1], names->names[i]) != 0)
			names->names[nr_kept++] = names->names[i];
	names->nr_names = nr_kept;
	return 0;
}

static bool is_name(const struct opr_image_names *names, const char *word)
{
	char *words[] = { (char *)(uintptr_t)word };
	const struct opr_words one = { .words = words, .nr_words = 1 };

	for (size_t i = 0; i < names->nr_names; i++)
		if (opr_spec_match_name(&one, names->names[i]))
			return true;
	return false;
}

/* Whether the word is a file of the working directory that has samples. */
static bool is_here(const struct opr_image_names *names, const char *word)
{
	char *real = realpath(word, NULL);
	bool is_known = real && is_name(names, real);

	free(real);
	return is_known;
}

/* A pattern for all paths with that base name; '*' also matches slashes. NULL: no memory. */
static char *base_pattern(const char *word, bool is_literal)
{
	struct op_text pattern = { 0 };

	op_text_add(&pattern, "*/");
	for (; *word; word++) {
		if (is_literal && strchr("*?[]\\", *word))
			op_text_add_char(&pattern, '\\');
		op_text_add_char(&pattern, *word);
	}
	return op_text_steal(&pattern);
}

/* Adds a pattern of base names to the list of a word, if it matches (*ret_matches). */
static int take_base_name(struct opr_words *words, const struct opr_image_names *names, const char *word, bool *ret_matches)
{
	for (int is_literal = 1; is_literal >= 0; is_literal--) {
		char *pattern = base_pattern(word, is_literal);
		int err = pattern ? 0 : -ENOMEM;

		if (pattern && is_name(names, pattern)) {
			*ret_matches = true;
			err = opr_words_add(words, pattern);
		}
		free(pattern);
		if (err || *ret_matches)
			return err;
	}
	return 0;
}

static void suggest_name(const struct opr_image_names *names, const char *word, struct op_text *text)
{
	struct op_nearest nearest;

	op_nearest_init(&nearest, word);
	for (size_t i = 0; i < names->nr_names; i++)
		op_nearest_try(&nearest, strchr(word, '/') ? names->names[i] : opr_base_name(names->names[i]));
	op_nearest_add_hint(&nearest, "", text);
	if (!*nearest.best)
		opr_spec_suggest_tag(word, text);
}

/*
 * Gives the words of a list that are no names the meaning of base names. The hint is for the first
 * word without any.
 */
static int resolve_words(struct opr_words *words, const struct opr_image_names *names, bool may_be_base, struct op_text *ret_hint)
{
	size_t nr_words = words->nr_words;
	int err = 0;

	for (size_t i = 0; i < nr_words && !err; i++) {
		bool matches = is_name(names, words->words[i]);
		const char *word = words->words[i];

		if (!matches)
			matches = is_here(names, word);
		if (!matches && may_be_base && !strchr(word, '/'))
			err = take_base_name(words, names, word, &matches);
		/* a real path follows the word that it was made of */
		if (matches || err || ret_hint->length || (i && *word == '/' && *words->words[i - 1] != '/'))
			continue;
		op_text_printf(ret_hint, "no image matches %s", word);
		suggest_name(names, word, ret_hint);
	}
	return err ? opr_no_memory() : 0;
}

int opr_spec_resolve(struct opr_spec *spec, const struct opr_image_names *names, bool may_be_base, struct op_text *ret_hint)
{
	struct opr_words *const lists[] = { &spec->names, &spec->image, &spec->lib_image, &spec->image_exclude };
	int err = 0;

	for (size_t i = 0; i < op_array_size(lists) && !err; i++)
		err = resolve_words(lists[i], names, may_be_base, ret_hint);
	return err;
}

static int resolve_spec(const struct opr_profile *profile, struct opr_spec *spec, struct op_text *ret_hint)
{
	struct opr_image_names names = { 0 };
	int err;

	if (!opr_spec_has_images(spec))
		return 0;
	err = list_names(&names, profile);
	if (!err)
		err = opr_spec_resolve(spec, &names, opr_profile_is_ours(profile), ret_hint);
	free(names.names);
	return err;
}

/* ---- when nothing matches ---- */

static void suggest_event(const struct opr_profile *profile, const struct opr_words *events, struct op_text *text)
{
	for (size_t i = 0; i < events->nr_words && !text->length; i++) {
		struct op_nearest nearest;

		op_nearest_init(&nearest, events->words[i]);
		for (size_t j = 0; j < profile->nr_sessions; j++)
			for (size_t k = 0; k < profile->sessions[j].list.nr_files; k++)
				op_nearest_try(&nearest, profile->sessions[j].list.files[k].name.event);
		op_nearest_add_hint(&nearest, "event:", text);
	}
}

/* A word without a tag names an image, but the user may have meant an archive or a session. */
static int report_none_selected(const struct opr_profile *profile, const struct opr_spec *spec, const char *session_dir,
				const struct op_text *unmatched)
{
	const struct opr_words *names = &spec->names;
	struct op_text hint = { 0 };

	for (size_t i = 0; i < names->nr_words && !hint.length; i++)
		opr_hint_at_name(&hint, session_dir, names->words[i], false);
	if (!hint.length)
		suggest_event(profile, &spec->event, &hint);
	if (!hint.length)
		op_text_add(&hint, op_text_get(unmatched));
	opr_error(-ENOENT, "the profile specification selects no samples%s%s",
		  hint.length && *op_text_get(&hint) != ';' ? ": " : "", op_text_get(&hint));
	op_text_free(&hint);
	opr_losses_note_filtered(profile);
	return -ENOENT;
}

/* A part of a session lies in a directory of it. */
static bool is_in_window(const struct opr_profile *profile, size_t index, const char *path)
{
	struct op_text below = { 0 };
	bool is;

	if (!profile->sessions[index].window)
		return true;
	opr_session_path_below(profile, index, path, &below);
	is = opr_window_has(profile->sessions[index].window, op_text_get(&below));
	op_text_free(&below);
	return is;
}

/* Lists all files, with their names. */
static int list_files(struct opr_profile *profile, const struct opr_spec *spec)
{
	size_t nr_files = 0;
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_files += profile->sessions[i].list.nr_files;
	profile->files = calloc(nr_files, sizeof(*profile->files));
	if (!profile->files)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_list *list = &profile->sessions[i].list;

		for (size_t j = 0; j < list->nr_files && !err; j++) {
			const struct op_session_file *entry = &list->files[j];
			struct opr_file *file = &profile->files[profile->nr_files];

			if (entry->name.has_callee && !spec->arcs)
				continue;
			if (!is_in_window(profile, i, entry->path))
				continue;
			*file = (struct opr_file){
				.name = &entry->name, .path = entry->path, .session = i, .app_name = &entry->name.app
			};
			profile->nr_files++;
			err = make_names(profile, file);
		}
	}
	return err;
}

int opr_files_select(struct opr_profile *profile, const struct opr_query *query, struct opr_spec *spec, const char *session_dir)
{
	struct op_text unmatched = { 0 };
	int err;

	profile->merges_libs = query->merge.merge.lib;
	err = list_files(profile, spec);
	if (!err)
		err = resolve_spec(profile, spec, &unmatched);
	if (!err)
		err = keep_selected(profile, query, spec);
	if (err || query->optional)
		goto out;
	if (!profile->nr_files)
		err = report_none_selected(profile, spec, session_dir, &unmatched);
	else if (unmatched.length)
		opr_warn("%s", op_text_get(&unmatched));
out:
	op_text_free(&unmatched);
	return err ? err : opr_groups_check(profile, query->by);
}
