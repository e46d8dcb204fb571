/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/task_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/events/event_list.h"
#include "libop/perf/chain.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/capture/ring_memory.h"

#define SPARE_DESCRIPTORS 256u /* for sample files and everything else */

/* ---- the source ---- */

static void task_fds(const struct opd_cpu *cpu, struct opd_source_fds *ret_fds)
{
	*ret_fds = (struct opd_source_fds){
		.samples = { cpu->pair.anchor_fds[0], cpu->pair.anchor_fds[1] },
		.stacks = { -1, -1 },
		.sideband = cpu->sideband_fd,
	};
	if (opd_cpu_has_stack_pair(cpu))
		memcpy(ret_fds->stacks, cpu->stack_pair.anchor_fds, sizeof(ret_fds->stacks));
}

static uint64_t task_pending(const struct opd_cpu *cpu)
{
	return op_ring_pending(&cpu->pair.rings[0]) + (cpu->in_place ? 0 : op_ring_pending(&cpu->pair.rings[1])) +
	       opd_cpu_stacks_pending(cpu);
}

static struct op_ring *task_read_ring(struct opd_cpu *cpu)
{
	return cpu->in_place ? &cpu->pair.rings[0] : op_ring_pair_read_ring(&cpu->pair);
}

static struct op_ring *task_stack_ring(struct opd_cpu *cpu)
{
	if (!opd_cpu_has_stack_pair(cpu))
		return NULL;
	return cpu->in_place ? &cpu->stack_pair.rings[0] : op_ring_pair_read_ring(&cpu->stack_pair);
}

const struct opd_source opd_source_tasks = {
	.is_host = true,
	.epoll_events = EPOLLIN,
	.fds = task_fds,
	.pending = task_pending,
	.read_ring = task_read_ring,
	.stack_ring = task_stack_ring,
};

/* Every record up to here was written before the side band is read. */
static int note_head(struct opd_cpu *cpu)
{
	op_ring_begin(&cpu->pair.rings[0]);
	cpu->frozen_head = cpu->pair.rings[0].head;
	if (opd_cpu_has_stack_pair(cpu)) {
		op_ring_begin(&cpu->stack_pair.rings[0]);
		cpu->frozen_stacks_head = cpu->stack_pair.rings[0].head;
	}
	return 0;
}

static const struct opd_source source_in_place = {
	.is_host = true,
	.epoll_events = EPOLLIN,
	.fds = task_fds,
	.pending = task_pending,
	.swap = note_head,
	.read_ring = task_read_ring,
	.stack_ring = task_stack_ring,
};

static OP_PRINTF(2, 3) void explain(char **ret_why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_why, format, args) < 0)
		*ret_why = NULL;
	va_end(args);
}

/* ---- rings ---- */

static int open_pair(const struct opd_cpu *cpu, size_t ring_bytes, size_t watermark_bytes, struct op_ring_pair *pair)
{
	if (!cpu->in_place)
		return op_ring_pair_open_own((int)cpu->cpu, ring_bytes, watermark_bytes, pair);
	pair->anchor_fds[1] = -1;
	return op_ring_open_own((int)cpu->cpu, 2 * ring_bytes, 2 * watermark_bytes, &pair->anchor_fds[0], &pair->rings[0]);
}

static int open_rings_of(const struct opd_capture *capture, struct opd_cpu *cpu)
{
	int err = open_pair(cpu, capture->ring_bytes, capture->watermark_bytes, &cpu->pair);

	if (!err && capture->stack_ring_bytes)
		err = open_pair(cpu, capture->stack_ring_bytes, capture->stack_ring_bytes / 4, &cpu->stack_pair);
	return err ? err
		   : op_ring_open_own((int)cpu->cpu, capture->sideband_bytes, capture->sideband_bytes / 4, &cpu->sideband_fd,
				      &cpu->sideband);
}

static int open_rings(struct opd_capture *capture)
{
	int err = 0;

	capture->watermark_bytes = capture->ring_bytes / 4;
	for (size_t c = 0; c < capture->nr_cpus && !err; c++)
		err = open_rings_of(capture, &capture->cpus[c]);
	for (size_t c = 0; c < capture->nr_cpus && err; c++)
		opd_cpu_close_rings(&capture->cpus[c], capture->nr_events);
	return err;
}

/* Rings as large as the memory allows that this user may still lock. */
static int open_rings_that_fit(struct opd_capture *capture, char **ret_why)
{
	const struct opd_ring_sizes sizes = { &capture->ring_bytes, &capture->stack_ring_bytes, &capture->sideband_bytes };
	int err;

	opd_ring_memory_raise();
	do
		err = open_rings(capture);
	while ((err == -EPERM || err == -ENOMEM) && opd_ring_memory_shrink(&sizes));
	if (err == -EPERM)
		*ret_why = opd_ring_memory_explain();
	return err;
}

/*
 * The rings that are open, if any, decide. Events are opened later: the rate of STACKS may still
 * change.
 */
static void plan_rings(struct opd_capture *capture, struct op_event *events, const struct opd_task_options *options)
{
	bool are_open = capture->ring_bytes;
	struct opd_load load = {
		.nr_cpus = capture->nr_cpus,
		.events = events,
		.nr_events = capture->nr_opened,
		.wait_ns = OPD_PLAN_WAIT_NS,
		.visit_ns = options->visit_ns,
		.callgraph = capture->callgraph,
		.ring_bytes = capture->ring_bytes,
		.stack_ring_bytes = capture->stack_ring_bytes,
		.stack_ring_max_use = OPD_STACK_RING_MAX_USE,
	};

	opd_plan_make(&load, &capture->plan);
	opd_plan_apply(&capture->plan, events, capture->nr_opened);
	capture->ring_bytes = capture->plan.ring_bytes;
	capture->stack_ring_bytes = capture->plan.stack_ring_bytes;
	if (!are_open)
		capture->sideband_bytes = capture->plan.sideband_bytes;
}

static int make_online(struct opd_capture *capture, bool in_place)
{
	uint32_t *online;
	size_t nr_online;
	int err = opd_cpus_read(OPD_CPUS_ONLINE, &online, &nr_online);

	if (err)
		return err;
	capture->has_tasks = true;
	err = opd_capture_make_cpus(capture, in_place ? &source_in_place : &opd_source_tasks, online, nr_online);
	for (size_t c = 0; !err && c < nr_online; c++)
		capture->cpus[c].in_place = in_place;
	free(online);
	return err;
}

int opd_capture_open_tasks(struct opd_capture *capture, struct op_event *events, size_t nr_events,
			   const struct opd_task_options *options, char **ret_why)
{
	char *why = NULL;
	uint64_t limit = 0, need;
	int err;

	*capture = (struct opd_capture){
		.events = events,
		.nr_events = nr_events,
		.nr_opened = op_event_nr_opened(events, nr_events),
		.callgraph = options->callgraph,
		.max_stack = op_chain_max_stack(),
		.has_format_lost = true,
		.enabled = options->on_exec,
	};
	err = make_online(capture, options->nr_tasks * capture->nr_opened > OPD_TASK_SWAPPED_MAX);
	if (err)
		goto fail;
	need = capture->nr_cpus * (5 + options->nr_tasks * (1 + capture->nr_opened)) + SPARE_DESCRIPTORS;
	err = opd_capture_raise_descriptors(need, &limit);
	if (err == -EMFILE)
		explain(&why,
			"%zu threads on %zu CPUs need %" PRIu64 " file descriptors and the limit is %" PRIu64
			": raise ulimit -n",
			options->nr_tasks, capture->nr_cpus, need, limit);
	if (err)
		goto fail;
	plan_rings(capture, events, options);
	err = open_rings_that_fit(capture, &why);
	if (err)
		goto fail;
	plan_rings(capture, events, options);
	for (size_t c = 0; c < capture->nr_cpus; c++)
		capture->cpus[c].online = true;
	capture->nr_online = capture->nr_cpus;
	return 0;

fail:
	capture->nr_online = capture->nr_cpus;
	opd_capture_close(capture);
	if (!why)
		explain(&why, "cannot open the rings: %s", strerror(-err));
	*ret_why = why;
	return err;
}

/* ---- events ---- */

static int keep(struct opd_task_fds *tasks, int fd, uint64_t id)
{
	int *fds = reallocarray(tasks->fds, tasks->nr + 1, sizeof(*fds));
	uint64_t *ids;

	if (fds)
		tasks->fds = fds;
	ids = fds ? reallocarray(tasks->ids, tasks->nr + 1, sizeof(*ids)) : NULL;
	if (!ids)
		return -ENOMEM;
	tasks->ids = ids;
	fds[tasks->nr] = fd;
	ids[tasks->nr++] = id;
	return 0;
}

/* Only a privileged user is told of namespaces and of the kernel's own code. */
static int open_tracking(struct opd_capture *capture, pid_t task, int cpu)
{
	struct perf_event_attr attr;
	int fd;

	opd_capture_tracking_attr(capture, 0, &attr);
	attr.inherit = 1;
	attr.exclude_kernel = 1;
	fd = opd_capture_open_event(capture, &attr, task, cpu);
	if (fd != -EACCES && fd != -EPERM)
		return fd;
	attr.namespaces = attr.ksymbol = 0;
	return opd_capture_open_event(capture, &attr, task, cpu);
}

static int add_tracking(struct opd_capture *capture, struct opd_cpu *cpu, pid_t task)
{
	int fd = open_tracking(capture, task, (int)cpu->cpu), err;

	if (fd < 0)
		return fd;
	err = op_ring_direct(fd, cpu->sideband_fd);
	if (!err)
		err = keep(&cpu->tracking, fd, 0);
	if (err)
		close(fd);
	return err;
}

static int add_sampling(struct opd_capture *capture, const struct opd_task_options *options, struct opd_cpu *cpu, size_t index,
			pid_t task)
{
	struct opd_event *event = &cpu->events[index];
	struct perf_event_attr attr;
	uint64_t id;
	int fd, err;

	opd_capture_sampling_attr(capture, &capture->events[index], &attr);
	attr.inherit = 1;
	attr.enable_on_exec = options->on_exec;
	fd = opd_capture_open_event(capture, &attr, task, (int)cpu->cpu);
	if (fd < 0)
		return fd;
	err = op_sys_ioctl(fd, PERF_EVENT_IOC_ID, &id);
	if (!err)
		err = op_ring_pair_attach(opd_cpu_pair_of(cpu, &capture->events[index]), fd);
	if (!err && event->fd >= 0)
		err = keep(&event->more, fd, id);
	if (err) {
		close(fd);
		return err;
	}
	if (event->fd < 0) {
		event->fd = fd;
		event->id = id;
	}
	return 0;
}

/* The side band comes first: it reports the children that inherit the sampling events. */
int opd_capture_add_task(struct opd_capture *capture, const struct opd_task_options *options, pid_t task, char **ret_why)
{
	int err = 0;

	for (size_t c = 0; c < capture->nr_cpus && !err; c++)
		err = add_tracking(capture, &capture->cpus[c], task);
	if (err && err != -ESRCH)
		explain(ret_why, "cannot watch process %d: %s", (int)task, strerror(-err));
	for (size_t e = 0; e < capture->nr_opened && !err; e++) {
		for (size_t c = 0; c < capture->nr_cpus && !err; c++)
			err = add_sampling(capture, options, &capture->cpus[c], e, task);
		if (err && err != -ESRCH)
			*ret_why = op_event_explain(&capture->events[e], err);
	}
	return err;
}
