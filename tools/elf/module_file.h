/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files of kernel modules, "fuse.ko", also with ".gz", ".xz" or ".zst" behind it, and other packed
 * bytes.
 */
#ifndef OPR_MODULE_FILE_H
#define OPR_MODULE_FILE_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

#define OPR_MODULE_BYTES_MAX (256u << 20) /* of an unpacked module */

/* True when `suffix` may follow the name of a module in the name of its file. */
bool opr_is_module_suffix(const char *suffix) OP_NONNULL;

/* True when the name of the file is that of a compressed module. */
bool opr_module_is_packed(const char *path) OP_NONNULL;

/*
 * Unpacks a compressed module: all streams in it (members of gzip, frames of zstd). Bytes behind
 * the last stream are ignored. Returns the descriptor of a file in memory, at position 0; -EBADMSG:
 * damaged or cut off; -EFBIG: larger than OPR_MODULE_BYTES_MAX; -ENOMEM, also when the format needs
 * too much memory; another -errno.
 */
int opr_module_unpack(const char *path, struct stat *ret_st) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* The same for xz streams from the position of the descriptor on. */
int opr_xz_unpack(int from) OP_MUST_CHECK;

#endif
