/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/check_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/damaged.h"
#include "libop/dcookie.h"
#include "libop/file.h"
#include "libop/session.h"
#include "libop/mem.h"
#include "libop/session_ledger.h"
#include "libop/session_stats.h"
#include "tools/check_file.h"

struct run {
	struct opk_check *check;
	struct op_session_ledger sums;
	struct op_dcookie_table *images; /* NULL: the session has no table */
	uint64_t nr_without_row;
	bool is_beside; /* below cgroup/ or mem/: in no ledger */
	bool changed; /* samples went or came: the ledger has to follow */
};

/* ---- telling ---- */

static void tell(struct run *run, struct opk_problem *problem, int err)
{
	struct opk_check *check = run->check;
	char failure[128];

	problem->outcome = check->repair && !err ? OPK_REPAIRED : OPK_NOT_REPAIRED;
	if (check->repair && err) {
		snprintf(failure, sizeof(failure), "cannot repair it: %s", strerror(-err));
		problem->detail = failure;
	}
	if (problem->outcome == OPK_REPAIRED)
		check->nr_repaired++;
	else
		check->nr_left++;
	check->tell(problem, check->arg);
}

static void note(struct run *run, const char *path, const char *fault)
{
	struct opk_problem problem = { .path = path, .fault = fault, .detail = "", .outcome = OPK_NOTED };

	run->check->tell(&problem, run->check->arg);
}

/* ---- sample files ---- */

/* What is no sample file goes to damaged/ below the session. */
static void put_aside(struct run *run, const char *path, const char *fault, uint64_t offset)
{
	struct opk_problem problem = { .path = path, .fault = fault, .offset = offset, .has_offset = true, .detail = "" };
	char aside[OP_DAMAGED_NAME_BYTES] = "", detail[OP_DAMAGED_NAME_BYTES + 32] = "";
	int err = run->check->repair ? op_damaged_put_aside(run->check->dir_fd, path, aside) : 0;

	if (*aside && !err)
		snprintf(detail, sizeof(detail), "kept as %s", aside);
	problem.detail = detail;
	run->changed |= run->check->repair && !err;
	tell(run, &problem, err);
}

/* Something else in the place of a file, or of a directory, is put aside. False where there is what there should be, or nothing. */
static bool put_aside_unless(struct run *run, const char *path, mode_t type, const char *fault)
{
	struct stat st;

	if (fstatat(run->check->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & S_IFMT) == type)
		return false;
	put_aside(run, path, fault, 0);
	return true;
}

static void rewrite(struct run *run, const char *path, const struct opk_file *file)
{
	struct opk_problem problem = {
		.path = path, .fault = file->fault, .offset = file->offset, .has_offset = true, .detail = ""
	};
	char detail[96];
	int err = run->check->repair ? opk_file_rewrite(run->check->dir_fd, path, file) : 0;

	snprintf(detail, sizeof(detail), "%" PRIu32 " nodes are whole, %" PRIu32 " are not", file->nr_nodes, file->nr_dropped);
	problem.detail = detail;
	run->changed |= run->check->repair && !err;
	tell(run, &problem, err);
}

static int add_sum(struct run *run, const struct op_sample_name *name, uint64_t total)
{
	struct op_ledger_event event = { .count = name->count, .unit_mask = (uint32_t)name->unit_mask }, *row;

	snprintf(event.name, sizeof(event.name), "%s", name->event);
	row = op_session_ledger_row(&run->sums, &event);
	if (!row)
		return -ENOMEM;
	row->stored += total;
	return 0;
}

/* The row of an image; NULL: there is none. */
static const struct op_dcookie_row *image_of(const struct run *run, const struct op_image_name *image)
{
	uint64_t cookie = run->images ? op_dcookie_by_name(run->images, image) : OP_DCOOKIE_NONE;

	return cookie == OP_DCOOKIE_NONE ? NULL : op_dcookie_row(run->images, cookie);
}

static void mend_header(struct opk_file *file, const char *fault, size_t offset)
{
	if (!file->fault) {
		file->fault = fault;
		file->offset = offset;
	}
	file->verdict = OPK_REPARABLE;
}

#define HEADER_AT(field) offsetof(struct op_odb_header, field)

/* What opd writes into a header is known from the name of the file and from the row of its image. */
static void check_header(const struct run *run, const struct op_sample_name *name, struct opk_file *file)
{
	const struct op_dcookie_row *row = image_of(run, &name->image);
	struct op_odb_header *header = &file->header;
	uint32_t count = (uint32_t)op_min_u64(name->count, UINT32_MAX);

	if (!row || file->verdict == OPK_LOST || name->has_callee)
		return;
	if (header->ctr_um != name->unit_mask)
		mend_header(file, "the header has another unit mask than the name", HEADER_AT(ctr_um));
	if (header->ctr_count != count)
		mend_header(file, "the header has another count than the name", HEADER_AT(ctr_count));
	if (header->is_kernel != row->id.is_kernel)
		mend_header(file, "the header says kernel or not, and the table of images says otherwise", HEADER_AT(is_kernel));
	if (header->mtime && op_dcookie_mtime(row) && header->mtime != op_dcookie_mtime(row))
		mend_header(file, "the header has another time of the image than the table of images", HEADER_AT(mtime));
	header->ctr_um = name->unit_mask;
	header->ctr_count = count;
	header->is_kernel = row->id.is_kernel;
	header->mtime = header->mtime ? op_dcookie_mtime(row) : 0;
}

static int count_file(struct run *run, const struct op_sample_name *name, const struct opk_file *file)
{
	struct opk_check *check = run->check;

	check->nr_dropped += file->nr_dropped;
	if (file->verdict == OPK_LOST || run->is_beside || name->has_callee)
		return 0;
	check->nr_samples += file->total;
	run->nr_without_row += run->images && !image_of(run, &name->image);
	return add_sum(run, name, file->total);
}

static int check_sample_file(struct run *run, const char *path, const struct op_sample_name *name)
{
	struct opk_check *check = run->check;
	enum opk_state at_rest = check->closed ? OPK_CLOSED : OPK_AT_REST;
	struct opk_file file;
	int err = opk_file_check(check->dir_fd, path, check->live ? OPK_WRITTEN : at_rest, &file);

	if (err == -ENOENT && check->live)
		return 0;
	if (err == -ENOMEM)
		return err;
	if (err) {
		struct opk_problem problem = { .path = path, .fault = strerror(-err), .detail = "", .outcome = OPK_NOT_REPAIRED };

		check->nr_left++;
		check->tell(&problem, check->arg);
		return 0;
	}
	check_header(run, name, &file);
	err = count_file(run, name, &file);
	if (file.verdict == OPK_LOST)
		put_aside(run, path, file.fault, file.offset);
	else if (file.verdict == OPK_REPARABLE)
		rewrite(run, path, &file);
	opk_file_free(&file);
	return err;
}

/* The path of a cgroup's file, or of the memory view, from its {root} or {kern} on. */
static const char *sample_path(const struct run *run, const char *path)
{
	const char *root, *kern;

	if (!run->is_beside)
		return path;
	root = strstr(path, "/{root}/");
	kern = strstr(path, "/{kern}/");
	if (!root || (kern && kern < root))
		root = kern;
	return root ? root + 1 : NULL;
}

static bool is_jit_object(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".jo");
}

static int visit(const char *path, unsigned char type, void *arg)
{
	struct run *run = arg;
	const char *name_path = sample_path(run, path);
	struct op_sample_name name;
	char *storage;
	int err;

	if (is_jit_object(path))
		return 0;
	if (type != DT_REG) {
		put_aside(run, path, "not a regular file", 0);
		return 0;
	}
	err = name_path ? op_unmangle(name_path, &name, &storage, NULL) : -EINVAL;
	if (err == -EINVAL) {
		put_aside(run, path, "not the name of a sample file", 0);
		return 0;
	}
	if (err)
		return err;
	err = check_sample_file(run, path, &name);
	free(storage);
	run->check->nr_files++;
	run->check->progress(run->check->nr_files, run->check->arg);
	return err;
}

static int check_files(struct run *run)
{
	static const struct {
		const char *top;
		bool is_beside;
	} tops[] = { { "{root}", false }, { "{kern}", false }, { OP_CGROUP_DIR, true }, { OP_MEM_DIR, true } };
	int err = 0;

	for (size_t i = 0; i < op_array_size(tops) && !err; i++) {
		if (put_aside_unless(run, tops[i].top, S_IFDIR, "not a directory"))
			continue;
		run->is_beside = tops[i].is_beside;
		err = op_session_walk(run->check->dir_fd, tops[i].top, visit, run);
	}
	return err;
}

/* ---- the table of images ---- */

static void format_row(struct op_dcookie_row *row, void *arg)
{
	if (row->name)
		op_dcookie_format_row(row, arg);
}

static int rewrite_images(const struct run *run)
{
	struct op_text text = { 0 };
	int err;

	op_dcookie_format_head(&text);
	op_dcookie_format_next(op_dcookie_next(run->images), &text);
	op_dcookie_visit(run->images, format_row, &text);
	err = text.failed ? -ENOMEM : op_file_publish(run->check->dir_fd, OP_DCOOKIE_FILE, op_text_get(&text), 0644);
	op_text_free(&text);
	return err;
}

static void tell_images(struct run *run, const struct op_dcookie_reading *reading)
{
	struct opk_problem problem = { .path = OP_DCOOKIE_FILE, .fault = "lines of the table of images make no sense" };

	if (run->check->live || (!reading->nr_bad && !reading->is_torn))
		return;
	problem.detail = reading->complaint ? reading->complaint : "the last line is torn";
	tell(run, &problem, run->check->repair ? rewrite_images(run) : 0);
}

static int check_images(struct run *run)
{
	struct op_dcookie_reading reading = { 0 };
	int err;

	run->images = op_dcookie_table_new();
	if (!run->images)
		return -ENOMEM;
	err = op_dcookie_table_read(run->images, run->check->dir_fd, OP_DCOOKIE_FILE, &reading);
	if (!err) {
		tell_images(run, &reading);
	} else {
		op_dcookie_table_free(run->images);
		run->images = NULL;
	}
	if (err && err != -ENOENT && err != -ENOMEM)
		put_aside(run, OP_DCOOKIE_FILE, "not a table of images", 0);
	free(reading.complaint);
	return err == -ENOMEM ? err : 0;
}

/* ---- the ledger ---- */

/* A sampler has none: its ledger is believed. */
static uint64_t stored_in_files(const struct run *run, const struct op_ledger_event *event)
{
	const struct op_ledger_event *sum = op_session_ledger_find(&run->sums, event);

	if (event->role == OP_EVENT_SAMPLER)
		return event->stored;
	return sum ? sum->stored : 0;
}

static int rewrite_ledger(const struct run *run, struct op_session_ledger *ledger)
{
	int err = op_session_ledger_correct(ledger, &run->sums);

	return err ? err : op_session_ledger_publish(ledger, run->check->dir_fd);
}

/* The first event that does not add up; NULL: all do. */
static const char *ledger_fault(const struct run *run, const struct op_session_ledger *ledger, char detail[160])
{
	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];
		uint64_t in_files = stored_in_files(run, event);

		snprintf(detail, 160, "%.40s:%" PRIu64 ": %" PRIu64 " stored, %" PRIu64 " in the files", event->name, event->count,
			 event->stored, in_files);
		if (event->stored != in_files)
			return "the ledger does not say what the sample files hold";
		if (event->received != event->stored + op_ledger_lost(event) || event->unattributed > event->stored)
			return "the ledger does not add up";
	}
	for (size_t i = 0; i < run->sums.nr_events; i++) {
		const struct op_ledger_event *sum = &run->sums.events[i];

		snprintf(detail, 160, "%.40s:%" PRIu64, sum->name, sum->count);
		if (!op_session_ledger_find(ledger, sum))
			return "the ledger has not all events of the sample files";
	}
	return NULL;
}

/* Samples that came after the last ledger of a daemon that was killed are no fault; the next daemon enters them. */
static bool is_behind(const struct run *run, const struct op_session_ledger *ledger)
{
	if (ledger->ended != OP_SESSION_open || run->changed)
		return false;
	for (size_t i = 0; i < ledger->nr_events; i++)
		if (ledger->events[i].stored > stored_in_files(run, &ledger->events[i]))
			return false;
	return true;
}

static void compare_ledger(struct run *run, struct op_session_ledger *ledger)
{
	struct opk_problem problem = { .path = OP_SESSION_LEDGER };
	char detail[160] = "";

	problem.fault = ledger_fault(run, ledger, detail);
	problem.detail = detail;
	if (!problem.fault)
		return;
	if (is_behind(run, ledger) && !run->check->repair)
		note(run, OP_SESSION_LEDGER, "it lacks the last samples: the daemon was killed, the next one enters them");
	else
		tell(run, &problem, run->check->repair ? rewrite_ledger(run, ledger) : 0);
}

/* ---- stats/ ---- */

/*
 * The genuine tools warn by these numbers. They may say more than the ledger: of samples that were lost with their files, or of a daemon before opd.
 */
static void check_stats(struct run *run, const struct op_session_ledger *ledger)
{
	uint64_t wanted[OP_STATS_NR] = { 0 }, found;
	char path[64], detail[96];
	struct opk_problem problem = { .path = path, .fault = "it says less than the ledger", .detail = detail };

	int stats_fd = ledger->ended == OP_SESSION_open ? -ENOENT : op_stats_open(run->check->dir_fd, false);

	if (stats_fd < 0)
		return;
	op_stats_add(ledger, wanted);
	for (enum op_stats_number i = 0; i < OP_STATS_NR; i++) {
		snprintf(path, sizeof(path), "stats/%s", op_stats_name(i));
		if (op_stats_read(stats_fd, op_stats_name(i), &found))
			found = 0;
		snprintf(detail, sizeof(detail), "%" PRIu64 ", not %" PRIu64, found, wanted[i]);
		if (found < wanted[i])
			tell(run, &problem, run->check->repair ? op_stats_write(stats_fd, i, wanted[i]) : 0);
	}
	close(stats_fd);
}

/* By what there is in the files and what the directory knows of times. */
static int make_ledger(const struct run *run)
{
	const struct opk_check *check = run->check;
	struct op_session_ledger ledger = { .ended = check->end };
	int err;

	op_session_ledger_guess_times(&ledger, check->dir_fd);
	err = rewrite_ledger(run, &ledger);
	if (!err)
		err = op_stats_raise(check->dir_fd, &ledger);
	op_session_ledger_free(&ledger);
	return err;
}

static void miss_ledger(struct run *run)
{
	struct opk_problem problem = { .path = OP_SESSION_LEDGER, .fault = "there is none, and opd made the session", .detail = "" };

	if (!run->check->nr_files || run->check->live)
		return;
	if (run->images)
		tell(run, &problem, run->check->repair ? make_ledger(run) : 0);
	else
		note(run, OP_SESSION_LEDGER, "there is none: the session was not made by opd");
}

static int check_ledger(struct run *run)
{
	bool aside = put_aside_unless(run, OP_SESSION_LEDGER, S_IFREG, "not a regular file");
	struct op_session_ledger ledger;
	unsigned int line = 0;
	char fault[64];
	int err = aside ? -ENOENT : op_session_ledger_read(run->check->dir_fd, &ledger, &line);

	if (err == -EBADMSG) {
		snprintf(fault, sizeof(fault), "line %u makes no sense", line);
		put_aside(run, OP_SESSION_LEDGER, fault, 0);
		aside = true;
		err = -ENOENT;
	}
	if (err == -ENOENT && (!aside || run->check->repair))
		miss_ledger(run);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!run->images && run->check->nr_files)
		note(run, OP_DCOOKIE_FILE, "there is none: what images were is known by their names alone");
	if (!run->check->live) {
		compare_ledger(run, &ledger);
		check_stats(run, &ledger);
	}
	op_session_ledger_free(&ledger);
	return 0;
}

int opk_session_check(struct opk_check *check)
{
	struct run run = { .check = check };
	char text[96];
	int err = check_images(&run);

	if (!err)
		err = check_files(&run);
	if (!err && run.nr_without_row && !check->live) {
		snprintf(text, sizeof(text), "it has no rows for the images of %" PRIu64 " sample files", run.nr_without_row);
		note(&run, OP_DCOOKIE_FILE, text);
	}
	if (!err)
		err = check_ledger(&run);
	op_dcookie_table_free(run.images);
	op_session_ledger_free(&run.sums);
	return err;
}
