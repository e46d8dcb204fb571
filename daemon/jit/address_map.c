/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jit/address_map.h"

#include <errno.h>

#include "libop/base/grow.h"

#define WINDOW_BITS  16u
#define WINDOW_BYTES ((uint64_t)1 << WINDOW_BITS)
/* the upper half belongs to the kernel on every machine */
#define USER_END        ((uint64_t)1 << 63)
#define WINDOW_OVERHEAD 1024u /* bytes that a window needs beside its mappings, about */
#define UNNAMED         "[unnamed]"

/*
 * The functions, or parts of functions, in one window of addresses. The cookie of a mapping is the
 * index of its function.
 */
struct window {
	struct op_hlink link;
	uint64_t number;
	struct opd_mapset *set;
};

static struct window *find_window(const struct opd_jit_map *map, uint64_t number)
{
	for (struct op_hlink *link = op_htable_first(&map->windows, op_hash_u64(number)); link; link = op_htable_next(link)) {
		struct window *window = op_container_of(link, struct window, link);

		if (window->number == number)
			return window;
	}
	return NULL;
}

static void free_window(struct window *window)
{
	if (window)
		opd_mapset_put(window->set);
	free(window);
}

static struct window *get_window(struct opd_jit_map *map, uint64_t number)
{
	struct window *window = find_window(map, number);

	if (window)
		return window;
	window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	window->number = number;
	window->set = opd_mapset_new(NULL);
	if (!window->set || op_htable_insert(&map->windows, &window->link, op_hash_u64(number)) < 0) {
		free_window(window);
		return NULL;
	}
	return window;
}

/* ---- limits ---- */

static uint64_t nr_windows_of(uint64_t start, uint64_t bytes)
{
	return ((start + bytes - 1) >> WINDOW_BITS) - (start >> WINDOW_BITS) + 1;
}

static uint64_t cost_of(uint64_t start, uint64_t bytes, size_t name_bytes)
{
	return sizeof(struct opd_jit_function) + name_bytes + 2 * nr_windows_of(start, bytes) * sizeof(struct opd_mapping);
}

static bool has_room(const struct opd_jit_map *map, uint64_t cost)
{
	return map->nr_bytes + cost <= OPD_JIT_PROCESS_MAX_BYTES && map->counters[OP_JIT_bytes] + cost <= OPD_JIT_ALL_MAX_BYTES;
}

/* ---- forgetting ---- */

#define UNUSED UINT64_MAX

/* New indices of the functions. */
struct compaction {
	struct opd_jit_map *map;
	uint64_t *numbers;
};

static uint64_t mark(uint64_t index, void *arg)
{
	((struct compaction *)arg)->numbers[index] = 0;
	return index;
}

static uint64_t renumber(uint64_t index, void *arg)
{
	return ((struct compaction *)arg)->numbers[index];
}

static void mark_visited(struct op_hlink *link, void *arg)
{
	opd_mapset_change_cookies(op_container_of(link, struct window, link)->set, mark, arg);
}

static void renumber_visited(struct op_hlink *link, void *arg)
{
	opd_mapset_change_cookies(op_container_of(link, struct window, link)->set, renumber, arg);
}

/*
 * Moves the functions that are used, and their names, to the front in the same order. Returns their
 * cost.
 */
static uint64_t move_used(struct compaction *compaction, struct op_text *names)
{
	struct opd_jit_map *map = compaction->map;
	uint64_t cost = map->windows.nr_entries * WINDOW_OVERHEAD;
	size_t nr_used = 0;

	for (size_t i = 0; i < map->nr_functions; i++) {
		struct opd_jit_function function = map->functions[i];
		const char *name = opd_jit_map_name(map, &function);
		size_t name_bytes = strlen(name) + 1;

		if (compaction->numbers[i] == UNUSED && function.offset == OPD_JIT_NO_OFFSET)
			continue;
		function.name_at = (uint32_t)names->length;
		op_text_add_bytes(names, name, name_bytes);
		cost += cost_of(function.start, function.bytes, name_bytes);
		compaction->numbers[i] = nr_used;
		map->functions[nr_used++] = function;
	}
	map->nr_functions = nr_used;
	return cost;
}

/* Makes room for all names before anything moves, so that nothing fails half-way. */
static bool reserve_names(const struct opd_jit_map *map, struct op_text *ret_names)
{
	op_text_add_bytes(ret_names, map->names.data, map->names.length);
	op_text_truncate(ret_names, 0);
	return !ret_names->failed;
}

/*
 * Forgets functions that are gone and had no samples. Functions with samples stay for the object.
 */
static void compact(struct opd_jit_map *map)
{
	struct compaction compaction = { .map = map, .numbers = malloc(map->nr_functions * sizeof(uint64_t)) };
	size_t nr_before = map->nr_functions, nr_forgotten;
	struct op_text names = { 0 };
	uint64_t cost;

	if (!compaction.numbers || !reserve_names(map, &names)) {
		free(compaction.numbers);
		op_text_free(&names);
		return;
	}
	memset(compaction.numbers, 0xff, nr_before * sizeof(uint64_t));
	op_htable_visit(&map->windows, mark_visited, &compaction);
	cost = move_used(&compaction, &names);
	op_htable_visit(&map->windows, renumber_visited, &compaction);
	free(compaction.numbers);
	op_text_free(&map->names);
	map->names = names;
	map->counters[OP_JIT_bytes] -= map->nr_bytes - op_min_u64(cost, map->nr_bytes);
	map->nr_bytes = op_min_u64(cost, map->nr_bytes);
	nr_forgotten = nr_before - map->nr_functions;
	map->counters[OP_JIT_functions_forgotten] += nr_forgotten;
	map->compact_wait = nr_forgotten < nr_before / 4 ? nr_before / 2 : 0;
}

/* A compaction looks at all functions, so it is not tried for each function that is refused. */
static bool may_compact(struct opd_jit_map *map)
{
	if (!map->compact_wait)
		return map->nr_functions > 0;
	map->compact_wait--;
	return false;
}

/*
 * Accounts the memory of a new function. False, and counted, when it is too much. May give
 * functions other indices.
 */
static bool charge(struct opd_jit_map *map, uint64_t start, uint64_t bytes, size_t name_bytes)
{
	uint64_t pieces = nr_windows_of(start, bytes), new_windows = 0, cost;

	for (uint64_t i = 0; i < pieces; i++)
		new_windows += !find_window(map, (start >> WINDOW_BITS) + i);
	cost = cost_of(start, bytes, name_bytes) + new_windows * WINDOW_OVERHEAD;
	if (!has_room(map, cost) && may_compact(map))
		compact(map);
	if (!has_room(map, cost)) {
		map->counters[OP_JIT_refused_memory]++;
		return false;
	}
	map->nr_bytes += cost;
	map->counters[OP_JIT_bytes] += cost;
	return true;
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

/* The piece of a function at an address. */
static const struct opd_mapping *find_piece(const struct opd_jit_map *map, uint64_t address, uint64_t time_ns)
{
	const struct window *window = find_window(map, address >> WINDOW_BITS);

	return window ? opd_mapset_find(window->set, address, time_ns) : NULL;
}

static int add_pieces(struct opd_jit_map *map, size_t index, uint64_t start, uint64_t from_ns, uint64_t horizon_ns)
{
	uint64_t end = start + map->functions[index].bytes;

	for (uint64_t at = start, next; at < end; at = next) {
		struct window *window = get_window(map, at >> WINDOW_BITS);
		struct opd_mapping piece = { .key = at - start, .cookie = index, .from_ns = from_ns };

		next = op_min_u64(end, (at | (WINDOW_BYTES - 1)) + 1);
		piece.start = at;
		piece.end = next;
		if (!window || opd_mapset_add(&window->set, &piece, horizon_ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool is_known(const struct opd_jit_map *map, const struct opd_jit_code *code, const char *name)
{
	const struct opd_mapping *piece = find_piece(map, code->start, UINT64_MAX);
	const struct opd_jit_function *function = piece ? &map->functions[piece->cookie] : NULL;

	return function && piece->start == code->start && !piece->key && function->bytes == code->bytes &&
	       !strcmp(opd_jit_map_name(map, function), name);
}

static int add_function(struct opd_jit_map *map, const struct opd_jit_code *code, const struct op_text *name, uint64_t horizon_ns)
{
	size_t name_at = map->names.length;

	op_text_add_bytes(&map->names, op_text_get(name), name->length + 1);
	if (map->names.failed || name_at > UINT32_MAX || !op_grow(&map->functions, &map->capacity, map->nr_functions + 1))
		return -ENOMEM;
	map->functions[map->nr_functions++] = (struct opd_jit_function){
		.offset = OPD_JIT_NO_OFFSET,
		.code_at = code->code_at,
		.lines_at = code->lines_at,
		.start = code->start,
		.bytes = (uint32_t)code->bytes,
		.name_at = (uint32_t)name_at,
	};
	map->counters[OP_JIT_functions]++;
	return add_pieces(map, map->nr_functions - 1, code->start, code->from_ns, horizon_ns);
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
		 charge(map, code->start, code->bytes, name.length + 1))
		err = add_function(map, code, &name, horizon_ns);
	op_text_free(&name);
	return err;
}

int opd_jit_map_move(struct opd_jit_map *map, uint64_t old_start, uint64_t new_start, uint64_t from_ns, uint64_t horizon_ns)
{
	const struct opd_mapping *piece = find_piece(map, old_start, from_ns);
	uint64_t index;

	if (!piece || piece->start != old_start || piece->key) {
		map->counters[OP_JIT_refused_records]++;
		return 0;
	}
	index = piece->cookie;
	if (!is_sound(map, new_start, map->functions[index].bytes) || !charge(map, new_start, map->functions[index].bytes, 0))
		return 0;
	piece = find_piece(map, old_start, from_ns);
	return piece ? add_pieces(map, piece->cookie, new_start, from_ns, horizon_ns) : 0;
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
	const struct opd_mapping *piece = find_piece(map, address, time_ns);
	struct opd_jit_function *function;

	if (!piece)
		return false;
	function = &map->functions[piece->cookie];
	if (function->offset == OPD_JIT_NO_OFFSET)
		assign_offset(map, function);
	*ret_offset = function->offset + piece->key + (address - piece->start);
	return true;
}

static void free_visited(struct op_hlink *link, void *arg OP_UNUSED)
{
	free_window(op_container_of(link, struct window, link));
}

void opd_jit_map_free(struct opd_jit_map *map)
{
	if (map->counters) {
		map->counters[OP_JIT_bytes] -= map->nr_bytes;
		map->counters[OP_JIT_code_bytes] -= map->next_code_offset;
	}
	op_htable_visit(&map->windows, free_visited, NULL);
	op_htable_free(&map->windows);
	free(map->functions);
	op_text_free(&map->names);
	*map = (struct opd_jit_map){ .counters = map->counters };
}
