/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ring/overwrite_seen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ONE_SIDED_MAX 8u /* in a row */
#define SAME_AGAIN    4u /* so many words the same are agreement */

int words_add(struct words *words, uint64_t word)
{
	if (words->nr == words->nr_allocated) {
		size_t nr = words->nr ? 2 * words->nr : 4096;
		uint64_t *more = realloc(words->words, nr * sizeof(*more));

		if (!more)
			return -ENOMEM;
		words->words = more;
		words->nr_allocated = nr;
	}
	words->words[words->nr++] = word;
	return 0;
}

void words_reverse(struct words *words, size_t first)
{
	for (size_t last = words->nr; first + 1 < last; first++) {
		uint64_t word = words->words[--last];

		words->words[last] = words->words[first];
		words->words[first] = word;
	}
}

int seen_add_turn(struct seen *seen, const struct turn *turn)
{
	struct turn *more = realloc(seen->turns, (seen->nr_turns + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	seen->turns = more;
	seen->turns[seen->nr_turns++] = *turn;
	return 0;
}

/* Where two rows of words are compared. */
struct place {
	size_t given, given_end;
	size_t second, second_end;
};

static bool agrees_at(const struct seen *seen, const struct place *place, size_t given, size_t second)
{
	for (size_t i = 0; i < SAME_AGAIN; i++) {
		size_t g = place->given + given + i, s = place->second + second + i;

		if (g >= place->given_end)
			return true;
		if (s >= place->second_end || seen->given.words[g] != seen->second.words[s])
			return false;
	}
	return true;
}

/*
 * Skips to the next place where the two agree. Returns the number of skipped words that only one of
 * them has.
 */
static bool find_agreement(struct seen *seen, struct place *place)
{
	for (size_t sum = 1; sum <= ONE_SIDED_MAX; sum++) {
		for (size_t given = 0; given <= sum; given++) {
			if (!agrees_at(seen, place, given, sum - given))
				continue;
			place->given += given;
			place->second += sum - given;
			seen->nr_one_sided += sum;
			return true;
		}
	}
	return false;
}

/*
 * Skips to the first word of the turn, which must be right behind the overwritten words in front of
 * it. Bytes do not show words that only one of them has, so a few more or fewer are accepted,
 * unless there are none. Two events do not begin or end in the same fault when it interrupts them,
 * either.
 */
static bool skip(struct seen *seen, const struct turn *turn, size_t record_bytes, struct place *place)
{
	size_t nr = turn->overwritten_bytes / record_bytes, before = place->second;

	if (turn->overwritten_bytes % record_bytes || nr > place->second_end - place->second)
		return false;
	place->second += nr;
	if (agrees_at(seen, place, 0, 0))
		return true;
	for (size_t i = 1; (nr || !before) && i <= ONE_SIDED_MAX; i++) {
		bool fewer = i <= nr && agrees_at(seen, place, 0, -i);

		if (!fewer && !agrees_at(seen, place, 0, i))
			continue;
		place->second += fewer ? -i : i;
		seen->nr_one_sided += i;
		return true;
	}
	return false;
}

static bool turn_agrees(struct seen *seen, const struct turn *turn, size_t record_bytes, struct place *place)
{
	size_t before = place->second;

	place->given = turn->first;
	place->given_end = turn->first + turn->nr;
	if (!skip(seen, turn, record_bytes, place))
		return false;
	seen->nr_overwritten += place->second - before;
	while (place->given < place->given_end) {
		if (place->second < place->second_end && seen->given.words[place->given] == seen->second.words[place->second]) {
			place->given++;
			place->second++;
		} else if (!find_agreement(seen, place)) {
			return false;
		}
	}
	return true;
}

bool seen_agree(struct seen *seen, size_t record_bytes, size_t *ret_turn)
{
	struct place place = { .second_end = seen->second.nr };

	for (size_t i = 0; i < seen->nr_turns; i++) {
		if (turn_agrees(seen, &seen->turns[i], record_bytes, &place))
			continue;
		*ret_turn = i;
		return false;
	}
	*ret_turn = seen->nr_turns;
	seen->nr_one_sided += place.second_end - place.second;
	return place.second_end - place.second <= ONE_SIDED_MAX;
}

void seen_free(struct seen *seen)
{
	free(seen->given.words);
	free(seen->second.words);
	free(seen->turns);
	*seen = (struct seen){ 0 };
}
