/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/odb/replace.h"
#include "libop/process/guard.h"
#include "libop/session/layout.h"
#include "pipeline/count/file_name.h"
#include "pipeline/count/memory_limit.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/ledger/recover.h"

#define LOST_LOG_NS OP_NS_PER_S
#define RETRY_NS    100000000u /* a file that could not be opened is tried again after 100 ms */
#define NR_RATES    32         /* different errors that are logged beside each other */

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
	if (*opd_recent_of(count, &file->key) == file)
		*opd_recent_of(count, &file->key) = NULL;
	if (file->odb)
		op_odb_close(file->odb);
	free(file->path);
	free(file);
}

void opd_file_forget(struct opd_count *count, struct opd_file *file)
{
	opd_file_note_seen(count, file);
	count->forgot_changed |= file->changed;
	count->limit.strangers |= file->path != NULL;
	count->nr_forgotten += !file->over_limit;
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
	file->is_plain = false;
	link_newest(&count->closed, file);
}

/* A file that was used since the last look is kept for another round. */
static void close_oldest(struct opd_count *count)
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

void opd_count_sync_later(const struct opd_count *count, struct op_odb_pending *pending)
{
	if (pending && count->sync.later)
		count->sync.later(count->sync.host, pending);
	else
		op_odb_free_pending(pending);
}

/* The counters tell how much is lost; the log tells where and why. */
static void report_error(const struct opd_count *count, const char *path, int err)
{
	static struct op_rate rates[NR_RATES];
	uint64_t suppressed;

	if (op_rate_allows(&rates[(unsigned int)-err % NR_RATES], count->now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "cannot count in %s: %s (%llu more since the last line)", path, strerror(-err),
			(unsigned long long)suppressed);
}

/* A damaged sample file (a power cut, another program) makes room for a new one. */
static int put_aside(struct opd_count *count, const char *path)
{
	int err = opd_put_aside(count->session_fd, path, OPD_NO_SAMPLE_FILE);

	count->nr_damaged += !err;
	return err;
}

/* The number of calls behind a sum of cycles is unknown; it is at least one. */
static uint64_t calls_of(const struct op_event *event, uint64_t amount)
{
	return event->derived && event->derived->amount != OP_IBS_SAMPLES ? 1 : amount;
}

/* Calls that an earlier daemon stored are not in the counters of this one. */
static void book_lost_calls(struct opd_count *count, const struct opd_file *file, uint64_t amount)
{
	uint64_t nr_gone = calls_of(&count->events[file->key.event], amount);

	if (file->key.cgroup_slot != OPD_CGROUP_NONE) {
		count->arcs[OP_ARC_not_split] += nr_gone;
		return;
	}
	count->arcs[OP_ARC_stored] -= op_min_u64(nr_gone, count->arcs[OP_ARC_stored]);
	count->arcs[OP_ARC_lost_io_error] += nr_gone;
}

/* The second count by cgroup, calls and the memory view are not in the ledger. */
void opd_file_book_lost(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone, const char *why)
{
	static struct op_rate rate;
	uint64_t suppressed;

	if (op_rate_allows(&rate, count->now_ns, LOST_LOG_NS, &suppressed))
		op_log(OP_LOG_WARNING, "%llu counts are gone from %s: %s (%llu more files since the last line)",
			(unsigned long long)nr_gone, file->path, why, (unsigned long long)suppressed);
	if (opd_is_of_memory(count, file->key.event))
		count->nr_memory_dropped += nr_gone;
	else if (opd_is_of_calls(&file->key))
		book_lost_calls(count, file, nr_gone);
	else if (file->key.cgroup_slot != OPD_CGROUP_NONE)
		count->cgroups->not_split += nr_gone;
	else if (count->ledger)
		opd_ledger_lose(count->ledger, file->key.event, nr_gone);
}

enum opd_file_kind opd_file_kind_of(const struct opd_count *count, const struct opd_file_key *key)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	if (opd_is_of_calls(key))
		return OPD_FILE_OF_CALLS;
	if (key->tgid != OP_CLASS_ALL || key->tid != OP_CLASS_ALL || key->cpu != OP_CLASS_ALL ||
	    opd_application_of(count, key->app_cookie) != key->app_cookie)
		return OPD_FILE_OF_CLASS;
	if (key->cgroup_slot != OPD_CGROUP_NONE)
		return OPD_FILE_OF_CGROUP;
	return key->app_cookie == overflow && key->image_cookie == overflow ? OPD_FILE_OF_LAST : OPD_FILE_OF_IMAGE;
}

/*
 * True for a file of ordinary samples: not of the memory view, of calls, or of the overflow image.
 */
static bool is_plain(const struct opd_count *count, const struct opd_file_key *key)
{
	return !opd_is_of_memory(count, key->event) && !opd_is_of_calls(key) && !opd_is_too_many(count, key);
}

static int open_path(struct opd_count *count, struct opd_file *file)
{
	struct op_odb_header header;
	struct op_odb *odb;
	bool is_stranger;
	char *path;
	int err = opd_file_path(count, &file->key, &path);

	if (err)
		return err;
	opd_file_header(count, file, &header);
	err = op_odb_open(count->session_fd, path, OP_SESSION_TMP_SAMPLE, &header, &odb);
	if (opd_is_damage(err) && !put_aside(count, path))
		err = op_odb_open(count->session_fd, path, OP_SESSION_TMP_SAMPLE, &header, &odb);
	/* A daemon without this table counted another image of that name. Its file stays. */
	if (!err && op_odb_header(odb)->mtime != header.mtime) {
		op_odb_close(odb);
		err = -ESTALE;
	}
	if (err) {
		if (err != -ESTALE && err != -ENAMETOOLONG)
			report_error(count, path, err);
		free(path);
		return err;
	}
	if (count->sync.later)
		opd_count_sync_later(count, op_odb_take_pending(odb)); /* of a repair */
	op_odb_share(odb, &count->limit.space);
	if (!file->path || op_odb_is_new(odb))
		opd_file_limit_note(&count->limit, opd_file_kind_of(count, &file->key), op_odb_is_new(odb));
	is_stranger = !file->path && count->limit.strangers;
	free(file->path);
	file->path = path;
	unlink_file(&count->closed, file);
	file->odb = odb;
	file->is_plain = is_plain(count, &file->key);
	if (opd_is_of_memory(count, file->key.event))
		opd_memory_note(count, file, is_stranger);
	if (op_unlikely(op_odb_total(odb) < file->total))
		opd_file_book_lost(count, file, file->total - op_odb_total(odb), "another program wrote to it, or the disk failed");
	link_newest(&count->open, file);
	count->dropped_nodes += op_odb_dropped(odb);
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
	if (file->path || opd_file_limit_allows(&count->limit, opd_file_kind_of(count, &file->key)))
		return false;
	return !count->limit.strangers || !is_there(count, file);
}

int opd_file_open(struct opd_count *count, struct opd_file *file)
{
	int err;

	if (file->error && count->now_ns < file->retry_ns)
		return file->error;
	file->over_limit = has_no_room(count, file);
	if (op_unlikely(file->over_limit))
		return -EMLINK;
	close_oldest(count);
	err = open_path(count, file);
	if (err == -ESTALE) {
		err = op_dcookie_make_distinct(count->table, file->key.image_cookie);
		if (!err)
			err = open_path(count, file);
	}
	/* The row is in the table before the first sample is in the file. */
	if (!err && count->cookie_file)
		opd_cookie_file_flush(count->cookie_file, count->now_ns);
	file->error = err;
	file->retry_ns = count->now_ns + RETRY_NS;
	return err;
}

void opd_files_reopen_broken(struct opd_count *count)
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

/* ---- by key ---- */

static uint64_t hash_key(const struct opd_file_key *key)
{
	uint64_t hash = op_hash_u64(key->image_cookie + (key->app_cookie << 32));

	hash = op_hash_add(hash, ((uint64_t)(uint32_t)key->tid << 32 | (uint32_t)key->cpu) + ((uint64_t)key->event << 24));
	if (key->callee_cookie)
		hash = op_hash_add(hash, key->callee_cookie);
	return key->cgroup_slot ? op_hash_add(hash, key->cgroup_slot) : hash;
}

struct opd_file *opd_file_find(const struct opd_count *count, const struct opd_file_key *key)
{
	for (struct op_hlink *link = op_htable_first(&count->files, hash_key(key)); link; link = op_htable_next(link)) {
		struct opd_file *file = op_container_of(link, struct opd_file, link);

		if (opd_same_file_key(&file->key, key))
			return file;
	}
	return NULL;
}

struct opd_file *opd_file_add(struct opd_count *count, const struct opd_file_key *key)
{
	struct opd_file *file = aligned_alloc(OP_CACHE_LINE_BYTES, op_whole_lines(sizeof(*file)));

	if (!file)
		return NULL;
	*file = (struct opd_file){ .key = *key };
	if (op_htable_insert(&count->files, &file->link, hash_key(key)) < 0) {
		free(file);
		return NULL;
	}
	link_newest(&count->closed, file);
	while (count->closed.nr > count->max_closed && count->closed.oldest != file)
		opd_file_forget(count, count->closed.oldest);
	return file;
}
