/* SPDX-License-Identifier: GPL-3.0-or-later */
/* oparchive: everything that is needed to read a profile on another host, in one directory. */
#include "tools/oparchive/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/dcookie.h"
#include "libop/session/list.h"
#include "libop/session/walk.h"
#include "libop/session/ledger_file.h"
#include "tools/oparchive/check.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/program.h"

#define STANDARD_DIR "/" OPR_ARCHIVE_SESSIONS

#define FIELD(name) offsetof(struct opa_options, name)

static const struct opr_option rows[] = {
	{ "check", 0, FIELD(check), opr_take_string, "read the files of an archive again and compare their checksums",
	  "directory" },
	{ "exclude-dependent", 'x', FIELD(exclude_dependent), NULL, "exclude libs, kernel, and module samples for applications",
	  NULL },
	{ "image-path", 'p', FIELD(image_path), opr_take_words, "comma-separated path to search missing binaries", "path" },
	{ "list-files", 'l', FIELD(list_files), NULL, "list the files that would be archived", NULL },
	{ "output-directory", 'o', FIELD(output_dir), opr_take_string, "the directory of the archive", "directory" },
	{ "root", 'R', FIELD(root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "session-dir", 0, FIELD(session_dir), opr_take_string, "directory that holds the samples", "directory" },
	{ "since", 0, FIELD(since), opr_take_string, "sessions taken then or later", "time" },
	{ "until", 0, FIELD(until), opr_take_string, "sessions taken then or earlier", "time" },
	{ "verbose", 'V', 0, opr_take_verbose, "say more, on stderr", "all,debug,bfd,level1,sfile,stats,xml" },
};

#undef FIELD

static const struct opr_command command = {
	.program = "oparchive",
	.arguments = "[PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

/* ---- sessions ---- */

static int compare_words(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The directories of a session's selected files, sorted: an object of JIT code is wanted when one lies below its own. */
static int collect_paths(const struct opa_run *run, size_t session, struct opr_words *paths)
{
	const struct opr_profile *profile = &run->selection.profile;

	for (size_t i = 0; i < profile->nr_files; i++)
		if (profile->files[i].session == session && opr_words_add(paths, profile->files[i].path) < 0)
			return opr_no_memory();
	if (paths->nr_words)
		qsort(paths->words, paths->nr_words, sizeof(*paths->words), compare_words);
	return 0;
}

/* True when a file of a session belongs to the profile: `path` is below the session. The samples by cgroup are those of a whole session. */
static bool is_wanted(const struct opr_words *selected, bool whole, const char *path)
{
	const char *slash = strrchr(path, '/');
	bool sample = !strncmp(path, "{root}/", 7) || !strncmp(path, "{kern}/", 7);

	if (whole)
		return true; /* also what is new since it was listed */
	if (!sample)
		return strncmp(path, OP_CGROUP_DIR "/", strlen(OP_CGROUP_DIR) + 1) != 0;
	if (bsearch(&path, selected->words, selected->nr_words, sizeof(*selected->words), compare_words))
		return true;
	for (size_t i = 0; i < selected->nr_words && !strcmp(path + strlen(path) - op_min_u64(strlen(path), 3), ".jo"); i++)
		if (slash && !strncmp(selected->words[i], path, (size_t)(slash - path) + 1))
			return true;
	return false;
}

/* A session on its way into the archive. */
struct copying {
	struct opa_run *run;
	const struct opr_session *from;
	char *name; /* in the archive */
	struct opr_words selected;
	bool whole;
};

static int add_path(const struct copying *copying, const char *path)
{
	char *archived = NULL, *shown = NULL;
	int err = 0;

	if (asprintf(&archived, OPR_ARCHIVE_SAMPLES "/%s/%s", copying->name, path) < 0 ||
	    asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		err = opr_no_memory();
	if (!err)
		err = opa_warn_left_out(copying->run,
					opr_archive_add_below(&copying->run->writer, copying->from->dir_fd, path, shown, archived),
					shown);
	free(shown);
	free(archived);
	return err;
}

/* Whether a path is that of a sample file or, beside them, of anything else that belongs to a session; what has no name of a sample file was told. */
static bool belongs_here(const char *path)
{
	struct op_sample_name name;
	char *storage;

	if ((strncmp(path, "{root}/", 7) && strncmp(path, "{kern}/", 7)) || op_session_is_jit_object(path))
		return true;
	if (op_unmangle(path, &name, &storage, NULL) < 0)
		return false;
	free(storage);
	return true;
}

/* Nothing is followed, which might lead to a file that is not to be copied. */
static int leave_link(const struct copying *copying, const char *path)
{
	char *shown = NULL;
	struct stat st;
	int err = 0;

	if (fstatat(copying->from->dir_fd, path, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		return opr_no_memory();
	err = opa_warn_left_out(copying->run, -ELOOP, shown);
	free(shown);
	return err;
}

static int add_entry(const char *path, unsigned char type, void *arg)
{
	const struct copying *copying = arg;

	path += strncmp(path, "./", 2) ? 0 : 2;
	if ((type != DT_REG && type != DT_LNK) || !strcmp(path, OP_DCOOKIE_FILE) || !strcmp(path, OP_SESSION_LEDGER) ||
	    !is_wanted(&copying->selected, copying->whole, path) || !belongs_here(path))
		return 0;
	return type == DT_LNK ? leave_link(copying, path) : add_path(copying, path);
}

/* One that was in the way when the sample files were listed was told then. */
static void leave_out_dir(const char *path, int why, void *arg)
{
	const struct copying *copying = arg;
	char *shown = NULL;

	path += strncmp(path, "./", 2) ? 0 : 2;
	if (asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		return;
	if (!opr_words_have(&copying->from->misfits, path))
		opa_tell_left_out(copying->run, why, shown);
	free(shown);
}

/* What not every session has. */
static int add_part(const struct copying *copying, const char *name)
{
	return faccessat(copying->from->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : add_path(copying, name);
}

/*
 * A daemon may write it, and close it meanwhile: it is read where it is, whatever it is called by then. The ledger is the first: when that says that the session is closed nothing in it
 * changes any more, and when it says that it is open the files have what it says, and more. Images that the files name are in the table when it is the last.
 */
static int copy_session(struct copying *copying)
{
	const struct op_session_misfits misfits = { leave_out_dir, copying };
	int err = add_part(copying, OP_SESSION_LEDGER);

	if (!err)
		err = op_session_walk_sound(copying->from->dir_fd, ".", add_entry, copying, &misfits);
	return err ? err : add_part(copying, OP_DCOOKIE_FILE);
}

/* The name that a session has in the archive: for one that was named by a path its last part; a part of a session is below it. */
static char *session_name(const struct opr_profile *profile, size_t session)
{
	const struct opr_session *whole = &profile->sessions[profile->sessions[session].parent];
	const char *slash = strrchr(whole->path, '/');

	return strdup(slash ? slash + 1 : whole->path);
}

/* What no report shows. */
static int note_faults(struct opa_run *run, const struct opr_session *session)
{
	const struct opr_words *const lists[] = { &session->misfits, &session->damaged };

	for (size_t i = 0; i < op_array_size(lists); i++) {
		for (size_t j = 0; j < lists[i]->nr_words; j++) {
			char *path = NULL;

			if (asprintf(&path, "%s/%s", session->path, lists[i]->words[j]) < 0)
				return opr_no_memory();
			opr_archive_note(&run->writer, "left-out", path);
			free(path);
		}
	}
	return 0;
}

/* Also what lies beside the samples: the tables of images and the ledger. Those are the whole session's when a part of it is selected. */
static int add_session(struct opa_run *run, size_t session)
{
	const struct opr_profile *profile = &run->selection.profile;
	struct copying copying = { .run = run, .from = &profile->sessions[session], .name = session_name(profile, session) };
	int err = copying.name ? collect_paths(run, session, &copying.selected) : opr_no_memory();

	copying.whole = copying.selected.nr_words + copying.from->damaged.nr_words == copying.from->list.nr_files;
	if (!err && copying.whole)
		opr_archive_note(&run->writer, "whole", copying.name);
	if (!err)
		err = note_faults(run, copying.from);
	if (!err)
		err = copy_session(&copying);
	opr_words_free(&copying.selected);
	free(copying.name);
	return err;
}

/* Files beside the sessions, which some do not have. */
static int add_common(struct opa_run *run)
{
	static const char *const names[] = { "abi", "samples/oprofiled.log", "samples/operf.log" };
	int err = 0;

	for (size_t i = 0; i < op_array_size(names) && !err; i++) {
		char *from = NULL, *to = NULL;

		if (asprintf(&from, "%s/%s", run->selection.session_dir, names[i]) < 0 ||
		    asprintf(&to, OPR_ARCHIVE_SESSIONS "/%s", names[i]) < 0)
			return opr_no_memory();
		err = opr_archive_add(&run->writer, from, to);
		err = err == -ENOENT || err == -EEXIST ? 0 : opa_warn_left_out(run, err, from);
		free(from);
		free(to);
	}
	return err;
}

static int add_sessions(struct opa_run *run)
{
	const struct opr_profile *profile = &run->selection.profile;
	char *home = realpath(run->selection.session_dir, NULL);
	int err = home ? add_common(run) : opr_error(-errno, "%s: %s", run->selection.session_dir, strerror(errno));

	if (home)
		opr_archive_note(&run->writer, "session-dir", home);
	for (size_t i = 0; i < profile->nr_sessions && !err; i++)
		err = add_session(run, i);
	if (!err && home && run->options->output_dir && strcmp(home, STANDARD_DIR))
		fprintf(stderr, "NOTE: the samples were in %s; in the archive they are in %s" STANDARD_DIR ".\n", home,
			run->options->output_dir);
	free(home);
	return err;
}

/* ---- the archive ---- */

/* Objects of JIT code have the name of their path, which there is but one home for. */
static int check_home(const struct opa_run *run)
{
	char *home = realpath(run->selection.session_dir, NULL);
	const char *earlier = run->writer.earlier.facts.home;
	int err = 0;

	if (home && earlier && strcmp(home, earlier))
		err = opr_error(-EEXIST, "the sessions in %s are from %s: archive those in %s into another directory",
				run->options->output_dir, earlier, home);
	free(home);
	return err;
}

/* A session is archived once: what is there of it is not mixed with what it has become. */
static int check_session(const struct opa_run *run, size_t session, struct opr_words *names)
{
	const struct opr_profile *profile = &run->selection.profile;
	char *name = session_name(profile, session);
	int err = name ? 0 : opr_no_memory();

	if (!err && opr_earlier_has_session(&run->writer.earlier, name))
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

	for (size_t i = 0; i < run->selection.profile.nr_sessions && !err; i++)
		err = check_session(run, i, &names);
	opr_words_free(&names);
	return err;
}

static int fill(struct opa_run *run)
{
	const struct opr_symbol_options none = { .root = run->options->root };
	int err = opr_image_cache_init(&run->images, &run->selection.profile, &run->selection.finder, &none);

	if (!err)
		err = opa_add_images(run);
	if (!err && run->options->output_dir)
		err = opa_note_packages(run);
	if (!err)
		err = add_sessions(run);
	if (!err)
		err = opr_archive_finish(&run->writer);
	if (!err && run->options->output_dir)
		opr_verbose(OPR_TOPIC_stats, "%" PRIu64 " files, %" PRIu64 " bytes", run->writer.nr_files, run->writer.nr_bytes);
	return err;
}

/* Damaged sample files are in the archive, for whoever can mend them. */
static int end(const struct opa_run *run)
{
	size_t nr_faults = run->nr_left_out + run->writer.nr_cut + opr_profile_nr_left_out(&run->selection.profile);

	if (!nr_faults)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out or damaged, as the warnings say", nr_faults,
			 nr_faults == 1 ? "file is" : "files are");
}

/* Until now there was nothing to remove. */
static int catch_signals(struct opa_run *run)
{
	int err = opr_interrupt_catch(&run->writer.stop);

	if (!err)
		opr_child_stop_with(run->writer.stop);
	return err;
}

static int make_archive(const struct opa_options *options)
{
	const struct opr_selection_options selection_options = {
		.session_dir = options->session_dir,
		.root = options->root,
		.image_path = &options->image_path,
		.exclude_dependent = options->exclude_dependent,
		.callgraph = true,
		.any_axes = true,
		.since = options->since,
		.until = options->until,
	};
	struct opa_run run = { .options = options, .writer = { .dir_fd = -1, .lock_fd = -1 } };
	int err;

	umask(077); /* who was kept out by a directory would pass its copy */
	err = opr_selection_open(&run.selection, &selection_options, &options->words);
	if (!err)
		err = opr_selection_read(&run.selection);
	if (!err && run.selection.spec.cgroup.nr_words)
		err = opr_error(-EINVAL, "cgroup: is for reports: an archive has whole sessions");
	if (!err)
		err = opr_archive_writer_init(&run.writer, options->list_files ? NULL : options->output_dir, stdout);
	if (!err)
		err = check_earlier(&run);
	if (!err && options->output_dir && !options->list_files)
		err = catch_signals(&run);
	if (!err)
		err = fill(&run);
	if (err)
		opr_archive_undo(&run.writer);
	else
		err = end(&run);
	opr_archive_writer_free(&run.writer);
	opr_image_cache_free(&run.images);
	opr_selection_free(&run.selection);
	return err;
}

static int check(const struct opa_options *options)
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
	int err = check(options);

	if (err)
		return err;
	return options->check ? opr_archive_check(options->check) : make_archive(options);
}

int main(int argc, const char **argv)
{
	struct opa_options options = { 0 };

	return opr_command_run(&command, argc, argv, &options, &options.words, run);
}
