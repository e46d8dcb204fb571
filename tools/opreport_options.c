/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport_options.h"

#include <errno.h>
#include <math.h>
#include <popt.h>

#include "libop/parse.h"
#include "tools/report_log.h"

/* An option with a value: how it is taken in. */
typedef int take_fn(struct opr_options *options, const char *value);

static int take_string(char **string, const char *value)
{
	free(*string);
	*string = strdup(value);
	return *string ? 0 : opr_no_memory();
}

static int take_words(struct opr_words *words, const char *value)
{
	return opr_words_split(words, value) < 0 ? opr_no_memory() : 0;
}

static int take_session_dir(struct opr_options *options, const char *value)
{
	return take_string(&options->session_dir, value);
}

/* Found images are shown with their absolute paths. */
static int take_root(struct opr_options *options, const char *value)
{
	char *root = realpath(value, NULL);

	if (!root)
		return opr_error(-errno, "root %s: %s", value, strerror(errno));
	free(options->root);
	options->root = root;
	if (!strcmp(root, "/"))
		*root = '\0';
	return 0;
}

static int take_output_file(struct opr_options *options, const char *value)
{
	return take_string(&options->output_file, value);
}

static int take_since(struct opr_options *options, const char *value)
{
	return take_string(&options->since, value);
}

static int take_until(struct opr_options *options, const char *value)
{
	return take_string(&options->until, value);
}

static int take_image_path(struct opr_options *options, const char *value)
{
	return take_words(&options->image_path, value);
}

static int take_exclude(struct opr_options *options, const char *value)
{
	return take_words(&options->exclude_symbols, value);
}

static int take_include(struct opr_options *options, const char *value)
{
	return take_words(&options->include_symbols, value);
}

static int take_sort(struct opr_options *options, const char *value)
{
	const char *bad_key;

	if (take_words(&options->sort, value) < 0)
		return -ENOMEM;
	if (opr_sort_order_make(&options->order, &options->sort, &bad_key) < 0)
		return opr_error(-EINVAL, "invalid sort key '%s': sample, image, app-name, symbol, debug or vma", bad_key);
	return 0;
}

static const struct {
	const char *word;
	struct opr_merge merge;
} merges[] = {
	{ "cpu", { .cpu = true } },
	{ "lib", { .lib = true } },
	{ "library", { .lib = true } },
	{ "tid", { .tid = true } },
	{ "tgid", { .tgid = true, .tid = true } },
	{ "unitmask", { .unit_mask = true } },
	{ "all", { .cpu = true, .lib = true, .tid = true, .tgid = true, .unit_mask = true } },
};

static bool add_merge(struct opr_merge *merge, const char *word)
{
	for (size_t i = 0; i < op_array_size(merges); i++) {
		const struct opr_merge *more = &merges[i].merge;

		if (strcmp(word, merges[i].word))
			continue;
		merge->cpu |= more->cpu;
		merge->lib |= more->lib;
		merge->tid |= more->tid;
		merge->tgid |= more->tgid;
		merge->unit_mask |= more->unit_mask;
		return true;
	}
	return false;
}

static int take_merge(struct opr_options *options, const char *value)
{
	if (take_words(&options->merge_words, value) < 0)
		return -ENOMEM;
	options->merge = (struct opr_merge){ 0 };
	for (size_t i = 0; i < options->merge_words.nr_words; i++)
		if (!add_merge(&options->merge, options->merge_words.words[i]))
			return opr_error(-EINVAL, "unknown merge option '%s': cpu, lib, tid, tgid, unitmask or all",
					 options->merge_words.words[i]);
	return 0;
}

static int take_threshold(struct opr_options *options, const char *value)
{
	char *end;
	double percent;

	errno = 0;
	percent = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(percent) || percent < 0 || percent > 100)
		return opr_error(-EINVAL, "illegal threshold '%s': a percentage from 0 to 100", value);
	options->threshold = percent;
	return 0;
}

static const char *const demangle_words[] = {
	[OPR_DEMANGLE_NONE] = "none",
	[OPR_DEMANGLE_NORMAL] = "normal",
	[OPR_DEMANGLE_SMART] = "smart",
};

static const char *const format_words[] = {
	[OPR_FORMAT_TEXT] = "text",
	[OPR_FORMAT_XML] = "xml",
	[OPR_FORMAT_JSON] = "json",
	[OPR_FORMAT_CSV] = "csv",
};

static const char *const colour_words[] = { "auto", "always", "never" };

static bool find_word(const char *const *words, size_t nr_words, const char *word, size_t *ret_index)
{
	for (size_t i = 0; i < nr_words; i++) {
		if (!strcmp(word, words[i])) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static int take_demangle(struct opr_options *options, const char *value)
{
	size_t index;

	if (!find_word(demangle_words, op_array_size(demangle_words), value, &index))
		return opr_error(-EINVAL, "invalid demangle option '%s': none, normal or smart", value);
	options->demangle = (enum opr_demangle)index;
	return 0;
}

static int take_format(struct opr_options *options, const char *value)
{
	size_t index;

	if (!find_word(format_words, op_array_size(format_words), value, &index))
		return opr_error(-EINVAL, "unknown format '%s': text, xml, json or csv", value);
	options->format = (enum opr_format)index;
	return 0;
}

static int take_colour(struct opr_options *options, const char *value)
{
	size_t index;

	if (!find_word(colour_words, op_array_size(colour_words), value, &index))
		return opr_error(-EINVAL, "invalid colour option '%s': auto, always or never", value);
	options->colour = colour_words[index];
	return 0;
}

static int take_top(struct opr_options *options, const char *value)
{
	uint64_t top;

	if (op_parse_u64(value, 1, SIZE_MAX, &top) < 0)
		return opr_error(-EINVAL, "invalid number of lines '%s' for --top: 1 or more", value);
	options->top = (size_t)top;
	return 0;
}

static int take_verbose(struct opr_options *options OP_UNUSED, const char *value)
{
	struct opr_words topics = { 0 };
	int err = take_words(&topics, value);

	for (size_t i = 0; i < topics.nr_words && !err; i++)
		if (!opr_log_enable(topics.words[i]))
			err = opr_error(-EINVAL, "unknown verbose option '%s': all, debug, bfd, level1, sfile, stats or xml",
					topics.words[i]);
	opr_words_free(&topics);
	return err;
}

static const struct value_option {
	const char *name;
	char short_name;
	take_fn *take;
	const char *help, *value_help;
} value_options[] = {
	{ "color", 0, take_colour, "colours in the report (default auto: on a terminal)", "auto|always|never" },
	{ "demangle", 'D', take_demangle, "demangle names of C++, Rust and D (default normal)", "none|normal|smart" },
	{ "exclude-symbols", 'e', take_exclude, "exclude these comma separated symbols", "symbols" },
	{ "format", 0, take_format, "form of the report (default text)", "text|xml|json|csv" },
	{ "image-path", 'p', take_image_path, "comma-separated path to search missing binaries", "path" },
	{ "include-symbols", 'i', take_include, "include these comma separated symbols", "symbols" },
	{ "merge", 'm', take_merge, "comma separated list of things to merge", "cpu,lib,tid,tgid,unitmask,all" },
	{ "output-file", 'o', take_output_file, "output to the given filename", "file" },
	{ "root", 'R', take_root, "path to the file system that the images are in", "directory" },
	{ "session-dir", 0, take_session_dir, "directory that holds the samples", "directory" },
	{ "since", 0, take_since, "sessions taken then or later", "time" },
	{ "sort", 's', take_sort, "sort by", "sample,image,app-name,symbol,debug,vma" },
	{ "threshold", 't', take_threshold, "minimum percentage needed to produce output", "percent" },
	{ "top", 0, take_top, "show the first lines only", "number" },
	{ "until", 0, take_until, "sessions taken then or earlier", "time" },
	{ "verbose", 'V', take_verbose, "say more, on stderr", "all,debug,bfd,level1,sfile,stats,xml" },
};

static const struct flag_option {
	const char *name;
	char short_name;
	size_t offset; /* of an int in struct opr_options */
	const char *help;
} flag_options[] = {
	{ "accumulated", 'a', offsetof(struct opr_options, accumulated), "accumulate percentage of symbols" },
	{ "callgraph", 'c', offsetof(struct opr_options, callgraph), "show callers and callees of each symbol" },
	{ "cgroups", 0, offsetof(struct opr_options, cgroups), "one line for each cgroup (opcontrol --separate=cgroup)" },
	{ "debug-info", 'g', offsetof(struct opr_options, debug_info), "add source file and line number" },
	{ "details", 'd', offsetof(struct opr_options, details), "output detailed samples for each symbol" },
	{ "exclude-dependent", 'x', offsetof(struct opr_options, exclude_dependent),
	  "exclude libs, kernel, and module samples for applications" },
	{ "global-percent", '%', offsetof(struct opr_options, global_percent), "make percentage relative to total samples" },
	{ "images", 0, offsetof(struct opr_options, images), "list images: build-id, what symbols there are, which debug file would help" },
	{ "long-filenames", 'f', offsetof(struct opr_options, long_names), "show the full path of filenames" },
	{ "mem", 0, offsetof(struct opr_options, mem), "loads, stores, where data came from and branches by symbol (IBS_OP events)" },
	{ "no-header", 'n', offsetof(struct opr_options, no_header), "remove all headers from output" },
	{ "no-pager", 0, offsetof(struct opr_options, no_pager), "write to the terminal without a pager" },
	{ "reverse-sort", 'r', offsetof(struct opr_options, reverse_sort), "use reverse sort" },
	{ "show-address", 'w', offsetof(struct opr_options, show_address), "show VMA address of each symbol" },
	{ "symbols", 'l', offsetof(struct opr_options, symbols), "list all the symbols" },
	{ "version", 'v', offsetof(struct opr_options, version), "show version" },
	{ "xml", 'X', offsetof(struct opr_options, xml), "write XML" },
};

#define NR_POPT_ROWS (op_array_size(value_options) + op_array_size(flag_options) + 2)

static void fill_popt_table(struct opr_options *options, struct poptOption table[NR_POPT_ROWS])
{
	static const struct poptOption tail[] = { POPT_AUTOHELP POPT_TABLEEND };
	size_t row = 0;

	for (size_t i = 0; i < op_array_size(flag_options); i++)
		table[row++] = (struct poptOption){ .longName = flag_options[i].name,
						    .shortName = flag_options[i].short_name,
						    .argInfo = POPT_ARG_NONE,
						    .arg = (char *)options + flag_options[i].offset,
						    .descrip = flag_options[i].help };
	for (size_t i = 0; i < op_array_size(value_options); i++)
		table[row++] = (struct poptOption){ .longName = value_options[i].name,
						    .shortName = value_options[i].short_name,
						    .argInfo = POPT_ARG_STRING,
						    .val = (int)i + 1,
						    .descrip = value_options[i].help,
						    .argDescrip = value_options[i].value_help };
	memcpy(table + row, tail, sizeof(tail));
}

static int read_options(struct opr_options *options, poptContext context)
{
	int next, err = 0;

	while (!err && (next = poptGetNextOpt(context)) > 0) {
		char *value = poptGetOptArg(context);

		err = value_options[next - 1].take(options, value ? value : "");
		free(value);
	}
	if (err < 0)
		return err;
	if (next < -1)
		return opr_error(-EINVAL, "%s: %s (see opreport --help)", poptBadOption(context, POPT_BADOPTION_NOALIAS),
				 poptStrerror(next));
	for (const char *word; (word = poptGetArg(context));)
		if (opr_words_add(&options->words, word) < 0)
			return opr_no_memory();
	return 0;
}

/* ---- what does not go together ---- */

static int check(const struct opr_options *options)
{
	bool xml = options->format == OPR_FORMAT_XML;
	const struct {
		bool wrong;
		const char *message;
	} rules[] = {
		{ options->show_address && !options->symbols, "--show-address is meaningless without --symbols" },
		{ options->debug_info && !options->symbols, "--debug-info is meaningless without --symbols" },
		{ options->accumulated && !options->symbols, "--accumulated is meaningless without --symbols" },
		{ options->exclude_symbols.nr_words && !options->symbols, "--exclude-symbols is meaningless without --symbols" },
		{ options->include_symbols.nr_words && !options->symbols, "--include-symbols is meaningless without --symbols" },
		{ opr_words_have(&options->sort, "vma") && !options->symbols, "--sort=vma is meaningless without --symbols" },
		{ options->mem && (options->callgraph || options->details || options->accumulated || options->debug_info ||
				   options->show_address || options->global_percent || options->images || options->cgroups),
		  "--mem goes without options that are about samples" },
		{ options->mem && xml, "--mem is incompatible with --xml" },
		{ options->callgraph && options->details, "--callgraph is incompatible with --details" },
		{ xml && options->accumulated, "--accumulated is incompatible with --xml" },
		{ xml && options->global_percent, "--global-percent is incompatible with --xml" },
		{ xml && options->cgroups, "--cgroups is incompatible with --xml" },
		{ xml && options->images, "--images is incompatible with --xml" },
		{ options->global_percent && options->symbols && !options->details && !options->callgraph,
		  "--global-percent is meaningless with --symbols and without --details or --callgraph" },
		{ options->images && options->cgroups, "--images and --cgroups do not go together: --images cgroup:PATH shows those of one" },
		{ options->images && options->symbols, "--images and --symbols do not go together" },
		{ options->cgroups && options->symbols, "--cgroups and --symbols do not go together: cgroup:PATH selects one" },
		{ options->exclude_dependent && opr_words_have(&options->merge_words, "lib"),
		  "--exclude-dependent and --merge=lib do not go together" },
	};

	for (size_t i = 0; i < op_array_size(rules); i++)
		if (rules[i].wrong)
			return opr_error(-EINVAL, "%s", rules[i].message);
	return 0;
}

/* What one option says of another. */
static void imply(struct opr_options *options)
{
	if (options->details)
		options->symbols = options->show_address = 1;
	if (options->callgraph || options->mem)
		options->symbols = 1;
	if (options->xml)
		options->format = OPR_FORMAT_XML;
	options->order.reverse = options->reverse_sort;
	options->order.long_names = options->long_names;
}

/* XML has one order, and symbols whether they were asked for or not. */
static int imply_xml(struct opr_options *options)
{
	const char *bad_key;

	if (options->sort.nr_words || options->reverse_sort)
		opr_warn("--sort and --reverse-sort are without effect on XML");
	options->order = (struct opr_sort_order){ 0 };
	options->symbols = 1;
	if (take_words(&options->sort, "app-name,image") < 0)
		return -ENOMEM;
	return opr_sort_order_make(&options->order, &options->sort, &bad_key);
}

static int keep_title(struct opr_options *options, int argc, const char **argv)
{
	struct op_text title = { 0 };

	op_text_add(&title, "opreport ");
	for (int i = 1; i < argc; i++)
		op_text_printf(&title, "%s ", argv[i]);
	options->title = op_text_steal(&title);
	return options->title ? 0 : opr_no_memory();
}

static int parse(struct opr_options *options, int argc, const char **argv)
{
	struct poptOption table[NR_POPT_ROWS];
	poptContext context;
	int err;

	fill_popt_table(options, table);
	context = poptGetContext(NULL, argc, argv, table, 0);
	if (!context)
		return opr_no_memory();
	poptSetOtherOptionHelp(context, "[OPTION...] [PROFILE SPECIFICATION]...");
	err = read_options(options, context);
	poptFreeContext(context);
	return err;
}

int opr_options_parse(struct opr_options *options, int argc, const char **argv)
{
	const char *bad_key;
	int err;

	options->demangle = OPR_DEMANGLE_NORMAL;
	options->colour = colour_words[0];
	options->top = SIZE_MAX;
	err = opr_sort_order_make(&options->order, &options->sort, &bad_key);
	if (!err)
		err = keep_title(options, argc, argv);
	if (!err)
		err = parse(options, argc, argv);
	if (err < 0 || options->version)
		return err;
	imply(options);
	err = check(options);
	return !err && options->format == OPR_FORMAT_XML ? imply_xml(options) : err;
}

void opr_options_free(struct opr_options *options)
{
	if (!options)
		return;
	free(options->session_dir);
	free(options->root);
	free(options->output_file);
	free(options->since);
	free(options->until);
	free(options->title);
	opr_words_free(&options->sort);
	opr_words_free(&options->merge_words);
	opr_words_free(&options->exclude_symbols);
	opr_words_free(&options->include_symbols);
	opr_words_free(&options->image_path);
	opr_words_free(&options->words);
}
