/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The DWARF of an object file through libdw, with the files that it refers to. This belongs in a
 * child process (tools/common/child.h): libdw is not made for bad input.
 */
#ifndef OPR_DWARF_FILE_H
#define OPR_DWARF_FILE_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/dwp_file.h"

struct opr_dwarf {
	char *path; /* of the file with debugging information: the image, or its debug file */
	const char *root; /* the caller's; NULL: none */
	struct stat st;
	Dwarf *dwarf;
	uint64_t text; /* of a relocatable file: where .text is for `dwarf`; else 0 */
	int fd, alt_fd;
	Elf *elf;
	Dwarf *alt;
	struct opr_dwp *dwp; /* NULL: there is none */
	uint64_t unit_name;  /* offset in .debug_str: a path of unit_fd; 0: none */
	int unit_fd;         /* the .dwo file of a unit, or its part of the package, for libdw */
	Dwfl *dwfl;     /* of a relocatable file; it owns `elf` and `dwarf` */
	void **buffers; /* sections that were unpacked here */
	size_t nr_buffers, capacity;
	char fault[256]; /* the first error of libdw; "": none */
};

/*
 * Opens the debugging information of a file from its descriptor, and the files that it names if
 * their owners may speak for it (open_file.h). `root`: that of struct opr_debug_search. 0;
 * -ENOEXEC: no ELF file; -ENOMEM.
 */
int opr_dwarf_open(bfd *abfd, const char *root, struct opr_dwarf **ret_file) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * The same for an image, else for its debug file; the arguments are those of struct
 * opr_debug_search. *ret_file is NULL when there is no debugging information.
 */
int opr_dwarf_open_image(bfd *image, const char *path, const char *name, const char *root, struct opr_dwarf **ret_file)
	OP_NONNULL_ARGS(1, 2, 3, 5) OP_MUST_CHECK;

/* Notes the last error of libdw, unless there was one before. */
void opr_dwarf_note(struct opr_dwarf *file) OP_NONNULL;

/*
 * The part of a unit that is in a .dwo file. False: the unit has none, or the file is not found:
 * then *ret_missing is its name, freed by the caller.
 */
bool opr_dwarf_split(struct opr_dwarf *file, Dwarf_Die *unit, Dwarf_Die *ret_split, char **ret_missing) OP_NONNULL;

/*
 * Adds an absolute path without "." and "..", which stay below the root: so is a .dwo file found
 * below a root. False: "..", where there is nothing above.
 */
bool opr_add_plain_path(struct op_text *text, const char *path) OP_NONNULL;

/* Where a copy of a file belongs so that it is found. Names may have "..". */
enum opr_dwarf_place {
	OPR_DWARF_AT_PATH,     /* at the path `name` below the root */
	OPR_DWARF_BESIDE,      /* at `name` in the directory of the file that refers to it */
	OPR_DWARF_WITH_SUFFIX, /* at the path of that file with the suffix `name` */
};

typedef void opr_dwarf_file_fn(int fd, enum opr_dwarf_place place, const char *name, void *arg);

/*
 * Visits the files that the debugging information refers to and that are there: the alternate file,
 * the package, the .dwo files. `fd` is valid during the call.
 */
void opr_dwarf_visit_files(struct opr_dwarf *file, opr_dwarf_file_fn *visit, void *arg) OP_NONNULL_ARGS(1, 2);

/* What is wrong with the headers of the units of .debug_info, in words; NULL: nothing. */
const char *opr_dwarf_check_units(struct opr_dwarf *file) OP_NONNULL;

/* NULL is allowed. */
void opr_dwarf_close(struct opr_dwarf *file);

#endif
