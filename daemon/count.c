/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/count_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/capture.h"
#include "daemon/recover.h"
#include "daemon/log.h"
#include "daemon/memory_limit.h"
#include "daemon/settle.h"
#include "libop/clock.h"
#include "libop/file.h"
#include "libop/guard.h"
#include "libop/mangle.h"
#include "libop/mem.h"
#include "libop/odb.h"
#include "libop/session.h"
#include "libop/sys.h"

#define LOST_LOG_NS OP_NS_PER_S
#define RETRY_NS 100000000u /* a file that could not be opened is tried again after 100 ms */
#define NR_TOLD  32	     /* kinds of errors that are told beside each other */

/* Samples on their way into files that are open. */
struct batch {
	struct op_odb_addition additions[OPD_WAITING_MAX];
	struct opd_waiting *waiting[OPD_WAITING_MAX];
	size_t nr;
};

static uint64_t hash_key(const struct opd_file_key *key)
{
	uint64_t hash = op_hash_u64(key->image_cookie + (key->app_cookie << 32));

	hash = op_hash_add(hash, ((uint64_t)(uint32_t)key->tid << 32 | (uint32_t)key->cpu) + ((uint64_t)key->event << 24));
	if (key->callee_cookie)
		hash = op_hash_add(hash, key->callee_cookie);
	return key->cgroup_slot ? op_hash_add(hash, key->cgroup_slot) : hash;
}

static bool same_key(const struct opd_file_key *a, const struct opd_file_key *b)
{
	uint64_t x[5], y[5];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

static struct opd_file_key key_of(const struct opd_count *count, const struct opd_counted *counted)
{
	const struct opd_resolved *resolved = counted->resolved;
	bool is_memory = opd_is_of_memory(count, counted->event);
	bool separate = resolved->is_region || (resolved->is_kernel ? count->separate_kernel : count->separate_lib);
	struct opd_file_key key = {
		.app_cookie = resolved->location.cookie,
		.image_cookie = resolved->location.cookie,
		.event = (uint16_t)counted->event,
		.tgid = count->separate_thread && !is_memory ? (int32_t)counted->pid : OP_CLASS_ALL,
		.tid = count->separate_thread && !is_memory ? (int32_t)counted->tid : OP_CLASS_ALL,
		.cpu = count->separate_cpu && !is_memory ? (int32_t)counted->cpu : OP_CLASS_ALL,
	};

	if (separate && resolved->app_cookie != OP_DCOOKIE_NONE)
		key.app_cookie = resolved->app_cookie;
	else if (resolved->is_region)
		key.app_cookie = count->no_process_cookie;
	/* A task that is being reaped, or one of another pid namespace, has no number to file it under. */
	if (key.tgid < 0)
		key.tgid = OP_CLASS_ALL;
	if (key.tid < 0)
		key.tid = OP_CLASS_ALL;
	return key;
}

/* ---- lists, by last use ---- */

static struct opd_file **recent_of(struct opd_count *count, const struct opd_file_key *key)
{
	uint32_t mix = (uint32_t)(key->image_cookie + 7 * key->callee_cookie) * 0x9e3779b1u ^ (uint32_t)key->app_cookie * 0x85ebca6bu ^
		       ((uint32_t)key->tid ^ (uint32_t)key->event << 16 ^ (uint32_t)key->cpu << 24 ^ (uint32_t)key->cgroup_slot << 8) * 0xc2b2ae35u;

	return &count->recent[mix / (UINT32_MAX / OPD_RECENT_SLOTS + 1)];
}

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

void opd_file_note_seen(struct opd_count *count, struct opd_file *file)
{
	uint64_t cookies[] = { file->key.app_cookie, file->key.image_cookie, file->key.callee_cookie };
	int64_t seconds;

	if (!file->last_ns)
		return;
	seconds = (int64_t)time(NULL) - (int64_t)((count->now_ns - op_min_u64(count->now_ns, file->last_ns)) / OP_NS_PER_S);
	for (size_t i = 0; i < op_array_size(cookies) && cookies[i] != OP_DCOOKIE_NONE; i++) {
		struct op_dcookie_row *row = op_dcookie_row(count->table, cookies[i]);

		if (row->last_seen < seconds)
			row->last_seen = seconds;
	}
	file->last_ns = 0;
}

void opd_file_free(struct opd_count *count, struct opd_file *file)
{
	unlink_file(list_of(count, file), file);
	if (*recent_of(count, &file->key) == file)
		*recent_of(count, &file->key) = NULL;
	if (file->odb)
		op_odb_close(file->odb);
	free(file->path);
	free(file);
}

/* Names do not change, so a file that is forgotten is found again. */
static void forget_file(struct opd_count *count, struct opd_file *file)
{
	opd_file_note_seen(count, file);
	count->forgot_changed |= file->changed;
	count->limit.strangers |= file->path != NULL;
	count->nr_forgotten += !file->beyond;
	op_htable_remove(&count->files, &file->link);
	opd_file_free(count, file);
}

void opd_file_close(struct opd_count *count, struct opd_file *file)
{
	if (!file->odb)
		return;
	unlink_file(&count->open, file);
	file->total = op_odb_total(file->odb);
	file->inode = op_odb_inode(file->odb);
	op_odb_close(file->odb);
	file->odb = NULL;
	link_newest(&count->closed, file);
}

/* Those that were used since they were last looked at get another round. */
static void make_room(struct opd_count *count)
{
	while (count->open.nr >= count->max_open && count->open.oldest) {
		struct opd_file *file = count->open.oldest;

		if (!file->used) {
			opd_file_close(count, file);
			continue;
		}
		file->used = false;
		unlink_file(&count->open, file);
		link_newest(&count->open, file);
	}
}

/* ---- opening ---- */

/* The counters say how much is lost; this says where and why. */
static void tell(const struct opd_count *count, const char *path, int err)
{
	static struct opd_rate rates[NR_TOLD];
	uint64_t suppressed;

	if (opd_rate_allows(&rates[(unsigned int)-err % NR_TOLD], count->now_ns, OPD_LOG_INTERVAL_NS, &suppressed))
		opd_log(SD_WARNING, "cannot count in %s: %s (%llu more since the last line)", path, strerror(-err),
			(unsigned long long)suppressed);
}

/* What is no sample file (a power cut, a foreign hand) makes room for a whole one. */
static int put_aside(struct opd_count *count, const char *path)
{
	int err = opd_put_sample_file_aside(count->session_fd, path);

	count->nr_damaged += !err;
	return err;
}

/* What an earlier daemon stored is not among those that this one did. */
static void lose_calls(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone)
{
	if (file->key.cgroup_slot != OPD_CGROUP_NONE) {
		count->arcs[OP_ARC_not_split] += nr_gone;
		return;
	}
	count->arcs[OP_ARC_stored] -= op_min_u64(nr_gone, count->arcs[OP_ARC_stored]);
	count->arcs[OP_ARC_lost_io_error] += nr_gone;
}

/* By cgroup it is counted once more, calls and the memory view in no unit of the ledger. */
void opd_file_lose(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone, const char *why)
{
	static struct opd_rate rate;
	uint64_t suppressed;

	if (opd_rate_allows(&rate, count->now_ns, LOST_LOG_NS, &suppressed))
		opd_log(SD_WARNING, "%s has lost %llu that were counted in it: %s (%llu more files since the last line)", file->path,
			(unsigned long long)nr_gone, why, (unsigned long long)suppressed);
	if (opd_is_of_memory(count, file->key.event))
		count->nr_memory_dropped += nr_gone;
	else if (opd_is_of_calls(&file->key))
		lose_calls(count, file, nr_gone);
	else if (file->key.cgroup_slot != OPD_CGROUP_NONE)
		count->cgroups->not_split += nr_gone;
	else if (count->lose)
		count->lose(count->lose_arg, file->key.event, nr_gone);
}

static enum opd_file_kind kind_of(const struct opd_count *count, const struct opd_file_key *key)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	if (opd_is_of_calls(key))
		return OPD_FILE_OF_CALLS;
	if (key->tgid != OP_CLASS_ALL || key->tid != OP_CLASS_ALL || key->cpu != OP_CLASS_ALL)
		return OPD_FILE_OF_CLASS;
	if (key->cgroup_slot != OPD_CGROUP_NONE)
		return OPD_FILE_OF_CGROUP;
	return key->app_cookie == overflow && key->image_cookie == overflow ? OPD_FILE_OF_LAST : OPD_FILE_OF_IMAGE;
}

void opd_file_note_kept(struct opd_count *count, const struct opd_file *file)
{
	opd_file_limit_note(&count->limit, kind_of(count, &file->key), false);
}

static int open_path(struct opd_count *count, struct opd_file *file)
{
	struct op_odb_header header;
	struct op_odb *odb;
	char *path;
	int err = opd_file_path(count, &file->key, &path);

	if (err)
		return err;
	opd_file_header(count, file, &header);
	err = op_odb_open(count->session_fd, path, OP_SESSION_TMP_SAMPLE, &header, &odb);
	if (opd_is_damage(err) && !put_aside(count, path))
		err = op_odb_open(count->session_fd, path, OP_SESSION_TMP_SAMPLE, &header, &odb);
	/* A daemon without our table counted another file of that name: its profile stays as it is. */
	if (!err && op_odb_header(odb)->mtime != header.mtime) {
		op_odb_close(odb);
		err = -ESTALE;
	}
	if (err) {
		if (err != -ESTALE && err != -ENAMETOOLONG)
			tell(count, path, err);
		free(path);
		return err;
	}
	op_odb_share(odb, &count->limit.space);
	if (!file->path || op_odb_is_new(odb))
		opd_file_limit_note(&count->limit, kind_of(count, &file->key), op_odb_is_new(odb));
	free(file->path);
	file->path = path;
	unlink_file(&count->closed, file);
	file->odb = odb;
	if (op_unlikely(op_odb_total(odb) < file->total))
		opd_file_lose(count, file, file->total - op_odb_total(odb), "somebody wrote to it, or the disk failed");
	link_newest(&count->open, file);
	count->dropped_nodes += op_odb_dropped(odb);
	count->nr_memory_nodes += opd_is_of_memory(count, file->key.event) ? op_odb_nr_nodes(odb) : 0;
	return 0;
}

static bool is_there(const struct opd_count *count, const struct opd_file *file)
{
	char *path;
	int fd;

	if (opd_file_path(count, &file->key, &path) < 0)
		return false;
	fd = op_file_open_below(count->session_fd, path, O_PATH | O_NOFOLLOW, 0);
	free(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool has_no_room(const struct opd_count *count, const struct opd_file *file)
{
	if (file->path || opd_file_limit_allows(&count->limit, kind_of(count, &file->key)))
		return false;
	return !count->limit.strangers || !is_there(count, file);
}

int opd_file_open(struct opd_count *count, struct opd_file *file)
{
	int err;

	if (file->error && count->now_ns < file->retry_ns)
		return file->error;
	file->beyond = has_no_room(count, file);
	if (op_unlikely(file->beyond))
		return -EMLINK;
	make_room(count);
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

static struct opd_file *look_up(const struct opd_count *count, const struct opd_file_key *key)
{
	for (struct op_hlink *link = op_htable_first(&count->files, hash_key(key)); link; link = op_htable_next(link)) {
		struct opd_file *file = op_container_of(link, struct opd_file, link);

		if (same_key(&file->key, key))
			return file;
	}
	return NULL;
}

static struct opd_file *add_file(struct opd_count *count, const struct opd_file_key *key)
{
	struct opd_file *file = aligned_alloc(64, (sizeof(*file) + 63) / 64 * 64);

	if (!file)
		return NULL;
	*file = (struct opd_file){ .key = *key };
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

/* An image that has no room makes the key that of what has its samples. */
static int count_in_all(const struct opd_count *count, struct opd_file_key *key)
{
	int err = count_in(count, &key->app_cookie);

	if (!err)
		err = count_in(count, &key->image_cookie);
	if (!err && opd_is_of_calls(key))
		err = count_in(count, &key->callee_cookie);
	return err < 0 ? -ENOMEM : 0;
}

static bool is_counted(const struct opd_count *count, uint64_t cookie)
{
	return op_dcookie_row(count->table, cookie)->name;
}

/* Calls that there is no room for take none of the images' either: what a chain leads to is not always code. Images that are not counted yet have no file. */
static bool is_refused(const struct opd_count *count, const struct opd_file_key *key)
{
	return opd_is_of_calls(key) && !opd_file_limit_allows(&count->limit, OPD_FILE_OF_CALLS) &&
	       !(is_counted(count, key->app_cookie) && is_counted(count, key->image_cookie) &&
		 is_counted(count, key->callee_cookie));
}

/*
 * The file of a key that is not known: of the key that is left of it when the session has too many images. -EUSERS: calls have none then; -EMLINK: there is
 * no room for it.
 */
static int make_file(struct opd_count *count, struct opd_file_key *key, struct opd_file **ret_file)
{
	struct opd_file *file = NULL;
	struct opd_file_key wanted = *key;
	int err = is_refused(count, key) ? -EMLINK : count_in_all(count, key);

	if (err)
		return err;
	if (!same_key(key, &wanted)) {
		if (opd_is_of_calls(key))
			return -EUSERS;
		file = look_up(count, key);
	}
	*ret_file = file ? file : add_file(count, key);
	return *ret_file ? 0 : -ENOMEM;
}

/* The key is changed to what is left of it when the session has too many images. */
static int find_file(struct opd_count *count, struct opd_file_key *key, struct opd_file **ret_file)
{
	struct opd_file **recent = recent_of(count, key), *file;
	int err = 0;

	if (op_likely(*recent && same_key(&(*recent)->key, key))) {
		*ret_file = *recent;
		return 0;
	}
	file = look_up(count, key);
	if (!file)
		err = make_file(count, key, &file);
	*recent_of(count, key) = file;
	*ret_file = file;
	return err;
}

static enum op_loss loss_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return OP_LOSS_no_space;
	case -EMFILE:
	case -ENFILE:
	case -EMLINK:
		return OP_LOSS_too_many_files;
	case -ENOMEM:
		return OP_LOSS_no_memory;
	default:
		return OP_LOSS_io_error;
	}
}

static bool is_too_many(const struct opd_count *count, const struct opd_file_key *key)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	return overflow != OP_DCOOKIE_NONE && (key->image_cookie == overflow || key->app_cookie == overflow);
}

static enum op_arc_stat arc_stat_of(int err)
{
	static const enum op_arc_stat stats[OP_NR_LOSS] = {
		[OP_LOSS_undecodable] = OP_ARC_undecodable,
		[OP_LOSS_no_space] = OP_ARC_lost_no_space,
		[OP_LOSS_too_many_files] = OP_ARC_lost_too_many_files,
		[OP_LOSS_io_error] = OP_ARC_lost_io_error,
		[OP_LOSS_no_memory] = OP_ARC_lost_no_memory,
	};

	if (!err)
		return OP_ARC_stored;
	return err == -EMLINK || err == -EUSERS ? OP_ARC_lost_no_room : stats[loss_of(err)];
}

static void book(struct opd_count *count, const struct opd_waiting *waiting)
{
	struct opd_event *account = waiting->account;

	if (op_unlikely(opd_is_of_memory(count, waiting->key.event))) {
		count->nr_memory_dropped += !!waiting->error;
		return;
	}
	if (op_unlikely(opd_is_of_calls(&waiting->key))) {
		count->arcs[arc_stat_of(waiting->error)] += waiting->amount;
		return;
	}
	if (op_unlikely(waiting->error)) {
		account->lost[loss_of(waiting->error)] += waiting->amount;
		return;
	}
	account->stored += waiting->amount;
	if (op_unlikely(waiting->beyond))
		count->limit.nr_samples[waiting->beyond] += waiting->amount;
	else if (op_unlikely(is_too_many(count, &waiting->key)))
		count->nr_too_many += waiting->amount;
	if (op_unlikely(waiting->unattributed))
		account->unattributed += waiting->amount;
}

/* Nobody waits here for the disk. */
static void hand_over(struct opd_count *count, const struct batch *batch)
{
	for (size_t i = 0; i < batch->nr; i++)
		opd_count_settle(count, op_odb_take_pending(batch->additions[i].odb));
}

void opd_files_mend(struct opd_count *count)
{
	struct opd_file *file = count->open.newest;

	count->nr_broken = op_guard_nr_broken();
	while (file) {
		if (!op_odb_is_broken(file->odb)) {
			file = file->older;
			continue;
		}
		opd_file_close(count, file);
		file->error = opd_file_open(count, file); /* else the next sample tries it again */
		file = count->open.newest;
	}
}

static void add_batch(struct opd_count *count, struct batch *batch)
{
	bool damaged = false;

	if (op_unlikely(op_odb_add_all(batch->additions, batch->nr)) && count->settler)
		hand_over(count, batch);
	for (size_t i = 0; i < batch->nr; i++) {
		batch->waiting[i]->error = batch->additions[i].error;
		damaged |= batch->additions[i].error == -EBADMSG;
	}
	batch->nr = 0;
	if (op_unlikely(damaged || op_guard_nr_broken() != count->nr_broken))
		opd_files_mend(count);
}

/* Opening a file may close others, so those that samples are on their way to go first. */
static int find_open(struct opd_count *count, struct opd_file_key *key, struct batch *batch, struct opd_file **ret_file)
{
	struct opd_file *file;
	int err = find_file(count, key, &file);

	if (err)
		return err;
	if (op_unlikely(file->beyond))
		return -EMLINK;
	if (op_unlikely(!file->odb)) {
		add_batch(count, batch);
		err = opd_file_open(count, file);
		if (err)
			return err;
	}
	*ret_file = file;
	return 0;
}

/* The key of what has the samples that there is no room for in a file of this key; false: nothing has. */
static bool widen(const struct opd_count *count, struct opd_file_key *key, enum opd_file_kind kind)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	if (kind == OPD_FILE_OF_CLASS)
		key->tgid = key->tid = key->cpu = OP_CLASS_ALL;
	else if (kind == OPD_FILE_OF_IMAGE && overflow != OP_DCOOKIE_NONE)
		key->app_cookie = key->image_cookie = overflow;
	else
		return false;
	return true;
}

/* There is no room for what goes to this key: it is told, and the key is that of what has it instead. False: nothing has. */
static bool step_aside(struct opd_count *count, struct opd_file_key *key, enum opd_file_kind *ret_beyond)
{
	enum opd_file_kind kind = kind_of(count, key);

	opd_file_limit_tell(&count->limit, kind);
	*ret_beyond = kind;
	return widen(count, key, kind);
}

/* The same as find_open, or the file of a wider key; what was wanted and had no room is *ret_beyond. */
static int find_room(struct opd_count *count, struct opd_file_key *key, struct batch *batch, struct opd_file **ret_file,
		     enum opd_file_kind *ret_beyond)
{
	int err = find_open(count, key, batch, ret_file);

	while (op_unlikely(err == -EMLINK) && step_aside(count, key, ret_beyond))
		err = find_open(count, key, batch, ret_file);
	return err;
}

/* Calls leave room for samples: where there is little, their files keep the nodes that they have. */
static int limit_calls(const struct opd_count *count, const struct opd_file *file, uint64_t offset)
{
	if (op_likely(opd_file_limit_may_grow(&count->limit, OPD_FILE_OF_CALLS)) || op_odb_has(file->odb, offset))
		return 0;
	return -EMLINK;
}

static void put(struct opd_count *count, struct opd_waiting *waiting, struct opd_file_key *key, struct batch *batch)
{
	struct opd_file *file;

	waiting->error = find_room(count, key, batch, &file, &waiting->beyond);
	if (op_unlikely(waiting->error))
		return;
	/* What is beyond a limit has no offset that means anything. */
	if (op_unlikely(key->image_cookie == op_dcookie_overflow(count->table))) {
		waiting->offset = opd_is_of_memory(count, key->event) ? op_mem_key(0, (uint8_t)waiting->offset) : 0;
		waiting->unattributed = true;
	}
	if (op_unlikely(opd_is_of_memory(count, key->event)))
		waiting->error = opd_memory_limit(&count->nr_memory_nodes, file->odb, waiting->offset);
	else if (op_unlikely(opd_is_of_calls(key)))
		waiting->error = limit_calls(count, file, waiting->offset);
	if (op_unlikely(waiting->error))
		return;
	file->used = file->changed = true;
	file->was_let_go = false;
	file->last_ns = op_max_u64(count->now_ns, 1);
	op_prefetch(file->odb);
	batch->waiting[batch->nr] = waiting;
	batch->additions[batch->nr++] =
		(struct op_odb_addition){ .odb = file->odb, .key = waiting->offset, .count = waiting->amount };
}

/* Stored is what is in its ordinary file; what could not be kept by cgroup as well is counted as that. */
static void split(struct opd_count *count, struct batch *batch)
{
	for (size_t i = 0; i < count->nr_waiting; i++) {
		struct opd_waiting *waiting = &count->waiting[i];
		struct opd_file_key key = waiting->key;

		if (waiting->error)
			waiting->amount = 0;
		key.cgroup_slot = waiting->cgroup_slot;
		if (waiting->amount && key.cgroup_slot != OPD_CGROUP_NONE)
			put(count, waiting, &key, batch);
	}
	add_batch(count, batch);
	for (size_t i = 0; i < count->nr_waiting; i++) {
		const struct opd_waiting *waiting = &count->waiting[i];

		if ((!waiting->error && waiting->cgroup_slot != OPD_CGROUP_NONE) || opd_is_of_memory(count, waiting->key.event))
			continue;
		*(opd_is_of_calls(&waiting->key) ? &count->arcs[OP_ARC_not_split] : &count->cgroups->not_split) += waiting->amount;
	}
}

/* What a file has that may not grow goes to one of a wider key, as if there were no file. */
static void put_elsewhere(struct opd_count *count, struct batch *batch)
{
	bool again;

	do {
		again = false;
		for (size_t i = 0; i < count->nr_waiting; i++) {
			struct opd_waiting *waiting = &count->waiting[i];

			if (op_likely(waiting->error != -EMLINK) || !step_aside(count, &waiting->key, &waiting->beyond))
				continue;
			count->nr_memory_nodes -= opd_is_of_memory(count, waiting->key.event);
			put(count, waiting, &waiting->key, batch);
			again = true;
		}
		add_batch(count, batch);
	} while (op_unlikely(again));
}

void opd_count_flush(struct opd_count *count)
{
	struct batch batch;

	batch.nr = 0;
	for (size_t i = 0; i < count->nr_waiting; i++)
		put(count, &count->waiting[i], &count->waiting[i].key, &batch);
	add_batch(count, &batch);
	put_elsewhere(count, &batch);
	for (size_t i = 0; i < count->nr_waiting; i++)
		book(count, &count->waiting[i]);
	if (op_unlikely(count->cgroups))
		split(count, &batch);
	count->nr_waiting = 0;
}

static void forget_chosen(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct opd_count *count = arg;

	if (opd_cgroups_is_chosen(count->cgroups, file->key.cgroup_slot))
		forget_file(count, file);
}

/* When all slots are given, those that were not used for the longest time are taken back, with their files. */
static uint32_t slot_of(struct opd_count *count, uint64_t cgroup_id)
{
	uint32_t slot = opd_cgroups_slot(count->cgroups, cgroup_id, count->now_ns);

	if (op_likely(slot != OPD_CGROUP_NONE) || !opd_cgroups_are_given(count->cgroups))
		return slot;
	opd_count_flush(count);
	opd_cgroups_choose(count->cgroups);
	op_htable_visit(&count->files, forget_chosen, count);
	opd_cgroups_take_back(count->cgroups);
	return opd_cgroups_slot(count->cgroups, cgroup_id, count->now_ns);
}

/* Has the sample, or the call, wait for its file. */
static inline __attribute__((always_inline)) void wait_for_file(struct opd_count *count, const struct opd_counted *counted,
								const struct opd_file_key *key, uint64_t offset)
{
	uint16_t slot = OPD_CGROUP_NONE;
	struct opd_waiting *last;

	if (op_unlikely(count->cgroups) && !opd_is_of_memory(count, key->event))
		slot = (uint16_t)slot_of(count, counted->cgroup_id); /* may flush */
	last = count->nr_waiting ? &count->waiting[count->nr_waiting - 1] : NULL;
	/* Hot loops repeat. */
	if (last && last->offset == offset && last->account == counted->account && last->cgroup_slot == slot &&
	    same_key(&last->key, key) && last->amount <= UINT32_MAX - counted->amount) {
		last->amount += counted->amount;
		return;
	}
	op_prefetch(*recent_of(count, key));
	count->waiting[count->nr_waiting++] = (struct opd_waiting){
		.key = *key,
		.offset = offset,
		.account = counted->account,
		.amount = counted->amount,
		.cgroup_slot = slot,
		.unattributed = counted->resolved->unattributed,
	};
	if (count->nr_waiting == OPD_WAITING_MAX)
		opd_count_flush(count);
}

void opd_count_sample(struct opd_count *count, const struct opd_counted *counted)
{
	struct opd_file_key key = key_of(count, counted);

	wait_for_file(count, counted, &key, counted->resolved->location.offset);
}

void opd_count_call(struct opd_count *count, const struct opd_counted *counted, const struct op_location *callee)
{
	struct opd_file_key key = key_of(count, counted);
	const struct op_location *caller = &counted->resolved->location;

	key.callee_cookie = callee->cookie;
	if (op_unlikely(is_too_many(count, &key) || callee->cookie == op_dcookie_overflow(count->table))) {
		count->arcs[OP_ARC_lost_no_room] += counted->amount;
		return;
	}
	wait_for_file(count, counted, &key, caller->offset << 32 | (callee->offset & UINT32_MAX));
}
