/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/timeline/host_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"

#define US_PER_S     1000000u
#define CPUS_MAX     65536u
#define UNKNOWN      UINT64_MAX
#define PROC_MAX     (1u << 20)

static void add_row(struct op_minute *minute, enum op_context_kind kind, uint32_t index, uint64_t value)
{
	if (minute)
		(void)!op_minute_add_context(minute, kind, index, value);
}

/* NULL: there is none. */
static char *read_proc(const char *path)
{
	char *text;

	return op_file_read(AT_FDCWD, path, PROC_MAX, &text) ? NULL : text;
}

/* ---- CPUs ---- */

/* The place of a CPU; NULL: no memory, or no such number. */
static uint64_t *cpu_place(struct opd_host_state *state, unsigned long cpu)
{
	if (cpu >= CPUS_MAX || !op_grow(&state->busy_us, &state->cpu_capacity, cpu + 1))
		return NULL;
	while (state->nr_cpus <= cpu)
		state->busy_us[state->nr_cpus++] = UNKNOWN;
	return &state->busy_us[cpu];
}

/* "cpuN user nice system idle iowait irq softirq steal ...", in ticks. Guests are in user. */
static void read_cpu(struct opd_host_state *state, const char *line, uint64_t us_per_tick, struct op_minute *minute, bool *is_there)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, NR };
	unsigned long long ticks[NR];
	unsigned long cpu;
	uint64_t *place, busy_us;

	if (sscanf(line, "cpu%lu %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &ticks[USER], &ticks[NICE], &ticks[SYSTEM],
		   &ticks[IDLE], &ticks[IOWAIT], &ticks[IRQ], &ticks[SOFTIRQ], &ticks[STEAL]) != NR + 1)
		return;
	place = cpu_place(state, cpu);
	if (!place)
		return;
	busy_us = (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ] + ticks[STEAL]) * us_per_tick;
	if (*place != UNKNOWN)
		add_row(minute, OP_CONTEXT_CPU_BUSY, (uint32_t)cpu, busy_us > *place ? busy_us - *place : 0);
	*place = busy_us;
	is_there[cpu] = true;
}

/* A CPU that comes back has other counters. */
static void read_cpus(struct opd_host_state *state, struct op_minute *minute)
{
	uint64_t us_per_tick = US_PER_S / (uint64_t)op_max_u64((uint64_t)sysconf(_SC_CLK_TCK), 1);
	bool *is_there = calloc(CPUS_MAX, sizeof(*is_there));
	char *text = read_proc("/proc/stat");

	for (const char *line = text; is_there && line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, "cpu", 3) && line[3] != ' ')
			read_cpu(state, line, us_per_tick, minute, is_there);
	for (size_t i = 0; is_there && i < state->nr_cpus; i++)
		if (!is_there[i])
			state->busy_us[i] = UNKNOWN;
	free(text);
	free(is_there);
}

/* ---- stalls, load, memory ---- */

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static void read_stall(struct opd_host_state *state, const char *text, const char *word, uint32_t index, struct op_minute *minute)
{
	const char *line = text ? strstr(text, word) : NULL, *total = line ? strstr(line, "total=") : NULL;
	unsigned long long us;

	if (!total || sscanf(total, "total=%llu", &us) != 1) {
		state->has_stalls[index] = false;
		return;
	}
	if (state->has_stalls[index])
		add_row(minute, OP_CONTEXT_PSI, index, us > state->stall_us[index] ? us - state->stall_us[index] : 0);
	state->stall_us[index] = us;
	state->has_stalls[index] = true;
}

static void read_stalls(struct opd_host_state *state, struct op_minute *minute)
{
	static const char *const paths[] = {
		"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io", "/proc/pressure/irq"
	};

	for (uint32_t i = 0; i < op_array_size(paths); i++) {
		char *text = read_proc(paths[i]);

		read_stall(state, text, "some ", 2 * i, minute);
		read_stall(state, text, "full ", 2 * i + 1, minute);
		free(text);
	}
}

static void read_load(struct op_minute *minute)
{
	static const uint32_t minutes[] = { 1, 5, 15 };
	char *text = read_proc("/proc/loadavg");
	unsigned long long whole, part;
	char *at = text;

	for (size_t i = 0; at && i < op_array_size(minutes) && sscanf(at, "%llu.%2llu", &whole, &part) == 2; i++) {
		add_row(minute, OP_CONTEXT_LOAD, minutes[i], whole * 100 + part);
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	free(text);
}

static void read_memory(struct op_minute *minute)
{
	static const char *const words[] = { "MemTotal:", "MemAvailable:" };
	char *text = read_proc("/proc/meminfo");

	for (uint32_t i = 0; text && i < op_array_size(words); i++) {
		const char *line = strstr(text, words[i]);
		unsigned long long kib;

		if (line && sscanf(line + strlen(words[i]), "%llu", &kib) == 1)
			add_row(minute, OP_CONTEXT_MEMORY, i, kib);
	}
	free(text);
}

void opd_host_state_read(struct opd_host_state *state, struct op_minute *minute)
{
	read_cpus(state, minute);
	read_stalls(state, minute);
	if (!minute)
		return;
	read_load(minute);
	read_memory(minute);
}

void opd_host_state_free(struct opd_host_state *state)
{
	free(state->busy_us);
	*state = (struct opd_host_state){ 0 };
}
