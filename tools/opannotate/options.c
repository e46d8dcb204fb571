/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/options.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/profile/spec.h"

#define FIELD(name) offsetof(struct opr_annotate_options, name)
#define QUERY(name) FIELD(query.name)

static const struct opr_option rows[] = {
	{ "assembly", 'a', FIELD(assembly), NULL, "output annotated assembly; with --source mixed with the source", NULL },
	OPR_SPAN_AT(QUERY),
	{ "base-dirs", 'b', FIELD(base_dirs), opr_take_words, "comma separated prefixes to cut from names of source files",
	  "path" },
	{ "debuginfod-time", 0, FIELD(debuginfod_time), opr_take_debuginfod_time, OPR_DEBUGINFOD_TIME_HELP, "seconds" },
	{ "demangle", 'D', QUERY(naming.demangle), opr_take_demangle,
	  "demangle names of C++, Rust and D (default smart, in --html normal)",
	  "none|normal|smart" },
	{ "exclude-dependent", 'x', QUERY(exclude_dependent), NULL, "exclude libs, kernel, and module samples for applications",
	  NULL },
	{ "exclude-file", 0, FIELD(exclude_files), opr_take_words, "exclude these comma separated patterns of source files",
	  "patterns" },
	{ "exclude-symbols", 'e', QUERY(exclude_symbols), opr_take_functions, "exclude these comma separated symbols", "symbols" },
	{ "html", 0, FIELD(html), opr_take_string, "write one page with source and assembly side by side", "file" },
	{ "image-path", 'p', QUERY(naming.image_path), opr_take_words, "comma-separated path to search missing binaries", "path" },
	{ "include-file", 0, FIELD(include_files), opr_take_words, "include these comma separated patterns of source files",
	  "patterns" },
	{ "include-symbols", 'i', QUERY(include_symbols), opr_take_functions, "include these comma separated symbols", "symbols" },
	{ "inline", 0, FIELD(inlined), NULL, "show what inlined functions were inlined into, and where", NULL },
	OPR_SPAN_LAST(QUERY),
	{ "merge", 'm', QUERY(merge), opr_take_merge, "comma separated list of things to merge", "cpu,lib,tid,tgid,unitmask,all" },
	{ "no-debuginfod", 0, FIELD(no_debuginfod), NULL, "download no debug files, and use none that were downloaded", NULL },
	{ "no-pager", 0, FIELD(no_pager), NULL, "write to the terminal without a pager", NULL },
	{ "objdump-params", 0, FIELD(params), opr_take_string,
	  "options of objdump that change how code is shown: -M, -C, -S, -z, --show-raw-insn", "parameters" },
	{ "output-dir", 'o', FIELD(output_dir), opr_take_string, "write a file for each source file below this directory",
	  "directory" },
	{ "root", 'R', QUERY(naming.root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "search-dirs", 'd', FIELD(search_dirs), opr_take_words, "comma separated directories to search for source files",
	  "path" },
	{ "session-dir", 0, QUERY(session_dir), opr_take_string, "directory that holds the samples", "directory" },
	OPR_SPAN_SINCE(QUERY),
	{ "source", 's', FIELD(source), NULL, "output annotated source", NULL },
	{ "symbols-from", 0, QUERY(naming.sources), opr_take_sources, "sources of symbols (default all)", OPR_SOURCE_NAMES },
	{ "threshold", 't', QUERY(threshold), opr_take_percent, "minimum percentage needed to produce output", "percent" },
	OPR_SPAN_UNTIL(QUERY),
	{ "verbose", 'V', 0, opr_take_verbose, "print details to stderr", "all,details,debug,bfd,level1,sfile,stats,xml" },
	OPR_SPAN_WINDOW(QUERY),
};

#undef QUERY
#undef FIELD

static const struct opr_command command = {
	.program = "opannotate",
	.arguments = "[PROFILE SPECIFICATION]...",
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

/* ---- the options of objdump ---- */

/* Options without a value. -d and -w change nothing: opannotate always does what they say. */
static bool take_switch(struct opr_annotate_options *options, const char *word)
{
	struct opr_code_style *style = &options->code_style;
	bool nothing = false;
	int source = 0;
	const struct {
		const char *short_name, *long_name;
		bool *flag, value;
	} switches[] = {
		{ "-C", "--demangle", &style->demangle, true },
		{ NULL, "--no-demangle", &style->demangle, false },
		{ "-d", "--disassemble", &nothing, true },
		{ "-w", "--wide", &nothing, true },
		{ "-z", "--disassemble-zeroes", &style->disassemble_zeroes, true },
		{ NULL, "--show-raw-insn", &style->show_raw_insn, true },
		{ NULL, "--no-show-raw-insn", &style->show_raw_insn, false },
	};

	source = !strcmp(word, "-S") || !strcmp(word, "--source");
	options->source |= source;
	for (size_t i = 0; i < op_array_size(switches) && !source; i++) {
		if (strcmp(word, switches[i].long_name) != 0 &&
		    (!switches[i].short_name || strcmp(word, switches[i].short_name) != 0))
			continue;
		*switches[i].flag = switches[i].value;
		return true;
	}
	return source;
}

/* The value of -M, in the word or in the next one of `rest`. NULL: another option. */
static const char *disassembler_value(const char *word, char **rest)
{
	static const char long_name[] = "--disassembler-options";
	size_t length = strlen(long_name);

	if (!strcmp(word, "-M") || !strcmp(word, long_name)) {
		if (!*rest)
			return "";
		*rest += strspn(*rest, " \t");
		return strsep(rest, " \t");
	}
	if (!strncmp(word, "-M", 2))
		return word + 2;
	return !strncmp(word, long_name, length) && word[length] == '=' ? word + length + 1 : NULL;
}

static int take_word(struct opr_annotate_options *options, const char *word, char **rest, struct op_text *values)
{
	const char *value;

	if (!*word || take_switch(options, word))
		return 0;
	value = disassembler_value(word, rest);
	if (!value)
		return opr_error(-EINVAL,
				 "--objdump-params: %s is not supported; use -C, -d, -M, -S, -w, -z, --show-raw-insn or "
				 "--no-show-raw-insn (one word each)",
				 word);
	if (!*value)
		return opr_error(-EINVAL, "--objdump-params: %s needs a value", word);
	op_text_printf(values, "%s%s", values->length ? "," : "", value);
	return 0;
}

static int take_params(struct opr_annotate_options *options)
{
	char *copy = strdup(options->params), *rest = copy;
	struct op_text values = { 0 };
	int err = copy ? 0 : opr_no_memory();

	for (char *word; !err && (word = strsep(&rest, " \t"));)
		err = take_word(options, word, &rest, &values);
	free(copy);
	if (!err && values.length) {
		options->disassembler_options = op_text_steal(&values);
		options->code_style.disassembler_options = options->disassembler_options;
		return options->disassembler_options ? 0 : opr_no_memory();
	}
	op_text_free(&values);
	return err;
}

/* Inlined functions are no rows of their own: the lines of a function have them. */
static void finish_query(struct opr_annotate_options *options)
{
	struct opr_query *query = &options->query;

	query->details = 1;
	query->lines = options->source || options->html;
	query->frames = query->lines && options->inlined;
	query->naming.fetch_lines = query->lines;
}

int opr_annotate_options_parse(struct opr_annotate_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	int err;

	options->query.naming.demangle = OPR_NR_DEMANGLE; /* not given */
	options->command_line = opr_command_line(command.program, argc, argv);
	if (!options->command_line)
		return opr_no_memory();
	err = opr_command_read(&command, argc, argv, options, &options->query.words, ret_request);
	if (err < 0 || *ret_request == OPR_DONE)
		return err;
	if (options->query.naming.demangle == OPR_NR_DEMANGLE)
		options->query.naming.demangle = options->html ? OPR_DEMANGLE_NORMAL : OPR_DEMANGLE_SMART;
	options->query.merge.merge.lib = true;
	options->code_style.inlined = options->inlined;
	options->code_style.inlined_names = options->query.naming.demangle;
	err = opr_sources_complete(&options->query.naming.sources);
	if (options->no_debuginfod)
		options->query.naming.sources &= ~(uint32_t)OPR_FROM_DEBUGINFOD;
	if (!err)
		err = check(options);
	finish_query(options);
	return !err && options->params ? take_params(options) : err;
}

void opr_annotate_options_free(struct opr_annotate_options *options)
{
	opr_command_free(&command, options);
	opr_words_free(&options->query.merge.words);
	opr_words_free(&options->query.words);
	free(options->command_line);
	free(options->disassembler_options);
}
