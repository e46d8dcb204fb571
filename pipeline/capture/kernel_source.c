/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/kernel_source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/events/event_list.h"
#include "libop/events/event_request.h"
#include "libop/perf/chain.h"
#include "libop/perf/record.h"
#include "libop/perf/stack_record.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/capture/opener.h"
#include "pipeline/capture/ring_memory.h"

#define SPARE_DESCRIPTORS 64 /* for the log, sockets, epoll, a new sample file ... */

/* ---- the kernel's pair ---- */

static void kernel_fds(const struct opd_cpu *cpu, struct opd_source_fds *ret_fds)
{
	*ret_fds = (struct opd_source_fds){
		.samples = { cpu->pair.anchor_fds[0], cpu->pair.anchor_fds[1] },
		.stacks = { -1, -1 },
		.sideband = cpu->sideband_fd,
	};
	if (opd_cpu_has_stack_pair(cpu))
		memcpy(ret_fds->stacks, cpu->stack_pair.anchor_fds, sizeof(ret_fds->stacks));
}

static uint64_t kernel_pending(const struct opd_cpu *cpu)
{
	return op_ring_pending(&cpu->pair.rings[0]) + op_ring_pending(&cpu->pair.rings[1]) + opd_cpu_stacks_pending(cpu);
}

static struct op_ring *kernel_read_ring(struct opd_cpu *cpu)
{
	return op_ring_pair_read_ring(&cpu->pair);
}

static struct op_ring *kernel_stack_ring(struct opd_cpu *cpu)
{
	return opd_cpu_has_stack_pair(cpu) ? op_ring_pair_read_ring(&cpu->stack_pair) : NULL;
}

const struct opd_source opd_source_kernel = {
	.is_host = true,
	.epoll_events = EPOLLIN,
	.fds = kernel_fds,
	.pending = kernel_pending,
	.read_ring = kernel_read_ring,
	.stack_ring = kernel_stack_ring,
};

/* ---- opening ---- */

static OP_PRINTF(2, 3) void explain(char **ret_why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_why, format, args) < 0)
		*ret_why = NULL;
	va_end(args);
}

static rlim_t nr_descriptors(size_t nr_cpus, size_t nr_events)
{
	return nr_cpus * (6 + nr_events) + SPARE_DESCRIPTORS; /* two pairs, side band, notes */
}

int opd_capture_raise_descriptors(uint64_t need, uint64_t *ret_limit)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= need)
		return 0;
	if (!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = need, .rlim_max = op_max_u64(need, limit.rlim_max) }))
		return 0;
	*ret_limit = limit.rlim_max;
	return -EMFILE;
}

/* Raises the limit on descriptors to what these CPUs and events need. */
static int raise_descriptor_limit(size_t nr_cpus, size_t nr_events, char **ret_why)
{
	rlim_t need = nr_descriptors(nr_cpus, nr_events);
	uint64_t limit;
	int err = opd_capture_raise_descriptors(need, &limit);

	if (err == -EMFILE)
		explain(ret_why,
			"%zu CPUs with %zu events need %llu file descriptors and the limit is %llu: raise LimitNOFILE= or ulimit "
			"-n",
			nr_cpus, nr_events, (unsigned long long)need, (unsigned long long)limit);
	return err;
}

int opd_capture_spare_descriptors(const struct opd_capture *capture, size_t nr_wanted)
{
	rlim_t need = nr_descriptors(capture->nr_online, capture->nr_opened), wanted;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	wanted = op_min_u64(need + nr_wanted, limit.rlim_max);
	if (limit.rlim_cur < wanted) {
		struct rlimit raised = { .rlim_cur = wanted, .rlim_max = limit.rlim_max };

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit = raised;
	}
	return (int)op_min_u64(limit.rlim_cur - op_min_u64(limit.rlim_cur, need), INT_MAX);
}

/* What a descriptor tells beside its count: struct descriptor_counts of cpu_rings.c. */
#define COUNT_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Opens an event. Its count of lost samples is left out where the kernel refuses it, before 6.0. */
int opd_capture_open_event(struct opd_capture *capture, struct perf_event_attr *attr, pid_t task, int cpu)
{
	int fd;

	attr->read_format = COUNT_FORMAT | (capture->has_format_lost ? PERF_FORMAT_LOST : 0);
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = OP_CLOCK;
	fd = op_sys_perf_event_open(attr, task, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd != -EINVAL || !capture->has_format_lost)
		return fd;
	attr->read_format = COUNT_FORMAT;
	fd = op_sys_perf_event_open(attr, task, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		capture->has_format_lost = false;
	return fd;
}

void opd_capture_tracking_attr(const struct opd_capture *capture, size_t watermark_bytes, struct perf_event_attr *ret_attr)
{
	*ret_attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(*ret_attr),
		.sample_type = OP_SAMPLE_TYPE,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.namespaces = 1,
		.ksymbol = 1,
		.cgroup = capture->with_cgroup || op_events_have_cgroup(capture->events, capture->nr_opened),
		.watermark = 1,
		.wakeup_watermark = (uint32_t)watermark_bytes,
	};
}

static int open_tracking(struct opd_capture *capture, int cpu, size_t watermark_bytes)
{
	struct perf_event_attr attr;
	int fd;

	opd_capture_tracking_attr(capture, watermark_bytes, &attr);
	fd = opd_capture_open_event(capture, &attr, -1, cpu);
	/* Kernels before 5.1 do not know ksymbol. */
	if (fd == -EINVAL || fd == -E2BIG) {
		attr.ksymbol = 0;
		fd = op_sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	/* kernel.perf_event_paranoid=0 allows the rest. */
	if (fd == -EACCES) {
		attr.namespaces = 0;
		fd = op_sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

static void set_flags(struct perf_event_attr *attr, uint64_t wanted)
{
	uint64_t flags;

	memcpy(&flags, (const char *)attr + OP_ATTR_FLAGS_OFFSET, sizeof(flags));
	flags |= wanted;
	memcpy((char *)attr + OP_ATTR_FLAGS_OFFSET, &flags, sizeof(flags));
}

/*
 * Rows of tables find the callers in a copy of the stack. Without a copy the kernel follows frame
 * pointers, when the task returns to user space if it can: then the pages of the stack may fault.
 */
static void ask_for_stack(const struct opd_capture *capture, const struct op_event *event, struct perf_event_attr *attr)
{
	attr->sample_max_stack = (uint16_t)op_min_u64(OP_CHAIN_DEPTH_MAX, capture->max_stack);
	attr->exclude_callchain_kernel = attr->exclude_kernel;
	attr->exclude_callchain_user = event->stack_bytes || attr->exclude_user;
	if (event->stack_bytes) {
		attr->sample_regs_user = op_stack_registers(op_stack_machine());
		attr->sample_stack_user = event->stack_bytes;
	} else if (capture->defers_chains) {
		set_flags(attr, OP_ATTR_DEFER_CHAIN | OP_ATTR_DEFER_OUTPUT);
		/*
		 * The kernel hands the later part to events of the side band only
		 * (is_sb_event() in kernel/events/core.c). This makes it one. A few records
		 * of BPF programs come with it.
		 */
		attr->bpf_event = 1;
	}
}

void opd_capture_sampling_attr(const struct opd_capture *capture, const struct op_event *event, struct perf_event_attr *ret_attr)
{
	struct perf_event_attr attr = { 0 };

	op_event_attr(event, &attr);
	attr.sample_type = opd_capture_sample_type(capture, event);
	if (op_event_has_stack(event)) {
		ask_for_stack(capture, event, &attr);
	} else if (capture->callgraph) {
		/* sample_max_stack counts the sample itself as a frame. */
		attr.sample_max_stack = (uint16_t)op_min_u64(capture->callgraph + 1, capture->max_stack);
		attr.exclude_callchain_kernel = attr.exclude_kernel;
		attr.exclude_callchain_user = attr.exclude_user;
	}
	attr.wakeup_events = capture->wakeup_records;
	attr.disabled = 1;
	*ret_attr = attr;
}

int opd_capture_open_sampling(struct opd_capture *capture, const struct op_event *event, int cpu)
{
	struct perf_event_attr attr;
	int fd;

	opd_capture_sampling_attr(capture, event, &attr);
	fd = opd_capture_open_event(capture, &attr, -1, cpu);
	if (fd != -EINVAL || !capture->defers_chains || event->role != OP_EVENT_STACKS || event->stack_bytes)
		return fd;
	capture->defers_chains = false;
	opd_capture_sampling_attr(capture, event, &attr);
	return opd_capture_open_event(capture, &attr, -1, cpu);
}

/* True when the event is refused without PERF_SAMPLE_CGROUP, too. */
static bool refuses_without_cgroup(struct opd_capture *capture, const struct op_event *event, int cpu)
{
	int fd;

	capture->with_cgroup = false;
	fd = opd_capture_open_sampling(capture, event, cpu);
	capture->with_cgroup = true;
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static int open_event(struct opd_capture *capture, struct opd_cpu *cpu, size_t index, char **ret_why)
{
	const struct op_event *wanted = &capture->events[index];
	struct opd_event *event = &cpu->events[index];
	int err;

	event->fd = opd_capture_open_sampling(capture, wanted, (int)cpu->cpu);
	if (event->fd == -EINVAL && capture->with_cgroup && !refuses_without_cgroup(capture, wanted, (int)cpu->cpu)) {
		explain(ret_why, "--separate=cgroup: this kernel does not say in which cgroup a sample was taken (Linux 5.7 with "
				 "CONFIG_CGROUP_PERF does)");
		return event->fd;
	}
	if (event->fd < 0) {
		*ret_why = op_event_explain(wanted, event->fd);
		return event->fd;
	}
	err = op_sys_ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id);
	if (!err)
		err = op_ring_pair_attach(opd_cpu_pair_of(cpu, wanted), event->fd);
	if (err)
		explain(ret_why, "%s on CPU %u: cannot direct samples to the ring: %s", wanted->name, cpu->cpu, strerror(-err));
	return err;
}

static const char *ring_remedy(int err)
{
	if (err == -EACCES && opd_opener_is_needed())
		return ": kernel.perf_event_paranoid is above 2, CAP_PERFMON is not enough, and opd-events does not open the "
		       "events: 'systemctl start opd-events.socket' or, where no systemd is, 'sysctl kernel.perf_event_paranoid=2' "
		       "(as root) allows it";
	if (err == -EPERM || err == -EACCES)
		return ": run as root or with CAP_PERFMON and CAP_IPC_LOCK";
	return err == -ENOMEM ? ": no memory, try a smaller RingSize=" : err == -EMFILE ? ": raise LimitNOFILE=" : "";
}

/* True when events may be opened: then the memory of their rings was refused. */
static bool may_open(struct opd_capture *capture, uint32_t cpu)
{
	int fd = open_tracking(capture, (int)cpu, capture->sideband_bytes / 4);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int explain_ring(struct opd_capture *capture, int err, uint32_t cpu, char **ret_why)
{
	if (err == -EPERM && may_open(capture, cpu))
		*ret_why = opd_ring_memory_explain();
	else
		explain(ret_why, "cannot open the rings of CPU %u: %s%s", cpu, strerror(-err), ring_remedy(err));
	return err;
}

static int open_rings(struct opd_capture *capture, struct opd_cpu *cpu, char **ret_why)
{
	int err = op_ring_pair_open((int)cpu->cpu, capture->ring_bytes, capture->watermark_bytes, &cpu->pair);

	if (!err && capture->stack_ring_bytes)
		err = op_ring_pair_open((int)cpu->cpu, capture->stack_ring_bytes, capture->stack_ring_bytes / 4, &cpu->stack_pair);
	if (err)
		return explain_ring(capture, err, cpu->cpu, ret_why);
	cpu->sideband_known = cpu->sideband_reported = 0;
	cpu->sideband_was_full = false;
	cpu->sideband_fd = open_tracking(capture, (int)cpu->cpu, capture->sideband_bytes / 4);
	err = cpu->sideband_fd < 0 ? cpu->sideband_fd : op_ring_map(cpu->sideband_fd, capture->sideband_bytes, &cpu->sideband);
	return err ? explain_ring(capture, err, cpu->cpu, ret_why) : 0;
}

static int open_events(struct opd_capture *capture, struct opd_cpu *cpu, char **ret_why)
{
	int err = 0;

	for (size_t i = 0; i < capture->nr_opened && !err; i++)
		err = open_event(capture, cpu, i, ret_why);
	return err;
}

/* Attached last to the ring of STACKS: drive/notes.h says why. */
static int open_notes(struct opd_capture *capture, struct opd_cpu *cpu, const struct op_event *stacks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr),
		.sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	int fd = opd_capture_open_event(capture, &attr, -1, (int)cpu->cpu), err;
	uint64_t id;

	if (fd < 0)
		return fd;
	err = op_sys_ioctl(fd, PERF_EVENT_IOC_ID, &id);
	if (!err)
		err = op_ring_pair_attach(opd_cpu_pair_of(cpu, stacks), fd);
	if (err < 0) {
		close(fd);
		return err;
	}
	cpu->notes_fd = fd;
	cpu->notes_id = id;
	return 0;
}

/* Samples are worth more than what the program adds: opd takes them without it. */
static void run_program(struct opd_capture *capture, struct opd_cpu *cpu)
{
	static struct op_rate rate;
	int err = 0;

	for (size_t i = 0; capture->has_program && i < capture->nr_opened && !err; i++) {
		if (capture->events[i].role != OP_EVENT_STACKS || cpu->events[i].fd < 0)
			continue;
		err = open_notes(capture, cpu, &capture->events[i]);
		if (!err)
			err = op_sys_ioctl(cpu->events[i].fd, PERF_EVENT_IOC_SET_BPF, (void *)(intptr_t)capture->program_fd);
	}
	if (err < 0)
		op_log_failure(&rate, op_now_ns(), "attaching the BPF program to STACKS", err);
}

static int enable_event(const struct opd_event *event, unsigned long request)
{
	int err = event->fd >= 0 ? op_sys_ioctl(event->fd, request, NULL) : 0;

	for (size_t i = 0; i < event->more.nr; i++) {
		int result = op_sys_ioctl(event->more.fds[i], request, NULL);

		if (result < 0 && !err)
			err = result;
	}
	return err;
}

static int enable_cpu(const struct opd_capture *capture, const struct opd_cpu *cpu, bool enable)
{
	unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int err = 0;

	for (size_t e = 0; cpu->source->is_host && e < capture->nr_opened; e++) {
		int result = enable_event(&cpu->events[e], request);

		if (result < 0 && !err)
			err = result;
	}
	return err;
}

/*
 * After its rings were opened: true when the CPU is offline, or went and came back, which leaves
 * its first events dead. False when only a counter is missing.
 */
static bool is_away(struct opd_capture *capture, const struct opd_cpu *cpu)
{
	int fd = open_tracking(capture, (int)cpu->cpu, capture->sideband_bytes / 4);

	if (fd >= 0)
		close(fd);
	return fd == -ENODEV || opd_cpu_online_id(cpu->cpu) != cpu->online_id;
}

/* *ret_has_no_rings: the CPU has no rings, since it is not online. */
static int open_cpu(struct opd_capture *capture, struct opd_cpu *cpu, bool *ret_has_no_rings, char **ret_why)
{
	int err = raise_descriptor_limit(capture->nr_online + 1, capture->nr_opened, ret_why);

	cpu->online_id = opd_cpu_online_id(cpu->cpu);
	if (err)
		return err;
	err = open_rings(capture, cpu, ret_why);
	/* A CPU that comes has its files in /sys before it is online, and one that goes, after. */
	*ret_has_no_rings = err == -ENODEV;
	if (err)
		return err;
	err = open_events(capture, cpu, ret_why);
	if (err)
		return err;
	run_program(capture, cpu);
	if (!capture->enabled)
		return 0;
	return enable_cpu(capture, cpu, true);
}

int opd_capture_cpu_open(struct opd_capture *capture, struct opd_cpu *cpu, char **ret_why)
{
	bool has_no_rings = false;
	char *why = NULL;
	int err = open_cpu(capture, cpu, &has_no_rings, &why);

	if (err) {
		opd_cpu_close_rings(cpu, capture->nr_events);
		if (has_no_rings || (err == -ENODEV && is_away(capture, cpu))) {
			free(why);
			return 0;
		}
		if (!why)
			explain(&why, "cannot start capturing on CPU %u: %s", cpu->cpu, strerror(-err));
		*ret_why = why;
		return err;
	}
	cpu->online = true;
	capture->nr_online++;
	return 0;
}

/* Every CPU that can be online has an entry, so that no entry moves when a CPU comes. */
int opd_capture_make_cpus(struct opd_capture *capture, const struct opd_source *source, const uint32_t *possible,
			  size_t nr_possible)
{
	capture->cpus = calloc(nr_possible, sizeof(*capture->cpus));
	if (!capture->cpus)
		return -ENOMEM;
	capture->nr_cpus = nr_possible;
	for (size_t c = 0; c < nr_possible; c++) {
		struct opd_cpu *cpu = &capture->cpus[c];

		cpu->cpu = possible[c];
		cpu->source = source;
		cpu->sideband_fd = -1;
		cpu->pair.anchor_fds[0] = cpu->pair.anchor_fds[1] = -1;
		cpu->events = calloc(capture->nr_events, sizeof(*cpu->events));
		if (!cpu->events)
			return -ENOMEM;
		for (size_t e = 0; e < capture->nr_events; e++)
			cpu->events[e].fd = -1;
	}
	return 0;
}

static void make_load(const struct opd_capture *capture, const struct op_config *config, const uint32_t *online,
		      size_t nr_online, struct opd_load *ret_load)
{
	*ret_load = (struct opd_load){
		.nr_cpus = nr_online,
		.events = capture->events,
		.nr_events = capture->nr_opened,
		.wait_ns = OPD_PLAN_WAIT_NS,
		.visit_ns = config->visit_ms * OP_NS_PER_MS,
		.watermark_bytes = config->watermark_bytes,
		.callgraph = capture->callgraph,
		.ring_bytes = config->ring_bytes,
		.stack_ring_max_use = config->stack_ring_max_use,
	};
	for (size_t i = 0; i < capture->nr_opened; i++)
		if (capture->events[i].role == OP_EVENT_WAITS)
			ret_load->wait_bytes = opd_plan_wait_bytes(config->wait_budget, nr_online);
	/*
	 * Where the wait cannot be measured, opening the rings fails as well and reports the
	 * reason.
	 */
	if (opd_plan_measure_wait((int)online[0], &ret_load->wait_ns) < 0)
		ret_load->wait_ns = OPD_PLAN_WAIT_NS;
}

static void plan_rings(struct opd_capture *capture, const struct op_config *config, struct op_event *events,
		       const struct opd_load *load)
{
	opd_plan_make(load, &capture->plan);
	opd_plan_apply(&capture->plan, events, capture->nr_opened);
	capture->ring_bytes = capture->plan.spare_ring_bytes;
	capture->stack_ring_bytes = capture->plan.spare_stack_ring_bytes;
	capture->sideband_bytes = config->sideband_bytes ? config->sideband_bytes : capture->plan.sideband_bytes;
	capture->may_leave_woken = !config->watermark_bytes && !config->wakeup_records;
}

static int open_cpus(struct opd_capture *capture, uint64_t watermark_bytes, const uint32_t *online, size_t nr_online,
		     char **ret_why)
{
	int err = 0;

	capture->watermark_bytes =
		watermark_bytes && watermark_bytes <= capture->ring_bytes ? watermark_bytes : capture->ring_bytes / 4;
	for (size_t c = 0; c < capture->nr_cpus && !err; c++)
		if (opd_cpus_has(online, nr_online, capture->cpus[c].cpu))
			err = opd_capture_cpu_open(capture, &capture->cpus[c], ret_why);
	return err;
}

static void close_cpus(struct opd_capture *capture)
{
	for (size_t c = 0; c < capture->nr_cpus; c++)
		if (capture->cpus[c].online)
			opd_capture_cpu_close(capture, &capture->cpus[c]);
}

/*
 * The spare of STACKS goes first: flat samples keep as much of theirs as fits. When a ring gets
 * smaller than needed, the plan is made anew, and the rate of STACKS falls to what fits. False:
 * nothing can be smaller.
 */
static bool shrink_rings(struct opd_capture *capture, const struct op_config *config, struct op_event *events,
			 struct opd_load *load, int err)
{
	struct opd_plan *plan = &capture->plan;
	uint32_t stack_wanted_hz = plan->stack_wanted_hz;
	const struct opd_ring_sizes sizes = {
		.flat = config->ring_bytes ? NULL : &capture->ring_bytes,
		.stacks = &capture->stack_ring_bytes,
		.sideband = config->sideband_bytes ? NULL : &capture->sideband_bytes,
	};

	if (capture->stack_ring_bytes > plan->stack_ring_bytes) {
		capture->stack_ring_bytes = plan->stack_ring_bytes;
		return true;
	}
	if (!opd_ring_memory_shrink(&sizes))
		return false;
	if (capture->ring_bytes >= plan->ring_bytes && capture->stack_ring_bytes >= plan->stack_ring_bytes)
		return true;
	capture->is_shrunk = err == -EPERM;
	load->ring_bytes = op_min_u64(capture->ring_bytes, plan->ring_bytes);
	load->stack_ring_bytes = capture->stack_ring_bytes;
	opd_plan_make(load, plan);
	opd_plan_apply(plan, events, capture->nr_opened);
	plan->stack_wanted_hz = stack_wanted_hz;
	return true;
}

static int open_online(struct opd_capture *capture, const struct op_config *config, struct op_event *events, char **ret_why)
{
	struct opd_load load;
	uint32_t *online;
	size_t nr_online;
	int err = opd_cpus_read(OPD_CPUS_ONLINE, &online, &nr_online);

	if (err)
		return err;
	opd_ring_memory_raise();
	make_load(capture, config, online, nr_online, &load);
	plan_rings(capture, config, events, &load);
	err = open_cpus(capture, config->watermark_bytes, online, nr_online, ret_why);
	while ((err == -EPERM || err == -ENOMEM) && shrink_rings(capture, config, events, &load, err)) {
		close_cpus(capture);
		free(*ret_why);
		*ret_why = NULL;
		err = open_cpus(capture, config->watermark_bytes, online, nr_online, ret_why);
	}
	free(online);
	return err;
}

int opd_capture_open(struct opd_capture *capture, const struct op_config *config, struct op_event *events, size_t nr_events,
		     bool with_cgroup, uint32_t callgraph, char **ret_why)
{
	uint32_t *possible = NULL;
	size_t nr_possible = 0;
	char *why = NULL;
	int err = opd_cpus_read(OPD_CPUS_POSSIBLE, &possible, &nr_possible);

	*capture = (struct opd_capture){
		.events = events,
		.nr_events = nr_events,
		.nr_opened = op_event_nr_opened(events, nr_events),
		.wakeup_records = (uint32_t)config->wakeup_records,
		.with_cgroup = with_cgroup,
		.callgraph = callgraph,
		.max_stack = op_chain_max_stack(),
		.has_format_lost = true,
		.defers_chains = true,
	};
	if (err)
		goto fail;
	if (callgraph > capture->max_stack) {
		explain(&why,
			"--callgraph=%" PRIu32 ": this kernel records at most %" PRIu32 " callers: raise "
			"kernel.perf_event_max_stack",
			callgraph, capture->max_stack);
		err = -EOVERFLOW;
		goto fail;
	}
	err = opd_capture_make_cpus(capture, &opd_source_kernel, possible, nr_possible);
	if (!err)
		err = open_online(capture, config, events, &why);
	if (err)
		goto fail;
	free(possible);
	return 0;

fail:
	free(possible);
	opd_capture_close(capture);
	if (!why)
		explain(&why, "cannot start capturing: %s", strerror(-err));
	*ret_why = why;
	return err;
}

int opd_capture_enable(struct opd_capture *capture, bool enable)
{
	int err = 0;

	for (size_t c = 0; c < capture->nr_cpus; c++) {
		int result = capture->cpus[c].online ? enable_cpu(capture, &capture->cpus[c], enable) : 0;

		if (result < 0 && !err)
			err = result;
	}
	/* Some CPUs sample now: stop them all, so that sampling is either on or off everywhere. */
	if (err && enable) {
		for (size_t c = 0; c < capture->nr_cpus; c++)
			if (capture->cpus[c].online)
				enable_cpu(capture, &capture->cpus[c], false);
		return err;
	}
	capture->enabled = enable;
	return err;
}

void opd_capture_run_before_stacks(struct opd_capture *capture, int program_fd)
{
	capture->has_program = true;
	capture->program_fd = program_fd;
	for (size_t c = 0; c < capture->nr_cpus; c++)
		if (capture->cpus[c].online)
			run_program(capture, &capture->cpus[c]);
}
