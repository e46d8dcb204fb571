/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opreport: what a session's samples say, per application, per symbol or per image. */
#include <errno.h>

#include "tools/opreport_options.h"
#include "tools/report_log.h"
#include "tools/report_writer.h"
#include "tools/session_dir.h"
#include "tools/session_stats.h"

struct run {
	struct opr_options options;
	struct opr_spec spec;
	struct opr_finder finder;
	struct opr_profile profile;
	struct opr_classes classes;
	FILE *out;
};

static int open_profile(struct run *run)
{
	const struct opr_options *options = &run->options;
	char *session_dir = NULL;
	int err = opr_spec_parse(&run->spec, (const char *const *)options->words.words, options->words.nr_words);

	run->spec.by_cgroup = options->cgroups;
	if (!err)
		err = opr_finder_init(&run->finder, options->root, &options->image_path);
	if (!err)
		err = opr_session_dir_choose(options->session_dir, &session_dir);
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
