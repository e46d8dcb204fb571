/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/run.h"

#include "tools/profile/image_list.h"
#include "tools/report/make_rows.h"

static int select_files(struct opr_run *run)
{
	return opr_selection_open(&run->selection, run->query, run->words);
}

static int read_samples(struct opr_run *run)
{
	return opr_selection_read(&run->selection);
}

static int list_images(struct opr_run *run)
{
	return opr_image_cache_init(&run->images, &run->selection.profile, &run->selection.finder, &run->query->naming);
}

static int read_symbols(struct opr_run *run)
{
	int err = opr_image_cache_read(&run->images);

	if (!err)
		err = opr_symbol_names_find_bases(&run->query->include_symbols, &run->images, &run->bases);
	return err ? err : opr_symbol_names_find_bases(&run->query->exclude_symbols, &run->images, &run->bases);
}

static int make_rows(struct opr_run *run)
{
	size_t nr_classes = run->query->memory ? OPR_NR_FACTS : run->selection.classes.nr_classes;

	return opr_symbol_report_make(&run->rows, &run->selection.profile, nr_classes, &run->images, run->query, &run->bases);
}

static int find_calls(struct opr_run *run)
{
	if (!run->query->callgraph)
		return 0;
	return opr_callgraph_make(&run->graph, &run->rows, &run->selection.profile, &run->images, run->query, &run->bases);
}

static int (*const steps[OPR_NR_STEPS])(struct opr_run *run) = {
	[OPR_STEP_SELECT] = select_files,  [OPR_STEP_READ] = read_samples, [OPR_STEP_IMAGES] = list_images,
	[OPR_STEP_SYMBOLS] = read_symbols, [OPR_STEP_ROWS] = make_rows,    [OPR_STEP_CALLS] = find_calls,
};

int opr_run_to(struct opr_run *run, enum opr_step last)
{
	for (; run->next <= last; run->next++) {
		int err = steps[run->next](run);

		if (err)
			return err;
	}
	return 0;
}

void opr_run_free(struct opr_run *run)
{
	opr_callgraph_free(&run->graph);
	opr_symbol_report_free(&run->rows);
	opr_words_free(&run->bases);
	opr_image_cache_free(&run->images);
	opr_selection_free(&run->selection);
}

int opr_run_end(struct opr_run *run, int err)
{
	if (!err)
		err = opr_profile_end(&run->selection.profile);
	opr_run_free(run);
	return err;
}
