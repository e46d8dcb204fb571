/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/runtime_function.h"

#include <inttypes.h>
#include <string.h>

#include "libop/stacks/runtime_name.h"

const char *opr_runtime_file_name(const char *source)
{
	const char *slash = strrchr(source, '/');

	return slash && slash[1] ? slash + 1 : source;
}

/* "handler (app.py:41)" */
static void add_shown(struct op_text *text, const struct op_runtime_name *name)
{
	const char *file = opr_runtime_file_name(name->file);

	op_text_add(text, name->function[0] ? name->function : "(no name)");
	if (*file && name->line)
		op_text_printf(text, " (%s:%" PRIu32 ")", file, name->line);
	else if (*file)
		op_text_printf(text, " (%s)", file);
}

static const struct opr_call_function *function_of(struct opr_call_tree *tree, const struct op_runtime_name *name,
						   const struct op_stack_node *node, bool with_places)
{
	const struct opr_call_place place = { .source = name->file[0] ? name->file : NULL,
					      .line = with_places ? (unsigned int)(node->value >> 32) : name->line,
					      .function = name->function,
					      .first_line = with_places ? name->line : 0 };
	const struct opr_call_function *function = NULL;
	struct op_text shown = { 0 };

	add_shown(&shown, name);
	if (!shown.failed)
		function = opr_call_function_at(tree, OPR_CALL_RUNTIME, op_text_get(&shown), op_runtime_word(name->runtime),
						&place);
	op_text_free(&shown);
	return function;
}

const struct opr_call_function *opr_runtime_function(struct opr_call_tree *tree, const struct op_stack_tree *stacks,
						     const struct op_stack_node *node, bool with_places)
{
	char *text = op_stack_text(stacks, node->value & UINT32_MAX);
	const struct opr_call_function *function = NULL;
	struct op_runtime_name name;

	if (text && op_runtime_name_parse(text, &name))
		function = function_of(tree, &name, node, with_places);
	else if (text)
		function = opr_call_function(tree, OPR_CALL_RUNTIME, "(damaged name)", "");
	free(text);
	return function;
}
