/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The programs in the kernel that sample waits and add to samples of STACKS (program.bpf.c), as opd
 * sees them: the maps and links that opd-waits loaded. Those of waits run as long as the links are
 * open.
 *
 * Loading: the main thread, before there are others. Then the sync thread only.
 */
#ifndef OPD_WAITS_PROGRAM_H
#define OPD_WAITS_PROGRAM_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/runtimes/shared.h"
#include "pipeline/waits/shared.h"

#define OPD_WAITS_ENV "OPD_WAITS" /* environment: another program than opd-waits */

struct opd_wait_program;

/*
 * Starts opd-waits and takes what it loads, within 20 seconds. The caller has CAP_BPF and
 * CAP_PERFMON, and may give up CAP_BPF afterwards. with_waits: the programs at switches, too. 0,
 * also where the kernel refuses a part (opd_wait_program_why_not); -errno, and `why` has the
 * reason.
 */
int opd_wait_program_load(bool with_waits, struct opd_wait_program **ret_program, struct op_text *why) OP_NONNULL OP_MUST_CHECK;

/* Ends the program in the kernel. NULL is allowed. */
void opd_wait_program_free(struct opd_wait_program *program);

/* Its map `control`. */
struct opd_wait_control *opd_wait_program_control(struct opd_wait_program *program) OP_NONNULL;

/* The counters of a CPU; NULL: it has none. */
const struct opd_wait_cpu *opd_wait_program_cpu(const struct opd_wait_program *program, uint32_t cpu) OP_NONNULL;

/* NULL: it has the part (enum opd_wait_part). Else why it has not; "": it was not wanted. */
const char *opd_wait_program_why_not(const struct opd_wait_program *program, uint32_t part) OP_NONNULL;

/* Whether it samples waits. */
bool opd_wait_program_has_waits(const struct opd_wait_program *program) OP_NONNULL;

/* The descriptor of on_sample, for opd_capture_run_before_stacks. It stays the program's. */
int opd_wait_program_of_samples(const struct opd_wait_program *program) OP_NONNULL;

/* Its maps of runtimes (pipeline/runtimes/shared.h). They stay the program's. */
struct opd_interpreter_control *opd_wait_program_interpreters(const struct opd_wait_program *program,
							      int *ret_images_fd) OP_NONNULL;

/* From now on the records of this CPU go to this event. 0 or -errno. */
int opd_wait_program_direct(struct opd_wait_program *program, uint32_t cpu, int event_fd) OP_NONNULL OP_MUST_CHECK;

/* The counters of deep stacks of a CPU; NULL: it has none. From now on, its notes go there. */
const struct opd_deep_cpu *opd_wait_program_deep_cpu(const struct opd_wait_program *program, uint32_t cpu) OP_NONNULL;
int opd_wait_program_direct_notes(struct opd_wait_program *program, uint32_t cpu, int event_fd) OP_NONNULL OP_MUST_CHECK;

/* Empties the rings of kicks. In each turn. */
void opd_wait_program_take_kicks(struct opd_wait_program *program) OP_NONNULL;

/*
 * A new reading of the threads that wait: a descriptor, from which struct opd_wait_open are read
 * until the end. Or -errno.
 */
int opd_wait_program_read(const struct opd_wait_program *program) OP_NONNULL OP_MUST_CHECK;

#endif
