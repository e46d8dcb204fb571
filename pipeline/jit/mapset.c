/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/mapset.h"

#include <errno.h>

#define FIRST_ROWS 8
#define NR_LEVELS  16 /* lists are counted by the power of two below their length */
/* room that is made at once, because making room looks at every set */
#define SPARE (OPD_MAPPINGS_MAX / 8)

struct mappings {
	struct opd_mapping *rows;
	size_t nr, capacity;
};

struct opd_mapset {
	uint32_t refs;
	uint32_t round; /* of the last opd_mapset_visit_cookies */
	struct opd_mapset_account *account;
	struct opd_mapset *next, **at; /* links of the account's list */
	struct mappings now;           /* sorted by start, without overlap */
	struct mappings past;          /* in the order in which they ended */
};

struct opd_mapset *opd_mapset_new(struct opd_mapset_account *account)
{
	struct opd_mapset *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->refs = 1;
	set->account = account;
	if (!account)
		return set;
	set->next = account->sets;
	set->at = &account->sets;
	if (set->next)
		set->next->at = &set->next;
	account->sets = set;
	return set;
}

struct opd_mapset *opd_mapset_get(struct opd_mapset *set)
{
	set->refs++;
	return set;
}

void opd_mapset_put(struct opd_mapset *set)
{
	if (!set || --set->refs)
		return;
	if (set->account) {
		set->account->nr_mappings -= set->now.capacity + set->past.capacity;
		*set->at = set->next;
		if (set->next)
			set->next->at = set->at;
	}
	free(set->now.rows);
	free(set->past.rows);
	free(set);
}

/* The capacity that a list gets for nr rows. */
static size_t room_for(size_t capacity, size_t nr)
{
	if (nr <= capacity)
		return capacity;
	if (!capacity)
		capacity = FIRST_ROWS;
	while (capacity < nr)
		capacity *= 2;
	return capacity;
}

static int resize(const struct opd_mapset *set, struct mappings *list, size_t capacity)
{
	struct opd_mapping *rows = NULL;

	if (capacity == list->capacity)
		return 0;
	if (capacity) {
		rows = realloc(list->rows, capacity * sizeof(*rows));
		if (!rows)
			return -ENOMEM;
	} else {
		free(list->rows);
	}
	if (set->account)
		set->account->nr_mappings = set->account->nr_mappings + capacity - list->capacity;
	list->rows = rows;
	list->capacity = capacity;
	return 0;
}

static int reserve(const struct opd_mapset *set, struct mappings *list, size_t more)
{
	return resize(set, list, room_for(list->capacity, list->nr + more));
}

static int copy_list(const struct opd_mapset *set, const struct mappings *from, struct mappings *to)
{
	if (!from->nr)
		return 0;
	if (reserve(set, to, from->nr) < 0)
		return -ENOMEM;
	memcpy(to->rows, from->rows, from->nr * sizeof(*from->rows));
	to->nr = from->nr;
	return 0;
}

/* Copies *set when others hold references to it. */
static int make_own(struct opd_mapset **set)
{
	struct opd_mapset *copy;

	if ((*set)->refs == 1)
		return 0;
	copy = opd_mapset_new((*set)->account);
	if (!copy)
		return -ENOMEM;
	if (copy_list(copy, &(*set)->now, &copy->now) < 0 || copy_list(copy, &(*set)->past, &copy->past) < 0) {
		opd_mapset_put(copy);
		return -ENOMEM;
	}
	opd_mapset_put(*set);
	*set = copy;
	return 0;
}

/* Index of the first mapping that ends after `address`. */
static size_t first_ending_after(const struct mappings *list, uint64_t address)
{
	return op_nr_leading(list->rows, list->nr, mapping, mapping->end <= address);
}

static void forget_past(struct mappings *past, uint64_t horizon_ns)
{
	size_t nr_old = 0;

	while (nr_old < past->nr && past->rows[nr_old].to_ns < horizon_ns)
		nr_old++;
	if (!nr_old)
		return;
	past->nr -= nr_old;
	memmove(past->rows, past->rows + nr_old, past->nr * sizeof(*past->rows));
}

static void note_dropped(const struct opd_mapset *set, size_t nr_dropped)
{
	if (set->account)
		set->account->nr_dropped += nr_dropped;
}

/*
 * Rows are dropped down to this number at once: dropping one at a time would move all rows each
 * time.
 */
static size_t room_below(size_t limit)
{
	return limit - limit / 16;
}

static void forget_oldest(struct opd_mapset *set, size_t limit)
{
	struct mappings *past = &set->past;
	size_t nr_old = past->nr - room_below(limit);

	past->nr -= nr_old;
	memmove(past->rows, past->rows + nr_old, past->nr * sizeof(*past->rows));
	note_dropped(set, nr_old);
}

/*
 * The lowest ranks go first from a full set: regions before files, and those that have held
 * longest.
 */
static uint64_t rank(const struct opd_mapping *mapping)
{
	return (mapping->from_ns & INT64_MAX) | (uint64_t)!mapping->region_end << 63;
}

static int compare_ranks(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static int make_space(struct opd_mapset *set, size_t limit)
{
	struct mappings *now = &set->now;
	size_t nr_gone = now->nr - room_below(limit), nr_left = 0;
	uint64_t *ranks = malloc(now->nr * sizeof(*ranks)), last;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < now->nr; i++)
		ranks[i] = rank(&now->rows[i]);
	qsort(ranks, now->nr, sizeof(*ranks), compare_ranks);
	last = ranks[nr_gone - 1];
	free(ranks);
	note_dropped(set, nr_gone);
	for (size_t i = 0; i < now->nr; i++) {
		if (nr_gone && rank(&now->rows[i]) <= last)
			nr_gone--;
		else
			now->rows[nr_left++] = now->rows[i];
	}
	now->nr = nr_left;
	return 0;
}

/* The part of a mapping between two addresses. */
static struct opd_mapping part_of(const struct opd_mapping *whole, uint64_t start, uint64_t end)
{
	struct opd_mapping part = *whole;

	part.start = start;
	part.end = end;
	part.key += start - whole->start;
	return part;
}

/* Replaces nr_old rows at index by nr_rows rows. The caller has reserved the room. */
static void splice(struct mappings *list, size_t index, size_t nr_old, const struct opd_mapping *rows, size_t nr_rows)
{
	/*
	 * No move when a file is mapped again where it was: that is common, and a set may be long.
	 */
	if (nr_rows != nr_old)
		memmove(list->rows + index + nr_rows, list->rows + index + nr_old, (list->nr - index - nr_old) * sizeof(*rows));
	memcpy(list->rows + index, rows, nr_rows * sizeof(*rows));
	list->nr = list->nr - nr_old + nr_rows;
}

static bool same_mapping(const struct opd_mapping *a, const struct opd_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->key == b->key && a->cookie == b->cookie &&
	       a->region_end == b->region_end;
}

/* ---- all sets together ---- */

/* Lists, by the power of two below their length. */
struct lengths {
	size_t nr_lists[NR_LEVELS], nr_rows[NR_LEVELS];
};

static void count_list(struct lengths *lengths, const struct mappings *list)
{
	size_t level = 0;

	if (!list->nr)
		return;
	while (level < NR_LEVELS - 1 && list->nr >> (level + 1))
		level++;
	lengths->nr_lists[level]++;
	lengths->nr_rows[level] += list->nr;
}

/* The length to which lists must be cut to have nr_rows rows in all. */
static size_t length_for(const struct lengths *lengths, size_t nr_rows)
{
	size_t length = 1, nr_longer = 0, nr_kept = 0;

	for (size_t level = 0; level < NR_LEVELS; level++)
		nr_longer += lengths->nr_lists[level];
	for (size_t level = 0; level < NR_LEVELS; level++) {
		nr_kept += lengths->nr_rows[level];
		nr_longer -= lengths->nr_lists[level];
		if (nr_kept + (nr_longer << (level + 1)) > nr_rows)
			break;
		length <<= 1;
	}
	return length;
}

/* Without memory a list stays as it is. */
static void cut_down(struct opd_mapset *set, size_t length)
{
	if (set->past.nr > length)
		forget_oldest(set, length);
	if (set->now.nr > length)
		make_space(set, length);
	resize(set, &set->past, set->past.nr);
	resize(set, &set->now, set->now.nr);
}

/* Makes room for `more` rows and SPARE rows beside them. */
static void make_room(struct opd_mapset_account *account, size_t more, uint64_t horizon_ns)
{
	struct lengths lengths = { 0 };
	size_t length;

	for (struct opd_mapset *set = account->sets; set; set = set->next) {
		forget_past(&set->past, horizon_ns);
		count_list(&lengths, &set->past);
		count_list(&lengths, &set->now);
	}
	length = length_for(&lengths, OPD_MAPPINGS_MAX - op_min_u64(OPD_MAPPINGS_MAX, more + SPARE));
	for (struct opd_mapset *set = account->sets; set; set = set->next)
		cut_down(set, length);
}

/* ---- adding ---- */

/* A mapping to be added, and the rows [first, last) that it cuts. */
struct addition {
	const struct opd_mapping *mapping;
	size_t first, last;
};

static void find_cut(const struct opd_mapset *set, struct addition *addition)
{
	const struct mappings *now = &set->now;

	addition->first = first_ending_after(now, addition->mapping->start);
	addition->last = addition->first;
	while (addition->last < now->nr && now->rows[addition->last].start < addition->mapping->end)
		addition->last++;
}

/* The growth of the set, or of its copy when it is shared, by an addition. */
static size_t growth(const struct opd_mapset *set, const struct addition *addition)
{
	bool is_own = set->refs == 1;
	size_t now = is_own ? set->now.capacity : 0, past = is_own ? set->past.capacity : 0;

	return room_for(now, set->now.nr + 2) - now + room_for(past, set->past.nr + addition->last - addition->first) - past;
}

static bool fits(const struct opd_mapset *set, const struct addition *addition)
{
	return !set->account || set->account->nr_mappings + growth(set, addition) <= OPD_MAPPINGS_MAX;
}

/* False when no set can be cut any more. */
static bool find_room(struct opd_mapset *set, struct addition *addition, uint64_t horizon_ns)
{
	if (op_likely(fits(set, addition)))
		return true;
	make_room(set->account, growth(set, addition), horizon_ns);
	find_cut(set, addition);
	return fits(set, addition);
}

static int keep_below_max(struct opd_mapset *set, struct addition *addition)
{
	if (set->past.nr >= OPD_MAPSET_MAX)
		forget_oldest(set, OPD_MAPSET_MAX);
	if (set->now.nr < OPD_MAPSET_MAX)
		return 0;
	if (make_space(set, OPD_MAPSET_MAX) < 0)
		return -ENOMEM;
	find_cut(set, addition);
	return 0;
}

static void put_in(struct opd_mapset *set, const struct addition *addition)
{
	const struct opd_mapping *mapping = addition->mapping;
	struct mappings *now = &set->now, *past = &set->past;
	size_t first = addition->first, last = addition->last, nr_rows = 0;
	struct opd_mapping rows[3];

	for (size_t i = first; i < last; i++) {
		const struct opd_mapping *cut = &now->rows[i];
		struct opd_mapping gone = part_of(cut, op_max_u64(cut->start, mapping->start), op_min_u64(cut->end, mapping->end));

		gone.to_ns = mapping->from_ns;
		past->rows[past->nr++] = gone;
	}
	if (first < last && now->rows[first].start < mapping->start)
		rows[nr_rows++] = part_of(&now->rows[first], now->rows[first].start, mapping->start);
	rows[nr_rows] = *mapping;
	rows[nr_rows++].to_ns = UINT64_MAX;
	if (first < last && now->rows[last - 1].end > mapping->end)
		rows[nr_rows++] = part_of(&now->rows[last - 1], mapping->end, now->rows[last - 1].end);
	splice(now, first, last - first, rows, nr_rows);
}

int opd_mapset_add(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns)
{
	struct addition addition = { .mapping = mapping };

	find_cut(*set, &addition);
	/* mprotect and repeated maps report a known mapping again. */
	if (addition.first < (*set)->now.nr && same_mapping(&(*set)->now.rows[addition.first], mapping))
		return 0;
	if (!find_room(*set, &addition, horizon_ns)) {
		note_dropped(*set, 1);
		return 0;
	}
	if (make_own(set) < 0)
		return -ENOMEM;
	forget_past(&(*set)->past, horizon_ns);
	if (keep_below_max(*set, &addition) < 0 || reserve(*set, &(*set)->now, 2) < 0 ||
	    reserve(*set, &(*set)->past, addition.last - addition.first) < 0)
		return -ENOMEM;
	put_in(*set, &addition);
	return 0;
}

const struct opd_mapping *opd_mapset_find(const struct opd_mapset *set, uint64_t address, uint64_t time_ns)
{
	size_t index = first_ending_after(&set->now, address);
	const struct opd_mapping *found = NULL;

	if (index < set->now.nr && set->now.rows[index].start <= address)
		found = &set->now.rows[index];
	if (found && found->from_ns <= time_ns)
		return found;
	for (size_t i = set->past.nr; i > 0; i--) {
		const struct opd_mapping *row = &set->past.rows[i - 1];

		if (row->start <= address && address < row->end && row->from_ns <= time_ns && time_ns < row->to_ns)
			return row;
	}
	/*
	 * Another thread may run in a mapping just before the record of that mapping gets its time
	 * stamp.
	 */
	return found;
}

uint64_t opd_mapset_end(const struct opd_mapset *set)
{
	return set->now.nr ? set->now.rows[set->now.nr - 1].end : 0;
}

size_t opd_mapset_count(const struct opd_mapset *set)
{
	return set->now.nr;
}

static void visit_list(const struct mappings *list, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	for (size_t i = 0; i < list->nr; i++)
		visit(list->rows[i].cookie, arg);
}

void opd_mapset_visit_cookies(struct opd_mapset *set, uint32_t round, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	if (set->round == round)
		return;
	set->round = round;
	visit_list(&set->now, visit, arg);
	visit_list(&set->past, visit, arg);
}

static void visit_mappings(const struct mappings *list, void (*visit)(const struct opd_mapping *mapping, void *arg), void *arg)
{
	for (size_t i = 0; i < list->nr; i++)
		visit(&list->rows[i], arg);
}

void opd_mapset_visit(const struct opd_mapset *set, void (*visit)(const struct opd_mapping *mapping, void *arg), void *arg)
{
	visit_mappings(&set->now, visit, arg);
	visit_mappings(&set->past, visit, arg);
}
