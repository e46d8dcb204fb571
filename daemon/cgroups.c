/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/clock.h"
#include "libop/sys.h"
#include "libop/text.h"

#define SCAN_INTERVAL_NS OP_NS_PER_S
#define UNKNOWN_PATH	 "/(unknown cgroup)"
#define DEPTH_MAX	 64

struct cgroup {
	struct op_hlink link;
	uint64_t id;
	uint32_t slot;
	bool refused; /* there was no slot left */
	char path[];
};

static struct cgroup *find(const struct opd_cgroups *cgroups, uint64_t id)
{
	struct op_hlink *link = op_htable_first(&cgroups->by_id, op_hash_u64(id));

	for (; link; link = op_htable_next(link)) {
		struct cgroup *cgroup = op_container_of(link, struct cgroup, link);

		if (cgroup->id == id)
			return cgroup;
	}
	return NULL;
}

static void forget(struct opd_cgroups *cgroups, struct cgroup *cgroup)
{
	op_htable_remove(&cgroups->by_id, &cgroup->link);
	free(cgroup);
}

static void forget_without_samples(struct op_hlink *link, void *arg)
{
	struct cgroup *cgroup = op_container_of(link, struct cgroup, link);

	if (cgroup->slot == OPD_CGROUP_NONE)
		forget(arg, cgroup);
}

int opd_cgroups_add(struct opd_cgroups *cgroups, uint64_t id, const char *path)
{
	struct cgroup *cgroup = find(cgroups, id);
	size_t bytes = strlen(path) + 1;

	if (cgroup && !strcmp(cgroup->path, path))
		return 0;
	if (cgroup)
		forget(cgroups, cgroup);
	if (cgroups->by_id.nr_entries >= OPD_CGROUPS_KNOWN_MAX)
		op_htable_visit(&cgroups->by_id, forget_without_samples, cgroups);
	cgroup = malloc(sizeof(*cgroup) + bytes);
	if (!cgroup)
		return -ENOMEM;
	cgroup->id = id;
	cgroup->slot = OPD_CGROUP_NONE;
	cgroup->refused = false;
	memcpy(cgroup->path, path, bytes);
	if (op_htable_insert(&cgroups->by_id, &cgroup->link, op_hash_u64(id)) < 0) {
		free(cgroup);
		return -ENOMEM;
	}
	if (id == cgroups->last_id)
		cgroups->last_slot = OPD_CGROUP_NONE;
	return 0;
}

/* ---- the file system ---- */

static bool has_option(const char *options, const char *option)
{
	size_t length = strlen(option);

	for (; *options; options += strspn(options, ",\n")) {
		size_t here = strcspn(options, ",\n");

		if (here == length && !memcmp(options, option, length))
			return true;
		options += here;
	}
	return false;
}

/*
 * The mount point of a line of mountinfo when it is the hierarchy that perf takes a sample's cgroup from: the one of its own
 * controller in version 1, else that of version 2. Its rank; 0 for others.
 */
static int rank_of(char *line, char **ret_mount)
{
	char *rest = strstr(line, " - "), *fields[5], *save = NULL, type[32], options[512];

	if (!rest || sscanf(rest + 3, "%31s %*s %511s", type, options) != 2)
		return 0;
	*rest = '\0';
	for (size_t i = 0; i < op_array_size(fields); i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!fields[i])
			return 0;
	}
	*ret_mount = fields[4];
	if (!strcmp(type, "cgroup") && has_option(options, "perf_event"))
		return 2;
	return !strcmp(type, "cgroup2");
}

static int find_mount(struct opd_cgroups *cgroups, const char *mountinfo_path)
{
	FILE *file = fopen(mountinfo_path, "re");
	size_t capacity = 0;
	char *line = NULL, *mount;
	int best = 0, err = 0;

	while (file && !err && getline(&line, &capacity, file) > 0) {
		int rank = rank_of(line, &mount);

		if (rank <= best)
			continue;
		best = rank;
		free(cgroups->mount_storage);
		cgroups->mount_storage = strdup(mount);
		err = cgroups->mount_storage ? 0 : -ENOMEM;
	}
	free(line);
	if (file)
		fclose(file);
	cgroups->mount_path = cgroups->mount_storage;
	return err;
}

/* One directory and what lies in it, as far as there is room for it. `path` is that of the cgroup, "" for the root. */
static int scan(struct opd_cgroups *cgroups, int dir_fd, struct op_text *path, unsigned int depth)
{
	size_t length = strlen(op_text_get(path));
	struct dirent *entry;
	struct stat st;
	DIR *dir;
	int err;

	err = op_sys_fstat(dir_fd, &st);
	if (!err && !find(cgroups, st.st_ino) && cgroups->by_id.nr_entries < OPD_CGROUPS_KNOWN_MAX)
		err = opd_cgroups_add(cgroups, st.st_ino, length ? op_text_get(path) : "/");
	dir = err || depth == DEPTH_MAX ? NULL : fdopendir(dir_fd);
	if (!dir) {
		close(dir_fd);
		return err == -ENOMEM ? err : 0;
	}
	while (err != -ENOMEM && (entry = readdir(dir))) {
		int fd;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		fd = op_sys_openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (fd < 0)
			continue;
		op_text_printf(path, "/%s", entry->d_name);
		err = scan(cgroups, fd, path, depth + 1);
		op_text_truncate(path, length);
	}
	closedir(dir);
	return err;
}

static int scan_all(struct opd_cgroups *cgroups)
{
	struct op_text path = { 0 };
	int fd, err;

	if (!cgroups->mount_path)
		return 0;
	fd = op_sys_openat(AT_FDCWD, cgroups->mount_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0;
	err = scan(cgroups, fd, &path, 0);
	op_text_free(&path);
	return err;
}

int opd_cgroups_init(struct opd_cgroups *cgroups, const char *mountinfo_path)
{
	int err;

	*cgroups = (struct opd_cgroups){ 0 };
	err = find_mount(cgroups, mountinfo_path);
	return err ? err : scan_all(cgroups);
}

/* ---- slots ---- */

static uint32_t new_slot(struct opd_cgroups *cgroups, const char *path)
{
	char **slots;

	for (uint32_t i = 0; i < cgroups->nr_slots; i++)
		if (!strcmp(cgroups->slots[i], path))
			return i + 1; /* another cgroup had this path before */
	if (cgroups->nr_slots == OPD_CGROUP_SLOTS_MAX)
		return OPD_CGROUP_NONE;
	slots = reallocarray(cgroups->slots, cgroups->nr_slots + 1, sizeof(*slots));
	if (!slots)
		return OPD_CGROUP_NONE;
	cgroups->slots = slots;
	slots[cgroups->nr_slots] = strdup(path);
	if (!slots[cgroups->nr_slots])
		return OPD_CGROUP_NONE;
	return ++cgroups->nr_slots;
}

static uint32_t slot_of_unknown(struct opd_cgroups *cgroups)
{
	if (cgroups->unknown_slot == OPD_CGROUP_NONE)
		cgroups->unknown_slot = new_slot(cgroups, UNKNOWN_PATH);
	return cgroups->unknown_slot;
}

uint32_t opd_cgroups_slot(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns)
{
	struct cgroup *cgroup;

	if (op_likely(id == cgroups->last_id && cgroups->last_slot != OPD_CGROUP_NONE))
		return cgroups->last_slot;
	cgroup = find(cgroups, id);
	if (!cgroup && now_ns >= cgroups->next_scan_ns) {
		cgroups->next_scan_ns = now_ns + SCAN_INTERVAL_NS;
		if (!scan_all(cgroups))
			cgroup = find(cgroups, id);
	}
	if (!cgroup)
		return slot_of_unknown(cgroups);
	if (cgroup->slot == OPD_CGROUP_NONE && !cgroup->refused) {
		cgroup->slot = new_slot(cgroups, cgroup->path);
		cgroup->refused = cgroup->slot == OPD_CGROUP_NONE;
	}
	cgroups->last_id = id;
	cgroups->last_slot = cgroup->slot;
	return cgroup->slot;
}

const char *opd_cgroups_path(const struct opd_cgroups *cgroups, uint32_t slot)
{
	assert(slot != OPD_CGROUP_NONE && slot <= cgroups->nr_slots);
	return cgroups->slots[slot - 1];
}

static void forget_slot(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct cgroup *cgroup = op_container_of(link, struct cgroup, link);

	cgroup->slot = OPD_CGROUP_NONE;
	cgroup->refused = false;
}

void opd_cgroups_forget_slots(struct opd_cgroups *cgroups)
{
	op_htable_visit(&cgroups->by_id, forget_slot, NULL);
	for (uint32_t i = 0; i < cgroups->nr_slots; i++)
		free(cgroups->slots[i]);
	free(cgroups->slots);
	cgroups->slots = NULL;
	cgroups->nr_slots = 0;
	cgroups->unknown_slot = cgroups->last_slot = OPD_CGROUP_NONE;
}

static void free_visited(struct op_hlink *link, void *arg)
{
	forget(arg, op_container_of(link, struct cgroup, link));
}

void opd_cgroups_free(struct opd_cgroups *cgroups)
{
	if (!cgroups)
		return;
	opd_cgroups_forget_slots(cgroups);
	op_htable_visit(&cgroups->by_id, free_visited, cgroups);
	op_htable_free(&cgroups->by_id);
	free(cgroups->mount_storage);
	*cgroups = (struct opd_cgroups){ 0 };
}
