/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/waiting.h"

#include "libop/base/clock.h"

#define LINES_IN_STEP 16u /* looked up in about the time of a step */

/* Code between two multiples of OPD_JIT_LINE_BYTES. */
struct line {
	struct op_hlink link;
	uint64_t number;    /* its address / OPD_JIT_LINE_BYTES */
	uint64_t addresses; /* a bit for each that had samples and has no name */
	uint64_t first_ns, last_ns;
	uint64_t nr_samples; /* also of those that have a name meanwhile */
};

static_assert(OPD_JIT_LINE_BYTES == 64, "line.addresses has a bit for each address");

void opd_jit_make_label(char label[OPD_JIT_LABEL_BYTES])
{
	snprintf(label, OPD_JIT_LABEL_BYTES, OP_JIT_LABEL "%llx", (unsigned long long)op_clock_ns(CLOCK_REALTIME) / 1000u);
}

/* ---- tables ---- */

struct opd_jit_waiting *opd_jit_waiting_new(struct opd_jit_waits *waits, uint32_t pid, uid_t uid, const char *label)
{
	struct opd_jit_waiting *waiting = calloc(1, sizeof(*waiting));
	const struct op_image_id id = { .name = { .kind = OP_IMAGE_ANON, .name = label } };

	if (!waiting)
		return NULL;
	*waiting = (struct opd_jit_waiting){ .waits = waits, .next = waits->first, .link = &waits->first, .pid = pid };
	snprintf(waiting->label, sizeof(waiting->label), "%s", label);
	waiting->label_cookie = op_dcookie_get(waits->table, &id);
	if (waiting->label_cookie == OP_DCOOKIE_NONE) {
		free(waiting);
		return NULL;
	}
	waiting->user = opd_jit_use_get(&waits->users, uid);
	if (waiting->next)
		waiting->next->link = &waiting->next;
	waits->first = waiting;
	return waiting;
}

static void remove_line(struct opd_jit_waiting *waiting, struct line *line)
{
	op_htable_remove(&waiting->lines, &line->link);
	free(line);
	waiting->user->nr_lines--;
	waiting->waits->counters[OP_JIT_waiting]--;
}

static void free_in_vain(struct op_hlink *link, void *arg)
{
	struct line *line = op_container_of(link, struct line, link);
	struct opd_jit_waiting *waiting = arg;

	waiting->waits->counters[OP_JIT_unnamed_samples] += line->nr_samples;
	remove_line(waiting, line);
}

void opd_jit_waiting_free(struct opd_jit_waiting *waiting)
{
	if (!waiting)
		return;
	op_htable_visit(&waiting->lines, free_in_vain, waiting);
	op_htable_free(&waiting->lines);
	opd_jit_use_put(waiting->user);
	*waiting->link = waiting->next;
	if (waiting->next)
		waiting->next->link = waiting->link;
	free(waiting);
}

void opd_jit_waits_visit_cookies(const struct opd_jit_waits *waits, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	for (const struct opd_jit_waiting *waiting = waits->first; waiting; waiting = waiting->next)
		visit(waiting->label_cookie, arg);
}

/* ---- samples ---- */

static struct line *find_line(const struct opd_jit_waiting *waiting, uint64_t number)
{
	struct op_hlink *link = op_htable_first(&waiting->lines, op_hash_u64(number));

	for (; link; link = op_htable_next(link)) {
		struct line *line = op_container_of(link, struct line, link);

		if (line->number == number)
			return line;
	}
	return NULL;
}

/* A process of the user without a file gives up its lines. False: there is none. */
static bool make_room(const struct opd_jit_waiting *wanting)
{
	struct opd_jit_waiting *longest = NULL;

	if (!wanting->has_file)
		return false;
	for (struct opd_jit_waiting *waiting = wanting->waits->first; waiting; waiting = waiting->next)
		if (waiting->user == wanting->user && !waiting->has_file && waiting->lines.nr_entries &&
		    (!longest || waiting->first_ns < longest->first_ns))
			longest = waiting;
	if (longest)
		op_htable_visit(&longest->lines, free_in_vain, longest);
	return longest;
}

/* NULL: there is no room. */
static struct line *add_line(struct opd_jit_waiting *waiting, uint64_t number, uint64_t time_ns)
{
	struct opd_jit_waits *waits = waiting->waits;
	struct line *line;

	if (waiting->lines.nr_entries >= OPD_JIT_LINES_MAX ||
	    (waiting->user->nr_lines >= OPD_JIT_LINES_USER_MAX && !make_room(waiting)) ||
	    waits->counters[OP_JIT_waiting] >= OPD_JIT_LINES_ALL_MAX)
		return NULL;
	line = malloc(sizeof(*line));
	if (!line)
		return NULL;
	*line = (struct line){ .number = number, .first_ns = time_ns, .last_ns = time_ns };
	if (op_htable_insert(&waiting->lines, &line->link, op_hash_u64(number)) < 0) {
		free(line);
		return NULL;
	}
	if (waiting->lines.nr_entries == 1)
		waiting->first_ns = time_ns;
	waiting->user->nr_lines++;
	waits->counters[OP_JIT_waiting]++;
	return line;
}

bool opd_jit_waiting_add(struct opd_jit_waiting *waiting, uint64_t address, uint64_t time_ns, bool is_caller)
{
	uint64_t number = address / OPD_JIT_LINE_BYTES;
	struct line *line = find_line(waiting, number);

	if (!line)
		line = add_line(waiting, number, time_ns);
	if (!line) {
		waiting->waits->counters[OP_JIT_refused_waiting] += !is_caller;
		return false;
	}
	line->first_ns = op_min_u64(line->first_ns, time_ns);
	line->last_ns = op_max_u64(line->last_ns, time_ns);
	line->addresses |= UINT64_C(1) << address % OPD_JIT_LINE_BYTES;
	line->nr_samples += !is_caller;
	waiting->first_ns = op_min_u64(waiting->first_ns, time_ns);
	return true;
}

/* ---- names ---- */

/* A function that was added, and the lines that it lies in. */
struct candidate {
	struct opd_jit_waiting *waiting;
	struct opd_jit_map *map;
	uint64_t start, end;
	uint32_t function;
	bool has_samples;
	bool is_mixed; /* other code was there while they waited */
};

/* The waiting addresses of a line that lie in the function. */
static uint64_t addresses_in(const struct candidate *candidate, const struct line *line)
{
	uint64_t at = line->number * OPD_JIT_LINE_BYTES, addresses = line->addresses;

	if (candidate->end <= at || candidate->start >= at + OPD_JIT_LINE_BYTES)
		return 0;
	if (candidate->start > at)
		addresses &= UINT64_MAX << (candidate->start - at);
	if (candidate->end < at + OPD_JIT_LINE_BYTES)
		addresses &= UINT64_MAX >> (at + OPD_JIT_LINE_BYTES - candidate->end);
	return addresses;
}

static void check_line(struct candidate *candidate, struct line *line)
{
	const struct opd_jit_map *map = candidate->map;
	uint64_t addresses = addresses_in(candidate, line), at = line->number * OPD_JIT_LINE_BYTES;
	const struct opd_jit_piece when = {
		.start = at + (unsigned int)__builtin_ctzll(addresses | UINT64_C(1) << 63),
		.end = at + OPD_JIT_LINE_BYTES - (unsigned int)__builtin_clzll(addresses | 1),
		.from_ns = line->first_ns,
		.to_ns = line->last_ns,
		.function = candidate->function,
	};

	if (!addresses)
		return;
	candidate->map->pieces.account.nr_steps++;
	candidate->has_samples = true;
	candidate->is_mixed |= !opd_jit_pieces_held(&map->pieces, &map->functions, &when);
}

static void name_line(struct candidate *candidate, struct line *line)
{
	line->addresses &= ~addresses_in(candidate, line);
	if (line->addresses)
		return;
	candidate->waiting->waits->counters[OP_JIT_named_late] += line->nr_samples;
	remove_line(candidate->waiting, line);
}

struct visit {
	struct candidate *candidate;
	void (*visit)(struct candidate *candidate, struct line *line);
};

static void visit_line(struct op_hlink *link, void *arg)
{
	const struct visit *visit = arg;

	visit->visit(visit->candidate, op_container_of(link, struct line, link));
}

/* A large function has more lines than there are in the table. */
static void visit_lines(struct candidate *candidate, void (*visit)(struct candidate *candidate, struct line *line))
{
	uint64_t first = candidate->start / OPD_JIT_LINE_BYTES, last = (candidate->end - 1) / OPD_JIT_LINE_BYTES;
	struct opd_jit_waiting *waiting = candidate->waiting;
	struct visit visit_each = { candidate, visit };

	candidate->map->pieces.account.nr_steps += op_min_u64(last - first + 1, waiting->lines.nr_entries) / LINES_IN_STEP;
	if (last - first >= waiting->lines.nr_entries) {
		op_htable_visit(&waiting->lines, visit_line, &visit_each);
		return;
	}
	for (uint64_t number = first; number <= last; number++) {
		struct line *line = find_line(waiting, number);

		if (line)
			visit(candidate, line);
	}
}

static void try_function(struct opd_jit_waiting *waiting, struct opd_jit_map *map, const struct opd_jit_added *added)
{
	struct candidate candidate = {
		.waiting = waiting,
		.map = map,
		.start = added->start,
		.end = added->start + map->functions.rows[added->function].bytes,
		.function = added->function,
	};

	visit_lines(&candidate, check_line);
	if (candidate.has_samples && !candidate.is_mixed && opd_jit_map_make_late(map, added))
		visit_lines(&candidate, name_line);
}

/* The table may have fewer lines now, and older pieces of the map can go. */
static void note_first(struct op_hlink *link, void *arg)
{
	uint64_t *first_ns = arg;

	*first_ns = op_min_u64(*first_ns, op_container_of(link, struct line, link)->first_ns);
}

void opd_jit_waiting_name(struct opd_jit_waiting *waiting, struct opd_jit_map *map, struct opd_jit_allowance *allowance)
{
	uint32_t nr_before = (uint32_t)waiting->lines.nr_entries;
	size_t nr = 0;

	while (nr < map->nr_added && waiting->lines.nr_entries && !opd_jit_allowance_ends(allowance, opd_jit_map_steps(map)))
		try_function(waiting, map, &map->added[nr++]);
	opd_jit_map_forget_added(map, waiting->lines.nr_entries ? nr : map->nr_added);
	if (waiting->lines.nr_entries == nr_before)
		return;
	waiting->first_ns = UINT64_MAX;
	op_htable_visit(&waiting->lines, note_first, &waiting->first_ns);
}
