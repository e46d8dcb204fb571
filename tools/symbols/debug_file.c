/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/bfd_file.h"

#include "libop/base/text.h"
#include "tools/common/log.h"

#define MIN_BUILD_ID_BYTES 2

static bfd *open_text(struct op_text *path)
{
	bfd *abfd = path->failed ? NULL : opr_bfd_open(op_text_get(path));

	if (abfd)
		opr_verbose(OPR_TOPIC_bfd, "debug file %s", op_text_get(path));
	return abfd;
}

static bfd *open_by_build_id(bfd *image, const char *root)
{
	const struct bfd_build_id *id = image->build_id;
	struct op_text path = { 0 };
	bfd *abfd;

	if (!id || id->size < MIN_BUILD_ID_BYTES)
		return NULL;
	op_text_printf(&path, "%s" OPR_DEBUG_DIR "/.build-id/%02x/", root, id->data[0]);
	for (size_t i = 1; i < id->size; i++)
		op_text_printf(&path, "%02x", id->data[i]);
	op_text_add(&path, ".debug");
	abfd = open_text(&path);
	op_text_free(&path);
	if (abfd && abfd->build_id && (abfd->build_id->size != id->size || memcmp(abfd->build_id->data, id->data, id->size))) {
		bfd_close(abfd);
		return NULL;
	}
	return abfd;
}

static bool has_crc(const char *path, unsigned long wanted)
{
	unsigned char buffer[65536];
	unsigned long crc = 0;
	FILE *file = fopen(path, "re");
	size_t got;
	bool sound;

	if (!file)
		return false;
	while ((got = fread(buffer, 1, sizeof(buffer), file)) > 0)
		crc = bfd_calc_gnu_debuglink_crc32(crc, buffer, got);
	sound = !ferror(file) && crc == wanted;
	fclose(file);
	return sound;
}

/* root, directory, what comes below it, name */
static bfd *open_link(const char *root, const char *dir, size_t dir_length, const char *below, const char *name, unsigned long crc)
{
	struct op_text path = { 0 };
	bfd *abfd;

	op_text_add(&path, root);
	op_text_add_bytes(&path, dir, dir_length);
	op_text_printf(&path, "%s/%s", below, name);
	abfd = open_text(&path);
	if (abfd && !has_crc(op_text_get(&path), crc)) {
		bfd_close(abfd);
		abfd = NULL;
	}
	op_text_free(&path);
	return abfd;
}

static size_t dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bfd *open_by_link(bfd *image, const char *path, const char *name, const char *root)
{
	unsigned long crc;
	char *link = bfd_get_debug_link_info(image, &crc);
	struct op_text global = { 0 };
	bfd *abfd = NULL;

	if (link && *link && !strchr(link, '/')) {
		op_text_printf(&global, "%s" OPR_DEBUG_DIR, root);
		abfd = open_link("", path, dir_length(path), "/.debug", link, crc);
		if (!abfd && !global.failed)
			abfd = open_link(global.data, name, dir_length(name), "", link, crc);
		if (!abfd)
			abfd = open_link("", path, dir_length(path), "", link, crc);
	}
	op_text_free(&global);
	free(link);
	return abfd;
}

bfd *opr_bfd_open_debug_file(bfd *image, const char *path, const char *name, const char *root)
{
	bfd *abfd = open_by_build_id(image, root ? root : "");

	return abfd ? abfd : open_by_link(image, path, name, root ? root : "");
}
