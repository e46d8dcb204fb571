/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arrays that double when they are full:
 *
 *	if (!op_grow(&list->rows, &list->capacity, list->nr_rows + 1))
 *		return -ENOMEM;
 */
#ifndef OP_GROW_H
#define OP_GROW_H

#include "libop/base/compiler.h"

#define OP_GROW_MIN 8 /* items */

/*
 * Makes room for nr_items items in the array *items, which is NULL or from malloc. *capacity, a
 * size_t, is the number of items that have room. False: out of memory, and nothing has changed.
 */
#define op_grow(items, capacity, nr_items) op_grow_array((items), (capacity), (nr_items), sizeof(**(items)))

static inline bool OP_MUST_CHECK op_grow_array(void *items, size_t *capacity, size_t nr_items,
					       size_t item_bytes)
{
	size_t wanted = op_max_u64(op_max_u64(nr_items, 2 * *capacity), OP_GROW_MIN);
	void *array, *bigger;

	if (nr_items <= *capacity)
		return true;
	memcpy(&array, items, sizeof(array)); /* whatever type of pointer it is */
	bigger = reallocarray(array, wanted, item_bytes);
	if (!bigger)
		return false;
	memcpy(items, &bigger, sizeof(bigger));
	*capacity = wanted;
	return true;
}

#endif
