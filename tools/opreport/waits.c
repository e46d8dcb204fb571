/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/waits.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/stacks/short_images.h"

int opr_waits_report(struct opr_run *run, const struct opr_options *options)
{
	enum opr_stack_form form = options->format == OPR_FORMAT_JSON  ? OPR_STACKS_JSON
				   : options->format == OPR_FORMAT_CSV ? OPR_STACKS_CSV
								       : OPR_STACKS_TEXT;
	const struct opr_query *query = run->query;
	struct opr_short_names names = { 0 };
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct opr_wait_list list = { 0 };
	struct opr_output output = { 0 };
	struct opr_stack_report report = { .tree = &tree, .sums = &sums, .recorded = &run->selection.recorded,
					   .view = query->view, .no_header = query->no_header };
	int err = opr_stacks_read(&tree, &sums, &run->selection, query, NULL);

	if (!err && !query->long_names)
		err = opr_short_images_find(&names, &sums, NULL);
	if (!err && !query->long_names)
		opr_short_images_set(&names, &tree, NULL);
	if (!err)
		err = opr_wait_list_make(&list, &tree, query->show_idle);
	if (!err)
		err = opr_output_open(&output, options->output_file, options->no_pager, options->colour);
	if (!err) {
		opr_wait_list_write(&list, &report, query, options->wakers, form, output.out);
		err = opr_output_close(&output);
	}
	opr_wait_list_free(&list);
	opr_short_names_free(&names);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}
