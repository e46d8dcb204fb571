/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/top.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"

#define NEW_MS     500 /* the first rows come soon */
#define NAMES_NS   (300u * (uint64_t)OP_NS_PER_MS) /* for symbols; the rest comes with next steps */
#define COST_SHARE 4    /* at most one part in 4 of a CPU is spent on reading */

#define STILL_MS   3600000 /* the past does not change */

/* ---- steps ---- */

static const char *why_not(const struct top_daemon *daemon)
{
	return daemon->why ? daemon->why : "opd does not answer";
}

static int check_directory(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return opr_error(-errno, "cannot open the session directory %s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? 0 : opr_error(-ENOTDIR, "%s is not a session directory: it is not a directory", path);
}

static int find_session(struct top *top, const char *given)
{
	struct top_daemon daemon = { 0 };
	int err = given ? check_directory(given) : top_daemon_ask(&daemon, top->socket);

	if (!err && !given && !daemon.answers)
		err = opr_error(-ECONNREFUSED, "%s. Start it with systemctl start opd and opcontrol --start; or name a session "
					       "directory of operf with --session-dir",
				why_not(&daemon));
	if (!err) {
		top->session_dir = strdup(given ? given : daemon.session_dir);
		err = top->session_dir ? 0 : opr_no_memory();
	}
	top_daemon_free(&daemon);
	return err;
}

int top_open(struct top *top, const struct top_options *options)
{
	int err = opr_control_socket(&top->socket);

	top->options = options;
	top->view = options->view;
	top->delay = options->delay;
	top->accumulates = options->accumulate;
	for (enum top_source source = 0; source < TOP_NR_SOURCES; source++)
		opr_before_init(&top->bases[source]);
	if (!err)
		err = find_session(top, options->query.session_dir);
	return err;
}

/* opd's numbers belong to the reading only if it writes that session. */
static bool writes_session(const struct top *top, const struct top_daemon *daemon)
{
	return daemon->answers && !strcmp(daemon->session_dir, top->session_dir);
}

/* "2026-11-21 03:16:00 to 03:17:00", in local time. */
static void add_span(const struct top_span *span, struct op_text *text)
{
	time_t begin = (time_t)(span->begin_ns / OP_NS_PER_S), end = (time_t)(span->end_ns / OP_NS_PER_S);
	char from[32], to[32];
	struct tm local;

	strftime(from, sizeof(from), "%Y-%m-%d %H:%M:%S", localtime_r(&begin, &local));
	strftime(to, sizeof(to), "%H:%M:%S", localtime_r(&end, &local));
	op_text_printf(text, "  %s to %s  (< earlier, > later, l live)", from, to);
}

static int make_state(const struct top *top, const struct top_daemon *daemon, struct top_display *display)
{
	struct op_text text = { 0 };
	char host[256] = "", clock[32];
	time_t now = time(NULL);
	struct tm local;

	if (!gethostname(host, sizeof(host) - 1))
		op_text_add_clean(&text, host);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	if (top->is_past)
		add_span(&top->span, &text);
	else
		op_text_printf(&text, "  %s  ", clock);
	if (top->is_past) {
		/* what opd does now is not of that time */
	} else if (daemon->answers && !writes_session(top, daemon)) {
		op_text_add(&text, "session directory ");
		op_text_add_escaped(&text, top->session_dir);
	} else if (!daemon->answers) {
		op_text_add_clean(&text, why_not(daemon));
	} else if (daemon->is_running) {
		op_text_printf(&text, "opd profiles %" PRIu32 " CPU%s", daemon->nr_cpus, daemon->nr_cpus == 1 ? "" : "s");
	} else {
		op_text_add(&text, "opd is paused: opcontrol --start");
	}
	display->state = text.failed ? NULL : strdup(op_text_get(&text));
	op_text_free(&text);
	return display->state ? 0 : opr_no_memory();
}

/* The counts of opd begin again with a session. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now < before ? now : now - before;
}

static void compare_daemon(const struct top *top, const struct top_daemon *now, struct top_display *display)
{
	const struct top_daemon *before = &top->before;

	display->stack_rate_hz = now->stack_rate_hz;
	if (top->is_past || !writes_session(top, now) || !before->answers || now->pid != before->pid)
		return;
	if (now->when_ns <= before->when_ns)
		return;
	display->has_daemon = true;
	display->lost = since(now->lost, before->lost);
	display->stacks = since(now->stacks, before->stacks);
	display->complete = since(now->complete, before->complete);
	display->counted_share = now->counted_share;
	display->daemon_share = (double)(now->cpu_ns - before->cpu_ns) / (double)(now->when_ns - before->when_ns);
	display->daemon_rss_bytes = now->rss_bytes;
}

static struct opr_query query_of(struct top *top, enum top_source source, uint32_t views)
{
	struct opr_query query = top->options->query;

	query.session_dir = top->session_dir;
	query.merge.merge = (struct opr_merge){ .lib = true, .cpu = true, .tid = true, .tgid = true };
	query.stacks = query.sessions_only = source == TOP_STACKS;
	query.view = source == TOP_STACKS ? OPR_VIEW_PAGE : OPR_VIEW_CPU; /* samples and waits */
	query.totals_only = !(views & 1u << TOP_FUNCTIONS);
	query.earlier = top->is_past ? NULL : &top->bases[source];
	query.naming = (struct opr_naming){ .demangle = OPR_DEMANGLE_SMART,
					    .sources = OPR_FROM_ALL & ~(uint32_t)OPR_FROM_DEBUGINFOD,
					    .kept = &top->kept,
					    .time_ns = top->options->batch ? 0 : NAMES_NS };
	return query;
}

/* Nothing of the past ends optop: a message tells what is wrong. */
static void read_past(struct top *top, enum top_source source, uint32_t views, struct top_found *found)
{
	struct top_query query = { .report = query_of(top, source, views), .views = views };
	char since[32], until[32];

	/* all of the block, and nothing of its neighbours, whose times have parts of a second */
	snprintf(since, sizeof(since), "@%" PRIu64 ".%06" PRIu64, top->span.begin_ns / OP_NS_PER_S,
		 top->span.begin_ns % OP_NS_PER_S / 1000 + 1);
	snprintf(until, sizeof(until), "@%" PRIu64 ".%06" PRIu64, top->span.end_ns / OP_NS_PER_S,
		 top->span.end_ns % OP_NS_PER_S / 1000);
	query.report.span = (struct opr_span_words){ .since = since, .until = until };
	found->err = top_read(&found->reading, &query);
	found->seconds = (double)(top->span.end_ns - top->span.begin_ns) / OP_NS_PER_S;
}

static int read_source(struct top *top, enum top_source source, uint32_t views, bool keep_base, struct top_found *found)
{
	const struct top_query query = { .report = query_of(top, source, views), .views = views, .keep_base = keep_base };
	uint64_t begin_ns = op_now_ns(); /* names are found after the files are read */

	found->is_new = !top->base_ns[source];
	found->err = top_read(&found->reading, &query);
	if (found->err)
		return found->err == -ENOENT ? 0 : found->err;
	if (!found->is_new)
		found->seconds = (double)(begin_ns - top->base_ns[source]) / OP_NS_PER_S;
	if (found->is_new || !keep_base)
		top->base_ns[source] = begin_ns;
	return 0;
}

/* Only the view of --batch; a screen may show any of them next. */
static uint32_t views_of(const struct top *top, enum top_source source)
{
	uint32_t views = 0;

	for (enum top_view view = 0; view < TOP_NR_VIEWS; view++)
		if (top_source_of(view) == source && (!top->options->batch || view == top->options->view))
			views |= 1u << view;
	return views;
}

/* Of this process, and of its children that read symbols and have ended. */
static uint64_t cpu_time_ns(void)
{
	struct rusage usage;
	uint64_t ns = op_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
		return ns;
	return ns + (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * OP_NS_PER_S +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static void end_step(struct top *top, bool keep_base, struct top_daemon *daemon, uint64_t begin_ns, uint64_t begin_cpu_ns,
		     struct top_display *display)
{
	uint64_t cpu_ns = cpu_time_ns();

	display->cost_ns = cpu_ns - begin_cpu_ns;
	if (top->before_ns && begin_ns > top->before_ns)
		display->own_share = (double)(begin_cpu_ns - top->before_cpu_ns) / (double)(begin_ns - top->before_ns);
	if (top->last_ns)
		display->period = (double)(begin_ns - top->last_ns) / OP_NS_PER_S;
	top->last_ns = begin_ns;
	if (top->before_ns && keep_base) {
		top_daemon_free(daemon);
		return;
	}
	top_daemon_free(&top->before);
	top->before = *daemon;
	top->before_ns = begin_ns;
	top->before_cpu_ns = begin_cpu_ns;
}

/* What was counted before is old when the past has been looked at: counts begin anew. */
static void go_live(struct top *top)
{
	if (!top->is_past)
		return;
	for (enum top_source source = 0; source < TOP_NR_SOURCES; source++) {
		opr_before_free(&top->bases[source]);
		opr_before_init(&top->bases[source]);
		top->base_ns[source] = 0;
	}
	top_daemon_free(&top->before);
	top->before_ns = 0;
	top->is_past = false;
}

/* Before the first block one stays where one is. */
static int go(struct top *top, const struct top_move *move)
{
	int err = 0;

	if (move->to_live)
		go_live(top);
	for (int i = move->blocks; i < 0 && !err; i++) {
		err = top_past_before(top->session_dir, top->is_past ? top->span.begin_ns : UINT64_MAX, &top->span);
		top->is_past |= !err;
	}
	for (int i = 0; i < move->blocks && top->is_past && !err; i++) {
		err = top_past_after(top->session_dir, top->span.begin_ns, &top->span);
		if (err == -ENOENT)
			go_live(top);
	}
	return err == -ENOMEM ? opr_no_memory() : 0;
}

int top_step(struct top *top, bool keep_base, const struct top_move *move, struct top_display *display)
{
	uint64_t begin_ns = op_now_ns(), begin_cpu_ns = cpu_time_ns();
	struct top_daemon daemon = { 0 };
	int err = go(top, move);

	if (!err)
		err = top_daemon_ask(&daemon, top->socket);
	display->is_past = top->is_past;
	if (!err) {
		compare_daemon(top, &daemon, display);
		err = make_state(top, &daemon, display);
	}
	for (enum top_source source = 0; source < TOP_NR_SOURCES && !err; source++) {
		uint32_t views = views_of(top, source);

		if (views && top->is_past)
			read_past(top, source, views, &display->of[source]);
		else if (views)
			err = read_source(top, source, views, keep_base, &display->of[source]);
		if (views && top->take_message)
			top->take_message(top->take_message_arg, source);
	}
	end_step(top, keep_base, &daemon, begin_ns, begin_cpu_ns, display);
	return err;
}

void top_take(struct top *top, struct top_display *display)
{
	top_display_free(&top->display);
	top->display = *display;
	*display = (struct top_display){ 0 };
}

void top_display_free(struct top_display *display)
{
	for (enum top_source source = 0; source < TOP_NR_SOURCES; source++)
		top_reading_free(&display->of[source].reading);
	free(display->state);
	*display = (struct top_display){ 0 };
}

const struct top_found *top_found(const struct top *top)
{
	return &top->display.of[top_source_of(top->view)];
}

static size_t shown_event(const struct top *top)
{
	return top->chose_event ? top->event : top_reading_busy_event(&top_found(top)->reading, top->view);
}

const struct top_table *top_table(const struct top *top)
{
	return top_reading_find(&top_found(top)->reading, top->view, shown_event(top));
}

void top_next_event(struct top *top)
{
	top->event = shown_event(top) + 1;
	top->chose_event = true;
}

static size_t nr_put_off(const struct top *top)
{
	size_t nr = 0;

	for (enum top_source source = 0; source < TOP_NR_SOURCES; source++)
		nr += top->display.of[source].reading.nr_put_off;
	return nr;
}

bool top_keeps_base(const struct top *top)
{
	return top->accumulates || (nr_put_off(top) && top_found(top)->seconds < top->delay);
}

int top_wait_ms(const struct top *top)
{
	double wanted_ms = top->delay * 1000, cost_ms = (double)top->display.cost_ns / OP_NS_PER_MS;

	if (top_found(top)->is_new || nr_put_off(top)) /* the user waits for rows, or for names */
		return (int)(wanted_ms < NEW_MS ? wanted_ms : NEW_MS);
	if (top->display.is_past)
		return STILL_MS;
	if (wanted_ms < cost_ms * (COST_SHARE - 1))
		wanted_ms = cost_ms * (COST_SHARE - 1);
	return (int)wanted_ms;
}

void top_free(struct top *top)
{
	for (enum top_source source = 0; source < TOP_NR_SOURCES; source++)
		opr_before_free(&top->bases[source]);
	top_display_free(&top->display);
	top_daemon_free(&top->before);
	opr_kept_free(&top->kept);
	free(top->socket);
	free(top->session_dir);
}

/* ---- lines ---- */

static void add_state(const struct top *top, struct op_text *text)
{
	if (top->is_paused)
		op_text_add(text, "(display stopped, SPACE goes on)  ");
	op_text_add(text, top->display.state ? top->display.state : "");
}

static void add_time(struct op_text *text, uint64_t us)
{
	struct opr_time_text time = opr_format_us(us);

	op_text_add(text, time.text + strspn(time.text, " "));
}

static void add_waits(const struct top *top, struct op_text *text)
{
	const struct top_found *found = top_found(top);
	const struct top_table *table = top_table(top);

	if (!table) {
		op_text_add(text, "no waits: opcontrol --status says why");
		return;
	}
	add_time(text, table->total);
	op_text_printf(text, " of waits in %.1f s, and ", found->seconds);
	add_time(text, table->idle_us);
	op_text_add(text, " of waits for work, which have no rows");
	if (found->reading.nr_put_off)
		op_text_printf(text, "; the symbols of %zu images are being read", found->reading.nr_put_off);
}

static void add_samples(const struct top *top, struct op_text *text)
{
	const struct top_display *display = &top->display;
	const struct top_found *found = top_found(top);
	const struct top_table *table = top_table(top);

	if (top->view == TOP_WAITS && !found->err && !found->is_new) {
		add_waits(top, text);
		return;
	}
	if (found->err || found->is_new || !table) {
		op_text_add(text, found->err ? "no samples" : "collecting samples ...");
		return;
	}
	op_text_printf(text, "%" PRIu64 " samples of ", table->total);
	op_text_add_escaped(text, table->event);
	op_text_printf(text, " in %.1f s", found->seconds);
	if (found->reading.nr_put_off)
		op_text_printf(text, ", the symbols of %zu images are being read", found->reading.nr_put_off);
	if (!display->has_daemon)
		return;
	op_text_printf(text, ", %" PRIu64 " lost", display->lost);
	if (!display->stacks)
		return;
	op_text_add(text, "; ");
	if (top_source_of(top->view) == TOP_SAMPLES)
		op_text_printf(text, "%" PRIu64 " stacks, ", display->stacks);
	op_text_printf(text, "%.1f %% complete", opr_percent(display->complete, display->stacks));
}

static void add_cost(const struct top *top, struct op_text *text)
{
	const struct top_display *display = &top->display;

	if (top_found(top)->is_new || top_found(top)->err)
		return;
	if (display->has_daemon)
		op_text_printf(text, "opd: %.2f %% of a CPU, %.1f MiB; ", 100.0 * display->daemon_share,
			       (double)display->daemon_rss_bytes / (1024 * 1024));
	op_text_printf(text, "optop: %.1f %% of a CPU", 100.0 * display->own_share);
	if (display->has_daemon && display->counted_share < OP_COUNTED_NEEDED)
		op_text_printf(text, "; counted %.0f %% of the time", 100.0 * display->counted_share);
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

static bool has_image_column(enum top_view view)
{
	return view == TOP_FUNCTIONS || view == TOP_WAITS;
}

void top_add_title(const struct top *top, struct op_text *text)
{
	op_text_add(text, top->view == TOP_WAITS ? "    TIME      %  " : " SAMPLES      %  ");
	if (has_image_column(top->view))
		op_text_printf(text, "%-22s ", "IMAGE");
	op_text_add(text, titles[top->view]);
}

#define SHOWN_STEP " > "

/* The last functions of a path, with so many bytes at most; one at least. */
static const char *end_of_path(const char *path, size_t nr_bytes)
{
	size_t length = strlen(path);
	const char *next;

	for (next = path; (next = strstr(next, TOP_STEP)); next++)
		length += strlen(SHOWN_STEP) - 1;
	while (length > nr_bytes && (next = strstr(path, TOP_STEP))) {
		length -= (size_t)(next - path) + strlen(SHOWN_STEP);
		path = next + 1;
	}
	return path;
}

static void add_path(const char *path, struct op_text *text)
{
	const char *next;

	for (; (next = strstr(path, TOP_STEP)); path = next + 1) {
		char *function = strndup(path, (size_t)(next - path));

		text->failed |= !function;
		if (function)
			op_text_add_escaped(text, function);
		op_text_add(text, SHOWN_STEP);
		free(function);
	}
	op_text_add_escaped(text, path);
}

void top_add_row(const struct top *top, const struct top_row *row, size_t nr_columns, struct op_text *text)
{
	const char *name = row->name;
	size_t begin, image_bytes = strlen(row->image) + 4;

	if (top->view == TOP_WAITS)
		op_text_printf(text, "%8s", opr_format_us(row->count).text);
	else
		op_text_printf(text, "%8" PRIu64, row->count);
	op_text_printf(text, " %6.2f  ", opr_percent(row->count, top_table(top)->total));
	begin = text->length;
	if (has_image_column(top->view)) {
		op_text_add_escaped(text, row->image);
		op_text_printf(text, "%*s ", text->length - begin < 22 ? (int)(22 - (text->length - begin)) : 0, "");
	}
	op_text_printf(text, "%*s", (int)(2 * row->depth), "");
	if (top->view == TOP_PATHS && nr_columns > text->length + image_bytes)
		name = end_of_path(name, nr_columns - text->length - image_bytes);
	op_text_add(text, name > row->name ? "> " : "");
	/* A row of an image without symbols has the name of the image. */
	add_path(has_image_column(top->view) && !strcmp(name, row->image) ? "(no symbols)" : name, text);
	if (top->view == TOP_PATHS && row->image[0]) {
		op_text_add(text, "  (");
		op_text_add_escaped(text, row->image);
		op_text_add_char(text, ')');
	}
}
