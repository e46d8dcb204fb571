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

/* The path may be another file by now: only the file that the child has seen is copied. */
static int add_file(struct opa_run *run, const struct record *record, const char *path, const char *name)
{
	struct stat st;
	int fd = opr_open_regular(path, &st), err = fd < 0 ? fd : 0;

	if (!err && (st.st_dev != record->dev || st.st_ino != record->ino))
		err = -ESTALE;
	if (!err)
		err = opr_archive_add_open(&run->writer, fd, path, name);
	else if (fd >= 0)
		close(fd);
	return opa_warn_left_out(run, err, path);
}

/* Copies a file to its place beside each file in the archive that refers to it. */
static int add_to_places(struct opa_run *run, const struct record *record, const char *path, const char *name,
			 const char *const *names)
{
	int err = 0;

	if (record->place == OPR_DWARF_AT_PATH)
		return add_file(run, record, path, name);
	for (; *names && !err; names++) {
		const char *slash = strrchr(*names, '/');
		int length = record->place == OPR_DWARF_WITH_SUFFIX || !slash ? (int)strlen(*names) : (int)(slash + 1 - *names);
		char *place = NULL;

		if (asprintf(&place, "%.*s%s", length, *names, name) < 0)
			return opr_no_memory();
		err = add_file(run, record, path, place);
		free(place);
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
