/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate_options.h"

#include <errno.h>

#include "tools/report_log.h"

#define FIELD(name) offsetof(struct opr_annotate_options, name)

static const struct opr_option rows[] = {
	{ "assembly", 'a', FIELD(assembly), NULL, "output annotated assembly; with --source mixed with the source", NULL },
	{ "base-dirs", 'b', FIELD(base_dirs), opr_take_words, "comma separated prefixes to cut from names of source files",
	  "path" },
	{ "demangle", 'D', FIELD(demangle), opr_take_demangle, "demangle names of C++, Rust and D (default normal)",
	  "none|normal|smart" },
	{ "exclude-dependent", 'x', FIELD(exclude_dependent), NULL, "exclude libs, kernel, and module samples for applications",
	  NULL },
	{ "exclude-file", 0, FIELD(exclude_files), opr_take_words, "exclude these comma separated patterns of source files",
	  "patterns" },
	{ "exclude-symbols", 'e', FIELD(exclude_symbols), opr_take_words, "exclude these comma separated symbols", "symbols" },
	{ "html", 0, FIELD(html), opr_take_string, "write one page with source and assembly side by side", "file" },
	{ "image-path", 'p', FIELD(image_path), opr_take_words, "comma-separated path to search missing binaries", "path" },
	{ "include-file", 0, FIELD(include_files), opr_take_words, "include these comma separated patterns of source files",
	  "patterns" },
	{ "include-symbols", 'i', FIELD(include_symbols), opr_take_words, "include these comma separated symbols", "symbols" },
	{ "merge", 'm', FIELD(merge), opr_take_merge, "comma separated list of things to merge", "cpu,lib,tid,tgid,unitmask,all" },
	{ "no-pager", 0, FIELD(no_pager), NULL, "write to the terminal without a pager", NULL },
	{ "objdump-params", 0, FIELD(params), opr_take_string, "options of the disassembler: -M OPTION,...", "parameters" },
	{ "output-dir", 'o', FIELD(output_dir), opr_take_string, "write a file for each source file below this directory",
	  "directory" },
	{ "root", 'R', FIELD(root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "search-dirs", 'd', FIELD(search_dirs), opr_take_words, "comma separated directories to search for source files",
	  "path" },
	{ "session-dir", 0, FIELD(session_dir), opr_take_string, "directory that holds the samples", "directory" },
	{ "since", 0, FIELD(since), opr_take_string, "sessions taken then or later", "time" },
	{ "source", 's', FIELD(source), NULL, "output annotated source", NULL },
	{ "threshold", 't', FIELD(threshold), opr_take_percent, "minimum percentage needed to produce output", "percent" },
	{ "until", 0, FIELD(until), opr_take_string, "sessions taken then or earlier", "time" },
	{ "verbose", 'V', 0, opr_take_verbose, "say more, on stderr", "all,debug,bfd,level1,sfile,stats,xml" },
};

#undef FIELD

static const struct opr_command command = {
	.program = "opannotate",
	.arguments = "[OPTION...] [PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

static int check(const struct opr_annotate_options *options)
{
	const struct {
		bool wrong;
		const char *message;
	} rules[] = {
		{ !options->source && !options->assembly && !options->html,
		  "you must specify at least --source, --assembly or --html=FILE" },
		{ options->html && options->output_dir, "--html and --output-dir do not go together" },
		{ options->output_dir && !options->source, "--output-dir is meaningless without --source" },
		{ options->output_dir && options->assembly, "--output-dir is meaningless with --assembly" },
		{ options->params && !options->assembly && !options->html, "--objdump-params is meaningless without --assembly" },
		{ options->include_files.nr_words && options->assembly && !options->html,
		  "--include-file is meaningless with --assembly" },
		{ options->exclude_files.nr_words && options->assembly && !options->html,
		  "--exclude-file is meaningless with --assembly" },
		{ options->base_dirs.nr_words && !options->search_dirs.nr_words,
		  "--base-dirs is meaningless without --search-dirs" },
	};

	for (size_t i = 0; i < op_array_size(rules); i++)
		if (rules[i].wrong)
			return opr_error(-EINVAL, "%s", rules[i].message);
	return 0;
}

/* Of objdump's parameters those are of use that are for the disassembler; they become its own. */
static int take_params(struct opr_annotate_options *options)
{
	struct op_text text = { 0 };
	char *rest = options->params;
	int err = 0;

	for (char *word; !err && (word = strsep(&rest, " \t"));) {
		bool behind = !strcmp(word, "-M");

		if (!*word)
			continue;
		if (behind)
			word = strsep(&rest, " \t");
		else if (!strncmp(word, "-M", 2))
			word += 2;
		else if (!strncmp(word, "--disassembler-options=", 23))
			word += 23;
		else
			err = opr_error(-EINVAL, "--objdump-params: '%s': only -M, the options of the disassembler, is known",
					word);
		if (!err && word && *word)
			op_text_printf(&text, "%s%s", text.length ? "," : "", word);
	}
	free(options->params);
	options->params = op_text_steal(&text);
	return err || options->params ? err : opr_no_memory();
}

int opr_annotate_options_parse(struct opr_annotate_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	int err;

	options->demangle = OPR_DEMANGLE_NORMAL;
	options->command_line = opr_command_line(command.program, argc, argv);
	if (!options->command_line)
		return opr_no_memory();
	err = opr_command_read(&command, argc, argv, options, &options->words, ret_request);
	if (err < 0 || *ret_request == OPR_DONE)
		return err;
	options->merge.merge.lib = true;
	err = check(options);
	return !err && options->params ? take_params(options) : err;
}

void opr_annotate_options_free(struct opr_annotate_options *options)
{
	opr_command_free(&command, options);
	opr_words_free(&options->words);
	free(options->command_line);
}
