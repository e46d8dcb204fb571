/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers for `opcontrol --status` and the service manager. Sync thread only. */
#ifndef OPD_STATUS_H
#define OPD_STATUS_H

#include "daemon/jobs/recording.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/control/protocol.h"

/* Sums over all events, for OPD_JOB_PULSE. */
struct opd_pulse {
	uint64_t now_ns; /* op_now_ns() */
	uint64_t taken, stored, filtered, lost_kernel, lost;
	uint32_t nr_cpus; /* online */
	bool profiling;
};

/*
 * The payload of STATUS in the job (libop/control/protocol.h). `fixed` has the fields that do not
 * change while the daemon runs. 0 or -ENOMEM.
 */
int opd_status_make(struct opd_recording *recording, const struct op_config *config, const struct op_status *fixed,
		    struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* The payload of PULSE in the job. 0 or -ENOMEM. */
int opd_pulse_make(const struct opd_capture *capture, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

#endif
