/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/image.h"

#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libop/base/clock.h"
#include "pipeline/files/locate_ask.h"
#include "pipeline/resolve/stat_cache.h"

/* Names that look like a path, of memory without a file. */
static const char *const anonymous_names[] = {
	"//anon", "/dev/zero", "/dev/zero (deleted)", "/anon_hugepage", "/anon_hugepage (deleted)", "/SYSV???????? (deleted)",
};

#define ANONYMOUS_SECOND "/daS" /* second letters of all these names */
#define LABEL_BYTES      64
/* named by the process: [anon:NAME], [anon_shmem:NAME] */
#define NAMED_ANONYMOUS "[anon"
#define HUGE_FILE       "/libhugetlbfs.tmp." /* begins the last component */
/* replaces the device in an alias: the path is not the host's */
#define IN_CONTAINER UINT64_MAX

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
	       !strncmp(name, "/anon_hugepage", strlen("/anon_hugepage")) || !strncmp(name, "/memfd:", strlen("/memfd:")) ||
	       (last && !strncmp(last, HUGE_FILE, strlen(HUGE_FILE)));
}

/*
 * The alias under which the next record of this kind finds the image: the build-id if it is known,
 * else device and inode.
 */
static struct op_image_id recorded_id(const struct opd_mapped *mapped, const struct op_build_id *build_id)
{
	struct op_image_id id = {
		.name = { .kind = OP_IMAGE_FILE, .name = mapped->name },
		.build_id_bytes = build_id->nr_bytes,
	};

	memcpy(id.build_id, build_id->bytes, build_id->nr_bytes);
	if (build_id->nr_bytes) {
		id.device = mapped->mount_view ? IN_CONTAINER : 0;
	} else {
		id.device = mapped->device;
		id.inode = mapped->inode;
		/*
		 * perf reads processes that ran before it from /proc, which does not have the
		 * generation.
		 */
		id.inode_generation = mapped->is_foreign ? 0 : mapped->inode_generation;
	}
	return id;
}

static struct op_image_id stat_id(const struct opd_located *located)
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

/* The kernel can be queried, and was not queried for this image yet. */
static bool needs_query(const struct op_dcookie_table *table, const struct opd_mapped *mapped, uint64_t cookie)
{
	const struct op_dcookie_row *row;

	if (!mapped->build_ids)
		return false;
	if (cookie == OP_DCOOKIE_NONE)
		return true;
	row = op_dcookie_row(table, cookie);
	return !row->id.build_id_bytes && !row->is_asked && !row->id.is_pseudo;
}

/*
 * Files with one build-id, one owner and one name in the process's view are one image. Anybody can
 * give a file any build-id. So it says something only of files that only the owner can write,
 * and only among those of one owner.
 */
static bool copy_id(const struct opd_mapped *mapped, const struct op_build_id *build_id, const struct opd_located *located,
		    struct op_image_id *ret_id)
{
	if (!build_id->nr_bytes || !located->knows_owner || located->stat.stx_mode & (S_IWGRP | S_IWOTH))
		return false;
	*ret_id = recorded_id(mapped, build_id);
	ret_id->inode = located->stat.stx_uid;
	return true;
}

static int note_build_id(struct op_dcookie_table *table, uint64_t cookie, const struct op_build_id *build_id)
{
	struct op_dcookie_row *row = op_dcookie_row(table, cookie);

	if (row->id.is_pseudo)
		return 0;
	row->is_asked = true;
	return op_dcookie_set_build_id(table, cookie, build_id->bytes, build_id->nr_bytes);
}

/* A new file may be a copy of a known image, as in another container. */
static uint64_t cookie_of_copy(struct op_dcookie_table *table, const struct op_image_id *copy, const struct op_image_id *seen)
{
	uint64_t cookie = op_dcookie_find(table, copy);

	return cookie != OP_DCOOKIE_NONE && op_dcookie_alias_seen(table, seen, cookie) < 0 ? OP_DCOOKIE_NONE : cookie;
}

/* Only regular files are queried, because the kernel reads the file. */
static uint64_t stat_cookie(struct op_dcookie_table *table, const struct opd_mapped *mapped, const struct opd_located *located)
{
	struct op_image_id seen = stat_id(located), copy;
	uint64_t cookie = op_dcookie_find_seen(table, &seen);
	struct op_build_id build_id;
	bool has_copies;
	int err;

	if (!needs_query(table, mapped, cookie) ||
	    opd_build_ids_ask(mapped->build_ids, mapped, located, &build_id) < 0)
		return op_dcookie_get_seen(table, &seen);
	has_copies = copy_id(mapped, &build_id, located, &copy);
	if (cookie == OP_DCOOKIE_NONE && has_copies)
		cookie = cookie_of_copy(table, &copy, &seen);
	if (cookie == OP_DCOOKIE_NONE)
		cookie = op_dcookie_get_seen(table, &seen);
	if (cookie == OP_DCOOKIE_NONE || note_build_id(table, cookie, &build_id) < 0)
		return OP_DCOOKIE_NONE;
	err = has_copies ? op_dcookie_alias(table, &copy, cookie) : 0;
	return err < 0 && err != -EEXIST ? OP_DCOOKIE_NONE : cookie;
}

static uint64_t located_cookie(struct op_dcookie_table *table, const struct opd_mapped *mapped, const struct op_image_id *recorded,
			       const struct opd_located *located)
{
	struct op_image_id named = *recorded;

	if (located->seen)
		return stat_cookie(table, mapped, located);
	named.name.name = op_text_get(&located->path);
	if (named.device == IN_CONTAINER)
		named.device = 0;
	return op_dcookie_get(table, &named);
}

/* Notes the container in which an image was first seen. */
static int note_container(struct op_dcookie_table *table, uint64_t cookie, const struct opd_mapped *mapped,
			  const struct opd_located *located)
{
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);
	const char *path = op_text_get(&located->path);

	if (!mapped->mount_view || row->container || row->id.is_pseudo)
		return 0;
	if (!located->on_host || !strcmp(path, row->id.name.name))
		path = NULL;
	return op_dcookie_set_place(table, cookie, path, mapped->mount_view->name);
}

/*
 * Notes which file the image has now, for who reads its bytes later (pipeline/stacks). Most paths
 * are those of the row.
 */
static int note_file(struct op_dcookie_table *table, uint64_t cookie, const struct opd_located *located)
{
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);
	const char *path = located->on_host ? op_text_get(&located->path) : NULL;
	const struct op_image_id seen = stat_id(located);
	const struct op_image_file file = {
		.device = seen.device,
		.inode = seen.inode,
		.inode_generation = seen.inode_generation,
		.mtime_ns = seen.mtime_ns,
		.ctime_ns = (uint64_t)located->stat.stx_ctime.tv_sec * 1000000000u + located->stat.stx_ctime.tv_nsec,
		.bytes = seen.bytes,
		.uid = located->stat.stx_uid,
		.is_owners = located->knows_owner && !(located->stat.stx_mode & (S_IWGRP | S_IWOTH)),
		.path = path && strcmp(path, row->id.name.name) != 0 ? path : NULL,
	};

	return row->id.is_pseudo ? 0 : op_dcookie_set_file(table, cookie, &file);
}

/* Keeps the result of a look that began at asked_ns in the cache. */
static void cache_stat(const struct op_dcookie_table *table, const struct opd_mapped *mapped, uint64_t asked_ns, uint64_t cookie,
		       const struct opd_located *located)
{
	if (cookie == OP_DCOOKIE_NONE || !located->seen || located->stat.stx_ino != mapped->inode ||
	    op_dcookie_row(table, cookie)->id.is_pseudo)
		return;
	opd_stat_cache_keep(mapped, located, asked_ns, cookie);
}

/*
 * A record of another machine may have a build-id, which identifies the file. An inode does not,
 * because a file can be rewritten in place; so it is looked at each time.
 */
static uint64_t locate_file(struct op_dcookie_table *table, const struct opd_mapped *mapped, struct opd_located *ret_located)
{
	struct op_image_id recorded = recorded_id(mapped, &mapped->build_id);
	uint64_t cookie = recorded.build_id_bytes ? op_dcookie_find(table, &recorded) : OP_DCOOKIE_NONE;

	*ret_located = (struct opd_located){ 0 };
	if (cookie != OP_DCOOKIE_NONE || opd_locate_ask(mapped, ret_located) < 0)
		return cookie;
	cookie = located_cookie(table, mapped, &recorded, ret_located);
	if (cookie != OP_DCOOKIE_NONE && recorded.build_id_bytes && op_dcookie_alias(table, &recorded, cookie) == -ENOMEM)
		cookie = OP_DCOOKIE_NONE;
	if (cookie != OP_DCOOKIE_NONE)
		op_dcookie_row(table, cookie)->host_has_another = ret_located->host_has_another;
	if (cookie != OP_DCOOKIE_NONE && ret_located->seen && note_file(table, cookie, ret_located) < 0)
		cookie = OP_DCOOKIE_NONE;
	if (cookie != OP_DCOOKIE_NONE && note_container(table, cookie, mapped, ret_located) < 0)
		cookie = OP_DCOOKIE_NONE;
	return cookie;
}

/*
 * The image is in the stat cache, but its build-id is not: the process was gone before it was
 * queried.
 */
static uint64_t query_again(struct op_dcookie_table *table, const struct opd_mapped *mapped, uint64_t cookie)
{
	struct op_build_id build_id;

	if (op_likely(!needs_query(table, mapped, cookie)) || opd_build_ids_ask(mapped->build_ids, mapped, NULL, &build_id) < 0)
		return cookie;
	return note_build_id(table, cookie, &build_id) < 0 ? OP_DCOOKIE_NONE : cookie;
}

bool opd_image_is_cached(const struct opd_mapped *mapped)
{
	return !is_file_name(mapped->name) || opd_stat_cache_find(mapped) != OP_DCOOKIE_NONE;
}

/* The stat cache saves the stat of a file that was mapped before the last stat. */
static uint64_t file_cookie(struct op_dcookie_table *table, const struct opd_mapped *mapped)
{
	uint64_t cookie = opd_stat_cache_find(mapped), now_ns;
	struct opd_located located;

	if (cookie != OP_DCOOKIE_NONE)
		return query_again(table, mapped, cookie);
	now_ns = op_now_ns();
	cookie = locate_file(table, mapped, &located);
	cache_stat(table, mapped, now_ns, cookie, &located);
	op_text_free(&located.path);
	return cookie;
}

/* A label is one component of a path, without slashes and braces. */
static void make_label(const char *name, char label[LABEL_BYTES])
{
	size_t i;

	if (name[0] != '[' || !strncmp(name, NAMED_ANONYMOUS, strlen(NAMED_ANONYMOUS)))
		name = OP_ANONYMOUS_LABEL;
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

	/* the kernel's pids are smaller, but a perf.data may have any */
	id.name.tgid = (int32_t)(pid & INT32_MAX);
	id.name.start = start;
	id.name.end = end;
	return op_dcookie_get(table, &id);
}

/*
 * The mtime of a vmlinux file. /proc/kallsyms has none, because the kernel makes it at each
 * reading.
 */
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
		/* it is in the sample files as well */
		op_dcookie_row(table, cookie)->id.mtime_ns = mtime_ns;
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
