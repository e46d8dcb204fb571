/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The symbols of an image in bytes: how they come from the process that read them, and how they are kept for the next time. Of this host's byte order. */
#ifndef OPR_SYMBOLS_FILE_H
#define OPR_SYMBOLS_FILE_H

#include "tools/symbols.h"

/* Writes them. An error of the stream is for the caller to see; -EOVERFLOW: names have more than 4 GiB. */
int opr_symbols_file_write(FILE *out, const struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads them into an empty structure. `path` is the image's, where code can be read. Nothing in the bytes is trusted. 0; -EBADMSG: they are damaged, or of another
 * version; -ENOMEM. To be freed with opr_symbols_free in any case.
 */
int opr_symbols_file_read(struct opr_symbols *symbols, const void *bytes, size_t nr_bytes,
			  const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
