/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/spans.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/events/event_def.h"
#include "libop/session/layout.h"
#include "libop/timeline/read.h"
#include "tools/profile/window.h"

/* Of the events that are stacks only. */
static uint64_t lost_in(const struct op_minute *minute)
{
	uint64_t nr_lost = 0;

	for (uint32_t i = 0; i < minute->nr_rows; i++) {
		const struct op_minute_row *row = &minute->rows[i];

		if (minute->events[row->event].role == OP_EVENT_STACKS && row->amount > 0 &&
		    !strncmp(minute->texts[row->text], "lost_", strlen("lost_")))
			nr_lost += (uint64_t)row->amount;
	}
	return nr_lost;
}

/* Adds what was added up as a span, and empties it. *nr_left: nodes that there is room for. */
static int add_span(struct opr_time_spans *spans, struct op_minute *sum, size_t *nr_left)
{
	struct opr_time_span *span;
	int err;

	if (!op_grow(&spans->spans, &spans->capacity, spans->nr_spans + 1))
		return -ENOMEM;
	span = &spans->spans[spans->nr_spans];
	*span = (struct opr_time_span){ .begin_ns = op_min_u64(sum->begin.wall_ns, sum->end.wall_ns),
				   .end_ns = op_max_u64(sum->begin.wall_ns, sum->end.wall_ns),
				   .nr_lost = lost_in(sum) };
	err = opr_minute_stacks(sum, &span->stacks);
	if (err)
		return err;
	spans->nr_spans++;
	op_minute_clear(sum);
	if (span->stacks.nr_nodes > *nr_left)
		return -E2BIG;
	*nr_left -= span->stacks.nr_nodes;
	return 0;
}

/* -E2BIG: these are too many nodes. */
static int read_together(struct op_timeline *timeline, size_t together, size_t nr_left, struct opr_time_spans *spans)
{
	struct op_minute minute = { 0 }, sum = { 0 };
	int err = op_minute_init(&minute, 0);

	if (!err)
		err = op_minute_init(&sum, 0);
	for (size_t nr = 0; !err; nr++) {
		int span_err = 0;

		err = op_timeline_next(timeline, &minute);
		if (nr && (err == -ENODATA || (!err && nr % together == 0)))
			span_err = add_span(spans, &sum, &nr_left);
		if (!err)
			err = op_minute_merge(&sum, &minute);
		err = span_err ? span_err : err;
	}
	op_minute_free(&minute);
	op_minute_free(&sum);
	return err == -ENODATA ? 0 : err;
}

int opr_time_spans_read(int dir_fd, uint64_t since_ns, uint64_t until_ns, size_t max_spans, size_t max_nodes,
			struct opr_time_spans *ret_spans)
{
	struct op_timeline *timeline;
	int err = op_timeline_open(dir_fd, OP_SESSION_TIMELINE, &timeline);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = op_timeline_select(timeline, since_ns, until_ns);
	for (size_t together = op_timeline_nr_selected(timeline) / max_spans + 1; !err; together *= 2) {
		opr_time_spans_free(ret_spans);
		err = read_together(timeline, together, max_nodes, ret_spans);
		if (err != -E2BIG || ret_spans->nr_spans <= 1)
			break;
		err = op_timeline_select(timeline, since_ns, until_ns);
	}
	op_timeline_close(timeline);
	if (err)
		opr_time_spans_free(ret_spans);
	return err == -ENOMEM ? err : 0;
}

void opr_time_spans_free(struct opr_time_spans *spans)
{
	for (size_t i = 0; i < spans->nr_spans; i++)
		op_stack_tree_free(&spans->spans[i].stacks);
	free(spans->spans);
	*spans = (struct opr_time_spans){ 0 };
}
