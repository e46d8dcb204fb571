/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/image_identity.h"

#include <sys/stat.h>

#include "libop/parse.h"
#include "tools/symbols_bfd.h"

#define BUILD_ID_PREFIX " (build-id "
#define INODE_PREFIX    " (inode "
#define BUILD_ID_BYTES  6
#define BUILD_ID_DIGITS (2 * BUILD_ID_BYTES)
#define MAX_DIGITS      20 /* of an inode's number */

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* True when the text is so many of these digits, then ")" and its end. */
static bool is_number(const char *text, const char *digits, size_t nr_digits)
{
	return strspn(text, digits) == nr_digits && !strcmp(text + nr_digits, ")");
}

static void read_inode(const char *text, struct opr_identity *identity)
{
	size_t nr_digits = strspn(text, "0123456789");
	char number[MAX_DIGITS + 1];

	if (!nr_digits || nr_digits > MAX_DIGITS || !is_number(text, "0123456789", nr_digits))
		return;
	snprintf(number, sizeof(number), "%.*s", (int)nr_digits, text);
	if (!op_parse_u64(number, 0, UINT64_MAX, &identity->inode))
		identity->kind = identity->inode ? OPR_IDENTITY_INODE : OPR_IDENTITY_UNKNOWN;
}

struct opr_identity opr_identity_of(const char *name)
{
	struct opr_identity identity = { .path_length = strlen(name) };
	const char *bracket = strrchr(name, '(');

	if (!bracket || bracket < name + 2)
		return identity;
	bracket--;
	if (has_prefix(bracket, INODE_PREFIX))
		read_inode(bracket + strlen(INODE_PREFIX), &identity);
	else if (has_prefix(bracket, BUILD_ID_PREFIX) &&
		 is_number(bracket + strlen(BUILD_ID_PREFIX), "0123456789abcdef", BUILD_ID_DIGITS))
		identity.kind = OPR_IDENTITY_BUILD_ID;
	if (identity.kind == OPR_IDENTITY_BUILD_ID)
		identity.build_id = bracket + strlen(BUILD_ID_PREFIX);
	if (identity.kind != OPR_IDENTITY_NONE)
		identity.path_length = (size_t)(bracket - name);
	return identity;
}

char *opr_identity_path(const char *name)
{
	return strndup(name, opr_identity_of(name).path_length);
}

static bool has_build_id(const char *path, const char *wanted)
{
	bfd *abfd = opr_bfd_open(path);
	const struct bfd_build_id *id = abfd ? abfd->build_id : NULL;
	char digits[BUILD_ID_DIGITS + 1] = "";

	for (size_t i = 0; id && id->size >= BUILD_ID_BYTES && i < BUILD_ID_BYTES; i++)
		snprintf(digits + 2 * i, 3, "%02x", id->data[i]);
	if (abfd)
		bfd_close(abfd);
	return !strncmp(digits, wanted, BUILD_ID_DIGITS);
}

bool opr_identity_agrees(const struct opr_identity *identity, const char *path)
{
	struct stat st;

	switch (identity->kind) {
	case OPR_IDENTITY_BUILD_ID:
		return has_build_id(path, identity->build_id);
	case OPR_IDENTITY_INODE:
		return !stat(path, &st) && st.st_ino == identity->inode;
	case OPR_IDENTITY_NONE:
	case OPR_IDENTITY_UNKNOWN:
		break;
	}
	return false;
}
