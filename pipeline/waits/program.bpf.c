/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program in the kernel that samples waits. It runs at each switch of threads, which is why it
 * does little: it looks up what the two threads do, and adds up.
 *
 * A wait is decided upon when it is over, since its length is known then. Each thread has points on
 * the axis of its waiting time, for each state, quantum_ns apart on average with some chance. A
 * wait in which a point lies is recorded, and weighs as much as the time between the last two
 * points. So the records of a thread add up to its waiting time, each site has its share of them,
 * and a thread that waits 5,000 times a second makes no more of them than one that waits twice. A
 * wait of at least a quantum is always recorded, with its exact time. What finds no room, in the
 * grant or in the ring, is owed: the next record of the same thread and state has its time as well.
 *
 * The copy of the stack must be that of the thread that waited, so it is made when that thread runs
 * again. No place of the kernel calls a program there: sched_switch is the last one before it, and
 * functions cannot be traced everywhere. So the program kicks: it wakes nobody on a ring buffer,
 * which the kernel does with an interrupt to its own CPU (irq_work) as soon as interrupts are on.
 * That is at the end of the switch, in the thread that comes, with its whole stack below. There the
 * program writes the record to the event WAIT, and the kernel copies registers and stack. A switch
 * that comes before the interrupt finds the record still due, and counts it as lost.
 *
 * A wait that lasts is told by the iterator, part by part; the record at its end has the rest.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "pipeline/runtimes/shared.h"
#include "pipeline/waits/shared.h"
#include "pipeline/waits/kernel.bpf.h"

char license_name[] SEC("license") = "GPL";

/* opd-waits sets it before it loads: the verifier does not look at code for which it has no bit. */
const volatile __u32 parts = OPD_PARTS_ALL;

static __always_inline bool has(enum opd_wait_part part)
{
	return parts & OPD_PART_BIT(part);
}

/* ---- maps ---- */

struct share {
	__u32 passed_ns; /* since the last point */
	__u32 left_ns;	 /* to the next one */
	__u64 owed_ns;	 /* what should have been recorded, and had no room */
};

struct thread {
	__u64 begin_ns; /* of the wait */
	__u64 from_ns;	/* opd was told of the wait up to here; 0: it is over */
	__u64 woken_ns; /* 0: it is not */
	__u32 state;
	__u32 waker, waker_pid, by_interrupt;
	char waker_name[16];
	__u64 context; /* an address on the stack of the kernel, as a number */
	__u32 epoch; /* it is known since */
	__u32 owes;  /* a bit for each state in which it owes */
	struct share shares[OPD_WAIT_STATES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct opd_wait_control);
} control SEC(".maps");

/* The loader sets the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct opd_wait_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} output SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} notes SEC(".maps");

struct kick {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OPD_WAIT_KICK_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kick);
} kicks SEC(".maps");

static __always_inline struct opd_wait_control *get_control(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u64 stack_pointer(struct task_struct *task)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(registers, sp);
#else
	return BPF_CORE_READ(registers, user_regs.sp);
#endif
}

static __always_inline __u64 instruction_pointer(struct task_struct *task)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(registers, ip);
#else
	return BPF_CORE_READ(registers, user_regs.pc);
#endif
}

/* ---- deep stacks ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct opd_deep_cpu);
} deep_cpus SEC(".maps");

#define PAGE_BYTES 4096u /* or a multiple: then it is read in parts */
#define COPIED_PAGES_MAX 16 /* OPD_DEEP_STACK_MAX */
#define NOTES_MAX 24u /* a chunk for each 8 KiB, or one for each page */

struct stack_note {
	struct opd_stack_note head;
	__u8 bytes[OPD_DEEP_CHUNK];
	__u32 at, end, nr_bytes, is_lost; /* how far it is written */
	__u32 is_busy; /* a sample that interrupts a record of WAIT has no notes */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_note);
} stack_notes SEC(".maps");

/*
 * From the stack pointer to the top of the stack: the kernel knows where that of a main thread
 * begins, and the C library puts the block of a thread on top of its stack. 0: another stack, of
 * signals or coroutines. A program can set both, and so choose how much of its memory is copied.
 */
static __always_inline __u32 distance_to_top(struct task_struct *task, struct mm_struct *mm, __u64 sp)
{
	__u64 top;

	if (task->pid == task->tgid)
		top = BPF_CORE_READ(mm, start_stack);
	else
#if defined(__TARGET_ARCH_x86)
		top = BPF_CORE_READ(task, thread.fsbase);
#else
		top = BPF_CORE_READ(task, thread.uw.tp_value);
#endif
	return top > sp && top - sp < OPD_DEEP_DISTANCE_MAX ? top - sp : 0;
}

static __always_inline bool take_bytes(struct opd_deep_cpu *cpu, const struct opd_wait_control *wanted, __u32 nr_bytes)
{
	if (cpu->round != wanted->deep_round) {
		cpu->round = wanted->deep_round;
		cpu->nr_left = wanted->deep_grant;
	}
	if (cpu->nr_left < nr_bytes)
		return false;
	cpu->nr_left -= nr_bytes;
	return true;
}

static __always_inline __u32 to_next_page(__u64 address)
{
	return PAGE_BYTES - (__u32)(address & (PAGE_BYTES - 1));
}

/*
 * What the steps of a loop share. Numbers are in the map, where the verifier does not follow their
 * values: else it looks at each turn of the loop anew, and gives up.
 */
struct writing {
	void *context;
	struct stack_note *note;
};

/* Goes on from page to page while they are present. */
static long skip_copied(__u32 step, struct writing *writing)
{
	struct stack_note *note = writing->note;
	__u8 byte;

	if (note->at >= note->end || bpf_probe_read_user(&byte, sizeof(byte), (void *)(note->head.sp + note->at)))
		return 1;
	note->at += PAGE_BYTES;
	return 0;
}

/* How far the kernel copies: up to a page that is not present. */
static __always_inline __u32 end_of_copy(struct stack_note *note, __u32 nr_bytes)
{
	struct writing writing = { .note = note };

	note->at = to_next_page(note->head.sp);
	note->end = nr_bytes;
	bpf_loop(COPIED_PAGES_MAX, skip_copied, &writing, 0);
	return note->at < nr_bytes ? note->at : nr_bytes;
}

/* Writes a chunk, or as much of it as is in one page, and leaves out a page that is not present. */
static long write_note(__u32 step, struct writing *writing)
{
	struct stack_note *note = writing->note;
	__u32 at = note->at, end = note->end, nr = end - at;
	__u64 address = note->head.sp + at;
	__u32 page = to_next_page(address);

	if (at >= end)
		return 1;
	if (nr > OPD_DEEP_CHUNK)
		nr = OPD_DEEP_CHUNK;
	if (bpf_probe_read_user(note->bytes, nr, (void *)address)) {
		if (nr > page)
			nr = page;
		if (bpf_probe_read_user(note->bytes, nr, (void *)address)) {
			note->at = at + page;
			return 0;
		}
	}
	note->head.offset = at;
	note->head.nr_bytes = nr;
	if (bpf_perf_event_output(writing->context, &notes, BPF_F_CURRENT_CPU, note, sizeof(note->head) + nr)) {
		note->is_lost = 1;
		return 1;
	}
	note->at = at + nr;
	note->nr_bytes += nr;
	note->head.after = at + nr;
	return 0;
}

/* Writes the bytes from `from` to `end` of the stack, or at least how large the stack is. */
static __always_inline void write_notes(void *context, struct opd_deep_cpu *cpu, struct stack_note *note, __u32 from, __u32 end)
{
	struct writing writing = { .context = context, .note = note };

	note->head.after = from;
	note->head.nr_bytes = 0;
	note->head.offset = from;
	if (from >= end) {
		bpf_perf_event_output(context, &notes, BPF_F_CURRENT_CPU, note, sizeof(note->head));
		return;
	}
	note->at = from;
	note->end = end;
	note->nr_bytes = note->is_lost = 0;
	bpf_loop(NOTES_MAX, write_note, &writing, 0);
	cpu->bytes += note->nr_bytes;
	if (note->is_lost)
		cpu->lost++;
	else if (note->nr_bytes)
		cpu->copied++;
	else
		cpu->unread++;
}

/* The rest of a stack that is larger than what the kernel copies. */
static __noinline void deep_copy(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct opd_wait_control *wanted = get_control();
	__u32 number = bpf_get_smp_processor_id(), from, end;
	struct opd_deep_cpu *cpu = bpf_map_lookup_elem(&deep_cpus, &number);
	struct stack_note *note = bpf_map_lookup_elem(&stack_notes, &number);
	struct mm_struct *mm = task->mm;

	if (!wanted || !cpu || !note || !mm || note->is_busy || task->flags & PF_KTHREAD || !wanted->stack_bytes)
		return;
	cpu->samples++;
	note->head.kind = OPD_NOTE_STACK;
	note->head.sp = stack_pointer(task);
	note->head.distance = distance_to_top(task, mm, note->head.sp);
	end = note->head.distance + OPD_DEEP_SLACK;
	if (!note->head.distance || wanted->stack_bytes >= OPD_DEEP_STACK_MAX)
		return;
	from = end_of_copy(note, end < wanted->stack_bytes ? end : wanted->stack_bytes);
	if (end <= from)
		return;
	cpu->deep++;
	if (end > OPD_DEEP_STACK_MAX && bpf_get_prandom_u32() & OPD_DEEP_PASS_MASK) {
		cpu->passed++;
		end = from;
	} else {
		if (end > OPD_DEEP_STACK_MAX)
			end = OPD_DEEP_STACK_MAX;
		if (!take_bytes(cpu, wanted, end - from)) {
			cpu->denied++;
			end = from;
		}
	}
	note->is_busy = 1;
	write_notes(context, cpu, note, from, end);
	note->is_busy = 0;
}

/* ---- which waits are recorded ---- */

static __always_inline struct opd_wait_cpu *get_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* As if there had been points before the thread: a short one then has its fair chance. */
static __always_inline void begin_shares(struct thread *thread, const struct opd_wait_control *wanted)
{
	for (int i = 1; i < OPD_WAIT_STATES; i++) {
		__u32 quantum = (__u32)wanted->quantum_ns[i];

		thread->shares[i].passed_ns = quantum ? bpf_get_prandom_u32() % quantum : 0;
		thread->shares[i].left_ns = quantum - thread->shares[i].passed_ns;
	}
}

/* What a wait weighs; 0: it is skipped. */
static __always_inline __u64 weigh(struct thread *thread, const struct opd_wait_control *wanted, __u32 state, __u64 ns)
{
	struct share *share = &thread->shares[state % OPD_WAIT_STATES];
	__u64 quantum = wanted->quantum_ns[state % OPD_WAIT_STATES];
	__u64 weight, over, gap;

	if (ns && (share->owed_ns || ns >= quantum)) {
		weight = ns + share->owed_ns;
		share->owed_ns = 0;
		thread->owes &= ~(1u << state % OPD_WAIT_STATES);
		return weight;
	}
	if (!ns)
		return 0;
	share->passed_ns += ns;
	if (ns < share->left_ns) {
		share->left_ns -= ns;
		return 0;
	}
	over = ns - share->left_ns;
	gap = quantum / 2 + bpf_get_prandom_u32() % (__u32)quantum;
	if (over >= gap) { /* there are two points in it */
		over -= gap;
		gap = quantum / 2 + bpf_get_prandom_u32() % (__u32)quantum;
	}
	weight = share->passed_ns - over;
	share->passed_ns = over;
	share->left_ns = gap > over ? gap - over : 1;
	return weight;
}

#include "pipeline/runtimes/interpreters.bpf.h"

/* ---- switches ---- */

static __always_inline __u32 state_of(struct task_struct *task, unsigned int kernel_state, bool is_preempted)
{
	if (is_preempted || !kernel_state)
		return OPD_WAIT_PREEMPTED;
	if (kernel_state & (STATE_FROZEN | STATE_STOPPED))
		return OPD_WAIT_FROZEN;
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD_PROBED(task, frozen))
		return OPD_WAIT_FROZEN;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		return OPD_WAIT_DISK;
	return kernel_state & STATE_D ? OPD_WAIT_UNINTERRUPTIBLE : OPD_WAIT_BLOCKED;
}

/* What a thread owes when it ends is lost. */
static __always_inline void end(struct opd_wait_cpu *cpu, struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread || !thread->owes)
		return;
	for (int i = 1; i < OPD_WAIT_STATES; i++)
		cpu->lost_ns += thread->shares[i].owed_ns;
}

static __always_inline void leave(struct opd_wait_cpu *cpu, struct task_struct *task, unsigned int kernel_state,
				  bool is_preempted, __u32 epoch, __u64 now_ns)
{
	struct thread *thread;

	if (task->flags & PF_KTHREAD)
		return;
	if (kernel_state & STATE_DEAD && !is_preempted) {
		end(cpu, task);
		return;
	}
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread)
		return;
	thread->state = state_of(task, kernel_state, is_preempted);
	thread->woken_ns = 0;
	thread->waker = thread->by_interrupt = 0;
	thread->epoch = epoch;
	thread->begin_ns = now_ns;
	thread->from_ns = now_ns;
}

static __always_inline void owe(struct thread *thread, const struct opd_wait_record *record)
{
	for (int i = 0; i < OPD_WAIT_PARTS; i++) {
		if (!record->weight_ns[i])
			continue;
		thread->shares[record->state[i] % OPD_WAIT_STATES].owed_ns += record->weight_ns[i];
		thread->owes |= 1u << record->state[i] % OPD_WAIT_STATES;
	}
}

static __always_inline void kick(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), word = 0;
	void *ring = bpf_map_lookup_elem(&kicks, &cpu);

	if (ring)
		bpf_ringbuf_output(ring, &word, sizeof(word), BPF_RB_FORCE_WAKEUP);
}

static __always_inline bool take_grant(struct opd_wait_cpu *cpu, const struct opd_wait_control *wanted)
{
	if (cpu->round != wanted->round) {
		cpu->round = wanted->round;
		cpu->nr_left = wanted->grant;
	}
	if (!cpu->nr_left)
		return false;
	cpu->nr_left--;
	return true;
}

/* The thread runs again: its wait is over. */
static __always_inline void enter(struct opd_wait_cpu *cpu, const struct opd_wait_control *wanted, struct task_struct *task,
				  __u64 now_ns)
{
	struct opd_wait_record *record = &cpu->record;
	struct thread *thread;
	__u64 from_ns, woken_ns;
	__u32 owes;

	if (task->flags & PF_KTHREAD) {
		if (task->pid)
			cpu->kernel++;
		else
			cpu->idle++;
		return;
	}
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	/* in one step: the iterator may look at the same time */
	from_ns = thread ? __sync_lock_test_and_set(&thread->from_ns, 0) : 0;
	if (!from_ns || thread->epoch != wanted->epoch) {
		cpu->lost++;
		cpu->lost_unknown++;
		return;
	}
	woken_ns = thread->woken_ns && thread->woken_ns < now_ns ? thread->woken_ns : now_ns;
	if (thread->state == OPD_WAIT_PREEMPTED || thread->state == OPD_WAIT_RUNNABLE)
		woken_ns = now_ns;
	else if (woken_ns < from_ns)
		woken_ns = from_ns;
	cpu->total_ns[thread->state % OPD_WAIT_STATES] += woken_ns - from_ns;
	cpu->total_ns[OPD_WAIT_RUNNABLE] += now_ns - woken_ns;
	owes = thread->owes & (1u << thread->state % OPD_WAIT_STATES | 1u << OPD_WAIT_RUNNABLE);
	record->is_long = thread->begin_ns != from_ns;
	record->weight_ns[0] = record->is_long ? woken_ns - from_ns :
						 weigh(thread, wanted, thread->state, woken_ns - from_ns);
	record->weight_ns[1] = weigh(thread, wanted, OPD_WAIT_RUNNABLE, now_ns - woken_ns);
	cpu->asked += !owes && (record->weight_ns[0] || record->weight_ns[1]);
	record->state[0] = thread->state;
	record->state[1] = OPD_WAIT_RUNNABLE;
	record->begin_ns = thread->begin_ns;
	record->waker = thread->waker;
	record->waker_pid = thread->waker_pid;
	record->by_interrupt = thread->by_interrupt;
	__builtin_memcpy(record->waker_name, thread->waker_name, sizeof(record->waker_name));
	if (!record->weight_ns[0] && !record->weight_ns[1] && !record->is_long) {
		cpu->skipped++;
	} else if (!take_grant(cpu, wanted)) {
		owe(thread, record);
		cpu->deferred++;
		cpu->skipped++;
	} else {
		cpu->due = task->pid;
		kick();
	}
}

/* The thread that the record is about is the one that leaves, or runs. */
static __always_inline void lose(struct opd_wait_cpu *cpu, struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread && cpu->due == (__u32)task->pid)
		owe(thread, &cpu->record);
	cpu->lost++;
	cpu->due = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool is_preempted, struct task_struct *previous, struct task_struct *next, unsigned int kernel_state)
{
	struct opd_wait_control *wanted = get_control();
	struct opd_wait_cpu *cpu = get_cpu();
	__u64 now_ns = bpf_ktime_get_ns();

	if (!cpu || !wanted || !wanted->epoch)
		return 0;
	if (cpu->due) {
		cpu->lost_late++;
		lose(cpu, previous);
	}
	cpu->switches++;
	leave(cpu, previous, kernel_state, is_preempted, wanted->epoch, now_ns);
	enter(cpu, wanted, next, now_ns);
	return 0;
}

/* The interrupt of a kick, or any other one of its kind. */
static __always_inline void write_due(void *context)
{
	struct opd_wait_cpu *cpu = get_cpu();
	struct task_struct *task;

	if (!cpu || !cpu->due)
		return;
	task = bpf_get_current_task_btf();
	if (cpu->due != (__u32)task->pid) {
		cpu->lost_late++;
		lose(cpu, task);
		return;
	}
	if (has(OPD_PART_interpreters))
		write_runtime_notes(context);
	if (has(OPD_PART_deep))
		deep_copy(context);
	if (bpf_perf_event_output(context, &output, BPF_F_CURRENT_CPU, &cpu->record, sizeof(cpu->record))) {
		cpu->lost_full++;
		lose(cpu, task);
	} else {
		cpu->emitted++;
		cpu->due = 0;
	}
}

#if defined(__TARGET_ARCH_x86)
SEC("tp_btf/irq_work_entry")
#else
SEC("tp_btf/ipi_entry")
#endif
int BPF_PROG(on_kick)
{
	write_due(ctx);
	return 0;
}

/*
 * Whether an interrupt runs, which has nothing to do with the thread that it came upon. Interrupts
 * have a stack of their own; on x86 not those that come upon user space, whose registers say so.
 * The context lies on the stack that is in use. Programs may not compute with its address, but
 * store it.
 */
static __always_inline bool is_interrupt(struct thread *thread, void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *top = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 place;

	*(void *volatile *)&thread->context = context;
	place = *(volatile __u64 *)&thread->context;
	if (!task->pid || place < (__u64)BPF_CORE_READ(task, stack) || place > (__u64)top)
		return true;
#if defined(__TARGET_ARCH_x86)
	return (long)BPF_CORE_READ(top, orig_ax) == -1;
#else
	return false;
#endif
}

static __always_inline void note_waker(struct thread *thread, void *context)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	thread->by_interrupt = is_interrupt(thread, context);
	if (thread->by_interrupt)
		return;
	thread->waker = (__u32)pid_tgid;
	thread->waker_pid = (__u32)(pid_tgid >> 32);
	bpf_get_current_comm(thread->waker_name, sizeof(thread->waker_name));
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *thread;

	if (task->flags & PF_KTHREAD)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !thread->from_ns || thread->woken_ns)
		return 0;
	thread->woken_ns = bpf_ktime_get_ns();
	note_waker(thread, ctx);
	return 0;
}

/* ---- threads ---- */

/* A thread that opd did not see leave its CPU waits from now on. */
static __always_inline struct thread *begin(struct task_struct *task, __u32 state)
{
	struct opd_wait_control *wanted = get_control();
	struct thread *thread;

	if (task->flags & PF_KTHREAD || !wanted)
		return NULL;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return NULL;
	begin_shares(thread, wanted);
	thread->state = state;
	thread->epoch = wanted->epoch;
	thread->begin_ns = state ? bpf_ktime_get_ns() : 0;
	thread->from_ns = thread->begin_ns;
	return thread;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *task)
{
	begin(task, OPD_WAIT_RUNNABLE);
	return 0;
}

/* The cgroup that perf records of a sample. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *state = NULL;

	if (!set || !bpf_core_enum_value_exists(enum cgroup_subsys_id, perf_event_cgrp_id))
		return 0;
	bpf_core_read(&state, sizeof(state), &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id)]);
	return state ? BPF_CORE_READ(state, cgroup, kn, id) : 0;
}

static __always_inline void read_registers(struct task_struct *task, __u64 *to)
{
	struct pt_regs *from = (struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	to[0] = BPF_CORE_READ(from, ip);
	to[1] = BPF_CORE_READ(from, sp);
	to[2] = BPF_CORE_READ(from, bp);
	to[3] = BPF_CORE_READ(from, bx);
	to[4] = BPF_CORE_READ(from, r12);
	to[5] = BPF_CORE_READ(from, r13);
	to[6] = BPF_CORE_READ(from, r14);
	to[7] = BPF_CORE_READ(from, r15);
#else
	to[0] = BPF_CORE_READ(from, user_regs.pc);
	to[1] = BPF_CORE_READ(from, user_regs.sp);
	to[2] = BPF_CORE_READ(from, user_regs.regs[29]);
	for (int i = 0; i < 10; i++)
		to[3 + i] = BPF_CORE_READ(from, user_regs.regs[19 + i]);
	to[13] = BPF_CORE_READ(from, user_regs.regs[30]);
#endif
}

static __always_inline void tell(struct seq_file *out, struct task_struct *task, struct thread *thread, __u64 from_ns)
{
	struct opd_wait_open open = { .begin_ns = thread->begin_ns, .state = thread->state, .pid = task->tgid, .tid = task->pid };
	long nr_bytes = bpf_get_task_stack(task, open.ips, sizeof(open.ips), 0);

	open.nr_ips = nr_bytes > 0 ? nr_bytes / sizeof(open.ips[0]) : 0;
	open.cgroup = cgroup_of(task);
	read_registers(task, open.registers);
	open.now_ns = bpf_ktime_get_ns();
	open.weight_ns = open.now_ns - from_ns;
	/* unless it was over meanwhile */
	if (__sync_val_compare_and_swap(&thread->from_ns, from_ns, open.now_ns) == from_ns)
		bpf_seq_write(out, &open, sizeof(open));
}

/*
 * Threads that have waited for some time. The first reading of an epoch finds all threads that were
 * there before it.
 */
SEC("iter/task")
int waiting(struct bpf_iter__task *context)
{
	struct opd_wait_control *wanted = get_control();
	struct task_struct *task = context->task;
	__u64 from_ns, now_ns = bpf_ktime_get_ns();
	struct thread *thread;

	if (!task || task->flags & PF_KTHREAD || !wanted)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || thread->epoch != wanted->epoch) {
		begin(task, task->on_cpu ? 0 : state_of(task, task->__state, false));
		return 0;
	}
	from_ns = thread->from_ns;
	if (from_ns && from_ns + wanted->open_ns < now_ns && !thread->woken_ns)
		tell(context->meta->seq, task, thread, from_ns);
	return 0;
}

/* ---- samples of STACKS ---- */

/*
 * Runs before a sample of STACKS is written; opd attaches it to that event of each CPU. An event
 * has one program, so all that is added to a sample is added here. It returns 1 always: the kernel
 * writes the sample. It does not count samples that a program drops, and `taken` would be wrong.
 */
SEC("perf_event")
int on_sample(void *ctx)
{
	if (has(OPD_PART_deep))
		deep_copy(ctx);
	if (has(OPD_PART_interpreters))
		write_runtime_notes(ctx);
	return 1;
}
