/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/read_samples.h"

#include <errno.h>

#include "libop/base/atomic.h"
#include "libop/session/memory_view.h"
#include "libop/base/threads.h"
#include "tools/events/cpu_types.h"
#include "tools/common/log.h"

#define KEPT_BYTES_MAX  (64u << 20)
#define FILES_OF_THREAD 16 /* fewer than that are not worth one */

struct opr_reading_result {
	int err;
	struct op_odb_fault fault; /* with -EBADMSG */
};

/* What the threads work on. */
struct work {
	struct opr_profile *profile;
	struct opr_reading_result *results;
	uint64_t next; /* of all threads together */
};

/* So that a file need not be read again to be shown. */
static void keep_samples(struct opr_profile *profile, struct opr_file *file, struct op_odb_samples *samples)
{
	uint64_t nr_bytes = samples->nr_nodes * sizeof(*samples->nodes);

	if (!profile->totals_only && op_fetch_add_relaxed(&profile->nr_kept_bytes, nr_bytes) + nr_bytes <= KEPT_BYTES_MAX) {
		file->kept = *samples;
		return;
	}
	if (!profile->totals_only)
		op_fetch_add_relaxed(&profile->nr_kept_bytes, -nr_bytes);
	op_fetch_add_relaxed(&profile->nr_unkept, 1);
	op_odb_samples_free(samples);
}

static int read_file(struct opr_profile *profile, struct opr_file *file, struct op_odb_fault *ret_fault)
{
	struct op_odb_samples samples;
	int err = op_odb_read(profile->sessions[file->session].dir_fd, file->path, &samples, ret_fault);

	if (err)
		return err;
	file->header = samples.header;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		file->total += samples.nodes[i].value;
	if (!opr_cpu_type(file->header.cpu_type, NULL)) {
		op_odb_samples_free(&samples);
		*ret_fault = (struct op_odb_fault){ "invalid cpu type", offsetof(struct op_odb_header, cpu_type) };
		return -EBADMSG;
	}
	keep_samples(profile, file, &samples);
	return 0;
}

static void read_some(void *arg)
{
	struct work *work = arg;
	size_t i;

	while ((i = op_fetch_add_relaxed(&work->next, 1)) < work->profile->nr_files)
		work->results[i].err = read_file(work->profile, &work->profile->files[i], &work->results[i].fault);
}

int opr_reading_do(struct opr_reading *reading, struct opr_profile *profile)
{
	struct work work = { .profile = profile };

	reading->results = work.results = calloc(profile->nr_files + 1, sizeof(*work.results));
	if (!reading->results)
		return opr_no_memory();
	op_run_threads(op_min_u64(op_nr_cpus(), profile->nr_files / FILES_OF_THREAD), read_some, &work);
	return 0;
}

static int leave_out(struct opr_session *session, const char *path, int err, const struct op_odb_fault *fault)
{
	if (err == -EBADMSG)
		opr_warn("%s: %s/%s (at byte %llu): it is left out" OPR_MENDS, fault->why, session->path, path,
			 (unsigned long long)fault->offset);
	else
		opr_warn("%s/%s: %s: it is left out", session->path, path, strerror(-err));
	return opr_words_add(&session->damaged, path) < 0 ? opr_no_memory() : 0;
}

int opr_reading_take(const struct opr_reading *reading, struct opr_profile *profile, size_t index, bool *ret_sound)
{
	const struct opr_reading_result *result = &reading->results[index];
	const struct opr_file *file = &profile->files[index];
	struct opr_session *session = &profile->sessions[file->session];

	*ret_sound = !result->err;
	if (!result->err)
		return 0;
	if (result->err == -ENOENT)
		return opr_tell_removed(session, file->path);
	if (result->err == -ENOMEM || result->err == -EMFILE || result->err == -ENFILE)
		return opr_error(result->err, "%s/%s: %s", session->path, file->path, strerror(-result->err));
	return leave_out(session, file->path, result->err, &result->fault);
}

void opr_reading_free(struct opr_reading *reading)
{
	free(reading->results);
	reading->results = NULL;
}

int opr_profile_read(const struct opr_profile *profile, struct opr_file *file, struct op_odb_samples *ret_samples)
{
	const struct opr_session *session = &profile->sessions[file->session];
	struct op_odb_fault fault;
	int err;

	if (file->kept.nodes) {
		*ret_samples = file->kept;
		file->kept = (struct op_odb_samples){ 0 };
		return 0;
	}
	err = op_odb_read(session->dir_fd, file->path, ret_samples, &fault);
	if (err == -ENOENT)
		return opr_tell_removed(session, file->path);
	if (err == -EBADMSG)
		return opr_error(err, "%s: %s/%s (at byte %llu)" OPR_MENDS, fault.why, session->path, file->path,
				 (unsigned long long)fault.offset);
	if (err < 0)
		return opr_error(err, "%s/%s: %s", session->path, file->path, strerror(-err));
	return 0;
}
