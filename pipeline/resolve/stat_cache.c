/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/stat_cache.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/session/dcookie.h"

static size_t slot_of(const struct opd_stat_entry *entry)
{
	return op_hash_add(op_hash_u64(entry->inode), entry->name_hash) % OPD_STAT_CACHE_SLOTS;
}

static bool is_same_file(const struct opd_stat_entry *a, const struct opd_stat_entry *b)
{
	return a->inode == b->inode && a->device == b->device && a->inode_generation == b->inode_generation &&
	       a->name_hash == b->name_hash && a->mount_view == b->mount_view;
}

/* False: the cache is not for this mapping. */
static bool make_entry(const struct opd_mapped *mapped, struct opd_stat_entry *ret_entry)
{
	if (!mapped->stat_cache || mapped->build_id.nr_bytes || mapped->is_foreign || !mapped->inode || !mapped->time_ns)
		return false;
	*ret_entry = (struct opd_stat_entry){
		.device = mapped->device,
		.inode = mapped->inode,
		.inode_generation = mapped->inode_generation,
		.name_hash = op_hash_bytes(0, mapped->name, strlen(mapped->name)),
		.mount_view = mapped->mount_view,
	};
	return true;
}

/*
 * Whether to ask about this file together with one that was mapped now: looks at both are too old.
 * The first question of a visit is about files that were used since the last one, the next ones are
 * about all.
 */
static bool is_to_be_asked(const struct opd_stat_entry *entry, const struct opd_stat_entry *with, const struct opd_mapped *mapped)
{
	return entry->file.path && entry->time_ns <= mapped->time_ns && entry->uid == with->uid && entry != with &&
	       (entry->was_used || mapped->time_ns < mapped->stat_cache->asked_ns);
}

/* Without an answer each file is looked at by itself: so the process that mapped it is to blame. */
static void take_answer(struct opd_stat_entry *entry, bool is_unchanged, uint64_t asked_ns)
{
	entry->was_used = false;
	if (is_unchanged) {
		entry->time_ns = asked_ns;
	} else {
		free(entry->file.path);
		entry->file.path = NULL;
	}
}

/* Asks about this file, and about others of its owner. */
static void look_again(const struct opd_mapped *mapped, struct opd_stat_entry *kept)
{
	struct opd_stat_cache *cache = mapped->stat_cache;
	struct opd_stat_entry *asked[OPD_UNCHANGED_MAX];
	struct opd_known_file files[OPD_UNCHANGED_MAX];
	bool unchanged[OPD_UNCHANGED_MAX] = { false };
	uint64_t now_ns = op_now_ns();
	size_t nr = 1;

	asked[0] = kept;
	for (size_t i = 0; i < OPD_STAT_CACHE_SLOTS && nr < OPD_UNCHANGED_MAX; i++)
		if (is_to_be_asked(&cache->slots[i], kept, mapped))
			asked[nr++] = &cache->slots[i];
	cache->asked_ns = now_ns;
	for (size_t i = 0; i < nr; i++)
		files[i] = asked[i]->file;
	if (opd_unchanged_ask(mapped->mount_views->lookers, kept->uid, files, nr, unchanged) < 0)
		memset(unchanged, 0, sizeof(unchanged));
	for (size_t i = 0; i < nr; i++)
		take_answer(asked[i], unchanged[i], now_ns);
}

uint64_t opd_stat_cache_find(const struct opd_mapped *mapped)
{
	struct opd_stat_entry wanted, *kept;

	if (!make_entry(mapped, &wanted))
		return OP_DCOOKIE_NONE;
	kept = &mapped->stat_cache->slots[slot_of(&wanted)];
	if (!is_same_file(kept, &wanted))
		return OP_DCOOKIE_NONE;
	if (mapped->time_ns >= kept->time_ns && kept->file.path)
		look_again(mapped, kept);
	if (mapped->time_ns >= kept->time_ns)
		return OP_DCOOKIE_NONE;
	kept->was_used = true;
	return kept->cookie;
}

/*
 * A later look at the path says something of the mapped file only when it leads to the very inode
 * of the record, not to a layer that an overlay showed at that time. A file of a FUSE server would
 * let the question about all others hang.
 */
static bool can_be_asked(const struct opd_mapped *mapped, const struct opd_located *located)
{
	const struct statx *st = &located->stat;

	return mapped->mount_views->lookers && located->on_host && located->knows_owner && st->stx_ino == mapped->inode &&
	       makedev(st->stx_dev_major, st->stx_dev_minor) == mapped->device;
}

static void note_file(struct opd_stat_entry *entry, const struct opd_located *located)
{
	const struct statx *st = &located->stat;

	entry->uid = st->stx_uid;
	entry->file = (struct opd_known_file){
		.path = strdup(op_text_get(&located->path)),
		.device = entry->device,
		.inode = entry->inode,
		.inode_generation = located->inode_generation,
		.mtime_ns = (uint64_t)st->stx_mtime.tv_sec * OP_NS_PER_S + st->stx_mtime.tv_nsec,
		.nr_bytes = st->stx_size,
	};
}

static void clear_slot(struct opd_stat_entry *slot)
{
	opd_mount_view_put(slot->mount_view);
	free(slot->file.path);
}

void opd_stat_cache_keep(const struct opd_mapped *mapped, const struct opd_located *located, uint64_t asked_ns, uint64_t cookie)
{
	struct opd_stat_entry entry, *slot;

	if (!make_entry(mapped, &entry))
		return;
	entry.cookie = cookie;
	entry.time_ns = asked_ns;
	entry.was_used = true;
	if (can_be_asked(mapped, located))
		note_file(&entry, located);
	opd_mount_view_ref(entry.mount_view);
	slot = &mapped->stat_cache->slots[slot_of(&entry)];
	clear_slot(slot);
	*slot = entry;
}

void opd_stat_cache_clear(struct opd_stat_cache *cache)
{
	for (size_t i = 0; i < OPD_STAT_CACHE_SLOTS; i++)
		clear_slot(&cache->slots[i]);
	*cache = (struct opd_stat_cache){ 0 };
}
