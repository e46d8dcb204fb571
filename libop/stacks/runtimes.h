/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The runtimes whose functions stacks name. Programs in the kernel include this file too. */
#ifndef OP_STACKS_RUNTIMES_H
#define OP_STACKS_RUNTIMES_H

/* clang-format off */
#define OP_RUNTIMES(X) \
	X(python) \
	X(node) \
	X(java) \
	X(php) \
	X(perl) \
	X(ruby)
/* clang-format on */

enum op_runtime {
	OP_RUNTIME_none,
#define X(name) OP_RUNTIME_##name,
	OP_RUNTIMES(X)
#undef X
		OP_NR_RUNTIMES,
};

#endif
