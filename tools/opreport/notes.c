/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/notes.h"

#include "tools/report/unnamed_code.h"
#include "tools/stacks/arrange.h"

int opr_note_unnamed_files(const struct opr_profile *profile)
{
	struct opr_unnamed_code code = { 0 };

	for (size_t i = 0; i < profile->nr_files; i++)
		if (!profile->files[i].class_index && !profile->files[i].callee && !profile->files[i].is_group)
			opr_unnamed_add(&code, profile->files[i].app, profile->files[i].image, NULL, profile->files[i].total);
	return opr_unnamed_tell(&code);
}

int opr_note_unnamed_rows(const struct opr_symbol_report *rows)
{
	struct opr_unnamed_code code = { 0 };

	for (size_t i = 0; i < rows->nr_made; i++) {
		const struct opr_symbol_row *row = &rows->rows[i];

		opr_unnamed_add(&code, row->app, row->image, row->symbol ? row->name : NULL, rows->counts.values[row->counts]);
	}
	return opr_unnamed_tell(&code);
}

int opr_note_unnamed_calls(const struct opr_call_tree *tree)
{
	struct opr_unnamed_code code = { 0 };
	const char *group = "";

	for (const struct opr_call_node *node = opr_call_next(&tree->root); node; node = opr_call_next(node)) {
		const struct opr_call_function *function = node->function;

		if (function->kind == OPR_CALL_GROUP)
			group = function->name;
		else
			opr_unnamed_add(&code, group, function->image,
					strcmp(function->name, OPR_CALL_NO_SYMBOLS) ? function->name : NULL, node->self);
	}
	return opr_unnamed_tell(&code);
}
