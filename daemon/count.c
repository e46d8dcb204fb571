/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/count.h"

#include <errno.h>
#include <time.h>

#include "daemon/damaged.h"
#include "daemon/log.h"
#include "libop/clock.h"
#include "libop/mangle.h"
#include "libop/odb.h"
#include "libop/session.h"
#include "libop/sys.h"

#define TMP_PATH OP_SESSION_TMP "/sample"
#define RETRY_NS 100000000u /* a file that could not be opened is tried again after 100 ms */

/* What samples must have in common to be counted in one file. */
struct file_key {
	uint64_t app_cookie, image_cookie;
	uint32_t event;
	int32_t tgid, tid, cpu;
	uint32_t cgroup_slot; /* OPD_CGROUP_NONE: of all cgroups */
};

struct opd_file {
	struct op_hlink link;
	struct file_key key;
	struct op_odb *odb;             /* NULL: not open */
	struct opd_file *newer, *older; /* among those that are open, or closed */
	char *path;                     /* below the session directory; NULL until it was opened once */
	bool changed;
	uint64_t last_ns; /* of the last sample; 0: the rows have it */
	int error; /* of the last attempt to open */
	uint64_t retry_ns;
};

static uint64_t hash_key(const struct file_key *key)
{
	uint64_t hash = op_hash_u64(key->image_cookie + (key->app_cookie << 32));

	hash = op_hash_add(hash, ((uint64_t)(uint32_t)key->tid << 32 | (uint32_t)key->cpu) + ((uint64_t)key->event << 24));
	return key->cgroup_slot ? op_hash_add(hash, key->cgroup_slot) : hash;
}

static bool same_key(const struct file_key *a, const struct file_key *b)
{
	return a->app_cookie == b->app_cookie && a->image_cookie == b->image_cookie && a->event == b->event && a->tgid == b->tgid &&
	       a->tid == b->tid && a->cpu == b->cpu && a->cgroup_slot == b->cgroup_slot;
}

static struct file_key key_of(const struct opd_count *count, const struct opd_counted *counted)
{
	const struct opd_resolved *resolved = counted->resolved;
	bool is_anon = op_dcookie_row(count->table, resolved->location.cookie)->id.name.kind == OP_IMAGE_ANON;
	bool separate = is_anon || (resolved->is_kernel ? count->separate_kernel : count->separate_lib);
	struct file_key key = {
		.app_cookie = resolved->location.cookie,
		.image_cookie = resolved->location.cookie,
		.event = counted->event,
		.tgid = count->separate_thread ? (int32_t)counted->pid : OP_CLASS_ALL,
		.tid = count->separate_thread ? (int32_t)counted->tid : OP_CLASS_ALL,
		.cpu = count->separate_cpu ? (int32_t)counted->cpu : OP_CLASS_ALL,
	};

	if (separate && resolved->app_cookie != OP_DCOOKIE_NONE)
		key.app_cookie = resolved->app_cookie;
	else if (is_anon)
		key.app_cookie = count->no_process_cookie;
	/* A task that is being reaped, or one of another pid namespace, has no number to file it under. */
	if (key.tgid < 0)
		key.tgid = OP_CLASS_ALL;
	if (key.tid < 0)
		key.tid = OP_CLASS_ALL;
	return key;
}

/* ---- lists, by last use ---- */

static struct opd_file_list *list_of(struct opd_count *count, const struct opd_file *file)
{
	return file->odb ? &count->open : &count->closed;
}

static void unlink_file(struct opd_file_list *list, struct opd_file *file)
{
	*(file->newer ? &file->newer->older : &list->newest) = file->older;
	*(file->older ? &file->older->newer : &list->oldest) = file->newer;
	file->newer = file->older = NULL;
	list->nr--;
}

static void link_newest(struct opd_file_list *list, struct opd_file *file)
{
	file->older = list->newest;
	file->newer = NULL;
	*(list->newest ? &list->newest->newer : &list->oldest) = file;
	list->newest = file;
	list->nr++;
}

static void use(struct opd_count *count, struct opd_file *file)
{
	if (count->open.newest == file)
		return;
	unlink_file(&count->open, file);
	link_newest(&count->open, file);
}

/* Tells the rows when the last sample was. */
static void note_seen(struct opd_count *count, struct opd_file *file)
{
	uint64_t cookies[] = { file->key.app_cookie, file->key.image_cookie };
	int64_t seconds;

	if (!file->last_ns)
		return;
	seconds = (int64_t)time(NULL) - (int64_t)((count->now_ns - op_min_u64(count->now_ns, file->last_ns)) / OP_NS_PER_S);
	for (size_t i = 0; i < op_array_size(cookies); i++) {
		struct op_dcookie_row *row = op_dcookie_row(count->table, cookies[i]);

		if (row->last_seen < seconds)
			row->last_seen = seconds;
	}
	file->last_ns = 0;
}

static void free_file(struct opd_count *count, struct opd_file *file)
{
	unlink_file(list_of(count, file), file);
	for (size_t i = 0; i < op_array_size(count->last); i++)
		if (count->last[i] == file)
			count->last[i] = NULL;
	if (file->odb)
		op_odb_close(file->odb);
	free(file->path);
	free(file);
}

/* Names do not change, so a file that is forgotten is found again. */
static void forget_file(struct opd_count *count, struct opd_file *file)
{
	note_seen(count, file);
	count->forgot_changed |= file->changed;
	count->nr_forgotten++;
	op_htable_remove(&count->files, &file->link);
	free_file(count, file);
}

static void close_file(struct opd_count *count, struct opd_file *file)
{
	if (!file->odb)
		return;
	unlink_file(&count->open, file);
	op_odb_close(file->odb);
	file->odb = NULL;
	link_newest(&count->closed, file);
}

/* ---- opening ---- */

static int make_path(const struct opd_count *count, const struct opd_file *file, char **ret_path)
{
	const struct op_event *event = &count->events[file->key.event];
	struct op_text path = { 0 };
	struct op_sample_name name = {
		.app = op_dcookie_name(op_dcookie_row(count->table, file->key.app_cookie)),
		.image = op_dcookie_name(op_dcookie_row(count->table, file->key.image_cookie)),
		.event = event->name,
		.count = event->count,
		.unit_mask = event->unit_mask,
		.tgid = file->key.tgid,
		.tid = file->key.tid,
		.cpu = file->key.cpu,
	};

	op_text_add(&path, OP_SESSION_CURRENT "/");
	if (file->key.cgroup_slot != OPD_CGROUP_NONE)
		op_mangle_cgroup(opd_cgroups_path(count->cgroups, file->key.cgroup_slot), &path);
	op_mangle(&name, &path);
	*ret_path = op_text_steal(&path);
	return *ret_path ? 0 : -ENOMEM;
}

static void make_header(const struct opd_count *count, const struct opd_file *file, struct op_odb_header *ret_header)
{
	const struct op_dcookie_row *image = op_dcookie_row(count->table, file->key.image_cookie);
	const struct op_event *event = &count->events[file->key.event];

	*ret_header = (struct op_odb_header){
		.version = OP_ODB_VERSION,
		.cpu_type = OP_CPU_TYPE_TIMER,
		.ctr_event = event->number,
		.ctr_um = event->unit_mask,
		.ctr_count = (uint32_t)op_min_u64(event->count, UINT32_MAX),
		.is_kernel = image->id.is_kernel,
		.cpu_speed_mhz = count->cpu_speed_mhz,
		.mtime = op_dcookie_mtime(image),
		.anon_start = image->id.name.kind == OP_IMAGE_ANON ? image->id.name.start : 0,
	};
	memcpy(ret_header->magic, OP_ODB_MAGIC, sizeof(ret_header->magic));
}

/* A file that is no sample file (a power cut, a foreign hand) makes room for a whole one. */
static int put_aside(struct opd_count *count, const char *path)
{
	char aside[OPD_DAMAGED_NAME_BYTES];
	int err = opd_damaged_put_aside(count->session_fd, path, aside);

	if (err)
		return err;
	count->nr_damaged++;
	opd_log(SD_WARNING, "%s is not a sample file: kept as %s in the session directory, counting goes on in a new one", path, aside);
	return 0;
}

static int open_path(struct opd_count *count, struct opd_file *file)
{
	struct op_odb_header header;
	struct op_odb *odb;
	char *path;
	int err = make_path(count, file, &path);

	if (err)
		return err;
	make_header(count, file, &header);
	err = op_odb_open(count->session_fd, path, TMP_PATH, &header, &odb);
	if (err == -EBADMSG && !put_aside(count, path))
		err = op_odb_open(count->session_fd, path, TMP_PATH, &header, &odb);
	/* A daemon without our table counted another file of that name: its profile stays as it is. */
	if (!err && op_odb_header(odb)->mtime != header.mtime) {
		op_odb_close(odb);
		err = -ESTALE;
	}
	if (err) {
		free(path);
		return err;
	}
	free(file->path);
	file->path = path;
	unlink_file(&count->closed, file);
	file->odb = odb;
	link_newest(&count->open, file);
	count->dropped_nodes += op_odb_dropped(odb);
	return 0;
}

static int open_file(struct opd_count *count, struct opd_file *file)
{
	int err;

	if (file->error && count->now_ns < file->retry_ns)
		return file->error;
	while (count->open.nr >= count->max_open && count->open.oldest)
		close_file(count, count->open.oldest);
	err = open_path(count, file);
	if (err == -ESTALE) {
		err = op_dcookie_tell_apart(count->table, file->key.image_cookie);
		if (!err)
			err = open_path(count, file);
	}
	/* The table has the row before the file has a sample. */
	if (!err && count->cookie_file)
		opd_cookie_file_flush(count->cookie_file, count->now_ns);
	file->error = err;
	file->retry_ns = count->now_ns + RETRY_NS;
	return err;
}

/* ---- finding ---- */

static struct opd_file *find_file(const struct opd_count *count, const struct file_key *key)
{
	for (struct op_hlink *link = op_htable_first(&count->files, hash_key(key)); link; link = op_htable_next(link)) {
		struct opd_file *file = op_container_of(link, struct opd_file, link);

		if (same_key(&file->key, key))
			return file;
	}
	return NULL;
}

static struct opd_file *add_file(struct opd_count *count, const struct file_key *key)
{
	struct opd_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->key = *key;
	if (op_htable_insert(&count->files, &file->link, hash_key(key)) < 0) {
		free(file);
		return NULL;
	}
	link_newest(&count->closed, file);
	while (count->closed.nr > count->max_closed && count->closed.oldest != file)
		forget_file(count, count->closed.oldest);
	return file;
}

/* The image gets its name in the session with its first sample; there is a limit to how many do. */
static int count_in(const struct opd_count *count, uint64_t *cookie)
{
	int64_t now_seconds = (int64_t)time(NULL);
	int err = op_dcookie_count_in(count->table, *cookie, now_seconds);

	if (err != -EDQUOT)
		return err;
	*cookie = op_dcookie_overflow(count->table);
	return op_dcookie_count_in(count->table, *cookie, now_seconds);
}

/* The file of a key that is not known: of the key that is left of it when the session has too many images. NULL without memory. */
static struct opd_file *make_file(struct opd_count *count, struct file_key *key)
{
	struct opd_file *file = NULL;
	struct file_key wanted = *key;

	if (count_in(count, &key->app_cookie) < 0 || count_in(count, &key->image_cookie) < 0)
		return NULL;
	if (!same_key(key, &wanted))
		file = find_file(count, key);
	return file ? file : add_file(count, key);
}

static struct opd_file *file_of(struct opd_count *count, struct file_key *key)
{
	struct opd_file *file = find_file(count, key);

	return file ? file : make_file(count, key);
}

static enum op_loss loss_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return OP_LOSS_no_space;
	case -EMFILE:
	case -ENFILE:
		return OP_LOSS_too_many_files;
	case -ENOMEM:
		return OP_LOSS_no_memory;
	default:
		return OP_LOSS_io_error;
	}
}

/* Samples of what is beyond a limit have no offset that means anything. */
static uint64_t offset_in_file(const struct opd_count *count, const struct file_key *key, const struct opd_counted *counted)
{
	return key->image_cookie == op_dcookie_overflow(count->table) ? 0 : counted->resolved->location.offset;
}

/* The key is changed to what is left of it when the session has too many images. */
static int add_sample(struct opd_count *count, struct file_key *key, const struct opd_counted *counted)
{
	struct opd_file **last = &count->last[key->cgroup_slot != OPD_CGROUP_NONE];
	struct opd_file *file = *last && same_key(&(*last)->key, key) ? *last : file_of(count, key);
	int err;

	if (!file)
		return OP_LOSS_no_memory + 1;
	*last = file;
	err = file->odb ? 0 : open_file(count, file);
	if (err)
		return (int)loss_of(err) + 1;
	use(count, file);
	err = op_odb_add(file->odb, offset_in_file(count, key, counted), 1);
	if (err)
		return (int)loss_of(err) + 1;
	file->changed = true;
	file->last_ns = op_max_u64(count->now_ns, 1);
	return 0;
}

/* Stored is what is in its ordinary file; what could not be kept by cgroup as well is counted as that. */
static void split(struct opd_count *count, struct file_key *key, const struct opd_counted *counted)
{
	key->cgroup_slot = opd_cgroups_slot(count->cgroups, counted->cgroup_id, count->now_ns);
	if (key->cgroup_slot == OPD_CGROUP_NONE || add_sample(count, key, counted))
		count->cgroups->not_split++;
}

static void note_too_many(struct opd_count *count, const struct file_key *key, struct opd_counted *counted)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	if (op_likely(overflow == OP_DCOOKIE_NONE || (key->image_cookie != overflow && key->app_cookie != overflow)))
		return;
	counted->too_many = key->image_cookie == overflow;
	count->nr_too_many++;
}

int opd_count_sample(struct opd_count *count, struct opd_counted *counted)
{
	struct file_key key = key_of(count, counted);
	int loss = add_sample(count, &key, counted);

	if (loss)
		return loss;
	note_too_many(count, &key, counted);
	if (op_unlikely(count->cgroups))
		split(count, &key, counted);
	return 0;
}

/* ---- writing out, closing ---- */

struct changed {
	struct opd_count *count;
	char **paths;
	size_t nr_paths;
	bool failed;
};

static void take_changed(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct changed *changed = arg;

	note_seen(changed->count, file);
	if (!file->changed || changed->failed)
		return;
	changed->paths[changed->nr_paths] = strdup(file->path);
	if (!changed->paths[changed->nr_paths]) {
		changed->failed = true;
		return;
	}
	changed->nr_paths++;
}

static void mark_written(struct op_hlink *link, void *arg OP_UNUSED)
{
	op_container_of(link, struct opd_file, link)->changed = false;
}

int opd_count_take_changed(struct opd_count *count, char ***ret_paths, size_t *ret_nr_paths)
{
	struct changed changed = { .count = count, .paths = calloc(count->files.nr_entries + 1, sizeof(char *)) };

	if (!changed.paths)
		return -ENOMEM;
	op_htable_visit(&count->files, take_changed, &changed);
	if (changed.failed) {
		for (size_t i = 0; i < changed.nr_paths; i++)
			free(changed.paths[i]);
		free(changed.paths);
		return -ENOMEM;
	}
	op_htable_visit(&count->files, mark_written, NULL);
	*ret_paths = changed.paths;
	*ret_nr_paths = changed.nr_paths;
	return 0;
}

static void mark_changed(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);

	file->changed = file->path;
}

void opd_count_mark_changed(struct opd_count *count)
{
	op_htable_visit(&count->files, mark_changed, NULL);
}

void opd_count_release_files(struct opd_count *count)
{
	while (count->open.oldest)
		close_file(count, count->open.oldest);
}

void opd_count_give_up_files(struct opd_count *count)
{
	opd_count_release_files(count);
	op_htable_visit(&count->files, mark_written, NULL);
}

static void free_visited(struct op_hlink *link, void *arg)
{
	free_file(arg, op_container_of(link, struct opd_file, link));
}

void opd_count_close_files(struct opd_count *count)
{
	op_htable_visit(&count->files, free_visited, count);
	op_htable_free(&count->files);
	if (count->cgroups)
		opd_cgroups_forget_slots(count->cgroups);
}
