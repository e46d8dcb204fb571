/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opimport: makes a session from a recording of perf, or converts a sample file of another machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/control/config.h"
#include "libop/perf/data_open.h"
#include "libop/process/guard.h"
#include "pipeline/stacks/helper_kinds.h"
#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/common/progress.h"
#include "tools/common/session_dir.h"
#include "tools/opimport/opimport.h"
#include "tools/opimport/witness.h"

#define MAX_OPEN_FILES   1024u
#define FILES_RESERVED   64u /* descriptors for everything but sample files and rings */
#define MAX_IMAGES       100000u
#define PROGRESS_RECORDS 65536u

static const struct op_helper_kind helper_kinds[] = OPD_HELPER_KINDS("opimport-looker", NULL, opd_tabler_begin);

static const struct op_stop *stop;

/* Raises the limit of descriptors. Half of them is for sample files. */
static size_t raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FILES_RESERVED;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return op_min_u64(MAX_OPEN_FILES,
			  limit.rlim_max > 3 * (rlim_t)FILES_RESERVED ? (limit.rlim_max - FILES_RESERVED) / 2 : FILES_RESERVED);
}

/* O_NONBLOCK: open(2) of a FIFO waits for a writer, and signals could not end it. */
static int open_file(const char *file)
{
	int fd, err;

	if (!strcmp(file, "-"))
		return STDIN_FILENO;
	fd = op_sys_openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	err = fd < 0 ? 0 : op_sys_fcntl(fd, F_SETFL, O_RDONLY);
	if (err) {
		close(fd);
		fd = err;
	}
	return fd < 0 ? opr_error(fd, "cannot open %s: %s", file, strerror(-fd)) : fd;
}

static const char *shown_name(const struct opi_options *options)
{
	return strcmp(options->file, "-") != 0 ? options->file : "standard input";
}

static int open_data(const struct opi_options *options, int fd, struct op_perf_data **ret_data)
{
	const char *why = NULL;
	int err = op_perf_data_open(fd, stop, ret_data, &why);

	if (err == -EINTR)
		return opr_error(err, "interrupted: nothing was kept");
	if (err == -EBADMSG)
		return opr_error(err, "%s: %s", shown_name(options), why);
	if (err && why)
		return opr_error(err, "cannot read %s: %s: %s", shown_name(options), why, strerror(-err));
	return err ? opr_error(err, "cannot read %s: %s", shown_name(options), strerror(-err)) : 0;
}

static int explain(int err)
{
	if (err == -EINTR)
		return opr_error(err, "interrupted: nothing was kept");
	if (err == -ENOSPC || err == -EDQUOT)
		return opr_error(
			err,
			"cannot count the samples: %s: nothing was kept; make room there, or name another place with --session-dir",
			strerror(-err));
	return opr_error(err, "cannot count the samples: %s: nothing was kept", strerror(-err));
}

/* This record of the kernel's text may say that the kernel runs here. */
static int name_kernel(const struct op_perf_record *record, const struct op_perf_features *features, struct opi_import *import)
{
	const char *image = opi_kernel_of_record(features, record->header);

	return image ? opi_import_name_kernel(import, image) : 0;
}

static int read_records(const struct opi_options *options, struct op_perf_data *data, struct opi_import *import)
{
	const struct op_perf_events *events = op_perf_data_events(data);
	struct op_perf_record record;
	uint64_t nr_records = 0;
	int result;

	while ((result = op_perf_data_next(data, &record)) > 0) {
		int err = op_stop_is_set(stop) ? -EINTR : 0;

		if (op_unlikely(record.kind == OP_PERF_KERNEL && !options->vmlinux && !err))
			err = name_kernel(&record, op_perf_data_features(data), import);
		if (!err)
			err = opi_import_take(import, events, &record);
		if (op_unlikely(err)) {
			opr_progress_end();
			return explain(err);
		}
		if (op_unlikely(!(++nr_records % PROGRESS_RECORDS)))
			opi_progress(data);
	}
	opr_progress_end();
	if (result == -ENOMEM)
		return opr_no_memory();
	if (!result)
		result = opi_import_finish(import, events);
	if (!result && op_stop_is_set(stop))
		result = -EINTR;
	return result ? explain(result) : 0;
}

/* Before there is much memory. Events of a pipe come later. NULL: none is needed, or can be had. */
static struct op_nursery *start_nursery(const struct op_perf_data *data)
{
	struct op_nursery *nursery = NULL;
	int err;

	if (!op_perf_data_is_pipe(data) && !opi_stacks_are_in(op_perf_data_events(data)))
		return NULL;
	opd_tabler_find_program();
	err = op_nursery_start(helper_kinds, op_array_size(helper_kinds), &nursery);
	if (err)
		opr_warn("cannot start a process: %s: stacks of samples end where frame pointers do", strerror(-err));
	return nursery;
}

/* Later, a lack of room only merges sample files. Without any room now, it is useless. */
static int check_room(const struct opi_session *session, uint64_t keep_free_bytes)
{
	struct statvfs vfs;

	if (!keep_free_bytes || op_sys_statvfs(session->work_fd, &vfs) < 0 ||
	    (uint64_t)vfs.f_bavail * vfs.f_frsize > keep_free_bytes)
		return 0;
	return opr_error(-ENOSPC,
			 "the file system of %s has no more room left than SessionKeepFree (%llu bytes): make room there, or name "
			 "another place with "
			 "--session-dir",
			 session->dir, (unsigned long long)keep_free_bytes);
}

static int open_import(const struct opi_options *options, const struct op_perf_data *data, const struct opi_session *session,
		       size_t max_open, const struct opi_witness *witness, struct op_nursery *nursery,
		       struct opi_import **ret_import)
{
	const struct op_setup *separation = &options->separation;
	struct opi_import_config config = {
		.features = op_perf_data_features(data),
		.stop = stop,
		.session_fd = session->work_fd,
		.witness = &witness->witness,
		.vmlinux = options->vmlinux ? options->vmlinux : opi_kernel_of_file(op_perf_data_features(data)),
		.separate_lib = separation->separate_lib,
		.separate_kernel = separation->separate_kernel,
		.separate_thread = separation->separate_thread,
		.separate_cpu = separation->separate_cpu,
		.separate_name = separation->separate_name,
		.max_open = max_open,
		.max_images = MAX_IMAGES,
		.recorded_ns = witness->recorded_at > 0 ? (uint64_t)witness->recorded_at * OP_NS_PER_S : op_sys_wall_ns(),
		.round_records = op_perf_data_nr_files(data) > 1 ? OPI_IMPORT_ROUND_RECORDS : 0,
		.stacks = { .nursery = nursery,
			    .is_own_kernel = opi_kernel_of_file(op_perf_data_features(data)),
			    .witness = witness },
	};
	int err = opr_session_limits(&config.max_files, &config.keep_free_bytes, &config.max_stack_bytes);

	if (!err)
		err = check_room(session, config.keep_free_bytes);
	if (err)
		return err;
	err = opi_import_open(&config, ret_import);
	return err ? opr_error(err, "cannot begin: %s", strerror(-err)) : 0;
}

/* 0; -EBADMSG when the file is damaged and the session has what could be read. */
static int import_data(const struct opi_options *options, int fd, struct op_perf_data *data, struct opi_session *session,
		       size_t max_open)
{
	struct op_nursery *nursery = start_nursery(data);
	struct opi_import *import = NULL;
	struct opi_witness witness;
	bool is_damaged;
	int err;

	opi_witness_init(&witness, op_perf_data_features(data), fd);
	err = open_import(options, data, session, max_open, &witness, nursery, &import);
	if (!err)
		err = read_records(options, data, import);
	if (!err)
		err = opi_session_publish(session);
	if (err)
		goto out;
	if (!options->quiet)
		opi_report(data, import);
	is_damaged = opi_report_trouble(data, shown_name(options));
	err = opi_report_doubts(data, import, shown_name(options)) || is_damaged ? -EBADMSG : 0;
out:
	opi_import_close(import);
	op_nursery_stop(nursery);
	return err;
}

static int run(const struct opi_options *options)
{
	struct opi_session session = { .dir_fd = -1, .work_fd = -1 };
	struct op_perf_data *data = NULL;
	size_t max_open = raise_files();
	char *dir = NULL;
	int fd = open_file(options->file), err = fd < 0 ? fd : open_data(options, fd, &data);

	if (!err)
		err = op_guard_install();
	if (err)
		goto out;
	for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		if (options->assumed[kind])
			op_perf_data_assume_ibs(data, kind, options->assumed[kind]);
	err = opr_session_dir_choose(options->session_dir, &dir);
	if (err)
		goto out;
	err = opi_session_begin(&session, dir, options->output);
	if (err)
		goto out;
	err = import_data(options, fd, data, &session, max_open);
out:
	opi_session_end(&session);
	op_perf_data_close(data);
	free(dir);
	if (fd > STDIN_FILENO)
		close(fd);
	return err ? err : opr_stdout_flush();
}

int main(int argc, const char **argv)
{
	struct opi_options options = { 0 };
	enum opr_request request;
	int err;

	opr_log_init("opimport");
	err = opi_options_parse(&options, argc, argv, &request);
	if (!err && request == OPR_RUN) {
		err = opr_interrupt_catch(&stop);
		if (!err)
			err = options.abi ? opi_import_foreign(&options) : run(&options);
	}
	opi_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
