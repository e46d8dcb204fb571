/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/runtimes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "pipeline/readers/far_memory.h"
#include "pipeline/runtimes/java.h"
#include "pipeline/runtimes/node.h"

/* A library that comes later is looked for so often. */
#define LOOK_AGAIN_NS ((uint64_t)OP_NS_PER_S)
/*
 * A process may run execve just before it is looked at, and opd has not seen it yet. Its memory is
 * read after the records of all CPUs were read once more: then the address space is known to be
 * another one.
 */
#define TURNS_TO_SETTLE 2u

static const struct opd_runtime_kind *const kinds[] = { &opd_runtime_java, &opd_runtime_node };

struct process {
	struct op_hlink link;
	uint32_t pid;
	uint64_t from_ns;                    /* of its address space */
	const struct opd_runtime_kind *kind; /* NULL: it has no runtime */
	void *own;                           /* of the kind */
	uint64_t who;                        /* opd_far_memory_who, of one with a kind */
	uint32_t nr_turns;                   /* since then */
	uint32_t changes;                    /* opd_process_changes when it was looked at */
	uint64_t looked_ns;
	uint64_t waits_turn; /* the last one in which there was no budget for it */
	struct process *next; /* in the list of all */
};

struct opd_runtimes {
	struct opd_runtime_host host;
	struct op_htable processes;
	struct process *all;
	bool has_waited;
	uint64_t turn; /* counts them, from 1 on */
	uint64_t wanted; /* a bit for each enum op_runtime */
	uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS];
	/* of the walk */
	enum op_runtime runtime; /* the first that it met */
	enum opd_runtime_fault fault;
};

int opd_runtimes_new(struct opd_lookers *lookers, uint64_t wanted, struct opd_runtimes **ret_runtimes)
{
	struct opd_runtimes *runtimes = calloc(1, sizeof(*runtimes));

	if (!runtimes)
		return -ENOMEM;
	runtimes->host.lookers = lookers;
	runtimes->wanted = wanted;
	runtimes->turn = 1;
	runtimes->host.names = opd_runtime_names_new();
	if (!runtimes->host.names) {
		free(runtimes);
		return -ENOMEM;
	}
	*ret_runtimes = runtimes;
	return 0;
}

static void end_runtime(struct process *process)
{
	if (process->kind)
		process->kind->end(process->own);
	process->kind = NULL;
	process->own = NULL;
}

void opd_runtimes_free(struct opd_runtimes *runtimes)
{
	if (!runtimes)
		return;
	for (struct process *process = runtimes->all, *next; process; process = next) {
		next = process->next;
		end_runtime(process);
		free(process);
	}
	op_htable_free(&runtimes->processes);
	opd_runtime_names_free(runtimes->host.names);
	free(runtimes);
}

struct opd_runtime_names *opd_runtimes_names(struct opd_runtimes *runtimes)
{
	return runtimes->host.names;
}

/* ---- which runtime a process has ---- */

struct search {
	const struct opd_resolver *resolver;
	uint64_t wanted;
	const struct opd_runtime_kind *kind;
	uint64_t start, cookie;
	bool is_library;
};

/*
 * Of several images a library is taken, since the executable then has little more than main(), and
 * the lowest mapping of those. The kernel reports mappings with code only.
 */
static void visit_mapping(const struct opd_mapping *mapping, void *arg)
{
	struct search *search = arg;
	const struct op_dcookie_row *row;
	const char *slash;
	bool is_library;

	if (mapping->region_end || mapping->to_ns != UINT64_MAX)
		return;
	row = op_dcookie_row(search->resolver->table, mapping->cookie);
	slash = row->id.name.kind == OP_IMAGE_FILE ? strrchr(row->id.name.name, '/') : NULL;
	for (size_t i = 0; slash && i < op_array_size(kinds); i++) {
		if (!(search->wanted >> kinds[i]->runtime & 1) || !kinds[i]->is_image(slash + 1))
			continue;
		is_library = strstr(slash, ".so");
		if (search->kind && (search->is_library > is_library ||
				     (search->is_library == is_library && search->start < mapping->start)))
			continue;
		search->is_library = is_library;
		search->kind = kinds[i];
		search->start = mapping->start;
		search->cookie = mapping->cookie;
	}
}

static void look(struct opd_runtimes *runtimes, const struct opd_resolver *resolver, struct process *process,
		 const struct opd_mm *mm)
{
	struct search search = { .resolver = resolver, .wanted = runtimes->wanted };

	process->changes = opd_process_changes(&resolver->processes, process->pid);
	process->looked_ns = op_now_ns();
	opd_mapset_visit(mm->maps, visit_mapping, &search);
	if (!search.kind || opd_far_memory_who(process->pid, &process->who) < 0)
		return;
	process->nr_turns = 0;
	process->own = search.kind->begin(&runtimes->host, &(struct opd_runtime_process){
								   .pid = process->pid,
								   .user_ns = mm->mount_view ? mm->mount_view->user_ns : 0,
								   .image_address = search.start,
								   .image_cookie = search.cookie,
								   .who = process->who,
							   });
	if (!process->own)
		return;
	process->kind = search.kind;
	runtimes->stats[search.kind->runtime][OP_RUNTIME_STAT_processes]++;
}

static struct process *find(const struct opd_runtimes *runtimes, uint32_t pid)
{
	for (struct op_hlink *link = op_htable_first(&runtimes->processes, op_hash_u64(pid)); link; link = op_htable_next(link)) {
		struct process *process = op_container_of(link, struct process, link);

		if (process->pid == pid)
			return process;
	}
	return NULL;
}

static struct process *add(struct opd_runtimes *runtimes, uint32_t pid)
{
	struct process *process;

	if (runtimes->processes.nr_entries >= OPD_RUNTIME_PROCESSES_MAX)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	if (op_htable_insert(&runtimes->processes, &process->link, op_hash_u64(pid)) < 0) {
		free(process);
		return NULL;
	}
	process->next = runtimes->all;
	runtimes->all = process;
	return process;
}

/* The process with its runtime; NULL: it has none. Only the newest address space can be read. */
static struct process *runtime_of(struct opd_runtimes *runtimes, const struct opd_resolver *resolver,
				  const struct opd_runtime_frame *frame)
{
	const struct opd_process *known = opd_process_find(&resolver->processes, frame->pid);
	const struct opd_mm *mm = known ? opd_process_mm_at(known, frame->time_ns) : NULL;
	struct process *process = find(runtimes, frame->pid);
	bool is_new = !process;

	if (!mm || mm != known->mm)
		return NULL;
	if (is_new)
		process = add(runtimes, frame->pid);
	if (!process)
		return NULL;
	if (is_new || process->from_ns != mm->from_ns) {
		end_runtime(process);
		process->from_ns = mm->from_ns;
		look(runtimes, resolver, process, mm);
	} else if (!process->kind && process->changes != opd_process_changes(&resolver->processes, frame->pid) &&
		   op_now_ns() - process->looked_ns > LOOK_AGAIN_NS) {
		look(runtimes, resolver, process, mm);
	}
	return process->kind ? process : NULL;
}

/* ---- walks ---- */

void opd_runtimes_begin_walk(struct opd_runtimes *runtimes)
{
	runtimes->runtime = OP_RUNTIME_none;
	runtimes->fault = OPD_RUNTIME_NO_FAULT;
}

enum opd_runtime_how opd_runtimes_ask(struct opd_runtimes *runtimes, const struct opd_resolver *resolver,
				      const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer)
{
	enum opd_runtime_fault fault = OPD_RUNTIME_NO_FAULT;
	struct process *process = runtime_of(runtimes, resolver, frame);
	enum opd_runtime_how how;

	ret_answer->nr_functions = 0;
	if (!process)
		return OPD_RUNTIME_GUESS;
	runtimes->host.is_spent = false;
	if (process->nr_turns < TURNS_TO_SETTLE) {
		runtimes->has_waited |= frame->may_wait;
		return frame->may_wait ? OPD_RUNTIME_WAIT : OPD_RUNTIME_GUESS;
	}
	how = process->kind->ask(process->own, frame, ret_answer, &fault);
	runtimes->has_waited |= how == OPD_RUNTIME_WAIT;
	if (how == OPD_RUNTIME_WAIT && runtimes->host.is_spent)
		process->waits_turn = runtimes->turn;
	if (how != OPD_RUNTIME_GUESS || ret_answer->nr_functions || fault)
		runtimes->runtime = process->kind->runtime;
	runtimes->fault = fault > runtimes->fault ? fault : runtimes->fault;
	return how;
}

void opd_runtimes_count(struct opd_runtimes *runtimes, bool is_complete, bool is_cut)
{
	static const enum op_runtime_stat stats[] = {
		[OPD_RUNTIME_NAMELESS] = OP_RUNTIME_STAT_unnamed,
		[OPD_RUNTIME_MOVED] = OP_RUNTIME_STAT_moved,
		[OPD_RUNTIME_FAULT] = OP_RUNTIME_STAT_fault,
		[OPD_RUNTIME_NO_CALLER] = OP_RUNTIME_STAT_none,
	};
	enum op_runtime_stat stat = stats[runtimes->fault];

	if (runtimes->runtime == OP_RUNTIME_none)
		return;
	if (runtimes->fault == OPD_RUNTIME_NO_FAULT)
		stat = is_complete ? OP_RUNTIME_STAT_complete : is_cut ? OP_RUNTIME_STAT_deep : OP_RUNTIME_STAT_none;
	runtimes->stats[runtimes->runtime][OP_RUNTIME_STAT_samples]++;
	runtimes->stats[runtimes->runtime][stat]++;
}

void opd_runtimes_add_counts(const struct opd_runtimes *runtimes, uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS])
{
	for (size_t i = 0; i < OP_NR_RUNTIMES; i++) {
		for (size_t k = 0; k < OP_NR_RUNTIME_STATS; k++)
			stats[i][k] += runtimes->stats[i][k];
		stats[i][OP_RUNTIME_STAT_refused] += runtimes->host.nr_refused[i];
	}
}

bool opd_runtimes_can_ask(const struct opd_runtimes *runtimes, uint32_t pid)
{
	const struct process *process = find(runtimes, pid);

	return !runtimes->host.is_out && !(process && process->waits_turn == runtimes->turn);
}

/* What changed its user is looked at again. */
static void settle(struct opd_runtimes *runtimes, struct process *process)
{
	uint64_t who;

	if (process->nr_turns < TURNS_TO_SETTLE)
		process->nr_turns++;
	if (!runtimes->host.has_changed || !process->kind)
		return;
	if (opd_far_memory_who(process->pid, &who) < 0 || who == process->who)
		return;
	end_runtime(process);
	process->from_ns = UINT64_MAX;
}

bool opd_runtimes_turn(struct opd_runtimes *runtimes, const struct opd_resolver *resolver)
{
	bool has_waited = runtimes->has_waited;

	runtimes->has_waited = false;
	runtimes->host.is_out = false;
	runtimes->turn++;
	for (struct process **at = &runtimes->all; *at;) {
		struct process *process = *at;

		if (opd_process_find(&resolver->processes, process->pid)) {
			settle(runtimes, process);
			at = &process->next;
			continue;
		}
		*at = process->next;
		op_htable_remove(&runtimes->processes, &process->link);
		end_runtime(process);
		free(process);
	}
	runtimes->host.has_changed = false;
	return has_waited;
}
