/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define MAGIC UINT64_C(0x31676e69726d706f) /* "opmring1" */
#define SHARED_FLAGS ((unsigned int)(OP_MRING_OVERWRITE | OP_MRING_FENCE))
#define FLAGS (SHARED_FLAGS | OP_MRING_OWN_WRITER)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/*
 * The position of a record: [start, start + nr_bytes), zeros in [gap_from, gap_to), and the head
 * behind it.
 */
struct position {
	uint64_t start;
	uint64_t next;
	uint64_t gap_from;
	uint64_t gap_to;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id;
	uint64_t nr;
};

static_assert(sizeof(struct lost_record) == OP_MRING_LOST_BYTES, "PERF_RECORD_LOST");

static bool is_area(size_t nr_bytes, size_t page_bytes)
{
	return nr_bytes >= page_bytes && !(nr_bytes & (nr_bytes - 1)) && nr_bytes <= OP_MRING_BYTES_MAX;
}

static size_t map_bytes(const struct op_mring *ring)
{
	return ring->page_bytes + 2 * ring->data_bytes;
}

/* Maps the control page, the data, and the data again behind them. */
static int map_ring(struct op_mring *ring)
{
	size_t first = ring->page_bytes + ring->data_bytes;
	void *map, *again;
	int err;

	err = op_sys_mmap(NULL, map_bytes(ring), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &map);
	if (err < 0)
		return err;
	err = op_sys_mmap(map, first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ring->fd, 0, &again);
	if (!err)
		err = op_sys_mmap((uint8_t *)map + first, ring->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				  ring->fd, (off_t)ring->page_bytes, &again);
	if (err < 0) {
		op_sys_munmap(map, map_bytes(ring));
		return err;
	}
	ring->control = map;
	ring->shared = (void *)((uint8_t *)map + OP_MRING_SHARED_OFFSET);
	ring->data = (uint8_t *)map + ring->page_bytes;
	return 0;
}

static int make_memory(struct op_mring *ring)
{
	int err;

	ring->fd = op_sys_memfd_create("opd-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ring->fd < 0)
		return ring->fd;
	err = op_sys_ftruncate(ring->fd, (off_t)(ring->page_bytes + ring->data_bytes + ring->aux_bytes));
	if (err < 0)
		return err;
	err = op_sys_fcntl(ring->fd, F_ADD_SEALS, SEALS);
	if (err < 0)
		return err;
	ring->wake_fd = op_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->wake_fd < 0)
		return ring->wake_fd;
	return map_ring(ring);
}

int op_mring_create(size_t data_bytes, size_t aux_bytes, unsigned int flags, struct op_mring *ret_ring)
{
	struct op_mring ring = {
		.fd = -1,
		.wake_fd = -1,
		.page_bytes = (size_t)sysconf(_SC_PAGESIZE),
		.data_bytes = data_bytes,
		.aux_bytes = aux_bytes,
		.flags = flags,
	};
	int err;

	if (!is_area(data_bytes, ring.page_bytes) || (aux_bytes && !is_area(aux_bytes, ring.page_bytes)) || (flags & ~FLAGS))
		return -EINVAL;
	err = make_memory(&ring);
	if (err < 0) {
		op_mring_destroy(&ring);
		return err;
	}
	ring.control->data_offset = ring.page_bytes;
	ring.control->data_size = data_bytes;
	ring.control->aux_offset = ring.page_bytes + data_bytes;
	ring.control->aux_size = aux_bytes;
	ring.shared->flags = flags & SHARED_FLAGS;
	ring.shared->magic = MAGIC;
	*ret_ring = ring;
	return 0;
}

/*
 * Takes the sizes from the control page and checks them against the memfd. Reads each word only
 * once.
 */
static int take_sizes(struct op_mring *ring)
{
	struct perf_event_mmap_page control;
	struct op_mring_shared shared;
	struct stat st;
	ssize_t nr;
	int err;

	nr = op_sys_pread(ring->fd, &control, sizeof(control), 0);
	if (nr < 0)
		return (int)nr;
	if (nr != sizeof(control))
		return -EINVAL;
	nr = op_sys_pread(ring->fd, &shared, sizeof(shared), OP_MRING_SHARED_OFFSET);
	if (nr < 0)
		return (int)nr;
	err = op_sys_fstat(ring->fd, &st);
	if (err < 0)
		return err;
	ring->data_bytes = control.data_size;
	ring->aux_bytes = control.aux_size;
	ring->flags = shared.flags;
	if (nr != sizeof(shared) || shared.magic != MAGIC || (shared.flags & ~SHARED_FLAGS) ||
	    !is_area(ring->data_bytes, ring->page_bytes) || (ring->aux_bytes && !is_area(ring->aux_bytes, ring->page_bytes)) ||
	    control.data_offset != ring->page_bytes || control.aux_offset != ring->page_bytes + ring->data_bytes ||
	    (uint64_t)st.st_size != ring->page_bytes + ring->data_bytes + ring->aux_bytes)
		return -EINVAL;
	return 0;
}

/*
 * Requires a non-blocking eventfd: a write to anything else goes elsewhere and may block the
 * writer.
 */
static int check_wake_fd(int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]"; /* proc_pid_fd(5) */
	char path[sizeof("/proc/self/fd/") + 10], link[sizeof(eventfd)];
	int flags = op_sys_fcntl(fd, F_GETFL, 0);
	ssize_t nr;

	if (flags < 0)
		return flags;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	nr = op_sys_readlinkat(AT_FDCWD, path, link, sizeof(link));
	if (nr < 0)
		return (int)nr;
	return nr == sizeof(eventfd) - 1 && !memcmp(link, eventfd, (size_t)nr) && flags & O_NONBLOCK ? 0 : -EINVAL;
}

int op_mring_attach(int fd, int wake_fd, struct op_mring *ret_ring)
{
	struct op_mring ring = { .fd = -1, .wake_fd = -1, .page_bytes = (size_t)sysconf(_SC_PAGESIZE) };
	int err;

	err = op_sys_fcntl(fd, F_GET_SEALS, 0);
	if (err < 0)
		return err;
	if ((err & SEALS) != SEALS)
		return -EINVAL;
	ring.fd = err = op_sys_fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (err < 0)
		return err;
	ring.wake_fd = err = op_sys_fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
	if (err >= 0)
		err = check_wake_fd(ring.wake_fd);
	if (err >= 0)
		err = take_sizes(&ring);
	if (err >= 0)
		err = map_ring(&ring);
	if (err < 0) {
		op_mring_destroy(&ring);
		return err;
	}
	*ret_ring = ring;
	return 0;
}

int op_mring_reader(const struct op_mring *ring, struct op_ring *ret_reader)
{
	uint8_t *bounce = aligned_alloc(8, OP_RECORD_BYTES_MAX);

	if (!bounce)
		return -ENOMEM;
	*ret_reader = (struct op_ring){
		.k_control = ring->control,
		.k_data = ring->data,
		.data_bytes = ring->data_bytes,
		.bounce = bounce,
		.tail = ring->flags & OP_MRING_OVERWRITE ? 0 : op_load_relaxed(&ring->control->data_tail) & ~(uint64_t)7,
		.flags = OP_RING_GAPS | (ring->flags & OP_MRING_OVERWRITE ? OP_RING_BACKWARD : 0) |
			 (ring->flags & OP_MRING_OWN_WRITER ? 0 : OP_RING_COPY),
		.floor = ring->flags & OP_MRING_OVERWRITE ? &ring->shared->floor : NULL,
	};
	return 0;
}

void op_mring_wake_every(const struct op_mring *ring, uint64_t every, bool records)
{
	op_store_relaxed(&ring->shared->wake, every ? op_min_u64(every, INT64_MAX / 2) << 1 | records : 0);
}

void op_mring_wake_clear(const struct op_mring *ring)
{
	uint64_t value;
	ssize_t nr = op_sys_read_now(ring->wake_fd, &value, sizeof(value));

	(void)nr; /* -EAGAIN: it was not readable */
}

uint64_t op_mring_dropped(const struct op_mring *ring)
{
	return op_load_relaxed(&ring->shared->dropped);
}

/* A dead party may have left any state. The use by the other party goes on. */
static void free_aux(const struct op_mring *ring, enum op_aux_state of_other)
{
	uint32_t state = op_load_relaxed(&ring->shared->aux_state);

	/* N, pairs with M, on behalf of the dead party. */
	if (state != of_other)
		op_unclaim(&ring->shared->aux_state, state);
}

void op_mring_reader_died(const struct op_mring *ring)
{
	free_aux(ring, OP_AUX_WRITING);
}

void op_mring_writer_died(const struct op_mring *ring)
{
	free_aux(ring, OP_AUX_COPYING);
	/*
	 * L, pairs with K in op_aux_writer_open and op_mring_writer_open: our stores for the dead
	 * writer are done before.
	 */
	op_store_release(&ring->shared->aux_owner, 0);
	op_store_release(&ring->shared->owner, 0);
}

void op_mring_close_fds(struct op_mring *ring)
{
	if (ring->wake_fd >= 0)
		close(ring->wake_fd);
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = ring->wake_fd = -1;
}

void op_mring_destroy(struct op_mring *ring)
{
	if (!ring || !ring->page_bytes)
		return;
	if (ring->control)
		op_sys_munmap(ring->control, map_bytes(ring));
	op_mring_close_fds(ring);
	*ring = (struct op_mring){ 0 };
}

/*
 * The dropped records that LOST records report, also when a writer died between two stores of
 * report_loss.
 */
static uint64_t reported_so_far(const struct op_mring_writer *writer)
{
	bool reached = (int64_t)(writer->head - op_load_relaxed(&writer->shared->reported_at)) >= 0;

	return op_load_relaxed(reached ? &writer->shared->reported : &writer->shared->reported_before);
}

/*
 * aux_head moves (T) before data_head reaches the record that names the bytes (B). When a writer
 * died in between, its bytes are taken back, and only the gap is reported. The next writer does
 * this before it commits anything: afterwards data_head has passed the position of that record. The
 * order of these stores serves a writer that dies here.
 */
static void take_back_unnamed(const struct op_mring_writer *writer)
{
	struct op_mring_shared *shared = writer->shared;
	int64_t distance = (int64_t)(writer->head - op_load_relaxed(&shared->aux_at));

	if (writer->flags & OP_MRING_OVERWRITE ? distance <= 0 : distance >= 0)
		return;
	op_store_relaxed(&writer->control->aux_head, op_load_relaxed(&shared->aux_before));
	op_store_relaxed(&shared->aux_left_out, 1);
	op_compiler_fence();
	op_store_relaxed(&shared->aux_at, writer->head);
}

int op_mring_writer_open(const struct op_mring *ring, struct op_mring_writer *ret_writer)
{
	struct op_mring_writer writer = {
		.control = ring->control,
		.shared = ring->shared,
		.data = ring->data,
		.mask = ring->data_bytes - 1,
		.page_bytes = (uint32_t)ring->page_bytes,
		.data_bytes = ring->data_bytes,
		.flags = ring->flags,
		.wake_fd = ring->wake_fd,
		.credit = INT64_MAX,
	};
	uint64_t reported;

	/* K, pairs with L: the previous writer has stored everything. */
	if (!op_claim(&ring->shared->owner, 1))
		return -EBUSY;
	writer.head = op_load_relaxed(&ring->control->data_head) & ~(uint64_t)7;
	take_back_unnamed(&writer);
	writer.limit = writer.head;
	writer.tail = op_load_relaxed(&ring->control->data_tail);
	if (writer.head - writer.tail > ring->data_bytes)
		writer.tail = writer.head - ring->data_bytes;
	reported = reported_so_far(&writer);
	op_store_relaxed(&ring->shared->reported_before, reported);
	op_compiler_fence();
	op_store_relaxed(&ring->shared->reported, reported);
	writer.pending = op_load_relaxed(&ring->shared->dropped) - reported;
	*ret_writer = writer;
	return 0;
}

void op_mring_writer_close(struct op_mring_writer *writer)
{
	/* L, pairs with K in op_mring_writer_open. */
	op_store_release(&writer->shared->owner, 0);
}

/*
 * Loads data_tail. A position that is not between the last one and the head is invalid and ignored.
 */
static void load_tail(struct op_mring_writer *writer)
{
	/*
	 * A, pairs with D in op_ring_end: the reader has loaded the bytes that we overwrite from
	 * now on.
	 */
	uint64_t tail = op_load_acquire(&writer->control->data_tail);

	if (tail - writer->tail > writer->head - writer->tail)
		writer->bad_tails++;
	else
		writer->tail = tail;
}

static struct position position_up(const struct op_mring_writer *writer, uint64_t head, size_t nr_bytes, bool in_page)
{
	uint64_t page_end = (head | (writer->page_bytes - 1)) + 1;
	uint64_t start = in_page && page_end - head < nr_bytes ? page_end : head;

	return (struct position){ .start = start, .next = start + nr_bytes, .gap_from = head, .gap_to = start };
}

static struct position position_down(const struct op_mring_writer *writer, size_t nr_bytes, bool in_page)
{
	uint64_t page_start = (writer->head - 1) & ~(uint64_t)(writer->page_bytes - 1);
	uint64_t end = in_page && writer->head - page_start < nr_bytes ? page_start : writer->head;

	return (struct position){ .start = end - nr_bytes, .next = end - nr_bytes, .gap_from = end, .gap_to = writer->head };
}

static void take_position(struct op_mring_writer *writer, const struct position *position, size_t nr_bytes)
{
	memset(writer->data + (position->gap_from & writer->mask), 0, position->gap_to - position->gap_from);
	writer->record = (void *)(writer->data + (position->start & writer->mask));
	writer->nr_bytes = (uint32_t)nr_bytes;
	writer->next = position->next;
}

/*
 * The commit of the LOST record and the number that it reports become valid in one step, also when
 * the writer dies in between: until data_head reaches reported_at, reported_before is valid. No
 * step shows a third value.
 */
static void report_loss(struct op_mring_writer *writer, const struct position *position)
{
	struct op_mring_shared *shared = writer->shared;
	uint64_t reported = reported_so_far(writer);
	struct lost_record *lost;

	take_position(writer, position, sizeof(*lost));
	lost = (void *)writer->record;
	*lost = (struct lost_record){ .header.type = PERF_RECORD_LOST, .nr = writer->pending };
	op_store_relaxed(&shared->reported_before, reported);
	op_compiler_fence();
	op_store_relaxed(&shared->reported, reported);
	op_compiler_fence();
	op_store_relaxed(&shared->reported_at, writer->next);
	op_compiler_fence();
	op_store_relaxed(&shared->reported, reported + writer->pending);
	op_mring_commit(writer);
	writer->pending = 0;
}

/*
 * -EMSGSIZE for a record that even an empty ring refuses, at any head and with a LOST record before
 * it.
 */
static int check_size(const struct op_mring_writer *writer, size_t nr_bytes, bool in_page)
{
	size_t most = writer->flags & OP_MRING_OVERWRITE ? 0 : OP_MRING_LOST_BYTES;

	if (nr_bytes < sizeof(struct perf_event_header) || nr_bytes % 8)
		return -EINVAL;
	if (nr_bytes > OP_MRING_RECORD_MAX || (in_page && nr_bytes > writer->page_bytes))
		return -EMSGSIZE;
	if (in_page)
		most = 2 * most + nr_bytes - 8; /* the gaps in front of both */
	return nr_bytes + most > writer->data_bytes ? -EMSGSIZE : 0;
}

static int reserve_down(struct op_mring_writer *writer, size_t nr_bytes, bool in_page, struct perf_event_header **ret_record)
{
	struct position position = position_down(writer, nr_bytes, in_page);
	uint64_t touched = writer->head - op_load_relaxed(&writer->shared->floor);

	/*
	 * Stored before the bytes are touched. The reader looks when the writer stands still or is
	 * dead, so the order of the compiler is enough. A cancelled reservation may have touched
	 * more.
	 */
	if (touched < writer->head - position.start || touched > writer->data_bytes)
		op_store_relaxed(&writer->shared->floor, position.start);
	op_compiler_fence();
	take_position(writer, &position, nr_bytes);
	writer->limit = position.next;
	*ret_record = writer->record;
	return 0;
}

void op_mring_wake_now(struct op_mring_writer *writer)
{
	uint64_t one = 1;
	ssize_t nr;
	int flags;

	writer->wake_due = false;
	/* Another process may have cleared O_NONBLOCK and filled it: then it is not to be woken. */
	flags = op_sys_fcntl(writer->wake_fd, F_GETFL, 0);
	if (flags < 0 || !(flags & O_NONBLOCK))
		return;
	nr = op_sys_write(writer->wake_fd, &one, sizeof(one));
	(void)nr; /* -EAGAIN: it is readable already */
}

static void wake_reader(struct op_mring_writer *writer)
{
	writer->wake_due = true;
	if (!writer->wakes_later)
		op_mring_wake_now(writer);
}

/* Counts a record that found no room. Wakes the reader once until it returns space. */
int op_mring_drop(struct op_mring_writer *writer)
{
	op_store_relaxed(&writer->shared->dropped, op_load_relaxed(&writer->shared->dropped) + 1);
	writer->pending++;
	writer->limit = writer->head;
	if (op_load_relaxed(&writer->shared->wake) && writer->told_full_at != writer->tail + 1) {
		wake_reader(writer);
		writer->told_full_at = writer->tail + 1;
	}
	return -ENOSPC;
}

/*
 * Finds room for the record, and for a pending LOST record before it. False: the unread records
 * leave too little.
 */
static bool find_position(struct op_mring_writer *writer, size_t nr_bytes, bool in_page, struct position *ret_lost,
			  struct position *ret_position)
{
	load_tail(writer);
	*ret_lost = position_up(writer, writer->head, writer->pending ? OP_MRING_LOST_BYTES : 0, in_page);
	*ret_position = position_up(writer, ret_lost->next, nr_bytes, in_page);
	return ret_position->next - writer->tail <= writer->data_bytes;
}

bool op_mring_has_room_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page)
{
	struct position lost, position;

	if (check_size(writer, nr_bytes, in_page) < 0)
		return false;
	if (writer->flags & OP_MRING_OVERWRITE)
		return true;
	if (!find_position(writer, nr_bytes, in_page, &lost, &position))
		return false;
	/* A pending LOST record has to go through op_mring_reserve_slow. */
	if (!writer->pending)
		writer->limit = writer->tail + writer->data_bytes;
	return true;
}

int op_mring_reserve_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page, struct perf_event_header **ret_record)
{
	struct position lost, position;
	int err = check_size(writer, nr_bytes, in_page);

	if (err < 0)
		return err;
	if (writer->flags & OP_MRING_OVERWRITE)
		return reserve_down(writer, nr_bytes, in_page, ret_record);
	if (!find_position(writer, nr_bytes, in_page, &lost, &position))
		return op_mring_drop(writer);
	if (writer->pending)
		report_loss(writer, &lost);
	take_position(writer, &position, nr_bytes);
	writer->limit = writer->tail + writer->data_bytes;
	*ret_record = writer->record;
	return 0;
}

/* The credit is used up, or the reader has changed `wake`. */
void op_mring_wake(struct op_mring_writer *writer)
{
	uint64_t wake = op_load_relaxed(&writer->shared->wake);

	if (wake != writer->wake) {
		writer->wake = wake;
		writer->credit = wake ? (int64_t)(wake >> 1) - (wake & 1 ? 1 : (int64_t)writer->nr_bytes) : INT64_MAX;
	}
	if (writer->credit > 0)
		return;
	wake_reader(writer);
	writer->credit = wake ? (int64_t)(wake >> 1) : INT64_MAX;
}
