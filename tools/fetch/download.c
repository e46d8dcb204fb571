/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/fetch/download.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"

#define GRACE_SECONDS  5 /* for libdebuginfod to notice the end; then the child is killed */
#define TALK_BYTES     65536 /* of what libdebuginfod says about an answer */
#define SHOWN_EVERY_MS 100
#define MIB	       (1 << 20)

/* The functions of libdebuginfod, which is loaded here and nowhere else. */
struct library {
	__typeof__(debuginfod_begin) *begin;
	__typeof__(debuginfod_find_debuginfo) *find;
	__typeof__(debuginfod_set_progressfn) *set_progress;
	__typeof__(debuginfod_set_verbose_fd) *set_verbose_fd;
};

struct download {
	FILE *out;
	const struct opr_download_request *request;
	struct library library;
	debuginfod_client *client;
	int talk_fd;	 /* what libdebuginfod says */
	uint64_t failed; /* a bit for each server */
	bool is_over;	 /* all files: out of time, or stopped */
	uint64_t bytes_max; /* of a file */

	/* of the question under way */
	const char *name;
	uint64_t begin_ns, shown_ns;
	long nr_calls; /* of on_progress */
	bool has_begun;
	int err; /* why on_progress ended the download */
};

static struct download *current; /* for on_progress: the one that runs */
static volatile sig_atomic_t is_stopped;

static void stop(int number OP_UNUSED)
{
	is_stopped = 1;
}

static int load(struct library *library)
{
	const struct {
		const char *name;
		void *function;
	} rows[] = {
		{ "debuginfod_begin", &library->begin },
		{ "debuginfod_find_debuginfo", &library->find },
		{ "debuginfod_set_progressfn", &library->set_progress },
		{ "debuginfod_set_verbose_fd", &library->set_verbose_fd },
	};
	void *handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < op_array_size(rows); i++) {
		void *symbol = handle ? dlsym(handle, rows[i].name) : NULL;

		if (!symbol)
			return -ENOSYS;
		memcpy(rows[i].function, &symbol, sizeof(symbol));
	}
	return 0;
}

static void tell(struct download *download, size_t wanted, size_t server, enum opr_download_step step, const char *reason)
{
	struct opr_download_record record = { (uint32_t)wanted, (uint32_t)server, step, "" };

	snprintf(record.reason, sizeof(record.reason), "%s", reason);
	fwrite(&record, sizeof(record), 1, download->out);
	fflush(download->out); /* the next step may be the last one */
}

/* ---- progress ---- */

static void show(struct download *download, long nr_bytes, long nr_all, uint64_t now)
{
	struct op_text line = { 0 };

	if (!opr_progress_is_on() || now - download->shown_ns < SHOWN_EVERY_MS * OP_NS_PER_MS)
		return;
	download->shown_ns = now;
	op_text_add(&line, "\r\033[Kdebuginfod: ");
	op_text_add_escaped(&line, download->name);
	if (download->has_begun)
		op_text_printf(&line, ": %.1f", (double)nr_bytes / MIB);
	if (download->has_begun && nr_all > 0)
		op_text_printf(&line, " of %.1f", (double)nr_all / MIB);
	op_text_add(&line, download->has_begun ? " MiB" : ": waits for an answer");
	op_text_printf(&line, " (Ctrl-C: go on without it)");
	fputs(op_text_get(&line), stderr);
	op_text_free(&line);
}

static void end_shown(const struct download *download)
{
	if (download->shown_ns)
		fputs("\r\033[K", stderr);
}

/* How long a server may take to send the first byte. */
static uint64_t silence_seconds(const struct opr_download_request *request)
{
	return request->file_seconds < OPR_DOWNLOAD_SILENCE ? 1 : request->file_seconds / OPR_DOWNLOAD_SILENCE;
}

/* Why the download is to end now. 0: it goes on. */
static int check_limits(const struct download *download, long nr_bytes, long nr_all, uint64_t now)
{
	const struct opr_download_request *request = download->request;
	uint64_t spent_ns = now - download->begin_ns, limit_ns = (uint64_t)request->file_seconds * OP_NS_PER_S;

	if (is_stopped)
		return -EINTR;
	if (now >= request->end_ns)
		return -ECANCELED;
	if (nr_all > 0 && (uint64_t)nr_all > download->bytes_max)
		return -EFBIG;
	if (download->has_begun && nr_bytes > 0 && (uint64_t)nr_bytes > download->bytes_max)
		return -EOVERFLOW;
	if (!download->has_begun && spent_ns >= silence_seconds(request) * OP_NS_PER_S)
		return -ETIMEDOUT;
	return spent_ns >= limit_ns ? -ETIME : 0;
}

/*
 * libdebuginfod calls this at least once a second. `a` is the number of bytes, or of calls as long
 * as no server has answered; `b` the length, or 0. Anything but 0 ends the download.
 */
static int on_progress(debuginfod_client *client OP_UNUSED, long a, long b)
{
	uint64_t now = op_now_ns();

	current->nr_calls++;
	current->has_begun |= b > 0 || a != current->nr_calls;
	if (!current->err)
		current->err = check_limits(current, a, b, now);
	show(current, a, b, now);
	return current->err;
}

/* ---- one question to one server ---- */

/*
 * The answer of the server in the words of libcurl, from what libdebuginfod says after "server
 * response". An empty text: there is none.
 */
static void read_answer(int talk_fd, char *reason, size_t size)
{
	static const char response[] = "server response", answer[] = "\nurl 0 ";
	static char talk[TALK_BYTES];
	off_t length = lseek(talk_fd, 0, SEEK_END);
	off_t from = length < TALK_BYTES ? 0 : length - TALK_BYTES + 1;
	ssize_t got = pread(talk_fd, talk, sizeof(talk) - 1, from);
	char *at;

	*reason = '\0';
	talk[got < 0 ? 0 : got] = '\0';
	at = strstr(talk, response);
	at = at ? strstr(at, answer) : NULL;
	if (at)
		snprintf(reason, size, "%.*s", (int)strcspn(at + strlen(answer), "\n"), at + strlen(answer));
}

/* libdebuginfod keeps an empty file for an answer "not there", and asks again after ten minutes. */
static bool is_empty(const char *path, struct stat *ret_st)
{
	return !stat(path, ret_st) && !ret_st->st_size;
}

static void forget_answer(const char *path)
{
	struct stat st;

	if (is_empty(path, &st))
		unlink(path);
}

/* Why the download ended, if this process ended it. */
static void explain(const struct download *download, char *reason, size_t size)
{
	unsigned int seconds = download->request->file_seconds;

	if (download->err == -ETIMEDOUT)
		snprintf(reason, size, "it sent nothing for %" PRIu64 " s", silence_seconds(download->request));
	else if (download->err == -ETIME)
		snprintf(reason, size, "a file took longer than %u s (--debuginfod-time)", seconds);
	else
		snprintf(reason, size, "it sent more than %" PRIu64 " bytes for a file", download->bytes_max);
}

static void begin_question(struct download *download, size_t wanted, size_t server)
{
	const struct opr_download_request *request = download->request;
	const struct itimerval wall = { .it_value.tv_sec = request->file_seconds + GRACE_SECONDS };

	tell(download, wanted, server, OPR_DOWNLOAD_ASKS, "");
	opr_child_begin_step();
	setitimer(ITIMER_REAL, &wall, NULL);
	setenv("DEBUGINFOD_URLS", request->servers[server], 1);
	download->name = request->wanted[wanted].name;
	download->begin_ns = op_now_ns();
	download->shown_ns = 0;
	download->nr_calls = 0;
	download->has_begun = false;
	download->err = 0;
	if (!ftruncate(download->talk_fd, 0))
		lseek(download->talk_fd, 0, SEEK_SET);
}

/*
 * 0: the file came; -ENOENT: the server does not have it; -EALREADY: it said so not long ago;
 * -EFBIG: the file is too large; -ECANCELED, -EINTR: as check_limits; another -errno with
 * `reason`: the server fails.
 */
static int ask(struct download *download, size_t wanted, size_t server, const char *path, char *reason, size_t size)
{
	const struct opr_download_request *request = download->request;
	struct stat before, after;
	bool was_empty = is_empty(path, &before);
	int fd;

	begin_question(download, wanted, server);
	fd = download->library.find(download->client, (const unsigned char *)request->wanted[wanted].build_id, 0, NULL);
	end_shown(download);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (download->err) { /* libdebuginfod takes a download that is ended for "not there" */
		forget_answer(path);
		explain(download, reason, size);
		return download->err;
	}
	if (fd == -ENOENT && was_empty && is_empty(path, &after) && after.st_ino == before.st_ino &&
	    after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec)
		return -EALREADY;
	read_answer(download->talk_fd, reason, size);
	if (fd == -ENOENT && (!*reason || strstr(reason, "404") || !strncmp(request->servers[server], "file:", 5)))
		return -ENOENT;
	if (fd == -EFBIG)
		return fd;
	if (!*reason)
		snprintf(reason, size, "%s", strerror(-fd));
	forget_answer(path);
	return fd == -ENOENT ? -EPROTO : fd;
}

/* ---- one file ---- */

static bool is_failed(const struct download *download, size_t server)
{
	return download->failed >> server & 1;
}

/* A file that is there is used if it is the right one, and removed if it is not. */
static bool check(struct download *download, size_t wanted, uint32_t server, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !st.st_size)
		return false;
	tell(download, wanted, server, OPR_DOWNLOAD_CHECKS, "");
	if (download->request->check(path, download->request->wanted[wanted].build_id)) {
		tell(download, wanted, server, OPR_DOWNLOAD_CAME, "");
		return true;
	}
	unlink(path);
	if (server != OPR_DOWNLOAD_NO_SERVER) {
		download->failed |= UINT64_C(1) << server;
		tell(download, wanted, server, OPR_DOWNLOAD_FAILED, "it sent a file that is not the debug file with that build-id");
	}
	return false;
}

/* True: the file is done. */
static bool take_answer(struct download *download, size_t wanted, size_t server, int err, const char *path, const char *reason)
{
	switch (err) {
	case 0:
		return check(download, wanted, (uint32_t)server, path);
	case -ENOENT:
		return false;
	case -EALREADY:
		tell(download, wanted, server, OPR_DOWNLOAD_STILL_MISSING, "");
		return true;
	case -EFBIG:
		tell(download, wanted, server, OPR_DOWNLOAD_TOO_LARGE, "");
		return true;
	case -ECANCELED:
	case -EINTR:
		tell(download, wanted, server, err == -EINTR ? OPR_DOWNLOAD_STOPPED : OPR_DOWNLOAD_OUT_OF_TIME, "");
		download->is_over = true;
		return true;
	default:
		download->failed |= UINT64_C(1) << server;
		tell(download, wanted, server, OPR_DOWNLOAD_FAILED, reason);
		return false;
	}
}

/*
 * Asks one server after the other. That a file is missing is remembered only when all servers have
 * said so.
 */
static void fetch(struct download *download, size_t wanted)
{
	const struct opr_download_request *request = download->request;
	char path[PATH_MAX], reason[sizeof(((struct opr_download_record *)NULL)->reason)];
	size_t nr_asked = 0;

	if (!opr_download_path(request->dir, request->wanted[wanted].build_id, path, sizeof(path))) {
		tell(download, wanted, OPR_DOWNLOAD_NO_SERVER, OPR_DOWNLOAD_MISSING, "");
		return;
	}
	if (check(download, wanted, OPR_DOWNLOAD_NO_SERVER, path))
		return;
	for (size_t server = 0; server < request->nr_servers; server++) {
		int err;

		if (is_failed(download, server))
			continue;
		if (nr_asked++) /* the answer of another server */
			forget_answer(path);
		err = ask(download, wanted, server, path, reason, sizeof(reason));
		if (take_answer(download, wanted, server, err, path, reason))
			return;
	}
	if (download->failed)
		forget_answer(path);
	if (nr_asked)
		tell(download, wanted, OPR_DOWNLOAD_NO_SERVER, OPR_DOWNLOAD_MISSING, "");
}

static bool has_server(const struct download *download)
{
	for (size_t server = 0; server < download->request->nr_servers; server++)
		if (!is_failed(download, server))
			return true;
	return false;
}

int opr_download_run(FILE *out, void *arg)
{
	const struct opr_download_request *request = arg;
	struct download download = { .out = out, .request = request, .failed = request->failed };
	const char *why, *max = getenv("DEBUGINFOD_MAXSIZE");

	signal(SIGINT, stop);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails */
	setenv("DEBUGINFOD_CACHE_PATH", request->dir, 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
	if (load(&download.library) < 0) {
		why = dlerror();
		tell(&download, 0, OPR_DOWNLOAD_NO_SERVER, OPR_DOWNLOAD_NO_LIBRARY, why ? why : "");
		return 0;
	}
	download.client = download.library.begin();
	download.talk_fd = op_sys_memfd_create("opd-debuginfod", MFD_CLOEXEC);
	if (!download.client || download.talk_fd < 0)
		return -ENOMEM;
	current = &download;
	download.bytes_max = OPR_DOWNLOAD_BYTES_MAX;
	if (max && !op_parse_u64(max, 1, OPR_DOWNLOAD_BYTES_MAX, &download.bytes_max))
		opr_verbose(OPR_TOPIC_bfd, "debuginfod: DEBUGINFOD_MAXSIZE is %" PRIu64, download.bytes_max);
	download.library.set_progress(download.client, on_progress);
	download.library.set_verbose_fd(download.client, download.talk_fd);
	for (size_t i = 0; i < request->nr_wanted && !download.is_over && has_server(&download); i++)
		if (!request->is_done[i])
			fetch(&download, i);
	return 0;
}
