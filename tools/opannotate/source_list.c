/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/elf/line_table.h"
#include "tools/opannotate/forms.h"

#define OUTPUT_MARK    " * Interpretation of command line:\n" /* in every output of opannotate */
#define TEMPORARY_MARK ".opannotate"
#define MARK_BYTES_MAX 65536 /* the mark is so near to the end of a file */

/* ---- one source ---- */

static void write_line(const struct opr_annotate *annotate, FILE *out, const struct opr_source *source, unsigned int line,
		       const char *text)
{
	const struct opr_source_line *found = opr_source_find_line(source, line);
	const struct opr_source_symbol *symbols = opr_source_find_symbol(source, line);
	struct op_text inlines = { 0 };
	size_t nr_symbols = 0;

	while (symbols + nr_symbols < source->symbols + source->nr_symbols && symbols[nr_symbols].line == line)
		nr_symbols++;
	opr_annotate_counts(annotate, out, found ? &annotate->annotation->counts.values[found->counts] : NULL);
	opr_write_escaped_line(out, text);
	if (nr_symbols) {
		fputc(' ', out);
		opr_annotate_symbols(annotate, out, symbols, nr_symbols);
	}
	opr_inlines_describe(&inlines, annotate->inlines, source->name, line);
	if (inlines.length) {
		fputs(" /* ", out);
		opr_write_escaped(out, op_text_get(&inlines));
		fputs(" */", out);
	}
	op_text_free(&inlines);
	fputc('\n', out);
}

static void write_total(const struct opr_annotate *annotate, FILE *out, const struct opr_source *source)
{
	const uint64_t *counts = &annotate->annotation->counts.values[source->counts];

	fputs("/* \n * Total samples for file : \"", out);
	opr_write_escaped(out, source->name);
	fputs("\"\n * \n * ", out);
	opr_annotate_cells(annotate, out, counts);
	fputs("\n */\n", out);
}

/* Writes the lines of the source, without a source only the symbols that begin in it. */
static void write_lines(const struct opr_annotate *annotate, FILE *out, const struct opr_source *source,
			const struct opr_source_file *file)
{
	for (size_t i = 0; i < file->nr_lines; i++)
		write_line(annotate, out, source, (unsigned int)i + 1, file->lines[i]);
	for (size_t i = 0; i < source->nr_symbols && !file->path; i++) {
		opr_annotate_counts(annotate, out, &annotate->report->counts.values[source->symbols[i].row->counts]);
		opr_annotate_symbols(annotate, out, &source->symbols[i], 1);
		fputc('\n', out);
	}
}

/* ---- files of their own ---- */

/* The name below the output directory, without "." and "..". NULL: no memory. */
static char *output_name(const char *source)
{
	struct op_text name = { 0 };

	for (const char *part = source; *part; part += strcspn(part, "/")) {
		size_t length;

		part += strspn(part, "/");
		length = strcspn(part, "/");
		if (!length || (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'))))
			continue;
		if (name.length)
			op_text_add_char(&name, '/');
		op_text_add_bytes(&name, part, length);
	}
	return op_text_steal(&name);
}

/* True when opannotate wrote the file. */
static bool is_ours(int fd, off_t nr_bytes)
{
	size_t wanted = nr_bytes < MARK_BYTES_MAX ? (size_t)nr_bytes : MARK_BYTES_MAX;
	char *end = malloc(wanted + 1);
	ssize_t got = end ? pread(fd, end, wanted, nr_bytes - (off_t)wanted) : -1;
	bool ours = got > 0 && memmem(end, (size_t)got, OUTPUT_MARK, strlen(OUTPUT_MARK));

	free(end);
	return ours;
}

/* 0: no file, or an earlier output; -EEXIST: another file, which is never replaced. */
static int check_output(int dir_fd, const char *name, const struct opr_source_file *file)
{
	int fd = op_file_open_below(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	int err = fd < 0 ? fd : op_sys_fstat(fd, &st);

	if (!err && (!S_ISREG(st.st_mode) || (file->path && st.st_dev == file->device && st.st_ino == file->inode) ||
		     !is_ours(fd, st.st_size)))
		err = -EEXIST;
	if (fd >= 0)
		close(fd);
	return err == -ENOENT ? 0 : err;
}

static int write_file(const struct opr_annotate *annotate, int fd, const struct opr_source *source,
		      const struct opr_source_file *file)
{
	FILE *out = fdopen(fd, "w");
	int err;

	if (!out) {
		err = -errno;
		close(fd);
		return err;
	}
	write_lines(annotate, out, source, file);
	write_total(annotate, out, source);
	opr_annotate_description(annotate, out);
	err = ferror(out) ? -EIO : 0;
	return fclose(out) == EOF ? -errno : err;
}

static int publish(const struct opr_annotate *annotate, int dir_fd, const char *name, const struct opr_source *source,
		   const struct opr_source_file *file)
{
	char *temporary = NULL;
	int err = check_output(dir_fd, name, file), fd;

	if (err)
		return err;
	if (asprintf(&temporary, "%s" TEMPORARY_MARK ".%d", name, (int)getpid()) < 0)
		return -ENOMEM;
	fd = op_file_open_below(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
	err = fd < 0 ? fd : write_file(annotate, fd, source, file);
	if (!err)
		err = op_file_rename_below(dir_fd, temporary, name);
	if (err && fd >= 0)
		op_file_unlink_below(dir_fd, temporary);
	free(temporary);
	return err;
}

static int write_below(const struct opr_annotate *annotate, int dir_fd, const struct opr_source *source,
		       const struct opr_source_file *file)
{
	const char *dir = annotate->options->output_dir;
	char *name = output_name(source->name);
	int err = name ? publish(annotate, dir_fd, name, source, file) : -ENOMEM;

	if (err == -EEXIST)
		opr_error(err, "%s/%s: refuse to output to existing source file", dir, name);
	else if (err)
		opr_error(err, "%s/%s: %s", dir, name ? name : source->name, strerror(-err));
	free(name);
	return err;
}

/* ---- all of them ---- */

static int write_source(const struct opr_annotate *annotate, FILE *out, int dir_fd, const struct opr_source *source)
{
	struct opr_source_file file;
	int err = opr_source_file_read(&file, source->name, &annotate->dirs);

	if (err) {
		opr_source_file_free(&file);
		return opr_no_memory();
	}
	if (!file.path)
		opr_annotate_warn_of_missing(source, &file);
	if (dir_fd >= 0) {
		if (file.path)
			err = write_below(annotate, dir_fd, source, &file);
	} else {
		write_total(annotate, out, source);
		fputs("\n\n", out);
		write_lines(annotate, out, source, &file);
	}
	opr_source_file_free(&file);
	return err;
}

static int open_output_dir(const char *dir, int *ret_fd)
{
	int err = op_file_make_dirs(dir);

	if (!err) {
		*ret_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = *ret_fd < 0 ? -errno : 0;
	}
	return err ? opr_error(err, "%s: %s", dir, strerror(-err)) : 0;
}

/* The damage of each file was a warning before. */
static void warn_of_no_sources(const struct opr_annotate *annotate)
{
	size_t nr_damaged = 0;
	bool any_info = false;

	for (size_t i = 0; i < annotate->images->nr_images; i++) {
		const struct opr_line_table *table = annotate->images->images[i].symbols.table;

		nr_damaged += table && table->damage;
		any_info |= table && table->has_debug_info;
	}
	if (nr_damaged)
		opr_warn("the debugging information of %zu %s damaged: there are no source lines", nr_damaged,
			 nr_damaged == 1 ? "binary is" : "binaries is");
	else if (any_info)
		opr_warn("the debugging information has no lines for these samples: there are no source lines");
	else
		opr_warn("no debug information available for any binary of the profile: there are no source lines");
}

int opr_annotate_sources(const struct opr_annotate *annotate, FILE *out)
{
	const struct opr_annotation *annotation = annotate->annotation;
	const char *dir = annotate->options->output_dir;
	int dir_fd = -1, err = dir ? open_output_dir(dir, &dir_fd) : 0;

	if (!annotation->nr_sources)
		warn_of_no_sources(annotate);
	if (!err && !dir)
		opr_annotate_description(annotate, out);
	for (size_t i = 0; i < annotation->nr_sources && !err; i++)
		if (opr_annotate_wants(annotate, &annotation->sources[i]))
			err = write_source(annotate, out, dir_fd, &annotation->sources[i]);
	if (dir_fd >= 0)
		close(dir_fd);
	return err;
}
