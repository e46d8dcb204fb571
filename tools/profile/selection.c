/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/selection.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/common/when.h"
#include "tools/profile/archive_sums.h"
#include "tools/profile/archives.h"
#include "tools/profile/profile.h"
#include "tools/profile/losses.h"
#include "tools/profile/open_sessions.h"
#include "tools/profile/read_samples.h"
#include "tools/profile/select_files.h"
#include "tools/profile/session_span.h"

#define NS_PER_US 1000u

/* ---- step 1, select ---- */

static int open_archives(struct opr_selection *selection)
{
	int err = opr_archives_open(&selection->archives, &selection->spec.archive);

	if (err)
		return err;
	selection->finder.archive = selection->profile.archive = selection->archives;
	selection->session_dir = strdup(selection->archives->sessions_dir);
	return selection->session_dir ? 0 : opr_no_memory();
}

/* The memory view is by image and sampler only. */
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
			return opr_error(-EINVAL, "--mem sums all events, processes, CPUs and cgroups: leave out %s",
					 others[i].tag);
	return 0;
}

static int parse_words(struct opr_selection *selection, const struct opr_words *words)
{
	struct opr_spec *spec = &selection->spec;
	int err = opr_spec_parse(spec, (const char *const *)words->words, words->nr_words);

	spec->by_cgroup = selection->query->by == OPR_BY_CGROUP && !selection->query->sessions_only;
	spec->optional = selection->query->optional;
	spec->or_stacks = selection->query->or_stacks;
	spec->arcs = selection->query->callgraph;
	spec->memory = selection->query->memory;
	return err ? err : check_memory(spec);
}

static uint64_t ns_of_us(uint64_t us)
{
	return us > UINT64_MAX / NS_PER_US ? UINT64_MAX : us * NS_PER_US;
}

/*
 * A span of time replaces the current session by those of that time; several archives have
 * sessions each.
 */
static int choose_sessions(struct opr_selection *selection)
{
	struct opr_spec *spec = &selection->spec;
	bool has_several = selection->archives && selection->archives->next;
	struct opr_span span;
	int err = opr_span_parse(&span, &selection->query->span);

	span.is_told = selection->query->optional;
	spec->add_sessions |= has_several;
	if (!err && !span.is_given && has_several)
		return opr_archives_name_sessions(selection->archives, spec);
	if (err || !span.is_given)
		return err;
	if (spec->sessions_given)
		return opr_error(-EINVAL, "session: and a span of time both choose sessions: use only one of them");
	if (!selection->query->whole_sessions) {
		selection->profile.since_ns = ns_of_us(span.since_us);
		selection->profile.until_ns = ns_of_us(span.until_us);
	}
	spec->add_sessions = true;
	opr_words_free(&spec->sessions);
	err = has_several ? opr_archives_span(selection->archives, &span, spec, &selection->profile.session_fds) :
			    opr_span_find(&span, selection->session_dir, &spec->session_exclude, &spec->sessions,
					  &selection->profile.session_fds);
	if (!err)
		selection->profile.nr_session_fds = spec->sessions.nr_words;
	return err;
}

/* Says which time a chosen span of time has become, and in which grain it is kept. */
static int report_span(const struct opr_selection *selection)
{
	const struct opr_profile *profile = &selection->profile;
	struct opr_recorded recorded;
	struct op_text text = { 0 };
	char begin[OPR_WHEN_BYTES], end[OPR_WHEN_BYTES];
	size_t nr_blocks = 0, nr_windows = 0;
	uint64_t grain_ns = 0;
	int err;

	if (!profile->nr_session_fds || selection->query->optional)
		return 0;
	err = opr_recorded_make(&recorded, profile);
	for (size_t i = 0; i < profile->nr_sessions && !err; i++) {
		const struct opr_session *session = &profile->sessions[i];
		const struct opr_window_span *span = session->window ? opr_window_span(session->window) : NULL;

		if (session->parent != i || !span)
			continue;
		nr_windows++;
		nr_blocks += span->nr_blocks;
		grain_ns = op_max_u64(grain_ns, span->grain_ns);
	}
	if (!err && nr_windows && nr_windows == recorded.nr_sessions && !nr_blocks)
		err = opr_error(-ENOENT, "nothing is kept of that time: opcontrol --history lists what is");
	if (!err) {
		opr_when_format(recorded.begin_ns / NS_PER_US, begin);
		opr_when_format(recorded.end_ns / NS_PER_US, end);
		op_text_printf(&text, "Using %zu %s, from %s to %s", recorded.nr_sessions,
			       recorded.nr_sessions == 1 ? "session" : "sessions", begin, end);
		if (grain_ns) {
			op_text_add(&text, ", kept in grains of ");
			opr_add_span(&text, grain_ns);
		}
		fprintf(stderr, "%s.\n", op_text_get(&text));
		if (grain_ns && (selection->query->details || selection->query->inlined))
			opr_warn("positions in a function are not kept by time: its samples stand at its begin");
	}
	op_text_free(&text);
	opr_recorded_free(&recorded);
	return err;
}

/* Whatever cgroups are selected, which would be opened in place of their sessions. */
static int open_whole_sessions(struct opr_selection *selection)
{
	struct opr_words cgroup = selection->spec.cgroup;
	int err;

	selection->spec.cgroup = (struct opr_words){ 0 };
	err = opr_sessions_open(&selection->profile, selection->session_dir, &selection->spec);
	selection->spec.cgroup = cgroup;
	return err;
}

/*
 * A session and each of its cgroups keep their directories open. There may be thousands, and a
 * user's soft limit is often 1,024.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		opr_verbose(OPR_TOPIC_level1, "the limit of open files stays: %s", strerror(errno));
}

int opr_selection_open(struct opr_selection *selection, const struct opr_query *query, const struct opr_words *words)
{
	int err;

	raise_descriptor_limit();
	selection->query = query;
	selection->profile.earlier = query->earlier;
	err = parse_words(selection, words);
	if (err)
		return err;
	err = selection->spec.archive.nr_words ? open_archives(selection)
					       : opr_session_dir_choose(query->session_dir, &selection->session_dir);
	if (err)
		return err;
	err = opr_finder_init(&selection->finder, query->naming.root, &query->naming.image_path);
	if (err)
		return err;
	err = choose_sessions(selection);
	if (err)
		return err;
	opr_verbose(OPR_TOPIC_level1, "looking for sample files in %s", selection->session_dir);
	if (query->sessions_only) {
		err = open_whole_sessions(selection);
		return err ? err : report_span(selection);
	}
	err = opr_sessions_open(&selection->profile, selection->session_dir, &selection->spec);
	if (err)
		return err;
	err = report_span(selection);
	return err ? err : opr_files_select(&selection->profile, query, &selection->spec, selection->session_dir);
}

/* ---- step 2, read ---- */

/*
 * A file of an archive by its path in the archive. NULL: the session is not in the archive, or no
 * memory.
 */
static char *name_in_archive(const struct opr_archive *archive, const char *session_dir, const char *path)
{
	char *name = NULL;

	if (opr_archive_of(archive, session_dir) != archive)
		return NULL;
	return asprintf(&name, "%s/%s", opr_archive_strip(archive, session_dir) + 1, path) < 0 ? NULL : name;
}

/* How many files have no checksum, and the name of one of them. */
static size_t count_without_sum(const struct opr_profile *profile, const struct opr_archive *archive, const struct opr_sums *sums,
				char **ret_example)
{
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
		name = session_dir ? name_in_archive(archive, session_dir, file->path) : NULL;
		if (name && !opr_sums_find(sums, name) && !nr_files++)
			*ret_example = name;
		else
			free(name);
	}
	free(session_dir);
	return nr_files;
}

/*
 * Warns of files without a checksum: oparchive did not write them, or was interrupted. Archives of
 * the genuine tool have neither checksums nor a description, and get no warning.
 */
static void check_sums(const struct opr_profile *profile, const struct opr_archive *archive)
{
	const char *dir = archive->dir;
	int fd = open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct opr_sums sums = { 0 };
	int err = fd < 0 ? -errno : opr_sums_read(&sums, fd);
	char *example = NULL;
	size_t nr_files = err ? 0 : count_without_sum(profile, archive, &sums, &example);

	if (err && (err != -ENOENT || archive->origin_dir))
		opr_warn("%s/" OPR_ARCHIVE_SUMS ": %s: whether the sample files are those that were archived is not known", dir,
			 strerror(-err));
	if (nr_files)
		opr_warn("%zu of the sample files in %s, for example %s, have no checksum: oparchive did not write them, or was "
			 "interrupted. They are counted; oparchive --check=%s lists them",
			 nr_files, dir, example, dir);
	free(example);
	opr_sums_free(&sums);
	if (fd >= 0)
		close(fd);
}

/*
 * A session of opd that is separated by thread is added up unless the user asks for threads; a
 * session of the genuine tools is shown as they do.
 */
static struct opr_may_merge may_merge(const struct opr_selection *selection)
{
	const struct opr_spec *spec = &selection->spec;
	bool may = opr_profile_is_ours(&selection->profile) && !selection->query->merge.merge.is_chosen;

	return (struct opr_may_merge){ .threads = may && !spec->tid.nr_words,
				       .cpus = may && !spec->cpu.nr_words,
				       .chose_processes = may && spec->tgid.nr_words,
				       .chose_threads = may && spec->tid.nr_words };
}

int opr_selection_read(struct opr_selection *selection)
{
	const struct opr_merge *merge = &selection->query->merge.merge;
	struct opr_profile *profile = &selection->profile;
	int err;

	if (selection->query->sessions_only)
		return opr_recorded_make(&selection->recorded, profile);
	profile->totals_only = selection->query->totals_only;
	selection->classes.any_axes = selection->query->any_axes;
	selection->classes.may = may_merge(selection);
	err = opr_samples_read(profile);
	if (err)
		return err;
	for (const struct opr_archive *archive = selection->archives; archive; archive = archive->next)
		check_sums(profile, archive);
	err = opr_archives_check(profile);
	if (err)
		return err;
	err = opr_classes_find(&selection->classes, profile, merge);
	if (err)
		return err;
	opr_losses_check(profile);
	if (profile->earlier)
		opr_profile_drop_empty(profile);
	err = opr_profile_arrange(profile, merge->lib || selection->spec.add_sessions);
	return err ? err : opr_recorded_make(&selection->recorded, profile);
}

void opr_selection_free(struct opr_selection *selection)
{
	if (!selection)
		return;
	opr_recorded_free(&selection->recorded);
	opr_classes_free(&selection->classes);
	opr_profile_free(&selection->profile);
	opr_finder_free(&selection->finder);
	opr_spec_free(&selection->spec);
	opr_archives_free(selection->archives);
	free(selection->session_dir);
}
