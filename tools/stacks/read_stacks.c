/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/read_stacks.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "libop/stacks/read.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/elf/line_table.h"
#include "tools/profile/image_list.h"
#include "tools/profile/image_name.h"
#include "tools/profile/select_files.h"
#include "tools/report/make_rows.h"
#include "tools/stacks/frame_roles.h"
#include "tools/stacks/labels.h"
#include "tools/stacks/natives.h"
#include "tools/stacks/runtime_function.h"
#include "tools/stacks/select_stacks.h"
#include "tools/stacks/stores.h"
#include "tools/stacks/view.h"

#define PADDING "__pfx_"

struct reading {
	struct opr_selection *selection;
	const struct opr_query *query;
	struct opr_stack_contexts *contexts; /* NULL: not wanted */
	struct opr_call_tree *tree;
	struct opr_stack_sums *sums;
	struct opr_image_cache cache;
	struct opr_stores stores;
	struct opr_call_tree keys; /* of contexts, by number: spans have those of their session */
	bool has_events;  /* several events: a node for each */
	uint64_t nr_done; /* nodes of the stores */
};

/* ---- symbols ---- */

/* Sessions share images: the same file has the same cache entry and build-id. */
static int add_call_image(struct reading *reading, struct opr_named *named)
{
	const struct op_image_id *id = &named->row->id;
	struct opr_call_image *image;
	char build_id[OP_BUILD_ID_DIGITS];

	op_build_id_format(id->build_id, id->build_id_bytes, build_id);
	if (!build_id[0])
		snprintf(build_id, sizeof(build_id), "%s", named->image->symbols.build_id ?: "");
	for (image = reading->tree->images; image; image = image->made_before)
		if (!strcmp(image->name, named->name) && !strcmp(image->build_id, build_id))
			break;
	if (!image) {
		image = opr_call_image(reading->tree, named->name, named->image->path ?: "");
		if (!image)
			return opr_no_memory();
		snprintf(image->build_id, sizeof(image->build_id), "%s", build_id);
		image->is_kernel = id->is_kernel;
	}
	named->call_image = image;
	return 0;
}

/* Reads the symbols of the images of frames in selected stacks. */
static int read_images(struct reading *reading)
{
	bool names_natives = reading->query->native != OPR_NATIVE_NONE;
	struct opr_named_image *list = NULL;
	size_t nr_list = 0, capacity = 0;
	int err = 0;

	for (size_t i = 0; i < reading->stores.nr_stores && !err; i++) {
		const struct opr_store *store = &reading->stores.list[i];

		for (uint32_t n = 0; n < store->tree.nr_nodes && !err; n++) {
			const struct op_stack_node *node = &store->tree.nodes[n];
			bool is_shown = names_natives && op_stack_is_native(node) && store->flags[n] & OPR_STACK_NEEDED;
			struct opr_named *named = is_shown ? opr_store_named(store, node->image) : NULL;

			if (!named || named->is_of_frames) /* in the list already */
				continue;
			named->is_of_frames = true;
			if (!op_grow(&list, &capacity, nr_list + 1))
				err = opr_no_memory();
			else
				list[nr_list++] = (struct opr_named_image){ named->name, &named->image_name };
		}
	}
	if (!err)
		err = opr_image_cache_init_list(&reading->cache, &reading->selection->profile, &reading->selection->finder,
						&reading->query->naming, list, nr_list);
	if (!err)
		err = opr_image_cache_read(&reading->cache);
	reading->sums->nr_put_off = reading->cache.nr_put_off;
	for (size_t i = 0; i < reading->stores.nr_stores && !err; i++) {
		for (size_t n = 0; n < reading->stores.list[i].nr_images && !err; n++) {
			struct opr_named *named = &reading->stores.list[i].images[n];

			if (!named->is_of_frames || reading->stores.list[i].is_span)
				continue;
			named->image = opr_image_cache_find(&reading->cache, named->name);
			err = named->image ? opr_image_load(&reading->cache, named->image) : -ENOMEM;
			if (!err)
				named->offset =
					opr_position_offset(named->image, named->row->id.is_kernel, named->image_name.start);
			if (!err && reading->query->places)
				err = add_call_image(reading, named);
		}
	}
	free(list);
	return err;
}

/* No call is in the padding that the kernel has before functions: an interrupt was behind it. */
static uint64_t position_of(const struct opr_named *named, const struct op_stack_node *node, bool is_caller)
{
	uint64_t position = node->value + named->offset;
	const struct opr_symbol *symbol;

	if (!is_caller || !node->value)
		return position;
	symbol = named->image ? opr_symbols_find(&named->image->symbols, position - 1) : NULL;
	return symbol && !strncmp(symbol->name, PADDING, strlen(PADDING)) ? position : position - 1;
}

static uint64_t vma_of(const struct opr_symbol *symbol, uint64_t position)
{
	return symbol->vma + (position - symbol->start);
}

struct vmas {
	uint64_t *vmas;
	size_t nr_vmas, capacity;
};

/* Notes the places of the frames of a store, each with its image. */
static int note_frames(const struct reading *reading, const struct opr_store *store, struct vmas *by_image)
{
	uint8_t *roles = opr_frame_roles(&store->tree);
	int err = roles ? 0 : opr_no_memory();

	for (uint32_t n = 0; n < store->tree.nr_nodes && !err; n++) {
		const struct op_stack_node *node = &store->tree.nodes[n];
		bool is_shown = op_stack_is_native(node) && store->flags[n] & OPR_STACK_NEEDED;
		const struct opr_named *named = is_shown ? opr_store_named(store, node->image) : NULL;

		for (enum opr_role role = OPR_ROLE_CALLER; role <= OPR_ROLE_LEAF && named && named->image && !err; role++) {
			uint64_t position = position_of(named, node, role == OPR_ROLE_CALLER);
			const struct opr_symbol *symbol = opr_symbols_find(&named->image->symbols, position);
			struct vmas *to = &by_image[named->image - reading->cache.images];

			if (!symbol || !(roles[n] & role))
				continue;
			err = op_grow(&to->vmas, &to->capacity, to->nr_vmas + 2) ? 0 : opr_no_memory();
			if (!err && reading->query->inlined)
				to->vmas[to->nr_vmas++] = vma_of(symbol, position);
			if (!err && reading->query->lines)
				to->vmas[to->nr_vmas++] = symbol->vma;
		}
	}
	free(roles);
	return err;
}

/* Finds the inlined functions at all frames, and the lines where functions begin. */
static int find_lines(struct reading *reading)
{
	struct opr_image_cache *cache = &reading->cache;
	struct vmas *by_image = calloc(cache->nr_images + 1, sizeof(*by_image));
	struct opr_image_lines *list = calloc(cache->nr_images + 1, sizeof(*list));
	int err = by_image && list ? 0 : opr_no_memory();

	for (size_t i = 0; i < reading->stores.nr_stores && !err; i++)
		err = note_frames(reading, &reading->stores.list[i], by_image);
	for (size_t i = 0; i < cache->nr_images && !err; i++)
		list[i] = (struct opr_image_lines){ &cache->images[i], by_image[i].vmas, by_image[i].nr_vmas };
	if (!err)
		err = opr_images_find_lines(cache, list, cache->nr_images, reading->query->inlined);
	for (size_t i = 0; by_image && i < cache->nr_images; i++)
		free(by_image[i].vmas);
	free(by_image);
	free(list);
	return err;
}

/* ---- nodes ---- */

static struct opr_call_node *add_child_at(struct reading *reading, struct opr_call_node *parent, enum opr_call_kind kind,
					  const char *name, const char *image, const struct opr_call_place *place)
{
	const struct opr_call_function *function = opr_call_function_at(reading->tree, kind, name, image, place);

	return function ? opr_call_child(reading->tree, parent, function) : NULL;
}

static struct opr_call_node *add_child(struct reading *reading, struct opr_call_node *parent, enum opr_call_kind kind,
				       const char *name, const char *image)
{
	return add_child_at(reading, parent, kind, name, image, &(struct opr_call_place){ 0 });
}

/* Where an address is in its innermost function. */
static void find_line(const struct reading *reading, const struct opr_named *named, struct opr_call_place *place)
{
	if (reading->query->places && !opr_symbols_line(&named->image->symbols, place->vma, &place->source, &place->line))
		place->source = NULL;
}

/* Where the function around an inlined one has the call of it. */
static void find_call(const struct reading *reading, const struct opr_frame *frame, struct opr_call_place *place)
{
	if (!reading->query->places)
		return;
	place->source = frame->file[0] ? frame->file : NULL;
	place->line = frame->line;
}

/* The chain of inlined functions, the outermost first. `place` is where the innermost one is. */
static struct opr_call_node *add_inlined(struct reading *reading, struct opr_call_node *parent, const struct opr_frame *frame,
					 const char *image, const struct opr_call_place *place)
{
	if (frame->outer) {
		struct opr_call_place outer = *place;

		find_call(reading, frame, &outer);
		parent = add_inlined(reading, parent, frame->outer, image, &outer);
	}
	return parent ? add_child_at(reading, parent, OPR_CALL_INLINED, frame->shown, image, place) : NULL;
}

static struct opr_call_node *add_native(struct reading *reading, const struct opr_store *store, struct opr_call_node *parent,
					const struct op_stack_node *node, bool is_caller)
{
	enum opr_call_kind kind = node->kind == OP_STACK_KERNEL_FRAME ? OPR_CALL_KERNEL : OPR_CALL_USER;
	struct opr_named *named = opr_store_named(store, node->image);
	const struct opr_symbol *symbol;
	const struct opr_frame *frame = NULL, *outermost;
	struct opr_call_place place = { 0 }, outer = { 0 };
	uint64_t position;
	const char *image;

	if (!named)
		return add_child(reading, parent, kind, "(unknown image)", "");
	named->is_in_tree = true;
	image = named->name;
	position = position_of(named, node, is_caller);
	symbol = opr_symbols_find(&named->image->symbols, position);
	if (reading->query->places) {
		place = (struct opr_call_place){ .image = named->call_image,
						 .position = position,
						 .vma = symbol ? vma_of(symbol, position)
							       : opr_symbols_vma(&named->image->symbols, position) };
		find_line(reading, named, &place);
	}
	if (!symbol)
		return add_child_at(reading, parent, kind, named->image->is_put_off ? OPR_PUT_OFF : OPR_CALL_NO_SYMBOLS, image,
				    &place);
	if (reading->query->lines && !opr_symbols_line(&named->image->symbols, symbol->vma, &place.source, &place.line))
		place = (struct opr_call_place){ 0 };
	/* Some files say only where the function of the sample starts. */
	if (reading->query->inlined && (is_caller || position > symbol->start))
		frame = opr_symbols_frame(&named->image->symbols, vma_of(symbol, position));
	outer = place;
	for (outermost = frame; outermost && outermost->outer; outermost = outermost->outer)
		;
	if (outermost)
		find_call(reading, outermost, &outer);
	parent = add_child_at(reading, parent, kind, symbol->shown, image, &outer);
	return frame && parent ? add_inlined(reading, parent, frame, image, &place) : parent;
}

static struct opr_call_node *add_frame(struct reading *reading, const struct opr_store *store, struct opr_call_node *parent,
				       const struct op_stack_node *node, bool is_caller)
{
	const struct opr_call_function *function;

	if (node->kind != OP_STACK_RUNTIME_FRAME)
		return add_native(reading, store, parent, node, is_caller);
	function = opr_runtime_function(reading->tree, &store->tree, node, reading->query->places);
	return function ? opr_call_child(reading->tree, parent, function) : NULL;
}

static const char *name_of(const void *arg, uint64_t cookie, const char **ret_application)
{
	const struct opr_named *named = opr_store_named(arg, cookie), *application = NULL;

	if (named && op_dcookie_is_program(&named->row->id))
		application = opr_store_named(arg, named->row->id.program_of);
	*ret_application = application ? application->name : NULL;
	return named ? named->name : "";
}

/* Gives bare words the meaning of base names. *ret_hint is for a word that matches no image. */
static int resolve_words(struct reading *reading, struct op_text *ret_hint)
{
	struct opr_image_names names = { 0 };
	size_t nr_images = 0;
	int err;

	if (!opr_spec_has_images(&reading->selection->spec))
		return 0;
	for (size_t i = 0; i < reading->stores.nr_stores; i++)
		nr_images += reading->stores.list[i].is_span ? 0 : reading->stores.list[i].nr_images;
	names.names = calloc(nr_images + 1, sizeof(*names.names));
	if (!names.names)
		return opr_no_memory();
	for (size_t i = 0; i < reading->stores.nr_stores; i++)
		for (size_t n = 0; n < reading->stores.list[i].nr_images && !reading->stores.list[i].is_span; n++)
			names.names[names.nr_names++] = reading->stores.list[i].images[n].name;
	err = opr_spec_resolve(&reading->selection->spec, &names, true, ret_hint);
	free(names.names);
	return err;
}

static int note_event(struct reading *reading, const char *event)
{
	if (opr_words_have(&reading->sums->events, event))
		return 0;
	return opr_words_add(&reading->sums->events, event) < 0 ? opr_no_memory() : 0;
}

/* Whether a context is there already; else it gets the next number. 0 or -ENOMEM. */
static int number_context(struct reading *reading, const struct opr_stack_context *row, size_t *ret_number)
{
	const char *const texts[] = { row->event, row->app, row->comm, row->cgroup, row->user, row->thread, row->cpu };
	const struct opr_call_function *function;
	struct op_text key = { 0 };

	op_text_printf(&key, "%zu %d %d", row->session, (int)row->end, (int)row->state);
	for (size_t i = 0; i < op_array_size(texts); i++)
		op_text_printf(&key, "\n%zu %s", strlen(texts[i] ?: ""), texts[i] ?: "");
	function = key.failed ? NULL : opr_call_function(&reading->keys, OPR_CALL_GROUP, op_text_get(&key), "");
	op_text_free(&key);
	if (function)
		*ret_number = function->index;
	return function ? 0 : -ENOMEM;
}

/* The group for a context that was selected, which becomes one of the list. NULL: no memory. */
static struct opr_call_node *add_context(struct reading *reading, const struct opr_store *store, uint32_t index,
					 const struct opr_labels *context)
{
	struct opr_stack_contexts *contexts = reading->contexts;
	const struct op_stack_node *end = context->of[OP_STACK_END], *state = context->of[OP_STACK_STATE];
	struct opr_stack_context row = {
		.session = store->session,
		.event = opr_label_text(&store->tree, context->of[OP_STACK_EVENT], ""),
		.app = opr_label_group(&reading->selection->profile, store, context, OPR_BY_NONE),
		.comm = opr_label_group(&reading->selection->profile, store, context, OPR_BY_COMM),
		.cgroup = opr_label_group(&reading->selection->profile, store, context, OPR_BY_CGROUP),
		.user = opr_label_group(&reading->selection->profile, store, context, OPR_BY_USER),
		.thread = opr_label_group(&reading->selection->profile, store, context, OPR_BY_THREAD),
		.cpu = opr_label_cpu(context->of[OP_STACK_THREAD]),
		.end = end ? (enum op_stack_end)end->value : OP_STACK_END_complete,
		.is_wait = store->flags[index] & OPR_STACK_WAIT,
		.state = state ? (enum op_wait_state)state->value : OP_WAIT_NONE,
	};
	bool has_all = row.event && row.app && row.comm && row.cgroup && row.user && row.thread && row.cpu;
	size_t number = contexts->nr_rows;
	char name[32];

	if (!has_all || number_context(reading, &row, &number) ||
	    !op_grow(&contexts->rows, &contexts->capacity, contexts->nr_rows + 1)) {
		opr_stack_context_free(&row);
		return NULL;
	}
	if (number < contexts->nr_rows)
		opr_stack_context_free(&row);
	else
		contexts->rows[contexts->nr_rows++] = row;
	snprintf(name, sizeof(name), "%zu", number);
	return add_child(reading, &reading->tree->root, OPR_CALL_GROUP, name, "");
}

/* The node of the group. NULL: no memory. */
static struct opr_call_node *add_names(struct reading *reading, const char *event, const char *group)
{
	const struct opr_call_place place = { .label = reading->query->by == OPR_BY_NONE ? OP_STACK_APP : OP_STACK_ROOT };
	struct opr_call_node *node = &reading->tree->root;

	if (reading->has_events)
		node = add_child(reading, node, OPR_CALL_GROUP, event, "");
	return node ? add_child_at(reading, node, OPR_CALL_GROUP, group, "", &place) : NULL;
}

static struct opr_call_node *add_label(struct reading *reading, struct opr_call_node *parent, enum op_stack_kind label, char *name,
				       uint64_t thread)
{
	const struct opr_call_place place = { .label = label, .thread = thread };
	struct opr_call_node *node = name && parent ? add_child_at(reading, parent, OPR_CALL_GROUP, name, "", &place) : NULL;

	free(name);
	return node;
}

/* The node below all labels of a stack. NULL: no memory. */
static struct opr_call_node *add_labels(struct reading *reading, const struct opr_store *store, const struct opr_labels *context,
					const char *event)
{
	const struct op_stack_node *comm = context->of[OP_STACK_COMM], *thread = context->of[OP_STACK_THREAD];
	const struct op_stack_node *cgroup = context->of[OP_STACK_CGROUP];
	char name[OP_STACK_PIECE_BYTES] = "";
	struct opr_call_node *node = &reading->tree->root;

	if (comm)
		op_stack_comm(comm, name);
	node = add_label(reading, node, OP_STACK_EVENT, strdup(opr_view_event(reading->query->view, event)), 0);
	node = add_label(reading, node, OP_STACK_APP, opr_label_app(store, context->of[OP_STACK_APP]), 0);
	if (name[0])
		node = add_label(reading, node, OP_STACK_COMM, strdup(name), 0);
	if (cgroup && cgroup->value)
		node = add_label(reading, node, OP_STACK_CGROUP, op_stack_text(&store->tree, cgroup->value), 0);
	if (thread && thread->value)
		node = add_label(reading, node, OP_STACK_THREAD, strdup(""), thread->value);
	return node;
}

/* The node for the group of a stack, and for its end. 0 or -ENOMEM. */
static int add_group(struct reading *reading, const struct opr_store *store, uint32_t index, struct opr_call_node **ret_node)
{
	struct opr_labels context = opr_labels_of(&store->tree, index);
	const struct op_stack_node *end = context.of[OP_STACK_END], *app = context.of[OP_STACK_APP];
	const struct op_stack_node *state = context.of[OP_STACK_STATE];
	enum opr_view view = reading->query->view;
	struct opr_named *program = app ? opr_store_named(store, app->image) : NULL;
	struct opr_call_node *node = &reading->tree->root;
	char *name = opr_label_group(&reading->selection->profile, store, &context, reading->query->by);
	char *event = opr_label_text(&store->tree, context.of[OP_STACK_EVENT], "");
	char text[64];
	int err = !name || !event ? opr_no_memory() : store->is_span ? 0 : note_event(reading, opr_view_event(view, event));

	if (program)
		program->is_in_tree = true;
	if (!err && reading->contexts)
		node = add_context(reading, store, index, &context);
	else if (!err && reading->query->places)
		node = add_labels(reading, store, &context, event);
	else if (!err)
		node = add_names(reading, event, name);
	if (!err && node && view != OPR_VIEW_CPU && !reading->contexts) {
		snprintf(text, sizeof(text), "[%s]", op_wait_state_name((enum op_wait_state)(state ? state->value : OP_WAIT_NONE)));
		node = add_child(reading, node, OPR_CALL_STATE, text, "");
	}
	if (!err && node && end && !reading->contexts) {
		snprintf(text, sizeof(text), "[%s]", op_stack_end_name((enum op_stack_end)end->value));
		node = add_child(reading, node, OPR_CALL_END, text, "");
	}
	if (!err && !node)
		err = opr_no_memory();
	*ret_node = node;
	free(name);
	free(event);
	return err;
}

static int add_time(struct reading *reading, const struct opr_store *store, const struct opr_call_node *node,
		    const struct op_stack_node *from)
{
	struct opr_stack_contexts *contexts = reading->contexts;
	const struct opr_call_node *group = node;

	if (!op_grow(&contexts->times, &contexts->times_capacity, contexts->nr_times + 1))
		return opr_no_memory();
	while (group->parent->parent)
		group = group->parent;
	contexts->times[contexts->nr_times++] =
		(struct opr_stack_time){ node, strtoul(group->function->name, NULL, 10), store->span_index, from->count,
					 from->records };
	return 0;
}

/* What make_nodes knows of a store. */
struct making {
	const struct opr_store *store;
	struct opr_natives natives;
	uint8_t *roles;
	uint32_t *path; /* nodes, room for all */
};

/* Makes the node of the report, and those above it where they are missing. 0 or -ENOMEM. */
static int make_node(struct reading *reading, const struct making *making, uint32_t index)
{
	const struct opr_store *store = making->store;
	const struct op_stack_node *nodes = store->tree.nodes;
	struct opr_call_node *node;
	uint32_t at = index;
	size_t nr = 0;

	while (op_stack_is_frame(&nodes[at]) && !(store->nodes[at] && opr_natives_are_same(&making->natives, at, index))) {
		making->path[nr++] = at;
		at = nodes[at].parent;
	}
	if (!store->nodes[at] && add_group(reading, store, at, &store->nodes[at]))
		return -ENOMEM;
	node = store->nodes[at];
	while (nr--) {
		at = making->path[nr];
		if (!opr_native_is_left_out(&making->natives, at, index))
			node = add_frame(reading, store, node, &nodes[at], making->roles[at] & OPR_ROLE_CALLER);
		if (!node)
			return opr_no_memory();
		if (opr_natives_are_same(&making->natives, at, index))
			store->nodes[at] = node;
	}
	return 0;
}

/* The node of the report at which a stack ends. NULL: no memory. */
static struct opr_call_node *end_of(struct reading *reading, const struct making *making, uint32_t index)
{
	const struct op_stack_node *node = &making->store->tree.nodes[index];

	if (make_node(reading, making, index))
		return NULL;
	/* The node of the report is the caller. */
	if (making->roles[index] == (OPR_ROLE_CALLER | OPR_ROLE_LEAF) && !opr_native_is_left_out(&making->natives, index, index))
		return add_frame(reading, making->store, making->store->nodes[node->parent], node, false);
	return making->store->nodes[index];
}

static int add_samples(struct reading *reading, const struct making *making, uint32_t index)
{
	const struct opr_store *store = making->store;
	const struct op_stack_node *node = &store->tree.nodes[index];
	uint64_t us = store->flags[index] & OPR_STACK_WAIT ? node->count : 0;
	struct opr_call_node *to;

	if (!(store->flags[index] & OPR_STACK_COUNTED)) {
		reading->sums->nr_unselected += store->is_span ? 0 : node->count;
		reading->sums->unselected_us += store->is_span ? 0 : us;
		return 0;
	}
	to = end_of(reading, making, index);
	if (!to)
		return opr_no_memory();
	if (store->is_span)
		return add_time(reading, store, to, node);
	to->self += node->count;
	to->self_records += node->records;
	reading->sums->nr_records += node->records;
	reading->sums->selected_us += us;
	reading->sums->nr_samples += node->count;
	reading->sums->ends[store->ends[index]] += node->count;
	return 0;
}

/* The thread that woke others, or an interrupt. NULL: no memory. */
static const struct opr_call_function *name_waker(struct reading *reading, const struct opr_store *store,
						  const struct opr_store_waker *waker)
{
	const struct opr_named *program = opr_store_named(store, waker->image);
	const struct opr_call_function *who = NULL;
	char *name = waker->text ? op_stack_text(&store->tree, waker->text) : strdup(OPR_CALL_INTERRUPT);

	if (name)
		who = opr_call_function(reading->tree, OPR_CALL_WAKER, name, program ? program->name : "");
	free(name);
	return who;
}

static int add_wakers(struct reading *reading, const struct making *making)
{
	const struct opr_store *store = making->store;
	struct opr_call_tree *tree = reading->tree;

	for (size_t i = 0; i < store->nr_wakers && reading->query->view != OPR_VIEW_CPU; i++) {
		const struct opr_store_waker *waker = &store->wakers[i];
		struct opr_call_waker *to;

		if (!(store->flags[waker->node] & OPR_STACK_COUNTED))
			continue;
		if (!op_grow(&tree->wakers, &tree->waker_capacity, tree->nr_wakers + 1))
			return opr_no_memory();
		to = &tree->wakers[tree->nr_wakers];
		*to = (struct opr_call_waker){ .node = end_of(reading, making, waker->node),
					       .who = name_waker(reading, store, waker),
					       .us = waker->us,
					       .nr_records = waker->nr_records };
		if (!to->node || !to->who)
			return opr_no_memory();
		tree->nr_wakers++;
	}
	return 0;
}

/* Sets OPR_STACK_WAIT of the nodes below the event WAIT. 0 or -ENOMEM after a message. */
static int find_waits(const struct opr_store *store)
{
	for (uint32_t i = 1; i < store->tree.nr_nodes; i++) {
		const struct op_stack_node *node = &store->tree.nodes[i];
		char *event = node->kind == OP_STACK_EVENT ? op_stack_text(&store->tree, node->value) : NULL;

		if (node->kind != OP_STACK_EVENT)
			store->flags[i] |= store->flags[node->parent] & OPR_STACK_WAIT;
		else if (!event)
			return opr_no_memory();
		else if (opr_view_has(OPR_VIEW_WAIT, event))
			store->flags[i] |= OPR_STACK_WAIT;
		free(event);
	}
	return 0;
}

static int add_nodes(struct reading *reading, const struct opr_store *store)
{
	struct making making = { .store = store,
				 .roles = opr_frame_roles(&store->tree),
				 .path = calloc(store->tree.nr_nodes, sizeof(*making.path)) };
	int err = opr_natives_find(&making.natives, &store->tree, reading->query->native);

	if (err || !making.roles || !making.path)
		err = opr_no_memory();
	if (!err)
		err = find_waits(store);
	for (uint32_t i = 1; i < store->tree.nr_nodes && !err; i++) {
		const struct op_stack_node *node = &store->tree.nodes[i];

		opr_progress_count("naming functions", reading->nr_done++, reading->stores.nr_nodes);
		if (node->kind == OP_STACK_TEXT)
			continue;
		store->ends[i] = node->kind == OP_STACK_END ? (uint8_t)node->value : store->ends[node->parent];
		if (node->count)
			err = add_samples(reading, &making, i);
	}
	if (!err)
		err = add_wakers(reading, &making);
	if (!err && making.natives.is_cut && !store->is_span)
		opr_warn("%s: some native frames of interpreters are shown, since the stacks are very deep",
			 reading->selection->profile.sessions[store->session].path);
	opr_natives_free(&making.natives);
	free(making.roles);
	free(making.path);
	return err;
}

/* Whether the stores have stacks of more than one event. */
static int find_events(struct reading *reading)
{
	struct opr_words words = { 0 };
	int err = 0;

	for (size_t i = 0; i < reading->stores.nr_stores; i++) {
		const struct op_stack_tree *tree = &reading->stores.list[i].tree;

		for (uint32_t n = 1; n < tree->nr_nodes && !err; n++) {
			const struct op_stack_node *event = &tree->nodes[tree->nodes[n].parent];
			bool is_there, is_new;
			char *text;

			if (tree->nodes[n].kind != OP_STACK_APP)
				continue;
			text = op_stack_text(tree, event->value);
			is_there = text && opr_view_has(reading->query->view, text);
			is_new = is_there && !opr_words_have(&words, text);
			err = !text || (is_new && opr_words_add(&words, text) < 0) ? opr_no_memory() : 0;
			if (!err && is_there && reading->selection->profile.earlier)
				err = note_event(reading, text);
			free(text);
		}
	}
	reading->has_events = words.nr_words > 1 && reading->query->view != OPR_VIEW_WALL;
	opr_words_free(&words);
	return err;
}

/* Gives the names of the images in the tree to the sums. */
static int note_images(struct reading *reading)
{
	int err = 0;

	for (size_t i = 0; i < reading->stores.nr_stores && !err; i++) {
		const struct opr_store *store = &reading->stores.list[i];

		for (size_t n = 0; n < store->nr_images && !store->is_span && !err; n++)
			if (store->images[n].is_in_tree)
				err = opr_words_add(&reading->sums->images, store->images[n].name);
	}
	return err ? opr_no_memory() : 0;
}

static int add_spans(struct reading *reading)
{
	struct opr_stack_contexts *contexts = reading->contexts;
	int err = opr_stores_add_spans(&reading->stores, &reading->selection->profile, contexts->max_spans);

	contexts->spans = calloc(reading->stores.nr_spans + 1, sizeof(*contexts->spans));
	if (!contexts->spans)
		return opr_no_memory();
	contexts->nr_spans = reading->stores.nr_spans;
	for (size_t i = 0; i < reading->stores.nr_stores && !err; i++)
		if (reading->stores.list[i].is_span)
			contexts->spans[reading->stores.list[i].span_index] = reading->stores.list[i].span;
	return err;
}

int opr_stacks_read(struct opr_call_tree *tree, struct opr_stack_sums *sums, struct opr_selection *selection,
		    const struct opr_query *query, struct opr_stack_contexts *contexts)
{
	struct reading reading = { .selection = selection, .query = query, .contexts = contexts, .tree = tree, .sums = sums };
	struct op_text unmatched = { 0 };
	bool is_kept_apart = !selection->spec.count.nr_words && !selection->spec.unit_mask.nr_words;
	int err = 0;

	/* Beside another report each CPU may have a column. */
	if (query->optional && (!is_kept_apart || selection->spec.cpu.nr_words))
		return 0;
	if (!is_kept_apart)
		err = opr_error(-EINVAL, "stacks are not kept apart by count: and unit-mask:");
	if (!err)
		err = opr_stores_open(&reading.stores, selection, query->optional);
	for (size_t i = 0; i < selection->profile.nr_sessions && !err; i++)
		if (selection->profile.sessions[i].parent == i && selection->profile.sessions[i].has_ledger)
			opr_view_add_ledger(query->view, sums, &selection->profile.sessions[i].ledger);
	if (!err && contexts && contexts->max_spans)
		err = add_spans(&reading);
	for (size_t i = 0; i < reading.stores.nr_stores && !err; i++)
		err = opr_view_take(query->view, &reading.stores.list[i].tree, reading.stores.list[i].is_span ? NULL : sums);
	if (!err)
		err = resolve_words(&reading, &unmatched);
	for (size_t i = 0; i < reading.stores.nr_stores && !err; i++) {
		const struct opr_stack_names names = { name_of, &reading.stores.list[i] };

		err = opr_stacks_select(&reading.stores.list[i].tree, &selection->spec, query->optional, &names,
					reading.stores.list[i].flags);
	}
	if (!err)
		err = read_images(&reading);
	if (!err && (query->inlined || query->lines))
		err = find_lines(&reading);
	if (!err)
		err = find_events(&reading);
	for (size_t i = 0; i < reading.stores.nr_stores && !err; i++)
		err = add_nodes(&reading, &reading.stores.list[i]);
	if (!err)
		err = note_images(&reading);
	if (!err && !sums->nr_samples && !query->optional && !(selection->profile.earlier && sums->events.nr_words))
		err = opr_error(-ENOENT, "%s%s%s",
				sums->nr_unselected            ? "no stack matches the profile specification"
				: query->view == OPR_VIEW_WAIT ? "the sessions have no waits: opcontrol --status says why"
							       : "the sessions have no stack samples yet",
				unmatched.length ? ": " : "", op_text_get(&unmatched));
	else if (!err && unmatched.length && !query->optional)
		opr_warn("%s", op_text_get(&unmatched));
	op_text_free(&unmatched);
	opr_image_cache_free(&reading.cache);
	opr_call_tree_free(&reading.keys);
	opr_stores_free(&reading.stores);
	return err;
}

void opr_stack_sums_free(struct opr_stack_sums *sums)
{
	opr_words_free(&sums->events);
	opr_words_free(&sums->images);
}
