/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/count.h"

#include <errno.h>

#include "libop/process/guard.h"
#include "libop/session/memory_view.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/count/memory_limit.h"
#include "pipeline/count/sample_file.h"

#define FILTERED (-ECANCELED) /* used as an error code: the image filter rejects the sample */

/* Samples on their way into files that are open. */
struct batch {
	struct op_odb_addition additions[OPD_WAITING_MAX];
	struct opd_keyed_sample *waiting[OPD_WAITING_MAX];
	size_t nr;
	struct opd_file *of_memory[OPD_WAITING_MAX]; /* those of the memory view */
	size_t nr_of_memory, nr_new_facts;           /* new nodes in these */
	bool failed; /* some samples could not be stored */
};

/* A perf.data may have numbers that the kernel does not use. They are not kept apart. */
static int32_t class_of(bool apart, uint32_t number)
{
	return apart && number <= INT32_MAX ? (int32_t)number : OP_CLASS_ALL;
}

/* Inline: else the key would be stored field by field and read in wider pieces, with a stall. */
static inline __attribute__((always_inline)) struct opd_file_key key_of(const struct opd_count *count,
									const struct opd_counted *counted)
{
	const struct opd_resolved *resolved = counted->resolved;
	bool is_memory = opd_is_of_memory(count, counted->event);
	bool separate = resolved->is_region || (resolved->is_kernel ? count->separate_kernel : count->separate_lib);
	struct opd_file_key key = {
		.app_cookie = resolved->location.cookie,
		.image_cookie = resolved->location.cookie,
		.event = (uint16_t)counted->event,
		.tgid = class_of(count->separate_thread && !is_memory, counted->pid),
		.tid = class_of(count->separate_thread && !is_memory, counted->tid),
		.cpu = class_of(count->separate_cpu && !is_memory, counted->cpu),
	};

	if (separate && resolved->app_cookie != OP_DCOOKIE_NONE)
		key.app_cookie = resolved->app_cookie;
	else if (resolved->is_region)
		key.app_cookie = count->no_process_cookie;
	/* A task that is being reaped, or of another pid namespace, has no number. */
	if (key.tgid < 0)
		key.tgid = OP_CLASS_ALL;
	if (key.tid < 0)
		key.tid = OP_CLASS_ALL;
	return key;
}

/* ---- finding ---- */

int opd_count_in(const struct opd_count *count, uint64_t *cookie)
{
	int64_t now_seconds = (int64_t)time(NULL);
	int err = op_dcookie_count_in(count->table, *cookie, now_seconds);

	if (op_unlikely(err == -EDQUOT) && opd_application_of(count, *cookie) != *cookie) {
		*cookie = opd_application_of(count, *cookie);
		err = op_dcookie_count_in(count->table, *cookie, now_seconds);
	}
	if (err == -EDQUOT) {
		*cookie = op_dcookie_overflow(count->table);
		err = op_dcookie_count_in(count->table, *cookie, now_seconds);
	}
	return err < 0 ? -ENOMEM : 0;
}

/* Names all images of a key. The key changes to the overflow image for those beyond the limit. */
static int count_in_all(const struct opd_count *count, struct opd_file_key *key)
{
	int err = opd_count_in(count, &key->app_cookie);

	if (!err)
		err = opd_count_in(count, &key->image_cookie);
	if (!err && opd_is_of_calls(key))
		err = opd_count_in(count, &key->callee_cookie);
	return err;
}

static bool is_counted(const struct opd_count *count, uint64_t cookie)
{
	return op_dcookie_row(count->table, cookie)->name;
}

/*
 * True for calls without room for a file, when one of their images is not named yet. Their images
 * are not named either: a chain may lead to addresses that are no code.
 */
static bool is_refused(const struct opd_count *count, const struct opd_file_key *key)
{
	return opd_is_of_calls(key) && !opd_file_limit_allows(&count->limit, OPD_FILE_OF_CALLS) &&
	       !(is_counted(count, key->app_cookie) && is_counted(count, key->image_cookie) &&
		 is_counted(count, key->callee_cookie));
}

static bool is_filtered(const struct opd_count *count, const struct opd_file_key *key)
{
	return count->filter && !opd_image_filter_wants(count->filter, count->table, key->app_cookie, key->image_cookie);
}

/*
 * Makes the file of a key, which may change to the overflow image. -EUSERS: calls beyond the limit
 * of images; -EMLINK: no room; FILTERED.
 */
static int make_file(struct opd_count *count, struct opd_file_key *key, struct opd_file **ret_file)
{
	struct opd_file *file = NULL;
	struct opd_file_key wanted = *key;
	int err;

	/* Both ends of calls were checked before. */
	if (!opd_is_of_calls(key) && is_filtered(count, key))
		return FILTERED;
	err = is_refused(count, key) ? -EMLINK : count_in_all(count, key);
	if (err)
		return err;
	if (!opd_same_file_key(key, &wanted)) {
		if (opd_is_of_calls(key) &&
		    (opd_is_too_many(count, key) || key->callee_cookie == op_dcookie_overflow(count->table)))
			return -EUSERS;
		file = opd_file_find(count, key);
	}
	*ret_file = file ? file : opd_file_add(count, key);
	return *ret_file ? 0 : -ENOMEM;
}

/* Finds or makes the file of a key, which may change to the overflow image. */
static int find_file(struct opd_count *count, struct opd_file_key *key, struct opd_file **ret_file)
{
	struct opd_file **recent = opd_recent_of(count, key), *file;
	int err = 0;

	if (op_likely(*recent && opd_same_file_key(&(*recent)->key, key))) {
		*ret_file = *recent;
		return 0;
	}
	file = opd_file_find(count, key);
	if (!file)
		err = make_file(count, key, &file);
	*opd_recent_of(count, key) = file;
	*ret_file = file;
	return err;
}

enum op_loss opd_loss_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return OP_LOSS_no_space;
	case -EMFILE:
	case -ENFILE:
	case -EMLINK:
		return OP_LOSS_too_many_files;
	case -EFBIG:
		return OP_LOSS_file_limit;
	case -ENOMEM:
		return OP_LOSS_no_memory;
	default:
		return OP_LOSS_io_error;
	}
}

static enum op_arc_stat arc_stat_of(int err)
{
	if (!err)
		return OP_ARC_stored;
	if (err == -EMLINK || err == -EUSERS)
		return OP_ARC_lost_no_room;
	switch (opd_loss_of(err)) { /* no default: the compiler reports a reason that has no case */
	case OP_LOSS_no_space:
		return OP_ARC_lost_no_space;
	case OP_LOSS_too_many_files:
		return OP_ARC_lost_too_many_files;
	case OP_LOSS_file_limit:
		return OP_ARC_lost_file_limit;
	case OP_LOSS_io_error:
		return OP_ARC_lost_io_error;
	case OP_LOSS_no_memory:
		return OP_ARC_lost_no_memory;
	case OP_LOSS_undecodable:
	case OP_NR_LOSS:
		break;
	}
	return OP_ARC_undecodable;
}

static void book_special(struct opd_count *count, struct opd_keyed_sample *waiting)
{
	struct opd_event *account = waiting->account;

	if (waiting->error == FILTERED) {
		account->filtered += waiting->amount;
		return;
	}
	if (opd_is_of_memory(count, waiting->key.event)) {
		count->nr_memory_dropped += !!waiting->error;
		return;
	}
	if (opd_is_of_calls(&waiting->key)) {
		count->arcs[arc_stat_of(waiting->error)] += waiting->nr_calls;
		return;
	}
	if (waiting->error) {
		account->lost[opd_loss_of(waiting->error)] += waiting->amount;
		return;
	}
	account->stored += waiting->amount;
	waiting->is_stored = true;
	if (waiting->refused_kind)
		count->limit.nr_samples[waiting->refused_kind] += waiting->amount;
	else if (opd_is_too_many(count, &waiting->key))
		count->nr_too_many += waiting->amount;
	if (waiting->unattributed)
		account->unattributed += waiting->amount;
}

/* Adds up successive samples of one event before it touches the counter. */
static void book(struct opd_count *count, struct opd_keyed_sample *samples, size_t nr)
{
	uint64_t stored = 0;

	for (size_t i = 0; i < nr; i++) {
		struct opd_keyed_sample *sample = &samples[i];

		sample->is_stored = sample->is_plain && !sample->error && !sample->unattributed;
		stored += sample->is_stored ? sample->amount : 0;
		if (i + 1 == nr || sample[1].account != sample->account) {
			sample->account->stored += stored;
			stored = 0;
		}
		if (op_unlikely(!sample->is_stored))
			book_special(count, sample);
	}
}

static void check_batch(struct opd_count *count, struct batch *batch)
{
	bool damaged = false;

	for (size_t i = 0; i < batch->nr; i++) {
		if (count->sync.later)
			opd_count_sync_later(count, op_odb_take_pending(batch->additions[i].odb));
		batch->waiting[i]->error = batch->additions[i].error;
		batch->failed |= batch->additions[i].error != 0;
		damaged |= batch->additions[i].error == -EBADMSG;
	}
	if (op_unlikely(damaged))
		opd_files_reopen_broken(count);
}

static void add_batch(struct opd_count *count, struct batch *batch)
{
	size_t nr_to_check = op_odb_add_all(batch->additions, batch->nr);

	for (size_t i = 0; op_unlikely(i < batch->nr_of_memory); i++)
		opd_memory_note(count, batch->of_memory[i], false);
	if (op_unlikely(nr_to_check))
		check_batch(count, batch);
	batch->nr = batch->nr_of_memory = batch->nr_new_facts = 0;
	if (op_unlikely(op_guard_nr_broken() != count->nr_broken))
		opd_files_reopen_broken(count);
}

/* Finds an open file. Opening one may close others, so the batch is added first. */
static int find_open(struct opd_count *count, struct opd_file_key *key, struct batch *batch, struct opd_file **ret_file)
{
	struct opd_file *file;
	int err = find_file(count, key, &file);

	if (err)
		return err;
	if (op_unlikely(file->over_limit))
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

/* Changes the key to a wider one when there is no room for its kind. False: there is none. */
static bool widen_key(const struct opd_count *count, struct opd_file_key *key, enum opd_file_kind kind)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	if (kind == OPD_FILE_OF_CLASS) {
		key->tgid = key->tid = key->cpu = OP_CLASS_ALL;
		key->app_cookie = opd_application_of(count, key->app_cookie);
	} else if (kind == OPD_FILE_OF_IMAGE && overflow != OP_DCOOKIE_NONE) {
		key->app_cookie = key->image_cookie = overflow;
	} else {
		return false;
	}
	return true;
}

/* Reports that a key has no room for its file, and widens the key. False: that is not possible. */
static bool report_and_widen(struct opd_count *count, struct opd_file_key *key, enum opd_file_kind *ret_refused_kind)
{
	enum opd_file_kind kind = opd_file_kind_of(count, key);

	opd_file_limit_report(&count->limit, kind);
	*ret_refused_kind = kind;
	return widen_key(count, key, kind);
}

/* As find_open, or the file of a wider key; then *ret_refused_kind is the kind that had no room. */
static int find_allowed(struct opd_count *count, struct opd_file_key *key, struct batch *batch, struct opd_file **ret_file,
		     enum opd_file_kind *ret_refused_kind)
{
	int err = find_open(count, key, batch, ret_file);

	while (op_unlikely(err == -EMLINK) && report_and_widen(count, key, ret_refused_kind))
		err = find_open(count, key, batch, ret_file);
	return err;
}

/* Calls leave room for samples: their files get no new nodes when there is little room. */
static int limit_calls(const struct opd_count *count, const struct opd_file *file, uint64_t offset)
{
	if (op_likely(opd_file_limit_may_grow(&count->limit, OPD_FILE_OF_CALLS)) || op_odb_has(file->odb, offset))
		return 0;
	return -EMLINK;
}

/* Puts samples into the batch. */
static void add_to_batch(const struct opd_count *count, struct batch *batch, struct opd_keyed_sample *waiting,
			 struct opd_file *file)
{
	op_prefetch(file->odb);
	file->used = file->changed = true;
	file->pages_dropped = false;
	file->last_ns = op_max_u64(count->now_ns, 1);
	batch->waiting[batch->nr] = waiting;
	batch->additions[batch->nr++] =
		(struct op_odb_addition){ .odb = file->odb, .key = waiting->offset, .count = waiting->amount };
}

static bool is_in_batch(const struct batch *batch, const struct op_odb *odb, uint64_t key)
{
	for (size_t i = 0; i < batch->nr; i++)
		if (batch->additions[i].odb == odb && batch->additions[i].key == key)
			return true;
	return false;
}

static int limit_memory(const struct opd_count *count, struct batch *batch, struct opd_file *file, uint64_t key)
{
	if (!op_odb_has(file->odb, key) && !is_in_batch(batch, file->odb, key)) {
		if (count->nr_memory_nodes + batch->nr_new_facts >= OPD_MEMORY_NODES_MAX)
			return -EDQUOT;
		batch->nr_new_facts++;
	}
	batch->of_memory[batch->nr_of_memory++] = file;
	return 0;
}

static int limit_addition(const struct opd_count *count, struct batch *batch, struct opd_file *file, uint64_t offset)
{
	if (opd_is_of_memory(count, file->key.event))
		return limit_memory(count, batch, file, offset);
	return opd_is_of_calls(&file->key) ? limit_calls(count, file, offset) : 0;
}

static void add_one(struct opd_count *count, struct opd_keyed_sample *waiting, struct opd_file_key *key, struct batch *batch)
{
	uint64_t program_cookie = key->app_cookie;
	struct opd_file *file;

	waiting->error = find_allowed(count, key, batch, &file, &waiting->refused_kind);
	/* Not by the limit of files, which has a counter of its own. */
	if (op_unlikely(key->app_cookie != program_cookie) && !waiting->refused_kind && key->cgroup_slot == OPD_CGROUP_NONE &&
	    key->app_cookie == opd_application_of(count, program_cookie))
		count->nr_unnamed += waiting->amount;
	/* An offset means nothing in the overflow image. */
	if (!waiting->error && key->image_cookie == op_dcookie_overflow(count->table)) {
		waiting->offset = opd_is_of_memory(count, key->event) ? op_memory_view_key(0, (uint8_t)waiting->offset) : 0;
		waiting->unattributed = true;
	}
	if (!waiting->error)
		waiting->error = limit_addition(count, batch, file, waiting->offset);
	if (waiting->error)
		batch->failed = true;
	else
		add_to_batch(count, batch, waiting, file);
}

/* The fast path for nearly all samples: the file is open and plain. False: it is not. */
static bool add_plain(const struct opd_count *count, struct opd_keyed_sample *waiting, struct batch *batch)
{
	struct opd_file *file = count->recent[waiting->recent];

	waiting->is_plain = file && file->is_plain && opd_same_file_key(&file->key, &waiting->key);
	if (op_likely(waiting->is_plain))
		add_to_batch(count, batch, waiting, file);
	return waiting->is_plain;
}

/* Counts stored samples again by cgroup. A failure there is counted as not split. */
static void add_by_cgroup(struct opd_count *count, struct opd_keyed_sample *samples, size_t nr, struct batch *batch)
{
	for (size_t i = 0; i < nr; i++) {
		struct opd_keyed_sample *waiting = &samples[i];
		struct opd_file_key key = waiting->key;

		if (waiting->error)
			waiting->amount = waiting->nr_calls = 0;
		key.cgroup_slot = waiting->cgroup_slot;
		if (waiting->amount && key.cgroup_slot != OPD_CGROUP_NONE)
			add_one(count, waiting, &key, batch);
	}
	add_batch(count, batch);
	for (size_t i = 0; i < nr; i++) {
		const struct opd_keyed_sample *waiting = &samples[i];

		if (opd_is_of_memory(count, waiting->key.event))
			continue;
		if (!waiting->error && waiting->cgroup_slot != OPD_CGROUP_NONE) {
			if (waiting->cgroup_slot == count->cgroups->unknown_slot && !opd_is_of_calls(&waiting->key))
				count->cgroups->of_unknown += waiting->amount;
			continue;
		}
		if (opd_is_of_calls(&waiting->key))
			count->arcs[OP_ARC_not_split] += waiting->nr_calls;
		else
			count->cgroups->not_split += waiting->amount;
	}
}

/* Samples whose file may not grow go to the file of a wider key. */
static void merge_refused(struct opd_count *count, struct opd_keyed_sample *samples, size_t nr, struct batch *batch)
{
	bool again;

	do {
		again = false;
		for (size_t i = 0; i < nr; i++) {
			struct opd_keyed_sample *waiting = &samples[i];

			if (op_likely(waiting->error != -EMLINK) || !report_and_widen(count, &waiting->key, &waiting->refused_kind))
				continue;
			waiting->is_plain = false;
			add_one(count, waiting, &waiting->key, batch);
			again = true;
		}
		add_batch(count, batch);
	} while (again);
}

void opd_files_take(void *host, struct opd_keyed_sample *samples, size_t nr)
{
	struct opd_count *count = host;
	struct batch batch;

	batch.nr = batch.nr_of_memory = batch.nr_new_facts = 0;
	batch.failed = false;
	for (size_t i = 0; i < nr; i++)
		op_prefetch(count->recent[samples[i].recent]);
	for (size_t i = 0; i < nr; i++)
		if (op_unlikely(!add_plain(count, &samples[i], &batch)))
			add_one(count, &samples[i], &samples[i].key, &batch);
	add_batch(count, &batch);
	if (op_unlikely(batch.failed))
		merge_refused(count, samples, nr, &batch);
	book(count, samples, nr);
	if (op_unlikely(count->cgroups))
		add_by_cgroup(count, samples, nr, &batch);
}

/* ---- waiting for the sinks ---- */

void opd_count_flush(struct opd_count *count)
{
	if (!count->nr_waiting)
		return;
	for (size_t i = 0; i < count->sinks.nr; i++)
		if (count->sinks.rows[i].sample)
			count->sinks.rows[i].sample(count->sinks.rows[i].host, count->waiting, count->nr_waiting);
	count->nr_waiting = 0;
}

void opd_count_end_turn(struct opd_count *count, uint64_t now_ns, uint64_t horizon_ns)
{
	opd_count_flush(count);
	for (size_t i = 0; i < count->sinks.nr; i++)
		if (count->sinks.rows[i].end_turn)
			count->sinks.rows[i].end_turn(count->sinks.rows[i].host, now_ns, horizon_ns);
}

static void forget_chosen(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct opd_count *count = arg;

	if (opd_cgroups_is_chosen(count->cgroups, file->key.cgroup_slot))
		opd_file_forget(count, file);
}

/* When all slots are in use, those that were idle for longest are taken back, with their files. */
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

/* Adds a sample or call to the waiting ones. */
static inline __attribute__((always_inline)) void wait_for_sinks(struct opd_count *count, const struct opd_counted *counted,
								 const struct opd_file_key *key, uint64_t offset)
{
	uint16_t slot = OPD_CGROUP_NONE;
	struct opd_keyed_sample *last;
	uint32_t recent;

	if (op_unlikely(count->cgroups) && !opd_is_of_memory(count, key->event))
		slot = (uint16_t)slot_of(count, counted->cgroup_id); /* may flush */
	last = count->nr_waiting ? &count->waiting[count->nr_waiting - 1] : NULL;
	/* Equal samples of a hot loop are one entry. */
	if (last && last->offset == offset && last->account == counted->account && last->cgroup_slot == slot &&
	    opd_same_file_key(&last->key, key) && last->amount <= UINT32_MAX - counted->amount &&
	    opd_count_is_near(count, last->time_ns, counted->time_ns)) {
		last->amount += counted->amount;
		last->nr_calls++;
		return;
	}
	recent = opd_recent_index(key);
	op_prefetch(&count->recent[recent]);
	/* Each field is named: else gcc clears it all first, by a slow `rep stos`. */
	count->waiting[count->nr_waiting++] = (struct opd_keyed_sample){
		.key = *key,
		.offset = offset,
		.time_ns = counted->time_ns,
		.account = counted->account,
		.amount = counted->amount,
		.cgroup_slot = slot,
		.recent = (uint16_t)recent,
		.error = 0,
		.refused_kind = OPD_FILE_OF_LAST,
		.nr_calls = 1,
		.unattributed = counted->resolved->unattributed,
		.is_stored = false,
		.is_plain = false,
	};
	if (count->nr_waiting == OPD_WAITING_MAX)
		opd_count_flush(count);
}

void opd_count_sample(struct opd_count *count, const struct opd_counted *counted)
{
	struct opd_file_key key = key_of(count, counted);

	wait_for_sinks(count, counted, &key, counted->resolved->location.offset);
}

/* Whether a sample at this end of the call would be filtered. */
static bool is_end_filtered(const struct opd_count *count, const struct opd_counted *counted, const struct opd_resolved *end)
{
	struct opd_counted there = *counted;
	struct opd_file_key key;

	there.resolved = end;
	key = key_of(count, &there);
	return is_filtered(count, &key);
}

void opd_count_call(struct opd_count *count, const struct opd_counted *counted, const struct opd_resolved *callee)
{
	struct opd_file_key key = key_of(count, counted);
	const struct op_location *caller = &counted->resolved->location, *called = &callee->location;

	key.callee_cookie = called->cookie;
	if (op_unlikely(count->filter) && (is_filtered(count, &key) || is_end_filtered(count, counted, callee))) {
		count->arcs[OP_ARC_filtered]++;
		return;
	}
	if (op_unlikely(opd_is_too_many(count, &key) || called->cookie == op_dcookie_overflow(count->table))) {
		count->arcs[OP_ARC_lost_no_room]++;
		return;
	}
	wait_for_sinks(count, counted, &key, caller->offset << 32 | (called->offset & UINT32_MAX));
}
