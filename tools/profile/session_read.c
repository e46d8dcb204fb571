/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/session_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"

/* ---- the table of images ---- */

int opr_session_read_images(struct opr_session *session)
{
	struct op_dcookie_reading reading = { 0 };
	int err;

	session->images = op_dcookie_table_new();
	if (!session->images)
		return opr_no_memory();
	err = op_dcookie_table_read(session->images, session->dir_fd, OP_DCOOKIE_FILE, &reading);
	if (err) {
		op_dcookie_table_free(session->images);
		session->images = NULL;
	}
	if (!err && reading.nr_bad)
		opr_warn("%s/%s: %zu lines of the table of images are skipped", session->path, reading.complaint,
			 reading.nr_bad);
	else if (err == -ENOMEM)
		opr_no_memory();
	else if (err && err != -ENOENT)
		opr_warn("%s/%s: the table of images is not used", session->path,
			 reading.complaint ? reading.complaint : OP_DCOOKIE_FILE);
	free(reading.complaint);
	return err == -ENOMEM ? err : 0;
}

/* ---- the ledger ---- */

bool opr_session_has_daemon(const struct opr_session *session)
{
	int fd = openat(session->dir_fd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_there = fd >= 0 && op_session_is_locked_at(fd);

	if (fd >= 0)
		close(fd);
	return is_there;
}

int opr_session_read_ledger(struct opr_session *session)
{
	unsigned int line = 0;
	int err = op_session_ledger_read(session->dir_fd, &session->ledger, &line);

	session->has_ledger = !err;
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err == -EBADMSG)
		opr_warn("%s/" OP_SESSION_LEDGER
			 ":%u: not a ledger: whether samples were lost, or are gone, is not known" OPR_REPAIR_HINT,
			 session->path, line);
	else if (err && err != -ENOENT)
		opr_warn("%s/" OP_SESSION_LEDGER ": %s: whether samples were lost, or are gone, is not known", session->path,
			 strerror(-err));
	/*
	 * The genuine tools write neither images nor a ledger. A daemon that has just started has
	 * no ledger yet.
	 */
	else if (err && session->images && !opr_session_has_daemon(session))
		opr_warn("%s has no ledger: whether samples were lost, or are gone, is not known" OPR_REPAIR_HINT, session->path);
	return 0;
}

/* ---- the window ---- */

static bool is_inside(const struct op_session_ledger *ledger, uint64_t since_ns, uint64_t until_ns)
{
	bool has_end = ledger->ended != OP_SESSION_open && ledger->ended != OP_SESSION_stopped;

	return ledger->begin_ns >= since_ns && (until_ns == UINT64_MAX || (has_end && ledger->end_ns <= until_ns));
}

int opr_session_read_window(struct opr_session *session, uint64_t since_ns, uint64_t until_ns)
{
	int err;

	if (!until_ns || !session->images || !session->has_ledger || is_inside(&session->ledger, since_ns, until_ns))
		return 0;
	err = opr_window_read(session->dir_fd, session->images, since_ns, until_ns, &session->window);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err == -ENOENT)
		opr_warn("%s keeps no minutes (TimelineInterval=0, or they are older than 90 days): all of it is counted",
			 session->path);
	else if (err)
		opr_warn("%s/" OP_SESSION_TIMELINE ": %s: all of the session is counted" OPR_REPAIR_HINT, session->path,
			 err == -EBADMSG ? "it is damaged, or of a later version" : strerror(-err));
	if (err)
		return 0;
	if (opr_window_span(session->window)->nr_damaged)
		opr_warn("%s/" OP_SESSION_TIMELINE ": %" PRIu64 " damaged places are left out" OPR_REPAIR_HINT, session->path,
			 opr_window_span(session->window)->nr_damaged);
	opr_window_set_ledger(session->window, &session->ledger);
	return 0;
}

void opr_session_path_below(const struct opr_profile *profile, size_t index, const char *path, struct op_text *below)
{
	const struct opr_session *session = &profile->sessions[index], *parent = &profile->sessions[session->parent];

	if (session != parent)
		op_text_printf(below, "%s/", session->path + strlen(parent->path) + 1);
	op_text_add(below, path);
}

/* ---- the list of sample files ---- */

static const char *bad_path_words(int why)
{
	switch (-why) {
	case EBADMSG:
		return "not the name of a sample file";
	case EINVAL:
		return "not a regular file";
	case ELOOP:
		return "a symbolic link to a directory, or to itself";
	case ENOENT:
		return "a symbolic link that leads nowhere";
	case EUCLEAN:
		return "a damaged pack of sample files";
	case EISDIR:
		return "a directory with the name of a sample file, without a sample file in it";
	default:
		return strerror(-why);
	}
}

void opr_session_leave_out(const char *path, int why, void *arg)
{
	struct opr_session *session = arg;

	opr_warn("%s/%s: %s: it is left out%s", session->path, path, bad_path_words(why),
		 why == -EBADMSG || why == -ENOTDIR || why == -EUCLEAN ? OPR_REPAIR_HINT : "");
	/*
	 * The genuine tools skip a link that leads nowhere, so it does not make the report
	 * incomplete.
	 */
	if (why != -ENOENT && opr_words_add(&session->bad_paths, path) < 0)
		opr_no_memory();
}

int opr_session_warn_removed(const struct opr_session *session, const char *path)
{
	opr_warn("%s%s%s was removed while it was read", session->path, path ? "/" : "", path ? path : "");
	return -ESTALE;
}

/*
 * A session that is being removed is first moved below tmp/. A session that is being closed is only
 * renamed.
 */
static bool is_removed(const struct opr_session *session)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", session->dir_fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0 || fstat(session->dir_fd, &st) < 0)
		return false;
	path[length] = '\0';
	return !st.st_nlink || strstr(path, "/" OP_SESSION_TMP "/" OP_SESSION_REMOVED);
}

int opr_session_read_list(struct opr_session *session)
{
	const struct op_session_bad_paths bad_paths = { opr_session_leave_out, session };
	int err = op_session_list_skip_bad(session->dir_fd, &session->list, &bad_paths);

	if (err == -ENOENT || (!err && is_removed(session)))
		err = opr_session_warn_removed(session, NULL);
	else if (err < 0)
		opr_fail_open(err, session->path);
	return err;
}
