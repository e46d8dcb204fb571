/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/open_sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/nearest.h"
#include "libop/session/memory_view.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/common/session_dir.h"
#include "tools/profile/losses.h"
#include "tools/profile/session_hint.h"
#include "tools/profile/session_read.h"

#define REMEDY                                                                                                                     \
	"--session-dir=DIR reads those of another directory; opcontrol --start takes samples, opcontrol --dump writes what was "   \
	"taken."

/*
 * Takes `path` and `cgroup` over, also when it fails. NULL: no memory. Valid until the next call.
 */
static struct opr_session *add_session(struct opr_profile *profile, char *path, char *cgroup)
{
	struct opr_session *sessions = reallocarray(profile->sessions, profile->nr_sessions + 1, sizeof(*sessions));
	struct opr_session *session;

	if (!sessions) {
		free(path);
		free(cgroup);
		return NULL;
	}
	profile->sessions = sessions;
	session = &sessions[profile->nr_sessions];
	*session = (struct opr_session){ .path = path, .dir_fd = -1, .cgroup = cgroup, .parent = profile->nr_sessions++ };
	return path ? session : NULL;
}

/* ---- parts of a session ---- */

/*
 * Adds a part of a session: its directory and, for a cgroup, its name, both below the parent. The
 * descriptor may be -1, with errno. 0 or -ENOMEM.
 */
static int add_part(struct opr_profile *profile, size_t parent, const char *directory, const char *cgroup,
		    struct opr_session **ret_part)
{
	char *path = NULL, *name = cgroup ? strdup(cgroup) : NULL;
	struct opr_session *part;

	if (asprintf(&path, "%s/%s", profile->sessions[parent].path, directory) < 0)
		path = NULL;
	part = add_session(profile, path, name);
	if (!part || (cgroup && !name))
		return opr_no_memory();
	part->parent = parent;
	part->images = profile->sessions[parent].images;
	part->window = profile->sessions[parent].window;
	part->dir_fd = openat(profile->sessions[parent].dir_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret_part = part;
	return 0;
}

static int open_cgroup(struct opr_profile *profile, size_t parent, const struct op_session_cgroup *cgroup)
{
	struct opr_session *part;
	int err = add_part(profile, parent, cgroup->directory, cgroup->path, &part);

	if (err)
		return err;
	if (part->dir_fd < 0 && (errno == EACCES || errno == ELOOP || errno == ENOTDIR)) {
		opr_session_leave_out(cgroup->directory, -errno, &profile->sessions[parent]);
		return 0;
	}
	if (part->dir_fd < 0)
		return opr_fail_open(-errno, part->path);
	return opr_session_read_list(part);
}

static int report_no_cgroup(const char *path, const struct op_session_cgroups *list, const struct opr_words *words)
{
	struct op_text hint = { 0 };

	for (size_t i = 0; i < words->nr_words && !hint.length; i++) {
		struct op_nearest nearest;

		op_nearest_init(&nearest, words->words[i]);
		for (size_t j = 0; j < list->nr_cgroups; j++)
			op_nearest_try(&nearest, list->cgroups[j].path);
		op_nearest_add_hint(&nearest, "cgroup:", &hint);
	}
	opr_error(-ENOENT, "no cgroup of %s matches the specification: opreport --cgroups lists them%s", path, op_text_get(&hint));
	op_text_free(&hint);
	return -ENOENT;
}

/* Opens the selected cgroups of a session, and lists none of the files of the session itself. */
static int open_cgroups(struct opr_profile *profile, size_t parent, const struct opr_spec *spec)
{
	const struct op_session_bad_paths bad_paths = { opr_session_leave_out, &profile->sessions[parent] };
	struct op_session_cgroups list;
	bool found = false;
	int err = op_session_list_cgroups_skip_bad(profile->sessions[parent].dir_fd, &list, &bad_paths);

	if (err < 0)
		return opr_error(err, "%s/" OP_CGROUP_DIR ": %s", profile->sessions[parent].path, strerror(-err));
	for (size_t i = 0; i < list.nr_cgroups && !err; i++) {
		if (!opr_spec_match_cgroup(spec, list.cgroups[i].path))
			continue;
		found = true;
		err = open_cgroup(profile, parent, &list.cgroups[i]);
	}
	if (err || found || spec->optional)
		goto out;
	if (!list.nr_cgroups && spec->or_stacks && !faccessat(profile->sessions[parent].dir_fd, OP_SESSION_STACKS, F_OK, 0))
		err = -ENODATA;
	else if (!list.nr_cgroups)
		err = opr_error(-ENOENT,
				"%s holds no samples by cgroup: opcontrol --apply --separate=cgroup keeps them from then on. "
				"If it has stacks, these have cgroups: opreport --stacks with the same words",
				profile->sessions[parent].path);
	else
		err = report_no_cgroup(profile->sessions[parent].path, &list, &spec->cgroup);
out:
	op_session_cgroups_free(&list);
	return err;
}

static int open_memory_view(struct opr_profile *profile, size_t parent)
{
	struct opr_session *part;
	int err = add_part(profile, parent, OP_MEM_DIR, NULL, &part);

	if (err)
		return err;
	if (part->dir_fd < 0 && errno == ENOENT)
		return opr_error(-ENOENT, "%s has no memory view: it has one when events IBS_OP_... are sampled",
				 profile->sessions[parent].path);
	if (part->dir_fd < 0)
		return opr_fail_open(-errno, part->path);
	return opr_session_read_list(part);
}

/* ---- a session ---- */

static char *session_path(const char *session_dir, const char *name)
{
	char *path = NULL;

	if (*name == '/' || *name == '.')
		return strdup(name);
	return asprintf(&path, "%s/samples/%s", session_dir, name) < 0 ? NULL : path;
}

static int open_session_dir(struct opr_profile *profile, size_t index, const char *path)
{
	int fd;

	if (index >= profile->nr_session_fds)
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = profile->session_fds[index];
	profile->session_fds[index] = -1;
	return fd;
}

static int report_no_session(const char *session_dir, const char *name, const char *path)
{
	struct op_text hint = { 0 };

	opr_hint_at_name(&hint, session_dir, name, true);
	if (!hint.length) {
		op_text_add(&hint, REMEDY);
		opr_hint_at_sessions(&hint, session_dir, name);
	}
	opr_error(-ENOENT, "there is no session '%s': %s does not exist. %s", name, path, op_text_get(&hint));
	op_text_free(&hint);
	return -ENOENT;
}

/*
 * An earlier session with the same directory: it is named twice, or by a symbolic link. NULL: none.
 */
static const struct opr_session *find_same(const struct opr_profile *profile, const struct opr_session *session)
{
	struct stat st, other;

	if (fstat(session->dir_fd, &st) < 0)
		return NULL;
	for (size_t i = 0; i < session->parent; i++)
		if (profile->sessions[i].parent == i && !fstat(profile->sessions[i].dir_fd, &other) && other.st_ino == st.st_ino &&
		    other.st_dev == st.st_dev)
			return &profile->sessions[i];
	return NULL;
}

static void drop_same(struct opr_profile *profile, struct opr_session *session, const struct opr_session *same)
{
	if (strcmp(session->path, same->path) != 0)
		opr_warn("%s and %s are one session: its samples are counted once", same->path, session->path);
	else
		opr_warn("%s is named twice: its samples are counted once", session->path);
	close(session->dir_fd);
	free(session->path);
	profile->nr_sessions--;
}

/* Opens the session that the specification names at `index`. */
static int open_session(struct opr_profile *profile, const char *session_dir, size_t index, const struct opr_spec *spec)
{
	const char *name = spec->sessions.words[index];
	struct opr_session *session = add_session(profile, session_path(session_dir, name), NULL);
	const struct opr_session *same;
	int err;

	if (!session)
		return opr_no_memory();
	session->dir_fd = open_session_dir(profile, index, session->path);
	if (session->dir_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return report_no_session(session_dir, name, session->path);
	if (session->dir_fd < 0)
		return opr_fail_open(-errno, session->path);
	same = find_same(profile, session);
	if (same) {
		drop_same(profile, session, same);
		return 0;
	}
	err = opr_session_read_images(session);
	if (!err)
		err = opr_session_read_ledger(session);
	if (!err)
		err = opr_session_read_window(session, profile->since_ns, profile->until_ns);
	if (err)
		return err;
	if (spec->memory)
		return open_memory_view(profile, session->parent);
	if (spec->by_cgroup || spec->cgroup.nr_words)
		return open_cgroups(profile, session->parent, spec);
	session->is_whole = true;
	return opr_session_read_list(session);
}

static int report_no_files(const struct opr_profile *profile)
{
	struct op_text paths = { 0 };
	int err;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		op_text_printf(&paths, "%s%s", i ? ", " : "", profile->sessions[i].path);
	err = opr_error(
		-ENOENT,
		"No sample found: Please specify a session containing sample data. There are no sample files in %s. " REMEDY,
		profile->nr_sessions ? op_text_get(&paths) : "the sessions that are not excluded");
	op_text_free(&paths);
	opr_losses_note_filtered(profile);
	return err;
}

int opr_sessions_open(struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec)
{
	size_t nr_files = 0;
	int err = 0;

	for (size_t i = 0; i < spec->sessions.nr_words && !err; i++) {
		opr_progress_count("opening sessions", i, spec->sessions.nr_words);
		if (!opr_words_have(&spec->session_exclude, spec->sessions.words[i]))
			err = open_session(profile, session_dir, i, spec);
	}
	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_files += profile->sessions[i].list.nr_files;
	return !err && !nr_files && !spec->optional ? report_no_files(profile) : err;
}
