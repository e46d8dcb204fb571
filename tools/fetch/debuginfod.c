/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/fetch/debuginfod.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/parse.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/common/words.h"

#define URLS_VARIABLE "DEBUGINFOD_URLS"
#define SECONDS_MAX   86400
#define OLD_CACHE     ".debuginfod_client_cache"
#define CACHE	      "debuginfod_client"

/* Of this process: what later calls must know of earlier ones. */
static struct {
	struct opr_words servers; /* none: downloaded files are not used */
	char dir[PATH_MAX];
	unsigned int file_seconds;
	uint64_t left_ns; /* of the time for all files */
	uint64_t failed;  /* a bit for each server */
	bool is_over;
} run;

/* ---- the settings ---- */

int opr_take_debuginfod_time(void *field, const char *value)
{
	struct opr_debuginfod_time *time = field;
	struct opr_words words = { 0 };
	uint64_t seconds[2] = { 0, OPR_DEBUGINFOD_ALL_SECONDS };
	int err = opr_words_split(&words, value) < 0 ? opr_no_memory() : 0;

	if (!err && (!words.nr_words || words.nr_words > op_array_size(seconds)))
		err = -EINVAL;
	for (size_t i = 0; i < words.nr_words && !err; i++)
		err = op_parse_u64(words.words[i], 1, SECONDS_MAX, &seconds[i]);
	if (!err) {
		if (words.nr_words == 1)
			seconds[1] = op_max_u64(seconds[0], seconds[1]);
		*time = (struct opr_debuginfod_time){ (unsigned int)seconds[0], (unsigned int)seconds[1] };
	}
	opr_words_free(&words);
	return err && err != -ENOMEM ? opr_error(err, "illegal time '%s': seconds for a file, or for a file and for all, as 60,180",
						 value) :
				       err;
}

/* The directory of downloaded files, by the rules of debuginfod_find_debuginfo(3). */
static int choose_dir(char *dir, size_t size)
{
	const char *given = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
	struct stat st;
	int length;

	if (given && *given) {
		length = snprintf(dir, size, "%s", given);
		return length < (int)size ? 0 : -ENAMETOOLONG;
	}
	home = home ? home : "/";
	length = snprintf(dir, size, "%s/" OLD_CACHE, home);
	if (length < (int)size && stat(dir, &st) < 0)
		length = cache && *cache ? snprintf(dir, size, "%s/" CACHE, cache) : snprintf(dir, size, "%s/.cache/" CACHE, home);
	return length < (int)size ? 0 : -ENAMETOOLONG;
}

static void split_servers(const char *urls)
{
	char *copy = strdup(urls), *rest = copy, *url;

	while (copy && (url = strsep(&rest, " ")))
		if (*url && run.servers.nr_words < OPR_DOWNLOAD_SERVERS_MAX && !opr_words_have(&run.servers, url) &&
		    opr_words_add(&run.servers, url) < 0)
			opr_no_memory();
	free(copy);
}

void opr_debuginfod_use(const struct opr_debuginfod_time *time)
{
	const char *urls = getenv(URLS_VARIABLE);

	if (!urls || choose_dir(run.dir, sizeof(run.dir)) < 0)
		return;
	split_servers(urls);
	run.file_seconds = time->file_seconds ? time->file_seconds : OPR_DEBUGINFOD_FILE_SECONDS;
	run.left_ns = (uint64_t)(time->all_seconds ? time->all_seconds : OPR_DEBUGINFOD_ALL_SECONDS) * OP_NS_PER_S;
}

const char *opr_debuginfod_dir(void)
{
	return run.servers.nr_words ? run.dir : NULL;
}

/* ---- what the child tells ---- */

/* The files of one call. */
struct files {
	struct opr_wanted_debug *wanted;
	bool *is_done;
	size_t nr_wanted, nr_still_missing;
};

static bool has_server(void)
{
	for (size_t i = 0; i < run.servers.nr_words; i++)
		if (!(run.failed >> i & 1))
			return true;
	return false;
}

/* The name of a server in messages: its URL without the password that may be in it. */
static void name_server(const char *url, char *name, size_t size)
{
	const char *host = strstr(url, "://"), *at;

	host = host ? host + strlen("://") : url;
	at = memchr(host, '@', strcspn(host, "/"));
	snprintf(name, size, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

static void fail_server(uint32_t server, const char *name, const char *reason)
{
	char url[PATH_MAX];

	run.failed |= UINT64_C(1) << server;
	name_server(run.servers.words[server], url, sizeof(url));
	opr_warn("debuginfod: server %s is not asked again, because it failed for %s: %s", url, name, reason);
}

static size_t nr_open(const struct files *files)
{
	size_t nr = 0;

	for (size_t i = 0; i < files->nr_wanted; i++)
		nr += !files->is_done[i];
	return nr;
}

static void end_run(const struct files *files, const char *why)
{
	run.is_over = true;
	opr_warn("debuginfod: %s: %zu debug files are not asked for", why, nr_open(files));
}

static void take_record(struct files *files, const struct opr_download_record *record)
{
	struct opr_wanted_debug *wanted = &files->wanted[record->wanted];
	bool *is_done = &files->is_done[record->wanted];

	switch ((enum opr_download_step)record->step) {
	case OPR_DOWNLOAD_ASKS:
	case OPR_DOWNLOAD_CHECKS:
	case OPR_DOWNLOAD_NR_STEPS:
		return;
	case OPR_DOWNLOAD_CAME:
		wanted->came = true;
		break;
	case OPR_DOWNLOAD_MISSING:
		opr_verbose(OPR_TOPIC_bfd, "debuginfod: no server has a debug file for %s", wanted->name);
		break;
	case OPR_DOWNLOAD_STILL_MISSING:
		files->nr_still_missing++;
		break;
	case OPR_DOWNLOAD_TOO_LARGE:
		opr_warn("debuginfod: the debug file of %s has more than %llu MiB, or than DEBUGINFOD_MAXSIZE: it is left out",
			 wanted->name, OPR_DOWNLOAD_BYTES_MAX >> 20);
		break;
	case OPR_DOWNLOAD_FAILED:
		if (record->server < run.servers.nr_words)
			fail_server(record->server, wanted->name, record->reason);
		return;
	case OPR_DOWNLOAD_OUT_OF_TIME:
		end_run(files, "the time for all files is over (--debuginfod-time)");
		return;
	case OPR_DOWNLOAD_STOPPED:
		end_run(files, "stopped");
		return;
	case OPR_DOWNLOAD_NO_LIBRARY:
		run.is_over = true;
		opr_warn("debuginfod: debug files are not downloaded without libdebuginfod: %s: install the Debian package "
			 "libdebuginfod1, or empty " URLS_VARIABLE,
			 record->reason);
		return;
	}
	*is_done = true;
}

/* A child that crashed or was killed: the server whose answer it worked on is to blame. */
static void blame(struct files *files, const struct opr_download_record *last, int err)
{
	struct opr_wanted_debug *wanted = &files->wanted[last->wanted];
	bool checks = last->step == OPR_DOWNLOAD_CHECKS;
	char path[PATH_MAX];

	if (checks && opr_download_path(run.dir, wanted->build_id, path, sizeof(path)))
		unlink(path);
	if (last->server < run.servers.nr_words)
		fail_server(last->server, wanted->name,
			    checks	    ? opr_child_reason(err) :
			    err == -ETIME   ? "it does not answer" :
			    err == -EFAULT  ? "libdebuginfod crashed on its answer" :
					      opr_child_reason(err));
	else
		files->is_done[last->wanted] = true;
}

/* False: nothing was learned. */
static bool take_records(struct files *files, const struct opr_child_result *result)
{
	struct opr_download_record record, last = { .step = OPR_DOWNLOAD_NR_STEPS };

	for (size_t at = 0; result->nr_bytes - at >= sizeof(record); at += sizeof(record)) {
		memcpy(&record, result->bytes + at, sizeof(record));
		if (record.wanted >= files->nr_wanted || record.step >= OPR_DOWNLOAD_NR_STEPS ||
		    !memchr(record.reason, 0, sizeof(record.reason)))
			break;
		take_record(files, &record);
		last = record;
	}
	if (!result->err)
		return false;
	if (last.step == OPR_DOWNLOAD_ASKS || last.step == OPR_DOWNLOAD_CHECKS)
		blame(files, &last, result->err);
	return last.step != OPR_DOWNLOAD_NR_STEPS;
}

/* ---- the download ---- */

/*
 * One child downloads all files; after a crash another one goes on without the server to blame.
 * SIGINT ends the download and not the tool.
 */
static int fetch(struct files *files, opr_debug_check_fn *check)
{
	struct opr_download_request request = { files->wanted, files->nr_wanted, files->is_done, run.servers.words,
						run.servers.nr_words, run.failed, run.dir, run.file_seconds,
						op_now_ns() + run.left_ns, check };
	bool goes_on = true;
	int err = 0;

	while (!err && goes_on && !run.is_over && nr_open(files) && has_server()) {
		struct opr_child_result result = { 0 };
		struct opr_child child;

		request.failed = run.failed;
		opr_progress_end(); /* the child has a line of its own */
		err = opr_child_start(&child, opr_download_run, &request);
		if (!err)
			err = opr_child_wait(&child, &result);
		goes_on = !err && take_records(files, &result);
		opr_child_result_free(&result);
	}
	return err;
}

static void note_missing(const struct files *files)
{
	if (files->nr_still_missing)
		opr_note("debuginfod: the servers did not have the debug files of %zu images when they were last asked, and are "
			 "not asked again for a while; to ask them now, first run: find %s -name debuginfo -empty -delete",
			 files->nr_still_missing, run.dir);
}

int opr_debuginfod_fetch(struct opr_wanted_debug *wanted, size_t nr_wanted, opr_debug_check_fn *check)
{
	struct files files = { .wanted = wanted, .nr_wanted = nr_wanted };
	uint64_t begin = op_now_ns(), spent_ns;
	void (*old)(int);
	int err;

	if (!nr_wanted || run.is_over || !has_server())
		return 0;
	files.is_done = calloc(nr_wanted, sizeof(*files.is_done));
	if (!files.is_done)
		return opr_no_memory();
	old = signal(SIGINT, SIG_IGN);
	err = fetch(&files, check);
	signal(SIGINT, old);
	spent_ns = op_now_ns() - begin;
	run.left_ns -= op_min_u64(spent_ns, run.left_ns);
	if (err)
		opr_warn("debuginfod: debug files cannot be downloaded: %s", strerror(-err));
	note_missing(&files);
	free(files.is_done);
	return 0;
}
