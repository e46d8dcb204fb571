/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The setup of `opcontrol --setup`: lines KEY=value in SESSION-DIR/daemonrc, in the order of
 * oprofile. While a daemon runs, a new setup is in daemonrc_new, which replaces daemonrc when no
 * daemon runs. Source: oprofile 0.9.9, doc/format.md.
 *
 * A new key needs a field here, a row in daemonrc.c, and its text in doc/format.md.
 */
#ifndef OP_DAEMONRC_H
#define OP_DAEMONRC_H

#include <sys/types.h>

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/base/text.h"
#include "libop/control/stack_setup.h"

#define OP_SETUP_NAME "daemonrc"
#define OP_SETUP_NEW_NAME "daemonrc_new"
#define OP_SETUP_ANYBODY ((uid_t)-1)

struct op_setup {
	/* SESSION_DIR: where samples go; NULL: the directory of daemonrc */
	char *session_dir;
	/* the required owner of session_dir; OP_SETUP_ANYBODY: any */
	uid_t session_dir_owner;
	struct op_event events[OP_EVENTS_MAX];	/* CHOSEN_EVENTS_0 ... */
	size_t nr_events;			/* NR_CHOSEN; 0: the default event */
	bool separate_lib, separate_kernel, separate_thread, separate_cpu, separate_cgroup;
	bool separate_name, separate_user; /* process-name, user */
	char *vmlinux;				/* VMLINUX; NULL: none */
	/* CALLGRAPH: maximum number of callers of a sample */
	uint64_t callgraph;
	struct op_stack_setup stacks; /* STACKS */
	/* without effect, for oprofile's scripts */
	uint64_t buffer_size, buffer_watershed, cpu_buffer_size;
	/* IMAGE_FILTER: keep samples of these images only, with commas between; NULL: all */
	char *image_filter;
	char *kernel_range;			/* KERNEL_RANGE: without effect; NULL: none */
};

/* opd's defaults: libraries and kernel separated, default event. To be freed with op_setup_free. */
void op_setup_init(struct op_setup *setup) OP_NONNULL;

/*
 * Reads the file `name` below dir_fd into an initialised setup. A missing file leaves the defaults.
 * 0; -EINVAL and *ret_why, freed by the caller: "PATH:LINE: ...", or "PATH: ..." for the whole
 * file; another -errno from reading.
 *
 * A file that another user than root or the caller's has written (op_file_read_own) may name only a
 * session directory of that user; else -EINVAL. opd and root's opcontrol write there. opd checks
 * session_dir_owner again when the directory is open.
 */
int op_setup_read(struct op_setup *setup, int dir_fd, const char *name, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether op_setup_read accepts the setup from this file: the owner of the file may name only his
 * own session directory. 0, -EINVAL and *ret_why as there, or another -errno.
 */
int op_setup_check(const struct op_setup *setup, int dir_fd, const char *name, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* Writes the whole file under another name, syncs and renames it. 0 or -errno. */
int op_setup_write(const struct op_setup *setup, int dir_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Renames daemonrc_new, if there is one, to daemonrc. Call it while no daemon runs, before
 * op_setup_read. 0 or -errno.
 */
int op_setup_promote(int dir_fd) OP_MUST_CHECK;

/*
 * Whether the file can hold a value: letters, digits and - _ : , . / only. Names of images may have
 * a +, too: libstdc++.so.
 */
bool op_setup_value_ok(const char *value) OP_NONNULL;
bool op_setup_images_ok(const char *images) OP_NONNULL;

void op_setup_free(struct op_setup *setup);

/*
 * Sets the words of --separate=: none, library, kernel, thread, cpu, cgroup, process-name, user,
 * all, with commas between. 0; -EINVAL and *ret_bad_word, freed by the caller; -ENOMEM.
 */
int op_setup_set_separate(struct op_setup *setup, const char *words, char **ret_bad_word) OP_NONNULL OP_MUST_CHECK;

#endif
