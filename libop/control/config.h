/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The configuration file opd.conf(5): lines Key=value, comments with #. Unknown keys are reported
 * with their line and skipped.
 *
 * A new key needs a field here, a row in config.c, and its text in doc/opd.conf.5 and
 * init/opd.conf.in.
 */
#ifndef OP_CONFIG_H
#define OP_CONFIG_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

#define OP_CONFIG_PATH_DEFAULT OPD_SYSCONFDIR "/opd/opd.conf"
#define OP_CONFIG_ENV "OPD_CONFIG" /* environment: another path */
/* tables of images for walks of stacks; opreport reads names from there */
#define OP_TABLE_DIR_DEFAULT OPD_LOCALSTATEDIR "/cache/opd/tables"
#define OP_CONTROL_SOCKET_DEFAULT OPD_RUNSTATEDIR "/opd/control"

struct op_config {
	char *session_dir;	   /* SessionDir= */
	char *control_socket;	   /* ControlSocket= */
	char *vmlinux;		   /* Vmlinux=, NULL: none */
	/* RingSize=, data bytes of one ring, a power of two of pages; 0: auto */
	uint64_t ring_bytes;
	uint64_t sideband_bytes;   /* SidebandSize=, the same */
	uint64_t watermark_bytes;  /* Watermark=, 0: a quarter of the ring */
	uint64_t wakeup_records;   /* WakeupRecords=, 0: woken by bytes, the watermark */
	uint64_t visit_ms;	   /* VisitInterval= */
	uint64_t max_open_files;   /* MaxOpenFiles=, 0: 4096 */
	uint64_t max_sample_files; /* MaxSampleFiles=, in a session; 0: no limit */
	uint64_t max_images;	   /* MaxImages=, with samples, in a session */
	uint64_t session_interval_us; /* SessionInterval=, 0: sessions are not rotated */
	uint64_t session_keep_us;     /* SessionKeep=, 0: no limit of age */
	uint64_t session_max_use;     /* SessionMaxUse=, bytes; 0: no limit */
	uint64_t session_keep_free;   /* SessionKeepFree=, bytes */
	uint64_t timeline_interval_us; /* TimelineInterval=, 0: no timeline */
	uint64_t timeline_keep_us;     /* TimelineKeep=, 0: minutes stay minutes */
	uint64_t stack_max_use;       /* StackMaxUse=, bytes of the stacks of a session */
	uint64_t build_ids;	      /* BuildIds=, 0 or 1 */
	char *table_dir;	      /* TableDir=, NULL: none */
	uint64_t table_max_use;	      /* TableMaxUse=, bytes; 0: no limit */
	uint64_t stacks;	      /* Stacks=, 0 or 1 */
	uint64_t stack_rate_hz;	      /* StackRate= */
	uint64_t stack_bytes;	      /* StackBytes=, 0: no copy */
	uint64_t deep_stack_budget;   /* DeepStackBudget=, bytes in a second; 0: no deep copies */
	uint64_t stack_ring_max_use;  /* StackRingMaxUse=, bytes of the rings of all CPUs */
	uint64_t bpf;		      /* Bpf=, 0 or 1 */
	uint64_t waits;		      /* Waits=, 0 or 1 */
	uint64_t wait_budget;	      /* WaitBudget=, bytes of records in a second */
	uint64_t runtimes;	      /* Runtimes=, a bit for each enum op_runtime */
	uint64_t profile_on_start;    /* ProfileOnStart=, 0 or 1 */
};

/* Defaults, to be freed with op_config_free. 0 or -ENOMEM. */
int op_config_init(struct op_config *config) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads a file over the config, then PATH.d/ *.conf in the order of their names. `must_exist`
 * false: a missing file is no error. Each fault (unknown key, bad value) adds a line "PATH:LINE:
 * ..." to `warnings` and is skipped. 0, or -errno from opening and reading PATH and PATH.d; a file
 * in PATH.d that cannot be read is a warning.
 */
int op_config_read(struct op_config *config, const char *path, bool must_exist, struct op_text *warnings)
	OP_NONNULL OP_MUST_CHECK;

/*
 * The path to read: `option` (--config), else $OPD_CONFIG, else the default; *ret_explicit: not the
 * default.
 */
const char *op_config_path(const char *option, bool *ret_explicit) OP_NONNULL_ARGS(2);

/*
 * After the file was read again: adds the names of changed keys that wait for the next start, with
 * commas between.
 */
void op_config_waiting(const struct op_config *config, const struct op_config *fresh, struct op_text *keys) OP_NONNULL;

/* Takes over the keys that take effect at once. They are numbers. */
void op_config_adopt(struct op_config *config, const struct op_config *fresh) OP_NONNULL;

void op_config_free(struct op_config *config);

#endif
