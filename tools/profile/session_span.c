/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/session_span.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/session/directory.h"
#include "libop/session/walk.h"
#include "libop/session/ledger_file.h"
#include "libop/base/sys.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/common/when.h"

#define NS_PER_US 1000u
#define US_PER_S  1000000u
#define DAY_US    86400000000u
#define WINDOW_US 120000000u /* of --at */
#define CURRENT   "current"

/* ---- the options ---- */

static int parse(const char *option, const char *text, uint64_t now_us, uint64_t *ret_us)
{
	int err = opr_when_parse(text, now_us, ret_us);

	if (err == -ERANGE)
		return opr_error(-EINVAL, "--%s=%s: there is no such date or time", option, text);
	if (err)
		return opr_error(
			-EINVAL,
			"--%s=%s is not a time: \"2 hours ago\", -90min, today, \"yesterday 03:00\", 03:00, \"2026-11-21 03:00\" "
			"or @SECONDS",
			option, text);
	return 0;
}

static int parse_length(const char *option, const char *text, uint64_t *ret_us)
{
	if (!op_parse_span_us(text, ret_us) && *ret_us)
		return 0;
	return opr_error(-EINVAL, "--%s=%s is not a span of time: 10min, \"1h 30min\", 2days", option, text);
}

static int parse_around(struct opr_span *span, const struct opr_span_words *words, uint64_t now_us)
{
	uint64_t at_us, length_us = WINDOW_US;
	int err = parse("at", words->at, now_us, &at_us);

	if (!err && words->window)
		err = parse_length("window", words->window, &length_us);
	if (err)
		return err;
	span->since_us = at_us - op_min_u64(at_us, length_us / 2);
	span->until_us = span->since_us + length_us;
	return 0;
}

static int parse_last(struct opr_span *span, const struct opr_span_words *words, uint64_t now_us)
{
	uint64_t length_us;
	int err = parse_length("last", words->last, &length_us);

	if (!err)
		span->since_us = now_us - op_min_u64(now_us, length_us);
	return err;
}

/* Behind "yesterday 03:10.." a mere time of day is of the same day, or past midnight. */
static int parse_range_end(const char *text, uint64_t now_us, struct opr_span *span)
{
	bool is_of_day = strspn(text, "0123456789:.") == strlen(text);
	int err = parse("diff", text, is_of_day ? span->since_us : now_us, &span->until_us);

	if (!err && is_of_day && span->until_us < span->since_us)
		span->until_us += DAY_US;
	return err;
}

static int parse_range(struct opr_span *span, const char *text, uint64_t now_us)
{
	const char *dots = strstr(text, OPR_SPAN_DOTS);
	char *begin = dots ? strndup(text, (size_t)(dots - text)) : NULL;
	int err = 0;

	if (!dots)
		return opr_error(-EINVAL, "--diff=%s is not a span of time: 03:10..03:20, \"yesterday 03:10..03:20\", -1h..-30min",
				 text);
	if (!begin)
		return opr_no_memory();
	dots += strlen(OPR_SPAN_DOTS);
	if (*begin)
		err = parse("diff", begin, now_us, &span->since_us);
	if (!err && *dots)
		err = parse_range_end(dots, now_us, span);
	free(begin);
	if (!err && span->since_us >= span->until_us)
		err = opr_error(-EINVAL, "--diff=%s ends before it begins", text);
	return err;
}

static int parse_ends(struct opr_span *span, const struct opr_span_words *words, uint64_t now_us)
{
	int err = words->since ? parse("since", words->since, now_us, &span->since_us) : 0;

	if (!err && words->until)
		err = parse("until", words->until, now_us, &span->until_us);
	if (!err && span->since_us > span->until_us)
		err = opr_error(-EINVAL, "--since=%s is later than --until=%s", words->since, words->until);
	return err;
}

int opr_span_parse(struct opr_span *span, const struct opr_span_words *words)
{
	uint64_t now_us = op_sys_wall_ns() / NS_PER_US;
	bool has_ends = words->since || words->until;

	*span = (struct opr_span){ .is_given = has_ends || words->at || words->last || words->range, .until_us = UINT64_MAX };
	if (words->window && !words->at)
		return opr_error(-EINVAL, "--window is the length of --at: add --at=TIME, or use --last=%s", words->window);
	if (has_ends + !!words->at + !!words->last > 1)
		return opr_error(-EINVAL, "--since and --until, --at, and --last all choose a time: use only one of them");
	if (words->range)
		return parse_range(span, words->range, now_us);
	if (words->at)
		return parse_around(span, words, now_us);
	return words->last ? parse_last(span, words, now_us) : parse_ends(span, words, now_us);
}

void opr_span_move(const struct opr_span *span, uint64_t earlier_us, char range[OPR_SPAN_BYTES])
{
	uint64_t begin_us = span->since_us - op_min_u64(span->since_us, earlier_us);
	uint64_t end_us = span->until_us - op_min_u64(span->until_us, earlier_us);

	snprintf(range, OPR_SPAN_BYTES, "@%" PRIu64 ".%06" PRIu64 OPR_SPAN_DOTS "@%" PRIu64 ".%06" PRIu64, begin_us / US_PER_S,
		 begin_us % US_PER_S, end_us / US_PER_S, end_us % US_PER_S);
}

/* ---- the sessions ---- */

struct found {
	char *name;
	uint64_t begin_us, end_us;
	dev_t device;
	ino_t inode;
	bool is_link; /* found through a symbolic link */
	int fd;       /* -1: outside of the span, or excluded */
};

struct search {
	const struct opr_span *span;
	const char *session_dir;
	struct found *found;
	size_t nr_found, capacity, nr_unknown;
};

struct newest {
	int dir_fd;
	uint64_t changed_ns;
};

static int note_newest(const char *path, unsigned char type OP_UNUSED, void *arg)
{
	struct newest *newest = arg;
	struct stat st;

	if (!fstatat(newest->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW))
		newest->changed_ns =
			op_max_u64(newest->changed_ns, (uint64_t)st.st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec);
	return 0;
}

/*
 * The end of a session that was not closed: now while a daemon writes it, or when that stopped; the
 * last change of a file when the daemon was killed.
 */
static uint64_t end_of_open(const struct search *search, const char *name, int dir_fd, const struct op_session_ledger *ledger)
{
	static const char *const tops[] = { "{root}", "{kern}" };
	struct newest newest = { .dir_fd = dir_fd };

	if (!strcmp(name, CURRENT) && op_session_is_locked(search->session_dir))
		return ledger->is_stopped ? ledger->end_ns : op_max_u64(ledger->end_ns, op_sys_wall_ns());
	for (size_t i = 0; i < op_array_size(tops); i++)
		if (op_session_walk(dir_fd, tops[i], note_newest, &newest))
			opr_verbose(OPR_TOPIC_debug, "session %s: not all files say when they were changed", name);
	return op_max_u64(ledger->end_ns, newest.changed_ns);
}

static int read_span(const struct search *search, struct found *found)
{
	struct op_session_ledger ledger;
	int err = op_session_ledger_read(found->fd, &ledger, NULL);

	if (err)
		return err;
	if (ledger.ended == OP_SESSION_open)
		ledger.end_ns = end_of_open(search, found->name, found->fd, &ledger);
	found->begin_us = ledger.begin_ns / NS_PER_US;
	found->end_us = ledger.end_ns / NS_PER_US;
	op_session_ledger_free(&ledger);
	return 0;
}

/* A session without samples: nothing was counted yet, or closing it was interrupted. */
static bool has_nothing(int dir_fd)
{
	return faccessat(dir_fd, "{root}", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       faccessat(dir_fd, "{kern}", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* A session that only touches an end of the span is not in it. */
static bool overlaps(const struct found *session, const struct opr_span *span)
{
	if (session->begin_us == session->end_us || span->since_us == span->until_us)
		return session->end_us >= span->since_us && session->begin_us <= span->until_us;
	return session->end_us > span->since_us && session->begin_us < span->until_us;
}

/* Adds a session to the list. Takes the name over and, when it is in the span, the descriptor. */
static int add_session(struct search *search, struct found *session)
{
	bool wanted = overlaps(session, search->span);

	if (!op_grow(&search->found, &search->capacity, search->nr_found + 1))
		return -ENOMEM;
	search->found[search->nr_found] = *session;
	session->name = NULL;
	if (wanted)
		session->fd = -1;
	else
		search->found[search->nr_found].fd = -1;
	search->nr_found++;
	return 0;
}

static int check_session(struct search *search, struct found *found)
{
	int err = read_span(search, found);

	if (!err)
		return add_session(search, found);
	if (err == -ENOENT && has_nothing(found->fd))
		return 0;
	search->nr_unknown++;
	opr_verbose(OPR_TOPIC_debug, "session %s: when it was taken is not known: %s", found->name, strerror(-err));
	return err == -ENOMEM ? err : 0;
}

/*
 * Whether the session was found before under another name. The current session was closed
 * meanwhile: then the new name counts. Or a symbolic link leads to it: then the link does not
 * count.
 */
static bool is_known(struct search *search, struct found *again)
{
	for (size_t i = 0; i < search->nr_found; i++) {
		struct found *found = &search->found[i];

		if (found->inode != again->inode || found->device != again->device)
			continue;
		if (!again->is_link) {
			free(found->name);
			found->name = again->name;
			again->name = NULL;
		}
		return true;
	}
	return false;
}

static int open_found(int samples_fd, struct found *found)
{
	struct stat st, entry;

	found->fd = openat(samples_fd, found->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (found->fd < 0 || fstat(found->fd, &st) < 0)
		return -errno;
	found->device = st.st_dev;
	found->inode = st.st_ino;
	found->is_link = !fstatat(samples_fd, found->name, &entry, AT_SYMLINK_NOFOLLOW) && S_ISLNK(entry.st_mode);
	return 0;
}

static int try_session(struct search *search, int samples_fd, const char *name)
{
	struct found found = { .name = strdup(name), .fd = -1 };
	int err = found.name ? open_found(samples_fd, &found) : -ENOMEM;

	if (!err && !is_known(search, &found)) {
		err = check_session(search, &found);
	} else if (err && err != -ENOTDIR && err != -ENOENT) {
		search->nr_unknown++;
		opr_verbose(OPR_TOPIC_debug, "session %s: %s", name, strerror(-err));
	}
	if (found.fd >= 0)
		close(found.fd);
	free(found.name);
	return err == -ENOMEM ? err : 0;
}

/*
 * Opens the current session before it lists the others. A session that is closed meanwhile is then
 * either open or in the list. A session that is started meanwhile has no samples of the time before
 * the search.
 */
static int find_sessions(struct search *search, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err;

	if (!dir)
		return opr_fail_open(-errno, path);
	err = try_session(search, dirfd(dir), CURRENT);
	while (!err && (entry = readdir(dir)))
		if (*entry->d_name != '.' && strcmp(entry->d_name, CURRENT))
			err = try_session(search, dirfd(dir), entry->d_name);
	closedir(dir);
	return err ? opr_no_memory() : 0;
}

static int compare_begin(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->begin_us != right->begin_us)
		return left->begin_us < right->begin_us ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* ---- what the user is told ---- */

static int report_none(const struct search *search, const char *path)
{
	char begin[OPR_WHEN_BYTES], end[OPR_WHEN_BYTES];
	uint64_t end_us = 0;

	if (!search->nr_found)
		return opr_error(-ENOENT, "no session in %s has a time%s", path,
				 search->nr_unknown ? ": opd did not record them, session:NAME selects one" : "");
	for (size_t i = 0; i < search->nr_found; i++)
		end_us = op_max_u64(end_us, search->found[i].end_us);
	opr_when_format(search->found[0].begin_us, begin);
	opr_when_format(end_us, end);
	return opr_error(-ENOENT, "no session was taken in that time: those in %s are from %s to %s", path, begin, end);
}

static void report_unknown(const struct search *search)
{
	if (search->nr_unknown)
		opr_warn("%zu %s left out: when %s taken is not known (--verbose=debug names %s, session: takes them by name)",
			 search->nr_unknown, search->nr_unknown == 1 ? "session is" : "sessions are",
			 search->nr_unknown == 1 ? "it was" : "they were", search->nr_unknown == 1 ? "it" : "them");
}

static int take_sessions(struct search *search, struct opr_words *sessions, int *fds)
{
	size_t nr_wanted = 0;

	for (size_t i = 0; i < search->nr_found; i++) {
		struct found *found = &search->found[i];

		if (found->fd < 0)
			continue;
		opr_verbose(OPR_TOPIC_sfile, "session %s", found->name);
		if (opr_words_add(sessions, found->name) < 0)
			return opr_no_memory();
		fds[nr_wanted++] = found->fd;
	}
	return 0;
}

/* Closes the excluded sessions. Returns how many are in the span, with *ret_nr_excluded of them. */
static size_t exclude(struct search *search, const struct opr_words *excluded, size_t *ret_nr_excluded)
{
	size_t nr_wanted = 0, nr_excluded = 0;

	for (size_t i = 0; i < search->nr_found; i++) {
		struct found *found = &search->found[i];

		if (found->fd < 0)
			continue;
		nr_wanted++;
		if (!opr_words_have(excluded, found->name))
			continue;
		nr_excluded++;
		close(found->fd);
		found->fd = -1;
	}
	*ret_nr_excluded = nr_excluded;
	return nr_wanted;
}

static int choose(struct search *search, const struct opr_words *excluded, const char *path, struct opr_words *sessions,
		  int **fds_of_sessions)
{
	size_t nr_before = sessions->nr_words, nr_excluded, nr_wanted = exclude(search, excluded, &nr_excluded);
	int *fds, err;

	if (!nr_wanted)
		return search->span->is_told ? -ENOENT : report_none(search, path);
	nr_wanted -= nr_excluded;
	if (!nr_wanted)
		return opr_error(-ENOENT, "session-exclude: leaves none of the %zu sessions of that time", nr_excluded);
	fds = reallocarray(*fds_of_sessions, nr_before + nr_wanted, sizeof(*fds));
	if (!fds)
		return opr_no_memory();
	*fds_of_sessions = fds;
	err = take_sessions(search, sessions, fds + nr_before);
	if (err)
		return err;
	if (!search->span->is_told)
		report_unknown(search);
	for (size_t i = 0; i < search->nr_found; i++)
		search->found[i].fd = -1;
	return 0;
}

int opr_span_find(const struct opr_span *span, const char *session_dir, const struct opr_words *excluded,
		  struct opr_words *sessions, int **fds)
{
	struct search search = { .span = span, .session_dir = session_dir };
	char *path = NULL;
	int err;

	if (asprintf(&path, "%s/samples", session_dir) < 0)
		return opr_no_memory();
	err = find_sessions(&search, path);
	if (!err) {
		if (search.nr_found)
			qsort(search.found, search.nr_found, sizeof(*search.found), compare_begin);
		err = choose(&search, excluded, path, sessions, fds);
	}
	for (size_t i = 0; i < search.nr_found; i++) {
		if (search.found[i].fd >= 0)
			close(search.found[i].fd);
		free(search.found[i].name);
	}
	free(search.found);
	free(path);
	return err;
}
