/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/image.h"

#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libop/clock.h"
#include "libop/htable.h"

/* Names that look like a path but are memory without a file. */
static const char *const anonymous_names[] = {
	"//anon", "/dev/zero", "/dev/zero (deleted)", "/anon_hugepage", "/anon_hugepage (deleted)", "/SYSV???????? (deleted)",
};

#define ANONYMOUS_SECOND "/daS" /* letters: of all of these the second is one */
#define ANONYMOUS_LABEL "anon"
#define LABEL_BYTES     64
#define NAMED_ANONYMOUS "[anon" /* memory that the process gave a name: [anon:NAME], [anon_shmem:NAME] */
#define HUGE_FILE       "/libhugetlbfs.tmp." /* the last component, with more behind it */
#define AGAIN_NS        ((uint64_t)100 * OP_NS_PER_MS)
#define IN_CONTAINER    UINT64_MAX /* in place of the device, in what leads to an image: the path is not the host's */

static bool is_file_name(const char *name)
{
	if (name[0] != '/')
		return false;
	if (!strchr(ANONYMOUS_SECOND, name[1]))
		return true;
	for (size_t i = 0; i < op_array_size(anonymous_names); i++)
		if (!fnmatch(anonymous_names[i], name, FNM_NOESCAPE))
			return false;
	return true;
}

bool opd_image_may_be_text_copy(const char *name)
{
	const char *last = strrchr(name, '/');

	return !*name || !strcmp(name, "//anon") || !strncmp(name, NAMED_ANONYMOUS, strlen(NAMED_ANONYMOUS)) ||
	       !strncmp(name, "/anon_hugepage", strlen("/anon_hugepage")) ||
	       (last && !strncmp(last, HUGE_FILE, strlen(HUGE_FILE)));
}

static bool same_build_id(const struct op_image_id *a, const struct op_image_id *b)
{
	return a->build_id_bytes == b->build_id_bytes && !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}

/* What the kernel said leads to the image the next time. */
static struct op_image_id id_as_said(const struct opd_mapped *mapped)
{
	struct op_image_id id = {
		.name = { .kind = OP_IMAGE_FILE, .name = mapped->name },
		.build_id_bytes = mapped->build_id_bytes,
	};

	memcpy(id.build_id, mapped->build_id, mapped->build_id_bytes);
	if (mapped->build_id_bytes) {
		id.device = mapped->place ? IN_CONTAINER : 0;
	} else {
		id.device = mapped->device;
		id.inode = mapped->inode;
		/* perf takes what ran before it from /proc, which does not tell the generation. */
		id.inode_generation = mapped->is_foreign ? 0 : mapped->inode_generation;
	}
	return id;
}

static struct op_image_id id_as_seen(const struct opd_located *located)
{
	const struct statx *st = &located->stat;

	return (struct op_image_id){
		.name = { .kind = OP_IMAGE_FILE, .name = op_text_get(&located->path) },
		.device = makedev(st->stx_dev_major, st->stx_dev_minor),
		.inode = st->stx_ino,
		.inode_generation = located->inode_generation,
		.mtime_ns = (uint64_t)st->stx_mtime.tv_sec * 1000000000u + st->stx_mtime.tv_nsec,
		.bytes = st->stx_size,
	};
}

/* A new image, or the one that a file that can be looked at is known as. */
static uint64_t located_cookie(struct op_dcookie_table *table, const struct op_image_id *said, const struct opd_located *located)
{
	struct op_image_id named = *said, seen = id_as_seen(located);
	struct op_dcookie_row *row;
	uint64_t cookie;

	named.name.name = op_text_get(&located->path);
	if (named.device == IN_CONTAINER)
		named.device = 0;
	if (!located->seen)
		return op_dcookie_get(table, &named);
	cookie = said->build_id_bytes ? op_dcookie_get(table, &seen) : op_dcookie_get_seen(table, &seen);
	if (cookie == OP_DCOOKIE_NONE)
		return cookie;
	row = op_dcookie_row(table, cookie);
	if (row->id.is_pseudo)
		return cookie;
	if (said->build_id_bytes && row->id.build_id_bytes && !same_build_id(&row->id, said))
		return op_dcookie_get(table, &named); /* the file was replaced before it could be looked at */
	return op_dcookie_set_build_id(table, cookie, said->build_id, said->build_id_bytes) < 0 ? OP_DCOOKIE_NONE : cookie;
}

/* The container that an image was first seen in. */
static int note_place(struct op_dcookie_table *table, uint64_t cookie, const struct opd_mapped *mapped,
		      const struct opd_located *located)
{
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);
	const char *path = op_text_get(&located->path);

	if (!mapped->place || row->container || row->id.is_pseudo)
		return 0;
	if (!located->on_host || !strcmp(path, row->id.name.name))
		path = NULL;
	return op_dcookie_set_place(table, cookie, path, mapped->place->name);
}

/* A file that is there: its inode shows what it was at that time. */
static void note_look(const struct op_dcookie_table *table, const struct opd_mapped *mapped, struct opd_look *look, uint64_t cookie,
		      const struct opd_located *located)
{
	if (cookie == OP_DCOOKIE_NONE || !located->seen || located->stat.stx_ino != mapped->inode || op_dcookie_row(table, cookie)->id.is_pseudo)
		return;
	look->cookie = cookie;
	opd_looked_keep(mapped->looked, look);
}

/* Known by its build-id, and the file was gone whenever somebody looked: now and then that is done again. */
static bool is_to_be_seen(const struct op_dcookie_table *table, uint64_t cookie, const struct opd_mapped *mapped)
{
	const struct op_image_id *id = &op_dcookie_row(table, cookie)->id;
	uint64_t now_ns;

	if (id->inode || id->is_pseudo || !mapped->looked || mapped->is_foreign)
		return false;
	now_ns = op_now_ns();
	if (now_ns < mapped->looked->next_ns)
		return false;
	mapped->looked->next_ns = now_ns + AGAIN_NS;
	return true;
}

static uint64_t complete(struct op_dcookie_table *table, uint64_t cookie, const struct opd_located *located)
{
	struct op_image_id seen = id_as_seen(located);

	return located->seen && op_dcookie_complete(table, cookie, &seen) < 0 ? OP_DCOOKIE_NONE : cookie;
}

/*
 * A file is known by its build-id from one record and by its inode, time and size from /proc: both lead to one row. A build-id says
 * for itself what it is; an inode does not, since a file can be written anew in place, and so it is looked at each time.
 */
static uint64_t look_for_file(struct op_dcookie_table *table, const struct opd_mapped *mapped, struct opd_located *ret_located)
{
	struct op_image_id said = id_as_said(mapped);
	struct opd_wanted wanted = {
		.pid = mapped->pid,
		.start = mapped->start,
		.end = mapped->end,
		.name = mapped->name,
		.name_is_ours = mapped->name_is_ours,
		.is_foreign = mapped->is_foreign,
		.has_inode = mapped->inode,
		.inode = mapped->inode,
		.inode_generation = mapped->inode_generation,
		.time_ns = mapped->time_ns,
		.place = mapped->place,
	};
	uint64_t cookie = said.build_id_bytes ? op_dcookie_find(table, &said) : OP_DCOOKIE_NONE;

	*ret_located = (struct opd_located){ 0 };
	if (cookie != OP_DCOOKIE_NONE && op_likely(!is_to_be_seen(table, cookie, mapped)))
		return cookie;
	if (opd_locate(mapped->places, &wanted, ret_located) < 0)
		return cookie;
	cookie = cookie == OP_DCOOKIE_NONE ? located_cookie(table, &said, ret_located) : complete(table, cookie, ret_located);
	if (cookie != OP_DCOOKIE_NONE && said.build_id_bytes && op_dcookie_alias(table, &said, cookie) == -ENOMEM)
		cookie = OP_DCOOKIE_NONE;
	if (cookie != OP_DCOOKIE_NONE && note_place(table, cookie, mapped, ret_located) < 0)
		cookie = OP_DCOOKIE_NONE;
	op_text_free(&ret_located->path);
	return cookie;
}

/* Without a build-id: what was looked at since it was mapped is not looked at again. */
static uint64_t file_cookie(struct op_dcookie_table *table, const struct opd_mapped *mapped)
{
	struct opd_located located;
	struct opd_look look = {
		.device = mapped->device,
		.inode = mapped->inode,
		.inode_generation = mapped->inode_generation,
		.name_hash = op_hash_bytes(0, mapped->name, strlen(mapped->name)),
		.place = mapped->place,
	};
	uint64_t cookie;

	if (!mapped->looked || mapped->build_id_bytes || mapped->is_foreign || !mapped->inode || !mapped->time_ns)
		return look_for_file(table, mapped, &located);
	cookie = opd_looked_find(mapped->looked, &look, mapped->time_ns);
	if (cookie != OP_DCOOKIE_NONE)
		return cookie;
	look.time_ns = op_now_ns();
	cookie = look_for_file(table, mapped, &located);
	note_look(table, mapped, &look, cookie, &located);
	return cookie;
}

/* A label is one component of a path: no slash, no brace that would end it. */
static void make_label(const char *name, char label[LABEL_BYTES])
{
	size_t i;

	if (name[0] != '[' || !strncmp(name, NAMED_ANONYMOUS, strlen(NAMED_ANONYMOUS)))
		name = ANONYMOUS_LABEL;
	for (i = 0; i < LABEL_BYTES - 1 && name[i]; i++)
		label[i] = strchr("/{}", name[i]) || (unsigned char)name[i] < ' ' ? '_' : name[i];
	label[i] = '\0';
}

uint64_t opd_image_of_mapping(struct op_dcookie_table *table, const struct opd_mapped *mapped, bool *ret_is_file)
{
	char label[LABEL_BYTES];
	struct op_image_id id = { .name = { .kind = OP_IMAGE_ANON, .name = label } };

	*ret_is_file = is_file_name(mapped->name);
	if (*ret_is_file)
		return file_cookie(table, mapped);
	make_label(mapped->name, label);
	return op_dcookie_get(table, &id);
}

uint64_t opd_image_of_region(struct op_dcookie_table *table, uint64_t label_cookie, uint32_t pid, uint64_t start, uint64_t end)
{
	struct op_image_id id = op_dcookie_row(table, label_cookie)->id;

	id.name.tgid = (int32_t)pid;
	id.name.start = start;
	id.name.end = end;
	return op_dcookie_get(table, &id);
}

/* Of a vmlinux file. /proc/kallsyms is made anew at each look and has no date. */
static uint64_t kernel_mtime_ns(const char *name)
{
	struct stat st;

	if (name[0] != '/' || !strncmp(name, "/proc/", strlen("/proc/")) || stat(name, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

uint64_t opd_image_of_kernel(struct op_dcookie_table *table, const char *name, const struct op_build_id *build_id)
{
	struct op_image_id id = {
		.name = { .kind = name[0] == '/' ? OP_IMAGE_FILE : OP_IMAGE_KERNEL, .name = name },
		.build_id_bytes = build_id->nr_bytes,
		.is_kernel = true,
	};
	uint64_t mtime_ns = kernel_mtime_ns(name), cookie;

	memcpy(id.build_id, build_id->bytes, build_id->nr_bytes);
	if (!id.build_id_bytes)
		id.mtime_ns = mtime_ns;
	cookie = op_dcookie_get(table, &id);
	if (cookie != OP_DCOOKIE_NONE)
		op_dcookie_row(table, cookie)->id.mtime_ns = mtime_ns; /* the sample files say it, too */
	return cookie;
}

uint64_t opd_image_pseudo(struct op_dcookie_table *table, enum opd_pseudo which)
{
	static const char *const names[OPD_NR_PSEUDO] = {
#define X(id, name) [OPD_PSEUDO_##id] = name,
		OPD_PSEUDO_IMAGES(X)
#undef X
	};
	struct op_image_id id = {
		.name = { .kind = OP_IMAGE_KERNEL, .name = names[which] },
		.is_pseudo = true,
	};

	return op_dcookie_get(table, &id);
}
