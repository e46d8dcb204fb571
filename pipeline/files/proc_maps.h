/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What /proc says of the memory of a process: the lines of its maps that matter here, its
 * executable and where it is. Reading it waits for the process's locks, which a file system of its
 * own may keep, so a looker does it.
 *
 * Sync thread only, except opd_proc_maps_read.
 */
#ifndef OPD_PROC_MAPS_H
#define OPD_PROC_MAPS_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/files/mount_view.h"

#define OPD_PROC_MAPS_ALL UINT64_MAX
#define OPD_COMM_BYTES    16u /* of the name of a process, with its NUL */

struct opd_proc_wanted {
	uint32_t pid;
	/*
	 * the maps of another thread will do; a process whose main thread has ended has none itself
	 */
	bool any_thread;
	bool with_place; /* the executable, the place and the name as well */
	/*
	 * lines up to the first mapping of a file that begins there; OPD_PROC_MAPS_ALL: all. Lines
	 * of memory that is neither executable nor a file are left out, except that of the last
	 * address.
	 */
	uint64_t until;
};

struct opd_proc_maps {
	uint32_t tid;   /* the process, or the thread whose maps these are */
	bool has_place; /* place was read */
	uint64_t mnt_ns, user_ns;
	char comm[OPD_COMM_BYTES]; /* "": unknown, or empty */
	bool is_kernel_thread;     /* the kernel says so: no process can claim it */
	/* in `text`, which has the root, the executable and the maps, each with a NUL */
	uint32_t exe_at, maps_at;
	struct op_text text;
};

/* Reads in this process, which may hang. 0; -ENOENT: there is no such process; -ENOMEM. */
int opd_proc_maps_read(const struct opd_proc_wanted *wanted, struct opd_proc_maps *ret_maps) OP_NONNULL OP_MUST_CHECK;

/* The answer of a looker to OPD_LOOK_MAPS. */
int opd_proc_maps_answer(const struct opd_proc_wanted *wanted, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

/*
 * The same by a looker when there is one. `view` is that of the process as far as it is known. The
 * caller calls opd_proc_maps_free after 0. -EBUSY: there is no answer.
 */
int opd_proc_maps_get(struct opd_lookers *lookers, const struct opd_mount_view *view, const struct opd_proc_wanted *wanted,
		      struct opd_proc_maps *ret_maps) OP_NONNULL_ARGS(3, 4) OP_MUST_CHECK;

static inline const char *opd_proc_maps_exe(const struct opd_proc_maps *maps)
{
	return maps->text.data + maps->exe_at;
}

/* The lines. The caller may change them. */
static inline char *opd_proc_maps_lines(const struct opd_proc_maps *maps)
{
	return maps->text.data + maps->maps_at;
}

/* False: it was not read. */
bool opd_proc_maps_place(const struct opd_proc_maps *maps, struct opd_place *ret_place) OP_NONNULL;

void opd_proc_maps_free(struct opd_proc_maps *maps) OP_NONNULL;

#endif
