/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/top.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"

#define NEW_MS    1000 /* the first rows of a view come soon */
#define COST_SHARE 4   /* at most one part in 4 of the time is spent on reading */

/* ---- steps ---- */

int top_open(struct top *top, const struct top_options *options)
{
	int err = opr_control_socket(&top->socket);

	top->options = options;
	top->view = options->view;
	top->delay = options->delay;
	top->accumulates = options->accumulate;
	if (!err)
		err = top_daemon_ask(&top->daemon, top->socket);
	if (err)
		return err;
	if (options->session_dir) {
		top->session_dir = strdup(options->session_dir);
		return top->session_dir ? 0 : opr_no_memory();
	}
	if (!top->daemon.answers)
		return opr_error(-ECONNREFUSED, "%s. Start it with systemctl start opd and opcontrol --start; or name a session "
						"directory of operf with --session-dir",
				 top->daemon.why ? top->daemon.why : "opd does not answer");
	top->session_dir = strdup(top->daemon.session_dir);
	return top->session_dir ? 0 : opr_no_memory();
}

void top_restart(struct top *top)
{
	top_base_free(&top->base);
	top_reading_free(&top->reading);
	top->is_new = true;
}

/* opd's numbers belong to the reading only if it writes that session. */
static int ask(struct top *top)
{
	if (!top->base.is_set || !top->accumulates) {
		top_daemon_free(&top->before);
		top->before = top->daemon;
		top->daemon = (struct top_daemon){ 0 };
	}
	return top_daemon_ask(&top->daemon, top->socket);
}

static void note_cost(struct top *top, uint64_t begin_ns, bool is_base)
{
	uint64_t cpu_ns = op_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	top->reading_ns = begin_ns; /* files are read at once, then it takes time to find names */
	top->cost_ns = op_now_ns() - begin_ns;
	if (!is_base && top->reading_ns > top->base_ns)
		top->own_share = (double)(cpu_ns - top->own_cpu_ns) / (double)(top->reading_ns - top->base_ns);
	if (is_base)
		top->own_cpu_ns = cpu_ns;
}

int top_step(struct top *top)
{
	const struct top_wish wish = { .view = top->view,
				       .event = top->event,
				       .keep_base = top->accumulates,
				       .session_dir = top->session_dir,
				       .words = &top->options->words };
	uint64_t begin_ns = op_now_ns(), last_ns = top->reading_ns, last_cpu_ns = op_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bool is_base = !top->base.is_set;
	int err = ask(top);

	if (err)
		return err;
	top_reading_free(&top->reading);
	if (!is_base && !top->accumulates)
		top->base_ns = last_ns;
	top->err = top_read(&top->reading, &top->base, &wish);
	top->is_new = !top->err && is_base;
	note_cost(top, begin_ns, is_base);
	if (is_base)
		top->base_ns = top->reading_ns;
	else if (!top->accumulates)
		top->own_cpu_ns = last_cpu_ns;
	return top->err;
}

int top_wait_ms(const struct top *top)
{
	double wanted_ms = top->delay * 1000, cost_ms = (double)top->cost_ns / OP_NS_PER_MS;

	if (top->is_new && wanted_ms > NEW_MS)
		wanted_ms = NEW_MS;
	if (wanted_ms < cost_ms * (COST_SHARE - 1))
		wanted_ms = cost_ms * (COST_SHARE - 1);
	return (int)wanted_ms;
}

void top_free(struct top *top)
{
	top_base_free(&top->base);
	top_reading_free(&top->reading);
	top_daemon_free(&top->daemon);
	top_daemon_free(&top->before);
	free(top->socket);
	free(top->session_dir);
}

/* ---- lines ---- */

/* Whether the status tells about the session that is read, now and when the base was read. */
static bool has_daemon(const struct top *top)
{
	return top->daemon.answers && top->before.answers && top->daemon.pid == top->before.pid &&
	       !strcmp(top->daemon.session_dir, top->session_dir);
}

static void add_state(const struct top *top, struct op_text *text)
{
	char host[256] = "", clock[32];
	time_t now = time(NULL);
	struct tm local;

	if (!gethostname(host, sizeof(host) - 1))
		op_text_add_clean(text, host);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	op_text_printf(text, "  %s  ", clock);
	if (top->daemon.answers && strcmp(top->daemon.session_dir, top->session_dir) != 0)
		op_text_printf(text, "session directory %s", top->session_dir);
	else if (!top->daemon.answers)
		op_text_add_clean(text, top->daemon.why ? top->daemon.why : "opd does not answer");
	else if (top->daemon.is_running)
		op_text_printf(text, "opd profiles %" PRIu32 " CPU%s", top->daemon.nr_cpus, top->daemon.nr_cpus == 1 ? "" : "s");
	else
		op_text_add(text, "opd is paused: opcontrol --start");
	if (top->is_paused)
		op_text_add(text, "  (display stopped, SPACE goes on)");
}

/* The counts of opd begin again with a session. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now < before ? now : now - before;
}

static void add_samples(const struct top *top, struct op_text *text)
{
	double seconds = (double)(top->reading_ns - top->base_ns) / OP_NS_PER_S;
	uint64_t stacks = since(top->daemon.stacks, top->before.stacks);

	if (top->is_new || !top->reading.event) {
		op_text_add(text, top->err ? "no samples" : "collecting samples ...");
		return;
	}
	op_text_printf(text, "%" PRIu64 " samples of %s in %.1f s", top->reading.total, top->reading.event, seconds);
	if (!has_daemon(top))
		return;
	op_text_printf(text, ", %" PRIu64 " lost", since(top->daemon.lost, top->before.lost));
	if (stacks)
		op_text_printf(text, "; %" PRIu64 " stacks, %.1f %% complete", stacks,
			       opr_percent(since(top->daemon.complete, top->before.complete), stacks));
}

static void add_cost(const struct top *top, struct op_text *text)
{
	uint64_t ns = top->daemon.when_ns - top->before.when_ns;

	if (top->is_new || top->err)
		return;
	if (has_daemon(top) && ns)
		op_text_printf(text, "opd: %.2f %% of a CPU, %.1f MiB; ",
			       100.0 * (double)(top->daemon.cpu_ns - top->before.cpu_ns) / (double)ns,
			       (double)top->daemon.rss_bytes / (1024 * 1024));
	op_text_printf(text, "optop: %.1f %% of a CPU", 100.0 * top->own_share);
}

void top_add_header(const struct top *top, size_t line, struct op_text *text)
{
	static void (*const lines[TOP_HEADER_LINES])(const struct top *, struct op_text *) = { add_state, add_samples, add_cost };

	lines[line](top, text);
}

static const char *const titles[] = {
#define X(id, key, word, title) [TOP_##id] = title,
	TOP_VIEWS(X)
#undef X
};

static const char *const words[] = {
#define X(id, key, word, title) [TOP_##id] = word,
	TOP_VIEWS(X)
#undef X
};

const char *top_view_word(enum top_view view)
{
	return words[view];
}

void top_add_title(const struct top *top, struct op_text *text)
{
	op_text_add(text, " SAMPLES      %  ");
	if (top->view == TOP_FUNCTIONS)
		op_text_printf(text, "%-22s ", "IMAGE");
	op_text_add(text, titles[top->view]);
}

/* The last functions of a path, with so many bytes at most; one at least. */
static const char *end_of_path(const char *path, size_t nr_bytes)
{
	const char *next;

	while (strlen(path) > nr_bytes && (next = strstr(path, " > ")))
		path = next + 3;
	return path;
}

void top_add_row(const struct top *top, const struct top_row *row, size_t nr_columns, struct op_text *text)
{
	const char *name = row->name;
	size_t begin, image_bytes = strlen(row->image) + 4;

	op_text_printf(text, "%8" PRIu64 " %6.2f  ", row->count, opr_percent(row->count, top->reading.total));
	begin = text->length;
	if (top->view == TOP_FUNCTIONS) {
		op_text_add_escaped(text, row->image);
		op_text_printf(text, "%*s ", text->length - begin < 22 ? (int)(22 - (text->length - begin)) : 0, "");
	}
	op_text_printf(text, "%*s", (int)(2 * row->depth), "");
	if (top->view == TOP_PATHS && nr_columns > text->length + image_bytes)
		name = end_of_path(name, nr_columns - text->length - image_bytes);
	op_text_add(text, name > row->name ? "> " : "");
	op_text_add_escaped(text, name);
	if (top->view == TOP_PATHS && row->image[0]) {
		op_text_add(text, "  (");
		op_text_add_escaped(text, row->image);
		op_text_add_char(text, ')');
	}
}
