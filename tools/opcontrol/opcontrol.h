/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files of opcontrol share; README.md says what is in which. A function that returns an
 * int returns 0, or another value after one line to the user, unless its comment says otherwise.
 */
#ifndef OPCONTROL_H
#define OPCONTROL_H

#include <sys/types.h>

#include "libop/control/config.h"
#include "libop/control/daemonrc.h"
#include "libop/control/protocol.h"
#include "tools/common/option_table.h"

#define CTL_PROBE_MS 30000 /* how long STATUS may take */

struct ctl_option;
struct ctl_daemon;

enum ctl_format { CTL_TEXT, CTL_JSON, CTL_PROMETHEUS };

struct opcontrol {
	struct op_config config;
	const char *config_path;
	bool config_explicit; /* --config or the environment names it */
	bool verbose;
	enum ctl_format format; /* of --status */
	bool changes_setup;      /* setup options are given: they may replace a damaged setup */
	struct op_setup setup;   /* as ctl_load_setup read it */
	bool setup_waits;        /* daemonrc_new waits for the end of the daemon */
	const char *session_dir; /* of the setup, else of the configuration */
	const char *request_arg; /* of the request; "": none */
};

/* A setup option of the command line. */
struct ctl_edit {
	const struct ctl_option *option;
	char *arg; /* "": none */
};

/* The setup while options are applied to it. */
struct ctl_editing {
	struct op_setup *setup;
	bool has_events, has_default; /* --event was given in this call */
	bool adds_events;             /* --event=+EVENT was given in this call */
};

typedef int ctl_run_fn(struct opcontrol *ctl);
typedef int ctl_act_fn(struct opcontrol *ctl, const struct ctl_daemon *daemon);
typedef int ctl_edit_fn(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);

/* A row of the table of options: a request has `run` or `act`, a setup option has `edit`. */
struct ctl_option {
	/* its offset: of a request none, of a setup option that of a number in struct op_setup */
	struct opr_option row;
	ctl_run_fn *run;
	ctl_act_fn *act;  /* in the place of `run`, with the daemon */
	bool any_user;       /* the request needs no root */
	bool without_setup; /* the request works without a readable setup */
	ctl_edit_fn *edit;
	bool without_effect; /* kept in the setup, but without effect in opd */
	const char *ignored; /* why the option is not even kept; NULL: it is kept */
};

/* ---- requests.c, save.c ---- */

ctl_run_fn ctl_run_init, ctl_run_start_daemon, ctl_run_start, ctl_run_dump, ctl_run_unpack, ctl_run_list_events;
ctl_act_fn ctl_stop, ctl_shutdown, ctl_deinit, ctl_reset, ctl_save;

/* ---- history.c ---- */

ctl_run_fn ctl_run_history;

/*
 * --apply: ends the daemon and starts another one with the setup that waits. If that fails, it
 * starts one with the setup before. The new daemon profiles if this one does.
 */
int ctl_restart_daemon(struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* ---- daemon.c ---- */

enum ctl_presence {
	CTL_ABSENT,  /* there is no daemon */
	CTL_PRESENT, /* it answers */
	/* it holds the lock, but does not answer, or answers in another version of the protocol */
	CTL_NO_ANSWER,
};

struct ctl_daemon {
	enum ctl_presence presence;
	pid_t pid;
	bool ending;         /* somebody has asked it to end */
	char *other_version; /* CTL_NO_ANSWER: a message about its version, or NULL */
	void *payload;       /* of STATUS; CTL_PRESENT only, like the next */
	const struct op_status *status;
	const struct op_ledger_event *events;
	const struct op_ledger_cpu *cpus;
};

/*
 * Looks for the daemon. As root it removes a stale lock and says so, but not with --json. On
 * success the caller frees with ctl_daemon_free.
 */
int ctl_find_daemon(const struct opcontrol *ctl, struct ctl_daemon *ret_daemon) OP_MUST_CHECK;
void ctl_daemon_free(struct ctl_daemon *daemon);

/* Looks for the daemon and calls `act` with it. */
int ctl_with_daemon(struct opcontrol *ctl, ctl_act_fn *act) OP_MUST_CHECK;

/* Tells the user that the daemon does not answer, or that it is ending. Returns 1. */
int ctl_fail_no_answer(const struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* Sends a request whose reply has no payload. */
int ctl_request(const struct opcontrol *ctl, enum op_control_command command) OP_MUST_CHECK;

/*
 * Ends the daemon: by SHUTDOWN, then by signals while it holds the lock of its session directory.
 * *ret_ended is true when the daemon is gone. The function can fail all the same: the daemon could
 * not write its last samples, refused the request, or was killed.
 */
int ctl_end_daemon(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended) OP_MUST_CHECK;

/* ---- holder.c ---- */

/*
 * The daemon that holds a lock file: its pid is in the file, and it has the file open. 0: there is
 * none, or the caller may not open the file.
 */
pid_t ctl_lock_holder(const char *path) OP_MUST_CHECK;

/*
 * Whether a daemon holds a lock file, for callers who may not open it, too: then by the kernel's
 * list of locks. A caller who may not even look at the file gets true.
 */
bool ctl_lock_may_be_held(const char *path) OP_MUST_CHECK;

/* ---- unit.c ---- */

#define CTL_DAEMON_ENV "OPD_DAEMON" /* names the program; then the daemon is not systemd's */

/* True when systemd starts the daemon of this call. */
bool ctl_is_systemds(const struct opcontrol *ctl);

enum ctl_unit {
	CTL_UNIT_NONE, /* not systemd's daemon, or systemd does not say: ask at the socket */
	/* the daemon does not run; a connection to the socket would start it (opd.socket) */
	CTL_UNIT_SLEEPS,
	CTL_UNIT_RUNS,
	/* the daemon is ending; a connection to the socket would start the next one */
	CTL_UNIT_ENDS,
};

/* What systemd says of opd.service. *ret_pid: the process that runs or ends, else 0. */
enum ctl_unit ctl_unit_state(const struct opcontrol *ctl, pid_t *ret_pid);

/* Stops opd.socket, until somebody starts the socket or the daemon. */
int ctl_close_socket(const struct opcontrol *ctl) OP_MUST_CHECK;

/* Starts the service and waits until it is ready. */
int ctl_start_unit(const struct opcontrol *ctl) OP_MUST_CHECK;

/* ---- spawn.c ---- */

#define CTL_ANOTHER 2

/*
 * Starts the daemon, which must not run, and waits until it is ready. CTL_ANOTHER, without a
 * message: somebody else has started one, and that one answers.
 */
int ctl_spawn_daemon(const struct opcontrol *ctl) OP_MUST_CHECK;

/* ---- setup_file.c ---- */

/* Reports that `action` fails on a session directory, or its file `name`. Returns 1. */
int ctl_fail_session(const struct opcontrol *ctl, const char *action, const char *dir, const char *name, int err);

/*
 * Reads the setup in force, daemonrc. With may_promote, as root and without a daemon, daemonrc_new
 * first takes its place. A damaged setup is an error, but not when the call changes the setup:
 * ctl_save_setup replaces it.
 */
int ctl_load_setup(struct opcontrol *ctl, bool may_promote) OP_MUST_CHECK;

/* Reads the setup for ctl_restore_setup; freed with op_setup_free. False: it is damaged. */
bool ctl_note_setup(const struct opcontrol *ctl, struct op_setup *ret_setup) OP_MUST_CHECK;

/*
 * The daemon that has the session directory of the configuration or of the setup, whatever its
 * socket is; 0: there is none, or the caller may not look. *ret_dir: the directory, freed by the
 * caller.
 */
pid_t ctl_daemon_of_session(const struct opcontrol *ctl, char **ret_dir) OP_MUST_CHECK;

/* Puts a setup of ctl_note_setup in force again. */
int ctl_restore_setup(struct opcontrol *ctl, const struct op_setup *setup) OP_MUST_CHECK;

/*
 * Applies the edits to the setup and writes it: to daemonrc, or to daemonrc_new while a daemon
 * runs. On an error nothing is written, and directories made for it are removed. It replaces a
 * damaged setup by the defaults, and warns.
 */
int ctl_save_setup(struct opcontrol *ctl, bool daemon_runs, const struct ctl_edit *edits, size_t nr_edits) OP_MUST_CHECK;

/* ---- setup.c ---- */

ctl_edit_fn ctl_edit_event, ctl_edit_separate, ctl_edit_vmlinux, ctl_edit_no_vmlinux, ctl_edit_session_dir, ctl_edit_callgraph;
ctl_edit_fn ctl_edit_number, ctl_edit_image, ctl_edit_kernel_range, ctl_edit_stacks;
ctl_edit_fn ctl_edit_nothing; /* for an option that is ignored */

/* Checks the counts of the events, when all options are applied: stacks take longer. */
int ctl_check_counts(const struct op_setup *setup);

/* Says which events --event has replaced, and how to count both. */
void ctl_tell_replaced(const struct op_setup *before, const struct op_setup *after);

/* ---- status.c ---- */

/* Prints the state, the setup and the ledger, in the format that is wanted. */
int ctl_show_status(struct opcontrol *ctl, const struct ctl_daemon *daemon) OP_MUST_CHECK;

/* ---- prometheus.c ---- */

int ctl_show_prometheus(const struct opcontrol *ctl, const struct ctl_daemon *daemon) OP_MUST_CHECK;

/* ---- summary.c ---- */

struct ctl_history {
	size_t nr_sessions; /* that are closed */
	uint64_t begin_ns;  /* of the oldest; 0: not known */
	/* of their timelines: the oldest minute, bytes, and the time for which they are */
	uint64_t minute_ns, timeline_bytes, timeline_ns;
};

/* Adds the sessions of a directory. 0, or -errno: it cannot be read. */
int ctl_find_history(const char *session_dir, struct ctl_history *history) OP_MUST_CHECK;


/* Prints what an administrator wants to know, below the line of the state. */
void ctl_show_summary(const struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* The line about stacks: their rate, and how many are complete. */
void ctl_show_stacks(const struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* Shows how long threads waited; is_verbose: what became of all switches as well. */
void ctl_show_waits(const struct op_status *status, bool is_verbose);

#endif
