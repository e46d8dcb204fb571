/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/tracepoint.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/file.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* The mounts of tracefs: its own, and that of debugfs. */
static const char *const mounts[] = { "/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events" };

bool op_tracepoint_is_name(const char *name)
{
	size_t nr_subsystem = strspn(name, NAME_CHARACTERS), nr_name;

	if (!nr_subsystem || name[nr_subsystem] != ':')
		return false;
	nr_name = strspn(name + nr_subsystem + 1, NAME_CHARACTERS);
	return nr_name && !name[nr_subsystem + 1 + nr_name];
}

bool op_tracepoint_has_subsystem(const char *name)
{
	size_t length = strspn(name, NAME_CHARACTERS);
	char path[PATH_MAX];
	bool found = false;

	for (size_t i = 0; i < op_array_size(mounts) && length && name[length] == ':' && length <= NAME_MAX && !found; i++) {
		snprintf(path, sizeof(path), "%s/%.*s", mounts[i], (int)length, name);
		found = !access(path, F_OK);
	}
	return found;
}

static int read_id(const char *mount, const char *name, uint64_t *ret_id)
{
	int nr_subsystem = (int)strcspn(name, ":");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%.*s/%s/id", mount, nr_subsystem, name, name + nr_subsystem + 1);
	return op_file_read_u64(path, 0, INT32_MAX, ret_id);
}

uint32_t op_tracepoint_number(const char *name)
{
	uint32_t sum = 2166136261u; /* FNV-1a */

	for (const char *c = name; *c; c++)
		sum = (sum ^ (uint8_t)*c) * 16777619u;
	return OP_TRACEPOINT_NUMBER_BIT | (sum & (OP_TRACEPOINT_NUMBER_BIT - 1));
}

bool op_tracepoint_find(const char *name, uint64_t *ret_id, struct op_text *why)
{
	bool is_mounted = false;
	int err = -ENOENT;

	for (size_t i = 0; i < op_array_size(mounts) && err == -ENOENT; i++) {
		err = read_id(mounts[i], name, ret_id);
		is_mounted |= err != -ENOENT || !access(mounts[i], F_OK);
	}
	if (err == -ENOENT && is_mounted)
		op_text_add(why, "this kernel has no such tracepoint");
	else if (err == -ENOENT)
		op_text_add(why, "tracepoints need tracefs: mount -t tracefs tracefs /sys/kernel/tracing");
	else if (err < 0)
		op_text_printf(why, "its number cannot be read from tracefs: %s", strerror(-err));
	return !err;
}
