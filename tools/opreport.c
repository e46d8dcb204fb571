/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opreport: what a session's samples say, per application, per symbol or per image. */
#include <errno.h>

#include "tools/opreport_options.h"
#include "tools/report_log.h"
#include "tools/report_writer.h"
#include "tools/session_dir.h"
#include "tools/session_span.h"
#include "tools/session_stats.h"

#define ARCHIVE_SESSION_DIR "/var/lib/oprofile"

struct run {
	struct opr_options options;
	struct opr_spec spec;
	struct opr_finder finder;
	struct opr_profile profile;
	struct opr_classes classes;
	FILE *out;
};

/* An archive has everything below itself: the sessions where they are by default, the images where they were. */
static int find_archive(struct run *run, char **ret_dir)
{
	const char *archive = run->spec.archive.words[0];
	char *root = realpath(archive, NULL), *dir;

	if (!root)
		return opr_error(-errno, "archive:%s: %s", archive, strerror(errno));
	if (asprintf(&dir, "%s" ARCHIVE_SESSION_DIR, root) < 0) {
		free(root);
		return opr_no_memory();
	}
	if (run->options.root)
		free(root);
	else
		run->options.root = root;
	*ret_dir = dir;
	return 0;
}

static int choose_session_dir(struct run *run, char **ret_dir)
{
	return run->spec.archive.nr_words ? find_archive(run, ret_dir) : opr_session_dir_choose(run->options.session_dir, ret_dir);
}

/* The sessions of a span take the place of the current one. */
static int choose_sessions(struct run *run, const char *session_dir)
{
	struct opr_span span;
	int err = opr_span_parse(&span, run->options.since, run->options.until);

	if (err || !opr_span_is_given(&span))
		return err;
	if (run->spec.sessions_given)
		return opr_error(-EINVAL, "session: and --since or --until do not go together: either names the sessions");
	run->spec.add_sessions = true;
	opr_words_free(&run->spec.sessions);
	return opr_span_find(&span, session_dir, &run->spec.sessions);
}

static int open_profile(struct run *run)
{
	const struct opr_options *options = &run->options;
	char *session_dir = NULL;
	int err = opr_spec_parse(&run->spec, (const char *const *)options->words.words, options->words.nr_words);

	run->spec.by_cgroup = options->cgroups;
	if (!err)
		err = choose_session_dir(run, &session_dir);
	if (!err)
		err = choose_sessions(run, session_dir);
	if (!err)
		err = opr_finder_init(&run->finder, options->root, &options->image_path);
	if (!err)
		err = opr_profile_open(&run->profile, session_dir, &run->spec, &options->merge, options->exclude_dependent);
	free(session_dir);
	if (!err)
		err = opr_classes_find(&run->classes, &run->profile, &options->merge);
	if (!err)
		err = opr_profile_arrange(&run->profile, &options->merge);
	if (!err)
		opr_session_stats_check(&run->profile);
	return err;
}

/* ---- output ---- */

static int open_output(struct run *run)
{
	run->out = stdout;
	if (!run->options.output_file)
		return 0;
	run->out = fopen(run->options.output_file, "we");
	if (!run->out)
		return opr_error(-errno, "%s: %s", run->options.output_file, strerror(errno));
	return 0;
}

static int close_output(struct run *run)
{
	const char *name = run->options.output_file ? run->options.output_file : "standard output";
	bool failed = ferror(run->out) || fflush(run->out) == EOF;

	if (run->out != stdout)
		failed |= fclose(run->out) == EOF;
	return failed ? opr_error(-EIO, "%s: %s", name, strerror(errno ? errno : EIO)) : 0;
}

static struct opr_layout layout_of(const struct run *run)
{
	const struct opr_options *options = &run->options;

	return (struct opr_layout){
		.classes = &run->classes,
		.no_header = options->no_header,
		.long_names = options->long_names || options->cgroups,
		.accumulated = options->accumulated,
		.debug_info = options->debug_info,
		.show_address = options->show_address,
		.global_percent = options->global_percent,
		.symbols = options->symbols,
		.images = options->images,
	};
}

/* True when a class has samples of more than one application. */
static bool has_several_applications(const struct opr_profile *profile, size_t nr_classes)
{
	const char **first_app = calloc(nr_classes, sizeof(*first_app));
	bool several = false;

	for (size_t i = 0; first_app && i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];
		const char **first = &first_app[file->class_index];

		if (!*first)
			*first = file->app;
		several |= strcmp(*first, file->app) != 0;
	}
	free(first_app);
	return several;
}

/* ---- the reports ---- */

static int write_summary(struct run *run, const struct opr_summary *summary)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	layout.totals = summary->totals;
	err = opr_writer_init(&writer, &opr_text_writer, &layout, run->out);
	if (!err)
		opr_report_summary(&writer, summary, run->options.threshold);
	opr_writer_free(&writer);
	return err;
}

static int report_summary(struct run *run)
{
	struct opr_summary summary = { 0 };
	int err = opr_summary_make(&summary, &run->profile, run->classes.nr_classes);

	if (!err)
		err = open_output(run);
	if (!err)
		err = write_summary(run, &summary);
	if (!err)
		err = close_output(run);
	opr_summary_free(&summary);
	return err;
}

static int write_symbols(struct run *run, struct opr_symbol_report *report)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	opr_symbol_report_limit(report, run->options.threshold);
	opr_symbol_sort(report, &run->options.order);
	layout.totals = report->totals;
	layout.app_column = has_several_applications(&run->profile, run->classes.nr_classes);
	err = opr_writer_init(&writer, &opr_text_writer, &layout, run->out);
	if (!err)
		opr_report_symbols(&writer, report);
	opr_writer_free(&writer);
	return err;
}

static int report_symbols(struct run *run)
{
	const struct opr_options *options = &run->options;
	const struct opr_symbol_choice choice = { .include = &options->include_symbols,
						  .exclude = &options->exclude_symbols,
						  .details = options->details,
						  .lines = options->debug_info };
	const struct opr_symbol_options symbol_options = { .demangle = options->demangle != OPR_DEMANGLE_NONE,
							   .lines = options->debug_info,
							   .root = options->root };
	struct opr_image_cache cache = { 0 };
	struct opr_symbol_report report = { 0 };
	int err = opr_image_cache_init(&cache, &run->profile, &run->finder, &symbol_options);

	if (!err)
		err = opr_symbol_report_make(&report, &run->profile, run->classes.nr_classes, &cache, &choice);
	if (!err)
		err = open_output(run);
	if (!err)
		err = write_symbols(run, &report);
	if (!err)
		err = close_output(run);
	opr_symbol_report_free(&report);
	opr_image_cache_free(&cache);
	return err;
}

static int write_images(struct run *run, const struct opr_image_report *report)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	layout.totals = report->totals;
	err = opr_writer_init(&writer, &opr_text_writer, &layout, run->out);
	if (!err)
		err = opr_report_images(&writer, report);
	opr_writer_free(&writer);
	return err;
}

static int report_images(struct run *run)
{
	struct opr_image_report report = { 0 };
	int err = opr_image_report_make(&report, &run->profile, run->classes.nr_classes, &run->finder, run->options.threshold);

	if (!err)
		err = open_output(run);
	if (!err)
		err = write_images(run, &report);
	if (!err)
		err = close_output(run);
	opr_image_report_free(&report);
	return err;
}

static int make_report(struct run *run)
{
	if (run->options.images)
		return report_images(run);
	return run->options.symbols ? report_symbols(run) : report_summary(run);
}

int main(int argc, const char **argv)
{
	struct run run = { 0 };
	int err;

	opr_log_init("opreport");
	err = opr_options_parse(&run.options, argc, argv);
	if (!err && run.options.version) {
		puts("opreport: opd " PACKAGE_VERSION);
	} else if (!err) {
		err = open_profile(&run);
		if (!err)
			err = make_report(&run);
	}
	opr_classes_free(&run.classes);
	opr_profile_free(&run.profile);
	opr_finder_free(&run.finder);
	opr_spec_free(&run.spec);
	opr_options_free(&run.options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
