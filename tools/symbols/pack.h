/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file of the cache (cache.h): the symbols of many images, as one run has read them. A file for each image costs more than all else of writing and of reading them. A file is written once, under
 * another name, and never changed: whoever reads it needs no lock, and may go on when it is removed. It is
 * looked at where it is mapped (libop/base/guard.h), and symbols that were taken of it lie there as long as the process lives.
 *
 * Of this host's byte order: entries, in the form of packed_file.h; rows, sorted by name, with their names behind them, each with its NUL; the foot. Nothing in it is trusted.
 */
#ifndef OPR_SYMBOL_PACK_H
#define OPR_SYMBOL_PACK_H

#include "libop/base/text.h"

#define OPR_PACK_MAGIC       "opdpack1"
#define OPR_PACK_MAGIC_BYTES 8

struct opr_pack_row {
	uint64_t at, nr_bytes; /* of the entry in the file */
	uint32_t name;         /* behind the rows */
	uint32_t sum;          /* CRC-32 (zlib) of the name and the entry, so that none is taken for another */
};

struct opr_pack_foot {
	char magic[OPR_PACK_MAGIC_BYTES];
	uint64_t nr_rows, nr_name_bytes;
	uint32_t sum;   /* of rows and names */
	uint32_t spare; /* 0 */
};

struct opr_pack {
	const char *map;           /* the whole file */
	struct op_guard *guard;    /* of that */
	struct opr_pack_row *rows; /* the names are in the same piece of memory */
	const char *names;
	size_t nr_rows;
	uint64_t nr_bytes; /* of the file */
};

/*
 * Opens the file at fd, which is closed in any case. 0; -EBADMSG: it is damaged, or no such file; -ENOMEM; another -errno.
 */
int opr_pack_open(struct opr_pack *pack, int fd) OP_NONNULL OP_MUST_CHECK;

/* The entry of a name. NULL: there is none. */
const struct opr_pack_row *opr_pack_find(const struct opr_pack *pack, const char *name) OP_NONNULL;

/* The bytes of an entry, which are the pack's. 0; -EBADMSG: it is damaged. Several threads may ask at a time. */
int opr_pack_get(const struct opr_pack *pack, const struct opr_pack_row *row, const char **ret_bytes) OP_NONNULL OP_MUST_CHECK;

/* Whether the file has lost pages since it was opened: what was taken of it before means nothing. */
bool opr_pack_is_broken(const struct opr_pack *pack) OP_NONNULL;

/* Entries go with it; those of a pack that is left stay where they are. */
void opr_pack_close(struct opr_pack *pack);
void opr_pack_leave(struct opr_pack *pack);

/* A pack in the making. */
struct opr_pack_writer {
	int fd;
	uint64_t at;
	struct opr_pack_row *rows;
	size_t nr_rows, capacity;
	size_t nr_own; /* the first rows, sorted, which are not of another pack; 0: no other one was taken */
	struct op_text names;
};

/* Begins one in the empty file at fd, which is the writer's until opr_pack_writer_end. */
void opr_pack_writer_begin(struct opr_pack_writer *writer, int fd) OP_NONNULL;

/* Adds an entry; of one name the last is kept. 0 or -errno, and then the file is of no use. */
int opr_pack_writer_add(struct opr_pack_writer *writer, const char *name, const char *bytes,
			size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* When all others are added: adds the entries of a pack whose names are not there; a damaged one is left out. 0 or -errno, as before. */
int opr_pack_writer_take(struct opr_pack_writer *writer, const struct opr_pack *pack) OP_NONNULL OP_MUST_CHECK;

/* Writes what is behind the entries unless `err` says that the file is of no use, closes it and frees the rest. 0, `err`, or another -errno. */
int opr_pack_writer_end(struct opr_pack_writer *writer, int err) OP_NONNULL;

#endif
