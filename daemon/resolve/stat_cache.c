/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/stat_cache.h"

#include "libop/session/dcookie.h"
#include "libop/base/htable.h"

static size_t slot_of(const struct opd_stat_entry *look)
{
	return op_hash_add(op_hash_u64(look->inode), look->name_hash) % OPD_STAT_CACHE_SLOTS;
}

static bool is_same_file(const struct opd_stat_entry *a, const struct opd_stat_entry *b)
{
	return a->inode == b->inode && a->device == b->device && a->inode_generation == b->inode_generation &&
	       a->name_hash == b->name_hash && a->place == b->place;
}

uint64_t opd_stat_cache_find(const struct opd_stat_cache *looked, const struct opd_stat_entry *look, uint64_t time_ns)
{
	const struct opd_stat_entry *kept = &looked->slots[slot_of(look)];

	return time_ns < kept->time_ns && is_same_file(kept, look) ? kept->cookie : OP_DCOOKIE_NONE;
}

void opd_stat_cache_keep(struct opd_stat_cache *looked, const struct opd_stat_entry *look)
{
	struct opd_stat_entry *slot = &looked->slots[slot_of(look)];

	opd_mount_view_put(slot->place);
	*slot = *look;
	slot->place = opd_mount_view_ref(look->place);
}

void opd_stat_cache_clear(struct opd_stat_cache *looked)
{
	for (size_t i = 0; i < OPD_STAT_CACHE_SLOTS; i++)
		opd_mount_view_put(looked->slots[i].place);
	*looked = (struct opd_stat_cache){ 0 };
}
