/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/read_samples.h"

#include <errno.h>

#include "libop/base/atomic.h"
#include "libop/process/threads.h"
#include "libop/session/pack.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/events/cpu_types.h"
#include "tools/profile/session_read.h"

#define KEPT_BYTES_MAX   (64u << 20) /* of the samples of all files */
/* at least: a thread for fewer files costs more than it saves */
#define FILES_PER_THREAD 16

struct result {
	int err;
	struct op_odb_fault fault; /* with -EBADMSG */
};

/* What the threads share. */
struct reading {
	struct opr_profile *profile;
	struct result *results; /* of each file */
	uint64_t next_file;
	uint64_t nr_kept_bytes;
};

static void keep_samples(struct reading *reading, struct opr_file *file, struct op_odb_samples *samples)
{
	uint64_t nr_bytes = samples->nr_nodes * sizeof(*samples->nodes);

	if (!reading->profile->totals_only) {
		/* What is newer is not in the file. */
		if (op_fetch_add_relaxed(&reading->nr_kept_bytes, nr_bytes) + nr_bytes <= KEPT_BYTES_MAX ||
		    reading->profile->earlier) {
			file->kept = *samples;
			file->is_kept = true;
			return;
		}
		op_fetch_add_relaxed(&reading->nr_kept_bytes, -nr_bytes);
	}
	op_fetch_add_relaxed(&reading->profile->nr_unkept, 1);
	op_odb_samples_free(samples);
}

/* Of a window: leaves its samples. */
static int keep_window(const struct opr_profile *profile, const struct opr_file *file, struct op_odb_samples *samples)
{
	const struct opr_window *window = profile->sessions[file->session].window;
	struct op_text below = { 0 };
	int err;

	if (!window)
		return 0;
	opr_session_path_below(profile, file->session, file->path, &below);
	err = below.failed ? -ENOMEM : opr_window_samples(window, op_text_get(&below), samples);
	op_text_free(&below);
	return err;
}

/* Leaves the samples that are newer. */
static int subtract_earlier(struct opr_before *earlier, int dir_fd, const char *path, struct op_odb_samples *samples)
{
	struct opr_count *counts = calloc(samples->nr_nodes + 1u, sizeof(*counts));
	uint32_t nr = 0;
	int err;

	if (!counts)
		return -ENOMEM;
	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		counts[i] = (struct opr_count){ samples->nodes[i].key, samples->nodes[i].value };
	err = opr_before_subtract(earlier, dir_fd, path, counts, samples->nr_nodes);
	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		if (counts[i].count)
			samples->nodes[nr++] = (struct op_odb_node){ .key = counts[i].key, .value = (uint32_t)counts[i].count };
	samples->nr_nodes = nr;
	free(counts);
	return err;
}

static int read_file(struct reading *reading, struct opr_file *file, struct op_odb_fault *ret_fault)
{
	struct op_odb_samples samples;
	int err = op_session_read_samples(reading->profile->sessions[file->session].dir_fd, file->path, &samples, ret_fault);

	if (err && err != -ENOENT &&
	    opr_before_keep(reading->profile->earlier, reading->profile->sessions[file->session].dir_fd, file->path) < 0)
		return -ENOMEM;
	if (err)
		return err;
	err = keep_window(reading->profile, file, &samples);
	if (err) {
		op_odb_samples_free(&samples);
		return err;
	}
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		file->stored += samples.nodes[i].value;
	if (reading->profile->earlier) {
		err = subtract_earlier(reading->profile->earlier, reading->profile->sessions[file->session].dir_fd, file->path,
				       &samples);
		if (err) {
			op_odb_samples_free(&samples);
			return err;
		}
	}
	file->header = samples.header;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		file->total += samples.nodes[i].value;
	if (!opr_cpu_type(file->header.cpu_type, NULL)) {
		op_odb_samples_free(&samples);
		*ret_fault = (struct op_odb_fault){ "invalid cpu type", offsetof(struct op_odb_header, cpu_type) };
		return -EBADMSG;
	}
	keep_samples(reading, file, &samples);
	return 0;
}

static void read_next_files(void *arg)
{
	struct reading *reading = arg;
	size_t i;

	while ((i = op_fetch_add_relaxed(&reading->next_file, 1)) < reading->profile->nr_files) {
		opr_progress_count("reading sample files", i, reading->profile->nr_files);
		reading->results[i].err = read_file(reading, &reading->profile->files[i], &reading->results[i].fault);
	}
}

static const char *repair_hint(const struct op_odb_fault *fault)
{
	return strcmp(fault->why, OP_ODB_OTHER_ORDER) ? OPR_REPAIR_HINT : "";
}

/*
 * After an error with a file. 0 after a warning: the report goes on without the file; else -errno.
 */
static int leave_out(struct opr_session *session, const char *path, const struct result *result)
{
	int err = result->err;

	if (err == -ENOENT)
		return opr_session_warn_removed(session, path);
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return opr_error(err, "%s/%s: %s", session->path, path, strerror(-err));
	if (err == -EBADMSG)
		opr_warn("%s: %s/%s (at byte %llu): it is left out%s", result->fault.why, session->path, path,
			 (unsigned long long)result->fault.offset, repair_hint(&result->fault));
	else
		opr_warn("%s/%s: %s: it is left out", session->path, path, strerror(-err));
	return opr_words_add(&session->damaged, path) < 0 ? opr_no_memory() : 0;
}

/*
 * Drops the files that could not be read. Warnings come in the order of files, whichever thread
 * read them.
 */
static int drop_unreadable(struct opr_profile *profile, const struct result *results)
{
	size_t nr_kept = 0, i;
	int err = 0;

	for (i = 0; i < profile->nr_files && !err; i++) {
		struct opr_file *file = &profile->files[i];
		struct opr_session *session = &profile->sessions[file->session];

		if (results[i].err) {
			err = leave_out(session, file->path, &results[i]);
			opr_file_free(file);
			continue;
		}
		opr_verbose(OPR_TOPIC_sfile, "sample file %s/%s", session->path, file->path);
		profile->files[nr_kept++] = *file;
	}
	for (; i < profile->nr_files; i++)
		opr_file_free(&profile->files[i]);
	profile->nr_files = nr_kept;
	return err;
}

int opr_samples_read(struct opr_profile *profile)
{
	struct reading reading = { .profile = profile,
				   .results = calloc(profile->nr_files + 1, sizeof(*reading.results)) };
	int err;

	if (!reading.results)
		return opr_no_memory();
	op_run_threads(op_min_u64(op_nr_cpus(), profile->nr_files / FILES_PER_THREAD), read_next_files, &reading);
	err = drop_unreadable(profile, reading.results);
	free(reading.results);
	if (!err && !profile->nr_files)
		err = opr_error(-ENOENT, "No sample found: none of the selected sample files can be read");
	return err;
}

int opr_samples_take(const struct opr_profile *profile, struct opr_file *file, struct op_odb_samples *ret_samples)
{
	const struct opr_session *session = &profile->sessions[file->session];
	struct op_odb_fault fault;
	int err;

	if (file->is_kept) {
		*ret_samples = file->kept;
		file->kept = (struct op_odb_samples){ 0 };
		file->is_kept = false;
		return 0;
	}
	err = op_session_read_samples(session->dir_fd, file->path, ret_samples, &fault);
	if (!err && keep_window(profile, file, ret_samples)) {
		op_odb_samples_free(ret_samples);
		return opr_no_memory();
	}
	if (err == -ENOENT)
		return opr_session_warn_removed(session, file->path);
	if (err == -EBADMSG)
		return opr_error(err, "%s: %s/%s (at byte %llu)%s", fault.why, session->path, file->path,
				 (unsigned long long)fault.offset, repair_hint(&fault));
	if (err < 0)
		return opr_error(err, "%s/%s: %s", session->path, file->path, strerror(-err));
	return 0;
}
