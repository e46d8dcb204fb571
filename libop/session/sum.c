/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/htable.h"
#include "libop/base/parse.h"
#include "libop/odb/read.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/pack.h"
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

static_assert(OP_STACK_NR_ENDS == OP_NR_STACK_ENDS, "opd-stacks(5)");

/* "STACKS:COUNT:UNIT-MASK"; false: another event. Takes `text` apart. */
static bool parse_event(char *text, struct op_ledger_event *ret_event)
{
	struct op_ledger_event event = { .name = OP_STACKS_NAME, .role = OP_EVENT_STACKS };
	char *count = strchr(text, ':'), *mask = count ? strchr(count + 1, ':') : NULL;
	uint64_t unit_mask;

	if (!mask)
		return false;
	*count++ = *mask++ = '\0';
	if (strcmp(text, OP_STACKS_NAME) || op_parse_u64(count, 0, UINT64_MAX, &event.count) ||
	    op_parse_u64(mask, 0, UINT32_MAX, &unit_mask))
		return false;
	event.unit_mask = (uint32_t)unit_mask;
	*ret_event = event;
	return true;
}

static int add_tree(struct op_session_ledger *ledger, const struct op_stack_tree *tree, const uint64_t ends[OP_NR_STACK_ENDS],
		    const struct op_stack_node *node)
{
	char *text = op_stack_text(tree, node->value);
	struct op_ledger_event event, *row;
	uint64_t no_room = op_min_u64(tree->no_room, ends[OP_STACK_END_complete]);
	bool is_ours = text && parse_event(text, &event);

	free(text);
	if (!is_ours)
		return text ? 0 : -ENOMEM;
	row = op_session_ledger_row(ledger, &event);
	if (!row)
		return -ENOMEM;
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++) {
		row->ends[i] += ends[i];
		row->stored += ends[i];
	}
	row->ends[OP_STACK_END_complete] -= no_room;
	row->ends[OP_STACK_END_no_room] += no_room;
	return 0;
}

int op_session_ledger_add_stacks(struct op_session_ledger *ledger, const struct op_stack_tree *tree)
{
	struct place {
		uint32_t event, end;
	} *places = calloc(tree->nr_nodes, sizeof(*places)); /* of the nodes; parents come first */
	uint64_t(*sums)[OP_NR_STACK_ENDS] = NULL;
	uint32_t nr_events = 0;
	int err = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct op_stack_node *node = &tree->nodes[i];

		places[i] = places[node->parent];
		if (node->kind == OP_STACK_EVENT)
			places[i].event = ++nr_events;
		else if (node->kind == OP_STACK_END)
			places[i].end = (uint32_t)node->value;
	}
	sums = calloc(nr_events + 1, sizeof(*sums));
	for (uint32_t i = 0; sums && i < tree->nr_nodes; i++)
		sums[places[i].event][places[i].end] += tree->nodes[i].count;
	err = sums ? 0 : -ENOMEM;
	for (uint32_t i = 0; !err && i < tree->nr_nodes; i++)
		if (tree->nodes[i].kind == OP_STACK_EVENT)
			err = add_tree(ledger, tree, sums[places[i].event], &tree->nodes[i]);
	free(sums);
	free(places);
	return err;
}

static int add_stacks(struct op_session_ledger *ledger, int dir_fd)
{
	struct op_stack_tree tree;
	int err = op_stacks_read(dir_fd, OP_SESSION_STACKS, &tree);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = op_session_ledger_add_stacks(ledger, &tree);
	op_stack_tree_free(&tree);
	return err;
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
	if (!err)
		err = add_stacks(ledger, dir_fd);
	if (err && err != -ENOMEM) {
		nr_bad++;
		err = 0;
	}
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

		if (event->role == OP_EVENT_STACKS)
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
	int err = op_session_walk(dir_fd, "{root}", add_sample_file, &scan);

	if (!err)
		err = op_session_walk(dir_fd, "{kern}", add_sample_file, &scan);
	if (!err)
		err = op_session_files_add(dir_fd, OP_SESSION_PACKED, &scan.files);
	if (!err)
		*ret_files = scan.files;
	return err;
}
