/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "libop/base/log.h"
#include "libop/unwind/row_table.h"
#include "libop/unwind/runtime_words.h"
#include "pipeline/files/lookers.h"
#include "pipeline/files/node_heap.h"

#define WORD_BYTES 8u

#define CHECK_NS    ((uint64_t)OP_NS_PER_S) /* then it is asked whether a function is the same */
#define STALE_NS    (10 * CHECK_NS)
#define RETRY_NS    (OP_NS_PER_S / 4u) /* after an answer without a name */
#define QUESTION_NS 20000u             /* what a question costs */
#define READ_NS     1000u              /* and each reading of memory */
#define LEAF_WORDS  16u                /* of the stack, with a leaf's return address */
#define LINES_MAX   1000000u           /* of all functions of all processes: 8 MB */
#define CODES_MAX   8192u              /* pieces of compiled code of a process */

/* What one proof leads to. */
struct function {
	struct op_hlink link;
	struct opd_node_wanted proof; /* how it is asked for again */
	uint64_t key;                 /* its bytecode, the start of its code, or a builtin */
	uint32_t name;                /* 0: not readable, or is_native: code of no function */
	uint32_t line;
	struct opd_node_line *lines; /* of its bytecode, ascending */
	uint32_t nr_lines;
	bool is_native, is_used; /* since the last check */
	enum opd_node_outcome outcome;
	uint64_t checked_ns;
};

/* Compiled code. */
struct code {
	uint64_t start, end;
	struct function *function;
};

struct process {
	struct opd_runtime_host *host;
	struct opd_node_process about;
	uint64_t owner; /* who pays */
	uint64_t image_address, image_cookie;
	enum { LAYOUT_UNKNOWN, LAYOUT_KNOWN, LAYOUT_REFUSED } state;
	struct opd_node_layout layout;
	struct op_htable functions; /* by key */
	struct code *codes;         /* ascending, and disjoint */
	size_t nr_codes, codes_capacity;
	uint64_t scripts[OPD_NODE_SCRIPTS]; /* of the last functions that were asked for */
};

/* Of all processes. */
static size_t nr_functions, nr_lines;

/* ---- processes ---- */

static bool is_image(const char *base_name)
{
	return !strncmp(base_name, "node", 4) || !strncmp(base_name, "libnode.so", 10);
}

static void *begin(struct opd_runtime_host *host, const struct opd_runtime_process *info)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->host = host;
	process->about = (struct opd_node_process){ .pid = info->pid, .user_ns = info->user_ns, .who = info->who };
	process->owner = opd_look_owner(&(const struct opd_look_about){ .pid = info->pid, .user_ns = info->user_ns });
	process->image_address = info->image_address;
	process->image_cookie = info->image_cookie;
	return process;
}

static void free_function(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct function *function = op_container_of(link, struct function, link);

	nr_lines -= function->nr_lines;
	free(function->lines);
	free(function);
	nr_functions--;
}

static void forget(struct process *process)
{
	op_htable_visit(&process->functions, free_function, NULL);
	op_htable_free(&process->functions);
	process->functions = (struct op_htable){ 0 };
	process->nr_codes = 0;
}

static void end(void *own)
{
	struct process *process = own;

	forget(process);
	free(process->codes);
	free(process);
}

static void take_words(struct process *process, const struct op_row_table *table)
{
	static const struct {
		uint32_t word;
		size_t at;
	} words[] = {
#define X(name, symbol) { OP_WORD_node_##name, offsetof(struct opd_node_layout, name) },
		OP_NODE_WORDS(X)
#undef X
	};
	uint64_t value;

	process->state = LAYOUT_REFUSED;
	for (size_t i = 0; i < op_array_size(words); i++) {
		int32_t number;

		if (!op_row_table_word(table, words[i].word, &value))
			return;
		number = (int32_t)(uint32_t)value; /* the file has 4 bytes */
		memcpy((char *)&process->layout + words[i].at, &number, sizeof(number));
	}
	if (opd_node_layout_is_known(&process->layout))
		process->state = LAYOUT_KNOWN;
}

/* False: the table of the image is not made yet. */
static bool learn_layout(struct process *process, const struct opd_runtime_frame *frame)
{
	const struct op_row_table *table = NULL;

	if (process->state != LAYOUT_UNKNOWN)
		return true;
	if (!frame->find_table)
		return false;
	if (!frame->find_table(frame->find_arg, process->image_cookie, process->image_address, &table))
		return false;
	process->state = LAYOUT_REFUSED;
	if (table)
		take_words(process, table);
	process->host->nr_refused[OP_RUNTIME_node] += process->state == LAYOUT_REFUSED;
	if (process->state == LAYOUT_REFUSED)
		op_log(OP_LOG_INFO, "functions of JavaScript in process %u are not named: its version of V8 is not known",
		       process->about.pid);
	return true;
}

/* ---- known functions ---- */

static struct function *find_key(const struct process *process, uint64_t key)
{
	for (struct op_hlink *link = op_htable_first(&process->functions, op_hash_u64(key)); link; link = op_htable_next(link)) {
		struct function *function = op_container_of(link, struct function, link);

		if (function->key == key)
			return function;
	}
	return NULL;
}

static struct function *find_code(const struct process *process, uint64_t address)
{
	size_t nr = op_nr_leading(process->codes, process->nr_codes, code, code->start <= address);

	return nr && address < process->codes[nr - 1].end ? process->codes[nr - 1].function : NULL;
}

/* Compiled code takes the place of what was there before. False: no memory. */
static bool add_code(struct process *process, uint64_t start, uint64_t end, struct function *function)
{
	size_t first = op_nr_leading(process->codes, process->nr_codes, code, code->end <= start);
	size_t last = op_nr_leading(process->codes, process->nr_codes, code, code->start < end);

	if (last == first && !op_grow(&process->codes, &process->codes_capacity, process->nr_codes + 1))
		return false;
	if (first == process->nr_codes || last != first + 1)
		memmove(process->codes + first + 1, process->codes + last, (process->nr_codes - last) * sizeof(*process->codes));
	process->nr_codes = process->nr_codes - (last - first) + 1;
	process->codes[first] = (struct code){ start, end, function };
	return true;
}

static struct function *add_key(struct process *process, uint64_t key)
{
	struct function *function = find_key(process, key);

	if (function)
		return function;
	if (nr_functions >= OPD_NODE_FUNCTIONS_MAX || process->nr_codes >= CODES_MAX)
		forget(process);
	if (nr_functions >= OPD_NODE_FUNCTIONS_MAX)
		return NULL;
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->key = key;
	if (op_htable_insert(&process->functions, &function->link, op_hash_u64(key)) < 0) {
		free(function);
		return NULL;
	}
	nr_functions++;
	return function;
}

/* ---- questions ---- */

/* Asks; each answer is paid. -EBUSY: there is no budget, or no looker had time. */
static int ask_looker(struct process *process, const struct opd_node_wanted *wanted, size_t nr_wanted, uint64_t now_ns,
		      struct op_text *ret_answer)
{
	struct opd_runtime_host *host = process->host;
	uint64_t nr_reads = 0, nr_bytes = 0;
	struct opd_node_found found;
	const char *texts[3];
	size_t at = 0;
	int err;

	if (!opd_runtime_may_spend(host, process->owner, OP_RUNTIME_node, now_ns))
		return -EBUSY;
	err = opd_node_ask(host->lookers, &process->about, &process->layout, wanted, nr_wanted, ret_answer);
	if (err) {
		host->is_out |= err == -EBUSY;
		host->has_changed |= err == -ESTALE;
		return err;
	}
	while (opd_node_next(ret_answer, &at, &found, &texts[0], &texts[1], &texts[2])) {
		nr_reads += found.nr_reads;
		nr_bytes += found.nr_read_bytes;
	}
	opd_runtime_spend(host, process->owner, OP_RUNTIME_node, QUESTION_NS + nr_reads * READ_NS, nr_bytes);
	return 0;
}

static uint32_t add_name(struct process *process, const struct opd_node_found *found, const char *name, const char *file)
{
	struct op_text texts[2] = { { 0 } };
	uint32_t number = 0;

	op_text_add_bytes(&texts[0], name, found->nr_name_bytes);
	op_text_add_bytes(&texts[1], file, found->nr_file_bytes);
	if (!texts[0].failed && !texts[1].failed)
		number = opd_runtime_names_add(process->host->names, OP_RUNTIME_node, op_text_get(&texts[1]),
					       op_text_get(&texts[0]), found->line);
	op_text_free(&texts[0]);
	op_text_free(&texts[1]);
	return number;
}

/* Without room a function has its first line only. */
static void set_lines(struct function *function, const char *lines, uint32_t nr)
{
	size_t nr_bytes = nr * sizeof(*function->lines);

	nr_lines -= function->nr_lines;
	free(function->lines);
	function->lines = nr && nr_lines + nr <= LINES_MAX ? malloc(nr_bytes) : NULL;
	function->nr_lines = function->lines ? nr : 0;
	nr_lines += function->nr_lines;
	if (function->lines)
		memcpy(function->lines, lines, nr_bytes);
}

static void add_script(struct process *process, uint64_t script)
{
	size_t at = 0;

	if (!script)
		return;
	while (at < OPD_NODE_SCRIPTS - 1 && process->scripts[at] != script)
		at++;
	memmove(process->scripts + 1, process->scripts, at * sizeof(script));
	process->scripts[0] = script;
}

static void take(struct process *process, struct function *function, const struct opd_node_found *found, const char *name,
		 const char *file, const char *lines, uint64_t now_ns)
{
	function->checked_ns = now_ns;
	function->is_used = false;
	function->outcome = found->outcome;
	if (found->outcome == OPD_NODE_SAME)
		return;
	function->is_native = found->outcome == OPD_NODE_NATIVE;
	function->name = found->outcome == OPD_NODE_NAMED ? add_name(process, found, name, file) : 0;
	function->line = found->line;
	set_lines(function, lines, found->nr_lines);
	function->proof.shared = found->outcome == OPD_NODE_NAMED ? found->shared : 0;
	function->proof.fingerprint = found->outcome == OPD_NODE_NAMED ? found->fingerprint : 0;
	add_script(process, found->script);
}

struct used {
	struct opd_node_wanted wanted[OPD_NODE_WANTED_MAX];
	struct function *functions[OPD_NODE_WANTED_MAX];
	size_t nr;
	uint64_t now_ns;
};

static void add_used(struct op_hlink *link, void *arg)
{
	struct function *function = op_container_of(link, struct function, link);
	struct used *used = arg;

	if (!function->is_used || (!function->name && !function->is_native) || used->nr == op_array_size(used->functions))
		return;
	used->functions[used->nr] = function;
	used->wanted[used->nr++] = function->proof;
}

/* Asks for all functions that were used again: whether they are the same. */
static void check_used(struct process *process, uint64_t now_ns)
{
	struct op_text answer = { 0 };
	struct opd_node_found found;
	const char *name, *file, *lines;
	struct used used;
	size_t at = 0;

	used.nr = 0;
	op_htable_visit(&process->functions, add_used, &used);
	if (!ask_looker(process, used.wanted, used.nr, now_ns, &answer))
		for (size_t i = 0; i < used.nr && opd_node_next(&answer, &at, &found, &name, &file, &lines); i++)
			take(process, used.functions[i], &found, name, file, lines, now_ns);
	op_text_free(&answer);
}

/* The key of an answer; 0: it has none. */
static uint64_t key_of(const struct opd_node_wanted *wanted, const struct opd_node_found *found)
{
	if (found->code_start)
		return found->code_start;
	if (wanted->pc)
		return 0;
	return found->bytecode ? found->bytecode : wanted->function;
}

/* Asks for a frame. NULL: no answer, or nothing can be kept. */
static struct function *ask_for(struct process *process, const struct opd_node_wanted *wanted, uint64_t now_ns,
				enum opd_node_outcome *ret_outcome)
{
	struct function *function = NULL;
	struct op_text answer = { 0 };
	struct opd_node_found found;
	const char *name, *file, *lines;
	size_t at = 0;
	uint64_t key;
	int err = ask_looker(process, wanted, 1, now_ns, &answer);

	*ret_outcome = err == -EBUSY ? OPD_NODE_LIMIT : OPD_NODE_FAULT;
	if (err || !opd_node_next(&answer, &at, &found, &name, &file, &lines))
		goto out;
	*ret_outcome = found.outcome;
	key = key_of(wanted, &found);
	function = key ? add_key(process, key) : NULL;
	if (!function)
		goto out;
	function->proof = (struct opd_node_wanted){ .pc = found.code_start };
	if (!found.code_start)
		function->proof = (struct opd_node_wanted){ .function = wanted->function, .bytecode = wanted->bytecode };
	if (found.code_start && !add_code(process, found.code_start, found.code_end, function))
		function = NULL;
	else
		take(process, function, &found, name, file, lines, now_ns);
out:
	op_text_free(&answer);
	return function;
}

/* ---- frames ---- */

static bool is_object(uint64_t word)
{
	return (word & 3) == 1;
}

/* What the frame has at its frame pointer. False: the copy does not have it. */
static bool read_frame(const struct process *process, const struct opd_runtime_frame *frame, uint64_t *ret_context,
		       struct opd_node_wanted *ret_wanted)
{
	const struct opd_node_layout *layout = &process->layout;

	*ret_wanted = (struct opd_node_wanted){ 0 };
	memcpy(ret_wanted->scripts, process->scripts, sizeof(process->scripts));
	if (!frame->has_fp || !opd_runtime_read_word(frame, frame->fp + (uint64_t)(int64_t)layout->fp_context, ret_context))
		return false;
	if (!opd_runtime_read_word(frame, frame->fp + (uint64_t)(int64_t)layout->fp_function, &ret_wanted->function))
		ret_wanted->function = 0;
	if (!opd_runtime_read_word(frame, frame->fp + (uint64_t)(int64_t)layout->fp_bytecode, &ret_wanted->bytecode))
		ret_wanted->bytecode = 0;
	if (!opd_runtime_read_word(frame, frame->fp + (uint64_t)(int64_t)layout->fp_bytecode_offset, &ret_wanted->feedback))
		ret_wanted->feedback = 0;
	return true;
}

/*
 * V8's own code that has no frame: the frame is that of the compiled code that called it, and the
 * return address lies near the stack pointer.
 */
static struct function *find_caller_code(const struct process *process, const struct opd_runtime_frame *frame)
{
	struct function *function = NULL;
	uint64_t word;

	for (size_t i = 0; i < LEAF_WORDS && frame->sp + i * WORD_BYTES < frame->fp && !function; i++)
		if (opd_runtime_read_word(frame, frame->sp + i * WORD_BYTES, &word))
			function = find_code(process, word);
	return function;
}

static struct function *find_known(const struct process *process, const struct opd_runtime_frame *frame,
				   const struct opd_node_wanted *wanted)
{
	struct function *function;

	if (wanted->pc)
		return find_code(process, wanted->pc);
	function = is_object(wanted->bytecode) ? find_key(process, wanted->bytecode) : NULL;
	if (!function && frame->is_exact && frame->has_sp)
		function = find_caller_code(process, frame);
	return function ? function : find_key(process, wanted->function);
}

/* Asks for a frame that is not known. A leaf in V8's own code may be in the frame of its caller. */
static struct function *ask_frame(struct process *process, const struct opd_runtime_frame *frame, struct opd_node_wanted *wanted,
				  uint64_t now_ns, enum opd_node_outcome *ret_outcome)
{
	struct function *function = ask_for(process, wanted, now_ns, ret_outcome);
	uint64_t word;

	if (*ret_outcome != OPD_NODE_NATIVE || wanted->pc || !frame->is_exact || !frame->has_sp)
		return function;
	for (size_t i = 0; i < LEAF_WORDS && frame->sp + i * WORD_BYTES < frame->fp; i++) {
		struct opd_node_wanted caller = *wanted;
		struct function *of;

		if (!opd_runtime_read_word(frame, frame->sp + i * WORD_BYTES, &word) || word < UINT32_MAX / 1024 ||
		    !(word & UINT32_MAX) || word - frame->stack_start < frame->nr_stack_bytes)
			continue;
		caller.pc = word;
		of = ask_for(process, &caller, now_ns, ret_outcome);
		if (of && of->name)
			return of;
		*ret_outcome = OPD_NODE_NATIVE;
		return NULL;
	}
	return function;
}

/*
 * The line in which a frame is. One of the interpreter has the offset in its bytecode, from the
 * start of the object on. Optimized code has lines at its calls, so those of a leaf are not known.
 * Else it is the function's first line.
 */
static uint32_t line_of(const struct process *process, const struct function *function, const struct opd_runtime_frame *frame,
			const struct opd_node_wanted *wanted)
{
	uint64_t offset = (wanted->feedback >> 32) - (uint64_t)(process->layout.bytecode_data - 1);
	bool is_known = function->key == wanted->bytecode && !(wanted->feedback & UINT32_MAX);
	size_t nr;

	if (wanted->pc && function->proof.pc) {
		offset = wanted->pc - function->key;
		is_known = !frame->is_exact;
	}
	nr = op_nr_leading(function->lines, function->nr_lines, line, line->offset <= offset);
	return nr && is_known ? function->lines[nr - 1].line : function->line;
}

static void set_function(struct process *process, const struct function *function, uint32_t line,
			 struct opd_runtime_answer *ret_answer)
{
	uint32_t name = function ? function->name : 0;

	if (!name)
		name = opd_runtime_names_add(process->host->names, OP_RUNTIME_node, "", "[node: not readable]", 0);
	if (!name)
		return;
	ret_answer->nr_functions = 1;
	ret_answer->functions[0] = (struct opd_runtime_function){ .name = name, .line = line };
}

static enum opd_runtime_fault fault_of(enum opd_node_outcome outcome)
{
	switch (outcome) {
	case OPD_NODE_NAMED:
	case OPD_NODE_SAME:
	case OPD_NODE_NATIVE:
		return OPD_RUNTIME_NO_FAULT;
	case OPD_NODE_MOVED:
		return OPD_RUNTIME_MOVED;
	case OPD_NODE_LIMIT:
		return OPD_RUNTIME_NAMELESS;
	case OPD_NODE_FAULT:
		break;
	}
	return OPD_RUNTIME_FAULT;
}

static bool is_frame_type(const struct process *process, uint64_t word)
{
	return word && !(word & 1) && word >> 1 <= (uint32_t)process->layout.frame_last + 1;
}

/*
 * A leaf may have set its frame pointer, and not yet written what it has there. This is so when the
 * frame of its caller is one of V8's.
 */
static bool has_caller(const struct process *process, const struct opd_runtime_frame *frame)
{
	const struct opd_node_layout *layout = &process->layout;
	uint64_t fp, context, function;

	if (!frame->is_exact || !frame->has_fp || !opd_runtime_read_word(frame, frame->fp, &fp) || fp <= frame->fp ||
	    !opd_runtime_read_word(frame, fp + (uint64_t)(int64_t)layout->fp_context, &context) ||
	    !opd_runtime_read_word(frame, fp + (uint64_t)(int64_t)layout->fp_function, &function))
		return false;
	return is_frame_type(process, context) || (is_object(context) && is_object(function));
}

/* A frame of JavaScript. */
static enum opd_runtime_how ask_function(struct process *process, const struct opd_runtime_frame *frame,
					 struct opd_node_wanted *wanted, struct opd_runtime_answer *ret_answer,
					 enum opd_runtime_fault *fault)
{
	struct function *function = find_known(process, frame, wanted);
	enum opd_node_outcome outcome = OPD_NODE_NAMED;
	uint64_t now_ns = op_now_ns();

	if (function && now_ns - function->checked_ns > CHECK_NS && (function->name || function->is_native)) {
		function->is_used = true;
		check_used(process, now_ns);
		if (now_ns - function->checked_ns > STALE_NS)
			function->name = 0; /* nobody answers whether it is the same */
	}
	/* a closure that did not move yet may come with each sample of the same bytecode */
	if (!function || (!function->name && !function->is_native &&
			  (now_ns - function->checked_ns > RETRY_NS || function->proof.function != wanted->function))) {
		function = ask_frame(process, frame, wanted, now_ns, &outcome);
	}
	if (function && function->is_native)
		return OPD_RUNTIME_PASS;
	if (function && function->name) {
		function->is_used = true;
		set_function(process, function, line_of(process, function, frame, wanted), ret_answer);
		return OPD_RUNTIME_PASS;
	}
	if (!function && outcome == OPD_NODE_NATIVE)
		return OPD_RUNTIME_PASS;
	outcome = function ? function->outcome : outcome;
	if (frame->may_wait && (outcome == OPD_NODE_LIMIT || (function && function->key == wanted->bytecode)))
		return OPD_RUNTIME_WAIT;
	*fault = fault_of(outcome);
	set_function(process, NULL, 0, ret_answer);
	/* the register may be of the code that called V8 */
	return !frame->is_exact || has_caller(process, frame) ? OPD_RUNTIME_PASS : OPD_RUNTIME_GUESS;
}

/*
 * A frame that has nothing of V8's at its frame pointer. A leaf may be making its frame, and code
 * of regular expressions of Node 18 has something else there, but keeps the frame pointer.
 */
static enum opd_runtime_how ask_bare(struct process *process, const struct opd_runtime_frame *frame)
{
	const struct opd_node_wanted wanted = { .pc = frame->address };
	enum opd_node_outcome outcome = OPD_NODE_NAMED;

	if (has_caller(process, frame))
		return OPD_RUNTIME_PASS;
	if (frame->cookie == process->image_cookie)
		return OPD_RUNTIME_GUESS;
	if (find_code(process, wanted.pc) || ask_for(process, &wanted, op_now_ns(), &outcome))
		return OPD_RUNTIME_PASS;
	return outcome == OPD_NODE_LIMIT && frame->may_wait ? OPD_RUNTIME_WAIT : OPD_RUNTIME_GUESS;
}

static enum opd_runtime_how ask(void *own, const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer,
				enum opd_runtime_fault *fault)
{
	struct process *process = own;
	struct opd_node_wanted wanted;
	uint64_t context;

	if (frame->cookie != process->image_cookie && !frame->is_region)
		return OPD_RUNTIME_GUESS;
	if (!learn_layout(process, frame))
		return frame->may_wait ? OPD_RUNTIME_WAIT : OPD_RUNTIME_GUESS;
	if (process->state != LAYOUT_KNOWN) {
		/* another reader, as of a perf map, may know its code */
		*fault = OPD_RUNTIME_FAULT;
		return OPD_RUNTIME_GUESS;
	}
	if (!read_frame(process, frame, &context, &wanted))
		return ask_bare(process, frame);
	if (is_frame_type(process, context))
		return OPD_RUNTIME_PASS;
	if (!is_object(context) || !is_object(wanted.function))
		return ask_bare(process, frame);
	if (frame->cookie != process->image_cookie)
		wanted.pc = frame->address;
	return ask_function(process, frame, &wanted, ret_answer, fault);
}

const struct opd_runtime_kind opd_runtime_node = {
	.runtime = OP_RUNTIME_node,
	.is_image = is_image,
	.begin = begin,
	.ask = ask,
	.end = end,
};
