/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/stack_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/log.h"
#include "libop/base/text.h"
#include "pipeline/count/count.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/ledger/recover.h"
#include "pipeline/runtimes/names.h"
#include "pipeline/stacks/stack.h"

#define RETRY_NS      100000000u /* a file that could not be opened is tried again after 100 ms */
#define SESSION_SHARE 4          /* of the bytes of a session stacks may take one part in so many */

/* ---- opening and closing ---- */

/* Without memory the code has no names in this session. */
static void note_jit_image(struct opd_stack_file *file, uint64_t image)
{
	size_t at = op_nr_leading(file->jit_images, file->nr_jit_images, known, *known < image);

	if ((at < file->nr_jit_images && file->jit_images[at] == image) ||
	    !op_grow(&file->jit_images, &file->jit_capacity, file->nr_jit_images + 1))
		return;
	memmove(&file->jit_images[at + 1], &file->jit_images[at], (file->nr_jit_images - at) * sizeof(*file->jit_images));
	file->jit_images[at] = image;
	file->nr_jit_images++;
}

/* The store calls it before each new node with an image. */
static uint64_t count_image(void *arg, uint64_t image)
{
	struct opd_count *count = arg;
	const struct op_dcookie_row *row;

	if (image == OP_DCOOKIE_NONE)
		return image;
	if (!op_dcookie_row(count->table, image)->name) {
		if (opd_count_in(count, &image))
			return OP_DCOOKIE_NONE;
		/* The row is in the table before the node is in the file. */
		if (count->cookie_file)
			opd_cookie_file_flush(count->cookie_file, count->now_ns);
	}
	row = op_dcookie_row(count->table, image);
	if (row->id.name.kind == OP_IMAGE_ANON && !strncmp(row->id.name.name, OP_JIT_LABEL, strlen(OP_JIT_LABEL)))
		note_jit_image(&count->stacks, image);
	return image;
}

static uint64_t max_bytes(const struct opd_count *count)
{
	uint64_t most = count->stacks.max_bytes ? count->stacks.max_bytes : op_stacks_file_bytes(OP_STACKS_NODES_MAX);

	return count->limit.space.max_bytes ? op_min_u64(most, count->limit.space.max_bytes / SESSION_SHARE) : most;
}

static int open_with(struct opd_count *count, const char *const *names, struct op_stacks **ret_store)
{
	const struct op_stacks_setup setup = {
		.events = names,
		.nr_events = count->nr_events,
		.max_bytes = max_bytes(count),
		.space = &count->limit.space,
		.count_image = count_image,
		.arg = count,
	};
	int err = op_stacks_open(count->session_fd, OPD_STACKS_PATH, OP_SESSION_TMP_STACKS, &setup, ret_store);

	if (!opd_is_damage(err) || opd_put_aside(count->session_fd, OPD_STACKS_PATH, "is no file of stacks"))
		return err;
	count->nr_damaged++;
	return op_stacks_open(count->session_fd, OPD_STACKS_PATH, OP_SESSION_TMP_STACKS, &setup, ret_store);
}

/* With the names of the events, as in the ledger. */
static int open_named(struct opd_count *count, struct op_stacks **ret_store)
{
	char **names = calloc(count->nr_events + 1, sizeof(*names));
	int err = names ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count->nr_events; i++) {
		const struct op_event *event = &count->events[i];
		struct op_text name = { 0 };

		op_text_printf(&name, "%s:%llu:0x%x", event->name, (unsigned long long)event->count, event->unit_mask);
		names[i] = op_text_steal(&name);
		err = names[i] ? 0 : -ENOMEM;
	}
	if (!err)
		err = open_with(count, (const char *const *)names, ret_store);
	for (size_t i = 0; names && i < count->nr_events; i++)
		free(names[i]);
	free(names);
	return err;
}

/* What the file must have had and has not: samples, or microseconds of waits. */
static void book_lost(struct opd_count *count, bool is_time, uint64_t nr_gone, const char *why)
{
	static struct op_rate rate;
	uint64_t suppressed;

	if (!nr_gone)
		return;
	if (op_rate_allows(&rate, count->now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "%llu %s are gone from " OPD_STACKS_PATH ": %s", (unsigned long long)nr_gone,
		       is_time ? "microseconds of waits" : "stacks", why);
	/* Other events have stored their samples in sample files. */
	for (size_t i = 0; count->ledger && i < count->nr_events; i++)
		if (op_event_is_stacks(count->events[i].role) && op_event_is_time(count->events[i].role) == is_time)
			opd_ledger_lose(count->ledger, (uint32_t)i, nr_gone);
}

/* The counts of the store. */
static void sum_totals(const struct opd_count *count, uint64_t totals[2])
{
	totals[0] = totals[1] = 0;
	for (uint32_t i = 0; i < count->nr_events; i++)
		totals[op_event_is_time(count->events[i].role)] += op_stacks_event_total(count->stacks.store, i);
}

static void report_error(const struct opd_count *count, int err)
{
	static struct op_rate rate;
	uint64_t suppressed;

	if (op_rate_allows(&rate, count->now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "cannot keep stacks in " OPD_STACKS_PATH ": %s", strerror(-err));
}

static int open_store(struct opd_count *count)
{
	struct opd_stack_file *file = &count->stacks;
	uint64_t totals[2];

	if (file->error && count->now_ns < file->retry_ns)
		return file->error;
	file->error = open_named(count, &file->store);
	if (file->error) {
		file->retry_ns = count->now_ns + RETRY_NS;
		report_error(count, file->error);
		return file->error;
	}
	count->dropped_nodes += op_stacks_nr_cut(file->store);
	sum_totals(count, totals);
	for (size_t i = 0; i < 2; i++)
		book_lost(count, i, file->totals[i] - op_min_u64(totals[i], file->totals[i]),
			  "another program wrote to it, or the disk failed");
	memcpy(file->totals, totals, sizeof(totals));
	return 0;
}

void opd_stack_file_close(struct opd_count *count)
{
	struct opd_stack_file *file = &count->stacks;

	if (!file->store)
		return;
	sum_totals(count, file->totals);
	op_stacks_close(file->store);
	file->store = NULL;
}

void opd_stack_file_forget(struct opd_count *count)
{
	opd_stack_file_close(count);
	free(count->stacks.jit_images);
	count->stacks = (struct opd_stack_file){ .max_bytes = count->stacks.max_bytes };
}

/* ---- counting ---- */

static int add(struct opd_count *count, const struct op_stack_path *path, const struct op_stack_frame *frames, size_t nr_frames,
	       uint64_t amount)
{
	int err = count->stacks.store ? 0 : open_store(count);

	return err ? err : op_stacks_add(count->stacks.store, path, frames, nr_frames, amount);
}

int opd_count_stack(struct opd_count *count, const struct op_stack_path *path, const struct op_stack_frame *frames,
		    size_t nr_frames, uint64_t amount, bool *ret_has_room)
{
	struct opd_stack_file *file = &count->stacks;
	int err = add(count, path, frames, nr_frames, amount);

	/* Another program has removed or overwritten it. */
	if (op_unlikely(err == -EIO && file->store)) {
		opd_stack_file_close(count);
		err = add(count, path, frames, nr_frames, amount);
	}
	if (op_unlikely(err == -EIO || !file->store))
		return err;
	file->changed = true;
	file->last_ns = op_max_u64(count->now_ns, 1);
	*ret_has_room = !err;
	return 0;
}

#define OPD_WAKER_BYTES 64u

/* Threads that are separated have their numbers, as opreport --by=thread shows them. */
static const char *name_waker(const struct opd_count *count, const struct opd_waker *waker, char name[OPD_WAKER_BYTES])
{
	const char *comm = waker->name[0] ? waker->name : "(no name)";

	if (waker->is_interrupt)
		return "";
	if (count->separate_thread)
		snprintf(name, OPD_WAKER_BYTES, "tid:%" PRIu32 " tgid:%" PRIu32 " %s", waker->tid, waker->pid, comm);
	else
		snprintf(name, OPD_WAKER_BYTES, "%s", comm);
	return name;
}

void opd_stack_file_take(void *host, struct opd_stack *stack)
{
	struct op_stack_frame frames[OPD_STACK_ALL_MAX];
	struct opd_count *count = host;
	const struct op_sample *sample = stack->sample;
	char waker[OPD_WAKER_BYTES];
	const struct op_stack_path path = {
		.event = stack->event,
		.app = stack->app_cookie,
		.comm = stack->comm,
		.cgroup = stack->cgroup,
		.tgid = count->separate_thread ? sample->pid : 0,
		.tid = count->separate_thread ? sample->tid : 0,
		.cpu = count->separate_cpu ? sample->cpu + 1ull : 0,
		.end = stack->end,
		.state = stack->state,
		.goes_on = stack->goes_on,
		.waker = stack->waker ? name_waker(count, stack->waker, waker) : NULL,
		.waker_app = stack->waker_app,
		.leaf_start = stack->leaf_start,
	};

	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct opd_resolved *frame = &stack->frames[i];

		frames[stack->nr_frames - 1 - i] = (struct op_stack_frame){
			.image = frame->location.cookie,
			.value = frame->location.offset,
			.is_kernel = frame->is_kernel,
			.text = frame->runtime_name ? opd_runtime_names_get(stack->names, frame->runtime_name) : NULL,
			.text_id = frame->runtime_name,
		};
	}
	stack->error = opd_count_stack(count, &path, frames, stack->nr_frames, stack->weight, &stack->has_room);
	if (!stack->error)
		stack->node = op_stacks_last_node(count->stacks.store);
}

void opd_stack_file_end(void *host)
{
	opd_stack_file_forget(host);
}

/* ---- the life of the file ---- */

static bool is_there(const struct opd_count *count)
{
	int fd = op_file_open_below(count->session_fd, OPD_STACKS_PATH, O_PATH, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool opd_stack_file_check(struct opd_count *count)
{
	struct opd_stack_file *file = &count->stacks;

	if (file->store ? !op_stacks_is_broken(file->store) : !(file->totals[0] || file->totals[1]) || is_there(count))
		return false;
	opd_stack_file_close(count);
	if (!is_there(count)) {
		for (size_t i = 0; i < 2; i++) {
			book_lost(count, i, file->totals[i],
				  "it was removed; use opcontrol --reset to empty a session, --save=NAME to keep it");
			file->totals[i] = 0;
		}
	} else {
		(void)!open_store(count); /* after an error the next stack tries again */
	}
	return true;
}

void opd_stack_file_forget_missing(struct opd_count *count)
{
	if (!is_there(count))
		opd_stack_file_forget(count);
}

int opd_stack_file_renew(struct opd_count *count)
{
	uint64_t dir_bytes;
	int err;

	opd_stack_file_close(count);
	err = op_file_copy_below(count->session_fd, OPD_STACKS_PATH, OP_SESSION_TMP_STACKS);
	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	err = op_file_publish_below(count->session_fd, OP_SESSION_TMP_STACKS, OPD_STACKS_PATH, &dir_bytes);
	if (err)
		op_file_unlink_below(count->session_fd, OP_SESSION_TMP_STACKS);
	else
		count->stacks.changed = true;
	return err;
}

void opd_stack_file_drop_pages(struct opd_count *count)
{
	struct opd_stack_file *file = &count->stacks;

	if (file->store && file->last_ns)
		op_stacks_drop_pages(file->store);
	file->last_ns = 0;
}
