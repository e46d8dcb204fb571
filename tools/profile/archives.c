/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/archives.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "tools/common/log.h"
#include "tools/events/cpu_types.h"
#include "tools/profile/session_hint.h"

/* Whether an archive before it in the list is the same directory. */
static bool is_known(const struct opr_archive *archives, const struct opr_archive *archive)
{
	while (archives != archive && strcmp(archives->dir, archive->dir) != 0)
		archives = archives->next;
	return archives != archive;
}

int opr_archives_open(struct opr_archive **ret_archives, const struct opr_words *dirs)
{
	struct opr_archive **next = ret_archives, *archive;
	int err = 0;

	*ret_archives = NULL;
	for (size_t i = 0; i < dirs->nr_words && !err; i++) {
		*next = archive = calloc(1, sizeof(*archive));
		err = archive ? opr_archive_open(archive, dirs->words[i]) : opr_no_memory();
		if (err || !is_known(*ret_archives, archive)) {
			next = archive ? &archive->next : next;
			continue;
		}
		opr_warn("archive:%s is named twice: its samples are counted once", archive->dir);
		opr_archives_free(archive);
		*next = NULL;
	}
	return err;
}

void opr_archives_free(struct opr_archive *archives)
{
	struct opr_archive *next;

	for (; archives; archives = next) {
		next = archives->next;
		opr_archive_free(archives);
		free(archives);
	}
}

/* ---- sessions ---- */

/* Replaces the name of a session. */
static int make_path(const struct opr_archive *archive, char **name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/samples/%s", archive->sessions_dir, *name) < 0)
		return opr_no_memory();
	free(*name);
	*name = path;
	return 0;
}

/* Adds the path of a session if the archive has it. */
static int add_session(const struct opr_archive *archive, const char *name, struct opr_words *paths)
{
	char *path = strdup(name);
	int err = path ? make_path(archive, &path) : opr_no_memory();

	if (!err && !access(path, F_OK) && opr_words_add(paths, path) < 0)
		err = opr_no_memory();
	free(path);
	return err;
}

static int report_none(const struct opr_archive *archive, const char *name)
{
	struct op_text hint = { 0 };

	opr_hint_at_sessions(&hint, archive->sessions_dir, name);
	opr_error(-ENOENT, "archive:%s has none of the summed sessions, for example %s.%s", archive->dir, name, op_text_get(&hint));
	op_text_free(&hint);
	return -ENOENT;
}

/* Whether a path of the list ends with the name. */
static bool has_session(const struct opr_words *paths, const char *name)
{
	for (size_t i = 0; i < paths->nr_words; i++)
		if (!strcmp(strrchr(paths->words[i], '/') + 1, name))
			return true;
	return false;
}

int opr_archives_name_sessions(const struct opr_archive *archives, struct opr_spec *spec)
{
	struct opr_words paths = { 0 };
	const char *name = "";
	int err = 0;

	for (const struct opr_archive *archive = archives; archive && !err; archive = archive->next) {
		size_t nr_before = paths.nr_words;

		for (size_t i = 0; i < spec->sessions.nr_words && !err; i++) {
			name = spec->sessions.words[i];
			if (strchr(name, '/'))
				err = opr_error(-EINVAL,
						"session:%s: with several archives, give the name of a session without "
						"/",
						name);
			else if (!opr_words_have(&spec->session_exclude, name))
				err = add_session(archive, name, &paths);
		}
		if (!err && paths.nr_words == nr_before)
			err = report_none(archive, name);
	}
	for (size_t i = 0; i < spec->sessions.nr_words && !err; i++) {
		name = spec->sessions.words[i];
		if (!opr_words_have(&spec->session_exclude, name) && !has_session(&paths, name))
			err = opr_error(-ENOENT, "there is no session '%s' in the archives", name);
	}
	opr_words_free(&spec->sessions);
	spec->sessions = paths;
	return err;
}

int opr_archives_span(const struct opr_archive *archives, const struct opr_span *span, struct opr_spec *spec, int **fds)
{
	int err = 0;

	for (const struct opr_archive *archive = archives; archive && !err; archive = archive->next) {
		size_t nr_before = spec->sessions.nr_words;

		err = opr_span_find(span, archive->sessions_dir, &spec->session_exclude, &spec->sessions, fds);
		for (size_t i = nr_before; i < spec->sessions.nr_words && !err; i++)
			err = make_path(archive, &spec->sessions.words[i]);
	}
	return err;
}

/* ---- events ---- */

static const struct opr_archive *archive_of(const struct opr_profile *profile, size_t session)
{
	return opr_archive_of(profile->archive, profile->sessions[session].path);
}

static bool is_same_event(const struct op_sample_name *a, const struct op_sample_name *b)
{
	return a->count == b->count && a->unit_mask == b->unit_mask && !strcmp(a->event, b->event);
}

static bool is_in_ledger(const struct opr_session *session, const struct op_sample_name *name)
{
	for (size_t i = 0; i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];

		if (event->count == name->count && event->unit_mask == name->unit_mask && !strcmp(event->name, name->event))
			return true;
	}
	return false;
}

/* An archive has an event by a sample, or by a ledger that counts none. */
static bool has_event(const struct opr_profile *profile, const struct opr_archive *archive, const struct op_sample_name *name)
{
	for (size_t i = 0; i < profile->nr_sessions; i++)
		if (archive_of(profile, i) == archive && is_in_ledger(&profile->sessions[i], name))
			return true;
	for (size_t i = 0; i < profile->nr_files; i++)
		if (is_same_event(profile->files[i].name, name) && archive_of(profile, profile->files[i].session) == archive)
			return true;
	return false;
}

static const char *cpu_name(const struct op_odb_header *header)
{
	const char *name = opr_cpu_type(header->cpu_type, NULL);

	return name ? name : "not known";
}

/* The event and the type of CPU of a file must be in all archives. */
static int check_file(const struct opr_profile *profile, const struct opr_file *file)
{
	const struct opr_archive *owner = archive_of(profile, file->session);
	const struct op_odb_header *first = &profile->files[0].header;

	if (file->header.cpu_type != first->cpu_type)
		return opr_error(-EINVAL,
				 "archive:%s was made on another type of CPU (%s) than archive:%s (%s): give archives "
				 "of one type",
				 owner->dir, cpu_name(&file->header), archive_of(profile, profile->files[0].session)->dir,
				 cpu_name(first));
	for (const struct opr_archive *archive = profile->archive; archive; archive = archive->next)
		if (!has_event(profile, archive, file->name))
			return opr_error(-EINVAL,
					 "archive:%s has %s:%" PRIu64 " with unit mask 0x%02" PRIx64 ", but archive:%s does "
					 "not: select events that all archives have (event:, count:, unit-mask:)",
					 owner->dir, file->name->event, file->name->count, (uint64_t)file->name->unit_mask,
					 archive->dir);
	return 0;
}

int opr_archives_check(const struct opr_profile *profile)
{
	const struct opr_file *checked = NULL;
	int err = 0;

	if (!profile->archive || !profile->archive->next)
		return 0;
	for (size_t i = 0; i < profile->nr_files && !err; i++) {
		const struct opr_file *file = &profile->files[i];

		if (!checked || file->session != checked->session || !is_same_event(file->name, checked->name))
			err = check_file(profile, file);
		checked = file;
	}
	return err;
}
