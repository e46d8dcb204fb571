/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve.h"

#include <errno.h>

#include "daemon/jit.h"
#include "daemon/proc_scan.h"

#define VSYSCALL_START      0xffffffffff600000u /* x86-64: one page at this address in every process, in no map of its own */
#define MODULES_INTERVAL_NS 100000000u
#define VSYSCALL_END        0xffffffffff601000u

int opd_resolver_init(struct opd_resolver *resolver, const char *vmlinux)
{
	*resolver = (struct opd_resolver){ .table = op_dcookie_table_new() };
	resolver->jit = malloc(sizeof(*resolver->jit));
	if (!resolver->table || !resolver->jit)
		return -ENOMEM;
	opd_jit_init(resolver->jit, resolver->table);
	resolver->processes.jit = resolver->jit;
	for (size_t i = 0; i < OPD_NR_PSEUDO; i++) {
		resolver->pseudo[i] = opd_image_pseudo(resolver->table, (enum opd_pseudo)i);
		if (resolver->pseudo[i] == OP_DCOOKIE_NONE)
			return -ENOMEM;
	}
	return opd_kernel_map_init(&resolver->kernel, resolver->table, "/proc", vmlinux);
}

void opd_resolver_free(struct opd_resolver *resolver)
{
	if (!resolver)
		return;
	opd_processes_free(&resolver->processes);
	if (resolver->jit)
		opd_jit_free(resolver->jit);
	free(resolver->jit);
	opd_kernel_map_free(&resolver->kernel);
	op_dcookie_table_free(resolver->table);
	*resolver = (struct opd_resolver){ 0 };
}

/* The process of a sample. One that the side band has not told of, since it was lost or opd came later, is looked up in /proc. */
static struct opd_process *process_of(struct opd_resolver *resolver, const struct op_sample *sample)
{
	struct opd_process *process;

	if (!sample->pid || sample->pid == UINT32_MAX)
		return NULL;
	process = opd_process_find(&resolver->processes, sample->pid);
	if (!process && opd_proc_scan_pid(&resolver->processes, resolver->table, sample->pid, resolver->now_ns) >= 0)
		process = opd_process_find(&resolver->processes, sample->pid);
	return process;
}

static void file_under(struct opd_resolver *resolver, enum opd_pseudo pseudo, uint64_t address, struct opd_resolved *resolved)
{
	resolved->location = (struct op_location){ .cookie = resolver->pseudo[pseudo], .offset = address };
	resolved->unattributed = true;
}

/* A region of the process gets its cookie when it has its first sample. */
static int resolve_region(struct opd_resolver *resolver, uint32_t pid, uint64_t ip, const struct opd_mapping *mapping,
			  struct opd_resolved *resolved)
{
	uint64_t start = mapping->start - mapping->key;

	resolved->location.cookie = opd_image_of_region(resolver->table, mapping->cookie, pid, start, mapping->region_end);
	resolved->location.offset = ip - start;
	return resolved->location.cookie == OP_DCOOKIE_NONE ? -ENOMEM : 0;
}

static int resolve_vsyscall(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	struct opd_mapped mapped = { .pid = sample->pid, .name = "[vsyscall]" };
	struct opd_mapping mapping = { .start = VSYSCALL_START, .region_end = VSYSCALL_END };
	bool is_file;

	mapping.cookie = opd_image_of_mapping(resolver->table, &mapped, &is_file);
	return mapping.cookie == OP_DCOOKIE_NONE ? -ENOMEM : resolve_region(resolver, sample->pid, sample->ip, &mapping, resolved);
}

static int resolve_user(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	struct opd_process *process = process_of(resolver, sample);
	const struct opd_mapping *mapping;
	struct opd_mm *mm;

	if (!process) {
		file_under(resolver, OPD_PSEUDO_NO_PROCESS, sample->ip, resolved);
		return 0;
	}
	mm = opd_process_mm_at(process, sample->time_ns);
	resolved->app_cookie = mm->app_cookie;
	if (op_unlikely(sample->ip >= VSYSCALL_START && sample->ip < VSYSCALL_END))
		return resolve_vsyscall(resolver, sample, resolved);
	mapping = opd_mapset_find(mm->maps, sample->ip, sample->time_ns);
	if (!mapping)
		file_under(resolver, OPD_PSEUDO_NO_MAPPING, sample->ip, resolved);
	else if (op_unlikely(mapping->may_be_jit) &&
		 opd_jit_resolve(&resolver->processes, process, mm, sample, resolver->now_ns, &resolved->location))
		return 0;
	else if (mapping->region_end)
		return resolve_region(resolver, sample->pid, sample->ip, mapping, resolved);
	else
		resolved->location =
			(struct op_location){ .cookie = mapping->cookie, .offset = sample->ip - mapping->start + mapping->key };
	return 0;
}

/* An address that lies nowhere may be a module's that was loaded meanwhile; hidden addresses stay hidden. */
static bool modules_may_have_changed(const struct opd_resolver *resolver)
{
	return resolver->kernel.text_start && resolver->now_ns >= resolver->kernel.modules_read_ns + MODULES_INTERVAL_NS;
}

static int resolve_kernel(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	const struct opd_process *process = process_of(resolver, sample);

	resolved->is_kernel = true;
	if (process)
		resolved->app_cookie = opd_process_mm_at(process, sample->time_ns)->app_cookie;
	resolved->location = opd_kernel_map_find(&resolver->kernel, sample->ip, sample->time_ns);
	if (op_likely(resolved->location.cookie != resolver->kernel.no_vmlinux_cookie) || !modules_may_have_changed(resolver))
		return 0;
	if (opd_kernel_map_refresh(&resolver->kernel, resolver->now_ns) < 0)
		return -ENOMEM;
	resolved->location = opd_kernel_map_find(&resolver->kernel, sample->ip, sample->time_ns);
	return 0;
}

int opd_resolve(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *ret_resolved)
{
	struct opd_resolved resolved = { .app_cookie = OP_DCOOKIE_NONE };
	int err = 0;

	switch (sample->mode) {
	case OP_CPUMODE_USER:
		err = resolve_user(resolver, sample, &resolved);
		break;
	case OP_CPUMODE_KERNEL:
		err = resolve_kernel(resolver, sample, &resolved);
		break;
	case OP_CPUMODE_HYPERVISOR:
		file_under(resolver, OPD_PSEUDO_HYPERVISOR, sample->ip, &resolved);
		break;
	case OP_CPUMODE_GUEST_KERNEL:
		file_under(resolver, OPD_PSEUDO_GUEST_KERNEL, sample->ip, &resolved);
		break;
	case OP_CPUMODE_GUEST_USER:
		file_under(resolver, OPD_PSEUDO_GUEST_USER, sample->ip, &resolved);
		break;
	case OP_CPUMODE_UNKNOWN:
		file_under(resolver, OPD_PSEUDO_NO_MODE, sample->ip, &resolved);
		break;
	}
	if (!err)
		*ret_resolved = resolved;
	return err;
}
