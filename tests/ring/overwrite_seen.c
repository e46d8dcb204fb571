/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ring/overwrite_seen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_at(const struct seen *seen, const struct turn *turn, size_t at)
{
	return turn->nr <= seen->second.nr - at &&
	       (!turn->nr || !memcmp(seen->given.words + turn->first, seen->second.words + at, turn->nr * sizeof(uint64_t)));
}

/* Goes over what was overwritten in front of the turn. False when the turn is not behind it. */
static bool skip(const struct seen *seen, const struct turn *turn, size_t record_bytes, size_t *at)
{
	size_t nr = turn->overwritten_bytes / record_bytes;

	if (turn->overwritten_bytes % record_bytes || nr > seen->second.nr - *at || !is_at(seen, turn, *at + nr))
		return false;
	*at += nr;
	return true;
}

bool seen_agree(struct seen *seen, size_t record_bytes, size_t *ret_turn)
{
	size_t at = 0;

	for (size_t i = 0; i < seen->nr_turns; i++) {
		size_t before = at;

		if (!skip(seen, &seen->turns[i], record_bytes, &at)) {
			*ret_turn = i;
			return false;
		}
		seen->nr_overwritten += at - before;
		at += seen->turns[i].nr;
	}
	*ret_turn = seen->nr_turns;
	return at == seen->second.nr;
}

void seen_free(struct seen *seen)
{
	free(seen->given.words);
	free(seen->second.words);
	free(seen->turns);
	*seen = (struct seen){ 0 };
}
