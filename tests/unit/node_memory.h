/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory of a process of Node, made by hand: objects of V8 as Node 18 and 20 have them. The words
 * of both executables were read with readelf.
 */
#ifndef TEST_NODE_MEMORY_H
#define TEST_NODE_MEMORY_H

#include <string.h>

#include "pipeline/files/node_heap.h"

#define NODE_MEMORY_START 0x10000000ull
#define NODE_MEMORY_WORDS 65536u

struct node_memory {
	uint64_t words[NODE_MEMORY_WORDS];
	size_t nr_words; /* used */
	size_t nr_reads;
};

static inline void node_layout(struct opd_node_layout *layout, int32_t major)
{
	bool is_20 = major == 11;

	*layout = (struct opd_node_layout){
		.major = major,
		.minor = is_20 ? 3 : 2,
		.tagged_bytes = 8,
		.smi_shift = 31,
		.fp_context = -8,
		.fp_function = -16,
		.fp_bytecode = -32,
		.fp_bytecode_offset = -40,
		.frame_entry = 1,
		.frame_construct_entry = 2,
		.frame_last = is_20 ? 26 : 23,
		.map_type = 12,
		.function_shared = 24,
		.shared_data = 8,
		.shared_name = 16,
		.shared_script = 32,
		.shared_length = 40,
		.script_source = 8,
		.script_name = 16,
		.script_line_ends = 56,
		.string_length = 12,
		.string_one_byte = 16,
		.string_two_bytes = 16,
		.string_first = 16,
		.string_second = 24,
		.string_parent_offset = 24,
		.string_actual = 16,
		.string_resource = 16,
		.string_shape_mask = 7,
		.string_is_one_byte = 8,
		.string_cons = 1,
		.string_external = 2,
		.string_sliced = 3,
		.string_thin = 5,
		.uncompiled_name = 8,
		.uncompiled_start = 16,
		.array_length = 8,
		.array_data = 16,
		.scope_nr_locals = 2,
		.scope_locals = 3,
		.first_nonstring = 128,
		.type_function = is_20 ? 2066 : 2065,
		.type_shared = is_20 ? 262 : 257,
		.type_scope = is_20 ? 261 : 256,
		.type_script = is_20 ? 167 : 170,
		.type_bytecode = is_20 ? 191 : 195,
		.type_code = is_20 ? 245 : 240,
		.type_array = is_20 ? 175 : 179,
		.type_weak_array = is_20 ? 240 : 237,
		.type_uncompiled_first = is_20 ? 220 : 217,
		.type_uncompiled_last = is_20 ? 223 : 220,
		.bytecode_data = is_20 ? 54 : 56,
	};
}

static inline uint64_t node_smi(int32_t value)
{
	return (uint64_t)(uint32_t)value << 32;
}

static inline uint64_t *node_at(struct node_memory *memory, uint64_t object, int32_t offset)
{
	return &memory->words[(object - 1 - NODE_MEMORY_START + (uint64_t)offset) / 8];
}

static inline uint64_t node_raw(struct node_memory *memory, size_t nr_words)
{
	uint64_t address = NODE_MEMORY_START + memory->nr_words * 8;

	memory->nr_words += nr_words;
	return address;
}

/* An object with a map of its own. */
static inline uint64_t node_object(struct node_memory *memory, int32_t type, size_t nr_words)
{
	uint64_t map = node_raw(memory, 3) | 1, object = node_raw(memory, nr_words) | 1;

	*node_at(memory, map, 8) = (uint64_t)type << 32;
	*node_at(memory, object, 0) = map;
	return object;
}

static inline uint64_t node_string(struct node_memory *memory, const char *text)
{
	uint64_t string = node_object(memory, 40, 2 + strlen(text) / 8 + 1);

	*node_at(memory, string, 8) = (uint64_t)strlen(text) << 32;
	memcpy(node_at(memory, string, 16), text, strlen(text));
	return string;
}

static inline uint64_t node_cons(struct node_memory *memory, uint64_t first, uint64_t second, uint32_t length)
{
	uint64_t string = node_object(memory, 41, 4);

	*node_at(memory, string, 8) = (uint64_t)length << 32;
	*node_at(memory, string, 16) = first;
	*node_at(memory, string, 24) = second;
	return string;
}

/* A function in a script, with its bytecode. */
struct node_function {
	uint64_t function, shared, bytecode, scope, script, name;
};

#define NODE_SCOPE_FUNCTION 2u
#define NODE_SCOPE_NAMED    (NODE_SCOPE_FUNCTION | 1u << 12)
#define NODE_SCOPE_INFERRED (1u << 14)

static inline uint64_t node_scope(struct node_memory *memory, const struct opd_node_layout *layout, uint64_t name,
				  uint64_t inferred, int32_t position)
{
	uint64_t scope = node_object(memory, layout->type_scope, 16);
	int32_t at = 32;

	*node_at(memory, scope, 8) =
		node_smi((int32_t)(name ? NODE_SCOPE_NAMED : NODE_SCOPE_FUNCTION) | (int32_t)(inferred ? NODE_SCOPE_INFERRED : 0));
	if (name) {
		*node_at(memory, scope, at) = name;
		*node_at(memory, scope, at + 8) = node_smi(-1);
		at += 16;
	}
	if (inferred) {
		*node_at(memory, scope, at) = inferred;
		at += 8;
	}
	*node_at(memory, scope, at) = node_smi(position);
	*node_at(memory, scope, at + 8) = node_smi(position + 10);
	return scope;
}

static inline uint64_t node_script(struct node_memory *memory, const struct opd_node_layout *layout, const char *name,
				   const char *source)
{
	uint64_t script = node_object(memory, layout->type_script, 13);

	*node_at(memory, script, 8) = node_string(memory, source);
	*node_at(memory, script, 16) = node_string(memory, name);
	return script;
}

static inline struct node_function node_function(struct node_memory *memory, const struct opd_node_layout *layout, uint64_t scope,
						 uint64_t script)
{
	struct node_function made = { .scope = scope, .script = script };

	made.bytecode = node_object(memory, layout->type_bytecode, 8);
	made.shared = node_object(memory, layout->type_shared, 9);
	made.function = node_object(memory, layout->type_function, 8);
	*node_at(memory, made.shared, 8) = made.bytecode;
	*node_at(memory, made.shared, 16) = scope;
	*node_at(memory, made.shared, 32) = script;
	*node_at(memory, made.shared, 40) = 0x2000000030002ull;
	*node_at(memory, made.function, 24) = made.shared;
	return made;
}

static inline bool node_read(void *arg, uint64_t address, void *to, size_t nr_bytes)
{
	struct node_memory *memory = arg;

	memory->nr_reads++;
	if (address < NODE_MEMORY_START || address - NODE_MEMORY_START > sizeof(memory->words) ||
	    sizeof(memory->words) - (address - NODE_MEMORY_START) < nr_bytes)
		return false;
	memcpy(to, (const char *)memory->words + (address - NODE_MEMORY_START), nr_bytes);
	return true;
}

#endif
