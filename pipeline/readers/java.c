/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/readers/java.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "pipeline/readers/far_memory.h"
#include "pipeline/readers/java_code.h"
#include "pipeline/readers/java_layout.h"

#define LAYOUT_PAGES 4096u
#define PAGES        64u /* of each question, and of each of its items; a line table has 16 */
#define ITEM_PAGES   24u
#define NS_A_SECOND  1000000000u

static uint64_t cpu_ns(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) ? 0 : (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static int add_layout(struct opd_far_memory *memory, uint32_t pid, const struct opd_java_item *item, struct op_text *text)
{
	struct opd_java_layout layout;
	uint64_t start;
	int err = opd_far_memory_image(pid, item->address, &start);

	err = err ? err : opd_java_read_layout(memory, start, &layout);
	if (!err)
		op_text_add_bytes(text, &layout, sizeof(layout));
	return err;
}

static int add_place(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct opd_java_item *item,
		     struct op_text *text)
{
	struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX];
	struct opd_java_place place;
	int err = opd_java_read_place(memory, layout, item->address, item->is_exact, &place, scopes);

	if (err)
		return err;
	op_text_add_bytes(text, &place, sizeof(place));
	op_text_add_bytes(text, scopes, place.nr_scopes * sizeof(scopes[0]));
	return 0;
}

static int check(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct opd_java_item *item)
{
	uint64_t fingerprint;
	int err = opd_java_fingerprint(memory, layout, item->address, item->is_method, &fingerprint);

	return err ? err : fingerprint == item->fingerprint ? 0 : -ESTALE;
}

static int add_item(struct opd_far_memory *memory, const struct opd_java_question *question, const struct opd_java_item *item,
		    struct op_text *text)
{
	switch ((enum opd_java_what)question->what) {
	case OPD_JAVA_LAYOUT:
		return add_layout(memory, question->pid, item, text);
	case OPD_JAVA_PLACES:
		return add_place(memory, &question->layout, item, text);
	case OPD_JAVA_METHODS:
		return opd_java_read_method(memory, &question->layout, item->address, text);
	case OPD_JAVA_CHECK:
		return check(memory, &question->layout, item);
	}
	return -EINVAL;
}

static bool is_sound(const struct opd_java_question *question, size_t nr_bytes)
{
	static const uint32_t items_max[] = { [OPD_JAVA_LAYOUT] = 1,
					      [OPD_JAVA_PLACES] = OPD_JAVA_ITEMS_MAX,
					      [OPD_JAVA_METHODS] = OPD_JAVA_ITEMS_MAX,
					      [OPD_JAVA_CHECK] = OPD_JAVA_CHECKS_MAX };

	return question->what < op_array_size(items_max) && question->nr_items <= items_max[question->what] &&
	       nr_bytes == question->nr_items * sizeof(struct opd_java_item);
}

int opd_java_answer(const char *bytes, size_t nr_bytes, struct op_text *answer)
{
	struct opd_java_answer head = { 0 };
	struct opd_java_question question;
	struct opd_far_memory *memory;
	uint64_t begin_ns = cpu_ns();
	struct op_text parts = { 0 };
	uint32_t nr_pages;
	int err;

	if (nr_bytes < sizeof(question))
		return -EINVAL;
	memcpy(&question, bytes, sizeof(question));
	if (!is_sound(&question, nr_bytes - sizeof(question)))
		return -EINVAL;
	nr_pages = question.what == OPD_JAVA_LAYOUT ? LAYOUT_PAGES : PAGES + ITEM_PAGES * question.nr_items;
	err = opd_far_memory_open(question.pid, question.who, nr_pages, &memory);
	if (err)
		return err;
	for (uint32_t i = 0; i < question.nr_items; i++) {
		struct opd_java_item item;
		struct opd_java_part part = { 0 };
		struct op_text text = { 0 };

		memcpy(&item, bytes + sizeof(question) + i * sizeof(item), sizeof(item));
		part.err = add_item(memory, &question, &item, &text);
		part.nr_bytes = part.err ? 0 : (uint32_t)text.length;
		op_text_add_bytes(&parts, &part, sizeof(part));
		op_text_add_bytes(&parts, op_text_get(&text), part.nr_bytes);
		parts.failed |= text.failed;
		op_text_free(&text);
	}
	head.nr_pages = memory->nr_pages;
	head.nr_items = question.nr_items;
	opd_far_memory_close(memory);
	head.cpu_ns = cpu_ns() - begin_ns;
	op_text_add_bytes(answer, &head, sizeof(head));
	op_text_add_bytes(answer, op_text_get(&parts), parts.length);
	answer->failed |= parts.failed;
	op_text_free(&parts);
	return answer->failed ? -ENOMEM : 0;
}
