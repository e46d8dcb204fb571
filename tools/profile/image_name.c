/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/image_name.h"

#include <inttypes.h>

#define BUILD_ID_SHOWN_BYTES 6

/* ---- the table of images ---- */

const struct op_dcookie_row *opr_session_row(const struct opr_session *session, const struct op_image_name *image)
{
	uint64_t cookie = session->images ? op_dcookie_by_name(session->images, image) : OP_DCOOKIE_NONE;

	return cookie == OP_DCOOKIE_NONE ? NULL : op_dcookie_row(session->images, cookie);
}

struct opr_identity opr_session_identity(const struct opr_session *session, const struct op_image_name *image, const char *name)
{
	const struct op_dcookie_row *row = image->kind == OP_IMAGE_ANON ? NULL : opr_session_row(session, image);

	return row ? opr_identity_of_row(row) : opr_identity_of(name);
}

struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image, const char *name)
{
	if (image->kind != OP_IMAGE_ANON && strcmp(image->name, name + (image->kind == OP_IMAGE_KERNEL)))
		return opr_identity_of(name);
	for (size_t i = profile->nr_sessions; i--;) {
		struct opr_identity identity = opr_session_identity(&profile->sessions[i], image, name);

		if (identity.is_known)
			return identity;
	}
	return opr_identity_of(name);
}

/* ---- names ---- */

static bool has_build_id(const struct op_dcookie_row *row)
{
	return row->id.build_id_bytes >= BUILD_ID_SHOWN_BYTES;
}

/* Two images of which one is unknown count as the same. */
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

/*
 * The row of the image when it needs more than its plain name: a later session has another file of
 * that name. Else NULL.
 */
static const struct op_dcookie_row *find_displaced(const struct opr_profile *profile, size_t session,
						   const struct op_image_name *image)
{
	const struct op_dcookie_row *row, *last = NULL;

	if (image->kind == OP_IMAGE_ANON || profile->nr_sessions < 2)
		return NULL;
	row = opr_session_row(&profile->sessions[session], image);
	if (!row || !(row->id.name.kind == OP_IMAGE_FILE || (row->id.is_kernel && has_build_id(row))))
		return NULL;
	for (size_t i = profile->nr_sessions; i-- && !last;)
		last = opr_session_row(&profile->sessions[i], image);
	return last && last != row && differ(row, last) ? row : NULL;
}

static char *plain_name(const struct op_image_name *image)
{
	struct op_text text = { 0 };

	switch (image->kind) {
	case OP_IMAGE_FILE:
		op_text_add(&text, image->name);
		break;
	case OP_IMAGE_KERNEL:
		op_text_printf(&text, "/%s", image->name);
		break;
	case OP_IMAGE_ANON:
		op_text_printf(&text, "%s (", image->name);
		if (image->tgid || image->start)
			op_text_printf(&text, "tgid:%" PRId32 " ", image->tgid);
		op_text_printf(&text, "range:0x%" PRIx64 "-0x%" PRIx64 ")", image->start, image->end);
		break;
	}
	return op_text_steal(&text);
}

char *opr_session_image_name(const struct opr_profile *profile, size_t session, const struct op_image_name *image)
{
	const struct op_dcookie_row *row = find_displaced(profile, session, image);
	struct op_text text = { 0 };

	if (!row)
		return plain_name(image);
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

const char *opr_base_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return *name == '/' && slash ? slash + 1 : name;
}
