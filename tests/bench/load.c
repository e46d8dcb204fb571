/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libop/perf/record.h"

#define ZIPF_DRAWS           4096u
#define PROGRAM_START        0x555500000000u
#define LIBRARIES_START      0x7f0000000000u
#define LIBRARY_STRIDE_BYTES 0x200000u
#define SHIFT_PAGES          0x100000u /* how far address spaces are apart, at most */
#define PAGE_BYTES           4096u
#define COMMON_LIBRARIES     2u  /* every program has them, in front */
#define STAY_MAX             16u /* samples of a process in a row, of a function, of an address */
#define FUNCTION_MAX         8u
#define ADDRESS_MAX          4u
#define CHANGE_NS            (LOAD_STEP_NS - 1) /* before the sample that it goes with */
#define NAME_BYTES           40u
#define KERNEL_IMAGE         "/proc/kallsyms"

enum change { CHANGE_EXEC, CHANGE_LIBRARY, CHANGE_FORK, CHANGE_FORK_EXEC, NR_CHANGES };

struct process {
	uint32_t pid, cpu, program;
	uint64_t shift_bytes;
	uint32_t *images; /* of each mapping */
};

struct load_cpu {
	struct op_mring_writer *sideband;
	uint32_t first, nr_processes; /* processes first, first + nr_cpus, ... */
	uint32_t process_left, function_left, address_left;
	const struct process *process;
	uint32_t *counts; /* of the file that the function counts in */
	uint64_t function_ip;
	uint32_t function, address;
	bool in_kernel;
};

struct load {
	struct load_config config;
	uint64_t random;
	uint16_t zipf_process[ZIPF_DRAWS], zipf_mapping[ZIPF_DRAWS], zipf_function[ZIPF_DRAWS], zipf_address[ZIPF_DRAWS];
	uint32_t nr_images; /* programs, libraries, the kernel */
	char (*names)[NAME_BYTES];
	uint32_t **counts; /* program * nr_images + image; NULL: no samples */
	struct load_cpu *cpus;
	struct process *processes;
	uint64_t nr_samples, nr_sideband;
	uint64_t now_ns; /* of the side band */
	uint64_t (*clock)(void);
	bool spoilt;
};

/* ---- chance ---- */

static uint32_t draw(struct load *load, uint32_t below)
{
	load->random = load->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((load->random >> 32) * below >> 32);
}

/* draws[random] is n with a probability in proportion to 1 / (n + 1). */
static void make_zipf(uint16_t draws[ZIPF_DRAWS], uint32_t nr)
{
	double sum = 0, reached = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < nr; i++) {
		reached += 1.0 / (i + 1) / sum;
		while (at < ZIPF_DRAWS && (at < reached * ZIPF_DRAWS || i + 1 == nr))
			draws[at++] = (uint16_t)i;
	}
}

static uint32_t draw_zipf(struct load *load, const uint16_t draws[ZIPF_DRAWS])
{
	return draws[draw(load, ZIPF_DRAWS)];
}

/* ---- images and address spaces ---- */

static uint32_t kernel_image(const struct load *load)
{
	return load->nr_images - 1;
}

static uint64_t file_offset(uint32_t image)
{
	return PAGE_BYTES * (uint64_t)(1 + image % 9);
}

static uint64_t mapping_start(const struct process *process, uint32_t mapping)
{
	if (!mapping)
		return PROGRAM_START + process->shift_bytes;
	return LIBRARIES_START + 3 * process->shift_bytes + (uint64_t)mapping * LIBRARY_STRIDE_BYTES;
}

/* What a program maps: its executable, the common libraries, and its part of the pool. */
static void choose_program(struct load *load, struct process *process, uint32_t program)
{
	uint32_t first_library = load->config.nr_programs;

	process->program = program;
	process->shift_bytes = (uint64_t)draw(load, SHIFT_PAGES) * PAGE_BYTES;
	process->images[0] = program;
	for (uint32_t i = 1; i < load->config.nr_mappings; i++)
		process->images[i] =
			first_library + (i <= COMMON_LIBRARIES ? i - 1 : (i + program * 13) % load->config.nr_libraries);
}

/* ---- side band ---- */

/* No two records have the same time: what follows from another one is later. */
static uint64_t next_time(struct load *load)
{
	uint64_t before_ns = load->now_ns;

	if (!load->clock)
		return load->now_ns++;
	do {
		load->now_ns = load->clock();
	} while (load->now_ns <= before_ns);
	return load->now_ns;
}

static void take_time(struct load *load, uint64_t words[3], uint32_t pid)
{
	words[0] = (uint64_t)pid << 32 | pid;
	words[1] = next_time(load);
	words[2] = LOAD_EVENT_ID;
}

/* A record on the CPU's side band: words of its own, and who and when. */
static void say(struct load *load, uint32_t cpu, uint32_t type, uint16_t misc, uint32_t pid, const void *body, size_t nr_bytes)
{
	struct perf_event_header *record;
	uint64_t who[3];

	take_time(load, who, pid);
	if (op_mring_reserve(load->cpus[cpu].sideband, sizeof(*record) + nr_bytes + sizeof(who), &record) < 0) {
		load->spoilt = true;
		return;
	}
	record->type = type;
	record->misc = misc;
	memcpy(record + 1, body, nr_bytes);
	memcpy((uint8_t *)(record + 1) + nr_bytes, who, sizeof(who));
	op_mring_commit(load->cpus[cpu].sideband);
	load->nr_sideband++;
}

static void say_task(struct load *load, uint32_t cpu, uint32_t type, uint32_t pid, uint32_t parent)
{
	struct {
		uint32_t pid, parent, tid, parent_tid;
		uint64_t time_ns;
	} body = { pid, parent, pid, parent, load->now_ns };

	say(load, cpu, type, 0, pid, &body, sizeof(body));
}

static void say_mapping(struct load *load, const struct process *process, uint32_t mapping)
{
	uint32_t image = process->images[mapping];
	struct {
		uint32_t pid, tid;
		uint64_t start, bytes, offset;
		uint8_t build_id[24]; /* length, three of padding, the bytes */
		uint32_t prot, flags;
		char name[NAME_BYTES];
	} body = {
		.pid = process->pid,
		.tid = process->pid,
		.start = mapping_start(process, mapping),
		.bytes = LOAD_FUNCTIONS * LOAD_FUNCTION_BYTES,
		.offset = file_offset(image),
		.build_id = { OP_BUILD_ID_BYTES_MAX },
		.prot = 5,
		.flags = 2,
	};

	memcpy(body.build_id + 4, &image, sizeof(image));
	memcpy(body.name, load->names[image], NAME_BYTES);
	say(load, process->cpu, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, process->pid, &body,
	    sizeof(body));
}

static void say_exec(struct load *load, const struct process *process)
{
	uint64_t body[3] = { (uint64_t)process->pid << 32 | process->pid };

	snprintf((char *)(body + 1), 2 * sizeof(body[1]), "program%u", process->program % 100000);
	say(load, process->cpu, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, process->pid, body, sizeof(body));
	for (uint32_t i = 0; i < load->config.nr_mappings; i++)
		say_mapping(load, process, i);
}

static void change_library(struct load *load, const struct process *process)
{
	uint32_t mapping = COMMON_LIBRARIES + draw(load, load->config.nr_mappings - COMMON_LIBRARIES);

	process->images[mapping] = load->config.nr_programs + draw(load, load->config.nr_libraries);
	say_mapping(load, process, mapping);
}

/* The first process is everybody's parent and stays as it is. */
static void fork_anew(struct load *load, struct process *process)
{
	const struct process *parent = &load->processes[0];

	say_task(load, process->cpu, PERF_RECORD_EXIT, process->pid, process->pid);
	say_task(load, parent->cpu, PERF_RECORD_FORK, process->pid, parent->pid);
	process->program = parent->program;
	process->shift_bytes = parent->shift_bytes;
	memcpy(process->images, parent->images, load->config.nr_mappings * sizeof(*process->images));
}

static void change_process(struct load *load)
{
	struct process *process = &load->processes[1 + draw(load, load->config.nr_processes - 1)];
	enum change change = (enum change)draw(load, NR_CHANGES);

	load->cpus[process->cpu].process_left = 0;
	if (change == CHANGE_LIBRARY)
		change_library(load, process);
	if (change == CHANGE_FORK || change == CHANGE_FORK_EXEC)
		fork_anew(load, process);
	if (change == CHANGE_EXEC || change == CHANGE_FORK_EXEC) {
		choose_program(load, process, draw(load, load->config.nr_programs));
		say_exec(load, process);
	}
}

int load_begin(struct load *load, uint64_t time_ns)
{
	load->now_ns = time_ns;
	for (uint32_t i = 0; i < load->config.nr_processes; i++) {
		if (i)
			say_task(load, load->processes[0].cpu, PERF_RECORD_FORK, load->processes[i].pid, load->processes[0].pid);
		say_exec(load, &load->processes[i]);
	}
	return load->spoilt ? -ENOBUFS : 0;
}

/* ---- samples ---- */

/* The counts of a file, made with its first sample. NULL without memory. */
static uint32_t *counts_of(struct load *load, uint32_t program, uint32_t image)
{
	uint32_t **counts = &load->counts[(size_t)program * load->nr_images + image];

	if (!*counts)
		*counts = calloc(LOAD_PLACES, sizeof(**counts));
	return *counts;
}

static void enter_process(struct load *load, struct load_cpu *cpu)
{
	uint32_t nth = draw_zipf(load, load->zipf_process) % cpu->nr_processes;

	cpu->process = &load->processes[cpu->first + nth * load->config.nr_cpus];
	cpu->process_left = 1 + draw(load, STAY_MAX);
	cpu->function_left = 0;
}

static void enter_function(struct load *load, struct load_cpu *cpu)
{
	const struct process *process = cpu->process;
	uint32_t mapping = draw_zipf(load, load->zipf_mapping), image = process->images[mapping];
	uint64_t start = mapping_start(process, mapping);

	cpu->in_kernel = draw(load, 100) < load->config.kernel_percent;
	if (cpu->in_kernel) {
		image = kernel_image(load);
		start = LOAD_KERNEL_START;
	}
	/* Which functions are the hot ones is different in each image. */
	cpu->function = (draw_zipf(load, load->zipf_function) * 37 + image * 11) % LOAD_FUNCTIONS;
	cpu->function_ip = start + cpu->function * LOAD_FUNCTION_BYTES;
	cpu->counts = counts_of(load, process->program, image);
	cpu->function_left = 1 + draw(load, FUNCTION_MAX);
	cpu->address_left = 0;
}

static void step(struct load *load, struct load_cpu *cpu)
{
	if (!cpu->process_left)
		enter_process(load, cpu);
	cpu->process_left--;
	if (!cpu->function_left)
		enter_function(load, cpu);
	cpu->function_left--;
	if (!cpu->address_left) {
		cpu->address = draw_zipf(load, load->zipf_address);
		cpu->address_left = 1 + draw(load, ADDRESS_MAX);
	}
	cpu->address_left--;
}

int load_sample(struct load *load, uint32_t cpu_index, struct op_mring_writer *ring, uint64_t time_ns)
{
	struct load_cpu *cpu = &load->cpus[cpu_index];
	struct perf_event_header *record;
	uint64_t words[4] = { LOAD_EVENT_ID };
	int err;

	if (load->config.change_every && load->nr_samples % load->config.change_every == load->config.change_every - 1) {
		load->now_ns = load->clock ? load->now_ns : time_ns - CHANGE_NS;
		change_process(load);
	}
	step(load, cpu);
	if (load->spoilt || !cpu->counts)
		return -ENOBUFS;
	words[1] = cpu->function_ip + cpu->address * LOAD_STEP_BYTES;
	words[2] = (uint64_t)cpu->process->pid << 32 | cpu->process->pid;
	words[3] = load->clock ? next_time(load) : time_ns;
	err = op_mring_reserve(ring, sizeof(*record) + sizeof(words), &record);
	if (err < 0)
		return err;
	record->type = PERF_RECORD_SAMPLE;
	record->misc = cpu->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	memcpy(record + 1, words, sizeof(words));
	op_mring_commit(ring);
	cpu->counts[cpu->function * LOAD_ADDRESSES + cpu->address]++;
	load->nr_samples++;
	return 0;
}

/* ---- all of it ---- */

static void make_names(struct load *load)
{
	for (uint32_t i = 0; i < load->nr_images; i++) {
		if (i < load->config.nr_programs)
			snprintf(load->names[i], NAME_BYTES, "/opt/load/bin/program%u", i);
		else
			snprintf(load->names[i], NAME_BYTES, "/opt/load/lib/library%u.so", i - load->config.nr_programs);
	}
	snprintf(load->names[kernel_image(load)], NAME_BYTES, KERNEL_IMAGE);
}

static int make_processes(struct load *load)
{
	const struct load_config *config = &load->config;

	for (uint32_t i = 0; i < config->nr_processes; i++) {
		struct process *process = &load->processes[i];

		process->pid = LOAD_FIRST_PID + i;
		process->cpu = i % config->nr_cpus;
		process->images = calloc(config->nr_mappings, sizeof(*process->images));
		if (!process->images)
			return -ENOMEM;
		choose_program(load, process, i % config->nr_programs);
		load->cpus[process->cpu].first = process->cpu;
		load->cpus[process->cpu].nr_processes++;
	}
	return 0;
}

int load_new(const struct load_config *config, struct load **ret_load)
{
	struct load *load = calloc(1, sizeof(*load));

	if (!load)
		return -ENOMEM;
	load->config = *config;
	load->random = config->seed;
	load->nr_images = config->nr_programs + config->nr_libraries + 1;
	load->names = calloc(load->nr_images, sizeof(*load->names));
	load->counts = calloc((size_t)config->nr_programs * load->nr_images, sizeof(*load->counts));
	load->cpus = calloc(config->nr_cpus, sizeof(*load->cpus));
	load->processes = calloc(config->nr_processes, sizeof(*load->processes));
	if (!load->names || !load->counts || !load->cpus || !load->processes || make_processes(load) < 0) {
		load_free(load);
		return -ENOMEM;
	}
	make_names(load);
	make_zipf(load->zipf_process, (config->nr_processes + config->nr_cpus - 1) / config->nr_cpus);
	make_zipf(load->zipf_mapping, config->nr_mappings);
	make_zipf(load->zipf_function, LOAD_FUNCTIONS);
	make_zipf(load->zipf_address, LOAD_ADDRESSES);
	*ret_load = load;
	return 0;
}

void load_free(struct load *load)
{
	if (!load)
		return;
	for (uint32_t i = 0; load->processes && i < load->config.nr_processes; i++)
		free(load->processes[i].images);
	for (size_t i = 0; load->counts && i < (size_t)load->config.nr_programs * load->nr_images; i++)
		free(load->counts[i]);
	free(load->names);
	free(load->counts);
	free(load->cpus);
	free(load->processes);
	free(load);
}

void load_set_sideband(struct load *load, uint32_t cpu, struct op_mring_writer *sideband)
{
	load->cpus[cpu].sideband = sideband;
}

void load_set_clock(struct load *load, uint64_t (*clock)(void))
{
	load->clock = clock;
}

uint64_t load_samples(const struct load *load)
{
	return load->nr_samples;
}

uint64_t load_sideband_records(const struct load *load)
{
	return load->nr_sideband;
}

void load_event(struct op_event *ret_event)
{
	*ret_event = (struct op_event){
		.name = "TIMER",
		.count = 1000000,
		.kernel = true,
		.user = true,
		.is_timer = true,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
}

static bool has_samples(const uint32_t *counts)
{
	for (uint32_t i = 0; counts && i < LOAD_PLACES; i++)
		if (counts[i])
			return true;
	return false;
}

int load_visit(const struct load *load, int (*visit)(const struct load_file *file, void *arg), void *arg)
{
	int err = 0;

	for (size_t i = 0; !err && i < (size_t)load->config.nr_programs * load->nr_images; i++) {
		uint32_t image = (uint32_t)(i % load->nr_images);
		struct load_file file = {
			.program = load->names[i / load->nr_images],
			.image = load->names[image],
			.counts = load->counts[i],
			.first_key = image == kernel_image(load) ? 0 : file_offset(image),
		};

		if (has_samples(file.counts))
			err = visit(&file, arg);
	}
	return err;
}
