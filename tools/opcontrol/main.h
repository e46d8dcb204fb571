/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opcontrol in parts: main.c has the table of options and the command line, requests.c and
 * save.c what each request does,
 * setup.c the setup options, setup_file.c keeps them, daemon.c finds and ends the daemon, spawn.c
 * starts it, unit.c has systemd do so, status.c shows what it says. Functions print their own errors, one line each, and return 0 or 1, the exit code, unless said otherwise.
 */
#ifndef OPCONTROL_H
#define OPCONTROL_H

#include <sys/types.h>

#include "libop/control/config.h"
#include "libop/control/protocol.h"
#include "libop/control/daemonrc.h"

#define CTL_PROBE_MS 30000

struct ctl_option;
struct ctl_daemon;

struct opcontrol {
	struct op_config config;
	const char *config_path;
	bool config_explicit; /* --config or the environment named it */
	bool verbose, json;
	bool changes_setup;      /* setup options are given: a setup that is damaged is no obstacle */
	struct op_setup setup;   /* as ctl_load_setup read it */
	bool setup_waits;        /* in daemonrc_new, for the daemon's end */
	const char *session_dir; /* of the setup, else of the configuration */
	const char *request_arg; /* of the request; NULL: it takes none */
};

/* A setup option as it was given. */
struct ctl_edit {
	const struct ctl_option *option;
	char *arg; /* NULL: it takes none */
};

/* The setup while options are applied to it. */
struct ctl_editing {
	struct op_setup *setup;
	bool has_events, has_default; /* --event was given in this call */
};

typedef int (*ctl_edit_fn)(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);

/* One row of the table of options. */
struct ctl_option {
	const char *name;
	char letter;        /* 0: none */
	const char *arg;    /* what the argument is called; NULL: none */
	const char *values; /* for completion, as opr_completion_write reads them; NULL: `arg` says it */
	const char *help;
	int (*run)(struct opcontrol *ctl); /* a request, one in a call */
	bool anybody;                      /* the request needs no root */
	bool undemanding;                  /* the request goes on with a setup that cannot be read */
	ctl_edit_fn edit;                  /* a setup option */
	size_t offset;                     /* of the field in struct op_setup, for edits that share a function */
	bool optional;                     /* the argument may be left out */
	bool inert;                        /* kept, but of no effect in opd */
	const char *ignored;               /* not even kept: why */
};

/* ---- main.c ---- */

/* Prints "opcontrol: ..." on stderr; 1. */
int ctl_fail(const char *format, ...) OP_PRINTF(1, 2);

/* Prints "opcontrol: warning: ..." on stderr. */
void ctl_warn(const char *format, ...) OP_PRINTF(1, 2);

/* Prints a line when --verbose was given. */
void ctl_verbose(const struct opcontrol *ctl, const char *format, ...) OP_PRINTF(2, 3);

/* ---- requests.c ---- */

int ctl_run_init(struct opcontrol *ctl);
int ctl_run_start_daemon(struct opcontrol *ctl);
int ctl_run_start(struct opcontrol *ctl);
int ctl_run_dump(struct opcontrol *ctl);
int ctl_run_stop(struct opcontrol *ctl);
int ctl_run_shutdown(struct opcontrol *ctl);
int ctl_run_deinit(struct opcontrol *ctl);
int ctl_run_reset(struct opcontrol *ctl);
int ctl_run_save(struct opcontrol *ctl); /* save.c */
int ctl_run_list_events(struct opcontrol *ctl);

/* --apply: ends the daemon and starts another one with the setup that waits, or else with the one of before, which profiles if this one did. */
int ctl_restart_daemon(struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* Says that the setup waits for the end of the daemon; 0. */
int ctl_say_setup_waits(void);

/* ---- daemon.c ---- */

enum ctl_presence {
	CTL_ABSENT,  /* no daemon */
	CTL_PRESENT, /* it answers */
	CTL_MUTE,    /* it holds the lock of the session directory, but does not answer, or in another version of the protocol */
};

struct ctl_daemon {
	enum ctl_presence presence;
	pid_t pid;
	bool ending;   /* it was asked to end, by whomever */
	char *other_version; /* mute: it is one, in words */
	void *payload; /* of STATUS, when present */
	const struct op_status *status;
	const struct op_ledger_event *events;
	const struct op_ledger_cpu *cpus;
};

/* Looks for the daemon. As root it removes a stale lock, and says so (not with --json). To be freed with ctl_daemon_free on 0. */
int ctl_find_daemon(const struct opcontrol *ctl, struct ctl_daemon *ret_daemon) OP_MUST_CHECK;
void ctl_daemon_free(struct ctl_daemon *daemon);

/* Says that the daemon is there but does not answer, or that it is ending; 1. */
int ctl_fail_mute(const struct opcontrol *ctl, const struct ctl_daemon *daemon);

/* Sends a request without payload in its reply, and says which one when it fails. */
int ctl_request(const struct opcontrol *ctl, enum op_control_command command) OP_MUST_CHECK;

/*
 * Ends the daemon: asks, then insists, as long as it holds the lock of its session directory. That somebody else has asked is as good. *ret_ended: it is gone, also when it could not write the last samples, did not take the
 * request, or had to be killed, which makes it 1.
 */
int ctl_end_daemon(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended) OP_MUST_CHECK;

/* ---- unit.c ---- */

#define CTL_DAEMON_ENV "OPD_DAEMON" /* names the program, so that the daemon is not systemd's */

/* Whether the daemon of this call is systemd's. */
bool ctl_is_systemds(const struct opcontrol *ctl);

enum ctl_unit {
	CTL_UNIT_NONE,   /* the daemon is not systemd's, or nothing is known of it: the socket says whether there is one */
	CTL_UNIT_SLEEPS, /* it does not run, and a question at the socket would start it: systemd listens there (opd.socket) */
	CTL_UNIT_RUNS,
	CTL_UNIT_ENDS, /* it runs; a question that it does not take any more would start the next one */
};

/* What systemd says of opd.service; *ret_pid: its process when it runs or ends, else 0. */
enum ctl_unit ctl_look_at_unit(const struct opcontrol *ctl, pid_t *ret_pid);

/* Where systemd listens for the daemon: no more, until the socket or the daemon is started again. 0, or 1 after a line of its own. */
int ctl_close_socket(const struct opcontrol *ctl) OP_MUST_CHECK;

/* Starts the service, and waits until it is ready. */
int ctl_start_unit(const struct opcontrol *ctl) OP_MUST_CHECK;

/* ---- spawn.c ---- */

#define CTL_ANOTHER 2

/* Starts the daemon, which must not run, and waits until it is ready. CTL_ANOTHER: one that somebody else has started meanwhile answers. */
int ctl_spawn_daemon(const struct opcontrol *ctl) OP_MUST_CHECK;

/* ---- setup_file.c ---- */

/* Says what cannot be done to a session directory, or to the file `name` in it (NULL: the directory), and what helps; 1. */
int ctl_fail_session(const struct opcontrol *ctl, const char *what, const char *dir, const char *name, int err);

/*
 * Reads the setup that is in force: daemonrc, after daemonrc_new took its place when root asks and no daemon runs. One that is damaged
 * is an error that says what helps, but not when the call changes the setup: ctl_save_setup begins anew then.
 */
int ctl_load_setup(struct opcontrol *ctl, bool may_promote) OP_MUST_CHECK;

/* The setup in force, to go back to, to be freed with op_setup_free; false: it is damaged or cannot be read. */
bool ctl_note_setup(const struct opcontrol *ctl, struct op_setup *ret_setup) OP_MUST_CHECK;

/* Has it in force again, in place of what has followed. */
int ctl_restore_setup(struct opcontrol *ctl, const struct op_setup *setup) OP_MUST_CHECK;

/*
 * Applies the edits to the setup and keeps it: in daemonrc, or in daemonrc_new while a daemon runs. Nothing is kept when one
 * is wrong, and nothing is left of what was made for it when it cannot be kept. From a damaged setup it begins with the defaults, and
 * warns.
 */
int ctl_save_setup(struct opcontrol *ctl, bool daemon_runs, const struct ctl_edit *edits, size_t nr_edits) OP_MUST_CHECK;

/* ---- setup.c ---- */

int ctl_edit_event(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_separate(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_vmlinux(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_no_vmlinux(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_session_dir(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_callgraph(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_number(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_image(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_nothing(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);
int ctl_edit_kernel_range(struct ctl_editing *editing, const struct ctl_option *option, const char *arg);

/* To be called when all options are applied: what they say together. 0, or 1 after a message. */
int ctl_check_counts(const struct op_setup *setup);

/* ---- status.c ---- */

/* Prints the state, the setup and the ledger, as text or JSON. */
int ctl_show_status(const struct opcontrol *ctl, const struct ctl_daemon *daemon) OP_MUST_CHECK;

#endif
