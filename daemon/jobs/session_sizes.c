/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/session_sizes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/walk.h"

#define CURRENT_NAME "current"
#define PATH_BYTES   (sizeof("samples/") + OP_SESSION_NAME_BYTES)

static int compare_names(const void *a, const void *b)
{
	const struct opd_sized_session *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static void make_path(const struct opd_sized_session *session, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "samples/%s", session->name);
}

/* ---- one session ---- */

static void read_ledger(int session_fd, const char *path, struct opd_sized_session *session)
{
	struct op_session_ledger ledger;
	int fd = op_file_open_below(session_fd, path, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd < 0)
		return;
	/* The ledger of another session would say when to remove this one. */
	if (fstat(fd, &st) < 0 || st.st_ino != session->inode) {
		close(fd);
		return;
	}
	session->is_whole = faccessat(fd, OP_SESSION_CLOSING, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (!op_session_ledger_read(fd, &ledger, NULL)) {
		session->is_timed = ledger.ended == OP_SESSION_rotated && op_session_is_time_name(session->name);
		session->end_ns = ledger.end_ns;
		op_session_ledger_free(&ledger);
	}
	close(fd);
}

/* The whole session at once: the limits need its size. */
static int weigh(const struct opd_session_sizes *sizes, const char *path, uint64_t *ret_bytes)
{
	struct op_weighing weighing;
	int err = op_weighing_begin(&weighing, sizes->session_fd, path);
	bool at_end = false;

	if (err)
		return err;
	while (!at_end && !err) {
		uint64_t nr_entries = OPD_SIZES_ENTRIES;

		at_end = op_weighing_go_on(&weighing, &nr_entries);
		err = op_load_relaxed(&sizes->is_stopped) ? -ECANCELED : weighing.err;
	}
	if (!err)
		*ret_bytes = weighing.nr_bytes;
	op_weighing_end(&weighing);
	return err;
}

/*
 * The directory that was the current one before the look, also when it was closed meanwhile and has
 * another name. A current one that is new has no size yet.
 */
static int find_current(struct opd_session_sizes *sizes, struct opd_sized_session *session)
{
	struct opd_current_size *current = &sizes->current;
	char path[PATH_BYTES];
	int err = 0;

	session->is_current = true;
	session->changed_ns = 0;
	if (session->inode != current->inode)
		return 0;
	current->disk_bytes = current->taken_bytes;
	if (sizes->is_due) {
		make_path(session, path);
		err = weigh(sizes, path, &current->disk_bytes);
		if (!err)
			sizes->weighed = *current;
	}
	return err == -ENOMEM || err == -ECANCELED ? err : 0;
}

static int find_closed(const struct opd_session_sizes *sizes, const struct opd_sized_session *known,
		       struct opd_sized_session *session)
{
	char path[PATH_BYTES];
	int err;

	if (known && known->is_whole && known->inode == session->inode && known->changed_ns == session->changed_ns) {
		*session = *known;
		return 0;
	}
	session->is_reported = known && known->is_reported;
	session->is_thin = known && known->is_thin;
	session->is_hourless = known && known->is_hourless;
	make_path(session, path);
	read_ledger(sizes->session_fd, path, session);
	err = weigh(sizes, path, &session->disk_bytes);
	if (err)
		session->inode = 0; /* the next look weighs it again */
	return err == -ENOMEM || err == -ECANCELED ? err : 0;
}

static const struct opd_sized_session *find_known(const struct opd_session_sizes *sizes, const struct opd_sized_session *session)
{
	return sizes->nr_sessions ? bsearch(session, sizes->sessions, sizes->nr_sessions, sizeof(*session), compare_names) : NULL;
}

/* ---- all sessions ---- */

struct listing {
	struct opd_session_sizes *sizes;
	struct opd_sized_session *sessions;
	size_t nr_sessions, capacity;
};

static int add_session(const char *name, void *arg)
{
	struct listing *listing = arg;
	struct opd_sized_session session = { .is_current = false };
	char path[PATH_BYTES];
	struct stat st;
	int err;

	if (strlen(name) > OP_SESSION_NAME_MAX)
		return 0;
	memcpy(session.name, name, strlen(name) + 1);
	make_path(&session, path);
	if (fstatat(listing->sizes->session_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	session.inode = st.st_ino;
	session.changed_ns = (uint64_t)st.st_ctim.tv_sec * OP_NS_PER_S + (uint64_t)st.st_ctim.tv_nsec;
	if (session.inode == listing->sizes->current.inode || !strcmp(name, CURRENT_NAME))
		err = find_current(listing->sizes, &session);
	else
		err = find_closed(listing->sizes, find_known(listing->sizes, &session), &session);
	if (err)
		return err;
	if (!op_grow(&listing->sessions, &listing->capacity, listing->nr_sessions + 1))
		return -ENOMEM;
	listing->sessions[listing->nr_sessions++] = session;
	return 0;
}

static int list(struct opd_session_sizes *sizes, bool all)
{
	struct listing listing = { .sizes = sizes };
	int err;

	sizes->current.disk_bytes = 0;
	err = all ? op_session_visit_dir(sizes->session_fd, "samples", add_session, &listing)
		  : add_session(CURRENT_NAME, &listing);
	if (err) {
		free(listing.sessions);
		return err;
	}
	free(sizes->sessions);
	sizes->sessions = listing.sessions;
	sizes->nr_sessions = listing.nr_sessions;
	if (listing.nr_sessions)
		qsort(listing.sessions, listing.nr_sessions, sizeof(*listing.sessions), compare_names);
	return 0;
}

/* ---- the check ---- */

static void end_check(struct opd_session_sizes *sizes)
{
	if (sizes->is_begun)
		op_weighing_end(&sizes->weighing);
	sizes->is_begun = false;
}

/* Goes on only with the session that the check began with. */
static void begin_check(struct opd_session_sizes *sizes, const struct opd_sized_session *session)
{
	const struct opd_current_size *begun = &sizes->begun;
	uint64_t nr_begun = session->is_current ? sizes->current.nr_begun : 0;
	char path[PATH_BYTES];

	if (sizes->is_begun && begun->inode == session->inode && sizes->begun_changed_ns == session->changed_ns &&
	    begun->nr_begun == nr_begun)
		return;
	end_check(sizes);
	make_path(session, path);
	sizes->is_begun = !op_weighing_begin(&sizes->weighing, sizes->session_fd, path);
	sizes->begun = (struct opd_current_size){
		.inode = session->inode, .nr_begun = nr_begun, .taken_bytes = sizes->current.taken_bytes
	};
	sizes->begun_changed_ns = session->changed_ns;
	memcpy(sizes->name, session->name, sizeof(sizes->name));
}

/* The caller corrects the account of the current session. */
static void use_check(struct opd_session_sizes *sizes, struct opd_sized_session *session)
{
	if (!sizes->is_begun || sizes->weighing.err)
		return;
	if (!session->is_current) {
		session->disk_bytes = sizes->weighing.nr_bytes;
	} else if (!sizes->weighed.inode) {
		sizes->weighed = sizes->begun;
		sizes->weighed.disk_bytes = sizes->weighing.nr_bytes;
	}
}

/* In the order of the names, from where the last look ended, and each session at most once. */
static void check_some(struct opd_session_sizes *sizes)
{
	size_t nr = sizes->nr_sessions, first = 0;
	uint64_t nr_entries = OPD_SIZES_ENTRIES;

	while (first < nr && strcmp(sizes->sessions[first].name, sizes->name) < 0)
		first++;
	for (size_t i = first; i < first + nr && nr_entries; i++) {
		struct opd_sized_session *session = &sizes->sessions[i % nr];

		begin_check(sizes, session);
		if (sizes->is_begun && !op_weighing_go_on(&sizes->weighing, &nr_entries))
			return;
		use_check(sizes, session);
		end_check(sizes);
		memcpy(sizes->name, sizes->sessions[(i + 1) % nr].name, sizeof(sizes->name));
	}
}

int opd_sizes_look(struct opd_session_sizes *sizes, bool all)
{
	int err = list(sizes, all);

	if (!err)
		check_some(sizes);
	return err;
}

uint64_t opd_sizes_closed_bytes(const struct opd_session_sizes *sizes)
{
	uint64_t nr_bytes = 0;

	for (size_t i = 0; i < sizes->nr_sessions; i++)
		nr_bytes += sizes->sessions[i].disk_bytes;
	return nr_bytes;
}

void opd_sizes_free(struct opd_session_sizes *sizes)
{
	end_check(sizes);
	free(sizes->sessions);
	sizes->sessions = NULL;
	sizes->nr_sessions = 0;
}
