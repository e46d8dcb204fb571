/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/mount_view.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

#define SELF           0u /* in place of a pid */
#define HOST_PID       1u
#define HOST_PREFIX    "/proc/1/root"
#define NS_LINK_FORMAT "mnt:[%llu]"
#define REREAD_NS      (100u * OP_NS_PER_MS) /* mounts that did not help are read again, not more often than this */

/* The path of something in /proc/PID. */
static void proc_path(char *path, size_t path_bytes, uint32_t pid, const char *name)
{
	if (pid == SELF)
		snprintf(path, path_bytes, "/proc/self/%s", name);
	else
		snprintf(path, path_bytes, "/proc/%u/%s", pid, name);
}

static bool read_link(uint32_t pid, const char *name, char *target, size_t target_bytes)
{
	char path[64];
	ssize_t length;

	proc_path(path, sizeof(path), pid, name);
	length = readlink(path, target, target_bytes);
	if (length < 0 || (size_t)length >= target_bytes)
		return false;
	target[length] = '\0';
	return true;
}

static bool read_mnt_ns(uint32_t pid, uint64_t *ret_ns)
{
	char target[64];
	unsigned long long ns;

	if (!read_link(pid, "ns/mnt", target, sizeof(target)) || sscanf(target, NS_LINK_FORMAT, &ns) != 1)
		return false;
	*ret_ns = ns;
	return true;
}

static void know_host(struct opd_mount_views *places)
{
	uint64_t own_ns = 0;

	if (places->known)
		return;
	places->known = true;
	places->host_prefix = "";
	if (!read_mnt_ns(SELF, &own_ns))
		return;
	if (!read_mnt_ns(HOST_PID, &places->host_ns))
		places->host_ns = own_ns;
	if (places->host_ns != own_ns)
		places->host_prefix = HOST_PREFIX;
}

void opd_mount_views_free(struct opd_mount_views *places)
{
	op_htable_free(&places->by_key);
	opd_mounts_free(&places->host);
	*places = (struct opd_mount_views){ 0 };
}

struct opd_mount_view *opd_mount_view_ref(struct opd_mount_view *place)
{
	if (place)
		place->refs++;
	return place;
}

/* ---- bytes ---- */

static void forget_mounts(struct opd_mount_view *place)
{
	if (!place->at)
		return;
	place->places->nr_mount_bytes -= place->mounts.nr_bytes;
	opd_mounts_free(&place->mounts);
	place->mounts_read_ns = 0;
	*place->at = place->next;
	*(place->next ? &place->next->at : &place->places->last_at) = place->at;
	place->next = NULL;
	place->at = NULL;
}

static void keep_mounts(struct opd_mount_view *place, const struct opd_mounts *mounts)
{
	struct opd_mount_views *places = place->places;

	forget_mounts(place);
	while (places->with_mounts && places->nr_mount_bytes + mounts->nr_bytes > OPD_MOUNT_VIEWS_BYTES_MAX) {
		forget_mounts(places->with_mounts);
		places->nr_dropped++;
	}
	place->mounts = *mounts;
	places->nr_mount_bytes += mounts->nr_bytes;
	place->at = places->with_mounts ? places->last_at : &places->with_mounts;
	*place->at = place;
	places->last_at = &place->next;
}

static size_t bytes_of(const struct opd_mount_view *place)
{
	return sizeof(*place) + strlen(place->root) + strlen(place->name) + 2;
}

/* ---- places ---- */

static void free_place(struct opd_mount_view *place)
{
	forget_mounts(place);
	free(place->root);
	free(place->name);
	free(place);
}

void opd_mount_view_put(struct opd_mount_view *place)
{
	if (!place || --place->refs)
		return;
	op_htable_remove(&place->places->by_key, &place->link);
	place->places->nr_bytes -= bytes_of(place);
	free_place(place);
}

static char *make_name(const struct opd_mount_views *places, uint64_t mnt_ns, const char *root)
{
	struct op_text name = { 0 };

	if (mnt_ns != places->host_ns)
		op_text_printf(&name, NS_LINK_FORMAT, (unsigned long long)mnt_ns);
	if (strcmp(root, "/") != 0)
		op_text_printf(&name, "%schroot:%s", name.length ? " " : "", root);
	return op_text_steal(&name);
}

static struct opd_mount_view *add_place(struct opd_mount_views *places, uint64_t mnt_ns, const char *root, uint64_t hash)
{
	struct opd_mount_view *place = calloc(1, sizeof(*place));

	if (!place)
		return NULL;
	place->places = places;
	place->refs = 1;
	place->mnt_ns = mnt_ns;
	place->root = strdup(root);
	place->name = make_name(places, mnt_ns, root);
	if (!place->root || !place->name || op_htable_insert(&places->by_key, &place->link, hash) < 0) {
		free_place(place);
		return NULL;
	}
	places->nr_bytes += bytes_of(place);
	return place;
}

/* A reference to the place; NULL for the host. 0, -ENOMEM, or -ENOSPC: there is no room. */
static int get_place(struct opd_mount_views *places, uint64_t mnt_ns, const char *root, struct opd_mount_view **ret_place)
{
	uint64_t hash = op_hash_bytes(mnt_ns, root, strlen(root));
	struct opd_mount_view *place = NULL;
	struct op_hlink *link;

	if (mnt_ns != places->host_ns || strcmp(root, "/") != 0) {
		for (link = op_htable_first(&places->by_key, hash); link && !place; link = op_htable_next(link)) {
			struct opd_mount_view *known = op_container_of(link, struct opd_mount_view, link);

			if (known->mnt_ns == mnt_ns && !strcmp(known->root, root))
				place = opd_mount_view_ref(known);
		}
		if (!place && places->nr_bytes >= OPD_MOUNT_VIEWS_BYTES_MAX) {
			places->nr_dropped++;
			return -ENOSPC;
		}
		if (!place)
			place = add_place(places, mnt_ns, root, hash);
		if (!place)
			return -ENOMEM;
	}
	*ret_place = place;
	return 0;
}

static bool is_at(const struct opd_mount_views *places, const struct opd_mount_view *place, uint64_t mnt_ns, const char *root)
{
	if (!place)
		return mnt_ns == places->host_ns && !strcmp(root, "/");
	return place->mnt_ns == mnt_ns && !strcmp(place->root, root);
}

static uint64_t mnt_ns_of(const struct opd_mount_views *places, const struct opd_mount_view *place)
{
	return place ? place->mnt_ns : places->host_ns;
}

static int move_to(struct opd_mount_views *places, uint64_t mnt_ns, const char *root, struct opd_mount_view **place)
{
	struct opd_mount_view *new_place;
	int err;

	if (is_at(places, *place, mnt_ns, root))
		return 0;
	err = get_place(places, mnt_ns, root, &new_place);
	if (err)
		return err == -ENOSPC ? 0 : err;
	opd_mount_view_put(*place);
	*place = new_place;
	return 0;
}

static bool lives_there(const struct opd_mount_view *place, uint32_t pid)
{
	char root[PATH_MAX];
	uint64_t mnt_ns;

	return pid && read_mnt_ns(pid, &mnt_ns) && read_link(pid, "root", root, sizeof(root)) &&
	       is_at(place->places, place, mnt_ns, root);
}

uint32_t opd_mount_view_inhabitant(const struct opd_mount_view *place)
{
	return lives_there(place, place->seen_pid) ? place->seen_pid : 0;
}

static int look_root(struct opd_mount_views *places, uint32_t pid, uint64_t mnt_ns, struct opd_mount_view **place)
{
	char root[PATH_MAX];
	int err;

	if (!read_link(pid, "root", root, sizeof(root)))
		return 0;
	err = move_to(places, mnt_ns, root, place);
	if (!err && *place && !lives_there(*place, (*place)->seen_pid))
		(*place)->seen_pid = pid;
	return err;
}

/*
 * In a storm most processes are gone when their records are read. That /proc does not have a process costs more than to read of one that it has, so they
 * are not asked for there.
 */
int opd_mount_view_look(struct opd_mount_views *places, uint32_t pid, struct opd_mount_view **place)
{
	uint64_t mnt_ns;

	know_host(places);
	return !op_sys_is_gone(pid) && read_mnt_ns(pid, &mnt_ns) ? look_root(places, pid, mnt_ns, place) : 0;
}

int opd_mount_view_look_root(struct opd_mount_views *places, uint32_t pid, struct opd_mount_view **place)
{
	know_host(places);
	return op_sys_is_gone(pid) ? 0 : look_root(places, pid, mnt_ns_of(places, *place), place);
}

int opd_mount_view_enter(struct opd_mount_views *places, uint64_t mnt_ns, struct opd_mount_view **place)
{
	know_host(places);
	if (mnt_ns == mnt_ns_of(places, *place))
		return 0;
	return move_to(places, mnt_ns, *place ? (*place)->root : "/", place);
}

static bool is_due(uint64_t read_ns, bool again, uint64_t now_ns)
{
	return !read_ns || (again && now_ns >= read_ns + REREAD_NS);
}

static bool read_mounts(uint32_t pid, struct opd_mounts *ret_mounts)
{
	char path[64];

	proc_path(path, sizeof(path), pid, "mountinfo");
	return opd_mounts_read(path, ret_mounts) == 0;
}

/* A process that is gone tells nothing: one that was seen there before may still live. What cannot be read leaves the mounts as they were. */
static bool read_place(struct opd_mount_view *place, uint32_t pid)
{
	struct opd_mounts mounts;

	if (!read_mounts(pid, &mounts) && (!lives_there(place, place->seen_pid) || !read_mounts(place->seen_pid, &mounts)))
		return false;
	keep_mounts(place, &mounts);
	return true;
}

const struct opd_mounts *opd_mount_view_mounts(struct opd_mount_view *place, uint32_t pid, bool again)
{
	uint64_t now_ns = op_now_ns();

	if (is_due(place->mounts_read_ns, again, now_ns) && read_place(place, pid))
		place->mounts_read_ns = now_ns;
	return &place->mounts;
}

const struct opd_mounts *opd_mount_views_host_mounts(struct opd_mount_views *places, bool again)
{
	uint64_t now_ns = op_now_ns();
	struct opd_mounts mounts;

	know_host(places);
	if (is_due(places->host_read_ns, again, now_ns)) {
		if (read_mounts(*places->host_prefix ? HOST_PID : SELF, &mounts)) {
			opd_mounts_free(&places->host);
			places->host = mounts;
		}
		places->host_read_ns = now_ns;
	}
	return &places->host;
}

bool opd_mount_view_shares_host(const struct opd_mount_views *places, const struct opd_mount_view *place)
{
	return !place || place->mnt_ns == places->host_ns;
}
