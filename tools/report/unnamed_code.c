/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/unnamed_code.h"

#include <ctype.h>

#include "libop/base/grow.h"
#include "libop/base/text.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

#define MIN_PERCENT 1.0 /* as doc/opreport.1 says */
#define REGION      "anon"
#define OBJECT      ".jo" /* JIT code with names: TGID.jo */
#define NO_PROCESS  "/no-process" /* opd had no answer about the process */
#define UNSEEN_MIN_PERCENT 5.0

/* Images are known by the begin of their base name, and functions by the begin of their name. */
static const struct runtime {
	const char *language;
	const char *images[3];
	const char *loops[3];
	const char *advice; /* for code that was made at run time; NULL: none */
} runtimes[] = {
	{ "Java", { "libjvm.so", "java" }, { NULL },
	  "opreport -l --runtime has the functions of OpenJDK 17, by stacks; for this report start it with "
	  "-XX:+PreserveFramePointer, and run jcmd PID Compiler.perfmap while opd runs" },
	{ "JavaScript", { "libnode.so", "node" }, { NULL },
	  "opreport -l --runtime has the functions of Node 18 and 20, by stacks; for this report start node with "
	  "--perf-basic-prof" },
	{ ".NET", { "libcoreclr.so", "dotnet" }, { NULL }, "start it with DOTNET_PerfMapEnabled=1 in its environment" },
	{ "Python", { "libpython", "python" }, { "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx", "_PyEval_EvalFrame" }, NULL },
	{ "Perl", { "libperl.so", "perl" }, { "Perl_runops", "Perl_pp_" }, NULL },
	{ "Ruby", { "libruby", "ruby" }, { "vm_exec_core", "rb_vm_exec" }, NULL },
	{ "PHP", { "libphp", "php" }, { "execute_ex", "ZEND_" }, NULL },
};

static_assert(op_array_size(runtimes) <= op_array_size(((struct opr_unnamed_code *)0)->loops), "a sum for each runtime");

struct opr_unnamed_app {
	const char *app;
	const struct runtime *runtime; /* NULL: not known */
	bool has_names;                /* some of its code has names */
};

struct opr_unnamed_sum {
	const char *app;
	uint64_t count;
};

static bool begins(const char *text, const char *with)
{
	return with && !strncmp(text, with, strlen(with));
}

/* libpython3.11.so.1.0 and python3.11, but not nodejs-thing or javac. */
static const struct runtime *runtime_of(const char *image)
{
	const char *base = opr_base_name(image);

	for (size_t i = 0; i < op_array_size(runtimes); i++)
		for (size_t j = 0; j < op_array_size(runtimes[i].images); j++)
			if (begins(base, runtimes[i].images[j]) && !isalpha((unsigned char)base[strlen(runtimes[i].images[j])]))
				return &runtimes[i];
	return NULL;
}

static void note_app(struct opr_unnamed_code *code, const char *app, const struct runtime *runtime, bool has_names)
{
	const struct opr_unnamed_app *last = code->nr_apps ? &code->apps[code->nr_apps - 1] : NULL;

	if (last && last->app == app && last->runtime == runtime && last->has_names == has_names)
		return;
	if (!op_grow(&code->apps, &code->apps_capacity, code->nr_apps + 1))
		code->failed = true;
	else
		code->apps[code->nr_apps++] = (struct opr_unnamed_app){ app, runtime, has_names };
}

static void note_loop(struct opr_unnamed_code *code, const struct runtime *runtime, const char *function, uint64_t count)
{
	for (size_t i = 0; i < op_array_size(runtime->loops); i++) {
		if (!begins(function, runtime->loops[i]))
			continue;
		code->loops[runtime - runtimes] += count;
		return;
	}
}

static bool is_region(const char *image)
{
	return begins(image, REGION) && (!image[strlen(REGION)] || image[strlen(REGION)] == ' ');
}

static bool is_object(const char *image)
{
	size_t length = strlen(image);

	return length > strlen(OBJECT) && !strcmp(image + length - strlen(OBJECT), OBJECT);
}

void opr_unnamed_add(struct opr_unnamed_code *code, const char *app, const char *image, const char *function, uint64_t count)
{
	const struct runtime *runtime = runtime_of(image);

	code->total += count;
	if (!strcmp(image, NO_PROCESS))
		code->unseen += count;
	if (runtime)
		note_app(code, app, runtime, false);
	if (runtime && function)
		note_loop(code, runtime, function, count);
	if (is_object(image))
		note_app(code, app, NULL, true);
	if (function || !is_region(image))
		return;
	if (!op_grow(&code->sums, &code->sums_capacity, code->nr_sums + 1))
		code->failed = true;
	else
		code->sums[code->nr_sums++] = (struct opr_unnamed_sum){ app, count };
}

/* ---- what is said ---- */

static int compare_apps(const void *left, const void *right)
{
	const struct opr_unnamed_app *a = left, *b = right;
	int order = strcmp(a->app, b->app);

	/* what is known of an application comes first */
	return order ? order : (a->runtime < b->runtime) - (a->runtime > b->runtime);
}

static int compare_sums(const void *left, const void *right)
{
	const struct opr_unnamed_sum *a = left, *b = right;

	return strcmp(a->app, b->app);
}

/* The first of the application; its others follow. NULL: nothing is known of it. */
static const struct opr_unnamed_app *find_app(const struct opr_unnamed_code *code, const char *app)
{
	size_t first = 0, end = code->nr_apps;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (strcmp(code->apps[middle].app, app) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first < code->nr_apps && !strcmp(code->apps[first].app, app) ? &code->apps[first] : NULL;
}

static bool has_names(const struct opr_unnamed_code *code, const struct opr_unnamed_app *app)
{
	const struct opr_unnamed_app *next = app;

	for (; next && next < code->apps + code->nr_apps && !strcmp(next->app, app->app); next++)
		if (next->has_names)
			return true;
	return false;
}

static double percent_of(const struct opr_unnamed_code *code, uint64_t count)
{
	return opr_percent(count, code->total);
}

/* Code of all applications of one runtime, or of one application whose runtime is not known. */
static void tell_made(const struct opr_unnamed_code *code, const char *app, const struct runtime *runtime, uint64_t count,
		      bool some_have_names)
{
	const char *again = some_have_names ? "; what has names in this report was named before the rest was made" : "";

	if (percent_of(code, count) < MIN_PERCENT)
		return;
	if (runtime && runtime->advice)
		opr_note("%.0f %% of the samples are %s code without names: %s%s.", percent_of(code, count), runtime->language,
			 runtime->advice, again);
	else
		opr_note("%.0f %% of the samples are code that %s made while it ran, without names: a runtime names it in "
			 "/tmp/perf-PID.map or a jitdump, often with an option of its own%s.",
			 percent_of(code, count), opr_base_name(app), again);
}

static void tell_sums(struct opr_unnamed_code *code)
{
	uint64_t known[op_array_size(runtimes)] = { 0 };
	bool named[op_array_size(runtimes)] = { false };
	size_t next;

	for (size_t i = 0; i < code->nr_sums; i = next) {
		const struct opr_unnamed_app *app = find_app(code, code->sums[i].app);
		const struct runtime *runtime = app && app->runtime ? app->runtime : runtime_of(code->sums[i].app);
		uint64_t count = 0;

		for (next = i; next < code->nr_sums && !strcmp(code->sums[next].app, code->sums[i].app); next++)
			count += code->sums[next].count;
		if (!runtime || !runtime->advice) {
			tell_made(code, code->sums[i].app, NULL, count, has_names(code, app));
			continue;
		}
		known[runtime - runtimes] += count;
		named[runtime - runtimes] |= has_names(code, app);
	}
	for (size_t i = 0; i < op_array_size(runtimes); i++)
		tell_made(code, NULL, &runtimes[i], known[i], named[i]);
}

static bool runs_named_code(const struct opr_unnamed_code *code, const struct runtime *runtime)
{
	for (size_t i = 0; i < code->nr_apps; i++)
		if (code->apps[i].runtime == runtime && has_names(code, find_app(code, code->apps[i].app)))
			return true;
	return false;
}

static void tell_loops(const struct opr_unnamed_code *code)
{
	for (size_t i = 0; i < op_array_size(runtimes); i++) {
		if (percent_of(code, code->loops[i]) < MIN_PERCENT || runs_named_code(code, &runtimes[i]))
			continue;
		opr_note("%.0f %% of the samples are in the loop of the interpreter of %s: this report has the functions of the "
			 "interpreter; opreport -l --runtime has those of the program, by stacks.",
			 percent_of(code, code->loops[i]), runtimes[i].language);
	}
}

static void tell_unseen(const struct opr_unnamed_code *code)
{
	if (percent_of(code, code->unseen) >= UNSEEN_MIN_PERCENT)
		opr_note("%.0f %% of the samples are of processes that opd does not see (no-process): an opd in a container sees "
			 "those of the container only, so run opd on the host; others ended at once.",
			 percent_of(code, code->unseen));
}

int opr_unnamed_tell(struct opr_unnamed_code *code)
{
	bool failed = code->failed;

	if (code->nr_apps)
		qsort(code->apps, code->nr_apps, sizeof(*code->apps), compare_apps);
	if (code->nr_sums)
		qsort(code->sums, code->nr_sums, sizeof(*code->sums), compare_sums);
	if (!failed) {
		tell_unseen(code);
		tell_sums(code);
		tell_loops(code);
	}
	free(code->apps);
	free(code->sums);
	*code = (struct opr_unnamed_code){ 0 };
	return failed ? opr_no_memory() : 0;
}
