/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/parse.h"
#include "libop/event_ibs.h"
#include "libop/session_ledger.h"
#include "libop/sys.h"

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
