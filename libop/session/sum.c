/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/htable.h"
#include "libop/odb/read.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/pack.h"
#include "libop/session/parts.h"
#include "libop/base/sys.h"

static int add_file(struct op_session_ledger *ledger, const struct op_sample_name *name, uint64_t total)
{
	struct op_ledger_event event = { .count = name->count, .unit_mask = (uint32_t)name->unit_mask }, *row;

	if (strlen(name->event) >= sizeof(event.name))
		return -EBADMSG;
	memcpy(event.name, name->event, strlen(name->event) + 1);
	event.role = op_ibs_event_of_session(event.name) ? OP_EVENT_DERIVED : OP_EVENT_PLAIN;
	row = op_session_ledger_row(ledger, &event);
	if (!row)
		return -ENOMEM;
	row->stored += total;
	return 0;
}

static int sum_file(int dir_fd, const char *path, uint64_t *ret_total)
{
	struct op_odb_samples samples;
	uint64_t total = 0;
	struct op_odb_fault fault;
	int err = op_session_read_samples(dir_fd, path, &samples, &fault);

	if (err)
		return err;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		total += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	*ret_total = total;
	return 0;
}

/* Adds the files that are no sample files. One that cannot be read is counted in *nr_bad. */
static int add_parts(struct op_session_ledger *ledger, int dir_fd, uint64_t *nr_bad)
{
	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		struct op_part_reading reading = { .sums = ledger };
		int err = part->read ? part->read(dir_fd, part->name, &reading) : 0;

		if (err == -ENOMEM)
			return err;
		*nr_bad += err && err != -ENOENT;
	}
	return 0;
}

int op_session_ledger_add_files(struct op_session_ledger *ledger, int dir_fd, uint64_t *ret_nr_bad)
{
	struct op_session_list list;
	uint64_t nr_bad = 0;
	int err = op_session_list(dir_fd, &list, NULL);

	if (err)
		return err;
	for (size_t i = 0; i < list.nr_files && !err; i++) {
		uint64_t total;

		if (list.files[i].name.has_callee)
			continue;
		err = sum_file(dir_fd, list.files[i].path, &total);
		if (!err)
			err = add_file(ledger, &list.files[i].name, total);
		if (err && err != -ENOMEM) {
			nr_bad++;
			err = 0;
		}
	}
	op_session_list_free(&list);
	if (err)
		return err;
	err = add_parts(ledger, dir_fd, &nr_bad);
	if (!err)
		*ret_nr_bad = nr_bad;
	return err;
}

/* A row that does not add up says nothing about losses. */
static void correct_event(struct op_ledger_event *event, uint64_t stored)
{
	if (op_ledger_adds_up(event))
		event->lost[OP_LOSS_io_error] += event->stored - op_min_u64(event->stored, stored);
	event->stored = stored;
	event->received = event->stored + event->filtered + op_ledger_lost(event);
	event->unattributed = op_min_u64(event->unattributed, event->stored);
}

int op_session_ledger_correct(struct op_session_ledger *ledger, const struct op_session_ledger *sums)
{
	for (size_t i = 0; i < sums->nr_events; i++)
		if (!op_session_ledger_row(ledger, &sums->events[i]))
			return -ENOMEM;
	for (size_t i = 0; i < ledger->nr_events; i++) {
		struct op_ledger_event *event = &ledger->events[i];
		const struct op_ledger_event *sum = op_session_ledger_find(sums, event);
		uint64_t stored = sum ? sum->stored : 0;

		if (op_event_is_stacks(event->role))
			memcpy(event->ends, sum ? sum->ends : (const uint64_t[OP_NR_STACK_ENDS]){ 0 }, sizeof(event->ends));
		/* A sampler is in no file. */
		correct_event(event, event->role == OP_EVENT_SAMPLER ? event->stored : stored);
	}
	return 0;
}

int op_session_ledger_recount(struct op_session_ledger *ledger, int dir_fd)
{
	struct op_session_ledger sums = { 0 };
	uint64_t nr_bad;
	int err = op_session_ledger_add_files(&sums, dir_fd, &nr_bad);

	if (!err)
		err = op_session_ledger_correct(ledger, &sums);
	op_session_ledger_free(&sums);
	return err;
}

int op_session_files_add(int dir_fd, const char *path, struct op_session_files *files)
{
	struct stat st;
	uint64_t hash;

	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	hash = op_hash_add(op_hash_u64(st.st_ino), (uint64_t)st.st_size);
	hash = op_hash_add(hash, (uint64_t)st.st_mtim.tv_sec);
	files->nr++;
	files->fingerprint += op_hash_add(hash, (uint64_t)st.st_mtim.tv_nsec);
	return 0;
}

struct scan {
	int dir_fd;
	struct op_session_files files;
};

static int add_sample_file(const char *path, unsigned char type OP_UNUSED, void *arg)
{
	struct scan *scan = arg;

	return op_session_is_jit_object(path) ? 0 : op_session_files_add(scan->dir_fd, path, &scan->files);
}

int op_session_files_look(int dir_fd, struct op_session_files *ret_files)
{
	struct scan scan = { .dir_fd = dir_fd };
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++) {
		if (!part->is_in_ledger)
			continue;
		err = part->kind == OP_PART_SAMPLES ? op_session_walk(dir_fd, part->name, add_sample_file, &scan)
						    : op_session_files_add(dir_fd, part->name, &scan.files);
	}
	if (!err)
		*ret_files = scan.files;
	return err;
}
