/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opgprof: the samples of one image as a gmon.out, for gprof. */
#include <errno.h>

#include "tools/report/run.h"
#include "tools/opgprof/gmon.h"
#include "tools/common/option_values.h"
#include "tools/common/output.h"
#include "tools/common/program.h"
#include "tools/common/log.h"

#define DEFAULT_OUTPUT "gmon.out"

struct options {
	struct opr_query query;
	char *output; /* NULL: not given */
};

#define FIELD(name) offsetof(struct options, name)
#define QUERY(name) FIELD(query.name)

static const struct opr_option rows[] = {
	OPR_SPAN_AT(QUERY),
	{ "image-path", 'p', FIELD(query.naming.image_path), opr_take_words, "comma-separated path to search missing binaries",
	  "path" },
	OPR_SPAN_LAST(QUERY),
	{ "output-filename", 'o', FIELD(output), opr_take_string, "output filename (default " DEFAULT_OUTPUT ")", "file" },
	{ "root", 'R', FIELD(query.naming.root), opr_take_root, "path to the file system that the images are in", "directory" },
	{ "session-dir", 0, FIELD(query.session_dir), opr_take_string, "directory that holds the samples", "directory" },
	OPR_SPAN_SINCE(QUERY),
	{ "threshold", 't', FIELD(query.threshold), opr_take_percent, "minimum percentage needed to produce output", "percent" },
	OPR_SPAN_UNTIL(QUERY),
	{ "verbose", 'V', 0, opr_take_verbose, "print details to stderr", "all,details,debug,bfd,level1,sfile,stats,xml" },
	OPR_SPAN_WINDOW(QUERY),
};

#undef QUERY
#undef FIELD

static const struct opr_command command = {
	.program = "opgprof",
	.arguments = "[PROFILE SPECIFICATION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.tag = opr_spec_tag,
};

struct making {
	const struct options *options;
	struct opr_run run;
	struct opr_gmon gmon;
};

/* ---- which image ---- */

static bool is_own(const struct opr_part *part)
{
	return !strcmp(part->app, part->image);
}

/*
 * Whether samples are of the image: run as an application, or, when no image was, wherever it was
 * used.
 */
static bool is_part_of(const struct opr_part *part, const char *image, bool own)
{
	return !strcmp(part->image, image) && (!own || is_own(part)) && (!part->callee || !strcmp(part->callee, image));
}

static int choose_image(const struct opr_profile *profile, const char **ret_image, bool *ret_own)
{
	*ret_image = NULL;
	*ret_own = false;
	for (size_t i = 0; i < profile->nr_parts; i++)
		*ret_own |= is_own(&profile->parts[i]) && !profile->parts[i].callee;
	for (size_t i = 0; i < profile->nr_parts; i++) {
		const struct opr_part *part = &profile->parts[i];

		if (part->callee || (*ret_own && !is_own(part)))
			continue;
		if (*ret_image && strcmp(*ret_image, part->image))
			return opr_error(
				-EINVAL,
				"the profile has more than one image, for example %s and %s: name one image in the specification",
				*ret_image, part->image);
		*ret_image = part->image;
	}
	return *ret_image ? 0 : opr_error(-ENOENT, "the profile has calls, but no samples");
}

static int keep_one_image(struct opr_selection *selection)
{
	struct opr_profile *profile = &selection->profile;
	const char *image;
	size_t nr_kept = 0;
	bool own;
	int err = choose_image(profile, &image, &own);

	if (err)
		return err;
	if (selection->classes.nr_classes > 1)
		return opr_error(-EINVAL, "the profile has more than one event: select one with event: or count:");
	for (size_t i = 0; i < profile->nr_parts; i++)
		if (is_part_of(&profile->parts[i], image, own))
			profile->parts[nr_kept++] = profile->parts[i];
	profile->nr_parts = nr_kept;
	return 0;
}

/* ---- samples and arcs ---- */

static int add_samples(struct making *making)
{
	const struct opr_symbol_report *report = &making->run.rows;

	making->gmon.samples = calloc(report->nr_details + 1, sizeof(*making->gmon.samples));
	if (!making->gmon.samples)
		return opr_no_memory();
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		for (size_t j = 0; j < row->nr_details; j++) {
			const struct opr_detail *detail = &report->details[row->first_detail + j];

			making->gmon.samples[making->gmon.nr_samples++] =
				(struct opr_gmon_sample){ detail->vma, report->detail_counts.values[detail->counts] };
		}
	}
	return 0;
}

static int add_arcs(struct making *making)
{
	const struct opr_callgraph *graph = &making->run.graph;

	making->gmon.arcs = calloc(graph->nr_arcs + 1, sizeof(*making->gmon.arcs));
	if (!making->gmon.arcs)
		return opr_no_memory();
	for (size_t i = 0; i < graph->nr_arcs; i++) {
		const struct opr_arc *arc = &graph->by_caller[i];

		making->gmon.arcs[making->gmon.nr_arcs++] =
			(struct opr_gmon_arc){ graph->nodes[arc->caller].vma, graph->nodes[arc->callee].vma,
					       making->run.rows.counts.values[arc->counts] };
	}
	return 0;
}

/* gprof takes the names of functions from the image. */
static int check_image(struct opr_run *run)
{
	const struct opr_image *image = opr_image_cache_find(&run->images, run->selection.profile.parts[0].image);

	if (!image)
		return -ENOMEM;
	if (!image->is_object)
		return opr_error(-ENOENT, "%s cannot be read, but gmon.out needs its addresses", image->name);
	if (!image->symbols.nr_symbols)
		return opr_error(-ENODATA, "%s has no symbols: gprof could show nothing", image->shown);
	return 0;
}

static int read_profile(struct making *making)
{
	struct opr_run *run = &making->run;
	int err = opr_run_to(run, OPR_STEP_READ);

	if (err)
		return err;
	err = keep_one_image(&run->selection);
	if (err)
		return err;
	err = opr_run_to(run, OPR_STEP_ROWS);
	if (err)
		return err;
	err = check_image(run);
	if (err)
		return err;
	err = opr_run_to(run, OPR_STEP_CALLS);
	if (err)
		return err;
	opr_symbol_report_limit(&run->rows, run->query->threshold);
	err = add_samples(making);
	return err ? err : add_arcs(making);
}

/* ---- the file ---- */

static int write_file(const struct making *making)
{
	const char *name = making->options->output ? making->options->output : DEFAULT_OUTPUT;
	struct opr_output output;
	size_t nr_full = 0;
	int err = opr_output_replace(&output, name, opr_gmon_is, "profile for gprof");

	if (err)
		return err;
	err = opr_gmon_write(output.out, &making->gmon, &nr_full);
	if (err == -EFBIG)
		opr_error(err, "the addresses of the samples are too far apart for a histogram");
	else if (err)
		opr_no_memory();
	if (nr_full)
		opr_warn("%zu counts are too large for gmon.out: they are 65535", nr_full);
	if (!err)
		return opr_output_close(&output) < 0 ? -EIO : 0;
	opr_output_drop(&output);
	return err;
}

static int make_gmon(const void *arg)
{
	const struct options *options = arg;
	struct making making = { .options = options, .run = { .query = &options->query, .words = &options->query.words } };
	int err = read_profile(&making);

	if (!err)
		err = write_file(&making);
	free(making.gmon.samples);
	free(making.gmon.arcs);
	return opr_run_end(&making.run, err);
}

int main(int argc, const char **argv)
{
	/* gprof names functions by .symtab alone. */
	struct options options = { .query = { .merge.merge = { .cpu = true, .tid = true, .tgid = true, .unit_mask = true },
					      .naming.sources = OPR_FROM_SYMTAB,
					      .callgraph = 1,
					      .details = 1 } };

	return opr_command_run(&command, argc, argv, &options, &options.query.words, make_gmon);
}
