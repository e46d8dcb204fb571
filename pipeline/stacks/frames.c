/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/frames.h"

#include <elf.h>
#include <errno.h>

#include "pipeline/runtimes/interpreters.h"

static const enum op_stack_end walk_ends[OPD_NR_WALK_ENDS] = {
#define X(name) [OPD_WALK_##name] = OP_STACK_END_##name,
	OPD_WALK_ENDS(X)
#undef X
};

struct finder {
	struct opd_stack_walk *walk;
	struct opd_stack *stack; /* walk->stack */
	const struct opd_stack_lookup *lookup;
	const struct op_sample *sample;
	struct op_sample at; /* the sample, with the address that is looked up */
	const struct opd_resolved *of;
	size_t nr_in_chain; /* addresses of the kernel's code, for its limit */
	bool is_exec, is_end; /* the kernel replaces the memory, or takes it down */
};

/* ---- tables ---- */

/* A mapping through which the file of an image can be opened. */
static struct opd_table_source source_of(const struct opd_resolver *resolver, const struct op_sample *at)
{
	const struct opd_process *process = opd_process_find(&resolver->processes, at->pid);
	struct opd_table_source source = { 0 };
	const struct opd_mapping *mapping;
	const struct opd_mm *mm;

	if (!process)
		return source;
	mm = opd_process_mm_at(process, at->time_ns);
	mapping = opd_mapset_find(mm->maps, at->ip, at->time_ns);
	if (!mapping)
		return source;
	return (struct opd_table_source){
		.pid = at->pid,
		.user_ns = mm->mount_view ? mm->mount_view->user_ns : 0,
		.start = mapping->start,
		.end = mapping->end,
	};
}

static enum opd_walk_code table_of(struct finder *finder, const struct opd_resolved *resolved,
				   const struct op_row_table **ret_table)
{
	static const struct opd_table_source unknown;
	struct opd_tables *tables = finder->lookup->tables;
	enum opd_walk_code code;

	if (!tables)
		return OPD_CODE_NO_TABLE;
	code = opd_tables_find(tables, resolved->location.cookie, &unknown, ret_table);
	if (op_likely(code != OPD_CODE_PENDING))
		return code;
	finder->walk->pending_cookie = resolved->location.cookie;
	finder->walk->pending_source = source_of(finder->lookup->resolver, &finder->at);
	return opd_tables_find(tables, finder->walk->pending_cookie, &finder->walk->pending_source, ret_table);
}

/* ---- frames ---- */

static bool is_nowhere(const struct opd_resolved *resolved)
{
	return resolved->unattributed && !resolved->is_kernel;
}

/* Adds the frame at an address. False: it is in no code, or there is no room or no memory. */
static bool add(struct finder *finder, uint64_t address, enum op_cpumode mode)
{
	struct opd_stack *stack = finder->stack;
	struct opd_resolved *frame = &stack->frames[stack->nr_frames];
	bool is_leaf = !stack->nr_frames;

	if (stack->nr_frames == OPD_STACK_FRAMES_MAX)
		return false;
	if (is_leaf && address == finder->sample->ip && mode == finder->sample->mode) {
		*frame = *finder->of;
	} else {
		finder->at.ip = address;
		finder->at.mode = mode;
		if (opd_resolve_caller(finder->lookup->resolver, &finder->at, frame) < 0) {
			finder->walk->no_memory = true;
			return false;
		}
	}
	if (is_nowhere(frame))
		return false;
	stack->nr_frames++;
	return true;
}

/* Behind the call, or behind the first byte of code that did not call. */
static void set_behind_calls(struct opd_stack *stack)
{
	for (size_t i = 1; i < stack->nr_frames; i++)
		if (!stack->frames[i].runtime_name)
			stack->frames[i].location.offset++;
}

static void note_function(struct opd_stack *stack, const struct op_row_table *table, uint64_t offset)
{
	const struct op_row_function *function = table ? op_row_table_function(table, offset) : NULL;

	if (function)
		stack->leaf_start = function->start;
}

static void see_runtime(const struct finder *finder, uint64_t cookie, const struct op_row_table *table)
{
	struct opd_interpreters *interpreters = finder->lookup->interpreters;

	if (interpreters)
		opd_interpreters_see_image(interpreters, cookie, &op_dcookie_row(finder->lookup->resolver->table, cookie)->id,
					   table);
}

static enum opd_walk_code find(void *arg, uint64_t address, struct opd_walk_frame *frame, const struct op_row_table **ret_table)
{
	struct finder *finder = arg;
	struct opd_stack *stack = finder->stack;
	const struct opd_resolved *resolved = &stack->frames[stack->nr_frames];
	enum opd_walk_code code;

	if (!add(finder, address, OP_CPUMODE_USER))
		return OPD_CODE_NONE;
	finder->at.ip = address;
	frame->index = stack->nr_frames - 1;
	frame->cookie = resolved->location.cookie;
	frame->position = resolved->location.offset;
	code = table_of(finder, resolved, ret_table);
	if (*ret_table && (*ret_table)->nr_words)
		see_runtime(finder, frame->cookie, *ret_table);
	if (stack->nr_frames == 1)
		note_function(stack, *ret_table, frame->position);
	return code;
}

/*
 * The functions of a runtime take the place of the last frame. Its native position stays known to
 * the innermost of them.
 */
static void set_functions(struct opd_stack *stack, struct opd_runtime_answer *answer)
{
	const struct opd_resolved native = stack->frames[stack->nr_frames - 1];
	size_t room = OPD_STACK_FRAMES_MAX - stack->nr_frames + 1;

	answer->nr_functions = op_min_u64(answer->nr_functions, room);
	stack->nr_frames--;
	for (size_t i = 0; i < answer->nr_functions; i++) {
		struct opd_resolved *frame = &stack->frames[stack->nr_frames++];

		*frame = native;
		frame->runtime_name = answer->functions[i].name;
		frame->is_inlined = i + 1 < answer->nr_functions;
		frame->native_offset = native.location.offset;
		frame->location.offset = answer->functions[i].line;
	}
}

/* The table of an image that need not be in the stack, for a runtime. */
static bool find_table(void *arg, uint64_t cookie, uint64_t address, const struct op_row_table **ret_table)
{
	struct finder *finder = arg;
	struct op_sample at = *finder->sample;
	struct opd_table_source source;

	*ret_table = NULL;
	if (!finder->lookup->tables)
		return true;
	at.ip = address;
	source = source_of(finder->lookup->resolver, &at);
	return opd_tables_find(finder->lookup->tables, cookie, &source, ret_table) != OPD_CODE_PENDING;
}

static enum opd_runtime_how ask(void *arg, const struct opd_runtime_frame *asked, struct opd_runtime_answer *ret_answer)
{
	struct finder *finder = arg;
	const struct opd_stack_lookup *lookup = finder->lookup;
	struct opd_runtime_frame frame = *asked;
	enum opd_runtime_how how;

	frame.pid = finder->sample->pid;
	frame.time_ns = finder->sample->time_ns;
	frame.may_wait = lookup->may_wait;
	frame.cookie = finder->stack->frames[finder->stack->nr_frames - 1].location.cookie;
	frame.find_table = find_table;
	frame.find_arg = finder;
	frame.is_region = finder->stack->frames[finder->stack->nr_frames - 1].is_region;
	how = opd_runtimes_ask(lookup->runtimes, lookup->resolver, &frame, ret_answer);
	finder->walk->awaits_runtime |= how == OPD_RUNTIME_WAIT;
	if (ret_answer->nr_functions)
		set_functions(finder->stack, ret_answer);
	return how;
}

/* ---- the parts of a stack ---- */

static void note_memory_end(struct finder *finder, uint64_t address)
{
	const struct opd_memory_end *end = opd_kernel_map_memory_end(&finder->lookup->resolver->kernel, address);

	finder->is_exec |= end && end->is_exec;
	finder->is_end |= end && !end->is_exec;
}

/* The kernel's frames. False: there are more than the kernel or this stack has room for. */
static bool add_kernel(struct finder *finder, struct op_chain *chain, struct op_chain_frame *ret_user, bool *ret_has_user)
{
	struct op_chain_frame frame;
	size_t nr = 0;

	*ret_has_user = false;
	while (op_chain_next(chain, &frame)) {
		if (frame.mode == OP_CPUMODE_USER) {
			*ret_user = frame;
			*ret_has_user = true;
			break;
		}
		if (frame.mode != OP_CPUMODE_KERNEL)
			continue;
		note_memory_end(finder, nr ? frame.ip - 1 : frame.ip);
		/* The sample is the leaf, also where the chain begins a few instructions later. */
		if (nr++ && (finder->stack->nr_frames == OPD_STACK_KERNEL_MAX || !add(finder, frame.ip - 1, OP_CPUMODE_KERNEL)))
			return false;
	}
	finder->nr_in_chain = nr;
	return nr < finder->lookup->max_stack || *ret_has_user;
}

/*
 * A chain without a copy of the stack: the kernel followed frame pointers, or others did. It is
 * complete when the rows say that its last frame has no caller, and all others have rows: frame
 * pointers end anywhere.
 * nr_before: frames of the kernel in the same chain, whose length the kernel limits.
 */
static enum op_stack_end add_user_chain(struct finder *finder, struct op_chain *chain, const struct op_chain_frame *first,
					size_t nr_before)
{
	struct opd_stack *stack = finder->stack;
	struct op_chain_frame frame = *first;
	const struct op_row_rule *rule = NULL;
	enum opd_walk_code code = OPD_CODE_NONE, leaf_code = OPD_CODE_NONE;
	bool is_guessed = false;
	size_t nr = 0;

	do {
		const struct op_row_table *table = NULL;
		struct opd_walk_frame found;

		if (frame.mode != OP_CPUMODE_USER)
			break;
		if (stack->nr_frames == OPD_STACK_FRAMES_MAX)
			return OP_STACK_END_too_deep;
		is_guessed |= nr && !rule;
		code = find(finder, nr ? frame.ip - 1 : frame.ip, &found, &table);
		if (code == OPD_CODE_NONE)
			return OP_STACK_END_left_code;
		rule = !table ? NULL
		       : nr   ? op_row_table_caller(table, &found.position)
			      : op_row_table_find(table, found.position);
		stack->frames[stack->nr_frames - 1].location.offset = found.position;
		leaf_code = nr++ ? leaf_code : code;
	} while (op_chain_next(chain, &frame));
	if (code == OPD_CODE_PENDING || leaf_code == OPD_CODE_PENDING)
		return OP_STACK_END_no_table_yet;
	if (rule && rule->ra_how == OP_VALUE_UNDEFINED)
		return is_guessed ? OP_STACK_END_guessed : OP_STACK_END_complete;
	return nr_before + nr >= finder->lookup->max_stack ? OP_STACK_END_too_deep : OP_STACK_END_no_row;
}

/* No callers are known in user code: at least the sample itself is. */
static enum op_stack_end add_leaf(struct finder *finder)
{
	const struct op_row_table *table = NULL;
	struct opd_walk_frame found;
	enum opd_walk_code code;

	if (finder->stack->nr_frames)
		return OP_STACK_END_no_row;
	code = find(finder, finder->sample->ip, &found, &table);
	return code == OPD_CODE_PENDING ? OP_STACK_END_no_table_yet : OP_STACK_END_no_row;
}

/* The end of the highest code of the process. */
static uint64_t code_end_of(const struct finder *finder)
{
	const struct opd_process *process = opd_process_find(&finder->lookup->resolver->processes, finder->sample->pid);

	return process ? opd_mapset_end(opd_process_mm_at(process, finder->sample->time_ns)->maps) : 0;
}

static enum op_stack_end add_walked(struct finder *finder, const struct op_stack_record *record)
{
	struct opd_walk_start start = {
		.machine = finder->lookup->machine,
		.pc = record->pc,
		.known = record->known,
		.code_end = finder->lookup->machine == EM_AARCH64 ? code_end_of(finder) : 0,
		.stack = record->stack,
		.nr_stack_bytes = record->nr_stack_bytes,
		.ask = finder->lookup->runtimes ? ask : NULL,
	};
	struct opd_stack *stack = finder->stack;
	size_t nr;
	enum opd_walk_end end;

	memcpy(start.registers, record->registers, sizeof(start.registers));
	nr = opd_walk(&start, find, finder, finder->walk->walked, &end);
	for (size_t i = 0; i < nr; i++) {
		struct opd_resolved *frame = &stack->frames[finder->walk->walked[i].index];

		if (!frame->runtime_name)
			frame->location.offset = finder->walk->walked[i].position;
	}
	return walk_ends[end];
}

static enum op_stack_end add_user(struct finder *finder, const struct op_stack_record *record, struct op_chain *chain,
				  const struct op_chain_frame *user, const struct op_chain *later_chain)
{
	struct op_chain_frame first;
	struct op_chain later;

	/*
	 * In execve the registers are of the program that is gone. The copy, if there is one, is of
	 * another stack.
	 */
	if (finder->is_exec)
		return OP_STACK_END_complete;
	if (finder->is_end && !record->nr_stack_bytes && !user && !chain->deferred)
		return OP_STACK_END_complete;
	if (record->has_registers && record->nr_stack_bytes)
		return add_walked(finder, record);
	if (user)
		return add_user_chain(finder, chain, user, finder->nr_in_chain);
	if (chain->deferred) {
		finder->walk->deferred = chain->deferred;
		if (!later_chain)
			return OP_STACK_END_cut;
		finder->walk->deferred = 0;
		later = *later_chain;
		return op_chain_next(&later, &first) ? add_user_chain(finder, &later, &first, 0) : OP_STACK_END_cut;
	}
	/* the stack pointer leads nowhere */
	if (record->has_registers)
		return add_walked(finder, record);
	/* a program of 32 bits */
	if (finder->sample->mode == OP_CPUMODE_USER)
		return add_leaf(finder);
	return record->is_user ? OP_STACK_END_no_row : OP_STACK_END_complete;
}

void opd_stack_walk(struct opd_stack_walk *walk, const struct opd_stack_lookup *lookup, const struct op_sample *sample,
		    const struct opd_resolved *of, const struct op_stack_record *record, const struct op_chain *later_chain)
{
	struct opd_stack *stack = &walk->stack;
	struct finder finder = { .walk = walk, .stack = stack, .lookup = lookup, .sample = sample, .at = *sample, .of = of };
	struct op_chain chain = record->chain;
	struct op_chain_frame user;
	bool has_user, is_whole = true;

	stack->nr_frames = 0;
	stack->sample = sample;
	walk->no_memory = false;
	walk->deferred = walk->pending_cookie = 0;
	walk->awaits_runtime = false;
	stack->names = lookup->runtimes ? opd_runtimes_names(lookup->runtimes) : NULL;
	if (lookup->runtimes)
		opd_runtimes_begin_walk(lookup->runtimes);
	stack->leaf_start = 0;
	stack->end = OP_STACK_END_no_row;
	if (sample->mode == OP_CPUMODE_KERNEL || sample->mode == OP_CPUMODE_USER) {
		if (sample->mode == OP_CPUMODE_KERNEL) {
			add(&finder, sample->ip, OP_CPUMODE_KERNEL);
			note_memory_end(&finder, sample->ip);
		}
		is_whole = add_kernel(&finder, &chain, &user, &has_user);
		stack->end = is_whole ? add_user(&finder, record, &chain, has_user ? &user : NULL, later_chain)
				      : OP_STACK_END_too_deep;
	}
	if (!stack->nr_frames) { /* the sample itself belongs to no image */
		stack->frames[0] = *of;
		stack->frames[0].location.offset = 0;
		stack->nr_frames = 1;
		return;
	}
	set_behind_calls(stack);
}
