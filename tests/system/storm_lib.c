// SPDX-License-Identifier: GPL-3.0-or-later
/* A library with a function that is known, for programs that load it while they run. */
#include "tests/system/storm_touch.h"

int storm_touch(size_t nr_pages);

int storm_touch(size_t nr_pages)
{
	return touch_new_pages(nr_pages);
}
