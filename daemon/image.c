/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Names that look like a path but are memory without a file. */
static const char *const anonymous_prefixes[] = { "//anon", "/dev/zero", "/anon_hugepage", "/SYSV" };

#define ANONYMOUS_LABEL "anon"
#define LABEL_BYTES     64

static bool is_file_name(const char *name)
{
	if (name[0] != '/')
		return false;
	for (size_t i = 0; i < op_array_size(anonymous_prefixes); i++)
		if (!strncmp(name, anonymous_prefixes[i], strlen(anonymous_prefixes[i])))
			return false;
	return true;
}

static int look_at(const char *path, struct statx *ret_stat)
{
	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_INO | STATX_MTIME | STATX_SIZE | STATX_TYPE,
		  ret_stat) < 0)
		return -errno;
	return S_ISREG(ret_stat->stx_mode) ? 0 : -ENOENT;
}

/*
 * The inode behind a mapping: by the mapping itself, which is exact also when the file was replaced or lies in another
 * mount namespace; when the mapping is gone, by the path as the process sees it, then as the host does.
 */
static int look_at_mapped(const struct opd_mapped *mapped, struct statx *ret_stat)
{
	char path[PATH_MAX + 32];
	int length;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", mapped->pid, (unsigned long long)mapped->start,
		 (unsigned long long)mapped->end);
	if (!look_at(path, ret_stat))
		return 0;
	length = snprintf(path, sizeof(path), "/proc/%u/root%s", mapped->pid, mapped->name);
	if (length < (int)sizeof(path) && !look_at(path, ret_stat))
		return 0;
	return look_at(mapped->name, ret_stat);
}

static bool same_build_id(const struct op_image_id *a, const struct op_image_id *b)
{
	return a->build_id_bytes == b->build_id_bytes && !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}

static struct op_image_id id_as_said(const struct opd_mapped *mapped)
{
	struct op_image_id id = {
		.name = { .kind = OP_IMAGE_FILE, .name = mapped->name },
		.build_id_bytes = mapped->build_id_bytes,
		.device = mapped->device,
		.inode = mapped->inode,
		.inode_generation = mapped->inode_generation,
	};

	memcpy(id.build_id, mapped->build_id, mapped->build_id_bytes);
	return id;
}

static uint64_t mtime_ns(const struct statx *st)
{
	return (uint64_t)st->stx_mtime.tv_sec * 1000000000u + st->stx_mtime.tv_nsec;
}

static struct op_image_id id_as_seen(const struct opd_mapped *mapped, const struct statx *st)
{
	return (struct op_image_id){
		.name = { .kind = OP_IMAGE_FILE, .name = mapped->name },
		.device = makedev(st->stx_dev_major, st->stx_dev_minor),
		.inode = st->stx_ino,
		.mtime_ns = mtime_ns(st),
		.bytes = st->stx_size,
	};
}

/*
 * A file is known by its build-id from one record and by its inode, time and size from /proc: both lead to one row. A build-id says
 * for itself what it is; an inode does not, since a file can be written anew in place, and so it is looked at each time.
 */
static uint64_t file_cookie(struct op_dcookie_table *table, const struct opd_mapped *mapped)
{
	struct op_image_id said = id_as_said(mapped), seen;
	struct op_dcookie_row *row;
	struct statx st;
	uint64_t cookie = said.build_id_bytes ? op_dcookie_find(table, &said) : OP_DCOOKIE_NONE;

	if (cookie != OP_DCOOKIE_NONE)
		return cookie;
	if (look_at_mapped(mapped, &st) < 0)
		return op_dcookie_get(table, &said);
	seen = id_as_seen(mapped, &st);
	cookie = op_dcookie_get(table, &seen);
	if (cookie == OP_DCOOKIE_NONE)
		return cookie;
	row = op_dcookie_row(table, cookie);
	if (row->id.is_pseudo)
		return cookie;
	if (said.build_id_bytes && row->id.build_id_bytes && !same_build_id(&row->id, &said))
		return op_dcookie_get(table, &said); /* the file was replaced before it could be looked at */
	if (!said.build_id_bytes)
		return cookie;
	if (op_dcookie_set_build_id(table, cookie, said.build_id, said.build_id_bytes) < 0 ||
	    op_dcookie_alias(table, &said, cookie) == -ENOMEM)
		return OP_DCOOKIE_NONE;
	return cookie;
}

/* A label is one component of a path: no slash, no brace that would end it. */
static void make_label(const char *name, char label[LABEL_BYTES])
{
	size_t i;

	if (name[0] != '[')
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

uint64_t opd_image_of_kernel(struct op_dcookie_table *table, const char *name)
{
	struct op_image_id id = {
		.name = { .kind = name[0] == '/' ? OP_IMAGE_FILE : OP_IMAGE_KERNEL, .name = name },
		.is_kernel = true,
	};
	struct statx st;

	/* /proc/kallsyms is made anew at each look and has no date. */
	if (name[0] == '/' && strncmp(name, "/proc/", 6) != 0 && !look_at(name, &st))
		id.mtime_ns = mtime_ns(&st);
	return op_dcookie_get(table, &id);
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
