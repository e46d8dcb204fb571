/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/count_stacks.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/profile/recorded.h"
#include "tools/profile/select_files.h"
#include "tools/stacks/select_stacks.h"
#include "tools/stacks/view.h"

#define NAMES_AT_ONCE 4u /* of application and image, and of what they are programs of */

/* The names of images of a session that were asked for last. */
struct names {
	struct opr_profile *profile;
	size_t session;
	char *last[NAMES_AT_ONCE];
	size_t nr_asked;
};

struct sum {
	char *event; /* "STACKS:99:0" */
	uint64_t ends[OP_NR_STACK_ENDS];
};

struct sums {
	struct sum *sums;
	size_t nr_sums, capacity;
};

static const char *name_row(struct names *names, uint64_t cookie)
{
	const struct op_dcookie_table *images = names->profile->sessions[names->session].images;
	char **name = &names->last[names->nr_asked++ % NAMES_AT_ONCE];
	struct op_image_name image;

	free(*name);
	*name = NULL;
	if (!op_dcookie_has(images, cookie) || !op_dcookie_row(images, cookie)->name)
		return "";
	image = op_dcookie_name(op_dcookie_row(images, cookie));
	*name = opr_stack_image_name(names->profile, names->session, &image);
	return *name ?: "";
}

static const char *name_of(const void *arg, uint64_t cookie, const char **ret_application)
{
	struct names *names = *(struct names *const *)arg;
	const struct op_dcookie_table *images = names->profile->sessions[names->session].images;
	const struct op_dcookie_row *row = op_dcookie_has(images, cookie) ? op_dcookie_row(images, cookie) : NULL;

	*ret_application = row && op_dcookie_is_program(&row->id) ? name_row(names, row->id.program_of) : NULL;
	return name_row(names, cookie);
}

static struct sum *sum_of(struct sums *sums, char *event)
{
	for (size_t i = 0; event && i < sums->nr_sums; i++) {
		if (!strcmp(sums->sums[i].event, event)) {
			free(event);
			return &sums->sums[i];
		}
	}
	if (!event || !op_grow(&sums->sums, &sums->capacity, sums->nr_sums + 1)) {
		free(event);
		return NULL;
	}
	sums->sums[sums->nr_sums] = (struct sum){ .event = event };
	return &sums->sums[sums->nr_sums++];
}

/* A parent stands before its children. */
static int add_nodes(struct sums *sums, const struct op_stack_tree *tree, const uint8_t *flags)
{
	uint32_t *events = calloc(tree->nr_nodes, sizeof(*events));
	uint8_t *ends = calloc(tree->nr_nodes, sizeof(*ends));
	int err = events && ends ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < tree->nr_nodes && !err; i++) {
		const struct op_stack_node *node = &tree->nodes[i];
		struct sum *sum;

		events[i] = node->kind == OP_STACK_EVENT ? i : events[node->parent];
		ends[i] = node->kind == OP_STACK_END ? (uint8_t)node->value : ends[node->parent];
		if (!node->count || !(flags[i] & OPR_STACK_COUNTED) || ends[i] >= OP_NR_STACK_ENDS)
			continue;
		sum = sum_of(sums, op_stack_text(tree, tree->nodes[events[i]].value));
		if (sum)
			sum->ends[ends[i]] += node->count;
		else
			err = -ENOMEM;
	}
	free(events);
	free(ends);
	return err ? opr_no_memory() : 0;
}

/* A damaged store is reported by the report of stacks. */
static int add_session(struct sums *sums, struct opr_selection *selection, size_t session)
{
	struct names names = { .profile = &selection->profile, .session = session }, *const arg = &names;
	const struct opr_stack_names of_images = { name_of, &arg };
	struct op_stack_tree tree;
	uint8_t *flags;
	int err = op_stacks_read(selection->profile.sessions[session].dir_fd, OP_SESSION_STACKS, &tree);

	if (err)
		return err == -ENOMEM ? opr_no_memory() : 0;
	flags = calloc(tree.nr_nodes, sizeof(*flags));
	err = opr_view_take(OPR_VIEW_CPU, &tree, NULL);
	if (!err)
		err = flags ? opr_stacks_select(&tree, &selection->spec, true, &of_images, flags) : opr_no_memory();
	if (!err)
		err = add_nodes(sums, &tree, flags);
	for (size_t i = 0; i < NAMES_AT_ONCE; i++)
		free(names.last[i]);
	free(flags);
	op_stack_tree_free(&tree);
	return err;
}

int opr_selected_stacks_describe(struct opr_selection *selection, struct op_text *text)
{
	struct opr_profile *profile = &selection->profile;
	struct sums sums = { 0 };
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions && !err; i++)
		if (profile->sessions[i].parent == i && profile->sessions[i].images)
			err = add_session(&sums, selection, i);
	for (size_t i = 0; i < sums.nr_sums; i++) {
		char *mask = strrchr(sums.sums[i].event, ':');
		uint64_t total = 0;

		if (mask)
			*mask = '\0';
		for (size_t end = 0; end < OP_NR_STACK_ENDS; end++)
			total += sums.sums[i].ends[end];
		op_text_printf(text, "Stacks: %" PRIu64 " of ", total);
		op_text_add_escaped(text, sums.sums[i].event);
		opr_stack_ends_describe(sums.sums[i].ends, text);
		op_text_add_char(text, '\n');
		free(sums.sums[i].event);
	}
	free(sums.sums);
	return err;
}
