/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/cgroup_root.h"

#include <sys/stat.h>

#include "libop/base/text.h"

#define OWN_NAMESPACE   "/proc/self/ns/cgroup"
#define FIRST_NAMESPACE 0xEFFFFFFBu /* PROC_CGROUP_INIT_INO of the kernel's linux/proc_ns.h */

void opd_cgroup_root_init(struct opd_cgroup_root *root)
{
	struct stat st;

	*root = (struct opd_cgroup_root){ .is_sought = !stat(OWN_NAMESPACE, &st) && st.st_ino != FIRST_NAMESPACE };
}

static bool is_there(const char *mount_path, const char *path, uint64_t id)
{
	struct op_text full = { 0 };
	struct stat st;
	bool is_same;

	op_text_printf(&full, "%s%s", mount_path, path);
	is_same = !stat(op_text_get(&full), &st) && st.st_ino == id;
	op_text_free(&full);
	return is_same;
}

static void seek(struct opd_cgroup_root *root, const char *mount_path, uint64_t id, const char *path)
{
	for (const char *rest = path; rest; rest = strchr(rest + 1, '/')) {
		if (*rest != '/' || !is_there(mount_path, rest, id))
			continue;
		root->path = strndup(path, (size_t)(rest - path));
		root->is_sought = !root->path;
		return;
	}
}

const char *opd_cgroup_root_strip(struct opd_cgroup_root *root, const char *mount_path, uint64_t id, const char *path)
{
	size_t length;

	if (root->is_sought && mount_path)
		seek(root, mount_path, id, path);
	length = root->path ? strlen(root->path) : 0;
	return length && !strncmp(path, root->path, length) && path[length] == '/' ? path + length : path;
}

void opd_cgroup_root_free(struct opd_cgroup_root *root)
{
	free(root->path);
	*root = (struct opd_cgroup_root){ 0 };
}
