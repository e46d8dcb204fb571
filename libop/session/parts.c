/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/parts.h"

#include <dirent.h>
#include <errno.h>

#include "libop/odb/file_image.h"
#include "libop/session/dcookie.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/memory_view.h"
#include "libop/session/pack.h"
#include "libop/session/pack_all.h"
#include "libop/session/stack_part.h"
#include "libop/session/timeline_part.h"
#include "libop/session/walk.h"

/* Only an error that all files would have ends the walk. */
static int compact_file(const char *path, unsigned char type, void *arg)
{
	int err = type != DT_REG ? 0 : op_odb_compact(*(int *)arg, path);

	return err == -ENOSYS || err == -EOPNOTSUPP ? err : 0;
}

static void compact_samples(int dir_fd, const char *path)
{
	(void)!op_session_walk(dir_fd, path, compact_file, &dir_fd);
}

static void pack_samples(int dir_fd, const char *path OP_UNUSED)
{
	(void)!op_session_pack(dir_fd);
}

/* `packed` comes before the directories: what is packed need not be compacted. */
const struct op_session_part op_session_parts[] = {
	{ .name = OP_SESSION_PACKED, .kind = OP_PART_FILE, .noun = "pack of sample files", .archiving = OP_ARCHIVE_NEVER,
	  .is_in_ledger = true, .compact = pack_samples },
	{ .name = OP_SESSION_PACK_NEW, .kind = OP_PART_FILE, .noun = "pack of sample files", .archiving = OP_ARCHIVE_NEVER },
	{ .name = "{root}", .kind = OP_PART_SAMPLES, .noun = "directory", .archiving = OP_ARCHIVE_SELECTED, .is_in_ledger = true,
	  .compact = compact_samples },
	{ .name = "{kern}", .kind = OP_PART_SAMPLES, .noun = "directory", .archiving = OP_ARCHIVE_SELECTED, .is_in_ledger = true,
	  .compact = compact_samples },
	{ .name = OP_CGROUP_DIR, .kind = OP_PART_SAMPLES, .noun = "directory", .archiving = OP_ARCHIVE_WHOLE,
	  .compact = compact_samples },
	{ .name = OP_MEM_DIR, .kind = OP_PART_SAMPLES, .noun = "directory", .archiving = OP_ARCHIVE_ALWAYS,
	  .compact = compact_samples },
	{ .name = OP_SESSION_STACKS, .kind = OP_PART_FILE, .noun = "file of stacks", .record = "node",
	  .archiving = OP_ARCHIVE_WHOLE, .read = op_stack_part_read, .recover = op_stack_part_recover },
	{ .name = OP_SESSION_TIMELINE, .kind = OP_PART_FILE, .noun = "timeline", .record = "block",
	  .archiving = OP_ARCHIVE_WHOLE, .read = op_timeline_part_read, .recover = op_timeline_part_recover },
	{ .name = "stats", .kind = OP_PART_DIR, .noun = "directory", .archiving = OP_ARCHIVE_ALWAYS },
	{ .name = OP_SESSION_LEDGER, .kind = OP_PART_FILE, .noun = "ledger", .archiving = OP_ARCHIVE_FIRST, .is_published = true,
	  .is_dumped = true },
	{ .name = OP_DCOOKIE_FILE, .kind = OP_PART_FILE, .noun = "table of images", .archiving = OP_ARCHIVE_LAST,
	  .is_published = true, .is_dumped = true },
	{ .name = OP_SESSION_CLOSING, .kind = OP_PART_FILE, .noun = "mark", .archiving = OP_ARCHIVE_ALWAYS },
	{ .name = NULL },
};

const struct op_session_part *op_session_part_of(const char *path)
{
	size_t nr_bytes = strcspn(path, "/");

	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		if (!strncmp(path, part->name, nr_bytes) && !part->name[nr_bytes])
			return part;
	return NULL;
}

void op_session_compact(int dir_fd)
{
	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		if (part->compact)
			part->compact(dir_fd, part->name);
}
