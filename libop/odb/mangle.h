/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names of sample files: which (application, image, event, class) a file holds is said by its path below samples/<session>/.
 *
 *   sample     := image-part "{dep}/" image-part [ "{cg}/" image-part ] event-part
 *   image-part := "{root}" ABSOLUTE-PATH "/"  |  "{kern}/" NAME "/"  |  "{anon:" LABEL "}/" TGID "." START "." END "/"
 *   event-part := EVENT "." COUNT "." UNITMASK "." TGID "." TID "." CPU
 *
 * Source: the oprofile 1.x format, doc/format.md.
 */
#ifndef OP_MANGLE_H
#define OP_MANGLE_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

enum op_image_kind {
	OP_IMAGE_FILE,	/* {root}: an ordinary file; name is its absolute path */
	OP_IMAGE_KERNEL, /* {kern}: module, no-vmlinux or a pseudo-image; name has no slash */
	OP_IMAGE_ANON,	/* {anon:LABEL}: a region without a file; name is LABEL */
};

#define OP_CLASS_ALL (-1) /* "all": not separated on this axis */

struct op_image_name {
	enum op_image_kind kind;
	const char *name;
	int32_t tgid;	/* anonymous regions only, like start and end */
	uint64_t start; /* address of the first byte */
	uint64_t end;	/* address after the last byte */
};

struct op_sample_name {
	struct op_image_name app;
	struct op_image_name image; /* the {dep} part: the image that the samples lie in */
	struct op_image_name callee; /* the {cg} part, when has_callee */
	bool has_callee;
	const char *event;
	uint64_t count;
	uint32_t unit_mask;
	int32_t tgid, tid, cpu; /* OP_CLASS_ALL or a number */
};

/*
 * The path below the session's directory, appended to `path`. Names come from processes and may be hostile: a component
 * ".", "..", "{dep}" or "{cg}" is written in braces ("{..}"), a slash in a kernel name or a label as '_', so that the path
 * never leads out of the session. A path without a component, "/" say, is "/(no path)".
 */
void op_mangle(const struct op_sample_name *name, struct op_text *path) OP_NONNULL;

/* The path of a file as it stands in such a path, and as op_unmangle gives it; without effect on what was written so before. Appended to `path`. */
void op_mangle_path(const char *name, struct op_text *path) OP_NONNULL;

/* The same for the name of what belongs to the kernel. */
void op_mangle_kernel(const char *name, struct op_text *path) OP_NONNULL;

/*
 * With separation by cgroup, the samples of a cgroup are also kept below
 *
 *   cgroup-part := "cgroup/" { COMPONENT "/" }
 *
 * as in a session of their own: "cgroup/system.slice/cron.service/{root}/usr/sbin/cron/{dep}/...". A component that is special
 * in the path of a sample file, or in braces, is written in braces.
 *
 * op_mangle_cgroup appends the part for an absolute cgroup path, "/" for the root. op_unmangle_cgroup gives the cgroup path of
 * such a directory, below and without "cgroup/", freed by the caller; NULL without memory.
 */
#define OP_CGROUP_DIR "cgroup"
void op_mangle_cgroup(const char *cgroup_path, struct op_text *path) OP_NONNULL;
char *op_unmangle_cgroup(const char *directory) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes a path below the session's directory apart. The strings of *ret_name lie in one block, *ret_storage, which the caller
 * frees. 0; -EINVAL: not the name of a sample file (*ret_why, when given, is a constant text that says what is wrong); -ENOMEM.
 */
int op_unmangle(const char *path, struct op_sample_name *ret_name, char **ret_storage, const char **ret_why)
	OP_NONNULL_ARGS(1, 2, 3) OP_MUST_CHECK;

#endif
