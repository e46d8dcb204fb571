/* SPDX-License-Identifier: GPL-3.0-or-later */
/* optop: shows what is hottest now, on a terminal or as text. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/output.h"
#include "tools/common/program.h"
#include "tools/optop/top.h"
#include "tools/profile/spec.h"

static int take_view(void *field, const char *value)
{
	const char *view_words[TOP_NR_VIEWS];
	size_t index;

	for (enum top_view view = 0; view < TOP_NR_VIEWS; view++)
		view_words[view] = top_view_word(view);
	if (!opr_find_word(view_words, TOP_NR_VIEWS, value, &index))
		return opr_refuse_word("unknown view", value, view_words, TOP_NR_VIEWS);
	*(enum top_view *)field = (enum top_view)index;
	return 0;
}

static int take_delay(void *field, const char *value)
{
	double *delay = field;
	char *end;

	errno = 0;
	*delay = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(*delay) || *delay < TOP_DELAY_MIN || *delay > TOP_DELAY_MAX)
		return opr_error(-EINVAL, "invalid delay '%s': %g to %g seconds", value, TOP_DELAY_MIN, TOP_DELAY_MAX);
	return 0;
}

#define FIELD(name) offsetof(struct top_options, name)

static const struct opr_option rows[] = {
	{ "accumulate", 'a', FIELD(accumulate), NULL, "count from the start of optop, not from the last display", NULL },
	{ "batch", 'b', FIELD(batch), NULL, "write text to standard output instead of a screen", NULL },
	{ "by", 0, FIELD(view), take_view, "what to show first (default function)", "function|image|comm|cgroup|path|wait" },
	{ "delay", 'd', FIELD(delay), take_delay, "time from one display to the next (default 2)", "seconds" },
	{ "iterations", 'n', FIELD(iterations), opr_take_number, "end after NUMBER displays", "number" },
	{ "session-dir", 0, FIELD(query.session_dir), opr_take_string, "directory that holds the samples", "directory" },
	{ "top", 0, FIELD(top), opr_take_number, "rows of --batch (default 20)", "number" },
};

#undef FIELD

static const struct opr_command command = {
	.program = "optop",
	.arguments = "[PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

/* ---- --batch ---- */

static int write_display(const struct top *top)
{
	const struct top_table *table = top_table(top);
	struct op_text text = { 0 };
	int err = 0;

	for (size_t i = 0; i < TOP_HEADER_LINES; i++) {
		top_add_header(top, i, &text);
		op_text_add_char(&text, '\n');
	}
	op_text_add_char(&text, '\n');
	top_add_title(top, &text);
	op_text_add_char(&text, '\n');
	for (size_t i = 0; table && i < table->nr_rows && i < top->options->top; i++) {
		top_add_row(top, &table->rows[i], SIZE_MAX, &text);
		op_text_add_char(&text, '\n');
	}
	op_text_add_char(&text, '\n');
	if (text.failed)
		err = opr_no_memory();
	else
		fputs(op_text_get(&text), stdout);
	op_text_free(&text);
	return err ? err : opr_stdout_flush();
}

/* -ENOENT: there is nothing to show now. */
static int step(struct top *top)
{
	struct top_display display = { 0 };
	int err = top_step(top, top->accumulates, &(struct top_move){ 0 }, &display);

	top_take(top, &display);
	return err ? err : top_found(top)->err;
}

static int run_batch(struct top *top)
{
	struct pollfd wait = { .fd = top->stop->fd, .events = POLLIN };
	int err = step(top), write_err;

	for (uint64_t i = 0; (!err || err == -ENOENT) && !op_stop_is_set(top->stop);) {
		bool was_new = err || top_found(top)->is_new;

		if (top->options->iterations && i >= top->options->iterations)
			break;
		if (poll(&wait, 1, was_new ? (int)(top->delay * 1000) : top_wait_ms(top)) < 0 && errno != EINTR)
			return opr_error(-errno, "cannot wait: %s", strerror(errno));
		if (op_stop_is_set(top->stop))
			break;
		err = step(top);
		if ((err || top_found(top)->is_new) && err != -ENOENT)
			continue;
		i++;
		write_err = write_display(top);
		err = write_err ? write_err : err;
	}
	return err;
}

/* ---- main ---- */

static int run(const void *data)
{
	const struct top_options *options = data;
	struct top top = { 0 };
	int err = 0;

	setlocale(LC_CTYPE, "");
	if (!options->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return opr_error(-ENOTTY, "the standard output is not a terminal: use --batch to write text");
	err = opr_interrupt_catch(&top.stop);
	if (!err)
		err = top_open(&top, options);
	if (!err)
		err = options->batch ? run_batch(&top) : top_show(&top);
	top_free(&top);
	return err;
}

int main(int argc, const char **argv)
{
	struct top_options options = { .delay = 2, .top = 20 };

	return opr_command_run(&command, argc, argv, &options, &options.query.words, run);
}
