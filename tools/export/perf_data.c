/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A perf.data file (linux: tools/perf/Documentation/perf.data-file-format.txt; records:
 * perf_event_open(2)). A sample stands for a stack, and its period is the number of stack samples.
 *
 * The addresses are made up, but for those of the kernel's text: each image has a place of its own,
 * the same in all processes. perf finds functions by image, build-id and file offset, and reads
 * their names itself.
 */
#include <inttypes.h>
#include <linux/perf_event.h>

#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/export/export.h"
#include "tools/export/numbers.h"
#include "tools/stacks/arrange.h"

#define MAGIC		  UINT64_C(0x32454c4946524550) /* PERFILE2; tells the byte order */
#define PAGE		  4096u
#define USER_BASE	  UINT64_C(0x10000000)
#define MODULE_BASE	  UINT64_C(0xffffffffc0000000)
#define FEATURE_HOST	  3  /* HEADER_HOSTNAME: without it readers take the byte order for wrong */
#define FEATURE_CPUS	  7  /* HEADER_NRCPUS: without it hotspot crashes */
#define FEATURE_EVENTS	  12 /* HEADER_EVENT_DESC */
#define NAME_ALIGN	  64u
#define NAME_BYTES_MAX	  3968u
#define MADE_UP_PID	  (1u << 23) /* above all numbers of processes */
#define CHAIN_MAX	  (OPR_CALL_DEPTH_MAX + 2)
#define KERNEL_PID	  UINT32_MAX
#define MMAP_HAS_BUILD_ID (1u << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID */
#define RECORD_MMAP2	  10
#define RECORD_LOST	  13 /* PERF_RECORD_LOST_SAMPLES */

struct section {
	uint64_t offset, bytes;
};

struct file_header {
	uint64_t magic, bytes, attr_bytes;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

/* An event in the file, and where its numbers are. */
struct file_attr {
	struct perf_event_attr attr;
	struct section ids;
};

/* Which positions of an image are in stacks, and where they are in the file. */
struct placed {
	const struct opr_call_image *image;
	uint64_t first, last; /* positions, in whole pages */
	uint64_t base;        /* address of `first` */
};

struct process {
	size_t app, comm; /* numbers of strings */
	uint64_t thread;  /* process << 32 | thread; 0: not known */
};

struct mapped {
	uint32_t pid;
	size_t image;
};

struct perf {
	const struct opr_stack_report *report;
	struct op_text data;
	struct opr_numbers strings, images; /* keys: text, pointer */
	struct opr_numbers processes, maps; /* keys: struct process, struct mapped */
	struct placed *placed; /* by number of the image */
	size_t nr_placed;
	uint64_t time;
};

/* ---- places ---- */

static bool is_kernel_text(const struct opr_call_image *image)
{
	return image->is_kernel && image->name[0] == '/';
}

static void note_place(struct perf *perf, const struct opr_call_function *function)
{
	const struct opr_call_image *image = function->place.image;
	uint64_t page = function->place.position / PAGE * PAGE;
	struct placed *placed;
	size_t number;

	if (!image)
		return;
	number = opr_number_of(&perf->images, &image, sizeof(const struct opr_call_image *), NULL);
	if (number >= perf->nr_placed) {
		placed = reallocarray(perf->placed, number + 1, sizeof(*placed));
		if (!placed) {
			perf->images.failed = true;
			return;
		}
		perf->placed = placed;
		placed[number] = (struct placed){ .image = image, .first = page, .last = page };
		if (is_kernel_text(image))
			placed[number].base = function->place.vma - function->place.position;
		perf->nr_placed = number + 1;
	}
	placed = &perf->placed[number];
	placed->first = op_min_u64(placed->first, page);
	placed->last = op_max_u64(placed->last, page);
}

static void place_images(struct perf *perf)
{
	uint64_t user = USER_BASE, module = MODULE_BASE;

	for (size_t i = 0; i < perf->nr_placed; i++) {
		struct placed *placed = &perf->placed[i];
		uint64_t *next = placed->image->is_kernel ? &module : &user;

		if (is_kernel_text(placed->image)) {
			placed->first = 0;
			continue;
		}
		if (placed->image->is_kernel)
			placed->first = 0; /* a module is mapped from its start */
		placed->base = *next;
		*next += placed->last - placed->first + 2 * PAGE;
	}
}

static uint64_t address_of(struct perf *perf, const struct opr_call_function *function)
{
	const struct opr_call_image *image = function->place.image;
	const struct placed *placed =
		&perf->placed[opr_number_of(&perf->images, &image, sizeof(const struct opr_call_image *), NULL)];

	return placed->base + (function->place.position - placed->first);
}

/* ---- records ---- */

static void add_u64(struct op_text *text, uint64_t value)
{
	op_text_add_bytes(text, &value, sizeof(value));
}

/* Begins a record. Returns where it is; end_record sets its length. */
static size_t begin_record(struct perf *perf, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = { .type = type, .misc = misc };
	size_t at = perf->data.length;

	op_text_add_bytes(&perf->data, &header, sizeof(header));
	return at;
}

static void end_record(struct perf *perf, size_t at)
{
	uint16_t nr_bytes;

	while (perf->data.length % sizeof(uint64_t) && !perf->data.failed)
		op_text_add_char(&perf->data, '\0');
	nr_bytes = (uint16_t)(perf->data.length - at);
	if (!perf->data.failed)
		memcpy(perf->data.data + at + offsetof(struct perf_event_header, size), &nr_bytes, sizeof(nr_bytes));
}

/* perf shows names as they are, so they are escaped here. */
static void add_name(struct perf *perf, const char *name, size_t max)
{
	struct op_text escaped = { 0 };

	op_text_add_escaped(&escaped, name);
	op_text_add_bytes(&perf->data, op_text_get(&escaped), op_min_u64(escaped.length, max));
	op_text_add_char(&perf->data, '\0');
	perf->data.failed |= escaped.failed;
	op_text_free(&escaped);
}

static void add_build_id(struct perf *perf, const char *digits)
{
	uint8_t bytes[4 + OP_BUILD_ID_BYTES_MAX] = { 0 };
	unsigned int byte;

	for (; digits[2 * bytes[0]] && bytes[0] < OP_BUILD_ID_BYTES_MAX; bytes[0]++) {
		if (sscanf(digits + 2 * bytes[0], "%2x", &byte) != 1)
			break;
		bytes[4 + bytes[0]] = (uint8_t)byte;
	}
	op_text_add_bytes(&perf->data, bytes, sizeof(bytes));
}

static void add_mmap(struct perf *perf, uint32_t pid, const struct placed *placed)
{
	const struct opr_call_image *image = placed->image;
	uint16_t misc = image->is_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	uint32_t protection[2] = { 5, 2 }; /* PROT_READ | PROT_EXEC, MAP_PRIVATE */
	const uint32_t ids[2] = { pid, pid };
	struct op_text name = { 0 };
	size_t at;

	if (is_kernel_text(image))
		op_text_add(&name, "[kernel.kallsyms]_text");
	else if (image->is_kernel)
		op_text_printf(&name, image->path[0] ? "%s" : "[%s]", image->path[0] ? image->path : image->name);
	else
		op_text_add(&name, image->path[0] ? image->path : image->name);
	at = begin_record(perf, RECORD_MMAP2, (uint16_t)(misc | (image->build_id[0] ? MMAP_HAS_BUILD_ID : 0)));
	op_text_add_bytes(&perf->data, ids, sizeof(ids));
	add_u64(&perf->data, placed->base);
	add_u64(&perf->data, placed->last - placed->first + PAGE);
	add_u64(&perf->data, is_kernel_text(image) ? placed->base : placed->first);
	add_build_id(perf, image->build_id);
	op_text_add_bytes(&perf->data, protection, sizeof(protection));
	add_name(perf, op_text_get(&name), NAME_BYTES_MAX);
	end_record(perf, at);
	perf->data.failed |= name.failed;
	op_text_free(&name);
}

/* The process of a stack, with a record when it is new. */
static uint32_t find_process(struct perf *perf, const struct process *process, uint32_t *ret_tid)
{
	bool is_new;
	size_t number = opr_number_of(&perf->processes, process, sizeof(*process), &is_new);
	uint32_t pid = process->thread ? (uint32_t)(process->thread >> 32) : (uint32_t)(MADE_UP_PID + number);
	uint32_t ids[2] = { pid, process->thread ? (uint32_t)process->thread : pid };
	size_t at;

	*ret_tid = ids[1];
	if (!is_new || perf->strings.failed)
		return pid;
	at = begin_record(perf, PERF_RECORD_COMM, 0);
	op_text_add_bytes(&perf->data, ids, sizeof(ids));
	add_name(perf, perf->strings.items[process->comm]->bytes, OP_STACK_PIECE_BYTES - 1);
	end_record(perf, at);
	return pid;
}

/* Sees to it that the process, or the kernel, has the image of a function. */
static void map_image(struct perf *perf, uint32_t pid, const struct opr_call_function *function)
{
	const struct opr_call_image *image = function->place.image;
	const struct mapped key = { image->is_kernel ? KERNEL_PID : pid,
				    opr_number_of(&perf->images, &image, sizeof(const struct opr_call_image *), NULL) };
	bool is_new;

	opr_number_of(&perf->maps, &key, sizeof(key), &is_new);
	if (is_new)
		add_mmap(perf, key.pid, &perf->placed[key.image]);
}

/*
 * The addresses of a stack as in a sample: the innermost one first, a mark before those of the
 * kernel and before those of the process. Returns how many; 0: none is known.
 */
static size_t make_chain(struct perf *perf, uint32_t pid, const struct opr_call_function *const *path, size_t nr,
			 uint64_t chain[CHAIN_MAX])
{
	enum opr_call_kind side = OPR_CALL_GROUP;
	size_t nr_chain = 0;

	while (nr--) {
		const struct opr_call_function *function = path[nr];

		if (!function->place.image || (function->kind != OPR_CALL_USER && function->kind != OPR_CALL_KERNEL))
			continue;
		if (nr_chain + 2 > CHAIN_MAX)
			break;
		if (function->kind != side)
			chain[nr_chain++] = (uint64_t)(function->kind == OPR_CALL_KERNEL ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
		side = function->kind;
		map_image(perf, pid, function);
		chain[nr_chain++] = address_of(perf, function);
	}
	return nr_chain;
}

static void add_sample(struct perf *perf, const struct opr_call_node *node)
{
	const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1];
	const struct opr_words *events = &perf->report->sums->events;
	size_t nr = opr_call_path(node, path), nr_chain, at;
	struct process process = { 0 };
	uint64_t chain[CHAIN_MAX], event = 0;
	uint32_t ids[2];
	bool is_kernel;

	opr_progress_tick();
	process.comm = opr_number_of_string(&perf->strings, "");
	for (size_t i = 0; i < nr && path[i]->kind == OPR_CALL_GROUP; i++) {
		if (path[i]->place.label == OP_STACK_APP)
			process.app = opr_number_of_string(&perf->strings, path[i]->name);
		else if (path[i]->place.label == OP_STACK_COMM)
			process.comm = opr_number_of_string(&perf->strings, path[i]->name);
		process.thread |= path[i]->place.thread;
		while (path[i]->place.label == OP_STACK_EVENT && event < events->nr_words &&
		       strcmp(events->words[event], path[i]->name) != 0)
			event++;
	}
	ids[0] = find_process(perf, &process, &ids[1]);
	nr_chain = make_chain(perf, ids[0], path, nr, chain);
	is_kernel = nr_chain && chain[0] == (uint64_t)PERF_CONTEXT_KERNEL;
	at = begin_record(perf, PERF_RECORD_SAMPLE, is_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	add_u64(&perf->data, event + 1);
	add_u64(&perf->data, nr_chain ? chain[1] : 0);
	op_text_add_bytes(&perf->data, ids, sizeof(ids));
	add_u64(&perf->data, ++perf->time);
	add_u64(&perf->data, node->self);
	add_u64(&perf->data, nr_chain);
	op_text_add_bytes(&perf->data, chain, nr_chain * sizeof(*chain));
	end_record(perf, at);
}

/*
 * perf tells losses as a share of the sample records. A record here stands for many stack samples,
 * and the report may be of a part of the sessions: so the share is that of the sessions.
 */
static void add_lost(struct perf *perf)
{
	const struct opr_stack_sums *sums = perf->report->sums;
	double nr_kept = (double)(sums->nr_samples + sums->nr_unselected);
	uint64_t nr_lost = nr_kept > 0 ? (uint64_t)((double)sums->nr_lost / nr_kept * (double)perf->time + 0.5) : 0;
	size_t at;

	if (!nr_lost)
		return;
	at = begin_record(perf, RECORD_LOST, 0);
	add_u64(&perf->data, nr_lost);
	end_record(perf, at);
}

/* ---- the file ---- */

/* perf warns of addresses of the kernel that it cannot know, unless the event excludes them. */
static struct perf_event_attr make_attr(const struct perf *perf)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.read_format = PERF_FORMAT_ID,
		.exclude_kernel = 1,
	};

	for (size_t i = 0; i < perf->nr_placed; i++)
		if (perf->placed[i].image->is_kernel)
			attr.exclude_kernel = 0;
	return attr;
}

/* A length and so many bytes: the string with NULs behind it. */
static void add_string(struct op_text *text, const char *string)
{
	struct op_text escaped = { 0 };
	uint32_t length, nr_bytes;

	op_text_add_escaped(&escaped, string);
	length = (uint32_t)escaped.length;
	nr_bytes = (length + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;
	op_text_add_bytes(text, &nr_bytes, sizeof(nr_bytes));
	op_text_add(text, op_text_get(&escaped));
	for (; length < nr_bytes; length++)
		op_text_add_char(text, '\0');
	text->failed |= escaped.failed;
	op_text_free(&escaped);
}

/* The names of events: their number, the size of an attr, and for each attr, name and number. */
static void add_event_names(const struct opr_words *events, const struct perf_event_attr *attr, struct op_text *text)
{
	const uint32_t head[2] = { (uint32_t)events->nr_words, sizeof(*attr) };

	op_text_add_bytes(text, head, sizeof(head));
	for (size_t i = 0; i < events->nr_words; i++) {
		const uint32_t nr_ids = 1;

		op_text_add_bytes(text, attr, sizeof(*attr));
		op_text_add_bytes(text, &nr_ids, sizeof(nr_ids));
		add_string(text, events->words[i]);
		add_u64(text, i + 1);
	}
}

static int write_file(struct perf *perf, FILE *out)
{
	const struct opr_words *events = &perf->report->sums->events;
	struct file_header header = { .magic = MAGIC, .bytes = sizeof(header), .attr_bytes = sizeof(struct file_attr) };
	const struct perf_event_attr attr = make_attr(perf);
	const struct opr_words *hosts = &perf->report->recorded->hosts;
	struct op_text before = { 0 }, features = { 0 };
	struct section sections[3]; /* of host, CPUs and events */
	const uint32_t nr_cpus[2] = { 1, 1 };
	int err = 0;

	header.attrs = (struct section){ sizeof(header) + events->nr_words * sizeof(uint64_t),
					 events->nr_words * sizeof(struct file_attr) };
	header.data = (struct section){ header.attrs.offset + header.attrs.bytes, perf->data.length };
	header.features[0] = UINT64_C(1) << FEATURE_HOST | UINT64_C(1) << FEATURE_CPUS | UINT64_C(1) << FEATURE_EVENTS;
	add_string(&features, hosts->nr_words ? hosts->words[0] : "unknown");
	sections[0] = (struct section){ header.data.offset + header.data.bytes + sizeof(sections), features.length };
	op_text_add_bytes(&features, nr_cpus, sizeof(nr_cpus));
	sections[1] = (struct section){ sections[0].offset + sections[0].bytes, sizeof(nr_cpus) };
	add_event_names(events, &attr, &features);
	sections[2].offset = sections[1].offset + sections[1].bytes;
	sections[2].bytes = features.length - sections[0].bytes - sections[1].bytes;
	op_text_add_bytes(&before, &header, sizeof(header));
	for (size_t i = 0; i < events->nr_words; i++)
		add_u64(&before, i + 1);
	for (size_t i = 0; i < events->nr_words; i++) {
		const struct file_attr file_attr = { attr, { sizeof(header) + i * sizeof(uint64_t), sizeof(uint64_t) } };

		op_text_add_bytes(&before, &file_attr, sizeof(file_attr));
	}
	if (before.failed || features.failed) {
		err = opr_no_memory();
	} else {
		fwrite(before.data, 1, before.length, out);
		fwrite(op_text_get(&perf->data), 1, perf->data.length, out);
		fwrite(sections, 1, sizeof(sections), out);
		fwrite(features.data, 1, features.length, out);
	}
	op_text_free(&before);
	op_text_free(&features);
	return err;
}

int opr_export_perf(const struct opr_stack_report *report, FILE *out)
{
	struct perf perf = { .report = report };
	int err;

	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		note_place(&perf, node->function);
	if (!perf.images.failed) {
		place_images(&perf);
		for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
			if (node->self)
				add_sample(&perf, node);
		add_lost(&perf);
	}
	if (perf.data.failed || perf.strings.failed || perf.images.failed || perf.processes.failed || perf.maps.failed)
		err = opr_no_memory();
	else
		err = write_file(&perf, out);
	opr_numbers_free(&perf.strings);
	opr_numbers_free(&perf.images);
	opr_numbers_free(&perf.processes);
	opr_numbers_free(&perf.maps);
	op_text_free(&perf.data);
	free(perf.placed);
	return err;
}
