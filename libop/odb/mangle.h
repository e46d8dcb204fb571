/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names of sample files. The path below samples/<session>/ says which application, image, event
 * and class a file holds:
 *
 *   sample     := image-part "{dep}/" image-part [ "{cg}/" image-part ] event-part
 *   image-part := "{root}" ABSOLUTE-PATH "/"  |  "{kern}/" NAME "/"
 *                 | "{anon:" LABEL "}/" TGID "." START "." END "/"
 *   event-part := EVENT "." COUNT "." UNITMASK "." TGID "." TID "." CPU
 *
 * Source: the oprofile 1.x format, doc/format.md. Any thread.
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

/*
 * Labels of memory without a name of its own: of any process, and of one process whose JIT code may
 * get names, followed by a number.
 */
#define OP_ANONYMOUS_LABEL "anon"
#define OP_JIT_LABEL	   "jit-"

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
 * Appends the path below the session's directory. Names come from processes and may be hostile,
 * but the path never leads out of the session: a component ".", "..", "{dep}" or "{cg}" is written
 * in braces ("{..}"), a slash in a kernel name or a label as '_'. A path without a component, such
 * as "/", becomes "/(no path)".
 */
void op_mangle(const struct op_sample_name *name, struct op_text *path) OP_NONNULL;

/* Appends the path of a file as op_mangle writes it. Writing it once more changes nothing. */
void op_mangle_path(const char *name, struct op_text *path) OP_NONNULL;

/* The same for the name of a kernel image. */
void op_mangle_kernel(const char *name, struct op_text *path) OP_NONNULL;

/*
 * Appends the path of the symbols of JIT code in stacks, below the session's directory:
 * "{root}/{anon:LABEL}/TGID.jo". There may be no sample file that names its application.
 */
void op_mangle_jit_object(const struct op_image_name *image, struct op_text *path) OP_NONNULL;

#define OP_CGROUP_DIR "cgroup"

/*
 * With separation by cgroup, the samples of a cgroup are also kept below
 *
 *   cgroup-part := "cgroup/" { COMPONENT "/" }
 *
 * as in a session of their own: "cgroup/system.slice/cron.service/{root}/usr/sbin/cron/{dep}/...".
 * A component that is special in the path of a sample file, or in braces, is written in braces.
 * Appends this part for an absolute cgroup path, "/" for the root.
 */
void op_mangle_cgroup(const char *cgroup_path, struct op_text *path) OP_NONNULL;

/*
 * The cgroup path of such a directory, without "cgroup/"; the caller frees it. NULL: out of
 * memory.
 */
char *op_unmangle_cgroup(const char *directory) OP_NONNULL OP_MUST_CHECK;

/*
 * Splits a path below the session's directory. The strings of *ret_name lie in one block,
 * *ret_storage, which the caller frees. 0; -EINVAL: not the name of a sample file, with the
 * reason, a constant text, in *ret_why (may be NULL); -ENOMEM.
 */
int op_unmangle(const char *path, struct op_sample_name *ret_name, char **ret_storage, const char **ret_why)
	OP_NONNULL_ARGS(1, 2, 3) OP_MUST_CHECK;

#endif
