/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Saves the undamaged nodes of a sample file that a power cut, a full disk or another program
 * damaged.
 */
#ifndef OP_ODB_REPAIR_H
#define OP_ODB_REPAIR_H

#include "libop/odb/replace.h"

/*
 * Checks a sample file and makes it whole. Puts the hash table in order and removes unpublished
 * nodes in place. A file with torn nodes, of a wrong length or of oprofile 0.9 is replaced by a
 * new one with its whole nodes; *ret_pending is that replacement, else NULL. *ret_dropped counts
 * the nodes that are torn, unpublished or missing. 0, also when nothing was wrong; -EBADMSG when
 * it is no sample file or its head is damaged; another -errno.
 */
int op_odb_repair(int dir_fd, const char *path, const char *tmp_path, uint32_t *ret_dropped,
		  struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

#endif
