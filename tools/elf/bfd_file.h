/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Object files through libbfd: open a file, find its debug file, read its symbol table. libbfd may
 * crash or hang on a hostile file, so all of this belongs in a child process
 * (tools/common/child.h).
 */
#ifndef OPR_BFD_FILE_H
#define OPR_BFD_FILE_H

#include <bfd.h>
#include <sys/stat.h>

#include "libop/base/compiler.h"

/*
 * Opens a regular file for reading; a compressed module is unpacked first. NULL: it cannot be read,
 * or is no object file. The caller closes it with bfd_close.
 */
bfd *opr_bfd_open(const char *path) OP_NONNULL;

/*
 * The descriptor that libbfd reads, valid until bfd_close; of a compressed module that of a file in
 * memory. Others read at offsets only: libbfd uses its position.
 */
int opr_bfd_fd(const bfd *abfd) OP_NONNULL;

/* What fstat said of the file that was opened. Nothing else says which file was read. */
const struct stat *opr_bfd_stat(const bfd *abfd) OP_NONNULL;

/*
 * Opens the separate debug file of `image` (debug_path.h): the first with its build-id, or with the
 * CRC that .gnu_debuglink says, whose owner may speak for the image (open_file.h). NULL: there is
 * none.
 */
bfd *opr_bfd_open_debug_file(bfd *image, const char *path, const char *name, const char *root) OP_NONNULL_ARGS(1, 2, 3);

/* Whether the file at `path` is an object with this build-id, which may be its debug file. */
bool opr_bfd_is_of_build_id(const char *path, const char *build_id) OP_NONNULL;

/*
 * True when samples have the addresses of this section. In a relocatable file, such as a kernel
 * module, many sections begin at 0, and samples are relative to .text.
 */
bool opr_bfd_has_addresses(const asection *section) OP_NONNULL;

/* True when the file itself has debugging information. */
bool opr_bfd_has_debug_info(bfd *abfd) OP_NONNULL;

/*
 * Reads the symbol table; freed by the caller. NULL: there is none. *is_damaged becomes true when
 * libbfd cannot read a table that is there.
 */
asymbol **opr_bfd_read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged) OP_NONNULL OP_MUST_CHECK;

/* Reads the dynamic symbol table; freed by the caller. NULL: there is none. */
asymbol **opr_bfd_read_dynamic(bfd *abfd, long *ret_nr_symbols) OP_NONNULL OP_MUST_CHECK;

/* The name of a symbol. NULL: the file's table of names does not have it. */
const char *opr_bfd_symbol_name(const asymbol *symbol) OP_NONNULL;

/* Forgets the message of libbfd and keeps the next one. None goes to stderr. */
void opr_bfd_listen(void);

/* The first message since opr_bfd_listen, valid until the next call of it. NULL: there was none. */
const char *opr_bfd_message(void);

#endif
