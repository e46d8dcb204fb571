/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/forget.h"

#include "daemon/jit/space.h"

#define DUE_MIN 4096

static size_t nr_uncounted(const struct op_dcookie_table *table)
{
	return op_dcookie_count(table) - op_dcookie_nr_counted(table);
}

static void mark(uint64_t cookie, void *arg)
{
	if (cookie != OP_DCOOKIE_NONE)
		op_dcookie_mark(arg, cookie);
}

static void forget(struct opd_resolver *resolver)
{
	struct op_dcookie_table *table = resolver->table;
	struct opd_forgetting *forgetting = &resolver->forgetting;

	op_dcookie_mark_begin(table);
	opd_processes_visit_cookies(&resolver->processes, mark, table);
	opd_kernel_map_visit_cookies(&resolver->kernel, mark, table);
	opd_jit_visit_cookies(resolver->jit, mark, table);
	mark(resolver->vdso_cookie, table);
	mark(resolver->vsyscall_cookie, table);
	forgetting->nr_forgotten += op_dcookie_sweep(table);
	memset(resolver->found, 0, sizeof(resolver->found));
	opd_stat_cache_clear(&resolver->processes.looked);
	forgetting->nr_refused = op_dcookie_nr_refused(table);
	/* By a part of what is needed, so that it costs each new image the same however many there are. */
	forgetting->due = (size_t)op_max_u64(DUE_MIN, nr_uncounted(table) + nr_uncounted(table) / 4);
	forgetting->due = (size_t)op_min_u64(forgetting->due, op_max_u64(OPD_IMAGES_UNCOUNTED_MAX, nr_uncounted(table) + DUE_MIN));
}

void opd_forget_images(struct opd_resolver *resolver)
{
	if (op_unlikely(nr_uncounted(resolver->table) >= op_max_u64(resolver->forgetting.due, DUE_MIN)))
		forget(resolver);
}

void opd_forget_refused(struct opd_resolver *resolver)
{
	if (op_dcookie_nr_refused(resolver->table) != resolver->forgetting.nr_refused)
		forget(resolver);
}
