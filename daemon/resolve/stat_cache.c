/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/stat_cache.h"

#include "libop/session/dcookie.h"
#include "libop/base/htable.h"

static size_t slot_of(const struct opd_look *look)
{
	return op_hash_add(op_hash_u64(look->inode), look->name_hash) % OPD_LOOKED_SLOTS;
}

static bool is_same_file(const struct opd_look *a, const struct opd_look *b)
{
	return a->inode == b->inode && a->device == b->device && a->inode_generation == b->inode_generation &&
	       a->name_hash == b->name_hash && a->place == b->place;
}

uint64_t opd_looked_find(const struct opd_looked *looked, const struct opd_look *look, uint64_t time_ns)
{
	const struct opd_look *kept = &looked->slots[slot_of(look)];

	return time_ns < kept->time_ns && is_same_file(kept, look) ? kept->cookie : OP_DCOOKIE_NONE;
}

void opd_looked_keep(struct opd_looked *looked, const struct opd_look *look)
{
	struct opd_look *slot = &looked->slots[slot_of(look)];

	opd_place_put(slot->place);
	*slot = *look;
	slot->place = opd_place_ref(look->place);
}

void opd_looked_clear(struct opd_looked *looked)
{
	for (size_t i = 0; i < OPD_LOOKED_SLOTS; i++)
		opd_place_put(looked->slots[i].place);
	*looked = (struct opd_looked){ 0 };
}
