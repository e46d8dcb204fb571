/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/trusted_clock.h"

#include <inttypes.h>

#include "libop/base/log.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/sys.h"

#define HOUR_NS     (3600 * (uint64_t)OP_NS_PER_S)
#define HOLD_NS     (24 * HOUR_NS)
#define NEAR_NS     (7 * 24 * HOUR_NS)
#define NEAR_MIN_NS (60 * (uint64_t)OP_NS_PER_S)
/* a daemon that is killed may lose this part of the near range of trusted time */
#define WRITE_SHARE 8
#define MAX_BYTES   256
#define MAX_SECONDS (UINT64_MAX / OP_NS_PER_S)

/* ---- the file ---- */

/* A damaged file counts as none. */
static void read_file(struct opd_trusted_clock *age, int session_fd)
{
	uint64_t trusted, claimed, held;
	char *text, end;

	if (op_file_read_own(session_fd, OPD_TRUSTED_CLOCK_FILE, MAX_BYTES, &text, NULL) < 0)
		return;
	if (sscanf(text, "opd-clock 1 trusted %" SCNu64 " claimed %" SCNu64 " held %" SCNu64 " %c", &trusted, &claimed, &held,
		   &end) == 3 &&
	    trusted < MAX_SECONDS && claimed < MAX_SECONDS && held < MAX_SECONDS) {
		age->trusted_ns = trusted * OP_NS_PER_S;
		age->claimed_ns = claimed * OP_NS_PER_S;
		age->held_ns = held * OP_NS_PER_S;
	}
	free(text);
}

static int write_file(struct opd_trusted_clock *age, int session_fd)
{
	char text[MAX_BYTES];
	int err;

	snprintf(text, sizeof(text), "opd-clock 1\ntrusted\t%" PRIu64 "\nclaimed\t%" PRIu64 "\nheld\t%" PRIu64 "\n",
		 age->trusted_ns / OP_NS_PER_S, age->claimed_ns / OP_NS_PER_S, age->held_ns / OP_NS_PER_S);
	err = op_file_publish(session_fd, OPD_TRUSTED_CLOCK_FILE, text, 0644);
	age->is_written = !err;
	if (!err)
		age->written_boot_ns = age->boot_ns;
	return err;
}

/* ---- the clocks ---- */

static uint64_t near_ns(uint64_t keep_ns)
{
	return op_max_u64(op_min_u64(keep_ns / 2, NEAR_NS), NEAR_MIN_NS);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void begin(struct opd_trusted_clock *age, int session_fd, uint64_t wall_ns, uint64_t newest_end_ns)
{
	read_file(age, session_fd);
	if (!age->trusted_ns)
		age->trusted_ns = newest_end_ns ? newest_end_ns : wall_ns;
}

static void trust_clock(struct opd_trusted_clock *age, uint64_t wall_ns)
{
	if (age->claimed_ns)
		op_log(OP_LOG_NOTICE, "the clock is trusted again: opd removes sessions by their age");
	age->trusted_ns = wall_ns;
	age->claimed_ns = age->held_ns = 0;
}

static void distrust_clock(struct opd_trusted_clock *age, uint64_t wall_ns, uint64_t hold_ns)
{
	if (!age->claimed_ns)
		op_log(OP_LOG_WARNING,
			"the clock is %" PRIu64 " hours %s the last trusted time: opd removes no session by its age "
			"until the clock has been steady for %" PRIu64
			" minutes",
			distance(wall_ns, age->trusted_ns) / HOUR_NS, wall_ns > age->trusted_ns ? "ahead of" : "behind",
			hold_ns / (60 * (uint64_t)OP_NS_PER_S));
	age->claimed_ns = op_max_u64(wall_ns, 1);
}

static bool is_trusted(struct opd_trusted_clock *age, uint64_t wall_ns, uint64_t elapsed_ns, uint64_t keep_ns)
{
	uint64_t near = near_ns(keep_ns), hold_ns = op_min_u64(HOLD_NS, keep_ns);

	age->trusted_ns += elapsed_ns;
	if (age->claimed_ns)
		age->held_ns = distance(wall_ns, age->claimed_ns + elapsed_ns) <= near ? age->held_ns + elapsed_ns : 0;
	if (distance(wall_ns, age->trusted_ns) <= near || (age->claimed_ns && age->held_ns >= hold_ns)) {
		trust_clock(age, wall_ns);
		return true;
	}
	distrust_clock(age, wall_ns, hold_ns);
	return false;
}

int opd_trusted_clock_look(struct opd_trusted_clock *age, int session_fd, uint64_t keep_ns, uint64_t newest_end_ns,
			   uint64_t *ret_now_ns)
{
	uint64_t wall_ns = op_sys_wall_ns(), boot_ns = op_sys_boot_ns(), elapsed_ns = age->boot_ns ? boot_ns - age->boot_ns : 0;
	bool was_distrusted, trusted;

	if (!age->boot_ns)
		begin(age, session_fd, wall_ns, newest_end_ns);
	was_distrusted = age->claimed_ns;
	age->boot_ns = boot_ns;
	trusted = is_trusted(age, wall_ns, elapsed_ns, keep_ns);
	*ret_now_ns = trusted ? wall_ns : 0;
	if (age->is_written && was_distrusted == !trusted &&
	    boot_ns - age->written_boot_ns < op_min_u64(near_ns(keep_ns) / WRITE_SHARE, HOUR_NS))
		return 0;
	return write_file(age, session_fd);
}
