/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The symbols of an image in bytes: how they come from the process that read them, and how they are kept for the next time. Of this host's byte order. */
#ifndef OPR_SYMBOLS_FILE_H
#define OPR_SYMBOLS_FILE_H

#include "libop/base/text.h"
#include "tools/symbols/symbols.h"

/* The bytes in two pieces, one behind the other; the memory may be used for the next image. */
struct opr_symbols_bytes {
	char *head;
	size_t nr_head_bytes, capacity;
	struct op_text strings;
};

/* Makes the bytes, in the place of what is there. 0; -EOVERFLOW: names have more than 4 GiB; -ENOMEM. To be freed with opr_symbols_bytes_free in any case. */
int opr_symbols_file_make(struct opr_symbols_bytes *bytes, const struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

void opr_symbols_bytes_free(struct opr_symbols_bytes *bytes);

/*
 * Reads them into an empty structure. `path` is the image's, where code can be read. Nothing in the bytes is trusted. 0; -EBADMSG: they are damaged, or of another
 * version; -ENOMEM. To be freed with opr_symbols_free in any case.
 */
int opr_symbols_file_read(struct opr_symbols *symbols, const void *bytes, size_t nr_bytes,
			  const char *path) OP_NONNULL OP_MUST_CHECK;

/* The same, but the names stay where they are: the bytes must be there, with a NUL somewhere behind them, as long as the symbols. */
int opr_symbols_file_look(struct opr_symbols *symbols, const void *bytes, size_t nr_bytes,
			  const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
