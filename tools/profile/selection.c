/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/selection.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/profile/archive_sums.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/profile/session_span.h"
#include "tools/profile/losses.h"

static int open_archive(struct opr_selection *selection)
{
	int err = opr_archive_open(&selection->archive, selection->spec.archive.words[0]);

	if (err)
		return err;
	selection->finder.archive = selection->profile.archive = &selection->archive;
	selection->session_dir = strdup(selection->archive.kept);
	return selection->session_dir ? 0 : opr_no_memory();
}

/* Below the archive. NULL: the session is not in it, or no memory. */
static char *archived_name(const struct opr_archive *archive, const char *session_dir, const char *path)
{
	const char *below = opr_archive_strip(archive, session_dir);
	char *name = NULL;

	return below == session_dir || asprintf(&name, "%s/%s", below + 1, path) < 0 ? NULL : name;
}

static size_t count_unsummed(const struct opr_selection *selection, const struct opr_sums *sums, char **ret_example)
{
	const struct opr_profile *profile = &selection->profile;
	char *session_dir = NULL;
	size_t nr_files = 0, session = SIZE_MAX;

	for (size_t i = 0; i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];
		char *name;

		if (file->session != session) {
			session = file->session;
			free(session_dir);
			session_dir = realpath(profile->sessions[session].path, NULL);
		}
		name = session_dir ? archived_name(&selection->archive, session_dir, file->path) : NULL;
		if (name && !opr_sums_find(sums, name) && !nr_files++)
			*ret_example = name;
		else
			free(name);
	}
	free(session_dir);
	return nr_files;
}

/* Of files that nobody archived, or not to the end. What the genuine tool made has no checksums, and says nothing of itself. */
static void check_sums(const struct opr_selection *selection)
{
	const char *dir = selection->archive.dir;
	int fd = open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct opr_sums sums = { 0 };
	int err = fd < 0 ? -errno : opr_sums_read(&sums, fd);
	char *example = NULL;
	size_t nr_files = err ? 0 : count_unsummed(selection, &sums, &example);

	if (err && (err != -ENOENT || selection->archive.home))
		opr_warn("%s/" OPR_ARCHIVE_SUMS ": %s: whether the sample files are those that were archived is not known", dir,
			 strerror(-err));
	if (nr_files)
		opr_warn("%zu of the sample files in %s, as %s, have no checksum: they were not archived, or not to the end, and "
			 "are counted all the same: oparchive --check=%s names them",
			 nr_files, dir, example, dir);
	free(example);
	opr_sums_free(&sums);
	if (fd >= 0)
		close(fd);
}

/* The sessions of a span take the place of the current one. */
static int choose_sessions(struct opr_selection *selection, const struct opr_selection_options *options)
{
	struct opr_spec *spec = &selection->spec;
	struct opr_span span;
	int err = opr_span_parse(&span, options->since, options->until);

	if (err || !opr_span_is_given(&span))
		return err;
	if (spec->sessions_given)
		return opr_error(-EINVAL, "session: and --since or --until do not go together: either names the sessions");
	spec->add_sessions = true;
	opr_words_free(&spec->sessions);
	err = opr_span_find(&span, selection->session_dir, &spec->session_exclude, &spec->sessions, &selection->profile.held_fds);
	if (!err)
		selection->profile.nr_held = spec->sessions.nr_words;
	return err;
}

static int arrange(struct opr_selection *selection, const struct opr_merge *merge)
{
	int err = opr_classes_find(&selection->classes, &selection->profile, merge);

	if (!err)
		err = opr_profile_arrange(&selection->profile, merge);
	if (!err)
		opr_session_stats_check(&selection->profile);
	return err;
}

/* The memory view keeps images and samplers apart, and nothing else. */
static int check_memory(const struct opr_spec *spec)
{
	const struct {
		const char *tag;
		const struct opr_words *words;
	} others[] = {
		{ "event:", &spec->event }, { "tgid:", &spec->tgid },	  { "tid:", &spec->tid },
		{ "cpu:", &spec->cpu },	    { "cgroup:", &spec->cgroup },
	};

	for (size_t i = 0; spec->memory && i < op_array_size(others); i++)
		if (others[i].words->nr_words)
			return opr_error(-EINVAL, "--mem adds up all events, processes, CPUs and cgroups: leave out %s",
					 others[i].tag);
	return 0;
}

int opr_selection_open(struct opr_selection *selection, const struct opr_selection_options *options, const struct opr_words *words)
{
	struct opr_spec *spec = &selection->spec;
	int err = opr_spec_parse(spec, (const char *const *)words->words, words->nr_words);

	spec->by_cgroup = options->cgroups;
	spec->arcs = options->callgraph;
	spec->memory = options->memory;
	selection->classes.any_axes = options->any_axes;
	selection->profile.totals_only = options->totals_only;
	if (!err)
		err = check_memory(spec);
	if (!err)
		err = spec->archive.nr_words ? open_archive(selection) :
					       opr_session_dir_choose(options->session_dir, &selection->session_dir);
	if (!err)
		err = opr_finder_init(&selection->finder, options->root, options->image_path);
	if (!err)
		err = choose_sessions(selection, options);
	if (!err)
		opr_verbose(OPR_TOPIC_level1, "looking for sample files in %s", selection->session_dir);
	if (!err)
		err = opr_profile_open(&selection->profile, selection->session_dir, spec, &options->merge,
				       options->exclude_dependent);
	if (!err && spec->archive.nr_words)
		check_sums(selection);
	return err ? err : arrange(selection, &options->merge);
}

void opr_selection_free(struct opr_selection *selection)
{
	if (!selection)
		return;
	opr_classes_free(&selection->classes);
	opr_profile_free(&selection->profile);
	opr_finder_free(&selection->finder);
	opr_spec_free(&selection->spec);
	opr_archive_free(&selection->archive);
	free(selection->session_dir);
}
