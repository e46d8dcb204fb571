/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/export/numbers.h"

#include "libop/base/grow.h"
#include "libop/base/text.h"

size_t opr_number_of(struct opr_numbers *numbers, const void *key, size_t nr_bytes, bool *ret_is_new)
{
	uint64_t hash = op_hash_bytes(nr_bytes, key, nr_bytes);
	struct opr_numbered *item;

	if (ret_is_new)
		*ret_is_new = false;
	for (struct op_hlink *link = op_htable_first(&numbers->table, hash); link; link = op_htable_next(link)) {
		item = op_container_of(link, struct opr_numbered, link);
		if (item->nr_bytes == nr_bytes && !memcmp(item->bytes, key, nr_bytes))
			return item->number;
	}
	item = numbers->failed ? NULL : malloc(sizeof(*item) + nr_bytes + 1);
	if (!item || !op_grow(&numbers->items, &numbers->capacity, numbers->nr_items + 1) ||
	    op_htable_insert(&numbers->table, &item->link, hash) < 0) {
		free(item);
		numbers->failed = true;
		return 0;
	}
	item->number = numbers->nr_items;
	item->nr_bytes = nr_bytes;
	memcpy(item->bytes, key, nr_bytes);
	item->bytes[nr_bytes] = '\0';
	numbers->items[numbers->nr_items++] = item;
	if (ret_is_new)
		*ret_is_new = true;
	return item->number;
}

size_t opr_number_of_string(struct opr_numbers *numbers, const char *string)
{
	return opr_number_of(numbers, string, strlen(string), NULL);
}

size_t opr_number_of_escaped(struct opr_numbers *numbers, const char *name)
{
	struct op_text text = { 0 };
	size_t number;

	op_text_add_escaped(&text, name);
	number = opr_number_of_string(numbers, op_text_get(&text));
	numbers->failed |= text.failed;
	op_text_free(&text);
	return number;
}

void opr_numbers_free(struct opr_numbers *numbers)
{
	for (size_t i = 0; i < numbers->nr_items; i++)
		free(numbers->items[i]);
	free(numbers->items);
	op_htable_free(&numbers->table);
	*numbers = (struct opr_numbers){ 0 };
}
