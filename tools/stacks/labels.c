/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/labels.h"

#include <inttypes.h>

struct opr_labels opr_labels_of(const struct op_stack_tree *tree, uint32_t index)
{
	struct opr_labels context = { { NULL } };

	for (; index; index = tree->nodes[index].parent)
		if (!op_stack_is_frame(&tree->nodes[index]))
			context.of[tree->nodes[index].kind] = &tree->nodes[index];
	return context;
}

char *opr_label_text(const struct op_stack_tree *tree, const struct op_stack_node *node, const char *otherwise)
{
	return node && node->value ? op_stack_text(tree, node->value) : strdup(otherwise);
}

char *opr_label_app(const struct opr_store *store, const struct op_stack_node *app)
{
	const struct opr_named *named = app ? opr_store_named(store, app->image) : NULL;

	return strdup(named ? named->name : "(no process)");
}

char *opr_label_group(struct opr_profile *profile, const struct opr_store *store, const struct opr_labels *context,
		      enum opr_by by)
{
	const struct op_stack_node *comm = context->of[OP_STACK_COMM], *thread = context->of[OP_STACK_THREAD];
	const struct opr_named *app = context->of[OP_STACK_APP] ? opr_store_named(store, context->of[OP_STACK_APP]->image) : NULL;
	char name[OP_STACK_PIECE_BYTES] = "", *text = NULL;

	if (comm)
		op_stack_comm(comm, name);
	switch (by) {
	case OPR_BY_COMM:
		return strdup(name[0] ? name : "(no name)");
	case OPR_BY_CGROUP:
		return opr_label_text(&store->tree, context->of[OP_STACK_CGROUP], "(no cgroup)");
	case OPR_BY_THREAD:
		if (!thread || !thread->value)
			return strdup("(no thread)");
		return asprintf(&text, "tid:%" PRIu64 " tgid:%" PRIu64 " %s", thread->value & UINT32_MAX, thread->value >> 32,
				name) < 0
			       ? NULL
			       : text;
	case OPR_BY_USER:
		if (app && op_dcookie_is_program(&app->row->id) && app->row->id.user != OP_USER_NONE)
			return opr_user_name(profile, app->row->id.user);
		return strdup("(no user)");
	case OPR_BY_NONE:
	case OPR_NR_GROUPINGS:
		break;
	}
	return opr_label_app(store, context->of[OP_STACK_APP]);
}

char *opr_label_cpu(const struct op_stack_node *thread)
{
	char *text = NULL;

	if (!thread || !thread->image)
		return strdup("(no CPU)");
	return asprintf(&text, "CPU %" PRIu64, thread->image - 1) < 0 ? NULL : text;
}
