/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes TGID.jo, the object of a process's JIT code: an ELF file with what reports need of the
 * functions that had samples.
 *   .text        code bytes of functions that a jitdump describes
 *   .text.map    addresses of functions without code bytes; named .text when there is no other
 *   .text.late   one for each late function, at its own address
 *   .symtab      one function symbol each, at its place
 *   .debug_line  source lines from a jitdump; .debug_info and .debug_abbrev lead to them
 *
 *  A seal (libop/base/seal.h) follows the section headers.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_OBJECT_H
#define OPD_JIT_OBJECT_H

#include "libop/base/compiler.h"
#include "libop/odb/replace.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/jitdump.h"

/*
 * Writes the object to the file tmp_path and renames it to `path`; both are below dir_fd and on one
 * file system. The object is in the page cache, not yet on the disk: *ret_dir_bytes and
 * *ret_pending are as from op_odb_publish_sealed. 0; or -errno, and `path` is unchanged.
 */
int opd_jit_object_write(int dir_fd, const char *path, const char *tmp_path, const struct opd_jit_map *map,
			 const struct opd_jitdump *dump, uint64_t *ret_dir_bytes,
			 struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

#endif
