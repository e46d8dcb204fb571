/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two sessions may have different files under one name: the one of the later session keeps it, the other is told apart as opd does within a session. */
#include <inttypes.h>

#include "tools/profile/profile.h"

#define BUILD_ID_SHOWN_BYTES 6

static bool has_build_id(const struct op_dcookie_row *row)
{
	return row->id.build_id_bytes >= BUILD_ID_SHOWN_BYTES;
}

static bool has_file(const struct op_dcookie_row *row)
{
	return row->id.name.kind == OP_IMAGE_FILE || (row->id.is_kernel && has_build_id(row));
}

/* Where nothing is known of one of them, they are taken for the same. */
static bool differ(const struct op_dcookie_row *a, const struct op_dcookie_row *b)
{
	if (has_build_id(a) && has_build_id(b))
		return a->id.build_id_bytes != b->id.build_id_bytes ||
		       memcmp(a->id.build_id, b->id.build_id, a->id.build_id_bytes) != 0;
	if (!a->id.inode || !b->id.inode)
		return false;
	return a->id.inode != b->id.inode || a->id.device != b->id.device || a->id.mtime_ns != b->id.mtime_ns ||
	       a->id.bytes != b->id.bytes;
}

/* The row that has the name: of the last session that knows it. */
static const struct op_dcookie_row *owner(const struct opr_profile *profile, const struct op_image_name *image)
{
	for (size_t i = profile->nr_sessions; i--;) {
		const struct op_dcookie_row *row = opr_session_row(&profile->sessions[i], image);

		if (row)
			return row;
	}
	return NULL;
}

char *opr_session_image_name(const struct opr_profile *profile, size_t session, const struct op_image_name *image)
{
	const struct op_dcookie_row *row = NULL, *first = NULL;
	struct op_text text = { 0 };

	if (image->kind != OP_IMAGE_ANON && profile->nr_sessions > 1)
		row = opr_session_row(&profile->sessions[session], image);
	if (row && has_file(row))
		first = owner(profile, image);
	if (!first || row == first || !differ(row, first))
		return opr_image_name(image);
	op_text_printf(&text, "%s%s (", image->kind == OP_IMAGE_KERNEL ? "/" : "", image->name);
	if (has_build_id(row)) {
		op_text_add(&text, "build-id ");
		for (size_t i = 0; i < BUILD_ID_SHOWN_BYTES; i++)
			op_text_printf(&text, "%02x", row->id.build_id[i]);
	} else {
		op_text_printf(&text, "inode %" PRIu64, row->id.inode);
	}
	op_text_add_char(&text, ')');
	return op_text_steal(&text);
}
