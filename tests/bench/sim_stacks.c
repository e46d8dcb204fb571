/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/sim_stacks.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/jobs/status.h"
#include "libop/base/clock.h"
#include "libop/events/event.h"
#include "libop/ring/memory_pair.h"
#include "libop/session/directory.h"
#include "libop/stacks/read.h"
#include "pipeline/capture/memory_source.h"
#include "pipeline/count/file_sinks.h"
#include "pipeline/count/stack_file.h"
#include "pipeline/drive/stack_records.h"
#include "tests/bench/bench.h"
#include "tests/bench/sim.h"

#define NR_CPUS        256u
#define NR_PROGRAMS    4u
#define PERIOD         10u /* stacks of a CPU in which each program has its share */
#define EVENT_ID       7
#define FIRST_PID      5000000u /* above any pid_max */
#define CODE           UINT64_C(0x400000)
#define CODE_BYTES     0x10000u
#define STACK          UINT64_C(0x7ffd00000000)
#define STACK_BYTES    8192u
#define SIDEBAND_BYTES (64u * 1024)
#define TURN_MS        250u
#define MAX_IMAGES     1000
#define MAX_FILES      64

static const unsigned int share_of[NR_PROGRAMS] = { 4, 3, 2, 1 }; /* of PERIOD */

/* PERF_SAMPLE_IDENTIFIER, IP, TID, TIME, CALLCHAIN, REGS_USER, STACK_USER of 24 registers */
struct stack_record {
	struct perf_event_header header;
	uint64_t id, ip, who, time_ns, nr_callers, abi, registers[24], nr_bytes;
	uint8_t bytes[STACK_BYTES];
	uint64_t nr_copied;
};

static struct {
	struct op_event events[2]; /* for the plan: STACKS is the last one */
	struct opd_pipeline pipeline;
	struct op_mring_pair pairs[NR_CPUS];
	struct op_mring sidebands[NR_CPUS];
	struct op_mring_pair_writer writers[NR_CPUS];
	struct op_mring_writer sideband_writer;
	uint64_t nr_made[NR_PROGRAMS], nr_of_cpu[NR_CPUS];
	char dir[64];
} sim;

static void end_on(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "bench_sim: stacks: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* ---- the host ---- */

static void plan(void)
{
	struct opd_load load = {
		.nr_cpus = NR_CPUS,
		.events = sim.events,
		.nr_events = 2,
		.wait_ns = 8000000,
		.visit_ns = TURN_MS * OP_NS_PER_MS,
		.stack_ring_max_use = OPD_STACK_RING_MAX_USE,
	};

	sim.events[0] = (struct op_event){ .name = "TIMER", .type = PERF_TYPE_SOFTWARE, .count = 1000000, .is_timer = true };
	op_event_make_stacks(false, 99, STACK_BYTES, &sim.events[1]);
	opd_plan_make(&load, &sim.pipeline.capture.plan);
	opd_plan_apply(&sim.pipeline.capture.plan, sim.events, 2);
}

static void open_rings(void)
{
	static const uint64_t id = EVENT_ID;
	static struct opd_memory_cpu cpus[NR_CPUS];
	const struct opd_plan made = sim.pipeline.capture.plan;

	for (uint32_t i = 0; i < NR_CPUS; i++) {
		end_on(op_mring_pair_create(made.stack_ring_bytes, OP_MRING_FENCE | OP_MRING_OWN_WRITER, &sim.pairs[i]), "a pair");
		end_on(op_mring_create(SIDEBAND_BYTES, 0, OP_MRING_OWN_WRITER, &sim.sidebands[i]), "a side band");
		end_on(op_mring_pair_writer_open(&sim.pairs[i], &sim.writers[i]), "a writer");
		op_mring_pair_wake_every(&sim.pairs[i], made.stack_ring_bytes / 4, false);
		cpus[i] = (struct opd_memory_cpu){ .cpu = i, .pair = &sim.pairs[i], .sideband = &sim.sidebands[i], .ids = &id };
	}
	end_on(opd_capture_open_memory(&sim.pipeline.capture, &sim.events[1], 1, cpus, NR_CPUS), "the capture");
	sim.pipeline.capture.plan = made;
	sim.pipeline.capture.stack_ring_bytes = made.stack_ring_bytes;
	sim.pipeline.capture.max_stack = 127;
	end_on(op_mring_writer_open(&sim.sidebands[0], &sim.sideband_writer), "the writer of the side band");
}

static void open_pipeline(void)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	const char *base = getenv("TMPDIR");

	end_on(table ? opd_resolver_init(&sim.pipeline.resolver, table, MAX_IMAGES, NULL) : -ENOMEM, "the resolver");
	end_on(opd_stacks_new(NULL, &sim.pipeline.stacks), "stacks");
	sim.pipeline.stacks->machine = EM_X86_64;
	sim.pipeline.stacks->registers = op_stack_registers(EM_X86_64);
	snprintf(sim.dir, sizeof(sim.dir), "%s/opd-sim.XXXXXX", base ? base : P_tmpdir);
	end_on(mkdtemp(sim.dir) ? 0 : -errno, "a directory");
	sim.pipeline.count = (struct opd_count){
		.session_fd = op_session_open(sim.dir),
		.table = table,
		.events = &sim.events[1],
		.nr_events = 1,
		.separate_lib = true,
		.no_process_cookie = sim.pipeline.resolver.pseudo[OPD_PSEUDO_NO_PROCESS],
		.max_open = MAX_FILES,
		.max_closed = MAX_FILES,
	};
	opd_file_sinks_open(&sim.pipeline.count);
	end_on(sim.pipeline.count.session_fd < 0 ? sim.pipeline.count.session_fd : 0, "the session");
}

/* ---- what happens on it ---- */

static void say(uint32_t type, uint16_t misc, uint32_t pid, const void *body, size_t nr_bytes)
{
	uint64_t who[3] = { (uint64_t)pid << 32 | pid, op_now_ns(), EVENT_ID };
	struct perf_event_header *record;

	end_on(op_mring_reserve(&sim.sideband_writer, sizeof(*record) + nr_bytes + sizeof(who), &record), "the side band");
	record->type = type;
	record->misc = misc;
	memcpy(record + 1, body, nr_bytes);
	memcpy((uint8_t *)(record + 1) + nr_bytes, who, sizeof(who));
	op_mring_commit(&sim.sideband_writer);
}

/* One process of each program: its exec, and its code. */
static void start_programs(void)
{
	for (uint32_t i = 0; i < NR_PROGRAMS; i++) {
		uint32_t pid = FIRST_PID + i;
		uint64_t exec[3] = { (uint64_t)pid << 32 | pid };
		struct {
			uint32_t pid, tid;
			uint64_t start, bytes, offset;
			uint8_t build_id[24];
			uint32_t prot, flags;
			char name[16];
		} code = { .pid = pid, .tid = pid, .start = CODE, .bytes = CODE_BYTES, .build_id = { 20 }, .prot = 5, .flags = 2 };

		snprintf((char *)(exec + 1), 16, "program%u", i);
		snprintf(code.name, sizeof(code.name), "/program%u", i);
		code.build_id[4] = (uint8_t)(i + 1);
		say(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, pid, exec, sizeof(exec));
		say(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, pid, &code, sizeof(code));
	}
}

/* A stack of four frames with frame pointers. False: the ring has no room. */
static bool write_stack(uint32_t cpu)
{
	static struct stack_record made;
	uint64_t turn = (cpu + sim.nr_of_cpu[cpu]) % PERIOD;
	struct op_mring_writer *ring;
	struct perf_event_header *record;
	uint32_t program = 0;
	int err;

	for (uint64_t before = share_of[0]; turn >= before; before += share_of[program])
		program++;
	made = (struct stack_record){ .id = EVENT_ID, .ip = CODE + 0x100, .who = (uint64_t)(FIRST_PID + program) * 0x100000001u,
				      .time_ns = op_now_ns(), .abi = PERF_SAMPLE_REGS_ABI_64, .nr_bytes = STACK_BYTES,
				      .nr_copied = STACK_BYTES };
	made.registers[6] = made.registers[7] = STACK; /* the frame pointer, the stack pointer */
	made.registers[8] = made.ip;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t frame[2] = { i < 2 ? STACK + 64 * (i + 1) : 0, CODE + 0x200 * (i + 1) };

		memcpy(made.bytes + 64 * i, frame, sizeof(frame));
	}
	ring = op_mring_pair_enter(&sim.writers[cpu]);
	err = op_mring_reserve(ring, sizeof(made), &record);
	if (!err) {
		memcpy(record + 1, &made.header + 1, sizeof(made) - sizeof(made.header));
		record->type = PERF_RECORD_SAMPLE;
		record->misc = PERF_RECORD_MISC_USER;
		op_mring_commit(ring);
	}
	op_mring_pair_leave(&sim.writers[cpu]);
	sim.nr_of_cpu[cpu]++;
	sim.nr_made[program]++;
	return !err;
}

/* All CPUs one after another, each at the rate of the plan. Returns the stacks that had no room. */
static uint64_t write_all(uint64_t seconds, uint32_t rate_hz)
{
	uint64_t begin_ns = op_now_ns(), nr_per_cpu = seconds * rate_hz / PERIOD * PERIOD, nr_lost = 0;

	for (uint64_t i = 0; i < nr_per_cpu; i++) {
		uint64_t due_ns = begin_ns + i * OP_NS_PER_S / rate_hz;
		struct timespec until = { .tv_sec = (time_t)(due_ns / OP_NS_PER_S), .tv_nsec = (long)(due_ns % OP_NS_PER_S) };

		while (clock_nanosleep(OP_CLOCK, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
		for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++)
			nr_lost += !write_stack(cpu);
	}
	return nr_lost;
}

/* ---- what came out ---- */

/* Stacks of a program in the file: the counts of all nodes below its own. */
static uint64_t stored_of(const struct op_stack_tree *tree, const char *name)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		uint32_t at = i;

		while (at && tree->nodes[at].kind != OP_STACK_APP)
			at = tree->nodes[at].parent;
		if (at && !strcmp(op_dcookie_row(sim.pipeline.resolver.table, tree->nodes[at].image)->id.name.name, name))
			sum += tree->nodes[i].count;
	}
	return sum;
}

static bool check_shares(void)
{
	struct op_stack_tree tree;
	bool good = true;

	end_on(op_stacks_read(sim.pipeline.count.session_fd, OPD_STACKS_PATH, &tree), "the file of stacks");
	for (uint32_t i = 0; i < NR_PROGRAMS; i++) {
		char name[16];
		uint64_t stored;

		snprintf(name, sizeof(name), "/program%u", i);
		stored = stored_of(&tree, name);
		printf("  %s ran %u of 10 parts of the time: %llu stacks of %llu\n", name, share_of[i], (unsigned long long)stored,
		       (unsigned long long)sim.nr_made[i]);
		good = good && stored == sim.nr_made[i];
	}
	op_stack_tree_free(&tree);
	return good;
}

bool sim_stacks(uint64_t seconds)
{
	static struct op_config config = { .visit_ms = TURN_MS };
	static struct op_status fixed;
	static struct opd_sync sync;
	const struct opd_plan *made = &sim.pipeline.capture.plan;
	const struct op_status *status;
	struct opd_job job = { 0 };
	uint64_t nr_lost, ring_bytes;
	bool good;

	plan();
	open_rings();
	open_pipeline();
	end_on(opd_sync_start(&sync, &sim.pipeline, &config, &fixed, false), "starting the sync thread");
	start_programs();
	nr_lost = write_all(op_max_u64(seconds, 2), made->stack_rate_hz);
	end_on(opd_status_make(&sync.recording, &config, &fixed, &job), "the status");
	end_on(sim_quit(&sync), "writing out");
	status = job.payload;
	ring_bytes = 2 * NR_CPUS * status->stack_ring_bytes;
	printf("\n%u CPUs with stacks, %llu s: rings of %llu kB, %.1f MiB on all CPUs\n", NR_CPUS, (unsigned long long)seconds,
	       (unsigned long long)status->stack_ring_bytes / 1024, (double)ring_bytes / (1 << 20));
	good = check_shares();
	good = bench_say_aim("rings for stacks have at most 64 MiB", (double)ring_bytes / (1 << 20), true,
			     ring_bytes <= OPD_STACK_RING_MAX_USE) && good;
	good = bench_say_aim("the status shows a rate below 99 Hz", status->stack_rate_hz, true,
			     status->stack_wanted_hz == 99 && status->stack_rate_hz && status->stack_rate_hz < 99) && good;
	good = bench_say_aim("stacks that found no room in the rings", (double)nr_lost, true, !nr_lost) && good;
	free(job.payload);
	return good;
}
