/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The `abi` file of a session: sizes and offsets in the sample files of the machine that wrote
 * them, a "name value" on each line, with the names of oprofile 1.x (doc/format.md). It lets
 * opimport read files of another byte order, another alignment, or with the longer header of 0.9.
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

/* Part and member by their names in the file, and our member. */
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

/* The sizes and offsets of this machine. */
extern const struct op_abi op_abi_native;

/* Appends the `abi` file of this machine. */
void op_abi_describe(struct op_text *text) OP_NONNULL;

/*
 * Reads the text of an `abi` file; skips lines with other names. 0; -EINVAL: an offset or size is
 * impossible; -ENODATA: a name is missing. After an error *ret_name is the name, a constant.
 */
int op_abi_parse(const char *text, struct op_abi *ret_abi, const char **ret_name) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads a sample file of such a machine, with the errors of op_odb_read. `abi` is from
 * op_abi_parse. The header is converted to that of 1.x, its version too.
 */
int op_abi_read(const struct op_abi *abi, int fd, struct op_odb_samples *ret_samples,
		struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

#endif
