/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/resolver.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/application.h"
#include "pipeline/resolve/jit_lookup.h"
#include "pipeline/resolve/proc_scan.h"
#include "pipeline/resolve/program.h"

/* x86-64: a page at this address in every process, not in its maps */
#define VSYSCALL_START      0xffffffffff600000u
#define MODULES_INTERVAL_NS 100000000u
#define VSYSCALL_END        0xffffffffff601000u
#define REREAD_INTERVAL_NS  (100u * OP_NS_PER_MS) /* for one process */
#define REREAD_SHARE        10u                   /* reading takes this part of the time at most */
#define REREAD_BURST_NS     (50u * OP_NS_PER_MS)
#define IMAGES_MIN          1024u /* a lower limit would not have room for a few long paths */
#define PROGRAMS_SHARE     4 /* a part of MaxImages= may be programs */
#define CHECK_INTERVAL_NS   (200u * OP_NS_PER_MS)
#define CHECK_PAGE_BYTES    4096u
#define CHECKS_MAX          4 /* results per check */
/* fewer images without samples are not worth a round */
#define FORGET_MIN    4096
#define CHECK_TIME_NS (2u * OP_NS_PER_MS) /* no comparison begins later */

static uint64_t label_cookie(struct op_dcookie_table *table, const char *label)
{
	struct opd_mapped mapped = { .name = label };
	bool is_file;

	return opd_image_of_mapping(table, &mapped, &is_file);
}

static int init(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images)
{
	*resolver = (struct opd_resolver){
		.table = table,
		.jit = malloc(sizeof(*resolver->jit)),
		.reread_burst_ns = REREAD_BURST_NS,
		.check_time_ns = CHECK_TIME_NS,
	};
	if (!resolver->jit)
		return -ENOMEM;
	opd_jit_init(resolver->jit, resolver->table);
	for (size_t i = 0; i < OPD_NR_PSEUDO; i++) {
		resolver->pseudo[i] = opd_image_pseudo(resolver->table, (enum opd_pseudo)i);
		if (resolver->pseudo[i] == OP_DCOOKIE_NONE)
			return -ENOMEM;
	}
	resolver->vdso_cookie = label_cookie(resolver->table, "[vdso]");
	resolver->vsyscall_cookie = label_cookie(resolver->table, "[vsyscall]");
	if (resolver->vdso_cookie == OP_DCOOKIE_NONE || resolver->vsyscall_cookie == OP_DCOOKIE_NONE)
		return -ENOMEM;
	op_dcookie_limit(table, OPD_IMAGES_UNCOUNTED_MAX, max_images, resolver->pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	op_dcookie_limit_programs(table, max_images / PROGRAMS_SHARE);
	op_dcookie_limit_bytes(table, OPD_IMAGE_BYTES_UNCOUNTED_MAX, op_max_u64(max_images, IMAGES_MIN) * OPD_IMAGE_BYTES);
	return 0;
}

int opd_resolver_init(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images, const char *vmlinux)
{
	int err = init(resolver, table, max_images);

	if (err)
		return err;
	resolver->processes.jit = resolver->jit;
	return opd_kernel_map_init(&resolver->kernel, resolver->table, "/proc", "/sys", vmlinux);
}

int opd_resolver_init_user_only(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images)
{
	int err = init(resolver, table, max_images);

	if (err)
		return err;
	resolver->processes.jit = resolver->jit;
	return opd_kernel_map_init_foreign(&resolver->kernel, resolver->table, NULL);
}

int opd_resolver_init_foreign(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images, const char *vmlinux)
{
	int err = init(resolver, table, max_images);

	if (err)
		return err;
	resolver->is_foreign = true;
	/* Only the name of their parent tells which processes are threads of the kernel. */
	resolver->processes.keeps_names = true;
	return opd_kernel_map_init_foreign(&resolver->kernel, resolver->table, vmlinux);
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
	opd_cgroups_free(&resolver->cgroups);
	*resolver = (struct opd_resolver){ 0 };
}

/* ---- what was found before ---- */

/*
 * A 2-way set-associative cache: a process has a set for each 256 KiB of addresses where it runs,
 * and one for the kernel. Two busy results of a set do not replace each other.
 */
static struct opd_found *slots_of(struct opd_resolver *resolver, const struct op_sample *sample)
{
	uint32_t part = sample->mode == OP_CPUMODE_KERNEL ? 0 : (uint32_t)(sample->ip >> 18);
	uint32_t mix = sample->pid * 0x9e3779b1u ^ part * 0x85ebca6bu;

	return &resolver->found[(mix / (UINT32_MAX / OPD_FOUND_SLOTS + 1)) & ~1u];
}

static bool is_valid(const struct opd_resolver *resolver, const struct opd_found *found, const struct op_sample *sample)
{
	return found->start <= sample->ip && sample->ip < found->end && found->pid == sample->pid &&
	       found->from_ns <= sample->time_ns && found->mode == sample->mode &&
	       found->changes == opd_process_changes(&resolver->processes, sample->pid);
}

/* NULL: it must be looked up. */
static struct opd_found *valid_slot(struct opd_resolver *resolver, const struct op_sample *sample)
{
	struct opd_found *found = slots_of(resolver, sample);

	if (op_likely(is_valid(resolver, found, sample)))
		return found;
	return is_valid(resolver, found + 1, sample) ? found + 1 : NULL;
}

static void note_uses(struct opd_found *found, uint32_t nr)
{
	found->nr_uses = (uint16_t)op_min_u64((uint64_t)found->nr_uses + nr, UINT16_MAX);
}

static void use_result(struct opd_found *found, const struct op_sample *sample, struct opd_resolved *ret_resolved)
{
	found->nr_uses += found->nr_uses != UINT16_MAX;
	found->page = (uint32_t)((sample->ip - found->start) / CHECK_PAGE_BYTES);
	*ret_resolved = (struct opd_resolved){
		.location = { .cookie = found->cookie, .offset = sample->ip + found->first },
		.app_cookie = found->app_cookie,
		.is_kernel = found->mode == OP_CPUMODE_KERNEL,
		.is_region = found->is_region,
		.lasts = true,
	};
}

/*
 * In a burst, processes that share a change slot invalidate each other's results; their uses still
 * count.
 */
static bool is_earlier(const struct opd_found *found, const struct op_sample *sample, uint64_t start)
{
	return found->pid == sample->pid && found->mode == sample->mode && found->start == start && found->end;
}

static uint32_t present_uses(const struct opd_resolver *resolver, const struct opd_found *found)
{
	return found->changes == opd_process_changes(&resolver->processes, found->pid) ? found->nr_uses : 0;
}

/*
 * The slot for a new result: that of an earlier one at the same place, or the one with fewer uses.
 * The other loses as many uses, so that it does not stay for ever.
 */
static struct opd_found *slot_for(struct opd_resolver *resolver, const struct op_sample *sample, uint64_t start)
{
	struct opd_found *slots = slots_of(resolver, sample), *fewer, *more;
	uint32_t nr_uses;

	for (size_t i = 0; i < 2; i++)
		if (is_earlier(&slots[i], sample, start))
			return &slots[i];
	fewer = &slots[present_uses(resolver, &slots[1]) < present_uses(resolver, &slots[0])];
	more = &slots[fewer == slots];
	nr_uses = present_uses(resolver, fewer) + (fewer->end != 0);
	more->nr_uses -= (uint16_t)op_min_u64(more->nr_uses, nr_uses);
	fewer->nr_uses = 0;
	return fewer;
}

/* Keeps the result for addresses from start to end. */
static void keep_result(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved,
			uint64_t start, uint64_t end, uint64_t from_ns)
{
	struct opd_found *found = slot_for(resolver, sample, start);
	uint16_t nr_uses = found->nr_uses;

	resolved->lasts = from_ns <= sample->time_ns;
	*found = (struct opd_found){
		.start = start,
		.end = end,
		.from_ns = from_ns,
		.first = resolved->location.offset - sample->ip,
		.cookie = resolved->location.cookie,
		.app_cookie = resolved->app_cookie,
		.pid = sample->pid,
		.changes = opd_process_changes(&resolver->processes, sample->pid),
		.page = (uint32_t)((sample->ip - start) / CHECK_PAGE_BYTES),
		.nr_uses = nr_uses,
		.mode = (uint8_t)sample->mode,
		.is_region = resolved->is_region,
	};
	note_uses(found, 1);
}

/* ---- looking up ---- */

/*
 * Adds reading time in proportion to the time that has passed. False: none is left. *ret_now_ns:
 * the start of the reading.
 */
static bool may_reread(struct opd_resolver *resolver, uint64_t *ret_now_ns)
{
	uint64_t now_ns = op_now_ns();

	resolver->reread_allowed_ns += (now_ns - resolver->reread_ns) / REREAD_SHARE;
	resolver->reread_allowed_ns = op_min_u64(resolver->reread_allowed_ns, resolver->reread_burst_ns);
	resolver->reread_ns = now_ns;
	*ret_now_ns = now_ns;
	return resolver->reread_allowed_ns;
}

static void spend_time(struct opd_resolver *resolver, uint64_t begin_ns)
{
	resolver->reread_allowed_ns -= op_min_u64(resolver->reread_allowed_ns, op_now_ns() - begin_ns);
}

static void account_reread(struct opd_resolver *resolver, uint64_t begin_ns)
{
	resolver->nr_rereads++;
	spend_time(resolver, begin_ns);
}

/* Looks in /proc for an unknown process. */
static struct opd_process *find_in_proc(struct opd_resolver *resolver, uint32_t pid)
{
	struct opd_absent *absent = &resolver->absent[pid % OPD_ABSENT_SLOTS];

	if (resolver->is_foreign || (absent->pid == pid && absent->now_ns == resolver->now_ns) ||
	    opd_processes_are_full(&resolver->processes))
		return NULL;
	if (opd_proc_scan_pid(&resolver->processes, resolver->table, pid, resolver->now_ns) >= 0)
		return opd_process_find(&resolver->processes, pid);
	*absent = (struct opd_absent){ .pid = pid, .now_ns = resolver->now_ns };
	return NULL;
}

/* Reads a process in doubt from /proc. It stays in doubt without time or memory for that. */
static void read_doubtful(struct opd_resolver *resolver, struct opd_process *process)
{
	uint64_t begin_ns;

	/* A process that maps too much does so again at once, so it is not read each time. */
	if (!opd_process_missed_records(&resolver->processes, process) &&
	    resolver->now_ns < process->reread_ns + REREAD_INTERVAL_NS)
		return;
	if (resolver->is_foreign || !may_reread(resolver, &begin_ns))
		return;
	process->reread_ns = resolver->now_ns;
	if (opd_proc_scan_doubtful(&resolver->processes, resolver->table, process->pid, resolver->now_ns) == -ENOMEM)
		resolver->reread_allowed_ns = 0;
	account_reread(resolver, begin_ns);
}

/*
 * User code after the end of a process belongs to another process when the records of its start may
 * be lost.
 */
static bool is_of_another(const struct opd_resolver *resolver, const struct opd_process *process, const struct op_sample *sample)
{
	return sample->time_ns > process->exit_ns && resolver->processes.lost_until_ns > process->exit_ns &&
	       sample->mode == OP_CPUMODE_USER;
}

/*
 * The process of a sample. An unknown one is looked up in /proc: its records were lost, or opd came
 * later.
 */
static struct opd_process *process_of(struct opd_resolver *resolver, const struct op_sample *sample)
{
	struct opd_process *process;

	if (!opd_is_pid(sample->pid))
		return NULL;
	process = opd_process_find(&resolver->processes, sample->pid);
	if (op_unlikely(!process))
		return find_in_proc(resolver, sample->pid);
	if (op_unlikely(opd_process_is_doubtful(&resolver->processes, process)))
		read_doubtful(resolver, process);
	return op_unlikely(is_of_another(resolver, process, sample)) ? NULL : process;
}

/* ---- reading /proc/PID/maps again ---- */

/*
 * A living process runs where nothing is mapped: mremap moved code there, which the kernel does not
 * report. True when its maps were read again.
 */
static bool reread(struct opd_resolver *resolver, struct opd_process *process, const struct opd_mm *mm, uint64_t time_ns)
{
	uint64_t begin_ns;
	int err;

	if (resolver->is_foreign || resolver->is_caller || process->exit_ns != UINT64_MAX || mm != process->mm ||
	    resolver->now_ns < process->reread_ns + REREAD_INTERVAL_NS)
		return false;
	if (!may_reread(resolver, &begin_ns))
		return false;
	process->reread_ns = resolver->now_ns;
	err = opd_proc_scan_again(&resolver->processes, resolver->table, process->pid, resolver->now_ns, time_ns);
	account_reread(resolver, begin_ns);
	return !err;
}

static bool is_comparable(const struct opd_resolver *resolver, const struct opd_found *found)
{
	return found->nr_uses && found->mode == OP_CPUMODE_USER && !found->is_region &&
	       found->changes == opd_process_changes(&resolver->processes, found->pid);
}

/* Inserts a result in the order of uses. The least used one is dropped when there are too many. */
static void insert_by_uses(struct opd_found *found, struct opd_found *most[CHECKS_MAX], size_t *nr)
{
	size_t place = *nr < CHECKS_MAX ? (*nr)++ : CHECKS_MAX - 1;

	for (; place && most[place - 1]->nr_uses < found->nr_uses; place--)
		most[place] = most[place - 1];
	most[place] = found;
}

/*
 * Collects the results of files that were used most since they were compared with /proc. Returns
 * how many.
 */
static size_t most_used(struct opd_resolver *resolver, struct opd_found *most[CHECKS_MAX])
{
	size_t nr = 0;

	for (size_t i = 0; i < OPD_FOUND_SLOTS; i++) {
		struct opd_found *found = &resolver->found[i];

		if (is_comparable(resolver, found) && (nr < CHECKS_MAX || found->nr_uses > most[nr - 1]->nr_uses))
			insert_by_uses(found, most, &nr);
	}
	return nr;
}

/* Files with one build-id are one image with any inode: copies in two containers. */
static bool is_still_there(const struct opd_resolver *resolver, const struct opd_process *process, const struct opd_found *found)
{
	const struct op_image_id *id = &op_dcookie_row(resolver->table, found->cookie)->id;
	uint64_t address = found->start + (uint64_t)found->page * CHECK_PAGE_BYTES;
	bool by_name = id->build_id_bytes;
	const struct opd_proc_expected expected = {
		.address = address,
		.inode = by_name ? 0 : id->inode,
		.path = by_name ? id->name.name : NULL,
		.offset = address + found->first,
	};

	return !opd_proc_has_other(resolver->processes.mount_views.lookers, process->mm->mount_view, found->pid, &expected);
}

/* False: no time is left. */
static bool compare_with_proc(struct opd_resolver *resolver, struct opd_found *found)
{
	const struct opd_process *process;
	uint64_t begin_ns;

	if (!may_reread(resolver, &begin_ns))
		return false;
	found->nr_uses = 0;
	process = opd_process_find(&resolver->processes, found->pid);
	if (!process || process->exit_ns != UINT64_MAX || is_still_there(resolver, process, found)) {
		spend_time(resolver, begin_ns);
		return true;
	}
	if (opd_proc_scan_again(&resolver->processes, resolver->table, found->pid, resolver->now_ns, resolver->now_ns) == -ENOMEM)
		resolver->reread_allowed_ns = 0;
	account_reread(resolver, begin_ns);
	return true;
}

void opd_resolve_check(struct opd_resolver *resolver)
{
	struct opd_found *most[CHECKS_MAX];
	uint64_t begin_ns;
	size_t nr;

	if (resolver->is_foreign || resolver->now_ns < resolver->next_check_ns)
		return;
	resolver->next_check_ns = resolver->now_ns + CHECK_INTERVAL_NS;
	begin_ns = op_now_ns();
	nr = most_used(resolver, most);
	/* Reading again for an earlier result may have changed the process of this one. */
	for (size_t i = 0; i < nr && op_now_ns() - begin_ns < resolver->check_time_ns; i++)
		if (is_comparable(resolver, most[i]) && !compare_with_proc(resolver, most[i]))
			return;
}

/* The file mapping that memory was put over, found by its first or last address; NULL: none. */
static const struct opd_mapping *covered_file(const struct opd_mm *mm, const struct opd_mapped *mapped)
{
	const struct opd_mapping *first = opd_mapset_find(mm->maps, mapped->start, mapped->time_ns);
	const struct opd_mapping *last = opd_mapset_find(mm->maps, mapped->end - 1, mapped->time_ns);

	if (first && !first->region_end)
		return first;
	return last && !last->region_end && last->key >= last->start - mapped->start ? last : NULL;
}

bool opd_resolve_text_copy(struct opd_resolver *resolver, const struct opd_process *process, struct opd_mm *mm,
			   const struct opd_mapped *mapped)
{
	const struct opd_mapping *covered = covered_file(mm, mapped);
	struct opd_mapping mapping = { .start = mapped->start, .end = mapped->end, .from_ns = mapped->time_ns };
	struct opd_proc_covered wanted = { .start = mapped->start, .end = mapped->end };
	uint64_t begin_ns, inode = 0;
	bool inside;

	if (resolver->is_foreign || !covered || mm != process->mm || !may_reread(resolver, &begin_ns))
		return false;
	wanted.inode = op_dcookie_row(resolver->table, covered->cookie)->id.inode;
	wanted.offset = mapping.key = covered->key + mapped->start - covered->start;
	inside = opd_proc_is_inside_image(resolver->processes.mount_views.lookers, mm->mount_view, mapped->pid, &wanted, &inode);
	account_reread(resolver, begin_ns);
	if (!inside || (wanted.inode && wanted.inode != inode))
		return false;
	mapping.cookie = covered->cookie;
	return !opd_process_map(&resolver->processes, process->pid, mm, &mapping);
}

/* ---- samples ---- */

static void file_under_pseudo(struct opd_resolver *resolver, enum opd_pseudo pseudo, uint64_t address,
			      struct opd_resolved *resolved)
{
	resolved->location = (struct op_location){ .cookie = resolver->pseudo[pseudo], .offset = address };
	resolved->unattributed = true;
}

/* A region gets its cookie with its first sample. */
static int resolve_region(struct opd_resolver *resolver, uint32_t pid, uint64_t ip, const struct opd_mapping *mapping,
			  struct opd_resolved *resolved)
{
	uint64_t start = mapping->start - mapping->key;
	/* One image for all processes: an image per process would fill the session. */
	bool shared = mapping->cookie == resolver->vdso_cookie || mapping->cookie == resolver->vsyscall_cookie;

	resolved->is_region = true;
	resolved->location.cookie = opd_image_of_region(resolver->table, mapping->cookie, shared ? 0 : pid, shared ? 0 : start,
							shared ? mapping->region_end - start : mapping->region_end);
	resolved->location.offset = ip - start;
	return resolved->location.cookie == OP_DCOOKIE_NONE ? -ENOMEM : 0;
}

static int resolve_vsyscall(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	struct opd_mapping mapping = { .start = VSYSCALL_START, .region_end = VSYSCALL_END, .cookie = resolver->vsyscall_cookie };

	return resolve_region(resolver, sample->pid, sample->ip, &mapping, resolved);
}

static int resolve_mapping(struct opd_resolver *resolver, const struct op_sample *sample, const struct opd_mapping *mapping,
			   struct opd_resolved *resolved)
{
	if (mapping->region_end)
		return resolve_region(resolver, sample->pid, sample->ip, mapping, resolved);
	resolved->location =
		(struct op_location){ .cookie = mapping->cookie, .offset = sample->ip - mapping->start + mapping->key };
	return 0;
}

/*
 * The application of an address space. One that began before the records is complete at its first
 * sample. It is chosen again only when twice as much is mapped, since that takes time.
 */
static uint64_t application_of(const struct opd_resolver *resolver, const struct opd_process *process, struct opd_mm *mm)
{
	if (op_likely(mm->app_cookie != OP_DCOOKIE_NONE) || opd_mapset_count(mm->maps) <= 2 * (size_t)mm->app_tried)
		return mm->app_cookie;
	mm->app_tried = (uint32_t)opd_mapset_count(mm->maps);
	mm->app_cookie = opd_app_choose(resolver->table, process->pid, mm, resolver->witness);
	return mm->app_cookie;
}

static struct opd_program program_of(const struct opd_resolver *resolver, const struct opd_process *process, struct opd_mm *mm,
				     uint64_t time_ns)
{
	return opd_program_at(&resolver->processes, resolver->table, process, mm, application_of(resolver, process, mm), time_ns,
			      resolver->is_foreign);
}

static int look_up_user(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	struct opd_process *process = process_of(resolver, sample);
	const struct opd_mapping *mapping;
	struct opd_program program;
	struct opd_mm *mm;
	int err;

	if (!process) {
		file_under_pseudo(resolver, OPD_PSEUDO_NO_PROCESS, sample->ip, resolved);
		return 0;
	}
	mm = opd_process_mm_at(process, sample->time_ns);
	program = program_of(resolver, process, mm, sample->time_ns);
	resolved->app_cookie = program.cookie;
	if (op_unlikely(sample->ip >= VSYSCALL_START && sample->ip < VSYSCALL_END))
		return resolve_vsyscall(resolver, sample, resolved);
	mapping = opd_mapset_find(mm->maps, sample->ip, sample->time_ns);
	if (op_unlikely(!mapping) && reread(resolver, process, mm, sample->time_ns))
		mapping = opd_mapset_find(mm->maps, sample->ip, sample->time_ns);
	if (!mapping) {
		file_under_pseudo(resolver, OPD_PSEUDO_NO_MAPPING, sample->ip, resolved);
		return 0;
	}
	if (op_unlikely(mapping->may_be_jit) &&
	    (opd_jit_resolve(&resolver->processes, process, mm, mapping, sample, resolver->now_ns, &resolved->location) ||
	     opd_jit_wait(&resolver->processes, process, mm, mapping, sample, resolver->is_caller, &resolved->location))) {
		resolved->is_region = true;
		return 0;
	}
	err = resolve_mapping(resolver, sample, mapping, resolved);
	/* JIT code changes without a record, so its result is not kept. */
	if (!err && !mapping->may_be_jit && program.is_newest && mapping->to_ns == UINT64_MAX && process->exit_ns == UINT64_MAX &&
	    !opd_process_is_doubtful(&resolver->processes, process))
		keep_result(resolver, sample, resolved, mapping->start, mapping->end,
			    op_max_u64(program.from_ns, mapping->from_ns));
	return err;
}

/*
 * An unknown address may belong to a module that was loaded meanwhile. Hidden addresses stay
 * hidden.
 */
static bool modules_may_have_changed(const struct opd_resolver *resolver)
{
	return !resolver->is_foreign && !resolver->is_caller && resolver->kernel.text_start &&
	       resolver->now_ns >= resolver->kernel.modules_read_ns + MODULES_INTERVAL_NS;
}

/*
 * While addresses are hidden, no-vmlinux is the whole kernel, and the sample counts as attributed.
 */
static void find_in_kernel(const struct opd_kernel_map *kernel, const struct op_sample *sample, struct opd_resolved *resolved)
{
	resolved->location = opd_kernel_map_find(kernel, sample->ip, sample->time_ns);
	resolved->unattributed = kernel->text_start && resolved->location.cookie == kernel->no_vmlinux_cookie;
}

static int look_up_kernel(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *resolved)
{
	const struct opd_process *process = process_of(resolver, sample);
	const struct opd_kernel_map *kernel = &resolver->kernel;
	struct opd_program program = { 0 };

	if (process)
		program = program_of(resolver, process, opd_process_mm_at(process, sample->time_ns), sample->time_ns);
	resolved->app_cookie = program.cookie;
	find_in_kernel(kernel, sample, resolved);
	/* The kernel's own text never moves; modules and run-time code come and go. */
	if (resolved->location.cookie == kernel->text_cookie) {
		if (program.is_newest)
			keep_result(resolver, sample, resolved, kernel->text_start, kernel->text_end, program.from_ns);
		return 0;
	}
	if (op_likely(resolved->location.cookie != kernel->no_vmlinux_cookie) || !modules_may_have_changed(resolver))
		return 0;
	if (opd_kernel_map_refresh(&resolver->kernel, resolver->now_ns) < 0)
		return -ENOMEM;
	find_in_kernel(kernel, sample, resolved);
	return 0;
}

static int look_up(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *ret_resolved)
{
	struct opd_resolved resolved = { .app_cookie = OP_DCOOKIE_NONE, .is_kernel = sample->mode == OP_CPUMODE_KERNEL };
	int err = 0;

	switch (sample->mode) {
	case OP_CPUMODE_USER:
		err = look_up_user(resolver, sample, &resolved);
		break;
	case OP_CPUMODE_KERNEL:
		err = look_up_kernel(resolver, sample, &resolved);
		break;
	case OP_CPUMODE_HYPERVISOR:
		file_under_pseudo(resolver, OPD_PSEUDO_HYPERVISOR, sample->ip, &resolved);
		break;
	case OP_CPUMODE_GUEST_KERNEL:
		file_under_pseudo(resolver, OPD_PSEUDO_GUEST_KERNEL, sample->ip, &resolved);
		break;
	case OP_CPUMODE_GUEST_USER:
		file_under_pseudo(resolver, OPD_PSEUDO_GUEST_USER, sample->ip, &resolved);
		break;
	case OP_CPUMODE_UNKNOWN:
		file_under_pseudo(resolver, OPD_PSEUDO_NO_MODE, sample->ip, &resolved);
		break;
	}
	if (!err)
		*ret_resolved = resolved;
	return err;
}

int opd_resolve(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *ret_resolved)
{
	struct opd_found *found = valid_slot(resolver, sample);

	if (op_unlikely(!found))
		return look_up(resolver, sample, ret_resolved);
	use_result(found, sample, ret_resolved);
	return 0;
}

void opd_resolve_repeated(struct opd_resolver *resolver, const struct op_sample *sample, uint32_t nr)
{
	struct opd_found *found = valid_slot(resolver, sample);

	if (found)
		note_uses(found, nr);
}

int opd_resolve_caller(struct opd_resolver *resolver, const struct op_sample *sample, struct opd_resolved *ret_resolved)
{
	int err;

	resolver->is_caller = true;
	err = opd_resolve(resolver, sample, ret_resolved);
	resolver->is_caller = false;
	return err;
}

/* ---- forgetting images ---- */

static size_t nr_uncounted(const struct op_dcookie_table *table)
{
	return op_dcookie_count(table) - op_dcookie_nr_counted(table);
}

static void mark(uint64_t cookie, void *arg)
{
	if (cookie != OP_DCOOKIE_NONE)
		op_dcookie_mark(arg, cookie);
}

static void forget_images(struct opd_resolver *resolver)
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
	opd_stat_cache_clear(&resolver->processes.stat_cache);
	forgetting->nr_refused = op_dcookie_nr_refused(table);
	/*
	 * A round costs time for all images. The threshold grows with them, so the cost per new
	 * image stays the same.
	 */
	forgetting->due = (size_t)op_max_u64(FORGET_MIN, nr_uncounted(table) + nr_uncounted(table) / 4);
	forgetting->due =
		(size_t)op_min_u64(forgetting->due, op_max_u64(OPD_IMAGES_UNCOUNTED_MAX, nr_uncounted(table) + FORGET_MIN));
}

void opd_forget_images(struct opd_resolver *resolver)
{
	if (op_unlikely(nr_uncounted(resolver->table) >= op_max_u64(resolver->forgetting.due, FORGET_MIN)))
		forget_images(resolver);
}

void opd_forget_refused(struct opd_resolver *resolver)
{
	if (op_dcookie_nr_refused(resolver->table) != resolver->forgetting.nr_refused)
		forget_images(resolver);
}
