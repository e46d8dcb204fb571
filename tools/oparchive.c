/* SPDX-License-Identifier: GPL-3.0-or-later */
/* oparchive: everything that is needed to read a profile on another host, in one directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/dcookie.h"
#include "libop/session.h"
#include "libop/session_ledger.h"
#include "tools/archive_check.h"
#include "tools/archive_copy.h"
#include "tools/archive_kernel.h"
#include "tools/archive_writer.h"
#include "tools/child.h"
#include "tools/image_cache.h"
#include "tools/interrupt.h"
#include "tools/object_look.h"
#include "tools/option_values.h"
#include "tools/packages.h"
#include "tools/report_log.h"
#include "tools/selection.h"

#define STANDARD_DIR "/" OPR_ARCHIVE_SESSIONS
#define DEBUG_SUBDIR ".debug"

struct options {
	int list_files, exclude_dependent;
	char *session_dir, *root, *output_dir, *check, *since, *until; /* NULL: not given */
	struct opr_words image_path, words;
};

#define FIELD(name) offsetof(struct options, name)

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
	.arguments = "[OPTION...] [PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

struct run {
	const struct options *options;
	struct opr_selection selection;
	struct opr_image_cache images;
	struct opr_archive_writer writer;
	size_t nr_left_out;
};

static void note_left_out(struct run *run, const char *path)
{
	opr_archive_note(&run->writer, "left-out", path);
	run->nr_left_out++;
}

/* The archive has another file there, or says that there was none, with an earlier session, whose reports are to stay what they are. */
static void leave_other(struct run *run, const char *path, const char *why)
{
	opr_warn("%s: %s in %s, from an earlier session, and that stays: it is left out; archive this session into another "
		 "directory",
		 path, why, run->options->output_dir);
	opr_archive_note(&run->writer, "other", path);
	run->nr_left_out++;
}

/* Behind the warning of a file that the caller may not read: who may. */
static void write_remedy(int err, const char *path, char *remedy, size_t nr_bytes)
{
	const struct passwd *owner;
	struct stat st;

	*remedy = '\0';
	if ((err != -EACCES && err != -EPERM) || !geteuid())
		return;
	owner = stat(path, &st) || !st.st_uid || st.st_uid == geteuid() || !(st.st_mode & S_IRUSR) ? NULL : getpwuid(st.st_uid);
	snprintf(remedy, nr_bytes, "; root%s%s can read it: run oparchive as root", owner ? " and its owner " : "",
		 owner ? owner->pw_name : "");
}

/* What cannot be read is left out, with a warning: a report has to do without it at home, too. The archive says so, and the program ends with 1. */
static int warn_left_out(struct run *run, int err, const char *path)
{
	char remedy[128];

	if (!err || opr_archive_is_over(err))
		return err;
	if (err == -EEXIST) {
		leave_other(run, path, "another file has its place");
		return 0;
	}
	write_remedy(err, path, remedy, sizeof(remedy));
	if (err == -EFBIG)
		opr_warn("%s has more than %llu bytes of holes, and no ELF headers that name an end before them: it is left out",
			 path, OPR_HOLE_BYTES_MAX);
	else
		opr_warn("%s cannot be read (%s): it is left out%s", path, strerror(-err), remedy);
	note_left_out(run, path);
	return 0;
}

static int add(struct run *run, const char *path, const char *name)
{
	return warn_left_out(run, opr_archive_add(&run->writer, path, name), path);
}

/* ---- images ---- */

/* Where gdb(1) would look for it in the archive: at its own path, and beside the image. */
static int add_debug_file(struct run *run, const struct opr_object *object, const char *name)
{
	const char *root = run->options->root ? run->options->root : "", *slash = strrchr(name, '/');
	const char *path = object->debug_file, *link = object->debug_link;
	size_t skipped = strncmp(path, root, strlen(root)) ? 0 : strlen(root);
	char *beside = NULL;
	int err = add(run, path, path + skipped);

	if (err || !link || !*link || strchr(link, '/') || !slash)
		return err;
	if (asprintf(&beside, "%.*s/" DEBUG_SUBDIR "/%s", (int)(slash - name), name, link) < 0)
		return opr_no_memory();
	err = add(run, path, beside);
	free(beside);
	return err;
}

/* Where the debug file is at home. */
static void note_debug_file(struct run *run, const char *path, const char *name, const char *debug_file)
{
	const char *root = run->options->root ? run->options->root : "";
	const struct opr_archive *archive = run->selection.finder.archive;
	const char *home = archive ? opr_archive_fact(&archive->debug, opr_archive_strip(archive, path)) : NULL;

	if (!home)
		home = opr_archive_strip(archive, strncmp(debug_file, root, strlen(root)) ? debug_file : debug_file + strlen(root));
	opr_archive_note_image(&run->writer, "debug", name, home);
}

static int add_debug_file_of(struct run *run, const char *path, const char *name)
{
	struct opr_object object = { 0 };
	int err = opr_object_look(&object, path, name, run->options->root);

	if (err)
		opr_error(err, "%s: %s", path, strerror(-err));
	if (!err && object.debug_file) {
		note_debug_file(run, path, name, object.debug_file);
		err = add_debug_file(run, &object, name);
	}
	opr_object_free(&object);
	return err;
}

static void note_inode(struct run *run, const char *path, const char *name)
{
	struct stat st;
	char *value = NULL;

	if (!stat(path, &st) && asprintf(&value, "%ju %s", (uintmax_t)st.st_ino, name) >= 0)
		opr_archive_note(&run->writer, "inode", value);
	free(value);
}

/* The name that a reader looks for: the path of a file, of a module where it was found. */
static char *archived_name(const struct run *run, const struct opr_image *image)
{
	const char *root = run->options->root ? run->options->root : "";

	if (image->image_name->kind == OP_IMAGE_KERNEL)
		return strdup(strncmp(image->path, root, strlen(root)) ? image->path : image->path + strlen(root));
	return strndup(image->identity.path,
		       image->identity.kind == OPR_IDENTITY_NONE ? strlen(image->name) : image->identity.path_length);
}

/* The list of symbols of an earlier session, with its addresses and the code that is at them, is as good when it is one of the same kernel. */
static int add_symbols(struct run *run, const char *path, const char *name)
{
	char *there = NULL;
	bool same = false;
	int err;

	if (!opr_earlier_has(&run->writer.earlier, name)) {
		err = add(run, path, name);
		if (!err)
			note_inode(run, path, name);
		return err ? err : opr_archive_add_kernel(&run->writer, path);
	}
	if (asprintf(&there, "%s%s", run->options->output_dir, name) < 0)
		return opr_no_memory();
	err = opr_archive_compare_kernels(there, path, &same);
	if (!err && !same)
		leave_other(run, path, "the symbols of another kernel are");
	free(there);
	return err;
}

/* What a caller sees of it who may not see addresses is of no use to a report. */
static int add_kernel(struct run *run, const char *path, const char *name)
{
	struct opr_symbols symbols = { 0 };
	int err = opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NONE);

	opr_symbols_free(&symbols);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err == -EPERM) {
		opr_warn("%s hides the kernel's addresses (kernel.kptr_restrict), also in the archive: reports from it have no "
			 "kernel symbols%s",
			 path, geteuid() ? "; run oparchive as root" : "");
		note_left_out(run, path);
	}
	return add_symbols(run, path, name);
}

static int add_object(struct run *run, const struct opr_image *image, const char *name)
{
	uint64_t inode = image->identity.kind == OPR_IDENTITY_INODE ? opr_earlier_inode(&run->writer.earlier, name) : 0;
	bool is_other = inode && inode != image->identity.inode;
	int err = is_other ? -EEXIST : opr_archive_add(&run->writer, image->path, name);

	is_other = err == -EEXIST;
	err = warn_left_out(run, err, image->path);
	if (err || is_other)
		return err;
	note_inode(run, image->path, name);
	return add_debug_file_of(run, image->path, name);
}

static int add_image(struct run *run, const struct opr_image *image)
{
	char *name = archived_name(run, image);
	int err = 0;

	if (!name)
		return opr_no_memory();
	if (opr_earlier_says(&run->writer.earlier, "absent", image->name))
		leave_other(run, image->path, "it is said to be absent");
	else if (opr_identity_is_kallsyms(&image->identity))
		err = add_kernel(run, image->path, name);
	else
		err = add_object(run, image, name);
	free(name);
	return err;
}

/* What an archive has of an image, or says that it is absent, is all that it says of it. */
static bool is_of_earlier(const struct run *run, const struct opr_image *image, const char *name)
{
	return opr_earlier_has(&run->writer.earlier, name) || opr_earlier_says(&run->writer.earlier, "absent", image->name);
}

/* Asks for the packages of all images, those of modules that are nowhere excepted; of images in an archive that was asked where that was made. */
static int find_packages(const struct run *run, char **names, const char **paths, char **packages)
{
	const struct opr_image_cache *images = &run->images;
	const struct opr_archive *archive = run->selection.finder.archive;

	for (size_t i = 0; i < images->nr_images; i++) {
		const struct opr_image *image = &images->images[i];
		const char *fact;

		if (image->state == OPR_IMAGE_HAS_NO_FILE || (image->image_name->kind == OP_IMAGE_KERNEL && !image->path))
			continue;
		names[i] = archived_name(run, image);
		if (!names[i])
			return -ENOMEM;
		if (!archive && !run->options->root)
			paths[i] = image->path ? image->path : names[i];
		fact = archive ? opr_archive_fact(&archive->packages, names[i]) : NULL;
		packages[i] = fact ? strdup(fact) : NULL;
		if (fact && !packages[i])
			return -ENOMEM;
	}
	return archive ? 0 : opr_packages_find(paths, images->nr_images, packages);
}

/* Which packages would help is known here alone. */
static int note_packages(struct run *run)
{
	size_t nr_images = run->images.nr_images;
	char **names = calloc(nr_images + 1, sizeof(*names)), **packages = calloc(nr_images + 1, sizeof(*packages));
	const char **paths = calloc(nr_images + 1, sizeof(*paths));
	int err = names && packages && paths ? find_packages(run, names, paths, packages) : -ENOMEM;

	for (size_t i = 0; names && packages && i < nr_images; i++) {
		if (!err && names[i] && packages[i] && !is_of_earlier(run, &run->images.images[i], names[i]))
			opr_archive_note_image(&run->writer, "package", names[i], packages[i]);
		free(names[i]);
		free(packages[i]);
	}
	free(names);
	free(packages);
	free(paths);
	return err ? opr_no_memory() : 0;
}

/* What an archive says of an image that it has not is not about this host. */
static int tell_absent(struct run *run, const struct opr_image *image)
{
	bool unreadable = image->state == OPR_IMAGE_UNREADABLE;
	char *path = NULL;
	int err;

	if (!unreadable || run->selection.finder.archive) {
		opr_finder_warn(&run->selection.finder, image->state, image->name, &image->identity);
		if (unreadable)
			note_left_out(run, image->name);
		return 0;
	}
	if (asprintf(&path, "%s%.*s", run->options->root ? run->options->root : "", (int)image->identity.path_length,
		     image->identity.path) < 0)
		return opr_no_memory();
	err = warn_left_out(run, -EACCES, path);
	free(path);
	return err;
}

static int note_absent(struct run *run, const struct opr_image *image)
{
	const char *word = opr_image_state_word(image->state);
	char *other = NULL, *value = NULL;

	if (opr_earlier_has(&run->writer.earlier, image->name))
		return tell_absent(run, image);
	if (image->state == OPR_IMAGE_OTHER_KERNEL)
		other = opr_finder_other_kernel(&run->selection.finder, image->name, &image->identity);
	if (asprintf(&value, "%s%s%s", word, other ? " " : "", other ? other : "") >= 0)
		opr_archive_note_image(&run->writer, "absent", image->name, value);
	free(value);
	free(other);
	return tell_absent(run, image);
}

/* Objects of JIT code lie in the session. */
static int add_images(struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->images.nr_images && !err; i++) {
		struct opr_image *image = opr_image_cache_find(&run->images, run->images.images[i].name);

		if (!image)
			return -ENOMEM;
		if (image->path && !opr_is_jit_object(image->image_name, image->name))
			err = add_image(run, image);
		else if (!image->path && image->state != OPR_IMAGE_HAS_NO_FILE)
			err = note_absent(run, image);
	}
	return err;
}

/* ---- sessions ---- */

static int compare_words(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The directories of a session's selected files, sorted: an object of JIT code is wanted when one lies below its own. */
static int collect_paths(const struct run *run, size_t session, struct opr_words *paths)
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
	struct run *run;
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
		err = warn_left_out(copying->run,
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
	err = warn_left_out(copying->run, -ELOOP, shown);
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
	char *shown = NULL, remedy[128];

	path += strncmp(path, "./", 2) ? 0 : 2;
	if (asprintf(&shown, "%s/%s", copying->from->path, path) < 0)
		return;
	if (!opr_words_have(&copying->from->misfits, path)) {
		write_remedy(why, shown, remedy, sizeof(remedy));
		opr_warn("%s cannot be read (%s): it is left out%s", shown, strerror(-why), remedy);
		note_left_out(copying->run, shown);
	}
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
static int note_faults(struct run *run, const struct opr_session *session)
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
static int add_session(struct run *run, size_t session)
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
static int add_common(struct run *run)
{
	static const char *const names[] = { "abi", "samples/oprofiled.log", "samples/operf.log" };
	int err = 0;

	for (size_t i = 0; i < op_array_size(names) && !err; i++) {
		char *from = NULL, *to = NULL;

		if (asprintf(&from, "%s/%s", run->selection.session_dir, names[i]) < 0 ||
		    asprintf(&to, OPR_ARCHIVE_SESSIONS "/%s", names[i]) < 0)
			return opr_no_memory();
		err = opr_archive_add(&run->writer, from, to);
		err = err == -ENOENT || err == -EEXIST ? 0 : warn_left_out(run, err, from);
		free(from);
		free(to);
	}
	return err;
}

static int add_sessions(struct run *run)
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
static int check_home(const struct run *run)
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
static int check_session(const struct run *run, size_t session, struct opr_words *names)
{
	const struct opr_profile *profile = &run->selection.profile;
	char *name = session_name(profile, session);
	int err = name ? 0 : opr_no_memory();

	if (!err && opr_earlier_has_session(&run->writer.earlier, name))
		err = opr_error(-EEXIST, "%s has a session %s: archive it into another directory, or remove that one",
				run->options->output_dir, name);
	if (!err && profile->sessions[session].parent == session && opr_words_have(names, name))
		err = opr_error(
			-EEXIST,
			"more than one of the sessions would be %s in the archive: archive each into a directory of its own", name);
	if (!err && opr_words_add(names, name) < 0)
		err = opr_no_memory();
	free(name);
	return err;
}

static int check_earlier(const struct run *run)
{
	struct opr_words names = { 0 };
	int err = check_home(run);

	for (size_t i = 0; i < run->selection.profile.nr_sessions && !err; i++)
		err = check_session(run, i, &names);
	opr_words_free(&names);
	return err;
}

static int fill(struct run *run)
{
	const struct opr_symbol_options none = { .root = run->options->root };
	int err = opr_image_cache_init(&run->images, &run->selection.profile, &run->selection.finder, &none);

	if (!err)
		err = add_images(run);
	if (!err && run->options->output_dir)
		err = note_packages(run);
	if (!err)
		err = add_sessions(run);
	if (!err)
		err = opr_archive_finish(&run->writer);
	if (!err && run->options->output_dir)
		opr_verbose(OPR_TOPIC_stats, "%" PRIu64 " files, %" PRIu64 " bytes", run->writer.nr_files, run->writer.nr_bytes);
	return err;
}

/* Damaged sample files are in the archive, for whoever can mend them. */
static int end(const struct run *run)
{
	size_t nr_faults = run->nr_left_out + run->writer.nr_cut + opr_profile_nr_left_out(&run->selection.profile);

	if (!nr_faults)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out or damaged, as the warnings say", nr_faults,
			 nr_faults == 1 ? "file is" : "files are");
}

/* Until now there was nothing to remove. */
static int catch_signals(struct run *run)
{
	int err = opr_interrupt_catch(&run->writer.stop);

	if (!err)
		opr_child_stop_with(run->writer.stop);
	return err;
}

static int make_archive(const struct options *options)
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
	struct run run = { .options = options, .writer = { .dir_fd = -1, .lock_fd = -1 } };
	int err;

	umask(077); /* who was kept out by a directory would pass its copy */
	err = opr_selection_open(&run.selection, &selection_options, &options->words);

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

static int check(const struct options *options)
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
	const struct options *options = arg;
	int err = check(options);

	if (err)
		return err;
	return options->check ? opr_archive_check(options->check) : make_archive(options);
}

int main(int argc, const char **argv)
{
	struct options options = { 0 };

	return opr_command_run(&command, argc, argv, &options, &options.words, run);
}
