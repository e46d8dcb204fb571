/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/kernel_pair.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/sys.h"

/* Whose anchors: a CPU's need privilege, those of the calling thread do not. */
#define OF_THE_CPU  (-1)
#define OF_THE_TASK 0

static int open_anchor(int cpu, pid_t whose, size_t watermark_bytes, bool backward)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)watermark_bytes,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
		.write_backward = backward,
		.exclude_kernel = whose == OF_THE_TASK,
	};

	return op_sys_perf_event_open(&attr, whose, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int op_ring_direct(int event_fd, int anchor_fd)
{
	return op_sys_ioctl(event_fd, PERF_EVENT_IOC_SET_OUTPUT, (void *)(intptr_t)anchor_fd);
}

static int open_ring(int cpu, pid_t whose, size_t data_bytes, size_t watermark_bytes, bool backward, int *ret_fd,
		     struct op_ring *ret_ring)
{
	int fd = open_anchor(cpu, whose, watermark_bytes, backward);
	int err;

	if (fd < 0)
		return fd;
	err = backward ? op_ring_map_backward(fd, data_bytes, ret_ring) : op_ring_map(fd, data_bytes, ret_ring);
	if (err < 0) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

/* An anchor without a ring of its own. It never writes; directing it waits for a grace period. */
static int open_settler(int cpu, int anchor_fd, struct op_ring_pair *pair)
{
	int fd = open_anchor(cpu, OF_THE_CPU, 0, true);
	int err;

	if (fd < 0)
		return fd;
	err = op_ring_direct(fd, anchor_fd);
	if (err < 0) {
		close(fd);
		return err;
	}
	pair->overwrite = true;
	pair->settler_fd = fd;
	return 0;
}

static int open_pair(int cpu, pid_t whose, size_t data_bytes, size_t watermark_bytes, bool overwrite, struct op_ring_pair *ret_pair)
{
	struct op_ring_pair pair = { .anchor_fds = { -1, -1 } };
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++)
		err = open_ring(cpu, whose, data_bytes, watermark_bytes, overwrite, &pair.anchor_fds[i], &pair.rings[i]);
	if (!err && overwrite)
		err = open_settler(cpu, pair.anchor_fds[pair.write], &pair);
	if (err) {
		op_ring_pair_close(&pair);
		return err;
	}
	*ret_pair = pair;
	return 0;
}

int op_ring_pair_open(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
{
	return open_pair(cpu, OF_THE_CPU, data_bytes, watermark_bytes, false, ret_pair);
}

int op_ring_pair_open_own(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
{
	return open_pair(cpu, OF_THE_TASK, data_bytes, watermark_bytes, false, ret_pair);
}

int op_ring_open_own(int cpu, size_t data_bytes, size_t watermark_bytes, int *ret_fd, struct op_ring *ret_ring)
{
	return open_ring(cpu, OF_THE_TASK, data_bytes, watermark_bytes, false, ret_fd, ret_ring);
}

int op_ring_pair_open_overwrite(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
{
	return open_pair(cpu, OF_THE_CPU, data_bytes, watermark_bytes, true, ret_pair);
}

int op_ring_pair_attach(struct op_ring_pair *pair, int event_fd)
{
	int err;

	if (!op_grow(&pair->event_fds, &pair->events_capacity, pair->nr_events + 1))
		return -ENOMEM;
	err = op_ring_direct(event_fd, pair->anchor_fds[pair->write]);
	if (err < 0)
		return err;
	pair->event_fds[pair->nr_events++] = event_fd;
	return 0;
}

static void count_swap(struct op_swap_counts *counts, uint64_t wait_ns)
{
	counts->swaps++;
	counts->wait_ns += wait_ns;
	counts->longest_wait_ns = op_max_u64(counts->longest_wait_ns, wait_ns);
}

int op_ring_pair_swap(struct op_ring_pair *pair)
{
	unsigned int next = !pair->write;
	uint64_t begin_ns = op_now_ns();
	int err = 0;

	for (size_t i = 0; i < pair->nr_events; i++) {
		int result = op_ring_direct(pair->event_fds[i], pair->anchor_fds[next]);

		if (result < 0 && !err)
			err = result;
	}
	pair->write = next;
	pair->since_ns[next] = begin_ns;
	count_swap(&pair->counts, op_now_ns() - begin_ns);
	return err;
}

int op_ring_pair_settle(struct op_ring_pair *pair)
{
	uint64_t begin_ns = op_now_ns();
	const __u64 *k_head;
	uint64_t head;
	int err;

	if (!pair->overwrite)
		return -EINVAL;
	k_head = &op_ring_pair_read_ring(pair)->k_control->data_head;
	head = op_load_relaxed(k_head);
	/*
	 * Y, pairs with X in the kernel's perf_output_begin: a handler that had loaded the read
	 * ring has ended before this returns.
	 */
	err = op_ring_direct(pair->settler_fd, pair->anchor_fds[pair->write]);
	pair->settles++;
	pair->settle_wait_ns += op_now_ns() - begin_ns;
	pair->moved += op_load_relaxed(k_head) != head;
	return err;
}

int op_ring_pair_snapshot(struct op_ring_pair *pair, struct op_ring **ret_ring)
{
	int err = pair->overwrite ? op_ring_pair_swap(pair) : -EINVAL;

	if (err < 0)
		return err;
	err = op_ring_pair_settle(pair);
	if (err < 0)
		return err;
	*ret_ring = op_ring_pair_read_ring(pair);
	return 0;
}

void op_swap_counts_add_read(struct op_swap_counts *counts, uint64_t nr_bytes, uint64_t nr_records)
{
	counts->bytes += nr_bytes;
	counts->records += nr_records;
	counts->last_bytes = nr_bytes;
	counts->last_records = nr_records;
	counts->most_bytes = op_max_u64(counts->most_bytes, nr_bytes);
	counts->most_records = op_max_u64(counts->most_records, nr_records);
}

void op_swap_counts_add(struct op_swap_counts *counts, const struct op_swap_counts *other)
{
	counts->swaps += other->swaps;
	counts->wait_ns += other->wait_ns;
	counts->longest_wait_ns = op_max_u64(counts->longest_wait_ns, other->longest_wait_ns);
	counts->bytes += other->bytes;
	counts->records += other->records;
	counts->most_bytes = op_max_u64(counts->most_bytes, other->most_bytes);
	counts->most_records = op_max_u64(counts->most_records, other->most_records);
	counts->late += other->late;
	if (!other->bytes)
		return;
	counts->last_bytes = other->last_bytes;
	counts->last_records = other->last_records;
}

void op_ring_pair_close(struct op_ring_pair *pair)
{
	if (!pair)
		return;
	for (size_t i = 0; i < 2; i++) {
		op_ring_unmap(&pair->rings[i]);
		if (pair->anchor_fds[i] >= 0)
			close(pair->anchor_fds[i]);
	}
	if (pair->overwrite)
		close(pair->settler_fd);
	free(pair->event_fds);
	*pair = (struct op_ring_pair){ .anchor_fds = { -1, -1 } };
}
