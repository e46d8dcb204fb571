/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A test program reads the kernel's list of symbols once. The list has a hundred thousand lines,
 * and tests begin hundreds of pipelines.
 */
#ifndef KERNEL_LIST_H
#define KERNEL_LIST_H

#include <stdlib.h>
#include <string.h>

#include "pipeline/resolve/kernel_code.h"

int __real_opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms);
int __wrap_opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms);
int __wrap_opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms)
{
	static struct opd_kallsyms first;
	static bool is_read;

	if (!is_read && __real_opd_kallsyms_read(proc_path, &first))
		abort();
	is_read = true;
	*kallsyms = first;
	kallsyms->capacity = first.nr_made;
	kallsyms->made = calloc(first.nr_made + 1, sizeof(*first.made));
	if (!kallsyms->made)
		abort();
	for (size_t i = 0; i < first.nr_made; i++) {
		kallsyms->made[i] = (struct opd_kallsym){ first.made[i].start, strdup(first.made[i].name) };
		if (!kallsyms->made[i].name)
			abort();
	}
	return 0;
}

#endif
