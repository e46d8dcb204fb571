/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/elf/dwarf_file.h"
#include "tools/elf/open_file.h"

struct request {
	const char *path, *name, *root;
	FILE *out;
};

/* The child writes one for each file, and behind it `path` and `name` with their NUL bytes. */
struct record {
	uint64_t dev, ino;
	uint32_t place; /* enum opr_dwarf_place */
	uint32_t path_bytes, name_bytes;
};

/* ---- in the child ---- */

static void write_file(int fd, enum opr_dwarf_place place, const char *name, void *arg)
{
	const struct request *request = arg;
	char link[32], path[PATH_MAX];
	struct stat st;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || fstat(fd, &st) < 0)
		return;
	path[length] = '\0';
	fwrite(&(struct record){ st.st_dev, st.st_ino, place, (uint32_t)length + 1, (uint32_t)strlen(name) + 1 },
	       sizeof(struct record), 1, request->out);
	fwrite(path, 1, (size_t)length + 1, request->out);
	fwrite(name, 1, strlen(name) + 1, request->out);
}

static int write_files(FILE *out, void *arg)
{
	struct request *request = arg;
	bfd *image = opr_bfd_open(request->path);
	struct opr_dwarf *file;
	int err;

	if (!image)
		return -ENOEXEC;
	request->out = out;
	err = opr_dwarf_open_image(image, request->path, request->name, request->root, &file);
	if (!err && file)
		opr_dwarf_visit_files(file, write_file, request);
	opr_dwarf_close(file);
	bfd_close(image);
	return err;
}

/* ---- in the parent ---- */

int opa_add_seen(struct opa_run *run, uint64_t device, uint64_t inode, const char *path, const char *name)
{
	struct stat st;
	int fd = opr_open_regular(path, &st), err = fd < 0 ? fd : 0;

	if (!err && (st.st_dev != device || st.st_ino != inode))
		err = -ESTALE;
	if (!err)
		err = opr_archive_add_open(&run->writer, fd, path, name);
	else if (fd >= 0)
		close(fd);
	return opa_warn_left_out(run, err, path);
}

static bool is_the_file(const char *path, const struct record *record)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == record->dev && st.st_ino == record->ino;
}

/*
 * Whether the file has this path here, too, below the root or else without it. A stranger's link
 * before a ".." leads to another file than the plain path, which may be that of an image.
 */
static bool is_its_path(const struct opa_run *run, const struct record *record, const char *place)
{
	const struct opr_archive *archive = run->report.selection.finder.archive;
	const char *root = run->options->query.naming.root ? run->options->query.naming.root : archive ? archive->dir : "";
	struct op_text path = { 0 };
	struct stat st;
	bool is;

	op_text_printf(&path, "%s%s", root, place);
	is = !path.failed && (is_the_file(path.data, record) || (lstat(path.data, &st) < 0 && is_the_file(place, record)));
	op_text_free(&path);
	return is;
}

static bool has_dots(const char *name)
{
	for (; (name = strstr(name, "..")); name++)
		if (name[2] == '/')
			return true;
	return false;
}

static int add_to_place(struct opa_run *run, const struct record *record, const char *path, const struct op_text *named,
			bool has_to_be_there)
{
	struct op_text plain = { 0 };
	bool is_below = opr_add_plain_path(&plain, op_text_get(named));
	int err = 0;

	if (named->failed || plain.failed) {
		err = opr_no_memory();
	} else if (!is_below || (has_to_be_there && !is_its_path(run, record, op_text_get(&plain)))) {
		opr_warn("%s is left out: reports would look for it at %s, which is not its place in an archive", path,
			 op_text_get(named));
		opa_note_left_out(run, path);
	} else {
		err = opa_add_seen(run, record->dev, record->ino, path, plain.data);
	}
	op_text_free(&plain);
	return err;
}

/* Copies a file to its place beside each file in the archive that refers to it. */
static int add_to_places(struct opa_run *run, const struct record *record, const char *path, const char *name,
			 const char *const *names)
{
	static const char *const nothing[] = { "", NULL };
	int err = 0;

	for (names = record->place == OPR_DWARF_AT_PATH ? nothing : names; *names && !err; names++) {
		const char *slash = strrchr(*names, '/');
		struct op_text named = { 0 };

		op_text_add_bytes(&named, *names,
				  record->place == OPR_DWARF_WITH_SUFFIX || !slash ? strlen(*names) : (size_t)(slash + 1 - *names));
		op_text_add(&named, name);
		err = add_to_place(run, record, path, &named, has_dots(name));
		op_text_free(&named);
	}
	return err;
}

int opa_add_debug_files(struct opa_run *run, const char *path, const char *name, const char *root, const char *const *names)
{
	struct request request = { .path = path, .name = name, .root = root };
	struct opr_child_result result = { 0 };
	struct opr_child child;
	struct record record;
	int err = opr_child_start(&child, write_files, &request);

	if (!err)
		err = opr_child_wait(&child, &result);
	if (err)
		return opr_error(err, "%s: %s", path, strerror(-err));
	for (size_t at = 0; !err && result.nr_bytes - at >= sizeof(record);) {
		const char *strings = result.bytes + at + sizeof(record);

		memcpy(&record, result.bytes + at, sizeof(record));
		at += sizeof(record);
		if (!record.path_bytes || !record.name_bytes ||
		    (uint64_t)record.path_bytes + record.name_bytes > result.nr_bytes - at || strings[record.path_bytes - 1] ||
		    strings[record.path_bytes + record.name_bytes - 1])
			break;
		at += record.path_bytes + record.name_bytes;
		err = add_to_places(run, &record, strings, strings + record.path_bytes, names);
	}
	opr_child_result_free(&result);
	return err;
}
