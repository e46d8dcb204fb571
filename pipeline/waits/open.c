/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/waits/open.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/htable.h"
#include "libop/base/sys.h"
#include "libop/perf/record.h"
#include "pipeline/files/stack_copy.h"

#define RECORD_BYTES  65536u
#define ROWS_PER_READ 32u
#define ROUNDS_UNSEEN 2u

/* The wait of a thread. */
struct wait {
	struct op_hlink link; /* by its tid */
	struct opd_wait_open last;
	uint64_t unbooked_ns; /* the thread was not seen twice, or has no copy */
	bool has_asked, is_booked;
	uint8_t *copy; /* NULL: none */
	size_t nr_copied;
	uint32_t round; /* of readings */
};

struct opd_open_waits {
	struct opd_lookers *lookers;
	struct opd_open_layout layout;
	opd_open_book book;
	void *host;
	struct op_htable by_tid;
	size_t copies_bytes;
	size_t nr_to_ask; /* in this reading */
	uint32_t round;
	/* of the record that is made; the end of one is cut to what a record may have */
	uint64_t words[RECORD_BYTES / sizeof(uint64_t)];
	size_t nr_words;
};

/* ---- the record ---- */

static void add_word(struct opd_open_waits *waits, uint64_t word)
{
	if (waits->nr_words < op_array_size(waits->words))
		waits->words[waits->nr_words++] = word;
}

static void add_bytes(struct opd_open_waits *waits, const void *bytes, size_t nr_bytes)
{
	memcpy(&waits->words[waits->nr_words], bytes, nr_bytes);
	waits->nr_words += nr_bytes / sizeof(uint64_t);
}

/* Where a register of perf_event_attr.sample_regs_user stands in opd_wait_open; -1: it does not. */
static int place_of(uint16_t machine, unsigned int number)
{
	/* enum perf_event_x86_regs: ip sp bp bx r12 to r15 */
	static const uint8_t x86[] = { 8, 7, 6, 1, 20, 21, 22, 23 };
	/* enum perf_event_arm_regs: pc sp x29 x19 to x28 x30 */
	static const uint8_t arm64[] = { 32, 31, 29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30 };
	const uint8_t *numbers = machine == EM_X86_64 ? x86 : arm64;
	size_t nr = machine == EM_X86_64 ? op_array_size(x86) : op_array_size(arm64);

	for (size_t i = 0; i < nr; i++)
		if (numbers[i] == number)
			return (int)i;
	return -1;
}

static void add_registers(struct opd_open_waits *waits, const struct opd_wait_open *open)
{
	add_word(waits, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t left = waits->layout.registers; left; left &= left - 1) {
		int place = place_of(waits->layout.machine, (unsigned int)__builtin_ctzll(left));

		add_word(waits, place < 0 ? 0 : open->registers[place]);
	}
}

static void add_stack(struct opd_open_waits *waits, const struct wait *wait)
{
	size_t nr_bytes = wait->nr_copied & ~(sizeof(uint64_t) - 1);

	add_word(waits, nr_bytes);
	if (!nr_bytes)
		return;
	add_bytes(waits, wait->copy, nr_bytes);
	add_word(waits, nr_bytes);
}

/* As the kernel writes it: perf_event_open(2), PERF_RECORD_SAMPLE. */
static const struct perf_event_header *make_record(struct opd_open_waits *waits, const struct wait *wait)
{
	const struct opd_wait_open *open = &wait->last;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_KERNEL };
	uint64_t type = waits->layout.sample_type;
	size_t nr_ips = op_min_u64(open->nr_ips, OPD_WAIT_KERNEL_IPS);

	waits->nr_words = 1; /* the header */
	add_word(waits, 0);  /* no event: IDENTIFIER */
	add_word(waits, nr_ips ? open->ips[0] : 0);
	add_word(waits, (uint64_t)open->tid << 32 | open->pid);
	add_word(waits, open->now_ns);
	add_word(waits, nr_ips + 1);
	add_word(waits, (uint64_t)PERF_CONTEXT_KERNEL);
	for (size_t i = 0; i < nr_ips; i++)
		add_word(waits, open->ips[i]);
	if (type & PERF_SAMPLE_RAW)
		add_word(waits, sizeof(uint32_t)); /* so many bytes, which are 0 */
	add_registers(waits, open);
	add_stack(waits, wait);
	if (type & PERF_SAMPLE_CGROUP)
		add_word(waits, open->cgroup);
	header.size = (uint16_t)(waits->nr_words * sizeof(uint64_t));
	memcpy(waits->words, &header, sizeof(header));
	return (const void *)waits->words;
}

/* ---- threads ---- */

static struct wait *find(const struct opd_open_waits *waits, uint32_t tid)
{
	uint64_t hash = op_hash_u64(tid);

	for (struct op_hlink *link = op_htable_first(&waits->by_tid, hash); link; link = op_htable_next(link)) {
		struct wait *wait = op_container_of(link, struct wait, link);

		if (wait->last.tid == tid)
			return wait;
	}
	return NULL;
}

/* Copies hold secrets. */
static void drop_copy(struct opd_open_waits *waits, struct wait *wait)
{
	if (!wait->copy)
		return;
	explicit_bzero(wait->copy, wait->nr_copied);
	free(wait->copy);
	wait->copy = NULL;
	waits->copies_bytes -= wait->nr_copied;
	wait->nr_copied = 0;
}

static void remove_wait(struct opd_open_waits *waits, struct wait *wait)
{
	drop_copy(waits, wait);
	op_htable_remove(&waits->by_tid, &wait->link);
	free(wait);
}

static struct wait *add_wait(struct opd_open_waits *waits, uint32_t tid)
{
	struct wait *wait = waits->by_tid.nr_entries < OPD_OPEN_WAITS_MAX ? calloc(1, sizeof(*wait)) : NULL;

	if (wait && op_htable_insert(&waits->by_tid, &wait->link, op_hash_u64(tid))) {
		free(wait);
		return NULL;
	}
	return wait;
}

static void book(struct opd_open_waits *waits, struct wait *wait)
{
	uint64_t ns = wait->unbooked_ns;

	if (!ns)
		return;
	wait->unbooked_ns = 0;
	waits->book(waits->host, &wait->last, make_record(waits, wait), ns, wait->is_booked);
	wait->is_booked = true;
}

/* A thread that is seen in a new wait. Its stack is as it is copied if it is seen once more. */
static void ask_for_copy(struct opd_open_waits *waits, struct wait *wait)
{
	const struct opd_stack_copy_wanted wanted = {
		.pid = wait->last.pid,
		.tid = wait->last.tid,
		.from = wait->last.registers[1],
		.nr_bytes = waits->layout.stack_bytes,
	};
	struct op_text copy = { 0 };

	wait->has_asked = true;
	if (!waits->lookers || waits->copies_bytes + wanted.nr_bytes > OPD_OPEN_COPIES_MAX ||
	    opd_stack_copy_ask(waits->lookers, &wanted, &copy) || !copy.length || copy.length > wanted.nr_bytes) {
		free(copy.data);
		return;
	}
	wait->copy = malloc(copy.length);
	if (wait->copy) {
		memcpy(wait->copy, copy.data, copy.length);
		wait->nr_copied = copy.length;
		waits->copies_bytes += copy.length;
	}
	explicit_bzero(copy.data, copy.length);
	free(copy.data);
}

static void take(struct opd_open_waits *waits, const struct opd_wait_open *open)
{
	struct wait *wait = find(waits, open->tid);
	struct wait once = { .last = *open, .unbooked_ns = open->weight_ns };
	bool is_same = wait && wait->last.begin_ns == open->begin_ns && wait->last.pid == open->pid;

	if (wait && !is_same) {
		book(waits, wait);
		remove_wait(waits, wait);
		wait = NULL;
	}
	if (!wait)
		wait = add_wait(waits, open->tid);
	if (!wait) {
		book(waits, &once);
		return;
	}
	wait->last = *open;
	wait->round = waits->round;
	wait->unbooked_ns += open->weight_ns;
	if (wait->has_asked && is_same)
		book(waits, wait);
	if (wait->has_asked || !waits->nr_to_ask)
		return;
	waits->nr_to_ask--;
	ask_for_copy(waits, wait);
}

/* The last readings have not seen it, and no record came: its wait is over. */
static void forget_ended(struct op_hlink *link, void *arg)
{
	struct opd_open_waits *waits = arg;
	struct wait *wait = op_container_of(link, struct wait, link);

	if (waits->round - wait->round <= ROUNDS_UNSEEN)
		return;
	book(waits, wait);
	remove_wait(waits, wait);
}

int opd_open_waits_read(struct opd_open_waits *waits, int fd, size_t max_copies)
{
	struct opd_wait_open rows[ROWS_PER_READ];
	size_t nr_bytes = 0;
	ssize_t nr;

	waits->nr_to_ask = max_copies;
	while ((nr = op_sys_read(fd, (char *)rows + nr_bytes, sizeof(rows) - nr_bytes)) > 0) {
		size_t nr_rows;

		nr_bytes += (size_t)nr;
		nr_rows = nr_bytes / sizeof(rows[0]);
		for (size_t i = 0; i < nr_rows; i++)
			take(waits, &rows[i]);
		nr_bytes -= nr_rows * sizeof(rows[0]);
		memmove(rows, &rows[nr_rows], nr_bytes);
	}
	waits->round++;
	op_htable_visit(&waits->by_tid, forget_ended, waits);
	return (int)nr;
}

uint64_t opd_open_waits_end(struct opd_open_waits *waits, uint32_t tid, uint64_t begin_ns, bool *ret_goes_on)
{
	struct wait *wait = find(waits, tid);
	uint64_t ns = 0;

	*ret_goes_on = false;
	if (!wait)
		return 0;
	if (wait->last.begin_ns == begin_ns) {
		ns = wait->unbooked_ns;
		*ret_goes_on = wait->is_booked;
	} else {
		book(waits, wait);
	}
	remove_wait(waits, wait);
	return ns;
}

static void forget_one(struct op_hlink *link, void *arg)
{
	struct opd_open_waits *waits = arg;
	struct wait *wait = op_container_of(link, struct wait, link);

	book(waits, wait);
	remove_wait(waits, wait);
}

void opd_open_waits_forget(struct opd_open_waits *waits)
{
	op_htable_visit(&waits->by_tid, forget_one, waits);
}

static void begin_one(struct op_hlink *link, void *arg OP_UNUSED)
{
	op_container_of(link, struct wait, link)->is_booked = false;
}

void opd_open_waits_begin_session(struct opd_open_waits *waits)
{
	op_htable_visit(&waits->by_tid, begin_one, NULL);
}

/* ---- opening ---- */

int opd_open_waits_new(struct opd_lookers *lookers, const struct opd_open_layout *layout, opd_open_book book_them, void *host,
		       struct opd_open_waits **ret_waits)
{
	struct opd_open_waits *waits = calloc(1, sizeof(*waits));

	if (!waits)
		return -ENOMEM;
	waits->lookers = lookers;
	waits->layout = *layout;
	waits->book = book_them;
	waits->host = host;
	*ret_waits = waits;
	return 0;
}

static void free_one(struct op_hlink *link, void *arg)
{
	remove_wait(arg, op_container_of(link, struct wait, link));
}

void opd_open_waits_free(struct opd_open_waits *waits)
{
	if (!waits)
		return;
	op_htable_visit(&waits->by_tid, free_one, waits);
	op_htable_free(&waits->by_tid);
	free(waits);
}
