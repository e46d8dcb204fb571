/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/stats_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"
#include "libop/events/event_list.h"
#include "libop/session/ledger_file.h"
#include "libop/base/sys.h"

const char *op_stats_name(enum op_stats_number number)
{
	static const char *const names[OP_STATS_NR] = {
#define X(name) [OP_STATS_##name] = #name,
		OP_STATS_NUMBERS(X)
#undef X
	};

	return names[number];
}

void op_stats_add(const struct op_session_ledger *ledger, uint64_t numbers[OP_STATS_NR])
{
	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];

		/* The genuine tools know sample files alone. */
		if (op_event_is_stacks(event->role))
			continue;
		if (op_event_is_taken((enum op_event_role)event->role))
			numbers[OP_STATS_total_samples] += event->received + event->lost_kernel;
		numbers[OP_STATS_lost_records_by_kernel] += event->lost_kernel;
		numbers[OP_STATS_lost_samplefile] += op_ledger_lost(event);
	}
}

int op_stats_read(int dir_fd, const char *path, uint64_t *ret_value)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	char text[32];
	ssize_t nr;

	if (fd < 0)
		return fd;
	nr = op_sys_read(fd, text, sizeof(text) - 1);
	close(fd);
	if (nr <= 0)
		return nr < 0 ? (int)nr : -EINVAL;
	text[nr] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return op_parse_u64(text, 0, UINT64_MAX, ret_value) ? -EINVAL : 0;
}

int op_stats_open(int dir_fd, bool make)
{
	int err = make ? op_file_make_dir_below(dir_fd, "stats", 0755) : 0;

	if (err && err != -EEXIST)
		return err;
	return op_sys_openat(dir_fd, "stats", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

int op_stats_write(int stats_fd, enum op_stats_number number, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	return op_file_publish(stats_fd, op_stats_name(number), text, 0644);
}

int op_stats_raise(int dir_fd, const struct op_session_ledger *ledger)
{
	uint64_t wanted[OP_STATS_NR] = { 0 }, found;
	int stats_fd = op_stats_open(dir_fd, true), err = 0;

	if (stats_fd < 0)
		return stats_fd;
	op_stats_add(ledger, wanted);
	for (size_t i = 0; i < OP_STATS_NR && !err; i++) {
		const char *name = op_stats_name((enum op_stats_number)i);

		if (op_stats_read(stats_fd, name, &found) || found < wanted[i])
			err = op_stats_write(stats_fd, (enum op_stats_number)i, wanted[i]);
	}
	close(stats_fd);
	return err;
}
