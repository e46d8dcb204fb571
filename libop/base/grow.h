/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that double when they are full. */
#ifndef OP_GROW_H
#define OP_GROW_H

#include "libop/base/compiler.h"

#define OP_GROW_MIN 64 /* items */

/* Makes room for nr_more items. False without memory, and then the array is as it was. */
static inline bool op_grow(void **items, size_t *capacity, size_t nr_items, size_t nr_more, size_t item_bytes)
{
	size_t wanted = *capacity > OP_GROW_MIN ? *capacity : OP_GROW_MIN;
	void *bigger;

	while (wanted < nr_items + nr_more)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	bigger = reallocarray(*items, wanted, item_bytes);
	if (!bigger)
		return false;
	*items = bigger;
	*capacity = wanted;
	return true;
}

#endif
