/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/node_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/htable.h"
#include "libop/base/sys.h"
#include "pipeline/files/lookers.h"
#include "pipeline/files/node_text.h"
#include "pipeline/readers/far_memory.h"

#define READS_MAX      32768u /* of all functions of a question */
#define BYTES_MAX      (24u << 20)
#define OFFSET_MAX     4096         /* of a field in an object */
#define CODE_SCAN_MAX  (256u << 10) /* bytes from a pc back to the start of its code */
#define SCRIPT_MAX     8192u        /* functions of a script: 64 KiB of a table */
#define FEEDBACK_WORDS 6            /* of a FeedbackVector in front of its slots, without the map */
#define LOCALS_MAX     8192u        /* of a scope: 64 KiB of a table */
#define FUNCTION_TYPES 32           /* types of functions: constructors have others */

/* src/objects/ of V8: js-function.tq, code.h, fixed-array.h, script.tq and string.tq. */
static const struct opd_node_version versions[] = {
	{ .major = 10,
	  .minor = 2,
	  .code = 48,
	  .code_deopt = 16,
	  .code_flags = 48,
	  .code_size = 40,
	  .header = 128,
	  .alignment = 32,
	  .deopt_shared = 6,
	  .kind_baseline = 11,
	  .hashed_locals = 75,
	  .script_functions = 88,
	  .script_first_line = 24,
	  .bytecode_positions = 32,
	  .code_positions = 24,
	  .deopt_inlined = 7,
	  .uncached = 16 },
	{ .major = 11,
	  .minor = 3,
	  .code = 48,
	  .code_deopt = 16,
	  .code_flags = 48,
	  .code_size = 56,
	  .type_stream = 252,
	  .stream_code = 8,
	  .header = 16,
	  .alignment = 64,
	  .deopt_shared = 6,
	  .kind_baseline = 11,
	  .hashed_locals = 75,
	  .script_functions = 88,
	  .script_first_line = 24,
	  .bytecode_positions = 32,
	  .code_positions = 24,
	  .deopt_inlined = 7,
	  .uncached = 16 },
};

/* ScopeInfo's flags: src/objects/scope-info.tq. */
#define SCOPE_HAS_CLASS(flags)    ((flags) >> 10 & 1)
#define SCOPE_HAS_VARIABLE(flags) ((flags) >> 12 & 3)
#define SCOPE_HAS_INFERRED(flags) ((flags) >> 14 & 1)
#define SCOPE_TYPE(flags)         ((flags)&15)
#define SCOPE_LAST_WITH_POSITION  4 /* of a class, eval, a function, a module and a script */

static const struct opd_node_version *version_of(const struct opd_node_layout *layout)
{
	for (size_t i = 0; i < op_array_size(versions); i++)
		if (versions[i].major == layout->major && versions[i].minor == layout->minor)
			return &versions[i];
	return NULL;
}

bool opd_node_layout_is_known(const struct opd_node_layout *layout)
{
	const int32_t *fields = &layout->map_type, *end = &layout->string_shape_mask;

	if (!version_of(layout) || layout->tagged_bytes != OPD_NODE_WORD_BYTES || layout->smi_shift != 31 ||
	    layout->fp_context != -8 || layout->fp_function >= 0 || layout->fp_function < -OFFSET_MAX || layout->fp_bytecode >= 0 ||
	    layout->fp_bytecode < -OFFSET_MAX)
		return false;
	for (; fields < end; fields++)
		if (*fields < 0 || *fields > OFFSET_MAX)
			return false;
	return layout->scope_nr_locals >= 0 && layout->scope_nr_locals < 16 && layout->scope_locals >= 0 &&
	       layout->scope_locals < 16 && layout->array_length >= 0 && layout->array_length <= OFFSET_MAX &&
	       layout->array_data >= 0 && layout->array_data <= OFFSET_MAX && layout->uncompiled_name >= 0 &&
	       layout->uncompiled_name <= OFFSET_MAX && layout->uncompiled_start >= 0 && layout->uncompiled_start <= OFFSET_MAX;
}

/* ---- functions ---- */

/* What is known of a function before its texts are read. */
struct description {
	uint64_t name, inferred; /* strings; no object: none */
	uint64_t script;         /* 0: none */
	int32_t position;        /* -1: not known */
};

/* A scope has its parts one behind the other, and its flags say which ones are there. */
static bool read_scope(struct opd_node_heap *heap, uint64_t scope, struct description *ret)
{
	const int32_t first = (int32_t)OPD_NODE_WORD_BYTES; /* behind the map */
	int32_t at = heap->layout->scope_locals, nr_locals;
	uint64_t flags, word;

	if (!opd_node_word(heap, scope, first, &flags) ||
	    !opd_node_word(heap, scope, first + heap->layout->scope_nr_locals * (int32_t)OPD_NODE_WORD_BYTES, &word))
		return false;
	nr_locals = opd_node_smi(word);
	if (!opd_node_is_smi(flags) || !opd_node_is_smi(word) || nr_locals < 0 || nr_locals > (int32_t)LOCALS_MAX)
		return opd_node_fail(heap, OPD_NODE_FAULT);
	flags = (uint32_t)opd_node_smi(flags);
	at += heap->version->hashed_locals && (uint32_t)nr_locals >= heap->version->hashed_locals ? 1 : nr_locals;
	at += nr_locals + SCOPE_HAS_CLASS(flags);
	if (SCOPE_HAS_VARIABLE(flags)) {
		if (!opd_node_word(heap, scope, first + at * (int32_t)OPD_NODE_WORD_BYTES, &ret->name))
			return false;
		at += 2;
	}
	if (SCOPE_HAS_INFERRED(flags) && !opd_node_word(heap, scope, first + at++ * (int32_t)OPD_NODE_WORD_BYTES, &ret->inferred))
		return false;
	if (SCOPE_TYPE(flags) > SCOPE_LAST_WITH_POSITION)
		return true;
	if (!opd_node_word(heap, scope, first + at * (int32_t)OPD_NODE_WORD_BYTES, &word))
		return false;
	if (!opd_node_is_smi(word) || opd_node_smi(word) < 0)
		return opd_node_fail(heap, OPD_NODE_FAULT);
	ret->position = opd_node_smi(word);
	return true;
}

static bool read_uncompiled(struct opd_node_heap *heap, uint64_t data, struct description *ret)
{
	int32_t type;

	if (!opd_node_is_object(data)) /* of a builtin: its number */
		return true;
	if (!opd_node_type(heap, data, &type))
		return false;
	if (type < heap->layout->type_uncompiled_first || type > heap->layout->type_uncompiled_last)
		return true;
	return opd_node_word(heap, data, heap->layout->uncompiled_name, &ret->inferred) &&
	       opd_node_field(heap, data, heap->layout->uncompiled_start, &ret->position, sizeof(ret->position));
}

static bool describe(struct opd_node_heap *heap, uint64_t shared, struct description *ret)
{
	uint64_t name, script, data;
	int32_t type = -1;

	*ret = (struct description){ .position = -1 };
	if (!opd_node_word(heap, shared, heap->layout->shared_name, &name) ||
	    !opd_node_word(heap, shared, heap->layout->shared_script, &script) ||
	    !opd_node_word(heap, shared, heap->layout->shared_data, &data))
		return false;
	if (opd_node_is_object(name) && !opd_node_type(heap, name, &type))
		return false;
	if (opd_node_is_object(name) && type < heap->layout->first_nonstring)
		ret->name = name;
	if (type == heap->layout->type_scope ? !read_scope(heap, name, ret) : !read_uncompiled(heap, data, ret))
		return false;
	if (opd_node_is_object(script) && !opd_node_type(heap, script, &type))
		return false;
	if (opd_node_is_object(script) && type == heap->layout->type_script)
		ret->script = script;
	return true;
}

/* A string that has characters. False: it has none, or there is a problem. */
static bool add_name(struct opd_node_heap *heap, uint64_t string, struct op_text *to)
{
	size_t before = to->length;
	int32_t type;

	/* undefined, or 0, stand where a function has no name */
	if (!opd_node_is_object(string) || !opd_node_type(heap, string, &type) || type >= heap->layout->first_nonstring)
		return false;
	return opd_node_add_string(heap, string, false, to) && to->length > before;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* A module's script has a URL. Of a file it becomes the path. */
static void make_path(struct op_text *file, size_t from)
{
	static const char scheme[] = "file://";
	char *text = file->data ? file->data + from : NULL;
	size_t length = file->length - from, nr = 0;

	if (length < sizeof(scheme) || memcmp(text, scheme, sizeof(scheme) - 1) || text[sizeof(scheme) - 1] != '/')
		return;
	for (size_t i = sizeof(scheme) - 1; i < length; i++) {
		int high = i + 2 < length ? hex_digit(text[i + 1]) : -1, low = i + 2 < length ? hex_digit(text[i + 2]) : -1;

		if (text[i] == '%' && high >= 0 && low >= 0 && (high || low)) {
			text[nr++] = (char)(high << 4 | low);
			i += 2;
		} else {
			text[nr++] = text[i];
		}
	}
	op_text_truncate(file, from + nr);
}

/* The first bytes of a name, the last ones of a path. */
static void shorten(struct op_text *text, size_t from, bool last)
{
	size_t nr = text->length - from;

	if (nr <= OPD_NODE_NAME_MAX)
		return;
	if (last)
		memmove(text->data + from, text->data + text->length - OPD_NODE_NAME_MAX, OPD_NODE_NAME_MAX);
	op_text_truncate(text, from + OPD_NODE_NAME_MAX);
}

static void add_texts(struct opd_node_heap *heap, const struct description *description, struct opd_node_found *found,
		      struct op_text *to)
{
	size_t before = to->length;
	uint64_t name;

	if (!add_name(heap, description->name, to) && heap->problem == OPD_NODE_NAMED &&
	    !add_name(heap, description->inferred, to) && heap->problem == OPD_NODE_NAMED)
		op_text_add(to, "(anonymous)");
	if (heap->problem != OPD_NODE_NAMED || to->failed)
		return;
	shorten(to, before, false);
	found->nr_name_bytes = (uint32_t)(to->length - before);
	before = to->length;
	if (!description->script || !opd_node_word(heap, description->script, heap->layout->script_name, &name))
		return;
	if (opd_node_is_object(name)) {
		int32_t type;

		if (!opd_node_type(heap, name, &type) ||
		    (type < heap->layout->first_nonstring && !opd_node_add_string(heap, name, true, to)) || to->failed)
			return;
	}
	make_path(to, before);
	shorten(to, before, true);
	found->nr_file_bytes = (uint32_t)(to->length - before);
	found->line = opd_node_line(heap, description->script, description->position);
}

/*
 * A number of what belongs to this function alone: its name or scope, its script, and numbers of
 * parameters and of its place in the script. When the collector moves one of them, the name is read
 * again.
 */
static bool read_fingerprint(struct opd_node_heap *heap, uint64_t shared, uint64_t *ret_fingerprint)
{
	uint64_t words[3];

	if (!opd_node_word(heap, shared, heap->layout->shared_name, &words[0]) ||
	    !opd_node_word(heap, shared, heap->layout->shared_script, &words[1]) ||
	    !opd_node_word(heap, shared, heap->layout->shared_length, &words[2]))
		return false;
	*ret_fingerprint = op_hash_add(op_hash_add(op_hash_u64(words[0]), words[1]), words[2]);
	return true;
}

/* ---- whose frame it is ---- */

/* True when a function has this bytecode. It may have baseline code, which has the bytecode. */
static bool has_bytecode(struct opd_node_heap *heap, uint64_t shared, uint64_t bytecode)
{
	uint64_t data;
	int32_t type;

	if (!opd_node_word(heap, shared, heap->layout->shared_data, &data))
		return false;
	if (data == bytecode)
		return true;
	return opd_node_is_object(data) && opd_node_type(heap, data, &type) && type == heap->layout->type_code &&
	       opd_node_word(heap, data, heap->version->code_deopt, &data) && data == bytecode;
}

/* What is read to look for something may be missing. */
static void forgive(struct opd_node_heap *heap)
{
	if (heap->problem == OPD_NODE_FAULT)
		heap->problem = OPD_NODE_NAMED;
}

/* From a closure to what all its closures share. When it was moved, its old place says where to. */
static bool shared_of_function(struct opd_node_heap *heap, uint64_t function, uint64_t *ret_shared)
{
	int32_t type;
	uint64_t map;

	if (!opd_node_word(heap, function, 0, &map))
		return false;
	if (!(map & 3)) {
		function = map | 1;
		if (!opd_node_word(heap, function, 0, &map))
			return false;
	}
	return opd_node_type(heap, function, &type) && type >= heap->layout->type_function &&
	       type < heap->layout->type_function + FUNCTION_TYPES &&
	       opd_node_word(heap, function, heap->layout->function_shared, ret_shared) &&
	       opd_node_has_type(heap, *ret_shared, heap->layout->type_shared);
}

/* Looks through all functions of a script. The table of a script has weak references to them. */
static bool shared_of_script(struct opd_node_heap *heap, uint64_t script, uint64_t bytecode, uint64_t *ret_shared)
{
	uint64_t array, word, entries[256];
	int32_t nr;

	if (!opd_node_has_type(heap, script, heap->layout->type_script) ||
	    !opd_node_word(heap, script, heap->version->script_functions, &array) ||
	    !opd_node_has_type(heap, array, heap->layout->type_weak_array) ||
	    !opd_node_word(heap, array, heap->layout->array_length, &word))
		return false;
	nr = opd_node_is_smi(word) && opd_node_smi(word) > 0 ? (int32_t)op_min_u64((uint32_t)opd_node_smi(word), SCRIPT_MAX) : 0;
	for (int32_t i = 0; i < nr; i++) {
		int32_t in_block = i % (int32_t)op_array_size(entries);

		if (!in_block && !opd_node_field(heap, array, heap->layout->array_data + i * (int32_t)OPD_NODE_WORD_BYTES, entries,
						 op_min_u64((uint64_t)(nr - i) * OPD_NODE_WORD_BYTES, sizeof(entries))))
			return false;
		if ((entries[in_block] & 3) != 3)
			continue;
		*ret_shared = entries[in_block] & ~UINT64_C(2);
		if (has_bytecode(heap, *ret_shared, bytecode))
			return opd_node_has_type(heap, *ret_shared, heap->layout->type_shared);
		if (heap->problem == OPD_NODE_LIMIT)
			return false;
		forgive(heap);
	}
	return false;
}

/* The feedback of a function, which stays where it is, has one of its first words for it. */
static bool shared_of_feedback(struct opd_node_heap *heap, uint64_t feedback, uint64_t bytecode, uint64_t *ret_shared)
{
	for (int32_t i = 1; i <= FEEDBACK_WORDS; i++) {
		int32_t type;

		if (!opd_node_word(heap, feedback, i * (int32_t)OPD_NODE_WORD_BYTES, ret_shared))
			return false;
		if (!opd_node_is_object(*ret_shared))
			continue;
		if (opd_node_type(heap, *ret_shared, &type) && type == heap->layout->type_shared &&
		    has_bytecode(heap, *ret_shared, bytecode))
			return true;
		forgive(heap);
	}
	return false;
}

static bool shared_of_bytecode(struct opd_node_heap *heap, const struct opd_node_wanted *wanted, uint64_t bytecode,
			       uint64_t *ret_shared)
{
	*ret_shared = wanted->shared;
	if (wanted->shared && opd_node_has_type(heap, wanted->shared, heap->layout->type_shared) &&
	    has_bytecode(heap, wanted->shared, bytecode))
		return true;
	forgive(heap);
	if (wanted->function && shared_of_function(heap, wanted->function, ret_shared) && has_bytecode(heap, *ret_shared, bytecode))
		return true;
	forgive(heap);
	if (wanted->feedback && shared_of_feedback(heap, wanted->feedback, bytecode, ret_shared))
		return true;
	for (size_t i = 0; i < OPD_NODE_SCRIPTS; i++) {
		forgive(heap);
		if (wanted->scripts[i] && shared_of_script(heap, wanted->scripts[i], bytecode, ret_shared))
			return true;
	}
	return false;
}

/* The Code of an object that may have the instructions from an address on. 0: it is none. */
static uint64_t code_at(struct opd_node_heap *heap, uint64_t object)
{
	const struct opd_node_version *version = heap->version;
	uint64_t code = object;
	int32_t type;

	if (!opd_node_type(heap, object, &type) || type != (version->type_stream ? version->type_stream : heap->layout->type_code))
		return 0;
	if (version->type_stream &&
	    (!opd_node_word(heap, object, version->stream_code, &code) || !opd_node_has_type(heap, code, heap->layout->type_code)))
		return 0;
	return code;
}

/*
 * Finds the compiled code that a pc is in: goes back to the next object in front of it that is
 * code.
 * Instructions begin at aligned addresses, at a fixed distance from the object that has them. 0:
 * none.
 */
static uint64_t find_code(struct opd_node_heap *heap, uint64_t pc, struct opd_node_found *found)
{
	const struct opd_node_version *version = heap->version;
	uint64_t highest = pc & ~(uint64_t)(version->alignment - 1), block[1024], no_map = 0;
	uint64_t base = 0;

	for (uint64_t start = highest; highest - start < CODE_SCAN_MAX && start > CODE_SCAN_MAX; start -= version->alignment) {
		uint64_t object = start - (uint64_t)version->header, map, code;
		uint32_t nr_bytes;

		/* objects are looked at in blocks of memory that end behind the first one */
		if (!base || object < base) {
			base = object + OPD_NODE_WORD_BYTES - sizeof(block);
			if (!opd_node_bytes(heap, base, block, sizeof(block))) {
				base = object; /* the mapping may begin in the block */
				if (heap->problem == OPD_NODE_LIMIT)
					return 0;
				forgive(heap);
				if (!opd_node_bytes(heap, object, block, OPD_NODE_WORD_BYTES))
					return 0;
			}
		}
		map = block[(object - base) / OPD_NODE_WORD_BYTES];
		if (!opd_node_is_object(map) || map == no_map)
			continue;
		code = code_at(heap, object | 1);
		if (!code) {
			if (heap->problem == OPD_NODE_LIMIT)
				return 0;
			forgive(heap);
			no_map = map;
			continue;
		}
		if (!opd_node_field(heap, code, version->code_size, &nr_bytes, sizeof(nr_bytes)) || pc - start >= nr_bytes)
			return 0;
		found->code_start = start;
		found->code_end = start + nr_bytes;
		return code;
	}
	return 0;
}

/* Whose compiled code it is. */
static enum opd_node_outcome shared_of_code(struct opd_node_heap *heap, const struct opd_node_wanted *wanted,
					    struct opd_node_found *found)
{
	const struct opd_node_version *version = heap->version;
	uint64_t code = find_code(heap, wanted->pc, found), data;
	uint32_t flags;
	int32_t type;

	if (!code || !opd_node_field(heap, code, version->code_flags, &flags, sizeof(flags)) ||
	    !opd_node_word(heap, code, version->code_deopt, &data))
		return OPD_NODE_MOVED;
	if (!opd_node_is_object(data) || !opd_node_type(heap, data, &type))
		return OPD_NODE_NATIVE;
	if ((int32_t)(flags & 15) == version->kind_baseline)
		return shared_of_bytecode(heap, wanted, data, &found->shared) ? OPD_NODE_NAMED : OPD_NODE_MOVED;
	if (type != heap->layout->type_array)
		return OPD_NODE_NATIVE;
	if (!opd_node_word(heap, data, heap->layout->array_data + version->deopt_shared * (int32_t)OPD_NODE_WORD_BYTES,
			   &found->shared) ||
	    !opd_node_has_type(heap, found->shared, heap->layout->type_shared))
		return OPD_NODE_NATIVE;
	heap->code = code;
	heap->deopt = data;
	return OPD_NODE_NAMED;
}

static enum opd_node_outcome find_shared(struct opd_node_heap *heap, const struct opd_node_wanted *wanted,
					 struct opd_node_found *found)
{
	bool has_other = !opd_node_is_object(wanted->bytecode);
	uint64_t data;
	int32_t type;

	if (wanted->pc)
		return shared_of_code(heap, wanted, found);
	if (!has_other && opd_node_type(heap, wanted->bytecode, &type)) {
		has_other = type != heap->layout->type_bytecode;
		if (!has_other) {
			found->bytecode = wanted->bytecode;
			return shared_of_bytecode(heap, wanted, wanted->bytecode, &found->shared) ? OPD_NODE_NAMED : OPD_NODE_MOVED;
		}
	}
	forgive(heap);
	/* one of V8's own, whose data is a number; many of them live as short as closures */
	if (shared_of_function(heap, wanted->function, &found->shared) &&
	    opd_node_word(heap, found->shared, heap->layout->shared_data, &data) && opd_node_is_smi(data))
		return OPD_NODE_NAMED;
	return has_other ? OPD_NODE_NATIVE : OPD_NODE_MOVED;
}

static void find_function(struct opd_node_heap *heap, const struct opd_node_wanted *wanted, struct opd_node_found *found,
			  struct op_text *to)
{
	struct description description;

	heap->code = 0;
	found->outcome = find_shared(heap, wanted, found);
	forgive(heap);
	if (heap->problem != OPD_NODE_NAMED || found->outcome != OPD_NODE_NAMED) {
		found->outcome = heap->problem != OPD_NODE_NAMED ? heap->problem : found->outcome;
		return;
	}
	if (!read_fingerprint(heap, found->shared, &found->fingerprint)) {
		found->outcome = heap->problem;
		return;
	}
	if (wanted->fingerprint && found->shared == wanted->shared && found->fingerprint == wanted->fingerprint) {
		found->outcome = OPD_NODE_SAME;
		return;
	}
	if (describe(heap, found->shared, &description)) {
		found->script = description.script;
		add_texts(heap, &description, found, to);
		if (heap->problem == OPD_NODE_NAMED && found->bytecode && found->script)
			found->nr_lines = opd_node_add_lines(heap, found->bytecode, found->script, to);
		else if (heap->problem == OPD_NODE_NAMED && heap->code && found->script)
			found->nr_lines = opd_node_add_code_lines(heap, heap->code, heap->deopt, found->script, to);
	}
	found->outcome = heap->problem;
}

void opd_node_read(const struct opd_node_layout *layout, const struct opd_node_wanted *wanted, size_t nr_wanted,
		   opd_node_memory memory, void *arg, struct op_text *to)
{
	struct opd_node_heap heap = {
		.layout = layout,
		.version = version_of(layout),
		.memory = memory,
		.arg = arg,
		.nr_reads_left = READS_MAX,
		.nr_bytes_left = BYTES_MAX,
	};

	if (!opd_node_layout_is_known(layout))
		return;
	for (size_t i = 0; i < nr_wanted && !to->failed; i++) {
		struct opd_node_found found = { 0 };
		uint32_t nr_reads_left = heap.nr_reads_left;
		uint64_t nr_bytes_left = heap.nr_bytes_left;
		size_t at = to->length;

		heap.problem = OPD_NODE_NAMED;
		op_text_add_bytes(to, &found, sizeof(found));
		find_function(&heap, &wanted[i], &found, to);
		if (to->failed)
			return;
		if (found.outcome != OPD_NODE_NAMED) {
			op_text_truncate(to, at + sizeof(found));
			found.nr_name_bytes = found.nr_file_bytes = found.nr_lines = 0;
		}
		found.nr_reads = nr_reads_left - heap.nr_reads_left;
		found.nr_read_bytes = (uint32_t)(nr_bytes_left - heap.nr_bytes_left);
		memcpy(to->data + at, &found, sizeof(found));
	}
}

/* ---- question and answer ---- */

struct question {
	uint32_t pid, nr_wanted;
	uint64_t who;
	struct opd_node_layout layout;
};

int opd_node_ask(struct opd_lookers *lookers, const struct opd_node_process *process, const struct opd_node_layout *layout,
		 const struct opd_node_wanted *wanted, size_t nr_wanted, struct op_text *ret_answer)
{
	const struct opd_look_about about = { .pid = process->pid, .user_ns = process->user_ns };
	struct question question = {
		.pid = process->pid, .nr_wanted = (uint32_t)nr_wanted, .who = process->who, .layout = *layout
	};
	const struct iovec parts[] = {
		{ &question, sizeof(question) },
		{ (void *)(uintptr_t)wanted, nr_wanted * sizeof(*wanted) },
	};
	uint32_t serial = 0;

	return opd_look(lookers, &about, OPD_LOOK_NODE, parts, op_array_size(parts), -1, &serial, ret_answer);
}

bool opd_node_next(const struct op_text *answer, size_t *at, struct opd_node_found *ret_found, const char **ret_name,
		   const char **ret_file, const char **ret_lines)
{
	size_t left = answer->length - *at;

	if (left < sizeof(*ret_found))
		return false;
	memcpy(ret_found, answer->data + *at, sizeof(*ret_found));
	left -= sizeof(*ret_found);
	if (ret_found->nr_name_bytes > OPD_NODE_NAME_MAX || ret_found->nr_file_bytes > OPD_NODE_NAME_MAX ||
	    ret_found->nr_lines > OPD_NODE_LINES_MAX ||
	    ret_found->nr_name_bytes + ret_found->nr_file_bytes + ret_found->nr_lines * sizeof(struct opd_node_line) > left)
		return false;
	*ret_name = answer->data + *at + sizeof(*ret_found);
	*ret_file = *ret_name + ret_found->nr_name_bytes;
	*ret_lines = *ret_file + ret_found->nr_file_bytes;
	*at += sizeof(*ret_found) + ret_found->nr_name_bytes + ret_found->nr_file_bytes +
	       ret_found->nr_lines * sizeof(struct opd_node_line);
	return true;
}

static bool read_process(void *arg, uint64_t address, void *to, size_t nr_bytes)
{
	const int *fd = arg;

	return address <= INT64_MAX && op_sys_pread(*fd, to, nr_bytes, (off_t)address) == (ssize_t)nr_bytes;
}

int opd_node_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	struct opd_node_wanted *wanted;
	struct question asked;
	int fd;

	if (nr_bytes < sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	nr_bytes -= sizeof(asked);
	if (asked.nr_wanted > OPD_NODE_WANTED_MAX || nr_bytes != asked.nr_wanted * sizeof(*wanted))
		return -EINVAL;
	fd = opd_far_memory_open_fd(asked.pid, asked.who);
	if (fd < 0)
		return fd;
	wanted = malloc(nr_bytes + 1);
	if (wanted) {
		memcpy(wanted, question + sizeof(asked), nr_bytes);
		opd_node_read(&asked.layout, wanted, asked.nr_wanted, read_process, &fd, answer);
	}
	free(wanted);
	close(fd);
	return wanted && !answer->failed ? 0 : -ENOMEM;
}
