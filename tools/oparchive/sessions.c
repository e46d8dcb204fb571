/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sessions of the profile. */
#include "tools/oparchive/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/list.h"
#include "libop/session/pack.h"
#include "libop/session/parts.h"
#include "libop/session/walk.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"

#define STANDARD_DIR "/" OPR_ARCHIVE_SESSIONS

static int compare_words(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The selected files of a session, sorted. A JIT object belongs to those below its directory. */
static int collect_paths(const struct opa_run *run, size_t session, struct opr_words *paths)
{
	const struct opr_profile *profile = &run->report.selection.profile;

	for (size_t i = 0; i < profile->nr_files; i++)
		if (profile->files[i].session == session && opr_words_add(paths, profile->files[i].path) < 0)
			return opr_no_memory();
	if (paths->nr_words)
		qsort(paths->words, paths->nr_words, sizeof(*paths->words), compare_words);
	return 0;
}

static bool is_below_samples(const char *path)
{
	return !strncmp(path, "{root}/", 7) || !strncmp(path, "{kern}/", 7);
}

/* Whether a file belongs to the profile. */
static bool is_selected(const struct opr_words *selected, bool whole, const char *path)
{
	const struct op_session_part *part = op_session_part_of(path);
	const char *slash = strrchr(path, '/');

	if (whole || !part)
		return true;
	if (part->archiving != OP_ARCHIVE_SELECTED)
		return part->archiving != OP_ARCHIVE_WHOLE;
	if (bsearch(&path, selected->words, selected->nr_words, sizeof(*selected->words), compare_words))
		return true;
	for (size_t i = 0; i < selected->nr_words && op_session_is_jit_object(path); i++)
		if (!strncmp(selected->words[i], path, (size_t)(slash - path) + 1))
			return true;
	return false;
}

/* A session that is copied into the archive. */
struct copying {
	struct opa_run *run;
	const struct opr_session *from;
	char *name; /* in the archive */
	struct opr_words selected;
	bool whole; /* all its files are selected */
};

static int add_path(const struct copying *copying, const char *path)
{
	char *archived = NULL, *shown = NULL;
	int err = 0;

	if (asprintf(&archived, OPR_ARCHIVE_SAMPLES "/%s/%s", copying->name, path) < 0 ||
	    asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		err = opr_no_memory();
	if (!err)
		err = opr_archive_add_below(&copying->run->writer, copying->from->dir_fd, path, shown, archived);
	/* It was packed meanwhile: add_pack follows. */
	if (err == -ENOENT && is_below_samples(path) && op_session_has_packed(copying->from->dir_fd, path))
		err = 0;
	else if (archived && shown)
		err = opa_warn_left_out(copying->run, err, shown);
	free(shown);
	free(archived);
	return err;
}

/*
 * Whether a path may be in a session. A bad name among the samples was reported when the session
 * was listed.
 */
static bool has_good_name(const char *path)
{
	struct op_sample_name name;
	char *storage;

	if (!is_below_samples(path) || op_session_is_jit_object(path))
		return true;
	if (op_unmangle(path, &name, &storage, NULL) < 0)
		return false;
	free(storage);
	return true;
}

/* Reports a link to a file. It is not followed: it may lead anywhere. */
static int leave_link(const struct copying *copying, const char *path)
{
	char *shown = NULL;
	struct stat st;
	int err = 0;

	if (fstatat(copying->from->dir_fd, path, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		return opr_no_memory();
	err = opa_warn_left_out(copying->run, -ELOOP, shown);
	free(shown);
	return err;
}

/* Whether the walk leaves it to others. */
static bool is_left_out(const char *path)
{
	const struct op_session_part *part = op_session_part_of(path);

	return part && (part->archiving == OP_ARCHIVE_FIRST || part->archiving == OP_ARCHIVE_LAST ||
			part->archiving == OP_ARCHIVE_NEVER);
}

static int add_entry(const char *path, unsigned char type, void *arg)
{
	const struct copying *copying = arg;

	path += strncmp(path, "./", 2) ? 0 : 2;
	if ((type != DT_REG && type != DT_LNK) || is_left_out(path) || !is_selected(&copying->selected, copying->whole, path) ||
	    !has_good_name(path))
		return 0;
	return type == DT_LNK ? leave_link(copying, path) : add_path(copying, path);
}

/* A directory that was reported when the session was listed is not reported again. */
static void leave_out_dir(const char *path, int why, void *arg)
{
	const struct copying *copying = arg;
	char *shown = NULL;

	path += strncmp(path, "./", 2) ? 0 : 2;
	if (asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		return;
	if (!opr_words_have(&copying->from->bad_paths, path))
		opa_warn_unreadable(copying->run, why, shown);
	free(shown);
}

/* Adds the files that have this place in the order. Not every session has them. */
static int add_parts(const struct copying *copying, enum op_part_archiving archiving)
{
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++)
		if (part->archiving == archiving && !faccessat(copying->from->dir_fd, part->name, F_OK, AT_SYMLINK_NOFOLLOW))
			err = add_path(copying, part->name);
	return err;
}

static int add_packed(const struct copying *copying, const struct op_pack *pack, uint32_t index, const char *path)
{
	struct op_odb_samples samples = { 0 };
	char *archived = NULL, *shown = NULL;
	int fd = memfd_create("sample-file", MFD_CLOEXEC), err = fd < 0 ? -errno : op_pack_read(pack, index, &samples);

	if (!err)
		err = op_session_write_sample_file(fd, &samples) ?: (lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0);
	op_odb_samples_free(&samples);
	if (asprintf(&archived, OPR_ARCHIVE_SAMPLES "/%s/%s", copying->name, path) < 0 ||
	    asprintf(&shown, "%s/%s", copying->from->path, path) < 0) {
		if (fd >= 0)
			close(fd);
		free(archived);
		return opr_no_memory();
	}
	if (!err)
		err = opr_archive_add_open(&copying->run->writer, fd, shown, archived);
	else if (fd >= 0)
		close(fd);
	err = opa_warn_left_out(copying->run, err, shown);
	free(shown);
	free(archived);
	return err;
}

/* In an archive each is a file of its own, for the genuine tools. One that was added stays. */
static int add_pack(const struct copying *copying)
{
	char path[PATH_MAX];
	struct op_pack pack;
	int err = op_pack_open(copying->from->dir_fd, OP_SESSION_PACKED, &pack);

	if (err == -ENOENT)
		return 0;
	if (!err) {
		err = op_pack_check(&pack);
		for (uint32_t i = 0; i < pack.nr_files && !err; i++) {
			err = op_pack_path(&pack, i, path);
			if (!err && is_selected(&copying->selected, copying->whole, path) && has_good_name(path))
				err = add_packed(copying, &pack, i, path);
		}
		op_pack_close(&pack);
	}
	if (err == -EBADMSG && opr_words_have(&copying->from->bad_paths, OP_SESSION_PACKED))
		return 0; /* it was reported when the session was listed */
	return err;
}

/*
 * A daemon may write the session, and close it meanwhile: files are opened below its descriptor.
 * The ledger comes first: the files have at least the samples that it counts. The table of images
 * comes last: it has all images that the files name.
 */
static int copy_session(struct copying *copying)
{
	const struct op_session_bad_paths bad_paths = { leave_out_dir, copying };
	int err = add_parts(copying, OP_ARCHIVE_FIRST);

	if (!err)
		err = op_session_walk_skip_bad(copying->from->dir_fd, ".", add_entry, copying, &bad_paths);
	if (!err)
		err = add_pack(copying);
	return err ? err : add_parts(copying, OP_ARCHIVE_LAST);
}

bool opa_is_whole(const struct opr_profile *profile, size_t session)
{
	const struct opr_session *from = &profile->sessions[session];
	size_t nr_selected = 0;

	for (size_t i = 0; i < profile->nr_files; i++)
		nr_selected += profile->files[i].session == session;
	return nr_selected + from->damaged.nr_words == from->list.nr_files;
}

char *opa_session_name(const struct opr_profile *profile, size_t session)
{
	const struct opr_session *whole = &profile->sessions[profile->sessions[session].parent];
	const char *slash = strrchr(whole->path, '/');

	return strdup(slash ? slash + 1 : whole->path);
}

/* Notes the files that reports leave out. */
static int note_faults(struct opa_run *run, const struct opr_session *session)
{
	const struct opr_words *const lists[] = { &session->bad_paths, &session->damaged };

	for (size_t i = 0; i < op_array_size(lists); i++) {
		for (size_t j = 0; j < lists[i]->nr_words; j++) {
			char *path = NULL;

			if (asprintf(&path, "%s/%s", session->path, lists[i]->words[j]) < 0)
				return opr_no_memory();
			opr_archive_note(&run->writer, "left-out", path);
			free(path);
		}
	}
	return 0;
}

/*
 * The table of images and the ledger are those of the whole session, also when a part of it is
 * selected.
 */
static int add_session(struct opa_run *run, size_t session)
{
	const struct opr_profile *profile = &run->report.selection.profile;
	struct copying copying = { .run = run, .from = &profile->sessions[session], .name = opa_session_name(profile, session) };
	int err = copying.name ? collect_paths(run, session, &copying.selected) : opr_no_memory();

	copying.whole = opa_is_whole(profile, session);
	if (err)
		goto out;
	if (copying.whole)
		opr_archive_note(&run->writer, "whole", copying.name);
	err = note_faults(run, copying.from);
	if (!err)
		err = copy_session(&copying);
out:
	opr_words_free(&copying.selected);
	free(copying.name);
	return err;
}

/* Files beside the sessions, which some do not have. */
static int add_common(struct opa_run *run)
{
	static const char *const names[] = { "abi", "samples/oprofiled.log", "samples/operf.log" };
	int err = 0;

	for (size_t i = 0; i < op_array_size(names) && !err; i++) {
		char *from = NULL, *to = NULL;

		if (asprintf(&from, "%s/%s", run->report.selection.session_dir, names[i]) < 0 ||
		    asprintf(&to, OPR_ARCHIVE_SESSIONS "/%s", names[i]) < 0)
			return opr_no_memory();
		err = opr_archive_add(&run->writer, from, to);
		err = err == -ENOENT || err == -EEXIST ? 0 : opa_warn_left_out(run, err, from);
		free(from);
		free(to);
	}
	return err;
}

static void note_home(const char *home, const char *output_dir)
{
	fputs("NOTE: the samples were in ", stderr);
	opr_write_escaped(stderr, home);
	fputs("; in the archive they are in ", stderr);
	opr_write_escaped(stderr, output_dir);
	fputs(STANDARD_DIR ".\n", stderr);
}

int opa_add_sessions(struct opa_run *run)
{
	const struct opr_profile *profile = &run->report.selection.profile;
	char *home = realpath(run->report.selection.session_dir, NULL);
	int err = home ? add_common(run) : opr_fail_open(-errno, run->report.selection.session_dir);

	if (home)
		opr_archive_note(&run->writer, "session-dir", home);
	for (size_t i = 0; i < profile->nr_sessions && !err; i++)
		err = add_session(run, i);
	if (!err && home && run->options->output_dir && strcmp(home, STANDARD_DIR))
		note_home(home, run->options->output_dir);
	free(home);
	return err;
}
