/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/debug_path.h"

#include "tools/fetch/debuginfod.h"

#define DEBUG_DIR           "/usr/lib/debug"
#define DOWNLOADED_NAME     "/debuginfo"
#define BUILD_ID_DIGITS_MIN 4

bool opr_debug_path(const struct opr_debug_search *search, enum opr_debug_place place, struct op_text *ret_path)
{
	const char *root = search->root ? search->root : "", *id = search->build_id, *link = search->link;
	const char *file = place == OPR_DEBUG_IN_MIRROR ? search->name : search->path, *slash = strrchr(file, '/');

	op_text_truncate(ret_path, 0);
	if (place == OPR_DEBUG_BY_BUILD_ID || place == OPR_DEBUG_DOWNLOADED) {
		if (!id || strlen(id) < BUILD_ID_DIGITS_MIN || (place == OPR_DEBUG_DOWNLOADED && !opr_debuginfod_dir()))
			return false;
		if (place == OPR_DEBUG_DOWNLOADED)
			op_text_printf(ret_path, "%s/%s" DOWNLOADED_NAME, opr_debuginfod_dir(), id);
		else
			op_text_printf(ret_path, "%s" DEBUG_DIR "/.build-id/%.2s/%s.debug", root, id, id + 2);
		return !ret_path->failed;
	}
	if (!link || !*link || strchr(link, '/'))
		return false;
	if (place == OPR_DEBUG_IN_MIRROR)
		op_text_printf(ret_path, "%s" DEBUG_DIR, root);
	op_text_add_bytes(ret_path, file, slash ? (size_t)(slash - file) : 0);
	op_text_printf(ret_path, "%s/%s", place == OPR_DEBUG_IN_SUBDIR ? "/.debug" : "", link);
	return !ret_path->failed;
}

bool opr_debug_is_downloaded(const char *path, const char *build_id)
{
	size_t length = strlen(path), id_length = strlen(build_id), name_length = strlen(DOWNLOADED_NAME);

	return length > id_length + name_length && !strcmp(path + length - name_length, DOWNLOADED_NAME) &&
	       !strncmp(path + length - name_length - id_length, build_id, id_length);
}
