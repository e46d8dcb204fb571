/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/session_span.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/session.h"
#include "libop/session_ledger.h"
#include "libop/sys.h"
#include "tools/report_log.h"
#include "tools/when.h"

#define NS_PER_US 1000u

/* ---- the options ---- */

static int parse(const char *option, const char *text, uint64_t now_us, uint64_t *ret_us)
{
	int err = opr_when_parse(text, now_us, ret_us);

	if (err == -ERANGE)
		return opr_error(-EINVAL, "--%s=%s: there is no such date or time", option, text);
	if (err)
		return opr_error(
			-EINVAL,
			"--%s=%s is not a time: \"2 hours ago\", -90min, today, yesterday, 03:00, \"2026-11-21 03:00\" or @SECONDS",
			option, text);
	return 0;
}

int opr_span_parse(struct opr_span *span, const char *since, const char *until)
{
	uint64_t now_us = op_sys_wall_ns() / NS_PER_US;
	int err = 0;

	*span = (struct opr_span){ .since = since, .until = until, .until_us = UINT64_MAX };
	if (since)
		err = parse("since", since, now_us, &span->since_us);
	if (!err && until)
		err = parse("until", until, now_us, &span->until_us);
	if (!err && span->since_us > span->until_us)
		err = opr_error(-EINVAL, "--since=%s is later than --until=%s", since, until);
	return err;
}

bool opr_span_is_given(const struct opr_span *span)
{
	return span->since || span->until;
}

/* ---- the sessions ---- */

struct found {
	char *name;
	uint64_t begin_us, end_us;
	bool wanted;
};

struct search {
	struct found *found;
	size_t nr_found, nr_unknown;
};

/* A session that is open may have samples of this moment. */
static int read_span(int samples_fd, const char *name, struct found *found)
{
	struct op_session_ledger ledger;
	int fd = openat(samples_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = op_session_ledger_read(fd, &ledger, NULL);
	close(fd);
	if (err)
		return err;
	found->begin_us = ledger.begin_ns / NS_PER_US;
	found->end_us = (ledger.ended == OP_SESSION_open ? op_max_u64(ledger.end_ns, op_sys_wall_ns()) : ledger.end_ns) / NS_PER_US;
	op_session_ledger_free(&ledger);
	return 0;
}

static int add(struct search *search, const char *name, const struct found *times)
{
	struct found *found = reallocarray(search->found, search->nr_found + 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	search->found = found;
	found[search->nr_found] = *times;
	found[search->nr_found].name = strdup(name);
	if (!found[search->nr_found].name)
		return -ENOMEM;
	search->nr_found++;
	return 0;
}

static int look_at(const struct opr_span *span, int samples_fd, const char *name, struct search *search)
{
	struct found found = { 0 };
	int err;

	if (*name == '.')
		return 0;
	err = read_span(samples_fd, name, &found);
	if (err == -ENOTDIR)
		return 0;
	if (err) {
		search->nr_unknown++;
		opr_verbose(OPR_TOPIC_debug, "session %s: when it was taken is not known: %s", name, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	found.wanted = found.end_us >= span->since_us && found.begin_us <= span->until_us;
	return add(search, name, &found);
}

static int look_around(const struct opr_span *span, const char *path, struct search *search)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return opr_error(-errno, "%s: %s", path, strerror(errno));
	while (!err && (entry = readdir(dir)))
		err = look_at(span, dirfd(dir), entry->d_name, search);
	closedir(dir);
	return err == -ENOMEM ? opr_no_memory() : err;
}

static int compare_begin(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->begin_us != right->begin_us)
		return left->begin_us < right->begin_us ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* ---- what the user is told ---- */

static int fail_none(const struct search *search, const char *path)
{
	char begin[OPR_WHEN_BYTES], end[OPR_WHEN_BYTES];
	uint64_t end_us = 0;

	if (!search->nr_found)
		return opr_error(-ENOENT, "in %s no session says when it was taken%s", path,
				 search->nr_unknown ? ": those that are there were not made by opd, session:NAME names one" : "");
	for (size_t i = 0; i < search->nr_found; i++)
		end_us = op_max_u64(end_us, search->found[i].end_us);
	opr_when_format(search->found[0].begin_us, begin);
	opr_when_format(end_us, end);
	return opr_error(-ENOENT, "no session was taken in that time: those in %s are from %s to %s", path, begin, end);
}

static void tell(const struct search *search, size_t nr_wanted)
{
	char begin[OPR_WHEN_BYTES] = "", end[OPR_WHEN_BYTES];
	uint64_t end_us = 0;

	for (size_t i = 0; i < search->nr_found; i++) {
		if (!search->found[i].wanted)
			continue;
		if (!*begin)
			opr_when_format(search->found[i].begin_us, begin);
		end_us = op_max_u64(end_us, search->found[i].end_us);
	}
	opr_when_format(end_us, end);
	fprintf(stderr, "Using %zu %s, from %s to %s.\n", nr_wanted, nr_wanted == 1 ? "session" : "sessions", begin, end);
}

static int take_wanted(const struct search *search, const char *path, struct opr_words *sessions)
{
	size_t nr_wanted = 0;

	for (size_t i = 0; i < search->nr_found; i++) {
		if (!search->found[i].wanted)
			continue;
		nr_wanted++;
		opr_verbose(OPR_TOPIC_sfile, "session %s", search->found[i].name);
		if (opr_words_add(sessions, search->found[i].name) < 0)
			return opr_no_memory();
	}
	if (!nr_wanted)
		return fail_none(search, path);
	tell(search, nr_wanted);
	return 0;
}

int opr_span_find(const struct opr_span *span, const char *session_dir, struct opr_words *sessions)
{
	struct search search = { 0 };
	char *path = NULL;
	int err;

	if (asprintf(&path, "%s/samples", session_dir) < 0)
		return opr_no_memory();
	err = look_around(span, path, &search);
	if (!err) {
		if (search.nr_found)
			qsort(search.found, search.nr_found, sizeof(*search.found), compare_begin);
		err = take_wanted(&search, path, sessions);
	}
	for (size_t i = 0; i < search.nr_found; i++)
		free(search.found[i].name);
	free(search.found);
	free(path);
	return err;
}
