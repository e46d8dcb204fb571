/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes minutes of the timeline to the disk, in a thread in the background: a disk may take
 * seconds, and the rings cannot wait. Minutes are written in their order.
 *
 *   call                               sync thread   others
 *   opd_minutes_state                       x           x
 *   all others                              x
 */
#ifndef OPD_MINUTES_H
#define OPD_MINUTES_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "libop/base/compiler.h"
#include "libop/timeline/append.h"
#include "pipeline/timeline/collect.h"

#define OPD_MINUTES_WAITING_MAX 4u

struct opd_minutes_state {
	uint64_t nr_written;
	uint64_t nr_lost;    /* could not be written, or had no room in the queue */
	uint64_t nr_bytes;   /* written */
	int last_error;      /* 0: none */
};

struct opd_minute_waiting {
	struct op_minute minute;
	int dir_fd;
	uint64_t nr_resets; /* of struct opd_minutes when it came */
};

/* What a session that goes on keeps of its minutes. */
struct opd_minutes_keep {
	int session_fd;      /* -1: everything is kept */
	uint64_t keep_ns;    /* TimelineKeep= */
	uint64_t max_bytes;  /* of the file; 0: no limit */
};

struct opd_minutes {
	struct opd_background *background;
	struct op_encode_limits limits;
	pthread_mutex_t opening; /* held while a file is opened; taken before `lock` */
	pthread_mutex_t lock; /* protects everything below, up to the thread's */
	struct opd_minute_waiting waiting[OPD_MINUTES_WAITING_MAX]; /* the oldest first */
	size_t nr_waiting;
	bool is_running;      /* a thread writes */
	uint64_t growth;      /* bytes that opd_minutes_host()->take_growth has not taken */
	uint64_t nr_resets;   /* protected by both locks */
	struct opd_minutes_keep keep;
	struct opd_minutes_state state;
	/* the thread's, or nobody's: of the last session */
	struct op_timeline_writer *writer;
	uint64_t writer_device, writer_inode; /* of its directory */
	bool has_lost;        /* of that session, since the last minute that was written */
	/* end of the last block and bytes of the file, when old minutes were last looked for */
	uint64_t looked_boot_ns, looked_bytes;
};

void opd_minutes_init(struct opd_minutes *minutes, struct opd_background *background) OP_NONNULL;

/* No thread is in the background any more. Writes what no thread could be started for. */
void opd_minutes_free(struct opd_minutes *minutes) OP_NONNULL;

/*
 * From now on minutes older than keep_ns become hours, also in a session that never ends, and the
 * file has about max_bytes at most. session_fd stays the caller's.
 */
void opd_minutes_set_keep(struct opd_minutes *minutes, const struct opd_minutes_keep *keep) OP_NONNULL;

/* What the collector of minutes is given. */
struct opd_minute_host opd_minutes_host(struct opd_minutes *minutes) OP_NONNULL;

/*
 * The current session is about to be emptied: drops its minutes. One that is being written makes no
 * file from now on; what it writes is in the file that will be removed. Waits only while a file is
 * opened.
 */
void opd_minutes_reset(struct opd_minutes *minutes) OP_NONNULL;

void opd_minutes_state(struct opd_minutes *minutes, struct opd_minutes_state *ret_state) OP_NONNULL;

#endif
