/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd counts a file that took the place of another apart from it, under "PATH (build-id 0123456789ab)", the first six bytes of its build-id, or
 * "PATH (inode 12)", and where that is taken, "PATH (inode 12 #345)". The name without the suffix is that of the file which was there first. What
 * it is says the dcookie table of the session (opd-dcookies(5)); for a session without one, the name does.
 */
#ifndef OPR_IMAGE_IDENTITY_H
#define OPR_IMAGE_IDENTITY_H

#include <sys/stat.h>

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
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
	bool is_known;	      /* a table says so; else it is what the name looks like */
	bool told_apart;      /* the name is not the path alone */
	bool is_kernel;	      /* the kernel or a module, whose build-id is asked for in any case */
	const char *path;     /* where the file was: the name without the suffix, or what the table says */
	size_t path_length;   /* there may be more behind it */
	char build_id[OP_BUILD_ID_DIGITS]; /* hexadecimal digits, of a name only the first twelve */
	uint64_t inode;
};

/* What a name says; valid as long as the name. */
struct opr_identity opr_identity_of(const char *name) OP_NONNULL;

/*
 * What a row says; valid as long as the row. Its kind is OPR_IDENTITY_NONE when the image has the name and the path for itself, no build-id, and is
 * not the file of a container that the host has nowhere.
 */
struct opr_identity opr_identity_of_row(const struct op_dcookie_row *row) OP_NONNULL;

/* The name without the suffix. Freed by the caller; NULL: no memory. */
char *opr_identity_path(const char *name) OP_NONNULL OP_MUST_CHECK;

/* True for the list of symbols of a running kernel, which has no build-id in itself. */
bool opr_identity_is_kallsyms(const struct opr_identity *identity) OP_NONNULL;

/* Another file of the machine whose list of symbols this is, by its whole path there: of this one, or of a root or archive. Freed by the caller; NULL: no memory. */
#define OPR_KERNEL_NOTES "/sys/" OP_KERNEL_NOTES
#define OPR_KERNEL_CORE	 "/proc/kcore"
char *opr_beside_kallsyms(const char *kallsyms, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * The build-id in the program headers of an ELF file, read without libbfd and without a child process:
 * every read is bounded (elf(5), PT_NOTE and NT_GNU_BUILD_ID). 0 with hexadecimal digits; -ENODATA: there
 * is none, or this is no 64-bit ELF file of this machine's byte order; another -errno. *ret_st is set with
 * 0 and with -ENODATA.
 */
int opr_elf_build_id(const char *path, char digits[OP_BUILD_ID_DIGITS], struct stat *ret_st) OP_NONNULL OP_MUST_CHECK;

/* The build-id of an object file, or of the kernel that a list of symbols is of; "" when none can be read. */
void opr_build_id_at(const char *path, char digits[OP_BUILD_ID_DIGITS]) OP_NONNULL;

/* True when the file at `path`, of an archive when there is one (NULL: none), is the one that the identity tells; one that says nothing agrees with none. */
bool opr_identity_agrees(const struct opr_identity *identity, const struct opr_archive *archive, const char *path)
	OP_NONNULL_ARGS(1, 3);

#endif
