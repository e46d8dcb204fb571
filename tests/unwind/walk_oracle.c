// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * walk_oracle [--show=N] [--time] OPD-TABLES PERF.DATA...: walks the stacks of recordings of `perf
 * record --call-graph dwarf` with opd's walk and with libdwfl, from the same registers and copy,
 * and compares all frames. Prints where walks differ and where they end, and for each file one
 * line: samples, those that are the same, complete ones of both, and the CPU time of both. --show
 * prints the first N samples of each; --time walks each 64 samples again and again, for the time of
 * a warm walk.
 *
 * A frame is an address in code. libdwfl also gives an address that is in no mapping of code, as
 * the last; opd ends with left_code there. That is not a difference.
 */
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/stacks/vdso.h"
#include "pipeline/stacks/walk.h"
#include "tests/bench/bench.h"
#include "tests/die.h"
#include "tests/unwind/recording.h"

#define PAGE_BYTES   4096u
#define SEGMENTS_MAX 16u
#define ROWS_MAX     200u
#define TEXT_BYTES   96u
#define NAME_BYTES   64u /* of /proc/self/fd/N */
#define X86_PC       16  /* the DWARF number of rip */
#define REPEATS      10u
#define BATCH        64u

struct image {
	struct image *next;
	char *name;
	char path[NAME_BYTES]; /* of its file */
	int fd;                /* -1: no file, so no table */
	GElf_Phdr segments[SEGMENTS_MAX];
	size_t nr_segments;
	bool is_fixed; /* ET_EXEC */
	bool is_tried, has_table;
	struct op_row_table table;
};

/* Samples that differ, or are not complete, in the same way at the same place. */
struct row {
	const struct image *image; /* of the last frame in common */
	char text[TEXT_BYTES];
	uint64_t nr;
};

/* Of one recording. */
struct sums {
	struct row rows[ROWS_MAX];
	uint64_t nr, nr_same, nr_complete, nr_their_complete, nr_less, nr_frames;
	uint64_t first_ns, their_ns, warm_ns, nr_warm, nr_warm_frames;
};

/* Samples of one process, to be walked again. */
struct batch {
	struct recorded_process *process;
	uint64_t generation;
	struct op_stack_record samples[BATCH];
	uint8_t stacks[BATCH][UINT16_MAX];
	size_t nr;
};

struct oracle {
	const char *tables; /* the program */
	struct image *images;
	uint32_t nr_shown;
	bool with_time;
	/* the sample */
	struct recorded_process *process;
	const struct op_stack_record *sample;
	struct opd_walk_frame frames[OPD_WALK_FRAMES_MAX];
	size_t nr_frames;
	enum opd_walk_end end;
	uint64_t theirs[OPD_WALK_FRAMES_MAX];
	size_t nr_theirs;
	struct sums sums;
	struct batch batch;
};

/* The Dwfl of a process and the maps for which it was made. */
struct state {
	Dwfl *dwfl;
	uint64_t generation;
};

static const char *const end_names[] = {
#define X(name) #name,
	OPD_WALK_ENDS(X)
#undef X
};

/* ---- images ---- */

static void read_segments(struct image *image)
{
	Elf *elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	GElf_Phdr header;
	GElf_Ehdr file;
	size_t nr = 0;

	if (elf && elf_kind(elf) == ELF_K_ELF && !elf_getphdrnum(elf, &nr))
		for (size_t i = 0; i < nr && image->nr_segments < SEGMENTS_MAX; i++)
			if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD && header.p_flags & PF_X)
				image->segments[image->nr_segments++] = header;
	image->is_fixed = elf && gelf_getehdr(elf, &file) && file.e_type == ET_EXEC;
	elf_end(elf);
	if (!image->nr_segments) {
		close(image->fd);
		image->fd = -1;
	}
}

static void *open_image(void *arg, const char *name)
{
	struct oracle *oracle = arg;
	struct image *image = oracle->images;

	while (image && strcmp(image->name, name) != 0)
		image = image->next;
	if (image)
		return image;
	image = calloc(1, sizeof(*image));
	if (!image || !(image->name = strdup(name)))
		die(name, -ENOMEM);
	image->next = oracle->images;
	oracle->images = image;
	image->fd = !strcmp(name, "[vdso]") ? opd_vdso_copy() : *name == '/' ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	if (image->fd >= 0)
		read_segments(image);
	snprintf(image->path, sizeof(image->path), "/proc/self/fd/%d", image->fd);
	return image;
}

static void make_table(const struct oracle *oracle, struct image *image)
{
	int fd = memfd_create("table", MFD_CLOEXEC), status = -1;
	const void *bytes;
	struct stat st;
	pid_t pid;

	image->is_tried = true;
	if (image->fd < 0)
		return;
	pid = fork();
	if (!pid) {
		dup2(image->fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		execl(oracle->tables, oracle->tables, (char *)NULL);
		_exit(127);
	}
	if (fd < 0 || pid < 0 || waitpid(pid, &status, 0) < 0 || WEXITSTATUS(status) == 127 || fstat(fd, &st) < 0)
		die_since(oracle->tables, "cannot be run");
	if (status)
		return;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || op_row_table_open(&image->table, bytes, (size_t)st.st_size) < 0)
		die_since(image->name, "its table is damaged");
	image->has_table = true;
	close(fd);
}

/* ---- opd's walk ---- */

static enum opd_walk_code find(void *arg, uint64_t address, struct opd_walk_frame *frame, const struct op_row_table **ret_table)
{
	struct oracle *oracle = arg;
	const struct recorded_map *map = recorded_map_at(oracle->process, address);
	struct image *image = map ? map->image : NULL;

	if (!map)
		return OPD_CODE_NONE;
	frame->position = address - map->start + map->offset;
	if (op_unlikely(!image->is_tried))
		make_table(oracle, image);
	if (!image->has_table)
		return OPD_CODE_NO_TABLE;
	*ret_table = &image->table;
	return OPD_CODE_TABLE;
}

static void walk(struct oracle *oracle)
{
	const struct op_stack_record *sample = oracle->sample;
	struct opd_walk_start start = {
		.machine = EM_X86_64,
		.pc = sample->pc,
		.known = sample->known,
		.stack = sample->stack,
		.nr_stack_bytes = sample->nr_stack_bytes,
	};

	memcpy(start.registers, sample->registers, sizeof(start.registers));
	oracle->nr_frames = opd_walk(&start, find, oracle, oracle->frames, &oracle->end);
}

/* Walks the samples in turn: the tables are warm, and no walk is like the one before. */
static void time_batch(struct oracle *oracle)
{
	struct batch *batch = &oracle->batch;
	struct recorded_process *process = oracle->process;
	const struct op_stack_record *sample = oracle->sample;
	uint64_t begin_ns = 0;

	oracle->process = batch->process;
	for (uint32_t i = 0; i <= REPEATS; i++) {
		if (i == 1) /* the first round warms */
			begin_ns = bench_cpu_ns();
		for (size_t j = 0; j < batch->nr; j++) {
			oracle->sample = &batch->samples[j];
			walk(oracle);
			oracle->sums.nr_warm_frames += i ? oracle->nr_frames : 0;
		}
	}
	oracle->sums.warm_ns += bench_cpu_ns() - begin_ns;
	oracle->sums.nr_warm += REPEATS * batch->nr;
	batch->nr = 0;
	oracle->process = process;
	oracle->sample = sample;
}

static void keep_for_timing(struct oracle *oracle)
{
	struct batch *batch = &oracle->batch;

	if (batch->nr &&
	    (batch->nr == BATCH || batch->process != oracle->process || batch->generation != oracle->process->generation))
		time_batch(oracle);
	batch->process = oracle->process;
	batch->generation = oracle->process->generation;
	batch->samples[batch->nr] = *oracle->sample;
	batch->samples[batch->nr].stack = batch->stacks[batch->nr];
	memcpy(batch->stacks[batch->nr++], oracle->sample->stack, oracle->sample->nr_stack_bytes);
}

/* ---- libdwfl's walk ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct oracle *oracle = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return (pid_t)oracle->process->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	const struct oracle *oracle = arg;
	const struct op_stack_record *sample = oracle->sample;
	uint64_t offset = address - sample->registers[7];

	(void)dwfl;
	if (offset >= sample->nr_stack_bytes || sample->nr_stack_bytes - offset < sizeof(*word))
		return false;
	memcpy(word, sample->stack + offset, sizeof(*word));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct oracle *oracle = arg;
	Dwarf_Word words[X86_PC + 1];

	for (size_t i = 0; i < X86_PC; i++)
		words[i] = oracle->sample->registers[i];
	words[X86_PC] = oracle->sample->pc;
	return dwfl_thread_state_registers(thread, 0, X86_PC + 1, words);
}

static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file, const char *link,
			GElf_Word crc, char **ret_name)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)ret_name;
	return -1;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct oracle *oracle = arg;

	if (oracle->nr_theirs == OPD_WALK_FRAMES_MAX)
		return DWARF_CB_ABORT;
	return dwfl_frame_pc(frame, &oracle->theirs[oracle->nr_theirs++], NULL) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* What is added to the addresses of a file. False: this is not a mapping of its code. */
static bool find_bias(const struct recorded_map *map, uint64_t *ret_bias)
{
	const struct image *image = map->image;

	for (size_t i = 0; i < image->nr_segments; i++) {
		const GElf_Phdr *segment = &image->segments[i];

		if (map->offset >= segment->p_offset - segment->p_offset % PAGE_BYTES &&
		    map->offset < segment->p_offset + segment->p_filesz) {
			*ret_bias = map->start - (segment->p_vaddr + map->offset - segment->p_offset);
			return true;
		}
	}
	return false;
}

/*
 * libdwfl drops a module that is reported twice in different ways. It has no place for a part of a
 * program that was mapped again elsewhere, as V8 does with its builtins.
 */
static void report_module(Dwfl *dwfl, const struct recorded_process *process, const struct recorded_map *map)
{
	const struct image *image = map->image;
	uint64_t bias, other;

	if (!find_bias(map, &bias) || (image->is_fixed && bias))
		return;
	for (const struct recorded_map *before = process->maps; before < map; before++)
		if (before->image == image && find_bias(before, &other) && other == bias)
			return;
	dwfl_report_elf(dwfl, image->name, image->path, -1, bias, true);
}

static Dwfl *make_dwfl(struct oracle *oracle)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf, .find_debuginfo = no_debuginfo };
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	struct recorded_process *process = oracle->process;
	Dwfl *dwfl = dwfl_begin(&callbacks);

	dwfl_report_begin(dwfl);
	for (size_t i = 0; i < process->nr_maps; i++)
		report_module(dwfl, process, &process->maps[i]);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!dwfl_attach_state(dwfl, NULL, (pid_t)process->pid, &threads, oracle)) {
		dwfl_end(dwfl);
		return NULL;
	}
	return dwfl;
}

static void drop_dwfl(struct recorded_process *process)
{
	struct state *state = process->state;

	if (state)
		dwfl_end(state->dwfl);
	free(state);
	process->state = NULL;
}

static void forget(void *arg, struct recorded_process *process)
{
	struct oracle *oracle = arg;

	if (oracle->batch.nr && oracle->batch.process == process)
		time_batch(oracle);
	drop_dwfl(process);
}

/* False: libdwfl knows no module of the process. */
static bool walk_theirs(struct oracle *oracle)
{
	struct recorded_process *process = oracle->process;
	struct state *state = process->state;

	if (state && state->generation != process->generation)
		drop_dwfl(process);
	if (!process->state) {
		state = calloc(1, sizeof(*state));
		if (!state)
			die("memory", -ENOMEM);
		*state = (struct state){ .dwfl = make_dwfl(oracle), .generation = process->generation };
		process->state = state;
	}
	if (!state->dwfl)
		return false;
	oracle->nr_theirs = 0;
	dwfl_getthread_frames(state->dwfl, (pid_t)process->pid, take_frame, oracle);
	while (oracle->nr_theirs > 1 && !recorded_map_at(process, oracle->theirs[oracle->nr_theirs - 1] - 1))
		oracle->nr_theirs--;
	return true;
}

/* ---- comparison ---- */

/* libdwfl also returns 0 where the copy ends. So the rule of its last frame decides. */
static bool is_start(struct oracle *oracle, uint64_t address)
{
	const struct op_row_table *table = NULL;
	struct opd_walk_frame frame;
	const struct op_row_rule *rule;

	if (find(oracle, address - 1, &frame, &table) != OPD_CODE_TABLE)
		return false;
	rule = op_row_table_find(table, frame.position);
	return rule && rule->ra_how == OP_VALUE_UNDEFINED;
}

static const char *name_at(const struct oracle *oracle, uint64_t address)
{
	const struct recorded_map *map = recorded_map_at(oracle->process, address);

	return map ? ((const struct image *)map->image)->name : "no code";
}

static void show(const struct oracle *oracle, size_t nr_common)
{
	size_t nr = oracle->nr_frames > oracle->nr_theirs ? oracle->nr_frames : oracle->nr_theirs;

	printf("  process %u, sp %#" PRIx64 ", bp %#" PRIx64 ", %zu bytes, %s\n", oracle->process->pid,
	       oracle->sample->registers[7], oracle->sample->registers[6], oracle->sample->nr_stack_bytes, end_names[oracle->end]);
	for (size_t i = nr_common > 3 ? nr_common - 3 : 0; i < nr && i < nr_common + 5; i++) {
		uint64_t mine = i < oracle->nr_frames ? oracle->frames[i].pc : 0,
			 their = i < oracle->nr_theirs ? oracle->theirs[i] : 0;
		const struct recorded_map *map = recorded_map_at(oracle->process, mine ? mine : their);

		printf("    %3zu opd %#14" PRIx64 " libdwfl %#14" PRIx64 "  %s+%#" PRIx64 "\n", i, mine, their,
		       name_at(oracle, mine ? mine : their), map ? (mine ? mine : their) - map->start + map->offset : 0);
	}
}

static void note(struct oracle *oracle, size_t nr_common, const char *text)
{
	size_t last = nr_common ? nr_common - 1 : 0;
	const struct recorded_map *map = recorded_map_at(oracle->process, oracle->frames[last].pc - (last ? 1 : 0));
	const struct image *image = map ? map->image : NULL;
	struct row *row = oracle->sums.rows;

	while (row->nr && (row->image != image || strcmp(row->text, text) != 0) && row < &oracle->sums.rows[ROWS_MAX - 1])
		row++;
	if (!row->nr) {
		row->image = image;
		snprintf(row->text, sizeof(row->text), "%s", text);
	}
	if (row->nr++ < oracle->nr_shown) {
		printf("%s: %s\n", image ? image->name : "no code", text);
		show(oracle, nr_common);
	}
}

static void note_difference(struct oracle *oracle, size_t nr_common)
{
	const char *end = end_names[oracle->end];
	char text[TEXT_BYTES];

	if (nr_common == oracle->nr_frames)
		snprintf(text, sizeof(text), "opd ends (%s), libdwfl goes on", end);
	else if (nr_common == oracle->nr_theirs)
		snprintf(text, sizeof(text), "libdwfl ends, opd goes on, to %s", end);
	else
		snprintf(text, sizeof(text), "another caller, opd's leads to %s", end);
	note(oracle, nr_common, text);
}

static void compare(struct oracle *oracle)
{
	struct sums *sums = &oracle->sums;
	bool is_complete = oracle->end == OPD_WALK_complete, is_theirs;
	size_t nr_common = 0;
	char text[TEXT_BYTES];

	while (nr_common < oracle->nr_frames && nr_common < oracle->nr_theirs &&
	       oracle->frames[nr_common].pc == oracle->theirs[nr_common])
		nr_common++;
	sums->nr++;
	sums->nr_frames += oracle->nr_frames;
	sums->nr_complete += is_complete;
	if (nr_common == oracle->nr_frames && nr_common == oracle->nr_theirs) {
		sums->nr_same++;
		sums->nr_their_complete += is_complete;
		snprintf(text, sizeof(text), "both end, opd with %s", end_names[oracle->end]);
		if (!is_complete)
			note(oracle, nr_common, text);
		return;
	}
	note_difference(oracle, nr_common);
	is_theirs = is_start(oracle, oracle->theirs[oracle->nr_theirs - 1]);
	sums->nr_their_complete += is_theirs;
	sums->nr_less += is_theirs && !is_complete;
}

static void take(void *arg, struct recorded_process *process, const struct op_stack_record *sample)
{
	struct oracle *oracle = arg;
	uint64_t begin_ns = bench_cpu_ns();

	oracle->process = process;
	oracle->sample = sample;
	walk(oracle);
	oracle->sums.first_ns += bench_cpu_ns() - begin_ns;
	begin_ns = bench_cpu_ns();
	if (!oracle->nr_frames || !walk_theirs(oracle))
		return;
	oracle->sums.their_ns += bench_cpu_ns() - begin_ns;
	compare(oracle);
	if (oracle->with_time)
		keep_for_timing(oracle);
}

/* ---- report ---- */

static int by_number(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->nr > b->nr ? -1 : a->nr < b->nr;
}

static void report(struct oracle *oracle, const char *path)
{
	struct sums *sums = &oracle->sums;
	double nr = sums->nr ? (double)sums->nr : 1, nr_frames = sums->nr_frames ? (double)sums->nr_frames : 1;

	qsort(sums->rows, ROWS_MAX, sizeof(sums->rows[0]), by_number);
	for (const struct row *row = sums->rows; row < &sums->rows[ROWS_MAX] && row->nr; row++)
		printf("  %8" PRIu64 "  %s: %s\n", row->nr, row->image ? row->image->name : "no code", row->text);
	printf("%s: %" PRIu64 " samples, %" PRIu64 " the same (%.2f %%), %" PRIu64 " complete, libdwfl %" PRIu64 ", %" PRIu64
	       " of these not of opd, %.1f frames; ",
	       path, sums->nr, sums->nr_same, 100 * (double)sums->nr_same / nr, sums->nr_complete, sums->nr_their_complete,
	       sums->nr_less, nr_frames / nr);
	if (sums->nr_warm)
		printf("warm %.0f ns a sample, %.1f ns a frame, first %.0f ns; ", (double)sums->warm_ns / (double)sums->nr_warm,
		       (double)sums->warm_ns / (double)sums->nr_warm_frames, (double)sums->first_ns / nr);
	printf("libdwfl %.0f ns\n", (double)sums->their_ns / nr);
	*sums = (struct sums){ 0 };
}

int main(int argc, char **argv)
{
	static struct oracle oracle;
	const struct recording_user user = { .arg = &oracle, .open = open_image, .take = take, .forget = forget };
	int at = 1;

	elf_version(EV_CURRENT);
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strncmp(argv[at], "--show=", 7))
			oracle.nr_shown = (uint32_t)strtoul(argv[at] + 7, NULL, 10);
		else if (!strcmp(argv[at], "--time"))
			oracle.with_time = true;
		else
			die_since(argv[at], "no such option");
	}
	if (argc - at < 2)
		die_since("usage", "walk_oracle [--show=N] [--time] OPD-TABLES PERF.DATA...");
	oracle.tables = argv[at++];
	for (; at < argc; at++) {
		recording_play(argv[at], &user);
		report(&oracle, argv[at]);
	}
	return 0;
}
