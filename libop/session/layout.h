/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The names in a session directory. Source: doc/format.md. parts.h lists the files of a session.
 *
 *   SESSION-DIR/abi                        layout of the sample files, for opimport
 *   SESSION-DIR/daemonrc, daemonrc_new     the setup (libop/control/daemonrc.h)
 *   SESSION-DIR/lock                       pid of the daemon
 *   SESSION-DIR/profiling                  "on" or "off": the last opcontrol --start or --stop
 *   SESSION-DIR/paused                     empty: the next daemon starts paused, once
 *   SESSION-DIR/tmp/                       sample files that are being made
 *   SESSION-DIR/samples/<session>/         a session: sample files in {root}/ and {kern}/, the
 *                                          ledger for the genuine tools in stats/, the table
 *                                          of images in dcookies
 *   SESSION-DIR/samples/current/           the session that is being written
 *   SESSION-DIR/samples/<session>/packed   many sample files in one (pack.h)
 *   SESSION-DIR/samples/<session>/ledger   its time span and its losses (ledger_file.h)
 *   SESSION-DIR/samples/<session>/stacks   its call stacks (libop/stacks)
 *   SESSION-DIR/samples/<session>/timeline what was added in each minute (libop/timeline)
 *   SESSION-DIR/samples/<session>/cgroup/  its samples once more, by cgroup (libop/odb/mangle.h)
 */
#ifndef OP_SESSION_LAYOUT_H
#define OP_SESSION_LAYOUT_H

#include "libop/base/compiler.h"

#define OP_SESSION_DIR_DEFAULT OPD_LOCALSTATEDIR "/lib/oprofile"
#define OP_SESSION_CURRENT     "samples/current"
#define OP_SESSION_TMP         "tmp"

/* In tmp/. A session that is being removed, followed by its name. */
#define OP_SESSION_REMOVED "removed-"

/* The dcookie table of a session that is being closed, followed by a number. */
#define OP_SESSION_CLOSED_COOKIES OP_SESSION_TMP "/dcookies-closed"

#define OP_SESSION_STACKS     "stacks" /* in a session */
#define OP_SESSION_TIMELINE   "timeline" /* in a session (libop/timeline/format.h) */
#define OP_SESSION_TMP_TIMELINE OP_SESSION_TMP "/timeline-hours" /* the same, being merged */
#define OP_SESSION_TMP_SHORT OP_SESSION_TMP "/timeline-current" /* the same, being shortened */
#define OP_SESSION_TMP_STACKS OP_SESSION_TMP "/stacks" /* the same, being made */

/* A sample file or a JIT object that is being made; with suffixes the file that it replaces. */
#define OP_SESSION_TMP_SAMPLE OP_SESSION_TMP "/sample"

/* In stats/: the addresses of kernel symbols were hidden. */
#define OP_STATS_KERNEL_HIDDEN "kernel_hidden"

#define OP_SESSION_LOCK      "lock"
#define OP_SESSION_PROFILING "profiling"
#define OP_SESSION_PAUSED    "paused"

/* A tool removed the lock of a killed daemon: the next daemon still checks the session. */
#define OP_SESSION_UNCLEAN "unclean"

/* An empty file in a closed session: it may not be on the disk yet. */
#define OP_SESSION_CLOSING "closing"

#endif
