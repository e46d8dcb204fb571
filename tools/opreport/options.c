/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/options.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/htable.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/output.h"
#include "tools/page/write_page.h"
#include "tools/profile/spec.h"

/* ---- values that only opreport has ---- */

static int take_sort(void *field, const char *value)
{
	struct opr_sort_order order;
	const char *bad_key;

	if (opr_take_words(field, value) < 0)
		return -ENOMEM;
	if (opr_sort_order_make(&order, field, &bad_key) < 0)
		return opr_refuse_word("invalid sort key", bad_key, opr_sort_words, OPR_NR_SORT_KEYS);
	return 0;
}

static const char *const format_words[] = {
	[OPR_FORMAT_TEXT] = "text",
	[OPR_FORMAT_XML] = "xml",
	[OPR_FORMAT_JSON] = "json",
	[OPR_FORMAT_CSV] = "csv",
	[OPR_FORMAT_BOLT] = "bolt",
	[OPR_FORMAT_FOLDED] = "folded",
	[OPR_FORMAT_PPROF] = "pprof",
	[OPR_FORMAT_PERF] = "perf",
	[OPR_FORMAT_SPEEDSCOPE] = "speedscope",
	[OPR_FORMAT_FIREFOX] = "firefox",
	[OPR_FORMAT_CALLGRIND] = "callgrind",
};

#define FORMATS "text|xml|json|csv|folded|pprof|perf|speedscope|firefox|callgrind|bolt"

static const char *const colour_words[] = { "auto", "always", "never" };

static int take_format(void *field, const char *value)
{
	size_t index;

	if (!opr_find_word(format_words, op_array_size(format_words), value, &index))
		return opr_refuse_word("unknown format", value, format_words, op_array_size(format_words));
	*(enum opr_format *)field = (enum opr_format)index;
	return 0;
}

static int take_colour(void *field, const char *value)
{
	size_t index;

	if (!opr_find_word(colour_words, op_array_size(colour_words), value, &index))
		return opr_refuse_word("invalid colour option", value, colour_words, op_array_size(colour_words));
	*(const char **)field = colour_words[index];
	return 0;
}

/*
 * `field` is stacks of the query; without a value the stacks are those of CPUs. popt takes the next
 * word for the value: any other word is one of the profile specification.
 */
static int take_stacks(void *field, const char *value)
{
	static const char *const words[] = { [OPR_VIEW_CPU] = "cpu", [OPR_VIEW_WAIT] = "wait", [OPR_VIEW_WALL] = "wall" };
	struct opr_query *query = op_container_of(field, struct opr_query, stacks);
	size_t index = OPR_VIEW_CPU;

	query->stacks = 1;
	if (*value && !opr_find_word(words, op_array_size(words), value, &index))
		return opr_words_add(&query->words, value) < 0 ? opr_no_memory() : 0;
	query->view = (enum opr_view)index;
	return 0;
}

/* `field` is runtimes; the value, if there is one, is a runtime, or another word as above. */
static int take_runtime(void *field, const char *value)
{
	struct opr_options *options = op_container_of(field, struct opr_options, runtimes);
	enum op_runtime runtime = OP_NR_RUNTIMES;

	options->runtimes = 1;
	while (*value && --runtime > OP_RUNTIME_none)
		if (!strcmp(op_runtime_word(runtime), value))
			options->runtime = runtime;
	if (*value && !options->runtime)
		return opr_words_add(&options->query.words, value) < 0 ? opr_no_memory() : 0;
	return 0;
}

static int take_native(void *field, const char *value)
{
	static const char *const words[] = { [OPR_NATIVE_FOLD] = "fold", [OPR_NATIVE_SHOW] = "show", [OPR_NATIVE_ONLY] = "only" };
	size_t index;

	if (!opr_find_word(words, op_array_size(words), value, &index))
		return opr_refuse_word("unknown word for --native", value, words, op_array_size(words));
	*(enum opr_native *)field = (enum opr_native)index;
	return 0;
}

static int take_idle(void *field, const char *value)
{
	static const char *const words[] = { "hide", "show" };
	size_t index;

	if (!opr_find_word(words, op_array_size(words), value, &index))
		return opr_refuse_word("unknown word for --idle", value, words, op_array_size(words));
	*(int *)field = (int)index;
	return 0;
}

/* `field` is over_time; the value, if there is one, goes to course_of behind it. */
static int take_over_time(void *field, const char *value)
{
	struct opr_options *options = op_container_of(field, struct opr_options, over_time);

	options->over_time = 1;
	return value && *value ? opr_take_string(&options->course_of, value) : 0;
}

#define FIELD(name) offsetof(struct opr_options, name)
#define QUERY(name) FIELD(query.name)

static const struct opr_option rows[] = {
	{ "accumulated", 'a', QUERY(accumulated), NULL, "accumulate percentage of symbols", NULL },
	OPR_SPAN_AT(QUERY),
	{ "callgraph", 'c', QUERY(callgraph), NULL, "show callers and callees of each symbol", NULL },
	{ "by", 0, QUERY(by), opr_take_by, "groups instead of applications (opcontrol --separate)", "comm,cgroup,user,thread" },
	{ "cgroups", 0, FIELD(cgroups), NULL, "as --by=cgroup, without symbols", NULL },
	{ "color", 0, FIELD(colour), take_colour, "colours in the report (default auto: on a terminal)", "auto|always|never" },
	{ "debug-info", 'g', QUERY(lines), NULL, "add source file and line number", NULL },
	{ "debuginfod-time", 0, FIELD(debuginfod_time), opr_take_debuginfod_time, OPR_DEBUGINFOD_TIME_HELP, "seconds" },
	{ "demangle", 'D', QUERY(naming.demangle), opr_take_demangle,
	  "demangle names of C++, Rust and D (default smart in text, else normal)",
	  "none|normal|smart" },
	{ "depth", 0, QUERY(depth), opr_take_number, "show so many levels of --stacks", "number" },
	{ "details", 'd', QUERY(details), NULL, "output detailed samples for each symbol", NULL },
	{ "diff", 0, FIELD(diff), opr_take_string, "compare two spans of time: the second one is an argument", "TIME..TIME" },
	{ "exclude-dependent", 'x', QUERY(exclude_dependent), NULL, "exclude libs, kernel, and module samples for applications",
	  NULL },
	{ "exclude-symbols", 'e', QUERY(exclude_symbols), opr_take_functions, "exclude these comma separated symbols", "symbols" },
	{ "explain", 0, FIELD(explain), NULL, "one page in plain words: what burned, what changed, what is missing", NULL },
	{ "format", 0, FIELD(format), take_format, "form of the report (default text)", FORMATS },
	{ "focus", 0, QUERY(focus), opr_take_string, "only stacks with a name that matches (--stacks)", "regex" },
	{ "global-percent", '%', QUERY(global_percent), NULL, "make percentage relative to total samples", NULL },
	{ "html", 0, FIELD(html), opr_take_string, "write stacks as a page for a browser", "file" },
	{ "idle", 0, QUERY(show_idle), take_idle, "stacks of waits for work: one line, or all (default hide)", "hide|show" },
	{ "ignore", 0, QUERY(ignore), opr_take_string, "no stacks with a name that matches (--stacks)", "regex" },
	{ "image-path", 'p', QUERY(naming.image_path), opr_take_words, "comma-separated path to search missing binaries", "path" },
	{ "images", 0, QUERY(images), NULL, "list images: build-id, what symbols there are, which debug file would help", NULL },
	{ "include-symbols", 'i', QUERY(include_symbols), opr_take_functions, "include these comma separated symbols", "symbols" },
	{ "inline", 0, QUERY(inlined), NULL, "a line for each inlined function, with where it was inlined", NULL },
	{ "invert", 0, QUERY(invert), NULL, "begin stacks where samples are, and follow callers", NULL },
	OPR_SPAN_LAST(QUERY),
	{ "long-filenames", 'f', QUERY(long_names), NULL, "show the full path of filenames", NULL },
	{ "mem", 0, QUERY(memory), NULL, "loads, stores, where data came from and branches by symbol (IBS_OP events)", NULL },
	{ "merge", 'm', QUERY(merge), opr_take_merge, "comma separated list of things to merge", "cpu,lib,tid,tgid,unitmask,all" },
	{ "native", 0, QUERY(native), take_native,
	  "native frames of interpreters in --stacks: one with their functions, all, or none at all (default fold)",
	  "fold|show|only" },
	{ "no-debuginfod", 0, FIELD(no_debuginfod), NULL, "download no debug files, and use none that were downloaded", NULL },
	{ "no-header", 'n', QUERY(no_header), NULL, "remove all headers from output", NULL },
	{ "no-pager", 0, FIELD(no_pager), NULL, "write to the terminal without a pager", NULL },
	{ "over-time", 0, FIELD(over_time), take_over_time, "what each application took by the minute, or one function or image",
	  "[name]" },
	{ "output-file", 'o', FIELD(output_file), opr_take_string, "output to the given filename", "file" },
	{ "reverse-sort", 'r', QUERY(reverse_sort), NULL, "use reverse sort", NULL },
	{ "root", 'R', QUERY(naming.root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "runtime", 0, FIELD(runtimes), take_runtime, "with --symbols: the functions of runtimes, or of one",
	  "[python|node|java|php|perl|ruby]" },
	{ "session-dir", 0, QUERY(session_dir), opr_take_string, "directory that holds the samples", "directory" },
	{ "show-address", 'w', QUERY(show_address), NULL, "show VMA address of each symbol", NULL },
	OPR_SPAN_SINCE(QUERY),
	{ "sort", 's', FIELD(sort), take_sort, "sort by", "sample,image,app-name,symbol,debug,vma,change" },
	{ "stacks", 0, QUERY(stacks), take_stacks, "show a tree of calls: of CPUs, of waits, or of both in time",
	  "[cpu|wait|wall]" },
	{ "symbols", 'l', QUERY(symbols), NULL, "list all the symbols", NULL },
	{ "symbols-from", 0, QUERY(naming.sources), opr_take_sources, "sources of symbols (default all)", OPR_SOURCE_NAMES },
	{ "threshold", 't', QUERY(threshold), opr_take_percent, "minimum percentage needed to produce output", "percent" },
	{ "top", 0, QUERY(top), opr_take_number, "show the first lines only", "number" },
	{ "top-changes", 0, FIELD(top_changes), NULL, "functions that took more than in the span of time before", NULL },
	OPR_SPAN_UNTIL(QUERY),
	{ "verbose", 'V', 0, opr_take_verbose, "print details to stderr", "all,details,debug,bfd,level1,sfile,stats,xml" },
	OPR_SPAN_WINDOW(QUERY),
	{ "waits", 0, FIELD(waits), NULL, "with --symbols: the functions that waited, instead of samples", NULL },
	{ "wakers", 0, FIELD(wakers), NULL, "the functions that waited, and the threads that woke them", NULL },
	{ "wide", 0, QUERY(wide), NULL, "text has whole names: nothing is left out of them to fit", NULL },
	{ "xml", 'X', FIELD(xml), NULL, "write XML", NULL },
};

#undef QUERY
#undef FIELD

static const struct opr_command command = {
	.program = "opreport",
	.arguments = "[PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

/* ---- what does not go together ---- */

static bool merges_libs(const struct opr_options *options)
{
	return opr_words_have(&options->query.merge.words, "lib") || opr_words_have(&options->query.merge.words, "library");
}

/* Options for other forms than the page. Those that imply others come before them. */
static int check_html(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	const struct {
		bool given;
		const char *name;
	} others[] = {
		{ options->xml, "xml" },
		{ options->format != OPR_FORMAT_TEXT, "format" },
		{ query->invert, "invert" },
		{ query->focus, "focus" },
		{ query->ignore, "ignore" },
		{ query->depth != SIZE_MAX, "depth" },
		{ query->by, "by" },
		{ options->cgroups, "cgroups" },
		{ options->output_file, "output-file" },
		{ query->images, "images" },
		{ query->details, "details" },
		{ query->callgraph, "callgraph" },
		{ query->memory, "mem" },
		{ query->symbols, "symbols" },
	};

	for (size_t i = 0; options->html && i < op_array_size(others); i++)
		if (others[i].given)
			return opr_error(-EINVAL, "--html does not go together with --%s", others[i].name);
	return 0;
}

/* A course is of what the words select, and has forms of its own. */
static int check_over_time(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	const struct {
		bool given;
		const char *name;
	} others[] = {
		{ options->explain, "explain" },   { options->html, "html" },	  { options->diff, "diff" },
		{ options->top_changes, "top-changes" }, { query->images, "images" }, { query->stacks, "stacks" },
		{ query->callgraph, "callgraph" }, { query->memory, "mem" },	  { query->details, "details" },
		{ query->inlined, "inline" },	   { query->by, "by" },		  { options->cgroups, "cgroups" },
	};

	if (!options->over_time)
		return 0;
	for (size_t i = 0; i < op_array_size(others); i++)
		if (others[i].given)
			return opr_error(-EINVAL, "--over-time does not go together with --%s", others[i].name);
	if (options->format != OPR_FORMAT_TEXT && options->format != OPR_FORMAT_JSON && options->format != OPR_FORMAT_CSV)
		return opr_error(-EINVAL, "--over-time is written as text, --format=csv or --format=json");
	return 0;
}

/* The page has a plan of its own. What selects samples and finds names goes together with it. */
static int check_explain(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	const struct {
		bool given;
		const char *name;
	} others[] = {
		{ options->xml, "xml" },	   { options->html, "html" },	       { options->diff, "diff" },
		{ options->top_changes, "top-changes" },
		{ query->symbols, "symbols" },	   { query->images, "images" },	       { query->stacks, "stacks" },
		{ query->callgraph, "callgraph" }, { query->memory, "mem" },	       { query->details, "details" },
		{ query->inlined, "inline" },	   { query->by, "by" },		       { options->cgroups, "cgroups" },
		{ query->invert, "invert" },	   { options->sort.nr_words, "sort" }, { query->top != SIZE_MAX, "top" },
	};

	if (!options->explain)
		return 0;
	for (size_t i = 0; i < op_array_size(others); i++)
		if (others[i].given)
			return opr_error(-EINVAL, "--explain does not go together with --%s", others[i].name);
	if (options->format != OPR_FORMAT_TEXT && options->format != OPR_FORMAT_JSON)
		return opr_error(-EINVAL, "--explain is written as text or --format=json");
	return 0;
}

/* Functions of runtimes, and the native frames around them. */
static int check_runtimes(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	const struct {
		bool wrong;
		const char *message;
	} rules[] = {
		{ options->runtimes && (!query->symbols || query->stacks || options->waits),
		  "--runtime goes together with --symbols: opreport -l --runtime" },
		{ options->runtimes && (query->details || query->callgraph || query->memory || query->by || query->lines ||
					query->accumulated || query->show_address || query->images || options->html ||
					query->inlined || options->sort.nr_words || query->include_symbols.nr_words ||
					query->exclude_symbols.nr_words),
		  "--runtime goes together with options that select, --top and --threshold" },
		{ options->runtimes && options->format != OPR_FORMAT_TEXT && options->format != OPR_FORMAT_JSON &&
			  options->format != OPR_FORMAT_CSV,
		  "--runtime is written as text, --format=csv or --format=json" },
		{ query->native != OPR_NATIVE_FOLD && !query->stacks, "--native is meaningless without --stacks and --html" },
		{ query->native == OPR_NATIVE_ONLY && options->format == OPR_FORMAT_PERF,
		  "--format=perf has addresses, which functions of runtimes do not have: leave out --native=only" },
	};

	for (size_t i = 0; i < op_array_size(rules); i++)
		if (rules[i].wrong)
			return opr_error(-EINVAL, "%s", rules[i].message);
	return 0;
}

static int check(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	bool xml = options->format == OPR_FORMAT_XML;
	const struct {
		bool wrong;
		const char *message;
	} rules[] = {
		{ query->show_address && !query->symbols, "--show-address is meaningless without --symbols" },
		{ query->lines && !query->symbols, "--debug-info is meaningless without --symbols" },
		{ query->accumulated && !query->symbols, "--accumulated is meaningless without --symbols" },
		{ query->exclude_symbols.nr_words && !query->symbols, "--exclude-symbols is meaningless without --symbols" },
		{ query->include_symbols.nr_words && !query->symbols, "--include-symbols is meaningless without --symbols" },
		{ opr_words_have(&options->sort, "vma") && !query->symbols, "--sort=vma is meaningless without --symbols" },
		{ query->memory && (query->callgraph || query->details || query->accumulated || query->lines ||
				    query->show_address || query->global_percent || query->images || options->cgroups || query->by),
		  "--mem does not go together with options that are about samples" },
		{ query->memory && xml, "--mem is incompatible with --xml" },
		{ query->callgraph && query->inlined,
		  "--callgraph is incompatible with --inline: calls are between symbols, and an inlined function is not called" },
		{ query->callgraph && query->details, "--callgraph is incompatible with --details" },
		{ xml && query->accumulated, "--accumulated is incompatible with --xml" },
		{ xml && query->global_percent, "--global-percent is incompatible with --xml" },
		{ xml && options->cgroups, "--cgroups is incompatible with --xml" },
		{ xml && query->images, "--images is incompatible with --xml" },
		{ query->global_percent && query->symbols && !query->details && !query->callgraph,
		  "--global-percent is meaningless with --symbols and without --details or --callgraph" },
		{ (query->invert || query->focus || query->ignore || query->depth != SIZE_MAX) && !query->stacks,
		  "--invert, --focus, --ignore and --depth are meaningless without --stacks" },
		{ query->stacks && !options->html && (query->symbols || query->images || options->cgroups || xml),
		  "--stacks does not go together with --symbols, --images, --cgroups, --xml and what implies them" },
		{ query->invert && options->format > OPR_FORMAT_FOLDED,
		  "--invert does not go together with a file for another tool: that tool shows both directions" },
		{ query->by && opr_format_has_places(options->format),
		  "--by does not go together with --format=pprof and perf, which have all groups as labels" },
		{ opr_format_has_places(options->format) && !options->output_file && isatty(STDOUT_FILENO),
		  "--format=pprof and --format=perf write bytes that a terminal cannot show: add --output-file=FILE" },
		{ options->format == OPR_FORMAT_BOLT &&
			  (query->stacks || query->images || query->callgraph || query->memory || query->by || query->inlined ||
			   options->cgroups || query->details || query->accumulated || query->lines),
		  "--format=bolt goes together with options that select samples only" },
		{ query->view != OPR_VIEW_CPU && options->format == OPR_FORMAT_PERF,
		  "--format=perf has samples, and waits are times: --format=pprof has them" },
		{ query->show_idle && query->view == OPR_VIEW_CPU && !options->waits && !options->html,
		  "--idle is meaningless without --stacks=wait, --stacks=wall, --waits and --html" },
		{ options->waits && !options->over_time && (!query->symbols || query->stacks),
		  "--waits goes together with --symbols or --over-time: opreport -l --waits" },
		{ options->waits && (query->details || query->callgraph || query->memory || query->by || query->lines ||
				     query->accumulated || query->show_address || query->images || options->html ||
				     options->sort.nr_words || query->include_symbols.nr_words || query->exclude_symbols.nr_words),
		  "--waits goes together with options that select, --idle, --top and --threshold" },
		{ options->waits && options->format != OPR_FORMAT_TEXT && options->format != OPR_FORMAT_JSON &&
			  options->format != OPR_FORMAT_CSV,
		  "--waits is written as text, --format=csv or --format=json" },
		{ options->wakers && (options->diff || options->top_changes || opr_words_have(&query->words, "{")),
		  "--wakers is of one profile" },
		{ options->wakers && options->over_time, "--wakers and --over-time do not go together" },
		{ query->images && options->cgroups,
		  "--images and --cgroups do not go together: --images cgroup:PATH shows those of one" },
		{ query->images && query->by, "--images and --by do not go together" },
		{ options->cgroups && query->by, "--cgroups is --by=cgroup: leave out one of them" },
		{ query->images && query->symbols, "--images and --symbols do not go together" },
		{ options->cgroups && query->symbols, "--cgroups and --symbols do not go together: cgroup:PATH selects one" },
		{ query->exclude_dependent && merges_libs(options), "--exclude-dependent and --merge=lib do not go together" },
	};

	for (size_t i = 0; i < op_array_size(rules); i++)
		if (rules[i].wrong)
			return opr_error(-EINVAL, "%s", rules[i].message);
	return check_html(options);
}

/* The first argument that is a span of time, since a profile specification has no dots in a row. */
static int take_second_span(struct opr_options *options)
{
	struct opr_words *words = &options->query.words;
	const struct opr_span_words *span = &options->query.span;

	if (options->top_changes && options->diff)
		return opr_error(-EINVAL, "--top-changes compares with the span before: leave out --diff");
	if (options->top_changes && !(span->since || span->at || span->last))
		return opr_error(-EINVAL,
				 "--top-changes needs a span of time: --last=10min, --at=TIME or --since=TIME --until=TIME");
	if (!options->diff)
		return 0;
	if (span->since || span->until || span->at || span->last)
		return opr_error(-EINVAL, "--diff has two spans of time of its own: leave out --since, --until, --at and --last");
	for (size_t i = 0; i < words->nr_words; i++) {
		if (!strstr(words->words[i], OPR_SPAN_DOTS) || strchr(words->words[i], '/'))
			continue;
		options->diff_with = words->words[i];
		memmove(words->words + i, words->words + i + 1, (--words->nr_words - i) * sizeof(*words->words));
		return 0;
	}
	return opr_error(-EINVAL,
			 "--diff=%s needs a second span of time: opreport -l --diff '03:10..03:20' 'yesterday 03:10..03:20'",
			 options->diff);
}

/* The files that the report is written to: a report may take long before it opens them. */
static int check_files(const struct opr_options *options)
{
	int err = 0;

	if (options->html)
		err = opr_spec_check_file("html", options->html);
	if (options->html && !err)
		err = opr_output_check(options->html, opr_page_is, OPR_PAGE_NAME);
	if (options->output_file && !err)
		err = opr_spec_check_file("output-file", options->output_file);
	if (options->output_file && !err)
		err = opr_output_check(options->output_file, NULL, NULL);
	return err;
}

/* One image: a program without its libraries, or a library in all programs. */
static void imply_bolt(struct opr_options *options)
{
	struct opr_query *query = &options->query;

	query->symbols = 1;
	query->exclude_dependent = !merges_libs(options);
	query->merge.merge.cpu = query->merge.merge.tid = query->merge.merge.tgid = true;
}

/* Sets options that follow from others. */
static void imply(struct opr_options *options)
{
	struct opr_query *query = &options->query;

	if (query->details)
		query->symbols = query->show_address = 1;
	if (options->top_changes && !options->html)
		query->symbols = 1;
	if (options->wakers)
		options->waits = query->symbols = 1;
	if (options->format >= OPR_FORMAT_FOLDED || options->html)
		query->stacks = 1;
	if (options->format == OPR_FORMAT_BOLT)
		imply_bolt(options);
	if (query->callgraph || query->memory || (query->inlined && !query->stacks))
		query->symbols = 1;
	if (options->xml)
		options->format = OPR_FORMAT_XML;
	/* One line for each image or group, or no columns, so all classes are merged by default. */
	if ((query->images || options->cgroups || query->by || options->html) && !query->merge.words.nr_words)
		query->merge.merge = (struct opr_merge){ .cpu = true, .tid = true, .tgid = true };
	options->order.reverse = query->reverse_sort;
	options->order.long_names = query->long_names;
}

static int set_order(struct opr_options *options, const char *keys)
{
	const char *bad_key;

	if (opr_take_words(&options->sort, keys) < 0)
		return -ENOMEM;
	return opr_sort_order_make(&options->order, &options->sort, &bad_key);
}

/* What the steps of the report are to do, when the options are known to go together. */
static void finish_query(struct opr_options *options)
{
	struct opr_query *query = &options->query;

	if (query->naming.demangle == OPR_NR_DEMANGLE) {
		options->shortens_names = options->format == OPR_FORMAT_TEXT && !options->html && !query->wide;
		query->naming.demangle = options->shortens_names ? OPR_DEMANGLE_SMART : OPR_DEMANGLE_NORMAL;
	}
	if (options->cgroups)
		query->by = OPR_BY_CGROUP;
	query->symbols |= options->format == OPR_FORMAT_XML; /* XML is always of symbols */
	query->details |= options->format == OPR_FORMAT_BOLT;
	query->lines |= options->html != NULL;
	query->places = opr_format_has_places(options->format);
	query->any_axes = options->format == OPR_FORMAT_XML;
	query->totals_only = query->images || !query->symbols;
	query->sessions_only = query->stacks || options->waits || options->runtimes;
	if (options->waits)
		query->view = OPR_VIEW_WAIT;
	if (options->format == OPR_FORMAT_PERF) /* it has addresses only, so all of them */
		query->native = OPR_NATIVE_SHOW;
	query->naming.fetch_lines = query->lines || query->inlined;
	/* A caller below the threshold stands beside a callee above it. */
	query->naming.fetch_percent = query->callgraph || query->stacks ? 0 : query->threshold;
}

/* XML has its own order. The symbols of a group stand together. */
static int imply_order(struct opr_options *options)
{
	if (options->top_changes && !options->sort.nr_words)
		return set_order(options, opr_sort_words[OPR_SORT_change]);
	if (options->format != OPR_FORMAT_XML)
		return options->query.by && options->query.symbols && !options->sort.nr_words
			       ? set_order(options, "app-name,sample")
			       : 0;
	if (options->sort.nr_words)
		opr_warn("--sort has no effect on XML");
	return set_order(options, "app-name,image");
}

int opr_options_parse(struct opr_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	const char *bad_key;
	int err;

	options->query.naming.demangle = OPR_NR_DEMANGLE; /* not given */
	options->colour = colour_words[0];
	options->query.top = options->query.depth = SIZE_MAX;
	options->title = opr_command_line(command.program, argc, argv);
	if (!options->title)
		return opr_no_memory();
	err = opr_command_read(&command, argc, argv, options, &options->query.words, ret_request);
	if (err < 0 || *ret_request == OPR_DONE)
		return err;
	err = opr_sort_order_make(&options->order, &options->sort, &bad_key);
	imply(options);
	if (!err)
		err = opr_sources_complete(&options->query.naming.sources);
	if (options->no_debuginfod)
		options->query.naming.sources &= ~(uint32_t)OPR_FROM_DEBUGINFOD;
	if (!err)
		err = take_second_span(options);
	if (!err)
		err = check_over_time(options);
	if (!err)
		err = check_explain(options);
	if (!err)
		err = check_runtimes(options);
	if (!err)
		err = check(options);
	if (!err)
		err = check_files(options);
	if (err)
		return err;
	finish_query(options);
	return imply_order(options);
}

bool opr_options_fit_leaves(const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	enum opr_format format = options->format;
	bool is_table = format == OPR_FORMAT_TEXT || format == OPR_FORMAT_JSON || format == OPR_FORMAT_CSV;

	return is_table && !options->html && !query->stacks && !query->images && !query->details && !query->lines &&
	       !query->inlined && !query->callgraph && !query->memory && !query->show_address && !query->exclude_dependent &&
	       !query->include_symbols.nr_words && !query->exclude_symbols.nr_words && !query->merge.merge.lib;
}

void opr_options_free(struct opr_options *options)
{
	if (!options)
		return;
	opr_command_free(&command, options);
	opr_words_free(&options->query.merge.words);
	opr_words_free(&options->sort);
	opr_words_free(&options->query.words);
	free(options->diff_with);
	free(options->course_of);
	free(options->title);
}

int opr_options_split_diff(const struct opr_options *options, struct opr_query ret_queries[2])
{
	struct opr_span spans[2];
	int err = 0;

	ret_queries[0] = ret_queries[1] = options->query;
	if (!options->diff)
		return 0;
	ret_queries[0].span.range = options->diff;
	ret_queries[1].span.range = options->diff_with;
	for (int i = 0; i < 2 && !err; i++)
		err = opr_span_parse(&spans[i], &ret_queries[i].span);
	if (!err && spans[0].since_us > spans[1].since_us) {
		ret_queries[0].span.range = options->diff_with;
		ret_queries[1].span.range = options->diff;
	}
	return err;
}

/* ---- the <options> element of XML ---- */

static const char *join_words(struct opr_xml_values *values, const struct opr_words *words)
{
	struct op_text text = { 0 };
	char *joined;

	for (size_t i = 0; i < words->nr_words; i++)
		op_text_printf(&text, "%s%s", i ? "," : "", words->words[i]);
	joined = op_text_steal(&text);
	if (joined)
		values->texts[values->nr_texts++] = joined;
	return joined;
}

int opr_xml_options(const struct opr_options *options, const struct opr_spec *spec, struct opr_xml_values *values,
		    struct opr_xml_attribute *ret_attributes, size_t *ret_nr_attributes)
{
	const struct opr_query *query = &options->query;
	static const struct opr_words none;
	const struct {
		const char *name;
		bool flag;
		const struct opr_words *words;
	} attributes[OPR_NR_XML_OPTIONS] = {
		{ "session", false, spec->sessions_given ? &spec->sessions : &none },
		{ "debuginfo", query->lines, NULL },
		{ "details", query->details, NULL },
		{ "inline", query->inlined, NULL },
		{ "imagepath", false, &query->naming.image_path },
		{ "merge", false, &query->merge.words },
		{ "excludedependent", query->exclude_dependent, NULL },
		{ "excludesymbols", false, &query->exclude_symbols },
		{ "includesymbols", false, &query->include_symbols },
	};

	*ret_nr_attributes = 0;
	for (size_t i = 0; i < OPR_NR_XML_OPTIONS; i++) {
		const char *value = "true";

		if (!attributes[i].flag && !(attributes[i].words && attributes[i].words->nr_words))
			continue;
		if (attributes[i].words)
			value = join_words(values, attributes[i].words);
		if (!value)
			return opr_no_memory();
		ret_attributes[(*ret_nr_attributes)++] = (struct opr_xml_attribute){ attributes[i].name, value };
	}
	return 0;
}

void opr_xml_values_free(struct opr_xml_values *values)
{
	for (size_t i = 0; i < values->nr_texts; i++)
		free(values->texts[i]);
	values->nr_texts = 0;
}
