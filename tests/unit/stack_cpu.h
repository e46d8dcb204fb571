/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A CPU whose ring has samples with stacks of one made-up program: START called INNER, which called
 * a leaf. Its row table is made up, too. `code` says whether the table is there.
 */
#ifndef STACK_CPU_H
#define STACK_CPU_H

#include <elf.h>

#include "libop/base/text.h"
#include "libop/stacks/read.h"
#include "pipeline/drive/stack_records.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/pipeline_cpu.h"
#include "tests/unit/sideband_records.h"

#define PID      4000000u /* above any pid_max, so /proc does not have it */
#define EVENT_ID 17
#define APP      0x400000u
#define LIB      0x7f0000000000u
#define KERNEL   0xffffffff81000000u
#define RSP      7
#define STACK    0x7ffd00000000u

/* Code of the application: a leaf, a function that pushes a word, and the start of the program. */
#define LEAF  (APP + 0x40)
#define INNER (APP + 0x140)
#define START (APP + 0x240)

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct opd_event event;
static struct op_event kind;
static char dir[BOX_PATH_BYTES];

/* ---- tables ---- */

static const struct op_row_rule rules[] = {
	{ 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, -8, 0, 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 16, 0, -8, 0, 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_UNDEFINED, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, 0, 0, 0 },
};
static const uint32_t starts[] = { 0x1000, 0x1100, 0x1200 };
static const uint16_t rules_of[] = { 1, 2, 3 };
static const struct op_row_function functions[] = { { 0x1020, 0x60, OP_ROW_NO_NAME } };
static const struct op_row_table table = {
	.starts = starts, .rules_of = rules_of, .rules = rules, .functions = functions, .nr_rows = 3, .nr_functions = 1,
	.slices = { [OP_ROW_SLICES] = 3 }, /* all rows are in the last one */
};
static char no_tables[1]; /* stands for the tables, and is not looked at */
static enum opd_walk_code code;
static struct opd_table_source asked;
static uint64_t passed_ns;
static uint64_t sampled_ns; /* the time stamp of the next samples */

enum opd_walk_code __wrap_opd_tables_find(struct opd_tables *tables, uint64_t cookie, const struct opd_table_source *source,
					  const struct op_row_table **ret_table);
bool __wrap_opd_tables_turn(struct opd_tables *tables);
bool __wrap_opd_tables_is_busy(const struct opd_tables *tables);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

enum opd_walk_code __wrap_opd_tables_find(struct opd_tables *tables OP_UNUSED, uint64_t cookie OP_UNUSED,
					  const struct opd_table_source *source, const struct op_row_table **ret_table)
{
	if (source->pid)
		asked = *source;
	if (code == OPD_CODE_TABLE)
		*ret_table = &table;
	return code;
}

bool __wrap_opd_tables_turn(struct opd_tables *tables OP_UNUSED)
{
	return code != OPD_CODE_PENDING;
}

bool __wrap_opd_tables_is_busy(const struct opd_tables *tables OP_UNUSED)
{
	return false;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = __real_clock_gettime(clock, time);

	time->tv_sec += (time_t)(passed_ns / OP_NS_PER_S);
	return err;
}

/* ---- samples ---- */

static inline int stacks_setup(void **state OP_UNUSED)
{
	kind = (struct op_event){ .name = "STACKS", .count = 10101010, .role = OP_EVENT_STACKS, .stack_bytes = 64, .rate_hz = 99 };
	event = (struct opd_event){ .id = EVENT_ID };
	code = OPD_CODE_TABLE;
	passed_ns = 0;
	sampled_ns = 20;
	asked = (struct opd_table_source){ 0 };
	if (pipeline_cpu_begin(&pipeline, &cpu, &event, &kind, dir))
		return -1;
	pipeline.capture.max_stack = 127;
	pipeline.count.nr_events = 1;
	pipeline_kernel_text(&pipeline, KERNEL);
	pipeline.resolver.processes.keeps_names = true;
	if (opd_stacks_new((struct opd_tables *)no_tables, &pipeline.stacks) < 0)
		return -1;
	pipeline.stacks->machine = EM_X86_64;
	pipeline.stacks->registers = op_stack_registers(EM_X86_64);
	sideband_exec(&cpu.sideband, PID, 10);
	sideband_mmap(&cpu.sideband, PID, APP, 0x2000, 0x1000, "/no/app", 11);
	return 0;
}

static inline int stacks_teardown(void **state OP_UNUSED)
{
	opd_stacks_free(pipeline.stacks);
	return pipeline_cpu_end(&pipeline, &cpu, dir);
}

static inline void drain(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

struct made {
	uint64_t words[60];
	size_t nr;
};

static inline void put(struct made *made, uint64_t word)
{
	assert_true(made->nr < op_array_size(made->words));
	made->words[made->nr++] = word;
}

static inline void put_sample(struct made *made, uint64_t ip)
{
	made->nr = 0;
	put(made, EVENT_ID);
	put(made, ip);
	put(made, PAIR(PID, PID));
	put(made, sampled_ns);
}

/* Registers, and the stack of a leaf that INNER called and START called before that. */
static inline void put_registers(struct made *made, uint64_t pc)
{
	uint64_t mask = op_stack_registers(EM_X86_64);

	put(made, PERF_SAMPLE_REGS_ABI_64);
	for (; mask; mask &= mask - 1) {
		int i = __builtin_ctzll(mask);

		put(made, i == 8 ? pc : i == 7 ? STACK : 0);
	}
}

static inline void put_stack(struct made *made, uint64_t pc)
{
	put_registers(made, pc);
	put(made, 64);
	put(made, INNER);
	put(made, 0);
	put(made, START);
	for (int i = 0; i < 5; i++)
		put(made, 0);
	put(made, 24);
}

static inline void send(const struct made *made, uint16_t misc)
{
	struct op_ring *ring = &opd_cpu_pair_of(&cpu, &kind)->rings[0];

	assert_true(memory_ring_record(ring, PERF_RECORD_SAMPLE, misc, made->words, made->nr));
}

static inline void send_leaf(void)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 0); /* no kernel frames */
	put_stack(&made, LEAF);
	send(&made, PERF_RECORD_MISC_USER);
}

static inline void expect_booked(uint64_t received, uint64_t stored, enum op_stack_end end, uint64_t nr)
{
	assert_int_equal(event.received, received);
	assert_int_equal(event.stored, stored);
	assert_int_equal(event.ends[end], nr);
}

/* The one stack of the store as text: the values of its frames, root first, and its end. */
static inline void expect_stack(const char *expected, uint64_t count)
{
	struct op_stack_tree tree;
	struct op_text text = { 0 };
	uint32_t path[64], nr = 0, leaf = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		if (tree.nodes[i].count) {
			assert_int_equal(leaf, 0);
			leaf = i;
		}
	assert_int_not_equal(leaf, 0);
	assert_int_equal(tree.nodes[leaf].count, count);
	for (uint32_t i = leaf; i; i = tree.nodes[i].parent)
		path[nr++] = i;
	while (nr--) {
		const struct op_stack_node *node = &tree.nodes[path[nr]];

		if (node->kind != OP_STACK_FRAME && node->kind != OP_STACK_KERNEL_FRAME && node->kind != OP_STACK_END)
			continue;
		op_text_printf(&text, "%s%s%llx", text.length ? " " : "",
			       node->kind == OP_STACK_FRAME ? "" : node->kind == OP_STACK_END ? "end:" : "k:",
			       (unsigned long long)node->value);
	}
	op_stack_tree_free(&tree);
	assert_string_equal(text.data, expected);
	op_text_free(&text);
}

/* ---- another event, without stacks ---- */

#define FLAT_ID 18

static inline void send_flat(int nr)
{
	const uint64_t words[] = { FLAT_ID, LEAF, PAIR(PID, PID), sampled_ns };

	for (int i = 0; i < nr; i++)
		assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 4));
}

/* The calls of its samples come from the stacks. */
static inline void add_flat_event(struct opd_event both[2])
{
	static struct op_event kinds[] = { { .name = "TIMER", .count = 1000000, .type = PERF_TYPE_SOFTWARE, .user = true }, {} };

	both[0] = (struct opd_event){ .id = FLAT_ID };
	both[1] = (struct opd_event){ .id = EVENT_ID };
	kinds[1] = kind;
	kinds[1].user = true;
	op_event_take_calls_of_stacks(kinds, 2);
	pipeline.capture.events = pipeline.count.events = kinds;
	pipeline.capture.nr_events = pipeline.capture.nr_opened = pipeline.count.nr_events = 2;
	pipeline.capture.callgraph = 8;
	cpu.events = both;
}

#endif
