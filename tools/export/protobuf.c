/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/export/protobuf.h"

enum { VARINT, LENGTH = 2 };

void opr_pb_varint(struct op_text *message, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		op_text_add_char(message, (char)(value | 0x80));
	op_text_add_char(message, (char)value);
}

void opr_pb_number(struct op_text *message, unsigned int field, uint64_t value)
{
	if (!value)
		return;
	opr_pb_varint(message, field << 3 | VARINT);
	opr_pb_varint(message, value);
}

static void add_length(struct op_text *message, unsigned int field, const void *bytes, size_t nr_bytes)
{
	opr_pb_varint(message, field << 3 | LENGTH);
	opr_pb_varint(message, nr_bytes);
	op_text_add_bytes(message, bytes, nr_bytes);
}

void opr_pb_bytes(struct op_text *message, unsigned int field, const void *bytes, size_t nr_bytes)
{
	if (nr_bytes)
		add_length(message, field, bytes, nr_bytes);
}

void opr_pb_message(struct op_text *message, unsigned int field, struct op_text *part)
{
	add_length(message, field, op_text_get(part), part->length);
	message->failed |= part->failed;
	op_text_truncate(part, 0);
}
