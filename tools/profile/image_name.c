/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/image_name.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"

#define BUILD_ID_SHOWN_BYTES 6
#define KERNEL_PREFIX        "[kernel." /* begins the names of kernels in perf.data */

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

/*
 * Of an image that has another image's name, opr_session_image_name. The name has the first digits
 * of its build-id. A session has all of them, by which opd keeps its functions.
 */
static struct opr_identity displaced_identity(const struct opr_profile *profile, const struct op_image_name *image,
					      const char *name)
{
	struct opr_identity identity = opr_identity_of(name);

	for (size_t i = 0; identity.kind == OPR_IDENTITY_BUILD_ID && i < profile->nr_sessions; i++) {
		const struct op_dcookie_row *row = opr_session_row(&profile->sessions[i], image);
		char digits[OP_BUILD_ID_DIGITS];

		if (!row)
			continue;
		op_build_id_format(row->id.build_id, row->id.build_id_bytes, digits);
		if (strncmp(digits, identity.build_id, strlen(identity.build_id)) != 0)
			continue;
		memcpy(identity.build_id, digits, sizeof(digits));
		break;
	}
	return identity;
}

struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image, const char *name)
{
	if (image->kind != OP_IMAGE_ANON && strcmp(image->name, name + (image->kind == OP_IMAGE_KERNEL)))
		return displaced_identity(profile, image, name);
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

bool opr_is_kernel_thread(const struct opr_session *session, const struct op_image_name *image)
{
	const struct op_dcookie_row *row = image->kind == OP_IMAGE_KERNEL ? opr_session_row(session, image) : NULL;

	return row && row->id.name.name[0] == '[' && !row->id.is_kernel && !row->id.is_pseudo;
}

const struct op_dcookie_row *opr_session_program(const struct opr_session *session, const struct op_image_name *app)
{
	const struct op_dcookie_row *row = app->kind == OP_IMAGE_FILE ? opr_session_row(session, app) : NULL;

	return row && op_dcookie_is_program(&row->id) ? row : NULL;
}

struct op_image_name opr_session_application(const struct opr_session *session, const struct op_image_name *app)
{
	const struct op_dcookie_row *program = opr_session_program(session, app);

	return program ? op_dcookie_name(op_dcookie_row(session->images, program->id.program_of)) : *app;
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

/* JIT code whose names never came is under a label of its process: shown as any other memory. */
static const char *shown_label(const char *label)
{
	return strncmp(label, OP_JIT_LABEL, strlen(OP_JIT_LABEL)) ? label : OP_ANONYMOUS_LABEL;
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
		op_text_printf(&text, "%s (", shown_label(image->name));
		if (image->tgid || image->start)
			op_text_printf(&text, "tgid:%" PRId32 " ", image->tgid);
		op_text_printf(&text, "range:0x%" PRIx64 "-0x%" PRIx64 ")", image->start, image->end);
		break;
	}
	return op_text_steal(&text);
}

/* The kernel cuts the name of a process. */
static bool is_called_like(const char *comm, const char *path)
{
	const char *name = opr_base_name(path);

	return strlen(comm) == OP_COMM_BYTES - 1 ? !strncmp(name, comm, OP_COMM_BYTES - 1) : !strcmp(name, comm);
}

/* "PATH (COMM)", with underscores for slashes, or PATH alone. */
static char *program_name(const struct opr_profile *profile, size_t session, const struct op_dcookie_row *program)
{
	const struct op_dcookie_table *images = profile->sessions[session].images;
	const struct op_image_name application = op_dcookie_name(op_dcookie_row(images, program->id.program_of));
	char *name = opr_session_image_name(profile, session, &application), *full = NULL, comm[OP_COMM_BYTES];

	if (!name || !program->id.comm[0] || is_called_like(program->id.comm, program->id.name.name))
		return name;
	snprintf(comm, sizeof(comm), "%s", program->id.comm);
	for (char *c = comm; *c; c++)
		if (*c == '/')
			*c = '_';
	if (asprintf(&full, "%s (%s)", name, comm) < 0)
		full = NULL;
	free(name);
	return full;
}

char *opr_session_image_name(const struct opr_profile *profile, size_t session, const struct op_image_name *image)
{
	const struct op_dcookie_row *program = opr_session_program(&profile->sessions[session], image);
	const struct op_dcookie_row *row = program ? NULL : find_displaced(profile, session, image);
	struct op_text text = { 0 };

	if (program)
		return program_name(profile, session, program);

	if (opr_is_kernel_thread(&profile->sessions[session], image))
		return strdup(image->name); /* without a slash: no file can have the name */
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

	/* A file that calls itself like a thread of the kernel keeps its directory. */
	if (*name != '/' || (slash[1] == '[' && strncmp(slash + 1, KERNEL_PREFIX, strlen(KERNEL_PREFIX)) != 0))
		return name;
	return slash + 1;
}

/* ---- equal base names ---- */

static int compare_full(const void *left, const void *right)
{
	const struct opr_short_name *a = left, *b = right;

	return strcmp(a->full, b->full);
}

/* How many bytes at the end of two names are the same. */
static size_t nr_common(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b), nr = 0;

	while (nr < a_length && nr < b_length && a[a_length - 1 - nr] == b[b_length - 1 - nr])
		nr++;
	return nr;
}

/* By the last byte, then by the one before: names with much in common there are neighbours. */
static int compare_ends(const void *left, const void *right)
{
	const struct opr_short_name *a = left, *b = right;
	size_t a_length = strlen(a->full), b_length = strlen(b->full), nr = nr_common(a->full, b->full);

	if (nr == a_length || nr == b_length)
		return a_length < b_length ? -1 : a_length > b_length;
	return (unsigned char)a->full[a_length - 1 - nr] < (unsigned char)b->full[b_length - 1 - nr] ? -1 : 1;
}

int opr_short_names_add(struct opr_short_names *names, const char *full)
{
	if ((names->nr_names && names->names[names->nr_names - 1].full == full))
		return 0;
	if (!op_grow(&names->names, &names->capacity, names->nr_names + 1))
		return opr_no_memory();
	names->names[names->nr_names++] = (struct opr_short_name){ full, NULL };
	return 0;
}

static int add_names(struct opr_short_names *names, const struct opr_profile *profile)
{
	int err = 0;

	for (size_t i = 0; profile && i < profile->nr_parts && !err; i++) {
		const char *const of_part[] = { profile->parts[i].app, profile->parts[i].image, profile->parts[i].callee };

		for (size_t n = 0; n < op_array_size(of_part) && !err; n++)
			err = of_part[n] ? opr_short_names_add(names, of_part[n]) : 0;
	}
	return err;
}

/* The end of a path with one more directory than `end`; the whole path if there is no other. */
static const char *one_more(const char *full, const char *end)
{
	if (end - full < 2)
		return full;
	for (end -= 2; end > full && *end != '/'; end--)
		;
	return end > full ? end + 1 : full;
}

/* Sets what is shown of a name, when another has `nr_bytes` at its end in common. */
static void tell_apart(struct opr_short_name *name, size_t nr_bytes)
{
	size_t length = strlen(name->full);

	while (name->shown != name->full && length - (size_t)(name->shown - name->full) <= nr_bytes)
		name->shown = one_more(name->full, name->shown);
}

/*
 * The names are in the order of their ends. Drops equal names, then those that are alone with their
 * base name.
 */
static void keep_groups(struct opr_short_names *names)
{
	size_t nr_kept = 0, nr_grouped = 0;

	for (size_t i = 0; i < names->nr_names; i++)
		if (!nr_kept || strcmp(names->names[nr_kept - 1].full, names->names[i].full) != 0)
			names->names[nr_kept++] = names->names[i];
	for (size_t i = 0; i < nr_kept; i++)
		names->names[i].shown = opr_base_name(names->names[i].full);
	for (size_t i = 1; i < nr_kept; i++) {
		struct opr_short_name *a = &names->names[i - 1], *b = &names->names[i];
		size_t nr_bytes = nr_common(a->full, b->full);

		if (strcmp(opr_base_name(a->full), opr_base_name(b->full)) != 0)
			continue;
		tell_apart(a, nr_bytes);
		tell_apart(b, nr_bytes);
	}
	for (size_t i = 0; i < nr_kept; i++)
		if (names->names[i].shown != opr_base_name(names->names[i].full))
			names->names[nr_grouped++] = names->names[i];
	names->nr_names = nr_grouped;
}

void opr_short_names_end(struct opr_short_names *names)
{
	if (names->nr_names)
		qsort(names->names, names->nr_names, sizeof(*names->names), compare_ends);
	keep_groups(names);
	if (names->nr_names)
		qsort(names->names, names->nr_names, sizeof(*names->names), compare_full);
}

int opr_short_names_make(struct opr_short_names *names, const struct opr_profile *profile, const struct opr_profile *second)
{
	int err;

	*names = (struct opr_short_names){ 0 };
	err = add_names(names, profile);
	if (!err)
		err = add_names(names, second);
	if (!err)
		opr_short_names_end(names);
	return err;
}

const char *opr_short_name(const struct opr_short_names *names, const char *full)
{
	const struct opr_short_name key = { full, NULL }, *found = NULL;

	if (names->nr_names)
		found = bsearch(&key, names->names, names->nr_names, sizeof(key), compare_full);
	return found ? found->shown : NULL;
}

void opr_short_names_free(struct opr_short_names *names)
{
	if (!names)
		return;
	free(names->names);
	*names = (struct opr_short_names){ 0 };
}
