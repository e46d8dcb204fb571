/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jit/address_map.h"

#include <errno.h>

#include "libop/base/text.h"

/* the upper half belongs to the kernel on every machine */
#define USER_END ((uint64_t)1 << 63)
#define UNNAMED  "[unnamed]"

/* ---- limits ---- */

static bool has_room(const struct opd_jit_map *map, uint64_t cost)
{
	return map->nr_bytes + cost <= OPD_JIT_PROCESS_MAX_BYTES && map->counters[OP_JIT_bytes] + cost <= OPD_JIT_ALL_MAX_BYTES;
}

/* Counts what the map takes and what it has forgotten, after a change. */
static void account(struct opd_jit_map *map, uint64_t nr_forgotten_before)
{
	uint64_t nr_bytes = map->functions.nr_bytes + map->pieces.nr_bytes;

	map->counters[OP_JIT_bytes] += nr_bytes - map->nr_bytes;
	map->nr_bytes = nr_bytes;
	map->counters[OP_JIT_functions_forgotten] += map->functions.nr_forgotten - nr_forgotten_before;
}

/* False, and counted, when a function would take too much memory. */
static bool may_grow(struct opd_jit_map *map, uint64_t function_cost, uint64_t horizon_ns)
{
	uint64_t nr_forgotten = map->functions.nr_forgotten;

	if (has_room(map, function_cost + opd_jit_pieces_growth()))
		return true;
	opd_jit_pieces_sweep(&map->pieces, &map->functions, horizon_ns);
	account(map, nr_forgotten);
	map->counters[OP_JIT_refused_memory]++;
	return false;
}

static bool is_sound(struct opd_jit_map *map, uint64_t start, uint64_t bytes)
{
	if (bytes > OPD_JIT_FUNCTION_MAX_BYTES) {
		map->counters[OP_JIT_refused_size]++;
		return false;
	}
	if (start >= USER_END - bytes) {
		map->counters[OP_JIT_refused_records]++;
		return false;
	}
	return true;
}

/* ---- functions ---- */

static int add_piece(struct opd_jit_map *map, uint32_t number, uint64_t start, uint64_t from_ns, uint64_t horizon_ns)
{
	const struct opd_jit_piece piece = {
		.start = start,
		.end = start + map->functions.rows[number].bytes,
		.from_ns = from_ns,
		.function = number,
	};
	uint64_t nr_forgotten = map->functions.nr_forgotten;
	int err;

	opd_jit_functions_hold(&map->functions, number); /* without this piece the function goes */
	err = opd_jit_pieces_add(&map->pieces, &map->functions, &piece, horizon_ns);
	opd_jit_functions_let_go(&map->functions, number);
	account(map, nr_forgotten);
	return err;
}

static bool is_known(const struct opd_jit_map *map, const struct opd_jit_code *code, const char *name)
{
	const struct opd_jit_piece *piece = opd_jit_pieces_find(&map->pieces, code->start, UINT64_MAX);
	const struct opd_jit_function *function = piece ? &map->functions.rows[piece->function] : NULL;

	return function && piece->start == code->start && !piece->at && function->bytes == code->bytes &&
	       !strcmp(function->name, name);
}

static int add_function(struct opd_jit_map *map, const struct opd_jit_code *code, const char *name, uint64_t horizon_ns)
{
	const struct opd_jit_function function = {
		.offset = OPD_JIT_NO_OFFSET,
		.code_at = code->code_at,
		.lines_at = code->lines_at,
		.start = code->start,
		.bytes = (uint32_t)code->bytes,
	};
	uint32_t number;
	int err = opd_jit_functions_add(&map->functions, &function, name, &number);

	if (err)
		return err;
	map->counters[OP_JIT_functions]++;
	return add_piece(map, number, code->start, code->from_ns, horizon_ns);
}

int opd_jit_map_add(struct opd_jit_map *map, const struct opd_jit_code *code, uint64_t horizon_ns)
{
	struct op_text name = { 0 };
	int err = 0;

	if (!code->bytes || !is_sound(map, code->start, code->bytes))
		return 0;
	op_text_add_clean(&name, *code->name ? code->name : UNNAMED);
	if (name.failed)
		err = -ENOMEM;
	else if ((!code->may_be_known || !is_known(map, code, op_text_get(&name))) &&
		 may_grow(map, opd_jit_function_cost(name.length), horizon_ns))
		err = add_function(map, code, op_text_get(&name), horizon_ns);
	op_text_free(&name);
	return err;
}

int opd_jit_map_move(struct opd_jit_map *map, uint64_t old_start, uint64_t new_start, uint64_t from_ns, uint64_t horizon_ns)
{
	const struct opd_jit_piece *piece = opd_jit_pieces_find(&map->pieces, old_start, from_ns);
	uint32_t number;

	if (!piece || piece->start != old_start || piece->at) {
		map->counters[OP_JIT_refused_records]++;
		return 0;
	}
	number = piece->function;
	if (!is_sound(map, new_start, map->functions.rows[number].bytes) || !may_grow(map, 0, horizon_ns))
		return 0;
	return add_piece(map, number, new_start, from_ns, horizon_ns);
}

/* ---- samples ---- */

/* Code bytes go to the disk with the object. A hostile dump may name many, so they are limited. */
static void limit_code(struct opd_jit_map *map, struct opd_jit_function *function, uint64_t bytes)
{
	if (!function->code_at)
		return;
	if (map->next_code_offset + bytes > OPD_JIT_CODE_MAX_BYTES ||
	    map->counters[OP_JIT_code_bytes] + bytes > OPD_JIT_CODE_ALL_MAX_BYTES) {
		function->code_at = 0;
		map->counters[OP_JIT_refused_size]++;
		return;
	}
	map->counters[OP_JIT_code_bytes] += bytes;
}

static void assign_offset(struct opd_jit_map *map, struct opd_jit_function *function)
{
	uint64_t bytes = ((uint64_t)function->bytes + OPD_JIT_ALIGNMENT - 1) & ~(uint64_t)(OPD_JIT_ALIGNMENT - 1);
	uint64_t *next;

	limit_code(map, function, bytes);
	next = function->code_at ? &map->next_code_offset : &map->next_offset;
	function->offset = *next + (function->code_at ? OPD_JIT_CODE_AT : 0);
	*next += bytes;
	map->nr_sampled++;
	map->counters[OP_JIT_sampled]++;
}

bool opd_jit_map_find(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, uint64_t *ret_offset)
{
	const struct opd_jit_piece *piece = opd_jit_pieces_find(&map->pieces, address, time_ns);
	struct opd_jit_function *function;

	if (!piece)
		return false;
	function = &map->functions.rows[piece->function];
	if (function->offset == OPD_JIT_NO_OFFSET)
		assign_offset(map, function);
	*ret_offset = function->offset + piece->at + (address - piece->start);
	return true;
}

void opd_jit_map_free(struct opd_jit_map *map)
{
	if (map->counters) {
		map->counters[OP_JIT_bytes] -= map->nr_bytes;
		map->counters[OP_JIT_code_bytes] -= map->next_code_offset;
	}
	opd_jit_pieces_free(&map->pieces);
	opd_jit_functions_free(&map->functions);
	*map = (struct opd_jit_map){ .counters = map->counters };
}
