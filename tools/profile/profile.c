/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/guard.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/memory_view.h"
#include "libop/odb/odb.h"
#include "tools/profile/read_samples.h"
#include "tools/common/log.h"
#include "tools/profile/session_hint.h"
#include "tools/profile/losses.h"

#define JIT_OBJECT_SUFFIX ".jo"

#define REMEDY                                                                                                                     \
	"--session-dir=DIR reads those of another directory; opcontrol --start takes samples, opcontrol --dump writes what was "   \
	"taken."

char *opr_image_name(const struct op_image_name *image)
{
	struct op_text text = { 0 };

	switch (image->kind) {
	case OP_IMAGE_FILE:
		op_text_add(&text, image->name);
		break;
	case OP_IMAGE_KERNEL:
		op_text_printf(&text, "/%s", image->name);
		break;
	case OP_IMAGE_ANON:
		op_text_printf(&text, "%s (", image->name);
		if (image->tgid || image->start)
			op_text_printf(&text, "tgid:%" PRId32 " ", image->tgid);
		op_text_printf(&text, "range:0x%" PRIx64 "-0x%" PRIx64 ")", image->start, image->end);
		break;
	}
	return op_text_steal(&text);
}

const char *opr_base_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return *name == '/' && slash ? slash + 1 : name;
}

/* ---- sessions ---- */

static char *session_path(const char *session_dir, const char *name)
{
	struct op_text path = { 0 };

	if (*name == '/' || *name == '.')
		op_text_add(&path, name);
	else
		op_text_printf(&path, "%s/samples/%s", session_dir, name);
	return op_text_steal(&path);
}

int opr_tell_removed(const struct opr_session *session, const char *path)
{
	opr_warn("%s%s%s was removed while it was read", session->path, path ? "/" : "", path ? path : "");
	return -ESTALE;
}

/* One that was closed meanwhile has another name only. */
static bool is_removed(const struct opr_session *session)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", session->dir_fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0 || fstat(session->dir_fd, &st) < 0)
		return false;
	path[length] = '\0';
	return !st.st_nlink || strstr(path, "/" OP_SESSION_TMP "/" OP_SESSION_REMOVED);
}

static const char *misfit_words(int why)
{
	switch (-why) {
	case EBADMSG:
		return "not the name of a sample file";
	case EINVAL:
		return "not a regular file";
	case ELOOP:
		return "a symbolic link to a directory, or to itself";
	case ENOENT:
		return "a symbolic link that leads nowhere";
	case EISDIR:
		return "a directory with the name of a sample file, and none in it";
	default:
		return strerror(-why);
	}
}

/* A link that leads nowhere is of no account: the genuine tools pass over it. */
static void leave_out_misfit(const char *path, int why, void *arg)
{
	struct opr_session *session = arg;

	opr_warn("%s/%s: %s: it is left out%s", session->path, path, misfit_words(why),
		 why == -EBADMSG || why == -ENOTDIR ? OPR_MENDS : "");
	if (why != -ENOENT && opr_words_add(&session->misfits, path) < 0)
		opr_no_memory();
}

static int list_session(struct opr_session *session)
{
	const struct op_session_misfits misfits = { leave_out_misfit, session };
	int err = op_session_list_sound(session->dir_fd, &session->list, &misfits);

	if (err == -ENOENT || (!err && is_removed(session)))
		err = opr_tell_removed(session, NULL);
	else if (err < 0)
		opr_error(err, "%s: %s", session->path, strerror(-err));
	return err;
}

static void warn_of_images(const struct opr_session *session, const struct op_dcookie_reading *reading)
{
	if (reading->nr_bad)
		opr_warn("%s/%s: %zu lines of the table of images are passed over", session->path, reading->complaint,
			 reading->nr_bad);
}

/* A session of the genuine tools has no table; one that is damaged is worth a warning, and the names say what they can. */
static int read_images(struct opr_session *session)
{
	struct op_dcookie_reading reading = { 0 };
	int err;

	session->images = op_dcookie_table_new();
	if (!session->images)
		return opr_no_memory();
	err = op_dcookie_table_read(session->images, session->dir_fd, OP_DCOOKIE_FILE, &reading);
	if (!err) {
		warn_of_images(session, &reading);
	} else {
		op_dcookie_table_free(session->images);
		session->images = NULL;
	}
	if (err == -ENOMEM)
		opr_no_memory();
	else if (err && err != -ENOENT)
		opr_warn("%s/%s: the table of images is not used", session->path,
			 reading.complaint ? reading.complaint : OP_DCOOKIE_FILE);
	free(reading.complaint);
	return err == -ENOMEM ? err : 0;
}

/* A daemon that has just begun has written none. */
static bool is_live(const struct opr_session *session)
{
	int fd = openat(session->dir_fd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool live = fd >= 0 && op_session_is_locked_at(fd);

	if (fd >= 0)
		close(fd);
	return live;
}

/* A session of the genuine tools has none, and no table of images. */
static int read_ledger(struct opr_session *session)
{
	unsigned int line = 0;
	int err = op_session_ledger_read(session->dir_fd, &session->ledger, &line);

	session->has_ledger = !err;
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err == -EBADMSG)
		opr_warn("%s/" OP_SESSION_LEDGER
			 ":%u: not a ledger: whether samples were lost, or are gone, is not known" OPR_MENDS,
			 session->path, line);
	else if (err && err != -ENOENT)
		opr_warn("%s/" OP_SESSION_LEDGER ": %s: whether samples were lost, or are gone, is not known", session->path,
			 strerror(-err));
	else if (err && session->images && !is_live(session))
		opr_warn("%s has no ledger: whether samples were lost, or are gone, is not known" OPR_MENDS, session->path);
	return 0;
}

/* Takes the strings over. The session is valid until the next call. */
static struct opr_session *add_session(struct opr_profile *profile, char *path, char *cgroup)
{
	struct opr_session *sessions = reallocarray(profile->sessions, profile->nr_sessions + 1, sizeof(*sessions));
	struct opr_session *session;

	if (!sessions) {
		free(path);
		free(cgroup);
		return NULL;
	}
	profile->sessions = sessions;
	session = &sessions[profile->nr_sessions];
	*session = (struct opr_session){ .path = path, .dir_fd = -1, .cgroup = cgroup, .parent = profile->nr_sessions++ };
	return path ? session : NULL;
}

static int open_cgroup(struct opr_profile *profile, size_t parent, const struct op_session_cgroup *cgroup)
{
	char *path = NULL, *name = strdup(cgroup->path);
	struct opr_session *session;

	if (!name || asprintf(&path, "%s/%s", profile->sessions[parent].path, cgroup->directory) < 0)
		path = NULL;
	session = add_session(profile, path, name);
	if (!session || !session->cgroup)
		return opr_no_memory();
	session->parent = parent;
	session->images = profile->sessions[parent].images;
	session->dir_fd = openat(profile->sessions[parent].dir_fd, cgroup->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (session->dir_fd < 0 && (errno == EACCES || errno == ELOOP || errno == ENOTDIR)) {
		leave_out_misfit(cgroup->directory, -errno, &profile->sessions[parent]);
		return 0;
	}
	if (session->dir_fd < 0)
		return opr_error(-errno, "%s: %s", session->path, strerror(errno));
	return list_session(session);
}

/* The cgroups of a session that are wanted; of the session itself no files are. */
static int open_cgroups(struct opr_profile *profile, size_t parent, const struct opr_spec *spec)
{
	const struct op_session_misfits misfits = { leave_out_misfit, &profile->sessions[parent] };
	struct op_session_cgroups list;
	bool found = false;
	int err = op_session_list_cgroups_sound(profile->sessions[parent].dir_fd, &list, &misfits);

	if (err < 0)
		return opr_error(err, "%s/" OP_CGROUP_DIR ": %s", profile->sessions[parent].path, strerror(-err));
	for (size_t i = 0; i < list.nr_cgroups && !err; i++) {
		if (!opr_spec_match_cgroup(spec, list.cgroups[i].path))
			continue;
		found = true;
		err = open_cgroup(profile, parent, &list.cgroups[i]);
	}
	if (!err && !list.nr_cgroups)
		err = opr_error(-ENOENT, "%s holds no samples by cgroup: opcontrol --separate=cgroup keeps them from then on",
				profile->sessions[parent].path);
	else if (!err && !found)
		err = opr_error(-ENOENT, "no cgroup of %s is meant by the specification: opreport --cgroups lists them",
				profile->sessions[parent].path);
	op_session_cgroups_free(&list);
	return err;
}

static int open_memory(struct opr_profile *profile, size_t parent)
{
	struct opr_session *session;
	char *path = NULL;

	if (asprintf(&path, "%s/" OP_MEM_DIR, profile->sessions[parent].path) < 0)
		path = NULL;
	session = add_session(profile, path, NULL);
	if (!session)
		return opr_no_memory();
	session->parent = parent;
	session->images = profile->sessions[parent].images;
	session->dir_fd = openat(profile->sessions[parent].dir_fd, OP_MEM_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (session->dir_fd < 0 && errno == ENOENT)
		return opr_error(-ENOENT, "%s says nothing of memory: it does when events IBS_OP_... are sampled",
				 profile->sessions[parent].path);
	if (session->dir_fd < 0)
		return opr_error(-errno, "%s: %s", session->path, strerror(errno));
	return list_session(session);
}

static int open_session_dir(struct opr_profile *profile, size_t index, const char *path)
{
	int fd;

	if (index >= profile->nr_held)
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = profile->held_fds[index];
	profile->held_fds[index] = -1;
	return fd;
}

/* What was meant may be something else; what is there may be it. */
static int refuse_session(const char *session_dir, const char *name, const char *path)
{
	struct op_text hint = { 0 };

	opr_hint_at_name(&hint, session_dir, name, true);
	if (!hint.length) {
		op_text_add(&hint, REMEDY);
		opr_hint_at_sessions(&hint, session_dir);
	}
	opr_error(-ENOENT, "there is no session '%s': %s does not exist. %s", name, path, op_text_get(&hint));
	op_text_free(&hint);
	return -ENOENT;
}

/* An earlier session that is the same directory: it was named twice, or a symbolic link leads to it. NULL: none. */
static const struct opr_session *same_session(const struct opr_profile *profile, const struct opr_session *session)
{
	struct stat st, other;

	if (fstat(session->dir_fd, &st) < 0)
		return NULL;
	for (size_t i = 0; i < session->parent; i++)
		if (profile->sessions[i].parent == i && !fstat(profile->sessions[i].dir_fd, &other) && other.st_ino == st.st_ino &&
		    other.st_dev == st.st_dev)
			return &profile->sessions[i];
	return NULL;
}

/* Its samples are in the profile already. */
static int leave_out_same(struct opr_profile *profile, struct opr_session *session, const struct opr_session *same)
{
	if (strcmp(session->path, same->path) != 0)
		opr_warn("%s and %s are one session: its samples are counted once", same->path, session->path);
	else
		opr_warn("%s is named twice: its samples are counted once", session->path);
	close(session->dir_fd);
	free(session->path);
	profile->nr_sessions--;
	return 0;
}

static int open_session(struct opr_profile *profile, const char *session_dir, size_t index, const struct opr_spec *spec)
{
	const char *name = spec->sessions.words[index];
	struct opr_session *session = add_session(profile, session_path(session_dir, name), NULL);
	const struct opr_session *same;
	int err;

	if (!session)
		return opr_no_memory();
	session->dir_fd = open_session_dir(profile, index, session->path);
	if (session->dir_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return refuse_session(session_dir, name, session->path);
	if (session->dir_fd < 0)
		return opr_error(-errno, "%s: %s", session->path, strerror(errno));
	same = same_session(profile, session);
	if (same)
		return leave_out_same(profile, session, same);
	err = read_images(session);
	if (!err)
		err = read_ledger(session);
	if (err)
		return err;
	if (spec->memory)
		return open_memory(profile, session->parent);
	if (spec->by_cgroup || spec->cgroup.nr_words)
		return open_cgroups(profile, session->parent, spec);
	session->is_listed = true;
	return list_session(session);
}

const struct op_dcookie_row *opr_session_row(const struct opr_session *session, const struct op_image_name *image)
{
	uint64_t cookie = session->images ? op_dcookie_by_name(session->images, image) : OP_DCOOKIE_NONE;

	return cookie == OP_DCOOKIE_NONE ? NULL : op_dcookie_row(session->images, cookie);
}

struct opr_identity opr_session_identity(const struct opr_session *session, const struct op_image_name *image, const char *name)
{
	const struct op_dcookie_row *row = image->kind == OP_IMAGE_ANON ? NULL : opr_session_row(session, image);

	return row ? opr_identity_of_row(row) : opr_identity_of(name);
}

struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image, const char *name)
{
	if (image->kind != OP_IMAGE_ANON && strcmp(image->name, name + (image->kind == OP_IMAGE_KERNEL)))
		return opr_identity_of(name);
	for (size_t i = profile->nr_sessions; i--;) {
		struct opr_identity identity = opr_session_identity(&profile->sessions[i], image, name);

		if (identity.is_known)
			return identity;
	}
	return opr_identity_of(name);
}

static int report_no_files(const struct opr_profile *profile)
{
	struct op_text paths = { 0 };
	int err;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		op_text_printf(&paths, "%s%s", i ? ", " : "", profile->sessions[i].path);
	err = opr_error(
		-ENOENT,
		"No sample found: Please specify a session containing sample data. There are no sample files in %s. " REMEDY,
		profile->nr_sessions ? op_text_get(&paths) : "the sessions that are not excluded");
	op_text_free(&paths);
	opr_session_stats_note_filtered(profile);
	return err;
}

static int open_sessions(struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec)
{
	size_t nr_files = 0;
	int err = 0;

	for (size_t i = 0; i < spec->sessions.nr_words && !err; i++)
		if (!opr_words_have(&spec->session_exclude, spec->sessions.words[i]))
			err = open_session(profile, session_dir, i, spec);
	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_files += profile->sessions[i].list.nr_files;
	return !err && !nr_files ? report_no_files(profile) : err;
}

/* ---- selection ---- */

/* ".../{anon:LABEL}/TGID.START.END/EVENT" to ".../{anon:LABEL}/TGID.jo" below the session. NULL: no memory. */
static char *jit_object_path(const char *sample_path, int32_t tgid)
{
	struct op_text path = { 0 };

	op_text_add(&path, sample_path);
	for (int i = 0; i < 2 && !path.failed; i++) {
		const char *slash = strrchr(path.data, '/');

		op_text_truncate(&path, slash ? (size_t)(slash - path.data) : 0);
	}
	op_text_printf(&path, "/%" PRId32 JIT_OBJECT_SUFFIX, tgid);
	return op_text_steal(&path);
}

/* The real path of a session, whatever it is called by now, in an archive the one that it had. NULL: it has none, or no memory. */
static char *find_home(const struct opr_archive *archive, int dir_fd)
{
	char path[32], *real, *home;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	real = realpath(path, NULL);
	home = real ? opr_archive_to_home(archive, real) : NULL;

	free(real);
	return home;
}

/* The object of an anonymous region's process when there is one: all regions of the process are one image then. */
static int find_jit_object(const struct opr_archive *archive, struct opr_session *session, const char *sample_path, int32_t tgid,
			   char **ret_path)
{
	char *below = jit_object_path(sample_path, tgid);
	struct op_text path = { 0 };
	int err = below ? 0 : -ENOMEM;

	if (!err && !faccessat(session->dir_fd, below, F_OK, 0)) {
		if (!session->real_path)
			session->real_path = find_home(archive, session->dir_fd);
		op_text_printf(&path, "%s/%s", session->real_path ? session->real_path : session->path, below);
		*ret_path = op_text_steal(&path);
		err = *ret_path ? 0 : -ENOMEM;
	}
	free(below);
	return err;
}

/* The name of an image part, of a sample file at `sample_path`. */
static char *name_image(struct opr_profile *profile, size_t session, const struct op_image_name *image, const char *sample_path)
{
	char *object = NULL;

	if (image->kind == OP_IMAGE_ANON &&
	    find_jit_object(profile->archive, &profile->sessions[session], sample_path, image->tgid, &object) < 0)
		return NULL;
	return object ? object : opr_session_image_name(profile, session, image);
}

/* The image a callgraph file's calls lead to; its object, if any, is where that image's own samples have it. */
static char *name_callee(struct opr_profile *profile, size_t session, const struct op_session_file *entry)
{
	struct op_sample_name plain = entry->name;
	struct op_text path = { 0 };
	char *name = NULL;

	plain.image = plain.callee;
	plain.has_callee = false;
	op_mangle(&plain, &path);
	if (!path.failed)
		name = name_image(profile, session, &plain.image, path.data);
	op_text_free(&path);
	return name;
}

static void free_file(struct opr_file *file)
{
	free(file->app);
	free(file->image);
	free(file->callee);
	op_odb_samples_free(&file->kept);
}

static bool name_parts(struct opr_profile *profile, size_t session, const struct op_session_file *entry, struct opr_file *file)
{
	struct op_sample_name caller = entry->name;
	struct op_text path = { 0 };

	file->app = opr_session_image_name(profile, session, &entry->name.app);
	if (!caller.has_callee) {
		file->image = name_image(profile, session, &entry->name.image, entry->path);
		return file->app && file->image;
	}
	caller.has_callee = false;
	op_mangle(&caller, &path);
	file->image = path.failed ? NULL : name_image(profile, session, &caller.image, path.data);
	op_text_free(&path);
	file->callee = name_callee(profile, session, entry);
	return file->app && file->image && file->callee;
}

static bool is_selected(const struct opr_file *file, const struct opr_spec *spec, bool exclude_dependent)
{
	bool dependent = strcmp(file->app, file->image) || (file->callee && strcmp(file->app, file->callee));

	return !(exclude_dependent && dependent) && opr_spec_match(spec, file->name, file->app, file->image);
}

/* Puts the cgroup in the place of both names. 0 or -ENOMEM, and the names are gone. */
static int show_cgroup(struct opr_file *file, const char *cgroup)
{
	free(file->app);
	free(file->image);
	file->is_cgroup = true;
	file->app = strdup(cgroup);
	file->image = strdup(cgroup);
	if (file->app && file->image)
		return 0;
	free(file->app);
	free(file->image);
	file->app = file->image = NULL;
	return -ENOMEM;
}

/* Names a file, and adds it to those that are to be read when the specification means it. */
static int select_file(struct opr_profile *profile, size_t session, const struct op_session_file *entry,
		       const struct opr_spec *spec, bool exclude_dependent)
{
	struct opr_file file = { .name = &entry->name, .path = entry->path, .session = session, .app_name = &entry->name.app };

	if (entry->name.has_callee && !spec->arcs)
		return 0;
	if (!name_parts(profile, session, entry, &file)) {
		free_file(&file);
		return opr_no_memory();
	}
	if (is_selected(&file, spec, exclude_dependent)) {
		profile->files[profile->nr_files++] = file;
	} else {
		profile->sessions[session].nr_unselected += !entry->name.has_callee;
		free_file(&file);
	}
	return 0;
}

/* A file of the profile, which has been read. */
static int show_file(const struct opr_profile *profile, struct opr_file *file, const struct opr_spec *spec,
		     const struct opr_merge *merge)
{
	const struct opr_session *session = &profile->sessions[file->session];

	if (spec->by_cgroup && show_cgroup(file, session->cgroup) < 0)
		return opr_no_memory();
	if (merge->lib && strcmp(file->app, file->image) && !spec->by_cgroup) {
		free(file->app);
		file->app = strdup(file->image);
		file->app_name = &file->name->image;
	}
	opr_verbose(OPR_TOPIC_sfile, "sample file %s/%s", session->path, file->path);
	return file->app ? 0 : opr_no_memory();
}

/* Keeps the files that are sound; what is to be told of the others is told in their order. */
static int read_files(struct opr_profile *profile, const struct opr_spec *spec, const struct opr_merge *merge)
{
	struct opr_reading reading;
	size_t nr_files = profile->nr_files, i;
	int err = opr_reading_do(&reading, profile);

	profile->nr_files = 0;
	for (i = 0; i < nr_files && !err; i++) {
		struct opr_file file = profile->files[i];
		bool sound = false;

		err = opr_reading_take(&reading, profile, i, &sound);
		if (err || !sound) {
			free_file(&file);
			continue;
		}
		profile->files[profile->nr_files++] = file;
		err = show_file(profile, &profile->files[profile->nr_files - 1], spec, merge);
	}
	for (; i < nr_files; i++)
		free_file(&profile->files[i]);
	opr_reading_free(&reading);
	return err;
}

/* A word without a tag is the name of an image, but not always meant so. */
static int refuse_strict(const struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec)
{
	struct op_text hint = { 0 };

	for (size_t i = 0; i < spec->names.nr_words && !hint.length; i++)
		opr_hint_at_name(&hint, session_dir, spec->names.words[i], false);
	opr_error(-ENOENT, "error: no sample files found: profile specification too strict ?%s%s", hint.length ? " " : "",
		  op_text_get(&hint));
	op_text_free(&hint);
	opr_session_stats_note_filtered(profile);
	return -ENOENT;
}

static bool has_damaged(const struct opr_profile *profile)
{
	for (size_t i = 0; i < profile->nr_sessions; i++)
		if (profile->sessions[i].damaged.nr_words)
			return true;
	return false;
}

size_t opr_profile_nr_left_out(const struct opr_profile *profile)
{
	size_t nr_left_out = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_left_out += profile->sessions[i].misfits.nr_words + profile->sessions[i].damaged.nr_words;
	return nr_left_out;
}

int opr_profile_end(const struct opr_profile *profile)
{
	size_t nr_left_out = opr_profile_nr_left_out(profile);

	if (op_guard_nr_broken())
		return opr_error(-EIO, "kept symbols were lost while they were shown, and names may lack: do it again");
	if (!nr_left_out)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out, as the warnings say: what is shown is the rest", nr_left_out,
			 nr_left_out == 1 ? "file or directory was" : "files and directories were");
}

int opr_profile_open(struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec,
		     const struct opr_merge *merge, bool exclude_dependent)
{
	int err = open_sessions(profile, session_dir, spec);
	size_t nr_files = 0;

	profile->add_sessions = spec->add_sessions;

	if (err < 0)
		return err;
	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_files += profile->sessions[i].list.nr_files;
	profile->files = calloc(nr_files, sizeof(*profile->files));
	if (!profile->files)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_sessions && !err; i++) {
		const struct op_session_list *list = &profile->sessions[i].list;

		for (size_t j = 0; j < list->nr_files && !err; j++)
			err = select_file(profile, i, &list->files[j], spec, exclude_dependent);
	}
	if (!err)
		err = read_files(profile, spec, merge);
	if (!err && !profile->nr_files && has_damaged(profile))
		return opr_error(-ENOENT, "No sample found: none of the sample files that the specification means can be read");
	if (!err && !profile->nr_files)
		return refuse_strict(profile, session_dir, spec);
	return err;
}

/* ---- order ---- */

static int compare_numbers(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

/* A process may have a file at a path that is shown as a part of the kernel is: {root}/ext4, {kern}/ext4. */
static int compare_kinds(const struct op_image_name *a, const struct op_image_name *b)
{
	return compare_numbers(a->kind == OP_IMAGE_KERNEL, b->kind == OP_IMAGE_KERNEL);
}

static int compare_parts(const struct opr_file *a, const struct opr_file *b)
{
	int order = strcmp(a->app, b->app);

	if (!order)
		order = strcmp(a->image, b->image);
	if (!order)
		order = strcmp(a->callee ? a->callee : "", b->callee ? b->callee : "");
	if (!order && !a->is_cgroup)
		order = compare_kinds(&a->name->image, &b->name->image);
	return order || a->is_cgroup ? order : compare_kinds(&a->name->callee, &b->name->callee);
}

static int compare_files(const void *left, const void *right)
{
	const struct opr_file *a = left, *b = right;
	int order = compare_parts(a, b);

	if (!order)
		order = compare_numbers(a->class_index, b->class_index);
	if (!order)
		order = strcmp(a->path, b->path);
	return order ? order : compare_numbers(a->session, b->session);
}

/* The same file of two sessions: their counts may be added only when the user asked for it. */
static int check_sessions(const struct opr_profile *profile)
{
	for (size_t i = 1; i < profile->nr_files; i++) {
		const struct opr_file *a = &profile->files[i - 1], *b = &profile->files[i];

		if (profile->sessions[a->session].parent == profile->sessions[b->session].parent)
			continue; /* cgroups of one session */
		if (!compare_parts(a, b) && a->class_index == b->class_index && !strcmp(a->path, b->path))
			return opr_error(-EINVAL, "sample file parsed twice ? %s/%s and %s/%s (choose one of these sessions; opreport --merge=lib adds them up, oparchive takes one after the other into a directory)",
					 profile->sessions[a->session].path, a->path, profile->sessions[b->session].path, b->path);
	}
	return 0;
}

int opr_profile_arrange(struct opr_profile *profile, const struct opr_merge *merge)
{
	struct opr_part *part = NULL;
	int err;

	qsort(profile->files, profile->nr_files, sizeof(*profile->files), compare_files);
	profile->merges_libs = merge->lib;
	err = merge->lib || profile->add_sessions ? 0 : check_sessions(profile);
	if (err < 0)
		return err;
	profile->parts = calloc(profile->nr_files, sizeof(*profile->parts));
	if (!profile->parts)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];

		if (!part || compare_parts(&profile->files[part->first_file], file)) {
			part = &profile->parts[profile->nr_parts++];
			*part = (struct opr_part){ .app = file->app,
						   .image = file->image,
						   .app_name = file->app_name,
						   .image_name = &file->name->image,
						   .callee = file->callee,
						   .callee_name = &file->name->callee,
						   .first_file = i };
		}
		part->nr_files++;
	}
	opr_verbose(OPR_TOPIC_stats, "%zu sample files, %zu images of applications", profile->nr_files, profile->nr_parts);
	return 0;
}

void opr_profile_free(struct opr_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->nr_files; i++)
		free_file(&profile->files[i]);
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		if (profile->sessions[i].dir_fd >= 0)
			close(profile->sessions[i].dir_fd);
		op_session_list_free(&profile->sessions[i].list);
		op_session_ledger_free(&profile->sessions[i].ledger);
		opr_words_free(&profile->sessions[i].misfits);
		opr_words_free(&profile->sessions[i].damaged);
		if (profile->sessions[i].parent == i)
			op_dcookie_table_free(profile->sessions[i].images);
		free(profile->sessions[i].path);
		free(profile->sessions[i].real_path);
		free(profile->sessions[i].cgroup);
	}
	for (size_t i = 0; i < profile->nr_held; i++)
		if (profile->held_fds[i] >= 0)
			close(profile->held_fds[i]);
	free(profile->held_fds);
	free(profile->files);
	free(profile->parts);
	free(profile->sessions);
	*profile = (struct opr_profile){ 0 };
}
