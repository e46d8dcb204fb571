/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the file of an image: in the archive, below --root, in the directories of --image-path, for
 * kernel modules, also compressed ones, in /lib/modules of the running kernel, and by its build-id
 * in the memory of living processes (tools/fetch/living.h).
 */
#ifndef OPR_IMAGE_PATH_H
#define OPR_IMAGE_PATH_H

#include "libop/odb/mangle.h"
#include "tools/common/archive.h"
#include "tools/common/words.h"
#include "tools/fetch/living.h"
#include "tools/symbols/image_identity.h"

enum opr_image_state {
	OPR_IMAGE_FOUND,
	OPR_IMAGE_HAS_NO_FILE, /* an anonymous region or a pseudo-image */
	OPR_IMAGE_NOT_FOUND,
	OPR_IMAGE_UNREADABLE,
	OPR_IMAGE_REPLACED,     /* another file is at the path (image_identity.h) */
	OPR_IMAGE_OTHER_KERNEL, /* the kernel or module that is there has another build-id */
	OPR_IMAGE_AMBIGUOUS,    /* several files in the search directories match */
};

/* The word for a state in the facts of an archive (tools/common/archive.h). */
const char *opr_image_state_word(enum opr_image_state state);

struct opr_found_file {
	char *base; /* within path */
	char *path;
};

#define OPR_IMAGE_PATH_ENTRIES_MAX 250000 /* files and directories of one search directory */

struct opr_finder {
	const char *root;                  /* NULL: none */
	const struct opr_archive *archive; /* a list, searched first; NULL: none */
	struct opr_found_file *files;      /* in the search directories, sorted by base name */
	size_t nr_files, capacity;
	const struct opr_words *dirs; /* the search directories */
	bool has_dirs;
	bool modules_listed;
	struct opr_living living; /* images that are nowhere else */
};

/*
 * Lists the search directories; one that does not exist is an error. File systems of the kernel, as
 * /proc, are left out; of a very large directory the rest is left out with a warning. To be freed
 * with opr_finder_free in any case. 0 or -errno.
 */
int opr_finder_init(struct opr_finder *finder, const char *root, const struct opr_words *search_dirs)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * Finds the file of an image called `name` (opr_image_name). An image that is told apart is found
 * where a file agrees with its identity: at its path, or with a build-id in the search directories,
 * also in one that is a build-id cache of perf: DIR/.build-id/xx/yyyy/elf.
 * An image that the archive calls absent is found in the search directories only. 0 with *ret_state
 * and, when it is OPR_IMAGE_FOUND, *ret_path, freed by the caller; -ENOMEM.
 */
int opr_finder_find(struct opr_finder *finder, const struct op_image_name *image, const char *name,
		    const struct opr_identity *identity, enum opr_image_state *ret_state, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/*
 * For OPR_IMAGE_OTHER_KERNEL: the kernel or module that is there and its build-id, "the running one
 * 0123...". Freed by the caller; NULL: no memory, or not known.
 */
char *opr_finder_other_kernel(const struct opr_finder *finder, const char *name,
			      const struct opr_identity *identity) OP_NONNULL OP_MUST_CHECK;

/*
 * The path of a found file for messages: of a copy of a mapped file the path below /proc that it
 * was read from, else the path itself, and in an archive that on its host.
 */
const char *opr_finder_shown(const struct opr_finder *finder, const char *path) OP_NONNULL;

/* Warns the user of a state that opr_finder_find returned. */
void opr_finder_warn(const struct opr_finder *finder, enum opr_image_state state, const char *name,
		     const struct opr_identity *identity) OP_NONNULL;

void opr_finder_free(struct opr_finder *finder);

/* True for JIT code with an object file: an anonymous region whose name is a path. */
bool opr_is_jit_object(const struct op_image_name *image, const char *name) OP_NONNULL;

#endif
