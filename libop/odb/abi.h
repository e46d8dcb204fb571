/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The `abi` file of a session: how large and where the parts of a sample file are on the machine that wrote it, a "name value" on each line. Names as
 * oprofile 1.x has them, doc/format.md. With it a file of another machine (other byte order, other alignment, the longer header of 0.9.x) is read.
 * Any thread.
 */
#ifndef OP_ABI_H
#define OP_ABI_H

#include "libop/base/text.h"
#include "libop/odb/read.h"

#define OP_ABI_NAME      "abi" /* below the session directory */
#define OP_ABI_MAX_BYTES 65536u

#define OP_ABI_SIZES(X)                                                                                                            \
	X(double, double)                                                                                                          \
	X(u64, uint64_t)                                                                                                           \
	X(u8, uint8_t)                                                                                                             \
	X(u32, uint32_t)                                                                                                           \
	X(int, int)                                                                                                                \
	X(unsigned_int, unsigned int)                                                                                              \
	X(odb_key_t, uint64_t)                                                                                                     \
	X(odb_index_t, uint32_t)                                                                                                   \
	X(odb_value_t, uint32_t)                                                                                                   \
	X(odb_node_nr_t, uint32_t)                                                                                                 \
	X(odb_descr_t, struct op_odb_descr)                                                                                        \
	X(odb_node_t, struct op_odb_node)                                                                                          \
	X(struct_opd_header, struct op_odb_header)

/* The part and the member as the file names them, and the member of ours. */
#define OP_ABI_OFFSETS(X)                                                                                                          \
	X(node, key, key)                                                                                                          \
	X(node, value, value)                                                                                                      \
	X(node, next, next)                                                                                                        \
	X(descr, size, size)                                                                                                       \
	X(descr, current_size, current_size)                                                                                       \
	X(header, magic, magic)                                                                                                    \
	X(header, version, version)                                                                                                \
	X(header, cpu_type, cpu_type)                                                                                              \
	X(header, ctr_event, ctr_event)                                                                                            \
	X(header, ctr_um, ctr_um)                                                                                                  \
	X(header, ctr_count, ctr_count)                                                                                            \
	X(header, is_kernel, is_kernel)                                                                                            \
	X(header, cpu_speed, cpu_speed_mhz)                                                                                        \
	X(header, mtime, mtime)                                                                                                    \
	X(header, cg_to_is_kernel, cg_to_is_kernel)                                                                                \
	X(header, anon_start, anon_start)                                                                                          \
	X(header, cg_to_anon_start, cg_to_anon_start)

struct op_abi {
#define X(name, type) uint32_t sizeof_##name;
	OP_ABI_SIZES(X)
#undef X
#define X(part, name, member) uint32_t offsetof_##part##_##name;
	OP_ABI_OFFSETS(X)
#undef X
	uint32_t little_endian;
};

/* This machine's. */
extern const struct op_abi op_abi_native;

/* Adds the lines of this machine's `abi` file. */
void op_abi_describe(struct op_text *text) OP_NONNULL;

/*
 * Reads the text of an `abi` file; lines with other names are passed over. 0; -EINVAL: a part does not lie where it could be, or has a size
 * that is none; -ENODATA: a name is missing. *ret_name is then the name, constant.
 */
int op_abi_parse(const char *text, struct op_abi *ret_abi, const char **ret_name) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads a sample file of such a machine as op_odb_read reads one of this machine, with the same errors. `abi` is from op_abi_parse.
 * The header is as 1.x has it, and its version OP_ODB_VERSION.
 */
int op_abi_read(const struct op_abi *abi, int fd, struct op_odb_samples *ret_samples,
		struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

#endif
