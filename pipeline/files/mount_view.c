/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/mount_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

#define SELF           0u /* stands for a pid */
#define HOST_PID       1u
#define HOST_PREFIX    "/proc/1/root"
#define NS_LINK_FORMAT "mnt:[%llu]"
#define REREAD_NS      (100u * OP_NS_PER_MS) /* shortest time between two readings */

/* A path in /proc/PID. */
static void proc_path(char *path, size_t path_bytes, uint32_t pid, const char *name)
{
	if (pid == SELF)
		snprintf(path, path_bytes, "/proc/self/%s", name);
	else
		snprintf(path, path_bytes, "/proc/%u/%s", pid, name);
}

int opd_proc_open(uint32_t pid)
{
	char path[64];

	proc_path(path, sizeof(path), pid, "");
	return op_sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

static bool read_link(int proc_fd, const char *name, char *target, size_t target_bytes)
{
	ssize_t length = op_sys_readlinkat(proc_fd, name, target, target_bytes);

	if (length < 0 || (size_t)length >= target_bytes)
		return false;
	target[length] = '\0';
	return true;
}

/* The link says "mnt:[4026531841]". */
static bool read_ns(int proc_fd, const char *kind, uint64_t *ret_ns)
{
	char link[16], target[64];
	const char *digits;

	snprintf(link, sizeof(link), "ns/%s", kind);
	digits = read_link(proc_fd, link, target, sizeof(target)) ? strchr(target, '[') : NULL;
	if (!digits)
		return false;
	*ret_ns = strtoull(digits + 1, NULL, 10);
	return true;
}

bool opd_place_read_at(int proc_fd, struct opd_place *ret_place)
{
	if (!read_ns(proc_fd, "mnt", &ret_place->mnt_ns) ||
	    !read_link(proc_fd, "root", ret_place->root, sizeof(ret_place->root)))
		return false;
	if (!read_ns(proc_fd, "user", &ret_place->user_ns))
		ret_place->user_ns = 0;
	return true;
}

bool opd_place_read(uint32_t pid, struct opd_place *ret_place)
{
	int proc_fd = opd_proc_open(pid);
	bool is_known = proc_fd >= 0 && opd_place_read_at(proc_fd, ret_place);

	if (proc_fd >= 0)
		close(proc_fd);
	return is_known;
}

static bool read_ns_of(uint32_t pid, const char *kind, uint64_t *ret_ns)
{
	int proc_fd = opd_proc_open(pid);
	bool is_known = proc_fd >= 0 && read_ns(proc_fd, kind, ret_ns);

	if (proc_fd >= 0)
		close(proc_fd);
	return is_known;
}

/* opd itself and process 1 are no strangers. */
static struct opd_host find_host(void)
{
	struct opd_host host = { .prefix = "" };
	uint64_t own_ns = 0;

	if (!read_ns_of(HOST_PID, "user", &host.user_ns) && !read_ns_of(SELF, "user", &host.user_ns))
		host.user_ns = 0;
	if (!read_ns_of(SELF, "mnt", &own_ns))
		return host;
	if (!read_ns_of(HOST_PID, "mnt", &host.mnt_ns))
		host.mnt_ns = own_ns;
	if (host.mnt_ns != own_ns)
		host.prefix = HOST_PREFIX;
	return host;
}

const struct opd_host *opd_host(void)
{
	static struct opd_host host;

	if (!host.prefix)
		host = find_host();
	return &host;
}

void opd_mount_views_free(struct opd_mount_views *views)
{
	op_htable_free(&views->by_key);
	opd_mounts_free(&views->host);
	*views = (struct opd_mount_views){ 0 };
}

struct opd_mount_view *opd_mount_view_ref(struct opd_mount_view *view)
{
	if (view)
		view->refs++;
	return view;
}

/* ---- bytes ---- */

static void forget_mounts(struct opd_mount_view *view)
{
	if (!view->at)
		return;
	view->views->nr_mount_bytes -= view->mounts.nr_bytes;
	opd_mounts_free(&view->mounts);
	view->mounts_read_ns = 0;
	*view->at = view->next;
	*(view->next ? &view->next->at : &view->views->last_at) = view->at;
	view->next = NULL;
	view->at = NULL;
}

static void keep_mounts(struct opd_mount_view *view, const struct opd_mounts *mounts)
{
	struct opd_mount_views *views = view->views;

	forget_mounts(view);
	while (views->with_mounts && views->nr_mount_bytes + mounts->nr_bytes > OPD_MOUNT_VIEWS_BYTES_MAX) {
		forget_mounts(views->with_mounts);
		views->nr_dropped++;
	}
	view->mounts = *mounts;
	views->nr_mount_bytes += mounts->nr_bytes;
	view->at = views->with_mounts ? views->last_at : &views->with_mounts;
	*view->at = view;
	views->last_at = &view->next;
}

static size_t bytes_of(const struct opd_mount_view *view)
{
	return sizeof(*view) + strlen(view->root) + strlen(view->name) + 2;
}

/* ---- views ---- */

static void free_view(struct opd_mount_view *view)
{
	forget_mounts(view);
	free(view->root);
	free(view->name);
	free(view);
}

void opd_mount_view_put(struct opd_mount_view *view)
{
	if (!view || --view->refs)
		return;
	op_htable_remove(&view->views->by_key, &view->link);
	view->views->nr_bytes -= bytes_of(view);
	free_view(view);
}

static char *make_name(uint64_t mnt_ns, const char *root)
{
	struct op_text name = { 0 };

	if (mnt_ns != opd_host()->mnt_ns)
		op_text_printf(&name, NS_LINK_FORMAT, (unsigned long long)mnt_ns);
	if (strcmp(root, "/") != 0)
		op_text_printf(&name, "%schroot:%s", name.length ? " " : "", root);
	return op_text_steal(&name);
}

static struct opd_mount_view *add_view(struct opd_mount_views *views, uint64_t mnt_ns, uint64_t user_ns, const char *root,
				       uint64_t hash)
{
	struct opd_mount_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->views = views;
	view->refs = 1;
	view->mnt_ns = mnt_ns;
	view->user_ns = user_ns;
	view->root = strdup(root);
	view->name = make_name(mnt_ns, root);
	if (!view->root || !view->name || op_htable_insert(&views->by_key, &view->link, hash) < 0) {
		free_view(view);
		return NULL;
	}
	views->nr_bytes += bytes_of(view);
	return view;
}

/* Gets a reference to the view; NULL for the host's. 0, -ENOMEM, or -ENOSPC: no room. */
static int get_view(struct opd_mount_views *views, uint64_t mnt_ns, uint64_t user_ns, const char *root,
		    struct opd_mount_view **ret_view)
{
	uint64_t hash = op_hash_bytes(mnt_ns, root, strlen(root));
	struct opd_mount_view *view = NULL;
	struct op_hlink *link;

	if (mnt_ns != opd_host()->mnt_ns || strcmp(root, "/") != 0) {
		for (link = op_htable_first(&views->by_key, hash); link && !view; link = op_htable_next(link)) {
			struct opd_mount_view *known = op_container_of(link, struct opd_mount_view, link);

			if (known->mnt_ns == mnt_ns && !strcmp(known->root, root))
				view = opd_mount_view_ref(known);
		}
		if (!view && views->nr_bytes >= OPD_MOUNT_VIEWS_BYTES_MAX) {
			views->nr_dropped++;
			return -ENOSPC;
		}
		if (!view)
			view = add_view(views, mnt_ns, user_ns, root, hash);
		if (!view)
			return -ENOMEM;
	}
	*ret_view = view;
	return 0;
}

static bool is_at(const struct opd_mount_view *view, uint64_t mnt_ns, const char *root)
{
	if (!view)
		return mnt_ns == opd_host()->mnt_ns && !strcmp(root, "/");
	return view->mnt_ns == mnt_ns && !strcmp(view->root, root);
}

static uint64_t mnt_ns_of(const struct opd_mount_view *view)
{
	return view ? view->mnt_ns : opd_host()->mnt_ns;
}

/* user_ns 0: unknown. */
static int move_to(struct opd_mount_views *views, uint64_t mnt_ns, uint64_t user_ns, const char *root, struct opd_mount_view **view)
{
	struct opd_mount_view *new_view;
	int err;

	if (user_ns == opd_host()->user_ns)
		user_ns = 0;
	if (is_at(*view, mnt_ns, root)) {
		if (*view && user_ns)
			(*view)->user_ns = user_ns;
		return 0;
	}
	err = get_view(views, mnt_ns, user_ns, root, &new_view);
	if (err)
		return err == -ENOSPC ? 0 : err;
	opd_mount_view_put(*view);
	*view = new_view;
	return 0;
}

static bool lives_there(const struct opd_mount_view *view, uint32_t pid)
{
	struct opd_place place;

	return pid && opd_place_read(pid, &place) && is_at(view, place.mnt_ns, place.root);
}

uint32_t opd_mount_view_pid(const struct opd_mount_view *view)
{
	return lives_there(view, view->seen_pid) ? view->seen_pid : 0;
}

int opd_mount_view_set(struct opd_mount_views *views, uint32_t pid, const struct opd_place *place, struct opd_mount_view **view)
{
	int err;

	err = move_to(views, place->mnt_ns, place->user_ns, place->root, view);
	if (!err && *view && (!(*view)->seen_pid || op_sys_is_gone((*view)->seen_pid)))
		(*view)->seen_pid = pid;
	return err;
}

int opd_mount_view_get(struct opd_mount_views *views, const struct opd_place *place, struct opd_mount_view **ret_view)
{
	return get_view(views, place->mnt_ns, place->user_ns, place->root, ret_view);
}

struct opd_look_about opd_mount_view_about(const struct opd_mount_view *view, uint32_t pid)
{
	return (struct opd_look_about){ .pid = pid, .user_ns = view ? view->user_ns : 0 };
}

/* The answer is a struct opd_place up to the end of the root's path. */
static bool ask_place(struct opd_mount_views *views, uint32_t pid, const struct opd_mount_view *view, struct opd_place *ret_place)
{
	struct opd_look_about about = opd_mount_view_about(view, pid);
	struct iovec part = { &pid, sizeof(pid) };
	struct op_text answer = { 0 };
	uint32_t any = 0;
	bool is_known = !opd_look(views->lookers, &about, OPD_LOOK_VIEW, &part, 1, -1, &any, &answer) &&
			answer.length > offsetof(struct opd_place, root) && answer.length < sizeof(*ret_place);

	if (is_known)
		memcpy(ret_place, answer.data, answer.length + 1);
	op_text_free(&answer);
	return is_known;
}

/*
 * In a burst most processes are gone when their records are read. Looking for a missing process in
 * /proc costs more than reading an existing one, so the cheap check comes first.
 */
static bool get_place(struct opd_mount_views *views, uint32_t pid, const struct opd_mount_view *view, struct opd_place *ret_place)
{
	if (op_sys_is_gone(pid))
		return false;
	return views->lookers ? ask_place(views, pid, view, ret_place) : opd_place_read(pid, ret_place);
}

int opd_mount_view_update(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view)
{
	struct opd_place place;

	return get_place(views, pid, *view, &place) ? opd_mount_view_set(views, pid, &place, view) : 0;
}

int opd_mount_view_update_root(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view)
{
	struct opd_place place;

	if (!get_place(views, pid, *view, &place))
		return 0;
	place.mnt_ns = mnt_ns_of(*view);
	return opd_mount_view_set(views, pid, &place, view);
}

int opd_mount_view_enter(struct opd_mount_views *views, uint64_t mnt_ns, uint64_t user_ns, struct opd_mount_view **view)
{
	if (mnt_ns == mnt_ns_of(*view))
		return 0;
	return move_to(views, mnt_ns, user_ns, *view ? (*view)->root : "/", view);
}

/* The user namespace that a mount namespace belongs to. False: the process is not there. */
static bool read_owner(uint32_t pid, uint64_t mnt_ns, uint64_t *ret_user_ns)
{
	char path[64];
	struct stat st;
	int fd, owner_fd = -1;
	bool is_known;

	proc_path(path, sizeof(path), pid, "ns/mnt");
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (!op_sys_fstat(fd, &st) && st.st_ino == mnt_ns)
		owner_fd = op_sys_ioctl(fd, NS_GET_USERNS, NULL);
	is_known = owner_fd >= 0 && !op_sys_fstat(owner_fd, &st);
	if (is_known)
		*ret_user_ns = st.st_ino;
	if (owner_fd >= 0)
		close(owner_fd);
	close(fd);
	return is_known;
}

bool opd_mount_view_is_roots(const struct opd_mount_view *view, uint32_t pid)
{
	uint64_t owner, hosts;

	if (!read_owner(*opd_host()->prefix ? HOST_PID : SELF, opd_host()->mnt_ns, &hosts))
		return false;
	if (!read_owner(pid, view->mnt_ns, &owner) && (!view->seen_pid || !read_owner(view->seen_pid, view->mnt_ns, &owner)))
		return false;
	return owner == hosts;
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

/*
 * When the process is gone, one that was seen there before may still live. On failure the mounts
 * stay as they were.
 */
static bool read_view(struct opd_mount_view *view, uint32_t pid)
{
	struct opd_mounts mounts;

	if (!read_mounts(pid, &mounts) && (!lives_there(view, view->seen_pid) || !read_mounts(view->seen_pid, &mounts)))
		return false;
	keep_mounts(view, &mounts);
	return true;
}

const struct opd_mounts *opd_mount_view_mounts(struct opd_mount_view *view, uint32_t pid, bool again)
{
	uint64_t now_ns = op_now_ns();

	if (is_due(view->mounts_read_ns, again, now_ns) && read_view(view, pid))
		view->mounts_read_ns = now_ns;
	return &view->mounts;
}

const struct opd_mounts *opd_mount_views_host_mounts(struct opd_mount_views *views, bool again)
{
	uint64_t now_ns = op_now_ns();
	struct opd_mounts mounts;

	if (is_due(views->host_read_ns, again, now_ns)) {
		if (read_mounts(*opd_host()->prefix ? HOST_PID : SELF, &mounts)) {
			opd_mounts_free(&views->host);
			views->host = mounts;
		}
		views->host_read_ns = now_ns;
	}
	return &views->host;
}

bool opd_mount_view_shares_host(const struct opd_mount_view *view)
{
	return !view || view->mnt_ns == opd_host()->mnt_ns;
}
