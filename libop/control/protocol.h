/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The control protocol between opcontrol and opd: a Unix socket of type SOCK_SEQPACKET, a request
 * and a reply are one message each, in host byte order. A request is a struct op_control_request. A
 * reply is a struct op_control_reply and payload_bytes more: the message of an error, or the
 * payload of OP_CONTROL_COMMANDS.
 *
 * In all versions, a request begins with magic, version and command, and a reply has this form. opd
 * answers a request of another version with its own version and -EPROTO, and opcontrol reports both
 * versions.
 *
 * A new request is a row of OP_CONTROL_COMMANDS and a handler in daemon/. A new number of the
 * status is a field of struct op_status and a new OP_CONTROL_VERSION.
 */
#ifndef OP_CONTROL_H
#define OP_CONTROL_H

#include "libop/control/arc_stats.h"
#include "libop/control/deep_stats.h"
#include "libop/control/runtime_stats.h"
#include "libop/base/compiler.h"
#include "libop/control/ibs_stats.h"
#include "libop/control/jit_stats.h"
#include "libop/session/ledger.h"
#include "libop/session/wait_states.h"

#define OP_CONTROL_MAGIC 0x4443504fu /* "OPCD" */
#define OP_CONTROL_VERSION 24 /* changes with any struct below */
#define OP_CONTROL_MAX_REPLY (256 * 1024)

/*
 * Number, name, whether members of the group may send it, whether the request has a name, bytes of
 * the request, bytes of the reply's payload, and its further bytes for each event and each CPU
 * (nr_events and nr_cpus of struct op_status at its start). All lengths are exact. Numbers are
 * never reused.
 */
#define OP_CONTROL_COMMANDS(X)                                                                                                     \
	X(1, STATUS, true, false, 224, sizeof(struct op_status), sizeof(struct op_ledger_event), sizeof(struct op_ledger_cpu))     \
	X(2, START, false, false, 224, 0, 0, 0)                                                                                    \
	X(3, STOP, false, false, 224, 0, 0, 0)                                                                                     \
	X(4, DUMP, true, false, 224, 0, 0, 0)                                                                                      \
	X(5, RESET, false, false, 224, 0, 0, 0)                                                                                    \
	X(6, SHUTDOWN, false, false, 224, 0, 0, 0)                                                                                 \
	X(7, SAVE, false, true, 224, 0, 0, 0)

enum op_control_command {
#define X(number, name, ...) OP_CONTROL_##name = number,
	OP_CONTROL_COMMANDS(X)
#undef X
};

struct op_control_request {
	uint32_t magic;
	uint16_t version;
	uint16_t command;
	uint32_t reserved[2]; /* 0 */
	char name[208];       /* SAVE: of the session; else "". Padded with zeros */
};

struct op_control_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t command;
	int32_t error; /* 0 or -errno */
	uint32_t payload_bytes;
};

/* An image in which walks of stacks end that are not complete. */
struct op_stack_stop {
	char image[240];
	uint64_t end; /* enum op_stack_end */
	uint64_t nr;  /* walks; 0: the list ends */
};

#define OP_STACK_STOPS 8

enum op_daemon_state { OP_DAEMON_PAUSED, OP_DAEMON_RUNNING };

struct op_status {
	uint32_t pid;
	uint32_t state;	       /* enum op_daemon_state */
	uint32_t nr_events;
	uint32_t nr_cpus;
	uint32_t separate_lib, separate_kernel, separate_thread, separate_cpu;
	uint64_t uptime_ns;
	uint64_t running_ns;   /* time in state RUNNING, summed */
	uint64_t cpu_ns;       /* CPU time of the daemon */
	uint64_t rss_bytes;    /* resident set of the daemon */
	uint64_t nr_files;     /* sample files open */
	/* sample files of the session, and their limit; 0: no limit */
	uint64_t nr_session_files, max_session_files;
	uint64_t nr_processes; /* processes known */
	uint64_t nr_images;    /* images known */
	uint64_t nr_images_counted; /* those with samples in the session */
	uint64_t bounds[OP_NR_BOUNDS];
	uint64_t dumps;	       /* dumps completed */
	uint64_t ibs[OP_NR_IBS_STATS]; /* libop/control/ibs_stats.h */
	uint64_t jit[OP_NR_JIT]; /* JIT code: libop/control/jit_stats.h */
	/*
	 * times that the mappings of a running process were read again: code moved without a record
	 */
	uint64_t maps_reread;
	uint64_t rescan_left; /* steps until /proc was read again after a loss in the side band */
	uint64_t ring_bytes;	  /* of one ring, two for every CPU */
	uint64_t ring_need_bytes; /* that a ring must hold by the plan */
	uint64_t visits;	  /* to one CPU or to several at once; idle CPUs are not visited */
	uint64_t visits_ns;	  /* time in them, summed */
	/* of that, until the last swap; less than the CPUs' swap_wait_ns where swaps overlap */
	uint64_t swapping_ns;
	uint64_t turns;		  /* visits to all CPUs with something to read */
	uint64_t turn_ns;	  /* length of the last one */
	uint64_t turn_longest_ns;
	uint64_t turn_planned_ns; /* for which the rings were sized */
	uint64_t event_wait_ns;	  /* of one event in a swap, measured when opd started */
	uint32_t ring_is_auto;	  /* 1: RingSize=auto */
	uint32_t swap_threads;	  /* that swap at the same time, at most */
	uint32_t has_pmu;
	uint32_t separate_cgroup;
	uint32_t separate_name, separate_user;
	uint64_t nr_programs; /* process names and users with samples */
	uint64_t nr_cgroups; /* with samples of their own */
	uint64_t not_split;  /* samples that are not stored by cgroup, too */
	uint64_t of_unknown_cgroups; /* samples that are stored for the unknown cgroup */
	uint64_t callgraph;  /* maximum number of callers of a sample; 0: none */
	uint64_t arcs[OP_NR_ARC_STATS]; /* libop/control/arc_stats.h */
	/* of the setup, and what fits into the rings; 0: no stacks, or those of --stacks=event */
	uint64_t stack_wanted_hz, stack_rate_hz;
	uint64_t stack_bytes; /* copied from a stack, at most; 0: none */
	uint64_t stack_ring_bytes; /* of one ring for STACKS, two for every CPU; 0: none */
	/* in this session: stacks that were walked, their frames, and the time for it */
	uint64_t stack_walks, stack_frames, stack_walk_ns;
	uint64_t stacks_waiting; /* for row tables that are being made */
	struct op_stack_stop stack_stops[OP_STACK_STOPS]; /* the most walks first, about */
	uint64_t deep[OP_NR_DEEP_STATS]; /* libop/control/deep_stats.h */
	char no_deep[256]; /* why there are no deep copies of stacks; "": there are */
	char no_runtimes[256]; /* why Python, PHP, Perl and Ruby have no names; "": they have */
	uint64_t runtimes[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS]; /* libop/control/runtime_stats.h */
	uint64_t tables_made, tables_from_cache, tables_failed; /* row tables of images */
	uint64_t tables_waiting; /* images whose table will come */
	struct op_wait_ledger waits; /* since opd was started */
	uint64_t wait_quantum_ns; /* of a thread's waiting time one record stands for so much */
	char no_waits[256];	  /* why none are sampled; "": they are */
	char session_dir[4096];
	char vmlinux[4096];    /* "" : none */
	char image_filter[4096]; /* "" : none; what is longer is cut */
	char kernel_note[256]; /* how kernel samples are filed, in words */
};

/*
 * Sends one request to the daemon at `socket_path` and waits for its reply, without a time limit
 * while the daemon lives: a dump may take long. 0 with *ret_payload (NUL-terminated, freed by the
 * caller, NULL when empty). Else an error and *ret_message, one line, freed by the caller:
 * -ECONNREFUSED, -ENOENT: no daemon; -EPROTO: not opd's protocol; -EPROTONOSUPPORT: an opd of
 * another version; -EACCES ...; or the daemon's own error.
 *
 * An error of the daemon that looks like a failed call (a missing file is -ENOENT, too) becomes
 * -EREMOTEIO.
 */
int op_control_call(const char *socket_path, enum op_control_command command, void **ret_payload, size_t *ret_payload_bytes,
		    char **ret_message) OP_NONNULL OP_MUST_CHECK;

/* The same with a time limit: -ETIMEDOUT after timeout_ms. Negative: no limit. */
int op_control_call_within(const char *socket_path, enum op_control_command command, int timeout_ms, void **ret_payload,
			   size_t *ret_payload_bytes, char **ret_message) OP_NONNULL OP_MUST_CHECK;

/* SAVE: the daemon closes its current session under that name. As op_control_call. */
int op_control_save(const char *socket_path, const char *name, char **ret_message) OP_NONNULL OP_MUST_CHECK;

/*
 * Checks a STATUS payload and gives its parts, pointers into it. 0 or -EPROTO.
 */
int op_control_status_parts(const void *payload, size_t payload_bytes, const struct op_status **ret_status,
			    const struct op_ledger_event **ret_events, const struct op_ledger_cpu **ret_cpus)
	OP_NONNULL OP_MUST_CHECK;

/* "START" ... for a number; NULL for none. */
const char *op_control_name(unsigned int command);

/* Whether members of group opd may send it; root always may. */
bool op_control_group_may(unsigned int command);

enum op_control_soundness {
	OP_CONTROL_SOUND,
	OP_CONTROL_MALFORMED,       /* not of this protocol */
	OP_CONTROL_OTHER_VERSION, /* version and command are valid */
};

/* Checks a request of nr_bytes; the struct can be read, also when nr_bytes is less or more. */
enum op_control_soundness op_control_check_request(const struct op_control_request *request, size_t nr_bytes) OP_NONNULL;

#endif
