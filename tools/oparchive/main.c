/* SPDX-License-Identifier: GPL-3.0-or-later */
/* oparchive: everything that is needed to read a profile on another host, in one directory. */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "tools/oparchive/check.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/program.h"
#include "tools/fetch/debuginfod.h"

#define FIELD(name) offsetof(struct opa_options, name)
#define QUERY(name) FIELD(query.name)

static const struct opr_option rows[] = {
	OPR_SPAN_AT(QUERY),
	{ "check", 0, FIELD(check), opr_take_string, "read the files of an archive again and compare their checksums",
	  "directory" },
	{ "exclude-dependent", 'x', FIELD(query.exclude_dependent), NULL,
	  "exclude libs, kernel, and module samples for applications", NULL },
	{ "image-path", 'p', FIELD(query.naming.image_path), opr_take_words, "comma-separated path to search missing binaries",
	  "path" },
	OPR_SPAN_LAST(QUERY),
	{ "list-files", 'l', FIELD(list_files), NULL, "list the files that would be archived", NULL },
	{ "output-directory", 'o', FIELD(output_dir), opr_take_string, "the directory of the archive", "directory" },
	{ "root", 'R', FIELD(query.naming.root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "session-dir", 0, FIELD(query.session_dir), opr_take_string, "directory that holds the samples", "directory" },
	OPR_SPAN_SINCE(QUERY),
	OPR_SPAN_UNTIL(QUERY),
	{ "verbose", 'V', 0, opr_take_verbose, "print details to stderr", "all,details,debug,bfd,level1,sfile,stats,xml" },
	OPR_SPAN_WINDOW(QUERY),
};

#undef QUERY
#undef FIELD

static const struct opr_command command = {
	.program = "oparchive",
	.arguments = "[PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

/* ---- the archive ---- */

/* Names of JIT objects are paths in the session directory: an archive can have only one. */
static int check_home(const struct opa_run *run)
{
	char *home = realpath(run->report.selection.session_dir, NULL);
	const char *earlier = run->writer.earlier.facts.origin_dir;
	int err = 0;

	if (home && earlier && strcmp(home, earlier))
		err = opr_error(-EEXIST, "the sessions in %s are from %s: archive those in %s into another directory",
				run->options->output_dir, earlier, home);
	free(home);
	return err;
}

/* A session is archived once: an earlier copy is not mixed with a later one. */
static int check_session(const struct opa_run *run, size_t session, struct opr_words *names)
{
	const struct opr_profile *profile = &run->report.selection.profile;
	char *name = opa_session_name(profile, session);
	int err = 0;

	if (!name)
		return opr_no_memory();
	if (opr_earlier_has_session(&run->writer.earlier, name))
		err = opr_error(-EEXIST, "%s is an archive with a session %s: name another directory, or remove %s first",
				run->options->output_dir, name, run->options->output_dir);
	if (!err && profile->sessions[session].parent == session && opr_words_have(names, name))
		err = opr_error(
			-EEXIST,
			"more than one of the sessions would be %s in the archive: archive each into a directory of its own", name);
	if (!err && opr_words_add(names, name) < 0)
		err = opr_no_memory();
	free(name);
	return err;
}

static int check_earlier(const struct opa_run *run)
{
	struct opr_words names = { 0 };
	int err = check_home(run);

	for (size_t i = 0; i < run->report.selection.profile.nr_sessions && !err; i++)
		err = check_session(run, i, &names);
	opr_words_free(&names);
	return err;
}

static int fill(struct opa_run *run)
{
	int err = opr_run_to(&run->report, OPR_STEP_IMAGES);

	if (err)
		return err;
	err = opa_add_images(run);
	if (!err && run->options->output_dir)
		err = opa_note_packages(run);
	if (err)
		return err;
	err = opa_add_stack_images(run);
	if (err)
		return err;
	err = opa_add_sessions(run);
	if (err)
		return err;
	err = opr_archive_finish(&run->writer);
	if (!err && run->options->output_dir)
		opr_verbose(OPR_TOPIC_stats, "%" PRIu64 " files, %" PRIu64 " bytes", run->writer.nr_files, run->writer.nr_bytes);
	return err;
}

/* Damaged sample files are in the archive, too: somebody may repair them. */
static int report_faults(const struct opa_run *run)
{
	size_t nr_faults = run->nr_left_out + run->writer.nr_cut + opr_profile_nr_left_out(&run->report.selection.profile);

	if (!nr_faults)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out or damaged, as the warnings say", nr_faults,
			 nr_faults == 1 ? "file is" : "files are");
}

/* What can be refused before there is an archive. */
static int prepare(struct opa_run *run)
{
	const struct opr_selection *selection = &run->report.selection;
	const struct opa_options *options = run->options;
	int err = opr_run_to(&run->report, OPR_STEP_SELECT);

	if (err)
		return err;
	if (selection->archives && selection->archives->next)
		return opr_error(-EINVAL, "archive: names several archives: archive each into a directory of its own");
	err = opr_run_to(&run->report, OPR_STEP_READ);
	if (err)
		return err;
	if (selection->spec.cgroup.nr_words)
		return opr_error(-EINVAL, "cgroup: selects samples of reports only; an archive contains whole sessions: leave "
					  "out cgroup:");
	err = opr_archive_writer_init(&run->writer, options->list_files ? NULL : options->output_dir, stdout);
	if (!err)
		err = check_earlier(run);
	if (err || !options->output_dir || options->list_files)
		return err;
	/* From here on a signal must not leave half an archive. */
	err = opr_interrupt_catch(&run->writer.stop);
	if (!err)
		opr_child_stop_with(run->writer.stop);
	return err;
}

static int make_archive(const struct opa_options *options)
{
	struct opa_run run = { .options = options,
			       .report = { .query = &options->query, .words = &options->query.words },
			       .writer = { .dir_fd = -1, .lock_fd = -1 } };
	int err;

	/* Files that were downloaded are archived; none is downloaded here. */
	opr_debuginfod_use(&(struct opr_debuginfod_time){ 0 });
	umask(077); /* a copy may not open what the directories of the original close */
	err = prepare(&run);
	if (!err)
		err = fill(&run);
	if (err)
		opr_archive_undo(&run.writer);
	else
		err = report_faults(&run);
	opr_archive_writer_free(&run.writer);
	opr_run_free(&run.report);
	return err;
}

static int check_options(const struct opa_options *options)
{
	char *real = options->output_dir ? realpath(options->output_dir, NULL) : NULL;
	bool is_root = real && !strcmp(real, "/");

	free(real);
	if (!options->output_dir && !options->list_files && !options->check)
		return opr_error(-EINVAL, "specify --output-directory, or --list-files");
	return is_root ? opr_error(-EINVAL, "the output directory must not be /") : 0;
}

static int run(const void *arg)
{
	const struct opa_options *options = arg;
	int err = check_options(options);

	if (err)
		return err;
	return options->check ? opr_archive_check(options->check) : make_archive(options);
}

int main(int argc, const char **argv)
{
	struct opa_options options = { .query = { .callgraph = 1, .any_axes = 1, .whole_sessions = 1 } };

	return opr_command_run(&command, argc, argv, &options, &options.query.words, run);
}
