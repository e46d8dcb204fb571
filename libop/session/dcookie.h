/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dcookies: one 64-bit number per image identity, never reused within a session. Resolving gives {dcookie, offset}; the row
 * of the cookie says what the image is and how its sample files are named. The name goes back to lookup_dcookie(2), which
 * left with the old driver.
 *
 * An image is a file (its path, and its build-id or else device, inode, inode generation, time and size), a named part of the kernel, a
 * pseudo-image for samples that belong to no image, or an anonymous region of one process.
 *
 * A row is *counted* once its image has samples in the session: then it has a name there, and it stays as long as the session. Rows that
 * are not counted are forgotten when nobody needs them (op_dcookie_sweep), so that what is mapped and never sampled costs nothing in the
 * end. The counted ones are what the file `dcookies` of the session holds: opd-dcookies(5).
 *
 * The table belongs to one thread. A row does not move while it is there.
 */
#ifndef OP_DCOOKIE_H
#define OP_DCOOKIE_H

#include "libop/base/compiler.h"
#include "libop/odb/mangle.h"
#include "libop/perf/record.h"
#include "libop/base/text.h"

#define OP_DCOOKIE_NONE 0u	   /* no image */
#define OP_DCOOKIE_FILE "dcookies" /* the table, in the session's directory */

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

enum op_dcookie_wanted { OP_DCOOKIE_NOT_ASKED, OP_DCOOKIE_WANTED, OP_DCOOKIE_NOT_WANTED };

struct op_dcookie_row {
	uint64_t cookie;
	struct op_image_id id;	/* its strings belong to the table */
	const char *name;	/* in the session, as the paths of its sample files have it; NULL: not counted */
	const char *host_path;	/* where the file is on the host, when that is not id.name.name; NULL: unknown or the same */
	const char *container;	/* what it ran in; NULL: unknown or none */
	int64_t first_seen;	/* seconds since 1970 of the first and the last sample; 0: none */
	int64_t last_seen;
	bool is_asked;		/* the build-id is all that the kernel can tell, be it none; the table does nothing with it */
	enum op_dcookie_wanted wanted; /* by the image filter; asked again when another place becomes known, else the table does nothing with it */
};

/* A resolved sample. */
struct op_location {
	uint64_t cookie;
	uint64_t offset; /* key of the sample file: file offset, or relative to the start of kernel, module, region */
};

struct op_dcookie_table;

/* An empty table without limits; NULL without memory. Freed with all rows by op_dcookie_table_free, which takes NULL. */
struct op_dcookie_table *op_dcookie_table_new(void) OP_MUST_CHECK;
void op_dcookie_table_free(struct op_dcookie_table *table);

/*
 * Files and regions beyond max_uncounted rows without samples get `overflow`, the cookie of a pseudo-image, from op_dcookie_get; beyond
 * max_counted counted ones op_dcookie_count_in refuses; regions may be half of them. Kernel images and pseudo-images have no limit.
 */
void op_dcookie_limit(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted, uint64_t overflow) OP_NONNULL;

/* The same with the bytes of rows, their names and what else leads to them. Where there is no room, a row gets no other identity. */
void op_dcookie_limit_bytes(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted) OP_NONNULL;
size_t op_dcookie_nr_bytes(const struct op_dcookie_table *table) OP_NONNULL;

/* What op_dcookie_limit was told, OP_DCOOKIE_NONE before. */
uint64_t op_dcookie_overflow(const struct op_dcookie_table *table) OP_NONNULL;

/* ---- identity to cookie ---- */

/* The cookie of an identity that is known, else OP_DCOOKIE_NONE. */
uint64_t op_dcookie_find(const struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/* The cookie of an identity; a new row when it has none yet. OP_DCOOKIE_NONE without memory. */
uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/*
 * Lets another identity lead to the same row: a file is known by its build-id from one source and by its inode from another. A
 * pseudo-image has no other identity, and there may be no room (op_dcookie_limit_bytes): nothing is done. 0, -ENOMEM, or -EEXIST when that identity leads to another row already.
 */
int op_dcookie_alias(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/*
 * The cookie of a file that was seen, as op_dcookie_get gives it. A file that could not be looked at is known by device, inode and generation, without time and
 * size: the first one that is seen with these is that row, and it gets them, but no time when it is counted: the sample files of a counted
 * one say that there is none, and it gets the time when its session is over. One that is not seen after it leads to it as well.
 */
uint64_t op_dcookie_get_seen(struct op_dcookie_table *table, const struct op_image_id *seen) OP_NONNULL OP_MUST_CHECK;

/* The row that op_dcookie_get_seen would find, OP_DCOOKIE_NONE where it would make one. */
uint64_t op_dcookie_find_seen(const struct op_dcookie_table *table, const struct op_image_id *seen) OP_NONNULL OP_MUST_CHECK;

/* A file that was seen is another copy of a row's: it leads there from then on, by device, inode and generation alone as well. 0 or -ENOMEM. */
int op_dcookie_alias_seen(struct op_dcookie_table *table, const struct op_image_id *seen, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* The counted image that has this name in the session, as a sample file's path says it; else OP_DCOOKIE_NONE. */
uint64_t op_dcookie_by_name(const struct op_dcookie_table *table, const struct op_image_name *name) OP_NONNULL OP_MUST_CHECK;

/* ---- cookie to row ---- */

/* The row of a cookie that the table gave and has not forgotten; never NULL. */
struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Time of the file in seconds, for the header of sample files; 0: unknown. */
uint64_t op_dcookie_mtime(const struct op_dcookie_row *row) OP_NONNULL;

/* The name in the session, with the region of an anonymous one. Of a counted row; strings belong to the table. */
struct op_image_name op_dcookie_name(const struct op_dcookie_row *row) OP_NONNULL;

/* Calls `visit` for every row, in no order. */
void op_dcookie_visit(struct op_dcookie_table *table, void (*visit)(struct op_dcookie_row *row, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

/* Number of rows; of those that are counted. */
size_t op_dcookie_count(const struct op_dcookie_table *table) OP_NONNULL;
size_t op_dcookie_nr_counted(const struct op_dcookie_table *table) OP_NONNULL;

/* How often op_dcookie_get gave the overflow cookie, or another identity had no room. */
uint64_t op_dcookie_nr_refused(const struct op_dcookie_table *table) OP_NONNULL;

/* The number that the next row gets. */
uint64_t op_dcookie_next(const struct op_dcookie_table *table) OP_NONNULL;

/* Sets where the file is on the host and what container it ran in; copies are made, either may be NULL. 0 or -ENOMEM. */
int op_dcookie_set_place(struct op_dcookie_table *table, uint64_t cookie, const char *host_path, const char *container)
	OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Sets the build-id of a row that has none; else without effect, as for a pseudo-image. 0 or -ENOMEM. */
int op_dcookie_set_build_id(struct op_dcookie_table *table, uint64_t cookie, const uint8_t *build_id, uint8_t nr_bytes)
	OP_NONNULL OP_MUST_CHECK;

/* ---- counting (libop/session/dcookie_name.c) ---- */

/*
 * Makes the row a counted one, when it is not: it gets its name in the session, which it keeps. A name that another image has is followed
 * by what tells this one from it, "PATH (build-id 0123456789ab)" or "PATH (inode 12)", and where that is taken, too, with "#COOKIE" in it; one that
 * would make paths too long is shortened to "/(long path HASH)/END". 0; -ENOMEM; -EDQUOT: there are as many as op_dcookie_limit allows.
 */
int op_dcookie_count_in(struct op_dcookie_table *table, uint64_t cookie, int64_t now_seconds) OP_NONNULL OP_MUST_CHECK;

/*
 * Gives a counted row the name that tells it apart, because a foreign sample file has the plain one. 0 or -ENOMEM; without effect when the
 * name is such a one.
 */
int op_dcookie_tell_apart(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* No row is counted any more: the session was emptied. Numbers go on. */
void op_dcookie_uncount_all(struct op_dcookie_table *table) OP_NONNULL;

/* ---- forgetting ---- */

/* Begins a round; op_dcookie_mark says that somebody needs a row; op_dcookie_sweep forgets the rows that are neither marked nor counted nor pseudo-images. */
void op_dcookie_mark_begin(struct op_dcookie_table *table) OP_NONNULL;
void op_dcookie_mark(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Returns how many were forgotten. Their numbers are not given again. */
size_t op_dcookie_sweep(struct op_dcookie_table *table) OP_NONNULL;

/* ---- the file (libop/session/dcookie_file.c, opd-dcookies(5)) ---- */

/* Counted rows that the file does not have, or not as they are: how many, and their lines. */
size_t op_dcookie_nr_unwritten(const struct op_dcookie_table *table) OP_NONNULL;
void op_dcookie_format_unwritten(const struct op_dcookie_table *table, struct op_text *text) OP_NONNULL;

/* The file has every counted row now; or none. */
void op_dcookie_all_written(struct op_dcookie_table *table) OP_NONNULL;
int op_dcookie_none_written(struct op_dcookie_table *table) OP_NONNULL OP_MUST_CHECK; /* 0 or -ENOMEM */

/* The first lines of a file, the line that keeps numbers below `next` from being given, and the line of a row. */
void op_dcookie_format_head(struct op_text *text) OP_NONNULL;
void op_dcookie_format_next(uint64_t next, struct op_text *text) OP_NONNULL;
void op_dcookie_format_row(const struct op_dcookie_row *row, struct op_text *text) OP_NONNULL;

struct op_dcookie_reading {
	size_t nr_rows;	   /* lines with a row */
	size_t nr_bad;	   /* lines that were passed over */
	bool is_torn;	   /* the last line has no end: it was passed over, too */
	uint64_t nr_bytes; /* up to the end of the last whole line */
	char *complaint;   /* about the first bad line, "FILE:LINE: what is wrong"; NULL: none. Freed by the caller */
};

/*
 * Reads the file at `path` below dir_fd into a table without rows; its rows are counted ones. A line that is none is passed over. 0, -ENOENT,
 * -EBADMSG when it is no regular file, no table or of a later version (then with a complaint), -ENOMEM or another -errno from reading.
 */
int op_dcookie_table_read(struct op_dcookie_table *table, int dir_fd, const char *path, struct op_dcookie_reading *ret_reading)
	OP_NONNULL OP_MUST_CHECK;

#endif
