/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/drive/pipeline.h"
#include "pipeline/drive/sources.h"
#include "pipeline/files/lookers.h"
#include "pipeline/resolve/jit_lookup.h"
#include "pipeline/resolve/proc_scan.h"

#define PRUNE_INTERVAL_NS  OP_NS_PER_S
#define LEDGER_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)
#define TRIM_INTERVAL_NS   (5u * (uint64_t)OP_NS_PER_S)
/* between turns when nothing happens, at most, and between looks whether something does */
#define QUIET_NS           (5u * (uint64_t)OP_NS_PER_S)
#define QUIET_LOOK_NS      OP_NS_PER_S
#define TRIM_SPACES        256 /* address spaces that were freed since the last time */
/* of the sources of records, in front of those of the program */
#define SOURCE_TAG(i)      (OPD_LOOP_HOST_TAG - 1 - (i))
#define EVENTS_PER_WAIT    64

/* ---- what it waits for ---- */

static int watch(struct opd_loop *loop, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = { .events = events, .data.u64 = tag };

	return fd >= 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int opd_loop_watch(struct opd_loop *loop, int fd, uint64_t tag)
{
	return watch(loop, fd, EPOLLIN, tag);
}

/* The tag of a ring pair is the index of its CPU, that of its side band is that + nr_cpus. */
int opd_loop_watch_cpu(struct opd_loop *loop, size_t index)
{
	const struct opd_capture *capture = &loop->pipeline->capture;
	const struct opd_cpu *cpu = &capture->cpus[index];
	uint32_t events = cpu->source->epoll_events;
	struct opd_source_fds fds;
	int err = 0;

	cpu->source->fds(cpu, &fds);
	for (size_t i = 0; !err && i < op_array_size(fds.samples); i++)
		err = watch(loop, fds.samples[i], events, index);
	for (size_t i = 0; !err && i < op_array_size(fds.stacks); i++)
		err = watch(loop, fds.stacks[i], events, index);
	return err ? err : watch(loop, fds.sideband, events, capture->nr_cpus + index);
}

int opd_loop_open(struct opd_loop *loop)
{
	const struct opd_capture *capture = &loop->pipeline->capture;
	int err = 0;

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	for (size_t i = 0; i < opd_sources_nr(loop->pipeline) && !err; i++)
		err = opd_loop_watch(loop, opd_source_fd(loop->pipeline, i), SOURCE_TAG(i));
	for (size_t i = 0; i < capture->nr_cpus && !err; i++)
		if (capture->cpus[i].online)
			err = opd_loop_watch_cpu(loop, i);
	return err;
}

void opd_loop_close(struct opd_loop *loop)
{
	if (loop->epoll_fd > 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

/* ---- what is forgotten ---- */

/* After a storm of processes the allocator and mapped sample files hold unused memory. */
static void give_memory_back(struct opd_loop *loop, uint64_t now_ns)
{
	struct opd_pipeline *pipeline = loop->pipeline;
	uint64_t nr_freed = pipeline->resolver.processes.nr_freed;
	bool many = nr_freed - loop->nr_freed >= TRIM_SPACES;

	if ((!many && !loop->trim_again) || now_ns < loop->next_trim_ns)
		return;
	loop->trim_again = many; /* the last of a storm are freed later */
	op_sys_trim_memory();
	opd_count_drop_idle_pages(&pipeline->count);
	loop->nr_freed = nr_freed;
	loop->next_trim_ns = now_ns + TRIM_INTERVAL_NS;
}

/* A module may take the place of another one before any address lies outside all modules. */
static void refresh_modules(struct opd_kernel_map *map, uint64_t now_ns)
{
	static struct op_rate rate;

	if (map->text_start && opd_kernel_map_refresh(map, now_ns) < 0)
		op_log_failure(&rate, now_ns, "reading the list of modules", -ENOMEM);
}

/* What the resolver may forget: samples from before the horizon have been read. */
static void prune(struct opd_loop *loop, uint64_t now_ns)
{
	struct opd_pipeline *pipeline = loop->pipeline;
	struct opd_resolver *resolver = &pipeline->resolver;

	opd_jit_look_at_ended(&resolver->processes, resolver->now_ns, opd_proc_gone_ns);
	opd_processes_prune(&resolver->processes, loop->horizon_ns, opd_proc_gone_ns);
	give_memory_back(loop, now_ns);
	refresh_modules(&resolver->kernel, now_ns);
	opd_kernel_map_prune(&resolver->kernel, loop->horizon_ns);
	opd_forget_refused(resolver);
	opd_jit_look_at_waiting(&resolver->processes, resolver->now_ns, op_now_ns() - OPD_JIT_LOOK_NS);
	opd_jit_write_if_due(resolver->jit, &pipeline->count, now_ns);
}

/* ---- the turn ---- */

/*
 * After a turn, all samples from before the last turn have been read, late commits included. The
 * time when the last turn began is therefore the horizon of the resolver, unless an older sample
 * waits in a source.
 */
static void move_horizon(struct opd_loop *loop, uint64_t last_begin_ns)
{
	struct opd_pipeline *pipeline = loop->pipeline;

	loop->horizon_ns = op_min_u64(last_begin_ns, opd_sources_oldest_ns(pipeline));
	/* In each turn: a set of mappings then remembers only what a process maps in this time. */
	pipeline->resolver.processes.horizon_ns = loop->horizon_ns;
}

static void turn(struct opd_loop *loop)
{
	const struct opd_chores *chores = loop->chores;
	struct opd_pipeline *pipeline = loop->pipeline;
	struct opd_lookers *lookers = pipeline->resolver.processes.mount_views.lookers;
	uint64_t now_ns = op_now_ns(), last_begin_ns = loop->begin_ns;

	if (chores->look)
		chores->look(loop->host, now_ns);
	if (!loop->is_watched && now_ns - loop->begin_ns < QUIET_NS && opd_visits_can_wait(loop->visits)) {
		loop->next_ns = now_ns + op_max_u64(loop->visit_ns, QUIET_LOOK_NS);
		return;
	}
	loop->begin_ns = now_ns;
	loop->is_watched = false;
	if (chores->begin)
		chores->begin(loop->host, now_ns);
	if (lookers)
		opd_lookers_watch(lookers);
	opd_visit_all(loop->visits);
	opd_sources_turn(pipeline);
	if (pipeline->count.cookie_file)
		opd_cookie_file_flush(pipeline->count.cookie_file, now_ns);
	if (now_ns >= loop->next_prune_ns) {
		prune(loop, now_ns);
		if (chores->prune)
			chores->prune(loop->host, now_ns);
		loop->next_prune_ns = now_ns + PRUNE_INTERVAL_NS;
	}
	move_horizon(loop, last_begin_ns);
	opd_count_end_turn(&pipeline->count, now_ns, loop->horizon_ns);
	if (chores->end)
		chores->end(loop->host, now_ns);
	if (now_ns >= loop->next_ledger_ns) {
		chores->ledger(loop->host);
		loop->next_ledger_ns = now_ns + LEDGER_INTERVAL_NS;
	}
	loop->next_ns = now_ns + loop->visit_ns;
}

static int wait_ms(const struct opd_loop *loop)
{
	uint64_t now_ns = op_now_ns();

	return now_ns >= loop->next_ns ? 0 : (int)((loop->next_ns - now_ns) / OP_NS_PER_MS + 1);
}

void opd_loop_run(struct opd_loop *loop)
{
	struct opd_capture *capture = &loop->pipeline->capture;
	struct opd_visits *visits = loop->visits;

	while (!loop->quit) {
		struct epoll_event events[EVENTS_PER_WAIT];
		int nr = epoll_wait(loop->epoll_fd, events, EVENTS_PER_WAIT, wait_ms(loop));
		bool sideband = false;

		for (int i = 0; i < nr && !loop->quit; i++) {
			uint64_t tag = events[i].data.u64;

			if (tag >= OPD_LOOP_HOST_TAG)
				loop->chores->event(loop->host, tag);
			else if (tag > SOURCE_TAG(opd_sources_nr(loop->pipeline)))
				opd_source_turn(loop->pipeline, SOURCE_TAG(0) - tag);
			else if (tag < capture->nr_cpus)
				opd_visits_add_woken(visits, &capture->cpus[tag]);
			else
				sideband = true;
		}
		if (loop->quit)
			return;
		if (sideband && !visits->nr_due)
			opd_visit_sideband(visits);
		opd_visits_run(visits);
		if (op_now_ns() >= loop->next_ns)
			turn(loop);
	}
}
