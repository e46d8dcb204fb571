/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much the memory view (libop/mem.h) may keep of a session. */
#ifndef OPD_MEMORY_LIMIT_H
#define OPD_MEMORY_LIMIT_H

#include <errno.h>

#include "libop/compiler.h"
#include "libop/odb.h"

#define OPD_MEMORY_NODES_MAX (1u << 20) /* in a session: at most 40 MiB */

/* Room for a key. 0; -EDQUOT: there is none. Nodes of a file that was opened before are counted once more: the limit is never passed. */
static inline int opd_memory_limit(uint64_t *nr_nodes, const struct op_odb *odb, uint64_t key)
{
	if (op_odb_has(odb, key))
		return 0;
	if (*nr_nodes >= OPD_MEMORY_NODES_MAX)
		return -EDQUOT;
	++*nr_nodes;
	return 0;
}

#endif
