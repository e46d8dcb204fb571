/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the file of an image is: below --root, else in the directories of --image-path, kernel modules, also compressed ones, in /lib/modules of the running kernel, too. */
#ifndef OPR_IMAGES_H
#define OPR_IMAGES_H

#include "libop/odb/mangle.h"
#include "tools/common/archive.h"
#include "tools/symbols/image_identity.h"
#include "tools/common/words.h"

enum opr_image_state {
	OPR_IMAGE_FOUND,
	OPR_IMAGE_HAS_NO_FILE, /* anonymous regions and pseudo-images */
	OPR_IMAGE_NOT_FOUND,
	OPR_IMAGE_UNREADABLE,
	OPR_IMAGE_REPLACED,  /* another file is at the path of one that is told apart (image_identity.h) */
	OPR_IMAGE_OTHER_KERNEL, /* the kernel or module that is there has another build-id */
	OPR_IMAGE_AMBIGUOUS, /* more than one file in the search directories */
};

/* The word for a state in what an archive says of itself (tools/common/archive.h). */
const char *opr_image_state_word(enum opr_image_state state);

/* Which kernel or module is there instead of one with another build-id, and its own: "the running one 0123...". Freed by the caller; NULL: no memory, or it is not known. */
struct opr_finder;
char *opr_finder_other_kernel(const struct opr_finder *finder, const char *name,
			      const struct opr_identity *identity) OP_NONNULL OP_MUST_CHECK;

struct opr_found_file {
	char *base; /* within path */
	char *path;
};

struct opr_finder {
	const char *root;             /* NULL: none */
	const struct opr_archive *archive; /* where files are looked for before; NULL: none */
	struct opr_found_file *files; /* of the search directories, by base name */
	size_t nr_files, capacity;
	bool has_dirs; /* there are search directories */
	bool modules_listed;
};

/* Lists the search directories; one that does not exist is an error. To be freed with opr_finder_free in any case. 0 or -errno. */
int opr_finder_init(struct opr_finder *finder, const char *root, const struct opr_words *search_dirs)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* The path below the root. Freed by the caller; NULL: no memory. */
char *opr_finder_rooted(const struct opr_finder *finder, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Looks for the file of an image called `name` (opr_image_name), of which `identity` is known. One that is told apart is at its path when the file there is that very one; one with a
 * build-id may be in the search directories, too. One that an archive says was absent is looked for in search directories, and nowhere when there are none. 0 with *ret_state and, when it was found, *ret_path, freed by the caller; -ENOMEM.
 */
int opr_finder_find(struct opr_finder *finder, const struct op_image_name *image, const char *name,
		    const struct opr_identity *identity, enum opr_image_state *ret_state, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* True when the image is JIT code that has an object file: an anonymous region whose name is a path. */
bool opr_is_jit_object(const struct op_image_name *image, const char *name) OP_NONNULL;

/* The line for the user, by state, of an image that opr_finder_find was asked for. */
void opr_finder_warn(const struct opr_finder *finder, enum opr_image_state state, const char *name,
		     const struct opr_identity *identity) OP_NONNULL;

void opr_finder_free(struct opr_finder *finder);

#endif
