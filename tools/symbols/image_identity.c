/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/image_identity.h"

#include <elf.h>
#include <errno.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/base/text.h"
#include "tools/elf/open_file.h"
#include "tools/symbols/object_look.h"

#define BUILD_ID_PREFIX " (build-id "
#define INODE_PREFIX    " (inode "
#define BUILD_ID_DIGITS 12
#define PROGRAMS_MAX    128
#define NOTE_BYTES_MAX  65536
#define FIRST_BYTES     4096
#define MAX_DIGITS      20 /* of an inode or a dcookie in decimal */

/* ---- names ---- */

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* True when the text is ")" or " #345)". */
static bool is_end(const char *text)
{
	size_t nr_digits = has_prefix(text, " #") ? strspn(text + 2, "0123456789") : 0;

	if (nr_digits && nr_digits <= MAX_DIGITS)
		text += 2 + nr_digits;
	return !strcmp(text, ")");
}

static void read_inode(const char *text, struct opr_identity *identity)
{
	size_t nr_digits = strspn(text, "0123456789");
	char number[MAX_DIGITS + 1];

	if (!nr_digits || nr_digits > MAX_DIGITS || !is_end(text + nr_digits))
		return;
	snprintf(number, sizeof(number), "%.*s", (int)nr_digits, text);
	if (!op_parse_u64(number, 0, UINT64_MAX, &identity->inode))
		identity->kind = identity->inode ? OPR_IDENTITY_INODE : OPR_IDENTITY_UNKNOWN;
}

static void read_build_id(const char *text, struct opr_identity *identity)
{
	if (strspn(text, "0123456789abcdef") != BUILD_ID_DIGITS || !is_end(text + BUILD_ID_DIGITS))
		return;
	snprintf(identity->build_id, sizeof(identity->build_id), "%.*s", BUILD_ID_DIGITS, text);
	identity->kind = OPR_IDENTITY_BUILD_ID;
}

struct opr_identity opr_identity_of(const char *name)
{
	struct opr_identity identity = { .path = name, .path_length = strlen(name) };
	const char *bracket = strrchr(name, '(');

	if (!bracket || bracket < name + 2)
		return identity;
	bracket--;
	if (has_prefix(bracket, INODE_PREFIX))
		read_inode(bracket + strlen(INODE_PREFIX), &identity);
	else if (has_prefix(bracket, BUILD_ID_PREFIX))
		read_build_id(bracket + strlen(BUILD_ID_PREFIX), &identity);
	if (identity.kind == OPR_IDENTITY_NONE)
		return identity;
	identity.path_length = (size_t)(bracket - name);
	identity.told_apart = true;
	identity.is_kernel = opr_identity_is_kallsyms(&identity);
	return identity;
}

/*
 * True when the path alone does not identify the file: it has a build-id to compare, or it is in a
 * container, and the host may have another file at the same path.
 */
static bool may_be_another(const struct op_dcookie_row *row)
{
	return row->id.name.kind == OP_IMAGE_FILE && (row->id.build_id_bytes || (row->container && !row->host_path));
}

struct opr_identity opr_identity_of_row(const struct op_dcookie_row *row)
{
	const char *path = row->host_path ? row->host_path : row->id.name.name;
	struct opr_identity identity = { .is_known = true, .path = path, .path_length = strlen(path), .inode = row->id.inode,
					 .device = row->id.device };

	op_build_id_format(row->id.build_id, row->id.build_id_bytes, identity.build_id);
	identity.told_apart = strcmp(row->name, path) != 0;
	identity.is_kernel = row->id.is_kernel && row->id.build_id_bytes;
	if (!identity.told_apart && !identity.is_kernel && !may_be_another(row))
		return identity;
	identity.kind = row->id.build_id_bytes ? OPR_IDENTITY_BUILD_ID : row->id.inode ? OPR_IDENTITY_INODE : OPR_IDENTITY_UNKNOWN;
	return identity;
}

char *opr_identity_path(const char *name)
{
	return strndup(name, opr_identity_of(name).path_length);
}

bool opr_identity_is_kallsyms(const struct opr_identity *identity)
{
	return identity->path_length == strlen(OPR_KALLSYMS) && has_prefix(identity->path, OPR_KALLSYMS);
}

char *opr_beside_kallsyms(const char *kallsyms, const char *path)
{
	char *beside = NULL;

	return asprintf(&beside, "%.*s%s", (int)(strlen(kallsyms) - strlen(OPR_KALLSYMS)), kallsyms, path) < 0 ? NULL : beside;
}

/* ---- the build-id of a file ---- */

/* A file and its first bytes, where linkers put the headers and notes. */
struct object {
	int fd;
	size_t nr_first;
	uint8_t first[FIRST_BYTES];
};

static bool read_at(const struct object *object, void *buffer, size_t nr_bytes, uint64_t position)
{
	if (position < object->nr_first && nr_bytes <= object->nr_first - position) {
		memcpy(buffer, object->first + position, nr_bytes);
		return true;
	}
	return position <= INT64_MAX && pread(object->fd, buffer, nr_bytes, (off_t)position) == (ssize_t)nr_bytes;
}

static int find_in_segment(const struct object *object, const Elf64_Phdr *program, struct op_build_id *ret_id)
{
	uint8_t *notes;
	int err = -ENODATA;

	if (program->p_type != PT_NOTE || program->p_filesz > NOTE_BYTES_MAX)
		return -ENODATA;
	notes = malloc(program->p_filesz + 1);
	if (!notes)
		return -ENOMEM;
	if (read_at(object, notes, program->p_filesz, program->p_offset) &&
	    op_build_id_in_notes(notes, program->p_filesz, ret_id))
		err = 0;
	free(notes);
	return err;
}

static int find_in_object(int fd, struct op_build_id *ret_id)
{
	const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	struct object object = { .fd = fd };
	ssize_t got = pread(fd, object.first, sizeof(object.first), 0);
	Elf64_Ehdr header;
	int err = -ENODATA;

	if (got < 0)
		return -errno;
	object.nr_first = (size_t)got;
	if (!read_at(&object, &header, sizeof(header), 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != data || header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENODATA;
	for (size_t i = 0; i < header.e_phnum && i < PROGRAMS_MAX && err == -ENODATA; i++) {
		Elf64_Phdr program;

		if (header.e_phoff > INT64_MAX ||
		    !read_at(&object, &program, sizeof(program), header.e_phoff + i * sizeof(program)))
			break;
		err = find_in_segment(&object, &program, ret_id);
	}
	return err;
}

int opr_elf_build_id(const char *path, char digits[OP_BUILD_ID_DIGITS], struct stat *ret_st)
{
	int fd = opr_open_regular(path, ret_st), err;
	struct op_build_id id;

	if (fd < 0)
		return fd;
	err = find_in_object(fd, &id);
	close(fd);
	if (!err)
		op_build_id_format(id.bytes, id.nr_bytes, digits);
	return err;
}

static void read_kernel_build_id(const char *kallsyms, char digits[OP_BUILD_ID_DIGITS])
{
	char *notes = opr_beside_kallsyms(kallsyms, OPR_KERNEL_NOTES);
	struct op_build_id id;

	if (notes && !op_build_id_of_notes_file(notes, &id))
		op_build_id_format(id.bytes, id.nr_bytes, digits);
	free(notes);
}

static bool is_kallsyms_path(const char *path)
{
	size_t length = strlen(path);

	return length >= strlen(OPR_KALLSYMS) && !strcmp(path + length - strlen(OPR_KALLSYMS), OPR_KALLSYMS);
}

void opr_build_id_at(const char *path, char digits[OP_BUILD_ID_DIGITS])
{
	struct opr_object object = { 0 };
	struct stat st;

	digits[0] = '\0';
	if (is_kallsyms_path(path)) {
		read_kernel_build_id(path, digits);
	/* a module, or of another machine */
	} else if (opr_elf_build_id(path, digits, &st) == -ENODATA) {
		if (!opr_object_look(&object, path, NULL, NULL, 0, false))
			memcpy(digits, object.build_id, sizeof(object.build_id));
		opr_object_free(&object);
	}
}

static bool has_inode(const struct opr_identity *identity, const struct opr_archive *archive, const char *path)
{
	struct stat st;

	if (opr_archive_of(archive, path))
		return opr_archive_inode_of(archive, path) == identity->inode;
	return !stat(path, &st) && st.st_ino == identity->inode &&
	       (!identity->device || major(identity->device) || st.st_dev == identity->device);
}

bool opr_identity_agrees(const struct opr_identity *identity, const struct opr_archive *archive, const char *path)
{
	char digits[OP_BUILD_ID_DIGITS];

	switch (identity->kind) {
	case OPR_IDENTITY_BUILD_ID:
		opr_build_id_at(path, digits);
		return has_prefix(digits, identity->build_id);
	case OPR_IDENTITY_INODE:
		return has_inode(identity, archive, path);
	case OPR_IDENTITY_NONE:
	case OPR_IDENTITY_UNKNOWN:
		break;
	}
	return false;
}
