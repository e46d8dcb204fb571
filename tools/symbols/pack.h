/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One file of the cache (cache.h): the serialized symbols of many images, by key. One file for each
 * image would cost more than all other work. A file is written once, under another name, and never
 * changes, so readers need no lock and keep a file that is removed. It is mapped
 * (libop/process/guard.h).
 *
 * In the byte order of this host: entries (serialize.h); rows sorted by name; their names, each
 * with a NUL; the foot. Readers trust nothing in it.
 */
#ifndef OPR_SYMBOL_PACK_H
#define OPR_SYMBOL_PACK_H

#include "libop/base/text.h"

#define OPR_PACK_MAGIC       "opdpack3"
#define OPR_PACK_MAGIC_BYTES 8

struct opr_pack_row {
	uint64_t at, nr_bytes; /* of the entry in the file */
	uint32_t name;         /* offset in the names */
	uint32_t sum;          /* opr_pack_sum of the name, then of the entry */
};

struct opr_pack_foot {
	char magic[OPR_PACK_MAGIC_BYTES];
	uint64_t nr_rows, nr_name_bytes;
	uint32_t sum;   /* opr_pack_sum of the rows, then of the names */
	uint32_t spare; /* 0 */
};

struct opr_pack {
	const char *map;           /* the whole file */
	struct op_guard *guard;    /* of the mapping */
	struct opr_pack_row *rows; /* a copy; the names are in the same allocation */
	const char *names;
	size_t nr_rows;
	uint64_t nr_bytes; /* of the file */
};

/* The checksum of `bytes`; begins with `sum`: 0, or that of the bytes before. */
uint32_t opr_pack_sum(uint32_t sum, const void *bytes, size_t nr_bytes) OP_MUST_CHECK;

/* Opens the file at fd and closes fd. 0; -EBADMSG: damaged, or no pack; another -errno. */
int opr_pack_open(struct opr_pack *pack, int fd) OP_NONNULL OP_MUST_CHECK;

/* The row of a name; NULL: none. */
const struct opr_pack_row *opr_pack_find(const struct opr_pack *pack, const char *name) OP_NONNULL;

/* The bytes of an entry, in the mapping. 0; -EBADMSG: damaged. Any thread. */
int opr_pack_get(const struct opr_pack *pack, const struct opr_pack_row *row, const char **ret_bytes) OP_NONNULL OP_MUST_CHECK;

/* True when the file lost pages since it was opened: what was read before is not valid. */
bool opr_pack_is_broken(const struct opr_pack *pack) OP_NONNULL;

/* Closes the pack; opr_pack_leave keeps the entries until the process ends. */
void opr_pack_close(struct opr_pack *pack);
void opr_pack_leave(struct opr_pack *pack);

/* A new file. */
struct opr_pack_writer {
	int fd;
	uint64_t at;
	struct opr_pack_row *rows;
	size_t nr_rows, capacity;
	/* the first rows, sorted, are not from another pack; 0: none was merged */
	size_t nr_own;
	struct op_text names;
};

/* Begins a file at fd, which is empty. opr_pack_writer_end closes it. */
void opr_pack_writer_begin(struct opr_pack_writer *writer, int fd) OP_NONNULL;

/* Adds an entry; the last one of a name counts. 0, or -errno: the file is not usable. */
int opr_pack_writer_add(struct opr_pack_writer *writer, const char *name, const char *bytes,
			size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* After the last own entry: adds undamaged entries of a pack whose names are new. 0 or -errno. */
int opr_pack_writer_merge(struct opr_pack_writer *writer, const struct opr_pack *pack) OP_NONNULL OP_MUST_CHECK;

/* Finishes the file unless `err` is an error, and closes it. 0, `err`, or another -errno. */
int opr_pack_writer_end(struct opr_pack_writer *writer, int err) OP_NONNULL;

#endif
