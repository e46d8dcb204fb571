/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A memory ring whose other party lies: doc/ring.md, "Nobody is believed".
 * tests/unit/test_ring_wake_fd.c tests the descriptor that wakes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/memory_ring.h"

#define PAGE 4096u

void *__real_aligned_alloc(size_t alignment, size_t nr_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t nr_bytes);

static int mring_setup(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, PAGE, 0, 0);
	return 0;
}

static int setup_overwrite(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, PAGE, 0, OP_MRING_OVERWRITE);
	return 0;
}

/* A reader that lies about its position gains nothing: bytes that it has not given back stay. */
static void does_not_believe_the_reader(void **state)
{
	struct mring_box *box = *state;
	uint64_t lies[] = { 1, UINT64_MAX, PAGE + 512 + 8, UINT64_C(1) << 63, PAGE * 2 };

	while (mring_box_put(box, 3, 512) == 0)
		;
	box->ring.control->data_tail = 512;
	assert_int_equal(mring_box_put(box, 3, 512 - 24), 0);
	box->ring.control->data_tail = 0; /* backwards */
	assert_int_equal(mring_box_put(box, 3, 512), -ENOSPC);
	for (size_t i = 0; i < op_array_size(lies); i++) {
		box->ring.control->data_tail = lies[i];
		assert_int_equal(mring_box_put(box, 3, 512), -ENOSPC);
		assert_int_equal(box->writer.bad_tails, i + 2);
	}
}

/*
 * Nor does a reader that lies when it opens: a position ahead of the head would give more room than
 * the ring has.
 */
static void does_not_believe_the_reader_when_it_opens(void **state)
{
	struct mring_box *box = *state;
	const uint64_t ahead[] = { 8, 512, PAGE, UINT64_C(1) << 63 };

	while (mring_box_put(box, 3, 512) == 0)
		;
	for (size_t i = 0; i < op_array_size(ahead); i++) {
		op_mring_writer_close(&box->writer);
		box->ring.control->data_tail = box->ring.control->data_head + ahead[i];
		assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
		assert_int_equal(mring_box_put(box, 3, 512), -ENOSPC);
		assert_int_equal(box->writer.bad_tails, 1);
	}
	box->ring.control->data_tail = 1024;
	assert_int_equal(mring_box_put(box, 3, 512), 0);
}

/* Writes bytes at a position of the ring, and a head, as a writer that lies would. */
static void lie(struct mring_box *box, uint64_t head, struct perf_event_header header)
{
	uint64_t at = box->reader.tail & (PAGE - 1);

	memcpy(box->ring.data + at, &header, sizeof(header));
	box->ring.control->data_head = head;
}

static void does_not_believe_the_writer(void **state)
{
	struct mring_box *box = *state;
	const struct perf_event_header bad[] = {
		{ .type = 9, .size = 0 },  { .type = 0, .size = 4 },	 { .type = 9, .size = 12 },
		{ .type = 9, .size = 72 }, { .type = 9, .size = 65528 },
	};
	uint64_t damaged = 0;

	for (size_t i = 0; i < op_array_size(bad); i++) {
		lie(box, box->reader.tail + 64, bad[i]);
		assert_int_equal(op_ring_begin(&box->reader), 64);
		assert_null(op_ring_next(&box->reader));
		op_ring_end(&box->reader);
		assert_int_equal(box->reader.damaged, ++damaged);
	}
	lie(box, box->reader.tail - 8, bad[0]); /* backwards */
	assert_int_equal(op_ring_begin(&box->reader), 0);
	assert_int_equal(box->reader.damaged, ++damaged);
	lie(box, box->reader.tail + PAGE + 8, bad[0]); /* too far */
	assert_int_equal(op_ring_begin(&box->reader), 0);
	assert_int_equal(box->reader.damaged, ++damaged);
	lie(box, box->reader.tail + 4, bad[0]); /* torn header */
	assert_int_equal(op_ring_begin(&box->reader), 4);
	assert_null(op_ring_next(&box->reader));
	assert_int_equal(box->reader.damaged, ++damaged);
}

/* Makes the next records begin at a place that the test can check. */
static void stays_aligned_behind_a_head_that_is_not(void **state)
{
	struct mring_box *box = *state;
	const uint64_t heads[] = { 3 * PAGE - 4, UINT64_MAX, 7 * PAGE + 12 };

	for (size_t i = 0; i < op_array_size(heads); i++) {
		lie(box, heads[i], (struct perf_event_header){ .type = 9, .size = 64 });
		assert_int_equal(op_ring_begin(&box->reader), 0);
		assert_int_equal(box->reader.tail % 8, 0);
		lie(box, box->reader.tail + 64, (struct perf_event_header){ .type = 9, .size = 64 });
		assert_int_equal(op_ring_begin(&box->reader), 64);
		assert_non_null(op_ring_next(&box->reader));
		assert_int_equal(box->reader.damaged, i + 1);
	}
}

/* The reader owns the ring, and the writer has attached. */
static void gives_copies_that_the_writer_cannot_change(void **state)
{
	struct mring_box *box = *state, other;
	const struct perf_event_header *record;

	op_mring_writer_close(&box->writer);
	assert_int_equal(op_mring_attach(box->ring.fd, box->ring.wake_fd, &other.ring), 0);
	assert_int_equal(op_mring_writer_open(&other.ring, &other.writer), 0);
	assert_int_equal(mring_box_put(&other, 3, 64), 0);
	op_ring_begin(&box->reader);
	record = op_ring_next(&box->reader);
	memset(other.ring.data, 0xff, 64);
	memory_ring_check(record, 3, 64);
	op_ring_put_back(&box->reader, record);
	assert_int_equal(box->reader.head - box->reader.tail, 64);
	op_mring_destroy(&other.ring);
}

static struct mring_box *changed; /* its record at the end of the first page */

static struct perf_event_header *header_before_the_second_page(void)
{
	return (void *)(changed->ring.data + PAGE - sizeof(struct perf_event_header));
}

/*
 * Runs when the reader first touches the second page of a record, after its check of the header.
 * Changes that header.
 */
static void change_header(int signal OP_UNUSED)
{
	if (mprotect(changed->ring.data + PAGE, PAGE, PROT_READ | PROT_WRITE) < 0)
		_exit(1);
	*header_before_the_second_page() = (struct perf_event_header){ .type = 9, .size = 65528 };
}

static void gives_the_header_that_was_checked(void **state)
{
	struct sigaction action = { .sa_handler = change_header }, before;
	struct mring_box box;

	(void)state;
	changed = &box;
	mring_box_open(&box, 2 * PAGE, 0, 0);
	assert_int_equal(mring_box_put(&box, 2, PAGE - sizeof(struct perf_event_header)), 0);
	assert_int_equal(mring_box_put(&box, 3, 64), 0);
	op_ring_begin(&box.reader);
	memory_ring_check(op_ring_next(&box.reader), 2, PAGE - sizeof(struct perf_event_header));
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	assert_int_equal(mprotect(box.ring.data + PAGE, PAGE, PROT_NONE), 0);
	memory_ring_check(op_ring_next(&box.reader), 3, 64);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(header_before_the_second_page()->size, 65528);
	mring_box_close(&box);
}

static unsigned int nr_until_no_memory; /* allocations, with the one that fails; 0: none does */

void *__wrap_aligned_alloc(size_t alignment, size_t nr_bytes)
{
	if (nr_until_no_memory && !--nr_until_no_memory)
		return NULL;
	return __real_aligned_alloc(alignment, nr_bytes);
}

/*
 * A reader allocates all that it needs when it opens: a later failure would look like a damaged
 * ring.
 */
static void opens_without_memory_or_reads(void **state)
{
	struct mring_box *box = *state;
	struct op_ring reader = { .data_bytes = 1 };
	const struct perf_event_header *record;

	nr_until_no_memory = 1;
	assert_int_equal(op_mring_reader(&box->ring, &reader), -ENOMEM);
	assert_int_equal(reader.data_bytes, 1);
	assert_int_equal(mring_box_put(box, 3, PAGE - 64), 0);
	nr_until_no_memory = 1;
	for (unsigned int i = 0; i < 2; i++) { /* a copy, and one that goes over the end */
		op_ring_begin(&box->reader);
		record = op_ring_next(&box->reader);
		memory_ring_check(record, 3, i ? 128 : PAGE - 64);
		op_ring_end(&box->reader);
		assert_int_equal(mring_box_put(box, 3, 128), 0);
	}
	assert_int_equal(nr_until_no_memory, 1);
	nr_until_no_memory = 0;
	assert_int_equal(box->reader.damaged, 0);
}

static void opens_no_half_of_a_pair(void **state)
{
	struct op_mring_pair_reader reader = { .read = 7 };
	struct op_mring_pair pair;

	(void)state;
	assert_int_equal(op_mring_pair_create(PAGE, 0, &pair), 0);
	for (unsigned int i = 1; i <= 2; i++) {
		nr_until_no_memory = i;
		assert_int_equal(op_mring_pair_reader_open(&pair, &reader), -ENOMEM);
		assert_int_equal(nr_until_no_memory, 0);
	}
	assert_int_equal(reader.read, 7);
	assert_int_equal(pair.rings[0].shared->barrier, 0); /* nothing is promised */
	op_mring_pair_destroy(&pair);
}

static bool gives_copies(const struct op_mring_pair_reader *reader)
{
	assert_int_equal(reader->rings[0].flags, reader->rings[1].flags);
	return reader->rings[0].flags & OP_RING_COPY;
}

/* Only for a writer of this process that the reader knows of. */
static void believes_its_own_writer_only(void **state)
{
	const unsigned int flags[] = { 0, OP_MRING_FENCE, OP_MRING_OVERWRITE };

	(void)state;
	for (size_t i = 0; i < op_array_size(flags); i++) {
		struct mring_pair_box box, own;
		struct op_mring_pair attached;
		struct op_mring_pair_reader reader;

		mring_pair_box_open(&box, PAGE, flags[i]);
		mring_pair_box_open(&own, PAGE, flags[i] | OP_MRING_OWN_WRITER);
		assert_true(gives_copies(&box.reader));
		assert_false(gives_copies(&own.reader));
		assert_int_equal(op_mring_pair_attach((const int[]){ own.pair.rings[0].fd, own.pair.rings[1].fd },
						      own.pair.rings[0].wake_fd, &attached),
				 0);
		assert_int_equal(op_mring_pair_reader_open(&attached, &reader), 0);
		assert_true(gives_copies(&reader));
		op_mring_pair_reader_close(&reader);
		op_mring_pair_destroy(&attached);
		mring_pair_box_close(&own);
		mring_pair_box_close(&box);
	}
}

static void does_not_believe_a_backward_writer(void **state)
{
	struct mring_box *box = *state;
	uint64_t heads[] = { 8, PAGE, UINT64_MAX, UINT64_C(1) << 63, (uint64_t)-PAGE * 3 };

	for (size_t i = 0; i < op_array_size(heads); i++) {
		uint64_t damaged = box->reader.damaged;

		memset(box->ring.data, (int)i + 7, PAGE);
		box->ring.control->data_head = heads[i];
		box->ring.shared->floor = heads[i] + 8; /* above the head */
		assert_true(op_ring_begin(&box->reader) <= PAGE);
		while (op_ring_next(&box->reader))
			;
		op_ring_end(&box->reader);
		assert_true(box->reader.damaged > damaged);
	}
}

/*
 * The other party may have written to `floor`: the bytes that a reservation tears are remembered
 * all the same.
 */
static void does_not_believe_the_floor(void **state)
{
	struct mring_box *box = *state;
	const uint64_t lies[] = { 8, PAGE, UINT64_C(1) << 63, (uint64_t)-PAGE - 8 };

	mring_box_fill_page(box);
	for (size_t i = 0; i < op_array_size(lies); i++) {
		box->ring.shared->floor = box->writer.head + lies[i];
		mring_box_tear(box, 96);
		mring_box_check_torn(box, 96, 0);
		op_mring_abandon(&box->writer);
	}
	assert_int_equal(box->reader.damaged, 0);
}

/* A memfd of that size that is empty but for the first page of the ring `from`. */
static int attach_sparse(const struct op_mring *from, uint64_t data_bytes, uint64_t aux_bytes)
{
	struct perf_event_mmap_page control = *from->control;
	int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;
	struct op_mring ring;

	control.data_size = data_bytes;
	control.data_head = data_bytes;
	control.aux_offset = PAGE + data_bytes;
	control.aux_size = aux_bytes;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(PAGE + data_bytes + aux_bytes)), 0);
	assert_int_equal(pwrite(fd, from->control, PAGE, 0), PAGE);
	assert_int_equal(pwrite(fd, &control, sizeof(control), 0), sizeof(control));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	err = op_mring_attach(fd, from->wake_fd, &ring);
	if (!err)
		op_mring_destroy(&ring);
	close(fd);
	return err;
}

/* A false ring that costs its maker nothing must not keep the reader busy for ever. */
static void attaches_to_no_huge_ring(void **state)
{
	const struct mring_box *box = *state;

	assert_int_equal(attach_sparse(&box->ring, OP_MRING_BYTES_MAX, OP_MRING_BYTES_MAX), 0);
	assert_int_equal(attach_sparse(&box->ring, 2 * OP_MRING_BYTES_MAX, 0), -EINVAL);
	assert_int_equal(attach_sparse(&box->ring, PAGE, 2 * OP_MRING_BYTES_MAX), -EINVAL);
	assert_int_equal(attach_sparse(&box->ring, UINT64_C(1) << 44, 0), -EINVAL);
}

static void attaches_to_rings_only(void **state)
{
	struct mring_box *box = *state;
	struct op_mring ring;
	int fd = memfd_create("no ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, box->ring.control, 2 * PAGE, 0), 2 * PAGE);
	/* can shrink: a SIGBUS */
	assert_int_equal(op_mring_attach(fd, box->ring.wake_fd, &ring), -EINVAL);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(op_mring_attach(fd, box->ring.wake_fd, &ring), 0);
	op_mring_destroy(&ring);
	assert_int_equal(pwrite(fd, "not a ring", 10, OP_MRING_SHARED_OFFSET), 10);
	assert_int_equal(op_mring_attach(fd, box->ring.wake_fd, &ring), -EINVAL);
	close(fd);
	assert_int_equal(op_mring_attach(box->ring.fd, -1, &ring), -EBADF);
	box->ring.control->data_size = 2 * PAGE;
	assert_int_equal(op_mring_attach(box->ring.fd, box->ring.wake_fd, &ring), -EINVAL);
	box->ring.control->data_size = PAGE;
	box->ring.shared->flags = OP_MRING_OWN_WRITER; /* nobody says that for another process */
	assert_int_equal(op_mring_attach(box->ring.fd, box->ring.wake_fd, &ring), -EINVAL);
	box->ring.shared->flags = 0;
	assert_int_equal(op_mring_attach(box->ring.fd, box->ring.wake_fd, &ring), 0);
	op_mring_destroy(&ring);
	assert_int_equal(op_mring_create(PAGE + 8, 0, 0, &ring), -EINVAL);
	assert_int_equal(op_mring_create(PAGE / 2, 0, 0, &ring), -EINVAL);
	assert_int_equal(op_mring_create(PAGE, 3 * PAGE, 0, &ring), -EINVAL);
	assert_int_equal(op_mring_create(PAGE, 0, 64, &ring), -EINVAL);
	assert_int_equal(op_mring_create(2 * OP_MRING_BYTES_MAX, 0, 0, &ring), -EINVAL);
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, mring_box_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(does_not_believe_the_reader, mring_setup),
		TEST(does_not_believe_the_reader_when_it_opens, mring_setup),
		TEST(does_not_believe_the_writer, mring_setup),
		TEST(stays_aligned_behind_a_head_that_is_not, mring_setup),
		TEST(gives_copies_that_the_writer_cannot_change, mring_setup),
		cmocka_unit_test(gives_the_header_that_was_checked),
		TEST(opens_without_memory_or_reads, mring_setup),
		cmocka_unit_test(opens_no_half_of_a_pair),
		cmocka_unit_test(believes_its_own_writer_only),
		TEST(does_not_believe_a_backward_writer, setup_overwrite),
		TEST(does_not_believe_the_floor, setup_overwrite),
		TEST(attaches_to_rings_only, mring_setup),
		TEST(attaches_to_no_huge_ring, mring_setup),
	};

	return cmocka_run_group_tests_name("ring_hostile", tests, NULL, NULL);
}
