/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Object files through libbfd: what bfd_file.c and debug_file.c share. */
#ifndef OPR_SYMBOLS_BFD_H
#define OPR_SYMBOLS_BFD_H

#include <bfd.h>

#include "libop/base/compiler.h"

#define OPR_DEBUG_DIR "/usr/lib/debug" /* separate debug files, below the root */

/* Opens an object file for reading; NULL: it is none, or cannot be read. Only regular files are opened; a compressed module is unpacked. bfd_close frees it. */
bfd *opr_bfd_open(const char *path) OP_NONNULL;

/* The name of a symbol; NULL: the file's table of names does not have it. libbfd says "(null)" then. */
const char *opr_bfd_symbol_name(const asymbol *symbol) OP_NONNULL;

/* The file's symbols, for opr_lines; freed by the caller. NULL: there are none. */
asymbol **opr_bfd_read_table(bfd *abfd) OP_NONNULL OP_MUST_CHECK;

struct opr_lines {
	bfd *abfd;
	asymbol **table;
};

/* True when the file itself has debugging information. */
bool opr_bfd_has_debug_info(bfd *abfd) OP_NONNULL;

/*
 * The separate debug file of an image: by build-id, else by .gnu_debuglink with the right CRC. `path` is where the image is, `name` its own name.
 * Opened; NULL: there is none. Source: gdb(1), Separate Debug Files.
 */
bfd *opr_bfd_open_debug_file(bfd *image, const char *path, const char *name, const char *root) OP_NONNULL_ARGS(1, 2, 3);

#endif
