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
#include "libop/base/htable.h"
#include "libop/events/ibs_derived.h"
#include "libop/session/leftovers.h"
#include "libop/session/list.h"
#include "libop/session/walk.h"
#include "libop/session/pack.h"
#include "libop/session/parts.h"
#include "tools/opcheck/sample_file.h"
#include "tools/opcheck/misplaced.h"
#include "tools/opcheck/findings.h"
#include "tools/opcheck/ledger.h"
#include "tools/opcheck/ownership.h"
#include "tools/opcheck/unnamed.h"

#define PART_MODE 0644

struct run {
	struct opk_check *check;
	struct opk_found found;
	struct op_dcookie_table *images; /* NULL: the session has no table */
	uint64_t nr_without_row;
	bool is_beside; /* below cgroup/ or mem/: in no ledger */
	bool has_foreign; /* its files do not say what the ledger must be */
	int unread;     /* why a directory could not be read; 0: all were */
	struct opk_misplaced_list misplaced;
	struct opk_unnamed unnamed;
	struct opk_shares shares;
	struct op_htable counted; /* files of a closed session, which may be packed meanwhile */
};

/* ---- sample files ---- */

static void put_aside(struct run *run, const char *path, const char *fault, uint64_t offset)
{
	run->found.changed |= opk_put_aside(run->check, path, fault, offset, "");
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
	run->found.changed |= run->check->repair && !err;
	opk_report(run->check, &problem, err);
}

/* It is whole, for another machine. */
static void leave(struct run *run, const char *path, const struct opk_file *file)
{
	struct opk_problem problem = {
		.path = path, .fault = file->fault, .offset = file->offset, .has_offset = true, .detail = "",
		.outcome = OPK_NOT_REPAIRED
	};

	run->has_foreign = true;
	run->check->nr_left++;
	run->check->report(&problem, run->check->arg);
}

static int add_sum(struct run *run, const struct op_sample_name *name, uint64_t total)
{
	struct op_ledger_event event = { .count = name->count, .unit_mask = (uint32_t)name->unit_mask }, *row;

	snprintf(event.name, sizeof(event.name), "%s", name->event);
	row = op_session_ledger_row(&run->found.sums, &event);
	if (!row)
		return -ENOMEM;
	row->stored += total;
	return 0;
}

static uint64_t cookie_of(const struct run *run, const struct op_image_name *image)
{
	const struct op_dcookie_row *row = opk_row_of(run->images, image);

	return row ? row->cookie : OP_DCOOKIE_NONE;
}

static int add_share(struct run *run, const struct op_sample_name *name, uint64_t total)
{
	char event[OP_EVENT_NAME_BYTES + 64];
	struct opk_share *share;
	uint32_t number;
	int err;

	snprintf(event, sizeof(event), "%s:%" PRIu64 ":0x%x", name->event, name->count, (uint32_t)name->unit_mask);
	err = opk_shares_event(&run->shares, event, &number);
	if (err)
		return err;
	share = opk_share(&run->shares, OPK_OF_SAMPLES, number, cookie_of(run, &name->app), cookie_of(run, &name->image));
	if (!share)
		return -ENOMEM;
	share->in_files += total;
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
	int err;

	check->nr_dropped += file->nr_dropped;
	if (file->verdict >= OPK_LOST || run->is_beside || name->has_callee)
		return 0;
	/* Derived IBS events have many counts for a sample, and cycles among them. */
	if (!op_ibs_event_of_session(name->event))
		check->nr_samples += file->total;
	run->nr_without_row += run->images && !opk_row_of(run->images, &name->image);
	err = add_sum(run, name, file->total);
	return err ? err : add_share(run, name, file->total);
}

/* Adds faults of the header, and whether the daemon can write the file. */
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
	if (err == -ENOENT && (check->live || op_session_has_packed(check->dir_fd, path)))
		return 0;
	if (err && err != -ENOMEM) {
		struct opk_problem problem = { .path = path, .fault = strerror(-err), .detail = "", .outcome = OPK_NOT_REPAIRED };

		check->nr_left++;
		check->report(&problem, check->arg);
		return 0;
	}
	return err;
}

/* A path that was counted as a file. */
struct counted {
	struct op_hlink link;
	char path[];
};

static bool is_counted(const struct run *run, const char *path)
{
	for (struct op_hlink *link = op_htable_first(&run->counted, op_hash_bytes(0, path, strlen(path))); link;
	     link = op_htable_next(link))
		if (!strcmp(op_container_of(link, struct counted, link)->path, path))
			return true;
	return false;
}

static int note_counted(struct run *run, const char *path)
{
	size_t nr_bytes = strlen(path) + 1;
	struct counted *counted;

	if (!run->check->closed || run->is_beside || is_counted(run, path))
		return 0;
	counted = malloc(sizeof(*counted) + nr_bytes);
	if (!counted)
		return -ENOMEM;
	memcpy(counted->path, path, nr_bytes);
	if (!op_htable_insert(&run->counted, &counted->link, op_hash_bytes(0, path, nr_bytes - 1)))
		return 0;
	free(counted);
	return -ENOMEM;
}

static void free_counted(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct counted, link));
}

/* `is_in_place`: the file is not that of another name, whatever its header says. */
static int check_sample_file(struct run *run, const char *path, const struct op_sample_name *name, bool is_in_place)
{
	struct opk_file file;
	struct opk_header header = { .fault = NULL };
	bool is_there, is_opds;
	int err = open_sample_file(run, path, &file, &is_there);

	if (err || !is_there)
		return err;
	err = file.verdict < OPK_LOST ? note_counted(run, path) : 0;
	if (err) {
		opk_file_free(&file);
		return err;
	}
	is_opds = file.verdict < OPK_LOST && file.header.version == OP_ODB_VERSION;
	if (is_opds)
		opk_header_compare(run->images, name, &file.header, &header);
	if (header.identifies && !is_in_place) {
		err = opk_misplaced_add(&run->misplaced, path, &file.header, &header);
		opk_file_free(&file);
		return err;
	}
	if (is_opds)
		mend_all(run, path, &header, &file);
	err = count_file(run, name, &file);
	if (file.verdict == OPK_LOST)
		put_aside(run, path, file.fault, file.offset);
	else if (file.verdict == OPK_FOREIGN)
		leave(run, path, &file);
	else if (file.verdict == OPK_REPARABLE)
		rewrite(run, path, &file);
	opk_file_free(&file);
	return err;
}

/* ---- files at the paths of others ---- */

#define NOT_ITS_PLACE "the header is that of another file"

/* Below cgroup/ or mem/: in no ledger. */
static bool is_beside(const char *path)
{
	return *path != '{';
}

static void report_exchange(struct run *run, struct opk_misplaced *file, int err)
{
	struct opk_problem problem = {
		.path = file->path,
		.fault = NOT_ITS_PLACE,
		.offset = file->header.offset,
		.has_offset = true,
		.detail = file->partner->path,
	};

	file->is_done = true;
	opk_report(run->check, &problem, err);
}

static int check_again(struct run *run, const struct opk_misplaced *file)
{
	run->is_beside = is_beside(file->path);
	return check_sample_file(run, file->path, &file->name, true);
}

/* Exchanges a file and its partner, and checks both again. */
static int exchange(struct run *run, struct opk_misplaced *file)
{
	const struct opk_check *check = run->check;
	int err = check->repair ? opk_file_exchange(check->dir_fd, file->path, file->partner->path) : 0;

	report_exchange(run, file, err);
	report_exchange(run, file->partner, err);
	if (!check->repair || err)
		return 0;
	err = check_again(run, file);
	return err ? err : check_again(run, file->partner);
}

/*
 * A file whose owner path is taken is put aside: to keep it would make up samples of another image
 * or event.
 */
static int check_misplaced(struct run *run)
{
	int err = 0;

	if (run->misplaced.nr)
		err = opk_misplaced_find(&run->misplaced, run->images, run->check->dir_fd);
	for (size_t i = 0; i < run->misplaced.nr && !err; i++) {
		struct opk_misplaced *file = &run->misplaced.files[i];

		if (file->is_done)
			continue;
		if (file->partner)
			err = exchange(run, file);
		else if (file->owner)
			run->found.changed |=
				opk_put_aside(run->check, file->path, NOT_ITS_PLACE, file->header.offset, file->owner);
		else
			err = check_again(run, file);
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

/* Somebody has made directories in each other. The path is too long for opd, and for a repair. */
static void skip_dir(const char *path, int why, void *arg)
{
	struct run *run = arg;
	struct opk_problem problem = {
		.path = path,
		.fault = "a directory whose path is longer than that of any sample file",
		.detail = "what is in it is not checked",
	};

	if (why == -ENAMETOOLONG)
		opk_report(run->check, &problem, why);
	else if (!run->unread)
		run->unread = why;
}

/* Moves the files, and checks them under their new names. */
static int move_unnamed(struct run *run)
{
	int err = 0;

	run->found.changed |= opk_unnamed_move(&run->unnamed, run->check);
	for (size_t i = 0; i < run->unnamed.nr && run->check->repair && !err; i++) {
		run->is_beside = is_beside(run->unnamed.files[i].wanted);
		err = check_path(run, run->unnamed.files[i].wanted);
	}
	return err;
}

static int check_packed_file(struct run *run, const struct op_pack *pack, uint32_t index)
{
	struct op_sample_name name;
	struct opk_file file;
	char path[PATH_MAX], *storage;
	int err = op_pack_path(pack, index, path);

	/* A file hides what the pack has, also one that was packed since it was counted. */
	if (err || is_counted(run, path) || !faccessat(run->check->dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW))
		return err;
	err = op_unmangle(path, &name, &storage, NULL);
	if (err)
		return err == -EINVAL ? -EBADMSG : err;
	err = opk_file_check(run->check->dir_fd, path, OPK_WRITTEN, &file);
	if (!err) {
		err = file.verdict == OPK_SOUND ? count_file(run, &name, &file) : -EBADMSG;
		opk_file_free(&file);
		run->check->nr_files++;
		run->check->progress(run->check->nr_files, run->check->arg);
	}
	free(storage);
	return err == -ENOENT && run->check->live ? 0 : err;
}

static int check_pack(struct run *run)
{
	struct op_pack pack;
	int err = op_pack_open(run->check->dir_fd, OP_SESSION_PACKED, &pack);

	run->is_beside = false;
	if (!err) {
		err = op_pack_check(&pack);
		for (uint32_t i = 0; i < pack.nr_files && !err; i++)
			err = check_packed_file(run, &pack, i);
		op_pack_close(&pack);
	}
	if (err == -EBADMSG)
		put_aside(run, OP_SESSION_PACKED, "a damaged pack of sample files", 0);
	return err == -ENOENT || err == -EBADMSG ? 0 : err;
}

static int check_files(struct run *run)
{
	const struct op_session_bad_paths bad_paths = { skip_dir, run };
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++) {
		if (part->kind != OP_PART_SAMPLES)
			continue;
		if (opk_is_other(run->check, part->name, S_IFDIR)) {
			put_aside(run, part->name, "not a directory", 0);
			continue;
		}
		run->is_beside = is_beside(part->name);
		err = op_session_walk_all(run->check->dir_fd, part->name, visit, run, &bad_paths);
		if (!err)
			err = run->unread;
	}
	if (err)
		return err;
	err = check_pack(run);
	if (err)
		return err;
	err = move_unnamed(run);
	return err ? err : check_misplaced(run);
}

/* ---- files with records ---- */

/* A copy takes its place: the file may have another name, which somebody else needs. */
static int give_part_back(const struct run *run, const struct op_session_part *part)
{
	int dir_fd = run->check->dir_fd, fd, err = op_file_copy_below(dir_fd, part->name, OPK_FILE_NEW);
	uint64_t dir_bytes;

	if (err)
		return err;
	fd = op_file_open_below(dir_fd, OPK_FILE_NEW, O_RDONLY, 0);
	err = fd < 0 ? fd : op_file_inherit_owner(dir_fd, fd);
	if (!err && fchmod(fd, PART_MODE) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_file_publish_below(dir_fd, OPK_FILE_NEW, part->name, &dir_bytes);
	if (err)
		op_file_unlink_below(dir_fd, OPK_FILE_NEW);
	return err;
}

static void check_part_access(const struct run *run, const struct op_session_part *part)
{
	struct opk_problem problem = { .path = part->name, .detail = "" };

	problem.fault = opk_access_fault(run->check, part->name);
	if (problem.fault)
		opk_report(run->check, &problem, run->check->repair ? give_part_back(run, part) : 0);
}

static int recover_part(struct run *run, const struct op_session_part *part)
{
	uint64_t nr_dropped;
	int err = part->recover ? part->recover(run->check->dir_fd, part->name, OPK_FILE_TMP, &nr_dropped) : -ENOTSUP;

	run->found.changed |= !err;
	return err;
}

static void report_records(struct run *run, const struct op_session_part *part, const struct op_part_reading *reading)
{
	char fault[96], detail[96];
	struct opk_problem problem = {
		.path = part->name, .fault = fault, .offset = reading->damaged_offset, .has_offset = true, .detail = detail
	};

	run->check->nr_dropped += reading->nr_damaged;
	if (!reading->nr_damaged)
		return;
	snprintf(fault, sizeof(fault), "a %s is damaged", part->record);
	snprintf(detail, sizeof(detail), "%" PRIu64 " %ss are whole, %" PRIu64 " are not", reading->nr_whole, part->record,
		 reading->nr_damaged);
	opk_report(run->check, &problem, run->check->repair ? recover_part(run, part) : 0);
}

/* The images that records name. */
struct named_images {
	const struct op_dcookie_table *images;
	uint64_t nr_without_row;
};

static void see_image(uint64_t cookie, void *arg)
{
	struct named_images *named = arg;

	named->nr_without_row += named->images && !op_dcookie_has(named->images, cookie);
}

static int check_part(struct run *run, const struct op_session_part *part)
{
	struct named_images named = { .images = run->images };
	struct op_part_reading reading = { .sums = &run->found.sums, .see_image = see_image, .arg = &named };
	char text[96];
	int err;

	if (opk_is_other(run->check, part->name, S_IFREG)) {
		put_aside(run, part->name, "not a regular file", 0);
		return 0;
	}
	err = part->read(run->check->dir_fd, part->name, &reading);
	if (err == -EBADMSG) {
		snprintf(text, sizeof(text), "not a %s", part->noun);
		put_aside(run, part->name, text, 0);
	}
	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	check_part_access(run, part);
	report_records(run, part, &reading);
	snprintf(text, sizeof(text), "the table of images has no rows for %" PRIu64 " of its %ss", named.nr_without_row,
		 part->record);
	if (named.nr_without_row && !run->check->live)
		opk_note(run->check, part->name, text);
	return 0;
}

static int check_parts(struct run *run)
{
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++)
		if (part->read)
			err = check_part(run, part);
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

static void report_images(struct run *run, const struct op_dcookie_reading *reading)
{
	struct opk_problem problem = { .path = OP_DCOOKIE_FILE, .detail = "" };

	problem.fault = opk_access_fault(run->check, OP_DCOOKIE_FILE);
	if (!run->check->live && (reading->nr_bad || reading->is_torn)) {
		problem.fault = "the table of images has invalid lines";
		problem.detail = reading->complaint ? reading->complaint : "the last line is torn";
	}
	if (problem.fault)
		opk_report(run->check, &problem, run->check->repair ? rewrite_images(run) : 0);
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
		report_images(run, &reading);
	} else {
		op_dcookie_table_free(run->images);
		run->images = NULL;
	}
	if (err && err != -ENOENT && err != -ENOMEM)
		put_aside(run, OP_DCOOKIE_FILE, "not a table of images", 0);
	free(reading.complaint);
	return err == -ENOMEM ? err : 0;
}

static int check_all(struct run *run)
{
	char text[96];
	int err = check_images(run);

	if (err)
		return err;
	err = check_files(run);
	if (err)
		return err;
	err = check_parts(run);
	if (err)
		return err;
	if (run->nr_without_row && !run->check->live) {
		snprintf(text, sizeof(text), "it has no rows for the images of %" PRIu64 " sample files", run->nr_without_row);
		opk_note(run->check, OP_DCOOKIE_FILE, text);
	}
	run->found.has_images = run->images;
	run->found.images = run->images;
	run->found.shares = &run->shares;
	return run->has_foreign ? 0 : opk_ledger_check(run->check, &run->found);
}

int opk_session_check(struct opk_check *check)
{
	struct run run = { .check = check };
	int err;

	opk_check_leftovers(check);
	err = check_all(&run);
	op_dcookie_table_free(run.images);
	op_session_ledger_free(&run.found.sums);
	opk_shares_free(&run.shares);
	op_htable_visit(&run.counted, free_counted, NULL);
	op_htable_free(&run.counted);
	opk_misplaced_free(&run.misplaced);
	opk_unnamed_free(&run.unnamed);
	return err;
}
