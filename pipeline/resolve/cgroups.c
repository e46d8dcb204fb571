/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "pipeline/files/mounts.h"

#define SCAN_INTERVAL_NS OP_NS_PER_S
#define DEPTH_MAX        64
#define OWN_NAMESPACE    "/proc/self/ns/cgroup"
#define FIRST_NAMESPACE  0xEFFFFFFBu /* PROC_CGROUP_INIT_INO of the kernel's linux/proc_ns.h */

struct cgroup {
	struct op_hlink link;
	uint64_t id;
	uint32_t slot;
	char path[];
};

struct opd_cgroup_slot {
	struct op_hlink link;
	uint32_t number;
	bool used;   /* had a sample since it was last considered */
	bool chosen; /* to be taken back */
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

static size_t bytes_of(const char *path)
{
	return sizeof(struct cgroup) + strlen(path) + 1;
}

static void forget(struct opd_cgroups *cgroups, struct cgroup *cgroup)
{
	op_htable_remove(&cgroups->by_id, &cgroup->link);
	cgroups->nr_bytes -= bytes_of(cgroup->path);
	free(cgroup);
}

static void forget_visited(struct op_hlink *link, void *arg)
{
	struct opd_cgroups *cgroups = arg;

	forget(cgroups, op_container_of(link, struct cgroup, link));
	cgroups->nr_forgotten++;
}

static void forget_without_slot(struct op_hlink *link, void *arg)
{
	if (op_container_of(link, struct cgroup, link)->slot == OPD_CGROUP_NONE)
		forget_visited(link, arg);
}

/*
 * Many ids may have the same path, and so the same slot. A cgroup that still exists is found again.
 */
static void make_room(struct opd_cgroups *cgroups)
{
	if (cgroups->by_id.nr_entries < OPD_CGROUPS_KNOWN_MAX && cgroups->nr_bytes < OPD_CGROUPS_BYTES_MAX)
		return;
	op_htable_visit(&cgroups->by_id, forget_without_slot, cgroups);
	if (cgroups->by_id.nr_entries > OPD_CGROUPS_KNOWN_MAX / 2 || cgroups->nr_bytes > OPD_CGROUPS_BYTES_MAX / 2)
		op_htable_visit(&cgroups->by_id, forget_visited, cgroups);
}

static int add(struct opd_cgroups *cgroups, uint64_t id, const char *path)
{
	struct cgroup *cgroup = find(cgroups, id);
	size_t bytes = bytes_of(path);

	if (cgroup && !strcmp(cgroup->path, path))
		return 0;
	if (cgroup)
		forget(cgroups, cgroup);
	make_room(cgroups);
	cgroup = malloc(bytes);
	if (!cgroup)
		return -ENOMEM;
	cgroup->id = id;
	cgroup->slot = OPD_CGROUP_NONE;
	memcpy(cgroup->path, path, bytes - sizeof(*cgroup));
	if (op_htable_insert(&cgroups->by_id, &cgroup->link, op_hash_u64(id)) < 0) {
		free(cgroup);
		return -ENOMEM;
	}
	cgroups->nr_bytes += bytes;
	if (id == cgroups->last_id)
		cgroups->last_slot = OPD_CGROUP_NONE;
	return 0;
}

/* ---- the root of the namespace ---- */

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

/*
 * opd finds cgroups by their path below the mount point, which begins at the root of opd's
 * namespace. The kernel reports paths from the root of all cgroups (cgroup_namespaces(7),
 * perf_event_cgroup() in kernel/events/core.c). The difference is learnt from the first reported
 * cgroup that exists.
 */
static void seek_root(struct opd_cgroups *cgroups, uint64_t id, const char *path)
{
	for (const char *rest = path; rest; rest = strchr(rest + 1, '/')) {
		if (*rest != '/' || !is_there(cgroups->mount_path, rest, id))
			continue;
		cgroups->root_path = strndup(path, (size_t)(rest - path));
		cgroups->seeks_root = !cgroups->root_path;
		return;
	}
}

int opd_cgroups_add(struct opd_cgroups *cgroups, uint64_t id, const char *path)
{
	size_t length;

	if (cgroups->seeks_root && cgroups->mount_path)
		seek_root(cgroups, id, path);
	length = cgroups->root_path ? strlen(cgroups->root_path) : 0;
	if (length && !strncmp(path, cgroups->root_path, length) && path[length] == '/')
		path += length;
	return add(cgroups, id, path);
}

/* ---- the file system ---- */

static bool has_option(const char *options, const char *option)
{
	size_t length = strlen(option);

	for (; *options; options += strspn(options, ",")) {
		size_t here = strcspn(options, ",");

		if (here == length && !memcmp(options, option, length))
			return true;
		options += here;
	}
	return false;
}

/*
 * 2 for the version 1 hierarchy of perf's own controller, 1 for version 2, 0 for others. perf takes
 * the cgroup of a sample from the hierarchy of the highest rank.
 */
static int rank_of(const struct opd_mount *mount)
{
	if (!mount->options)
		return 0;
	if (!strcmp(mount->type, "cgroup") && has_option(mount->options, "perf_event"))
		return 2;
	return !strcmp(mount->type, "cgroup2");
}

static int find_mount(struct opd_cgroups *cgroups, const char *mountinfo_path)
{
	const struct opd_mount *best = NULL;
	struct opd_mounts mounts;
	int err = opd_mounts_read(mountinfo_path, &mounts);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < mounts.nr_rows; i++)
		if (rank_of(&mounts.rows[i]) > (best ? rank_of(best) : 0))
			best = &mounts.rows[i];
	cgroups->mount_path = best ? strdup(best->point) : NULL;
	opd_mounts_free(&mounts);
	return best && !cgroups->mount_path ? -ENOMEM : 0;
}

/*
 * Adds a directory and all below it, as far as there is room. `path` is that of the cgroup; "" is
 * the root.
 */
static int scan(struct opd_cgroups *cgroups, int dir_fd, struct op_text *path, unsigned int depth)
{
	size_t length = strlen(op_text_get(path));
	struct dirent *entry;
	struct stat st;
	DIR *dir;
	int err;

	err = op_sys_fstat(dir_fd, &st);
	if (!err && !find(cgroups, st.st_ino) &&
	    ((cgroups->by_id.nr_entries < OPD_CGROUPS_KNOWN_MAX && cgroups->nr_bytes < OPD_CGROUPS_BYTES_MAX) ||
	     st.st_ino == cgroups->wanted_id))
		err = add(cgroups, st.st_ino, length ? op_text_get(path) : "/");
	dir = err || depth == DEPTH_MAX ? NULL : fdopendir(dir_fd);
	if (!dir) {
		close(dir_fd);
		return err == -ENOMEM ? err : 0;
	}
	while (err != -ENOMEM && (entry = readdir(dir))) {
		int fd;

		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
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
	struct stat st;
	int err;

	*cgroups = (struct opd_cgroups){
		.max_slots = OPD_CGROUP_SLOTS_MAX,
		.seeks_root = !stat(OWN_NAMESPACE, &st) && st.st_ino != FIRST_NAMESPACE,
	};
	err = find_mount(cgroups, mountinfo_path);
	return err ? err : scan_all(cgroups);
}

/* ---- slots ---- */

static int make_slots(struct opd_cgroups *cgroups)
{
	if (cgroups->slots)
		return 0;
	cgroups->slots = calloc(cgroups->max_slots, sizeof(*cgroups->slots));
	cgroups->free_slots = calloc(cgroups->max_slots, sizeof(*cgroups->free_slots));
	if (!cgroups->slots || !cgroups->free_slots) {
		free(cgroups->slots);
		free(cgroups->free_slots);
		cgroups->slots = NULL;
		cgroups->free_slots = NULL;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cgroups->max_slots; i++)
		cgroups->free_slots[i] = cgroups->max_slots - i;
	cgroups->nr_free = cgroups->max_slots;
	return 0;
}

static struct opd_cgroup_slot *find_slot(const struct opd_cgroups *cgroups, const char *path, uint64_t hash)
{
	for (struct op_hlink *link = op_htable_first(&cgroups->by_path, hash); link; link = op_htable_next(link)) {
		struct opd_cgroup_slot *slot = op_container_of(link, struct opd_cgroup_slot, link);

		if (!strcmp(slot->path, path))
			return slot;
	}
	return NULL;
}

/* Another cgroup may have had this path, and the slot, before. */
static uint32_t new_slot(struct opd_cgroups *cgroups, const char *path)
{
	size_t bytes = strlen(path) + 1;
	uint64_t hash = op_hash_bytes(0, path, bytes);
	struct opd_cgroup_slot *slot = find_slot(cgroups, path, hash);

	if (slot)
		return slot->number;
	if (make_slots(cgroups) < 0 || !cgroups->nr_free)
		return OPD_CGROUP_NONE;
	slot = malloc(sizeof(*slot) + bytes);
	if (!slot)
		return OPD_CGROUP_NONE;
	*slot = (struct opd_cgroup_slot){ .number = cgroups->free_slots[cgroups->nr_free - 1] };
	memcpy(slot->path, path, bytes);
	if (op_htable_insert(&cgroups->by_path, &slot->link, hash) < 0) {
		free(slot);
		return OPD_CGROUP_NONE;
	}
	cgroups->nr_free--;
	cgroups->nr_slots++;
	cgroups->slots[slot->number - 1] = slot;
	return slot->number;
}

static void free_slot(struct opd_cgroups *cgroups, struct opd_cgroup_slot *slot)
{
	op_htable_remove(&cgroups->by_path, &slot->link);
	cgroups->slots[slot->number - 1] = NULL;
	cgroups->free_slots[cgroups->nr_free++] = slot->number;
	cgroups->nr_slots--;
	free(slot);
}

static uint32_t use(struct opd_cgroups *cgroups, uint32_t slot)
{
	if (slot != OPD_CGROUP_NONE)
		cgroups->slots[slot - 1]->used = true;
	return slot;
}

static uint32_t slot_of_unknown(struct opd_cgroups *cgroups)
{
	if (cgroups->unknown_slot == OPD_CGROUP_NONE)
		cgroups->unknown_slot = new_slot(cgroups, OPD_CGROUP_UNKNOWN);
	return use(cgroups, cgroups->unknown_slot);
}

static struct cgroup *find_or_scan(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns)
{
	struct cgroup *cgroup = find(cgroups, id);

	if (cgroup || now_ns < cgroups->next_scan_ns)
		return cgroup;
	cgroups->next_scan_ns = now_ns + SCAN_INTERVAL_NS;
	cgroups->wanted_id = id;
	return scan_all(cgroups) < 0 ? NULL : find(cgroups, id);
}

uint32_t opd_cgroups_slot(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns)
{
	struct cgroup *cgroup;

	if (op_likely(id == cgroups->last_id && cgroups->last_slot != OPD_CGROUP_NONE))
		return cgroups->last_slot;
	cgroup = find_or_scan(cgroups, id, now_ns);
	if (!cgroup)
		return slot_of_unknown(cgroups);
	if (cgroup->slot == OPD_CGROUP_NONE)
		cgroup->slot = new_slot(cgroups, cgroup->path);
	cgroups->last_id = id;
	cgroups->last_slot = cgroup->slot;
	return use(cgroups, cgroup->slot);
}

const char *opd_cgroups_find_path(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns)
{
	const struct cgroup *cgroup = find_or_scan(cgroups, id, now_ns);

	return cgroup ? cgroup->path : NULL;
}

const char *opd_cgroups_path(const struct opd_cgroups *cgroups, uint32_t slot)
{
	bool is_given = slot != OPD_CGROUP_NONE && slot <= cgroups->max_slots && cgroups->slots[slot - 1];

	return is_given ? cgroups->slots[slot - 1]->path : OPD_CGROUP_UNKNOWN;
}

/* ---- taking back ---- */

/* Passes over slots with a recent sample and clears their mark (second chance). */
void opd_cgroups_choose(struct opd_cgroups *cgroups)
{
	uint32_t nr_chosen = 0;

	for (uint32_t i = 0; cgroups->slots && i < 2 * cgroups->max_slots && nr_chosen < cgroups->max_slots / 4; i++) {
		struct opd_cgroup_slot *slot = cgroups->slots[cgroups->hand];

		cgroups->hand = (cgroups->hand + 1) % cgroups->max_slots;
		if (!slot || slot->chosen)
			continue;
		slot->chosen = !slot->used;
		slot->used = false;
		nr_chosen += slot->chosen;
	}
}

bool opd_cgroups_is_chosen(const struct opd_cgroups *cgroups, uint32_t slot)
{
	return slot != OPD_CGROUP_NONE && cgroups->slots[slot - 1]->chosen;
}

static void clear_if_chosen(struct op_hlink *link, void *arg)
{
	struct cgroup *cgroup = op_container_of(link, struct cgroup, link);

	if (opd_cgroups_is_chosen(arg, cgroup->slot))
		cgroup->slot = OPD_CGROUP_NONE;
}

void opd_cgroups_take_back(struct opd_cgroups *cgroups)
{
	op_htable_visit(&cgroups->by_id, clear_if_chosen, cgroups);
	if (opd_cgroups_is_chosen(cgroups, cgroups->unknown_slot))
		cgroups->unknown_slot = OPD_CGROUP_NONE;
	cgroups->last_slot = OPD_CGROUP_NONE;
	for (uint32_t i = 0; cgroups->slots && i < cgroups->max_slots; i++) {
		if (!cgroups->slots[i] || !cgroups->slots[i]->chosen)
			continue;
		free_slot(cgroups, cgroups->slots[i]);
		cgroups->nr_taken_back++;
	}
}

static void forget_slot(struct op_hlink *link, void *arg OP_UNUSED)
{
	op_container_of(link, struct cgroup, link)->slot = OPD_CGROUP_NONE;
}

void opd_cgroups_forget_slots(struct opd_cgroups *cgroups)
{
	op_htable_visit(&cgroups->by_id, forget_slot, NULL);
	for (uint32_t i = 0; cgroups->slots && i < cgroups->max_slots; i++)
		if (cgroups->slots[i])
			free_slot(cgroups, cgroups->slots[i]);
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
	op_htable_free(&cgroups->by_path);
	free(cgroups->slots);
	free(cgroups->free_slots);
	free(cgroups->mount_path);
	free(cgroups->root_path);
	*cgroups = (struct opd_cgroups){ 0 };
}
