/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The object of a process's JIT code, TGID.jo: an ELF file with what the reports need of the functions that had samples.
 *
 *   .text        code bytes, where a jitdump had them
 *   .text.map    addresses of functions whose code is not known; called .text when there is no other
 *   .symtab      one function symbol each, at its synthetic address
 *   .debug_line  source lines, where a jitdump had them, with the .debug_info and .debug_abbrev that lead to them
 *
 * and a seal behind the table of sections.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_OBJECT_H
#define OPD_JIT_OBJECT_H

#include "daemon/jit/address_map.h"
#include "daemon/jit/jitdump.h"
#include "libop/base/compiler.h"
#include "libop/odb/odb.h"

/*
 * Writes the object to `path` below dir_fd: to a temporary file, tmp_path below dir_fd on the same file system, sealed (libop/base/seal.h) and then renamed.
 * It is in the page cache, not necessarily on the disk; *ret_dir_bytes and *ret_pending are as op_odb_publish_sealed gives them. 0 or -errno, and then `path` is as it was.
 */
int opd_jit_object_write(int dir_fd, const char *path, const char *tmp_path, const struct opd_jit_map *map,
			 const struct opd_jitdump *dump, uint64_t *ret_dir_bytes,
			 struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

#endif
