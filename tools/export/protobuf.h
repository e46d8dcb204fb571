/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes messages of Protocol Buffers (protobuf.dev, "Encoding"): a field is a tag, field number
 * << 3 | wire type, and a varint (type 0) or a length with so many bytes (type 2). A field with the
 * value 0 or "" is left out: readers take this as its default. The text may fail, see text.h.
 */
#ifndef OPR_PROTOBUF_H
#define OPR_PROTOBUF_H

#include "libop/base/text.h"

void opr_pb_varint(struct op_text *message, uint64_t value) OP_NONNULL;
void opr_pb_number(struct op_text *message, unsigned int field, uint64_t value) OP_NONNULL;
void opr_pb_bytes(struct op_text *message, unsigned int field, const void *bytes, size_t nr_bytes) OP_NONNULL_ARGS(1);

/* Another message as a field, also when it is empty. Empties `part`. */
void opr_pb_message(struct op_text *message, unsigned int field, struct op_text *part) OP_NONNULL;

#endif
