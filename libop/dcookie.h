/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dcookies: one 64-bit number per image identity, never reused within a session. Resolving gives {dcookie, offset}; the row
 * of the cookie says what the image is and how its sample files are named. The name goes back to lookup_dcookie(2), which
 * left with the old driver.
 *
 * An image is a file (its path, and its build-id or else device, inode, inode generation), a named part of the kernel, a
 * pseudo-image for samples that belong to no image, or an anonymous region of one process.
 *
 * The table belongs to one thread. Rows are never removed or moved.
 */
#ifndef OP_DCOOKIE_H
#define OP_DCOOKIE_H

#include "libop/compiler.h"
#include "libop/mangle.h"
#include "libop/record.h"

#define OP_DCOOKIE_NONE 0u /* no image */

struct op_image_id {
	struct op_image_name name; /* kind, path or name or label; region for anonymous ones */
	uint8_t build_id[OP_BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes; /* 0: none */
	uint64_t device;	/* makedev(); 0 with the next two when unknown */
	uint64_t inode, inode_generation;
	uint64_t mtime_ns, bytes; /* of the file as it was seen; 0 when it was not */
	bool is_kernel;
	bool is_pseudo; /* samples here are unattributed */
};

struct op_dcookie_row {
	uint64_t cookie;
	struct op_image_id id; /* its strings belong to the table */
	uint64_t mtime;	       /* seconds; 0: unknown */
	const char *host_path; /* where the file is on the host, when that is not id.name.name; NULL: unknown or the same */
	const char *container; /* what it ran in; NULL: unknown or none */
	uint32_t nr_before;    /* rows that had the same name before: 0 for the first image at a path, 1 for what replaced it ... */
};

/* A resolved sample. */
struct op_location {
	uint64_t cookie;
	uint64_t offset; /* key of the sample file: file offset, or relative to the start of kernel, module, region */
};

struct op_dcookie_table;

/* An empty table; NULL without memory. Freed with all rows by op_dcookie_table_free, which takes NULL. */
struct op_dcookie_table *op_dcookie_table_new(void) OP_MUST_CHECK;
void op_dcookie_table_free(struct op_dcookie_table *table);

/* The cookie of an identity that is known, else OP_DCOOKIE_NONE. */
uint64_t op_dcookie_find(const struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/* The cookie of an identity; a new row when it has none yet. OP_DCOOKIE_NONE without memory. */
uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/*
 * Lets another identity lead to the same row: a file is known by its build-id from one source and by its inode from another.
 * 0, -ENOMEM, or -EEXIST when that identity leads to another row already.
 */
int op_dcookie_alias(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* The row of a cookie that the table gave; never NULL. */
struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Sets where the file is on the host and what container it ran in; copies are made, either may be NULL. 0 or -ENOMEM. */
int op_dcookie_set_place(struct op_dcookie_table *table, uint64_t cookie, const char *host_path, const char *container)
	OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Number of rows. */
size_t op_dcookie_count(const struct op_dcookie_table *table) OP_NONNULL;

#endif
