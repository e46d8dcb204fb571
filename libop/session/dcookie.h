/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of images: one 64-bit number, the dcookie, for each identity of an image. A session
 * never reuses a number. A resolved sample is {dcookie, offset}; the row of the cookie says what
 * the image is and what its sample files are called. The name comes from lookup_dcookie(2) of the
 * old driver.
 *
 * An image is a file, a named part of the kernel, a pseudo-image for samples of no image, or an
 * anonymous region of one process. The identity of a file is its path with its build-id, or else
 * with device, inode, inode generation, time and size.
 *
 * A row becomes *counted* with the first sample of its image: it gets a name in the session and
 * stays as long as the session. The file `dcookies` holds the counted rows: opd-dcookies(5). Other
 * rows are forgotten when nothing needs them (op_dcookie_sweep).
 *
 * One thread owns a table. Rows do not move.
 */
#ifndef OP_DCOOKIE_H
#define OP_DCOOKIE_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "libop/odb/mangle.h"
#include "libop/perf/record.h"

#define OP_DCOOKIE_NONE 0u	   /* no image */
#define OP_COMM_BYTES	16u	   /* of the name of a process, with its NUL */
#define OP_USER_NONE	UINT32_MAX /* the user is unknown, or samples are not separated by it */
#define OP_DCOOKIE_FILE "dcookies" /* the table, in the session's directory */

struct op_image_id {
	struct op_image_name name; /* kind, path or name or label; region for anonymous ones */
	uint8_t build_id[OP_BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes; /* 0: none */
	uint64_t device;	/* makedev(); 0 with the next two when unknown */
	uint64_t inode, inode_generation;
	uint64_t mtime_ns, bytes; /* of the file; 0: it could not be looked at */
	bool is_kernel;
	bool is_pseudo; /* its samples are unattributed */
	/*
	 * The dcookie of an application: this is a program, the part of the application's samples
	 * that processes of this name and user took. It has no build-id, inode, time or size of its
	 * own. OP_DCOOKIE_NONE: an image.
	 */
	uint64_t program_of;
	char comm[OP_COMM_BYTES]; /* "": not separated by it */
	uint32_t user;            /* of a program; OP_USER_NONE: not separated by it */
};

/* A program is the application of samples, and never their image. */
static inline bool op_dcookie_is_program(const struct op_image_id *id)
{
	return id->program_of != OP_DCOOKIE_NONE;
}

/*
 * The file of a row as it was looked at last. A copy of the file in the row's identity has a path,
 * device and inode of its own.
 */
struct op_image_file {
	uint64_t device, inode, inode_generation; /* inode 0: no file was looked at */
	uint64_t mtime_ns, ctime_ns, bytes;
	uint32_t uid;
	bool is_owners;   /* only that user can have made the contents */
	const char *path; /* on the host; NULL: unknown */
};

enum op_dcookie_wanted { OP_DCOOKIE_NOT_ASKED, OP_DCOOKIE_WANTED, OP_DCOOKIE_NOT_WANTED };

struct op_dcookie_row {
	uint64_t cookie;
	struct op_image_id id; /* its strings belong to the table */
	/* in the session, as in the paths of its sample files; NULL: not counted */
	const char *name;
	/* of the file, where it is not id.name.name; NULL: unknown or the same */
	const char *host_path;
	const char *container; /* that it ran in; NULL: unknown or none */
	int64_t first_seen;    /* seconds since 1970 of the first and the last sample; 0: none */
	int64_t last_seen;

	/* For the resolver: the kernel was asked for the build-id. */
	bool is_asked;

	/* At the path. It is the one to have the plain name (op_dcookie_count_in). */
	bool host_has_another;

	/* Since this process began; not in the file of the table. Set by op_dcookie_set_file. */
	struct op_image_file file;

	/* For the image filter. The table resets it when host_path or container change. */
	enum op_dcookie_wanted wanted;
};

/* A resolved sample. */
struct op_location {
	uint64_t cookie;
	/*
	 * key of the sample file: file offset, or relative to the start of kernel, module, region
	 */
	uint64_t offset;
};

struct op_dcookie_table;

/* An empty table without limits; NULL without memory. op_dcookie_table_free takes NULL. */
struct op_dcookie_table *op_dcookie_table_new(void) OP_MUST_CHECK;
void op_dcookie_table_free(struct op_dcookie_table *table);

/*
 * Limits the number of rows. With max_uncounted rows without samples, op_dcookie_get gives
 * `overflow`, the cookie of a pseudo-image, for new files and regions. With max_counted counted
 * rows, or regions in half of them, op_dcookie_count_in refuses. Kernel images and pseudo-images
 * have no limit.
 */
void op_dcookie_limit(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted, uint64_t overflow) OP_NONNULL;

/*
 * Limits the bytes of rows, with their names and identities, in the same way. A full table adds no
 * alias.
 */
void op_dcookie_limit_bytes(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted) OP_NONNULL;

/* The `overflow` of op_dcookie_limit, or OP_DCOOKIE_NONE. */
uint64_t op_dcookie_overflow(const struct op_dcookie_table *table) OP_NONNULL;

/* ---- identity to cookie ---- */

/* The cookie of a known identity, else OP_DCOOKIE_NONE. */
uint64_t op_dcookie_find(const struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/* The cookie of an identity; a new row when it has none. OP_DCOOKIE_NONE without memory. */
uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds an alias: another identity of the row, such as the build-id of a file that is known by its
 * inode. Does nothing for a pseudo-image and in a full table. 0, -ENOMEM, or -EEXIST: the identity
 * belongs to another row.
 */
int op_dcookie_alias(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/*
 * op_dcookie_get for a file that was looked at. A file that could not be looked at has a row with
 * device, inode and generation, without time and size. The first file with these three that is
 * looked at gets that row, and the row its time and size. A counted row gets the time only with the
 * next session, because its sample files say that there is none.
 */
uint64_t op_dcookie_get_seen(struct op_dcookie_table *table, const struct op_image_id *seen) OP_NONNULL OP_MUST_CHECK;

/* The row that op_dcookie_get_seen would give; OP_DCOOKIE_NONE where it would make one. */
uint64_t op_dcookie_find_seen(const struct op_dcookie_table *table, const struct op_image_id *seen) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a copy of a row's file as an alias, also by its device, inode and generation alone. 0 or
 * -ENOMEM.
 */
int op_dcookie_alias_seen(struct op_dcookie_table *table, const struct op_image_id *seen, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/*
 * The counted image with this name in the session, as a sample file's path has it; else
 * OP_DCOOKIE_NONE.
 */
uint64_t op_dcookie_by_name(const struct op_dcookie_table *table, const struct op_image_name *name) OP_NONNULL OP_MUST_CHECK;

/* ---- cookie to row ---- */

/*
 * The row of a cookie; never NULL. OP_DCOOKIE_NONE and cookies that the table did not give or has
 * forgotten get a pseudo-image without a name, which op_dcookie_count_in refuses.
 */
struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Whether a number from a file is the cookie of a row. */
bool op_dcookie_has(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Time of the file in seconds, for the header of sample files; 0: unknown. */
uint64_t op_dcookie_mtime(const struct op_dcookie_row *row) OP_NONNULL;

/*
 * The name of a counted row in the session, with the region of an anonymous one. Strings belong to
 * the table.
 */
struct op_image_name op_dcookie_name(const struct op_dcookie_row *row) OP_NONNULL;

/* Calls `visit` for every row, in no order. */
void op_dcookie_visit(struct op_dcookie_table *table, void (*visit)(struct op_dcookie_row *row, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

/* Number of rows; of counted rows. */
size_t op_dcookie_count(const struct op_dcookie_table *table) OP_NONNULL;
size_t op_dcookie_nr_counted(const struct op_dcookie_table *table) OP_NONNULL;

/* How often op_dcookie_get gave the overflow cookie, an alias had no room, or there was no row. */
uint64_t op_dcookie_nr_refused(const struct op_dcookie_table *table) OP_NONNULL;

/* The number of the next new row. */
uint64_t op_dcookie_next(const struct op_dcookie_table *table) OP_NONNULL;

/*
 * Sets the path of the file on the host and its container. Copies both; either may be NULL. 0 or
 * -ENOMEM.
 */
int op_dcookie_set_place(struct op_dcookie_table *table, uint64_t cookie, const char *host_path, const char *container)
	OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Sets the file of a row that was looked at. Copies its path. 0 or -ENOMEM. */
int op_dcookie_set_file(struct op_dcookie_table *table, uint64_t cookie, const struct op_image_file *file) OP_NONNULL OP_MUST_CHECK;

/*
 * Sets the build-id of a row without one. Does nothing for other rows and pseudo-images. 0 or
 * -ENOMEM.
 */
int op_dcookie_set_build_id(struct op_dcookie_table *table, uint64_t cookie, const uint8_t *build_id, uint8_t nr_bytes)
	OP_NONNULL OP_MUST_CHECK;

/* ---- counting (dcookie_name.c) ---- */

/* Counted rows that are programs, and how many there may be; no limit at first. */
size_t op_dcookie_nr_programs(const struct op_dcookie_table *table) OP_NONNULL;
void op_dcookie_limit_programs(struct op_dcookie_table *table, size_t max_programs) OP_NONNULL;

/*
 * Makes a row a counted one and gives it a name in the session, which it keeps. When another image
 * has the name, or the host has another file at the path, the identity is added: "PATH (build-id
 * 0123456789ab)" or "PATH (inode 12)", and then the cookie: "PATH (inode 12 #345)". A name that
 * makes paths too long becomes "/(long path HASH)/END". A program, whose application is counted
 * with it, is "PATH (COMM)", "PATH (user 1000)" or "PATH (COMM, user 1000)"; slashes and control
 * characters of COMM are underscores there. 0; -ENOMEM; -EDQUOT: op_dcookie_limit, or
 * there is no such row.
 */
int op_dcookie_count_in(struct op_dcookie_table *table, uint64_t cookie, int64_t now_seconds) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds its identity to the plain name of a counted row, because a foreign sample file has that
 * name. 0 or -ENOMEM.
 */
int op_dcookie_make_distinct(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* Makes all rows uncounted: the session was emptied. Numbers go on. */
void op_dcookie_uncount_all(struct op_dcookie_table *table) OP_NONNULL;

/* ---- forgetting ---- */

/* Begins a round, in which op_dcookie_mark says that a row is needed. */
void op_dcookie_mark_begin(struct op_dcookie_table *table) OP_NONNULL;
void op_dcookie_mark(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* Forgets the rows that are neither marked, counted nor pseudo-images, and returns their number. */
size_t op_dcookie_sweep(struct op_dcookie_table *table) OP_NONNULL;

/* ---- the file (dcookie_file.c, opd-dcookies(5)) ---- */

/*
 * Counted rows that are new or have changed since op_dcookie_all_written: their number, and their
 * lines.
 */
size_t op_dcookie_nr_unwritten(const struct op_dcookie_table *table) OP_NONNULL;
void op_dcookie_format_unwritten(const struct op_dcookie_table *table, struct op_text *text) OP_NONNULL;

/* The file has all counted rows; none of them. */
void op_dcookie_all_written(struct op_dcookie_table *table) OP_NONNULL;
/* 0 or -ENOMEM */
int op_dcookie_none_written(struct op_dcookie_table *table) OP_NONNULL OP_MUST_CHECK;

/* The first lines of a file; the line that reserves the numbers below `next`; the line of a row. */
void op_dcookie_format_head(struct op_text *text) OP_NONNULL;
void op_dcookie_format_next(uint64_t next, struct op_text *text) OP_NONNULL;
void op_dcookie_format_row(const struct op_dcookie_row *row, struct op_text *text) OP_NONNULL;

struct op_dcookie_reading {
	size_t nr_rows;	   /* lines with a row */
	size_t nr_bad;	   /* lines that were skipped */
	uint64_t nr_bad_bytes;
	bool is_torn;	   /* the last line has no end and was skipped, too */
	uint64_t nr_bytes; /* up to the end of the last whole line */
	/* about the first bad line, "FILE:LINE: reason"; NULL: none. Freed by the caller */
	char *complaint;
};

/*
 * Reads the file at `path` below dir_fd into a table without rows. The rows are counted. Bad lines
 * are skipped, and after 64 MiB of them the rest. 0; -ENOENT; -EBADMSG with a complaint: no regular
 * file, no table, or a later version; -ENOMEM; another -errno from reading.
 */
int op_dcookie_table_read(struct op_dcookie_table *table, int dir_fd, const char *path, struct op_dcookie_reading *ret_reading)
	OP_NONNULL OP_MUST_CHECK;

#endif
