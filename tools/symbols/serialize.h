/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The symbols of one image as bytes, which a child process sends and the cache keeps. They have the
 * byte order of this host. Readers trust nothing in them.
 */
#ifndef OPR_SERIALIZE_H
#define OPR_SERIALIZE_H

#include "libop/base/text.h"
#include "tools/symbols/symbols.h"

/* The bytes are the head and the strings behind it. The memory is reused for the next image. */
struct opr_symbols_bytes {
	char *head;
	size_t nr_head_bytes, capacity;
	struct op_text strings;
};

/*
 * Replaces the bytes with those of `symbols`. 0; -EOVERFLOW: the names have more than 4 GiB;
 * -ENOMEM. To be freed with opr_symbols_bytes_free in any case.
 */
int opr_symbols_serialize(struct opr_symbols_bytes *bytes, const struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

void opr_symbols_bytes_free(struct opr_symbols_bytes *bytes);

/*
 * Reads the bytes into a zeroed structure, to be freed with opr_symbols_free in any case. `path` is
 * the file of the image, for its code. Without `copies` the names stay in the bytes, which then
 * must stay as long as the symbols and have two NULs behind them. 0; -EBADMSG: damaged, or of
 * another version; -ENOMEM.
 */
int opr_symbols_deserialize(struct opr_symbols *symbols, const char *bytes, size_t nr_bytes, const char *path,
			    bool copies) OP_NONNULL OP_MUST_CHECK;

#endif
