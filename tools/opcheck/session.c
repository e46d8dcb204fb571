/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/dcookie.h"
#include "libop/base/file.h"
#include "libop/events/ibs_derived.h"
#include "libop/session/jit_object_check.h"
#include "libop/session/list.h"
#include "libop/session/sum.h"
#include "libop/session/walk.h"
#include "libop/session/memory_view.h"
#include "libop/session/ledger_file.h"
#include "libop/session/stats_files.h"
#include "tools/opcheck/sample_file.h"
#include "tools/opcheck/misfit.h"
#include "tools/opcheck/findings.h"
#include "tools/opcheck/tree.h"
#include "tools/opcheck/unnamed.h"

struct run {
	struct opk_check *check;
	struct op_session_ledger sums;
	struct op_dcookie_table *images; /* NULL: the session has no table */
	uint64_t nr_without_row;
	bool is_beside; /* below cgroup/ or mem/: in no ledger */
	struct opk_misfits misfits;
	struct opk_unnamed unnamed;
	bool changed; /* samples went or came: the ledger has to follow */
};

/* ---- sample files ---- */

/* What is no sample file. */
static void put_aside(struct run *run, const char *path, const char *fault, uint64_t offset)
{
	run->changed |= opk_put_aside(run->check, path, fault, offset, "");
}

/* Something else in the place of a file, or of a directory, is put aside. False where there is what there should be, or nothing. */
static bool put_aside_unless(struct run *run, const char *path, mode_t type, const char *fault)
{
	bool is_other = opk_is_other(run->check, path, type);

	if (is_other)
		put_aside(run, path, fault, 0);
	return is_other;
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
	opk_tell(run->check, &problem, err);
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

static void mend(struct opk_file *file, const char *fault, uint64_t offset)
{
	if (!file->fault) {
		file->fault = fault;
		file->offset = offset;
	}
	file->verdict = OPK_REPARABLE;
}

static int count_file(struct run *run, const struct op_sample_name *name, const struct opk_file *file)
{
	struct opk_check *check = run->check;

	check->nr_dropped += file->nr_dropped;
	if (file->verdict == OPK_LOST || run->is_beside || name->has_callee)
		return 0;
	if (!op_ibs_event_of_session(name->event)) /* derived: of each sample many counts, and cycles among them */
		check->nr_samples += file->total;
	run->nr_without_row += run->images && !opk_row_of(run->images, &name->image);
	return add_sum(run, name, file->total);
}

/* What is known of the header, and whether the daemon can write the file. */
static void mend_all(const struct run *run, const char *path, const struct opk_header *header, struct opk_file *file)
{
	const char *fault = opk_access_fault(run->check, path);

	if (header->fault)
		mend(file, header->fault, header->offset);
	file->header = header->wanted;
	if (fault)
		mend(file, fault, 0);
}

static int open_sample_file(struct run *run, const char *path, struct opk_file *ret_file, bool *ret_is_there)
{
	struct opk_check *check = run->check;
	enum opk_state at_rest = check->closed ? OPK_CLOSED : OPK_AT_REST;
	int err = opk_file_check(check->dir_fd, path, check->live ? OPK_WRITTEN : at_rest, ret_file);

	*ret_is_there = !err;
	if (err == -ENOENT && check->live)
		return 0;
	if (err && err != -ENOMEM) {
		struct opk_problem problem = { .path = path, .fault = strerror(-err), .detail = "", .outcome = OPK_NOT_REPAIRED };

		check->nr_left++;
		check->tell(&problem, check->arg);
		return 0;
	}
	return err;
}

/* `settled`: a header that tells of another file has been looked into, and is mended. */
static int check_sample_file(struct run *run, const char *path, const struct op_sample_name *name, bool settled)
{
	struct opk_file file;
	struct opk_header header = { .fault = NULL };
	bool is_there, is_opds;
	int err = open_sample_file(run, path, &file, &is_there);

	if (err || !is_there)
		return err;
	is_opds = file.verdict != OPK_LOST && file.header.version == OP_ODB_VERSION;
	if (is_opds)
		opk_header_compare(run->images, name, &file.header, &header);
	if (header.tells && !settled) {
		err = opk_misfits_add(&run->misfits, path, &file.header, &header);
		opk_file_free(&file);
		return err;
	}
	if (is_opds)
		mend_all(run, path, &header, &file);
	err = count_file(run, name, &file);
	if (file.verdict == OPK_LOST)
		put_aside(run, path, file.fault, file.offset);
	else if (file.verdict == OPK_REPARABLE)
		rewrite(run, path, &file);
	opk_file_free(&file);
	return err;
}

/* ---- files in the places of others ---- */

static const char *const tops[] = { "{root}", "{kern}", OP_CGROUP_DIR, OP_MEM_DIR };

#define NOT_ITS_PLACE "the header is that of another file"

/* Below cgroup/ or mem/: in no ledger. */
static bool is_beside(const char *path)
{
	return *path != '{';
}

static void tell_exchange(struct run *run, struct opk_misfit *misfit, int err)
{
	struct opk_problem problem = {
		.path = misfit->path,
		.fault = NOT_ITS_PLACE,
		.offset = misfit->header.offset,
		.has_offset = true,
		.detail = misfit->partner->path,
	};

	misfit->is_settled = true;
	opk_tell(run->check, &problem, err);
}

static int look_again(struct run *run, const struct opk_misfit *misfit)
{
	run->is_beside = is_beside(misfit->path);
	return check_sample_file(run, misfit->path, &misfit->name, true);
}

/* Each goes to where it belongs, with all that is in it. */
static int exchange(struct run *run, struct opk_misfit *misfit)
{
	const struct opk_check *check = run->check;
	int err = check->repair ? opk_file_exchange(check->dir_fd, misfit->path, misfit->partner->path) : 0;

	tell_exchange(run, misfit, err);
	tell_exchange(run, misfit->partner, err);
	if (!check->repair || err)
		return 0;
	err = look_again(run, misfit);
	return err ? err : look_again(run, misfit->partner);
}

/* What was counted for another file, and is not in its place, is nobody's: to leave it would be to make up counts of this one. */
static int settle_misfits(struct run *run)
{
	int err = run->misfits.nr ? opk_misfits_find(&run->misfits, run->images, run->check->dir_fd, tops, op_array_size(tops)) : 0;

	for (size_t i = 0; i < run->misfits.nr && !err; i++) {
		struct opk_misfit *misfit = &run->misfits.misfits[i];

		if (misfit->is_settled)
			continue;
		if (misfit->partner)
			err = exchange(run, misfit);
		else if (misfit->owner)
			run->changed |=
				opk_put_aside(run->check, misfit->path, NOT_ITS_PLACE, misfit->header.offset, misfit->owner);
		else
			err = look_again(run, misfit);
	}
	return err;
}

/* ---- all files ---- */

static void check_object(struct run *run, const char *path)
{
	int err = op_jit_object_check(run->check->dir_fd, path);

	if (err == -EBADMSG)
		put_aside(run, path, "symbols of JIT code that are not whole", 0);
}

static int check_path(struct run *run, const char *path)
{
	const char *name_path = opk_sample_path(path);
	struct op_sample_name name;
	char *storage;
	int err = name_path ? op_unmangle(name_path, &name, &storage, NULL) : -EINVAL;

	if (err == -EINVAL)
		err = opk_unnamed_add(&run->unnamed, run->check->dir_fd, path);
	else if (!err) {
		err = check_sample_file(run, path, &name, false);
		free(storage);
		run->check->nr_files++;
		run->check->progress(run->check->nr_files, run->check->arg);
		return err;
	}
	if (!err)
		put_aside(run, path, "not the name of a sample file", 0);
	return err > 0 ? 0 : err;
}

static int visit(const char *path, unsigned char type, void *arg)
{
	struct run *run = arg;

	if (type == DT_DIR) {
		opk_check_dir(run->check, path);
		return 0;
	}
	if (type != DT_REG) {
		put_aside(run, path, "not a regular file", 0);
		return 0;
	}
	if (op_session_is_jit_object(path)) {
		check_object(run, path);
		return 0;
	}
	return check_path(run, path);
}

/* Where they lie until they are moved, what is in them is counted all the same. */
static int settle_unnamed(struct run *run)
{
	int err = 0;

	run->changed |= opk_unnamed_settle(&run->unnamed, run->check);
	for (size_t i = 0; i < run->unnamed.nr && run->check->repair && !err; i++) {
		run->is_beside = is_beside(run->unnamed.files[i].wanted);
		err = check_path(run, run->unnamed.files[i].wanted);
	}
	return err;
}

static int check_files(struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < op_array_size(tops) && !err; i++) {
		if (put_aside_unless(run, tops[i], S_IFDIR, "not a directory"))
			continue;
		run->is_beside = is_beside(tops[i]);
		err = op_session_walk_all(run->check->dir_fd, tops[i], visit, run);
	}
	if (!err)
		err = settle_unnamed(run);
	return err ? err : settle_misfits(run);
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
	struct opk_problem problem = { .path = OP_DCOOKIE_FILE, .detail = "" };

	problem.fault = opk_access_fault(run->check, OP_DCOOKIE_FILE);
	if (!run->check->live && (reading->nr_bad || reading->is_torn)) {
		problem.fault = "lines of the table of images make no sense";
		problem.detail = reading->complaint ? reading->complaint : "the last line is torn";
	}
	if (problem.fault)
		opk_tell(run->check, &problem, run->check->repair ? rewrite_images(run) : 0);
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
		if (!op_ledger_adds_up(event) || event->unattributed > event->stored)
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

/* The next daemon recounts. */
static bool is_unfinished(const struct run *run, const struct op_session_ledger *ledger)
{
	return ledger->ended == OP_SESSION_open || run->check->unclean;
}

/* Samples that came after the last ledger of a daemon that was killed are no fault; the next daemon enters them. */
static bool is_behind(const struct run *run, const struct op_session_ledger *ledger)
{
	if (!is_unfinished(run, ledger) || run->changed)
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
		opk_note(run->check, OP_SESSION_LEDGER,
			 "it lacks the last samples: the daemon was killed, the next one enters them");
	else
		opk_tell(run->check, &problem, run->check->repair ? rewrite_ledger(run, ledger) : 0);
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

	int stats_fd = is_unfinished(run, ledger) ? -ENOENT : op_stats_open(run->check->dir_fd, false);

	if (stats_fd < 0)
		return;
	op_stats_add(ledger, wanted);
	for (enum op_stats_number i = 0; i < OP_STATS_NR; i++) {
		snprintf(path, sizeof(path), "stats/%s", op_stats_name(i));
		if (opk_is_other(run->check, path, S_IFREG))
			continue; /* told, and stays */
		if (op_stats_read(stats_fd, op_stats_name(i), &found))
			found = 0;
		snprintf(detail, sizeof(detail), "%" PRIu64 ", not %" PRIu64, found, wanted[i]);
		if (found < wanted[i])
			opk_tell(run->check, &problem, run->check->repair ? op_stats_write(stats_fd, i, wanted[i]) : 0);
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
	struct opk_problem problem = { .path = OP_SESSION_LEDGER,
				       .fault = "there is none, and opd made the session",
				       .detail = "" };

	if (!run->check->nr_files || run->check->live)
		return;
	if (run->images)
		opk_tell(run->check, &problem, run->check->repair ? make_ledger(run) : 0);
	else
		opk_note(run->check, OP_SESSION_LEDGER, "there is none: the session was not made by opd");
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
	for (size_t i = 0; i < ledger.nr_events; i++)
		run->check->nr_samples += ledger.events[i].role == OP_EVENT_SAMPLER ? ledger.events[i].stored : 0;
	if (!run->images && run->check->nr_files)
		opk_note(run->check, OP_DCOOKIE_FILE, "there is none: what images were is known by their names alone");
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
	int err;

	opk_check_left(check);
	err = check_images(&run);
	if (!err)
		err = check_files(&run);
	if (!err && run.nr_without_row && !check->live) {
		snprintf(text, sizeof(text), "it has no rows for the images of %" PRIu64 " sample files", run.nr_without_row);
		opk_note(check, OP_DCOOKIE_FILE, text);
	}
	if (!err)
		err = check_ledger(&run);
	op_dcookie_table_free(run.images);
	op_session_ledger_free(&run.sums);
	opk_misfits_free(&run.misfits);
	opk_unnamed_free(&run.unnamed);
	return err;
}
