/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which file an image was. When another file replaces an image, opd counts it apart under a name
 * with a suffix: "PATH (build-id 0123456789ab)", with the first six bytes of its build-id, else
 * "PATH (inode 12)", and when that name is taken "PATH (inode 12 #345)". The dcookie table of the
 * session (opd-dcookies(5)) says which file it was; without a table the name does.
 */
#ifndef OPR_IMAGE_IDENTITY_H
#define OPR_IMAGE_IDENTITY_H

#include <sys/stat.h>

#include "libop/base/build_id.h"
#include "libop/session/dcookie.h"
#include "tools/common/archive.h"

enum opr_identity_kind {
	OPR_IDENTITY_NONE,
	OPR_IDENTITY_BUILD_ID,
	OPR_IDENTITY_INODE,
	OPR_IDENTITY_UNKNOWN, /* "(inode 0)": opd could not look at the file */
};

struct opr_identity {
	enum opr_identity_kind kind;
	bool is_known;      /* from a dcookie table; false: guessed from the name */
	bool told_apart;    /* the name is not the path alone */
	bool is_kernel;     /* the kernel or a module: its build-id is always compared */
	/* of the file, path_length bytes: the name without the suffix, or what the table says */
	const char *path;
	size_t path_length;
	char build_id[OP_BUILD_ID_DIGITS]; /* from a name only the first twelve digits */
	uint64_t inode, device; /* device 0: unknown */
};

/* The identity in a name; valid as long as the name. */
struct opr_identity opr_identity_of(const char *name) OP_NONNULL;

/*
 * The identity in a row; valid as long as the row. OPR_IDENTITY_NONE when the row has no build-id,
 * no other image has the path, and the file is not in a container only.
 */
struct opr_identity opr_identity_of_row(const struct op_dcookie_row *row) OP_NONNULL;

/* The name without the suffix. Freed by the caller; NULL: no memory. */
char *opr_identity_path(const char *name) OP_NONNULL OP_MUST_CHECK;

#define OPR_KALLSYMS "/proc/kallsyms"

/* True for /proc/kallsyms. */
bool opr_identity_is_kallsyms(const struct opr_identity *identity) OP_NONNULL;

/* `path` below the root that the path `kallsyms` has. Freed by the caller; NULL: no memory. */
#define OPR_KERNEL_NOTES "/sys/" OP_KERNEL_NOTES
#define OPR_KERNEL_CORE	 "/proc/kcore"
char *opr_beside_kallsyms(const char *kallsyms, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * The build-id in the program headers of an ELF file, read without libbfd and without a child
 * process: every read is bounded (elf(5), PT_NOTE and NT_GNU_BUILD_ID). 0 with hexadecimal digits;
 * -ENODATA: there is none, or this is no 64-bit ELF file of this machine's byte order; another
 * -errno. *ret_st is set with 0 and with -ENODATA.
 */
int opr_elf_build_id(const char *path, char digits[OP_BUILD_ID_DIGITS], struct stat *ret_st) OP_NONNULL OP_MUST_CHECK;

/* The build-id of any object file, or of the kernel for /proc/kallsyms; "": not readable. */
void opr_build_id_at(const char *path, char digits[OP_BUILD_ID_DIGITS]) OP_NONNULL;

/*
 * True when the file at `path` has the build-id or inode of the identity; false for other kinds. In
 * an archive (NULL: none) the inode is that of the original. Outside, the device counts where it is
 * no block device, because whoever mounts such a file system may choose its inodes.
 */
bool opr_identity_agrees(const struct opr_identity *identity, const struct opr_archive *archive, const char *path)
	OP_NONNULL_ARGS(1, 3);

#endif
