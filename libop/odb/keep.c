/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/keep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libop/base/sys.h"

#define PART_BYTES   1000u /* every file system that has symbolic links takes so much */
#define PARTS_MAX    (PATH_MAX / PART_BYTES + 1)
#define IN_PARTS     '/' /* begins the text of a link to parts, and no path of a session */
#define NUMBER_BYTES 16

const char *op_odb_kept_name(const struct op_odb_tmp *tmp, const char *kind, uint64_t inode, char buffer[OP_ODB_KEPT_BYTES])
{
	snprintf(buffer, OP_ODB_KEPT_BYTES, "%s.%s-%llx", tmp->name, kind, (unsigned long long)inode);
	return buffer;
}

static const char *part_name(const struct op_odb_tmp *tmp, uint64_t inode, unsigned int part, char buffer[OP_ODB_KEPT_BYTES])
{
	snprintf(buffer, OP_ODB_KEPT_BYTES, "%s." OP_ODB_FOR "-%llx.%u", tmp->name, (unsigned long long)inode, part);
	return buffer;
}

bool op_odb_kept_parse(const char *name, const char *tmp_name, const char *kind, uint64_t *ret_inode, bool *ret_is_part)
{
	size_t tmp_length = strlen(tmp_name), kind_length = strlen(kind);
	unsigned long long inode;
	unsigned int part;
	char dot, end;
	int nr;

	if (strncmp(name, tmp_name, tmp_length) || name[tmp_length] != '.' || strncmp(name + tmp_length + 1, kind, kind_length))
		return false;
	nr = sscanf(name + tmp_length + 1 + kind_length, "-%llx%c%u%c", &inode, &dot, &part, &end);
	if (nr != 1 && (nr != 3 || dot != '.'))
		return false;
	*ret_inode = inode;
	*ret_is_part = nr != 1;
	return true;
}

/* ---- the path ---- */

/* The link with the number of parts comes last: without it the parts count for nothing. */
static int write_parts(const struct op_odb_tmp *tmp, const char *path, uint64_t inode)
{
	char name[OP_ODB_KEPT_BYTES], text[PART_BYTES + 1];
	size_t length = strlen(path);
	unsigned int nr_parts = 0;
	int err = 0;

	for (size_t at = 0; at < length && !err; at += PART_BYTES) {
		snprintf(text, sizeof(text), "%s", path + at);
		err = op_sys_symlinkat(text, tmp->fd, part_name(tmp, inode, ++nr_parts, name));
	}
	if (err)
		return err;
	snprintf(text, sizeof(text), "%c%u", IN_PARTS, nr_parts);
	return op_sys_symlinkat(text, tmp->fd, op_odb_kept_name(tmp, OP_ODB_FOR, inode, name));
}

static int write_path(const struct op_odb_tmp *tmp, const char *path, uint64_t inode)
{
	char name[OP_ODB_KEPT_BYTES];
	int err = op_sys_symlinkat(path, tmp->fd, op_odb_kept_name(tmp, OP_ODB_FOR, inode, name));

	return err == -ENAMETOOLONG ? write_parts(tmp, path, inode) : err;
}

static int read_link(const struct op_odb_tmp *tmp, const char *name, char *text, size_t nr_bytes)
{
	ssize_t nr = op_sys_readlinkat(tmp->fd, name, text, nr_bytes - 1);

	if (nr < 0)
		return (int)nr;
	text[nr] = '\0';
	return 0;
}

static int read_parts(const struct op_odb_tmp *tmp, uint64_t inode, unsigned int nr_parts, char path[PATH_MAX])
{
	char name[OP_ODB_KEPT_BYTES];
	size_t length = 0;
	int err = 0;

	for (unsigned int part = 1; part <= nr_parts && !err; part++) {
		err = read_link(tmp, part_name(tmp, inode, part, name), path + length, PATH_MAX - length);
		length += err ? 0 : strlen(path + length);
	}
	return err;
}

int op_odb_kept_path(const struct op_odb_tmp *tmp, uint64_t inode, char path[PATH_MAX])
{
	char name[OP_ODB_KEPT_BYTES];
	unsigned int nr_parts;
	int err = read_link(tmp, op_odb_kept_name(tmp, OP_ODB_FOR, inode, name), path, PATH_MAX);

	if (err || *path != IN_PARTS)
		return err;
	if (sscanf(path + 1, "%u", &nr_parts) != 1 || nr_parts < 1 || nr_parts > PARTS_MAX)
		return -EBADMSG;
	return read_parts(tmp, inode, nr_parts, path);
}

/* ---- both links ---- */

/* Parts without the link to them are those of a daemon that was killed. */
static bool may_have_parts(const struct op_odb_tmp *tmp, uint64_t inode)
{
	char name[OP_ODB_KEPT_BYTES], text[NUMBER_BYTES];

	return read_link(tmp, op_odb_kept_name(tmp, OP_ODB_FOR, inode, name), text, sizeof(text)) || *text == IN_PARTS;
}

void op_odb_kept_remove(const struct op_odb_tmp *tmp, uint64_t inode)
{
	unsigned int nr_parts = may_have_parts(tmp, inode) ? PARTS_MAX : 0;
	char name[OP_ODB_KEPT_BYTES];

	op_sys_unlinkat(tmp->fd, op_odb_kept_name(tmp, OP_ODB_OLD, inode, name), 0);
	op_sys_unlinkat(tmp->fd, op_odb_kept_name(tmp, OP_ODB_FOR, inode, name), 0);
	for (unsigned int part = 1; part <= nr_parts; part++)
		op_sys_unlinkat(tmp->fd, part_name(tmp, inode, part, name), 0);
}

/* The path first: the next start removes a kept file without one. */
int op_odb_keep(const struct op_odb_tmp *tmp, int parent_fd, const char *name, const char *path, uint64_t new_inode)
{
	char kept_name[OP_ODB_KEPT_BYTES];
	int err = write_path(tmp, path, new_inode);

	/* Links of a file that had this inode and is gone. */
	if (err == -EEXIST) {
		op_odb_kept_remove(tmp, new_inode);
		err = write_path(tmp, path, new_inode);
	}
	if (err)
		return err;
	err = op_sys_linkat(parent_fd, name, tmp->fd, op_odb_kept_name(tmp, OP_ODB_OLD, new_inode, kept_name));
	/* Without hard links there is no old file to fall back on. */
	return err == -EPERM || err == -EOPNOTSUPP || err == -EMLINK ? 0 : err;
}
