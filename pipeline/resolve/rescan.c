/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/rescan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "pipeline/resolve/proc_scan.h"

#define LIST_INTERVAL_NS OP_NS_PER_S
#define SLICE_NS         (25u * OP_NS_PER_MS) /* a tenth of the default interval between visits */
/* a process as young as this may have called exec during the loss */
#define YOUNG_NS   (2u * (uint64_t)OP_NS_PER_S)
/* /proc/kallsyms has more than 100,000 lines */
#define CODE_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)

struct listing {
	uint32_t *pids;
	size_t nr_pids, nr_urgent, capacity;
};

static int append(struct listing *listing, uint32_t pid, bool is_urgent)
{
	if (!op_grow(&listing->pids, &listing->capacity, listing->nr_pids + 1))
		return -ENOMEM;
	listing->pids[listing->nr_pids++] = pid;
	if (!is_urgent)
		return 0;
	listing->pids[listing->nr_pids - 1] = listing->pids[listing->nr_urgent];
	listing->pids[listing->nr_urgent++] = pid;
	return 0;
}

static int list_process(struct listing *listing, const struct opd_resolver *resolver, uint32_t pid)
{
	struct opd_process *process = opd_process_find(&resolver->processes, pid);

	if (!process)
		return append(listing, pid, true);
	process->listed_ns = resolver->now_ns;
	if (!opd_process_is_doubtful(&resolver->processes, process))
		return 0;
	return append(listing, pid, process->mm->from_ns + YOUNG_NS > resolver->processes.lost_from_ns);
}

static int list_proc(struct listing *listing, const struct opd_resolver *resolver)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	if (!proc)
		return -errno;
	while (!err && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = list_process(listing, resolver, (uint32_t)strtoul(entry->d_name, NULL, 10));
	closedir(proc);
	return err;
}

static void forget_list(struct opd_rescan *rescan)
{
	free(rescan->pids);
	rescan->pids = NULL;
	rescan->nr_pids = rescan->next = 0;
}

static int list_anew(struct opd_rescan *rescan, struct opd_resolver *resolver)
{
	struct listing listing = { 0 };
	int err = list_proc(&listing, resolver);

	rescan->next_ns = resolver->now_ns + LIST_INTERVAL_NS;
	if (err) {
		free(listing.pids);
		return err;
	}
	forget_list(rescan);
	rescan->pids = listing.pids;
	rescan->nr_pids = listing.nr_pids;
	rescan->wanted = false;
	rescan->nr_lists++;
	opd_processes_resync(&resolver->processes, resolver->now_ns, opd_proc_gone_ns);
	return 0;
}

static int read_some(struct opd_rescan *rescan, struct opd_resolver *resolver)
{
	uint64_t begin_ns = op_now_ns();

	while (rescan->next < rescan->nr_pids && op_now_ns() - begin_ns < SLICE_NS)
		if (opd_proc_scan_doubtful(&resolver->processes, resolver->table, rescan->pids[rescan->next++], resolver->now_ns) ==
		    -ENOMEM)
			return -ENOMEM;
	return 0;
}

void opd_rescan_lost(struct opd_rescan *rescan, struct opd_resolver *resolver, uint64_t from_ns, uint64_t until_ns)
{
	opd_processes_lost(&resolver->processes, from_ns, until_ns);
	rescan->wanted = true;
	rescan->code_from_ns = rescan->code_wanted ? op_min_u64(rescan->code_from_ns, from_ns) : from_ns;
	rescan->code_wanted = true;
}

static int mend_code(struct opd_rescan *rescan, struct opd_resolver *resolver)
{
	int err;

	if (!rescan->code_wanted || resolver->now_ns < rescan->code_next_ns)
		return 0;
	rescan->code_next_ns = resolver->now_ns + CODE_INTERVAL_NS;
	err = opd_kernel_map_mend(&resolver->kernel, rescan->code_from_ns, resolver->now_ns);
	rescan->code_wanted = err;
	return err;
}

int opd_rescan_go_on(struct opd_rescan *rescan, struct opd_resolver *resolver)
{
	int err = mend_code(rescan, resolver);

	if (!err && rescan->wanted && resolver->now_ns >= rescan->next_ns)
		err = list_anew(rescan, resolver);
	if (!err)
		err = read_some(rescan, resolver);
	if (err || rescan->wanted || rescan->next < rescan->nr_pids)
		return err;
	forget_list(rescan);
	resolver->processes.lost_from_ns = 0;
	return 0;
}

void opd_rescan_free(struct opd_rescan *rescan)
{
	forget_list(rescan);
}
