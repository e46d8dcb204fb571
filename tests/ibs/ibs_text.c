/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ibs/ibs_text.h"

#include <string.h>

const char *op_ibs_reason_text(enum op_ibs_reason reason)
{
	static const char *const texts[OP_IBS_NR_REASONS] = {
		[OP_IBS_OK] = "decoded",
		[OP_IBS_CUT] = "cut short",
		[OP_IBS_SHORT] = "too few registers",
		[OP_IBS_UNEVEN] = "no whole number of registers",
		[OP_IBS_NO_CAPS] = "no capability word",
		[OP_IBS_EXTRA] = "more registers than announced",
		[OP_IBS_NOT_VALID] = "not valid",
		[OP_IBS_NO_ADDRESS] = "no address",
	};

	return texts[reason];
}

const char *op_ibs_source_text(enum op_ibs_source source)
{
	static const char *const texts[OP_IBS_NR_SOURCES] = {
		[OP_IBS_SOURCE_NONE] = "unknown",
		[OP_IBS_SOURCE_L1] = "L1",
		[OP_IBS_SOURCE_L2] = "L2",
		[OP_IBS_SOURCE_L3] = "L3",
		[OP_IBS_SOURCE_NODE_CACHE] = "cache of the node",
		[OP_IBS_SOURCE_NEAR_CACHE] = "near cache",
		[OP_IBS_SOURCE_FAR_CACHE] = "far cache",
		[OP_IBS_SOURCE_DRAM] = "DRAM",
		[OP_IBS_SOURCE_PMEM] = "PMEM",
		[OP_IBS_SOURCE_CXL] = "CXL",
		[OP_IBS_SOURCE_IO] = "IO",
		[OP_IBS_SOURCE_PEER] = "peer",
	};

	return texts[source];
}

#define FETCH_ROW(type, member, name, first, nr) { name, offsetof(struct op_ibs, fetch.member), sizeof(type) },
#define OP_ROW(type, member, name, first, nr)    { name, offsetof(struct op_ibs, op.member), sizeof(type) },

const struct op_ibs_field *op_ibs_field(enum op_ibs_kind kind, size_t index)
{
	static const struct op_ibs_field fetch[] = { OP_IBS_FIELDS_FETCH(FETCH_ROW) };
	static const struct op_ibs_field op[] = { OP_IBS_FIELDS_OP(OP_ROW) };

	if (kind == OP_IBS_FETCH)
		return index < op_array_size(fetch) ? &fetch[index] : NULL;
	return index < op_array_size(op) ? &op[index] : NULL;
}

uint64_t op_ibs_field_value(const struct op_ibs *ibs, const struct op_ibs_field *field)
{
	const uint8_t *member = (const uint8_t *)ibs + field->offset;
	uint64_t value8;
	uint32_t value4;
	uint16_t value2;

	switch (field->nr_bytes) {
	case sizeof(value8):
		memcpy(&value8, member, sizeof(value8));
		return value8;
	case sizeof(value4):
		memcpy(&value4, member, sizeof(value4));
		return value4;
	case sizeof(value2):
		memcpy(&value2, member, sizeof(value2));
		return value2;
	default:
		return *member;
	}
}
