/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What opd asks opd-events, over a socket of AF_UNIX (SOCK_SEQPACKET): one request, one answer. The
 * event is of a CPU and of all processes, alone in its group. Both ends are of one package, so
 * there are no versions: a message of another length ends the connection.
 */
#ifndef OP_EVENT_REQUEST_H
#define OP_EVENT_REQUEST_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"

/* where opd-events waits: beside the control socket of opd */
#define OP_EVENT_SOCKET_NAME "events"

struct op_event_request {
	int32_t cpu;
	uint32_t reserved; /* 0 */
	struct perf_event_attr attr;
};

/* 0, and the descriptor comes with it (SCM_RIGHTS); or -errno of perf_event_open(2). */
struct op_event_answer {
	int32_t err;
};

/* Beyond this level kernels of Debian and Ubuntu want CAP_SYS_ADMIN for each event. */
#define OP_PARANOID_PATH      "/proc/sys/kernel/perf_event_paranoid"
#define OP_PARANOID_MAX       2

/*
 * Bit fields of perf_event_attr, which <linux/perf_event.h> may not name yet (Linux 6.19). The
 * first bit field is the lowest bit on a little-endian machine, else the highest.
 */
#define OP_ATTR_FLAG(nr)      (UINT64_C(1) << (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (nr) : 63 - (nr)))
#define OP_ATTR_FLAGS_OFFSET  (offsetof(struct perf_event_attr, read_format) + sizeof(uint64_t))
#define OP_ATTR_DEFER_CHAIN   OP_ATTR_FLAG(38)
#define OP_ATTR_DEFER_OUTPUT  OP_ATTR_FLAG(39)

#endif
