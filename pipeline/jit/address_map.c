/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/address_map.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/text.h"

/* the upper half belongs to the kernel on every machine */
#define USER_END ((uint64_t)1 << 63)
#define UNNAMED  "[unnamed]"

/* ---- limits ---- */

static bool has_room(const struct opd_jit_map *map, uint64_t cost)
{
	uint64_t of_user = map->user ? map->user->nr_bytes : 0;

	return map->nr_bytes + cost <= OPD_JIT_PROCESS_MAX_BYTES &&
	       map->counters[OP_JIT_bytes] + of_user + cost <= OPD_JIT_ALL_MAX_BYTES;
}

/* Counts what the map takes and what it has forgotten, after a change. */
static void account(struct opd_jit_map *map, uint64_t nr_forgotten_before)
{
	uint64_t nr_bytes = map->functions.nr_bytes + opd_jit_pieces_bytes(&map->pieces) + opd_jit_pieces_bytes(&map->late) +
			    map->added_capacity * sizeof(*map->added);

	map->counters[OP_JIT_bytes] += nr_bytes - map->nr_bytes;
	if (map->user)
		map->user->nr_bytes += nr_bytes - map->nr_bytes;
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

/* Without room the function is not looked at: what waits for it stays without a name. */
static void keep_added(struct opd_jit_map *map, uint32_t number, uint64_t start)
{
	if (!map->keeps_added || !op_grow(&map->added, &map->added_capacity, map->nr_added + 1))
		return;
	opd_jit_functions_hold(&map->functions, number);
	map->added[map->nr_added++] = (struct opd_jit_added){ start, number };
}

void opd_jit_map_forget_added(struct opd_jit_map *map, size_t nr)
{
	uint64_t nr_forgotten = map->functions.nr_forgotten;

	for (size_t i = 0; i < nr; i++)
		opd_jit_functions_let_go(&map->functions, map->added[i].function);
	map->nr_added -= nr;
	memmove(map->added, map->added + nr, map->nr_added * sizeof(*map->added));
	if (!map->nr_added) {
		free(map->added);
		map->added = NULL;
		map->added_capacity = 0;
	}
	account(map, nr_forgotten);
}

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
	if (!err)
		keep_added(map, number, start);
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
		.is_exact = code->is_exact,
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
static bool take_code(struct opd_jit_map *map, uint64_t bytes)
{
	if (map->next_code_offset + map->late_code_bytes + bytes > OPD_JIT_CODE_MAX_BYTES ||
	    map->counters[OP_JIT_code_bytes] + bytes > OPD_JIT_CODE_ALL_MAX_BYTES) {
		map->counters[OP_JIT_refused_size]++;
		return false;
	}
	map->counters[OP_JIT_code_bytes] += bytes;
	return true;
}

static uint64_t aligned_bytes(const struct opd_jit_function *function)
{
	return ((uint64_t)function->bytes + OPD_JIT_ALIGNMENT - 1) & ~(uint64_t)(OPD_JIT_ALIGNMENT - 1);
}

static void count_sampled(struct opd_jit_map *map)
{
	map->nr_sampled++;
	map->counters[OP_JIT_sampled]++;
}

static void assign_offset(struct opd_jit_map *map, struct opd_jit_function *function)
{
	uint64_t bytes = aligned_bytes(function), *next;

	if (function->code_at && !take_code(map, bytes))
		function->code_at = 0;
	next = function->code_at ? &map->next_code_offset : &map->next_offset;
	function->offset = *next + (function->code_at ? OPD_JIT_CODE_AT : 0);
	*next += bytes;
	count_sampled(map);
}

/* True when the late function at an address is the one of this piece, and in the same place. */
static bool is_of_late(const struct opd_jit_map *map, const struct opd_jit_piece *piece, uint64_t address)
{
	const struct opd_jit_piece *late = map->nr_late ? opd_jit_pieces_find(&map->late, address, UINT64_MAX) : NULL;

	return late && late->function == piece->function && late->start == piece->start - piece->at;
}

enum opd_jit_place opd_jit_map_find(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, uint64_t *ret_offset)
{
	const struct opd_jit_piece *piece = opd_jit_pieces_find(&map->pieces, address, time_ns);
	struct opd_jit_function *function;

	if (!piece)
		return OPD_JIT_NOWHERE;
	if (is_of_late(map, piece, address))
		return OPD_JIT_AT_ADDRESS;
	function = &map->functions.rows[piece->function];
	if (function->offset == OPD_JIT_NO_OFFSET)
		assign_offset(map, function);
	*ret_offset = function->offset + piece->at + (address - piece->start);
	return OPD_JIT_IN_RANGE;
}

/* ---- late functions ---- */

bool opd_jit_map_make_late(struct opd_jit_map *map, const struct opd_jit_added *added)
{
	struct opd_jit_function *function = &map->functions.rows[added->function];
	const struct opd_jit_piece late = {
		.start = added->start,
		.end = added->start + function->bytes,
		.function = added->function,
	};
	uint64_t nr_forgotten = map->functions.nr_forgotten, code_bytes = function->code_at ? aligned_bytes(function) : 0;

	if (opd_jit_pieces_overlap(&map->late, late.start, late.end))
		return false;
	if (code_bytes && !take_code(map, code_bytes)) {
		if (function->offset != OPD_JIT_NO_OFFSET)
			return false; /* its other place has the code */
		function->code_at = code_bytes = 0;
	}
	if (map->nr_late == OPD_JIT_LATE_MAX || !has_room(map, opd_jit_pieces_growth()) ||
	    opd_jit_pieces_add(&map->late, &map->functions, &late, 0)) {
		map->counters[OP_JIT_code_bytes] -= code_bytes;
		map->counters[OP_JIT_refused_memory]++;
		return false;
	}
	account(map, nr_forgotten);
	map->late_code_bytes += code_bytes;
	map->nr_late++;
	count_sampled(map);
	return true;
}

bool opd_jit_map_is_late(const struct opd_jit_map *map, uint64_t address)
{
	return map->nr_late && opd_jit_pieces_find(&map->late, address, UINT64_MAX);
}

void opd_jit_map_free(struct opd_jit_map *map)
{
	if (map->counters) {
		map->counters[OP_JIT_bytes] -= map->nr_bytes;
		map->counters[OP_JIT_code_bytes] -= map->next_code_offset + map->late_code_bytes;
	}
	if (map->user) {
		map->user->nr_bytes -= map->nr_bytes;
		opd_jit_use_put(map->user);
	}
	opd_jit_pieces_free(&map->pieces);
	opd_jit_pieces_free(&map->late);
	free(map->added);
	opd_jit_functions_free(&map->functions);
	*map = (struct opd_jit_map){ .counters = map->counters };
}
