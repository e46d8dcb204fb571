/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The setup that `opcontrol --setup` keeps: KEY=value lines in oprofile's order in SESSION-DIR/daemonrc, or in daemonrc_new
 * while a daemon runs (it takes that place when no daemon does). Source: oprofile 0.9.9, doc/format.md.
 */
#ifndef OP_DAEMONRC_H
#define OP_DAEMONRC_H

#include <sys/types.h>

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/base/text.h"

#define OP_SETUP_NAME "daemonrc"
#define OP_SETUP_NEW_NAME "daemonrc_new"
#define OP_SETUP_ANYBODY ((uid_t)-1)

struct op_setup {
	char *session_dir;			/* SESSION_DIR: where samples go; NULL: where daemonrc lies */
	uid_t session_dir_owner;		/* who must be the owner of session_dir; OP_SETUP_ANYBODY: whoever is */
	struct op_event events[OP_EVENTS_MAX];	/* CHOSEN_EVENTS_0 ... */
	size_t nr_events;			/* NR_CHOSEN; 0: the default event */
	bool separate_lib, separate_kernel, separate_thread, separate_cpu, separate_cgroup;
	char *vmlinux;				/* VMLINUX; NULL: none */
	uint32_t callgraph;			/* CALLGRAPH: callers of a sample that are followed at most */
	uint64_t buffer_size, buffer_watershed, cpu_buffer_size; /* kept for oprofile's scripts, of no effect */
	char *image_filter;			/* IMAGE_FILTER: images with commas between, whose samples alone are kept; NULL: all */
	char *kernel_range;			/* KERNEL_RANGE: kept, NULL: none */
};

/* opd's defaults: libraries and kernel separated, default event. To be freed with op_setup_free. */
void op_setup_init(struct op_setup *setup) OP_NONNULL;

/*
 * Reads SESSION-DIR/daemonrc below dir_fd into an initialised setup. A missing file leaves the defaults. 0; -EINVAL and *ret_why
 * ("PATH:LINE: ...", or "PATH: ..." for the file as a whole, freed by the caller); another -errno, which is not about what is in
 * the file.
 *
 * What somebody else than root or the caller's user has written (op_file_read_own) may name a directory of that user's only, or it is -EINVAL: opd becomes the
 * owner of its session directory, and root's opcontrol writes there. opd looks at session_dir_owner once more when the directory is open.
 */
int op_setup_read(struct op_setup *setup, int dir_fd, const char *name, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether op_setup_read would take the setup once it is written to this file: session_dir may be one that who answers for the file must not name. 0, -EINVAL and *ret_why as there, or
 * another -errno.
 */
int op_setup_check(const struct op_setup *setup, int dir_fd, const char *name, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* Writes the file whole: under another name, synced, then renamed. 0 or -errno. */
int op_setup_write(const struct op_setup *setup, int dir_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/* daemonrc_new, when there is one, becomes daemonrc. To be called while no daemon runs, before op_setup_read. 0 or -errno. */
int op_setup_promote(int dir_fd) OP_MUST_CHECK;

/* True when the file can hold the value: letters, digits and - _ : , . / only. Names of images may have a + as well, as libstdc++.so has. */
bool op_setup_value_ok(const char *value) OP_NONNULL;
bool op_setup_images_ok(const char *images) OP_NONNULL;

void op_setup_free(struct op_setup *setup);

/*
 * Sets what --separate= says: none, library, kernel, thread, cpu, cgroup, all, with commas between. 0; -EINVAL and
 * *ret_bad_word, which the caller frees; -ENOMEM.
 */
int op_setup_set_separate(struct op_setup *setup, const char *words, char **ret_bad_word) OP_NONNULL OP_MUST_CHECK;

#endif
