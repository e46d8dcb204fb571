/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/abi.h"

#include <errno.h>
#include <sys/stat.h>

#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define STRUCT_BYTES_MAX 4096u
#define NODES_AT_ONCE    4096u

const struct op_abi op_abi_native = {
#define X(name, type) .sizeof_##name = sizeof(type),
	OP_ABI_SIZES(X)
#undef X
#define X(part, name, member) .offsetof_##part##_##name = offsetof(struct op_odb_##part, member),
		OP_ABI_OFFSETS(X)
#undef X
			.little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
};

static const struct row {
	const char *name;
	size_t offset; /* in struct op_abi */
} rows[] = {
#define X(name, type) { "sizeof_" #name, offsetof(struct op_abi, sizeof_##name) },
	OP_ABI_SIZES(X)
#undef X
#define X(part, name, member) { "offsetof_" #part "_" #name, offsetof(struct op_abi, offsetof_##part##_##name) },
		OP_ABI_OFFSETS(X)
#undef X
			{ "little_endian", offsetof(struct op_abi, little_endian) },
};

static uint32_t value_of(const struct op_abi *abi, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)abi + offset, sizeof(value));
	return value;
}

void op_abi_describe(struct op_text *text)
{
	for (size_t i = 0; i < op_array_size(rows); i++)
		op_text_printf(text, "%s %u\n", rows[i].name, value_of(&op_abi_native, rows[i].offset));
}

/* ---- the text ---- */

/* The value on the line of a name. */
static int find_value(const char *text, const char *name, uint32_t *ret_value)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		char digits[16] = "";
		uint64_t value;

		if (strncmp(line, name, length) != 0 || line[length] != ' ')
			continue;
		line += length + 1;
		memcpy(digits, line, op_min_u64(strcspn(line, " \t\r\n"), sizeof(digits) - 1));
		if (op_parse_u64(digits, 0, STRUCT_BYTES_MAX, &value) < 0)
			return -EINVAL;
		*ret_value = (uint32_t)value;
		return 0;
	}
	return -ENODATA;
}

static bool is_number_size(uint32_t nr_bytes)
{
	return nr_bytes == 1 || nr_bytes == 2 || nr_bytes == 4 || nr_bytes == 8;
}

/* The members that are read: part, name, type, and the struct around them. */
#define FIELDS(X)                                                                                                                  \
	X(node, key, odb_key_t, odb_node_t)                                                                                        \
	X(node, value, odb_value_t, odb_node_t)                                                                                    \
	X(descr, size, odb_node_nr_t, odb_descr_t)                                                                                 \
	X(descr, current_size, odb_node_nr_t, odb_descr_t)                                                                         \
	X(header, magic, u32, struct_opd_header)                                                                                   \
	X(header, version, u32, struct_opd_header)                                                                                 \
	X(header, cpu_type, u32, struct_opd_header)                                                                                \
	X(header, ctr_event, u32, struct_opd_header)                                                                               \
	X(header, ctr_um, u32, struct_opd_header)                                                                                  \
	X(header, ctr_count, u32, struct_opd_header)                                                                               \
	X(header, is_kernel, u32, struct_opd_header)                                                                               \
	X(header, cpu_speed, double, struct_opd_header)                                                                            \
	X(header, mtime, u64, struct_opd_header)                                                                                   \
	X(header, cg_to_is_kernel, u32, struct_opd_header)                                                                         \
	X(header, anon_start, u64, struct_opd_header)                                                                              \
	X(header, cg_to_anon_start, u64, struct_opd_header)

static int check(const struct op_abi *abi, const char **ret_name)
{
#define X(part, name, type, whole)                                                                                                 \
	if (!is_number_size(abi->sizeof_##type) ||                                                                                 \
	    (uint64_t)abi->offsetof_##part##_##name + abi->sizeof_##type > abi->sizeof_##whole) {                                  \
		*ret_name = "offsetof_" #part "_" #name;                                                                           \
		return -EINVAL;                                                                                                    \
	}
	FIELDS(X)
#undef X
	return 0;
}

int op_abi_parse(const char *text, struct op_abi *ret_abi, const char **ret_name)
{
	struct op_abi abi;
	int err;

	for (size_t i = 0; i < op_array_size(rows); i++) {
		uint32_t value = 0;

		err = find_value(text, rows[i].name, &value);
		if (err < 0) {
			*ret_name = rows[i].name;
			return err;
		}
		memcpy((uint8_t *)&abi + rows[i].offset, &value, sizeof(value));
	}
	err = check(&abi, ret_name);
	if (!err)
		*ret_abi = abi;
	return err;
}

/* ---- the file ---- */

static uint64_t number_at(const struct op_abi *abi, const uint8_t *bytes, uint32_t nr_bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < nr_bytes; i++)
		value = value << 8 | bytes[abi->little_endian ? nr_bytes - 1 - i : i];
	return value;
}

#define NUMBER(abi, bytes, part, name, type) number_at((abi), (bytes) + (abi)->offsetof_##part##_##name, (abi)->sizeof_##type)

static double double_at(const struct op_abi *abi, const uint8_t *bytes)
{
	uint64_t bits = NUMBER(abi, bytes, header, cpu_speed, double);
	double value;

	if (abi->sizeof_double != sizeof(value))
		return 0;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static int take_header(const struct op_abi *abi, const uint8_t *bytes, struct op_odb_header *header, struct op_odb_fault *ret_fault)
{
	uint32_t version = (uint32_t)NUMBER(abi, bytes, header, version, u32);

	if (memcmp(bytes + abi->offsetof_header_magic, OP_ODB_MAGIC, sizeof(header->magic)) != 0)
		return op_odb_fault(ret_fault, OP_ODB_BAD_MAGIC, abi->offsetof_header_magic);
	if (version != OP_ODB_VERSION && version != OP_ODB_VERSION_0_9)
		return op_odb_fault(ret_fault, OP_ODB_BAD_VERSION, abi->offsetof_header_version);
	*header = (struct op_odb_header){ .magic = OP_ODB_MAGIC, .version = OP_ODB_VERSION };
#define X(part, name, type, whole) header->name = (typeof(header->name))NUMBER(abi, bytes, part, name, type);
	X(header, cpu_type, u32, )
	X(header, ctr_event, u32, )
	X(header, ctr_um, u32, )
	X(header, ctr_count, u32, )
	X(header, is_kernel, u32, )
	X(header, mtime, u64, )
	X(header, cg_to_is_kernel, u32, )
	X(header, anon_start, u64, )
	X(header, cg_to_anon_start, u64, )
#undef X
	header->cpu_speed_mhz = double_at(abi, bytes);
	if (version == OP_ODB_VERSION_0_9)
		header->cpu_type = op_odb_cpu_type_of_0_9(header->cpu_type);
	return 0;
}

static int read_header(const struct op_abi *abi, int fd, struct op_odb_header *header, struct op_odb_fault *ret_fault)
{
	uint8_t bytes[STRUCT_BYTES_MAX];
	int err = op_odb_read_part(fd, bytes, abi->sizeof_struct_opd_header, 0, OP_ODB_NO_HEADER, ret_fault);

	return err ? err : take_header(abi, bytes, header, ret_fault);
}

/* *ret_nr: nodes in use, without node 0. */
static int read_descr(const struct op_abi *abi, int fd, uint32_t *ret_nr, struct op_odb_fault *ret_fault)
{
	uint8_t bytes[STRUCT_BYTES_MAX];
	uint64_t offset = abi->sizeof_struct_opd_header, size, current_size, room;
	struct stat st;
	int err = op_odb_read_part(fd, bytes, abi->sizeof_odb_descr_t, offset, OP_ODB_NO_HEADER, ret_fault);

	if (!err)
		err = op_sys_fstat(fd, &st);
	if (err)
		return err;
	size = NUMBER(abi, bytes, descr, size, odb_node_nr_t);
	current_size = NUMBER(abi, bytes, descr, current_size, odb_node_nr_t);
	room = (uint64_t)st.st_size - offset - abi->sizeof_odb_descr_t;
	if (!current_size || current_size > size || size > OP_ODB_SIZE_MAX || current_size * abi->sizeof_odb_node_t > room)
		return op_odb_fault(ret_fault, OP_ODB_BAD_NODES, offset);
	*ret_nr = (uint32_t)current_size - 1;
	return 0;
}

static void take_nodes(const struct op_abi *abi, const uint8_t *bytes, uint32_t nr, struct op_odb_node *nodes)
{
	for (uint32_t i = 0; i < nr; i++, bytes += abi->sizeof_odb_node_t) {
		nodes[i].key = NUMBER(abi, bytes, node, key, odb_key_t);
		nodes[i].value = (uint32_t)NUMBER(abi, bytes, node, value, odb_value_t);
	}
}

static int read_nodes(const struct op_abi *abi, int fd, uint32_t nr_nodes, struct op_odb_node *nodes,
		      struct op_odb_fault *ret_fault)
{
	uint64_t offset = (uint64_t)abi->sizeof_struct_opd_header + abi->sizeof_odb_descr_t + abi->sizeof_odb_node_t;
	uint8_t *bytes = malloc((size_t)NODES_AT_ONCE * abi->sizeof_odb_node_t);
	int err = bytes ? 0 : -ENOMEM;

	for (uint32_t done = 0; !err && done < nr_nodes;) {
		uint32_t nr = (uint32_t)op_min_u64(NODES_AT_ONCE, nr_nodes - done);

		err = op_odb_read_part(fd, bytes, (size_t)nr * abi->sizeof_odb_node_t, offset, OP_ODB_BAD_NODES, ret_fault);
		if (err)
			break;
		take_nodes(abi, bytes, nr, nodes + done);
		offset += (uint64_t)nr * abi->sizeof_odb_node_t;
		done += nr;
	}
	free(bytes);
	return err;
}

int op_abi_read(const struct op_abi *abi, int fd, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
{
	struct op_odb_samples samples = { 0 };
	int err = read_header(abi, fd, &samples.header, ret_fault);

	if (!err)
		err = read_descr(abi, fd, &samples.nr_nodes, ret_fault);
	if (err)
		return err;
	samples.nodes = calloc((size_t)samples.nr_nodes + 1, sizeof(*samples.nodes));
	err = samples.nodes ? read_nodes(abi, fd, samples.nr_nodes, samples.nodes, ret_fault) : -ENOMEM;
	if (err) {
		op_odb_samples_free(&samples);
		return err;
	}
	*ret_samples = samples;
	return 0;
}
