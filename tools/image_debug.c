/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/image_debug.h"

#include <errno.h>
#include <sys/stat.h>

#include "tools/report_log.h"
#include "tools/symbols.h"
#include "tools/symbols_bfd.h"

const char *opr_symbol_state_word(enum opr_symbol_state state)
{
	static const char *const words[] = {
		[OPR_SYMBOLS_NO_FILE] = "-",
		[OPR_SYMBOLS_NOT_FOUND] = "not found",
		[OPR_SYMBOLS_UNREADABLE] = "unreadable",
		[OPR_SYMBOLS_REPLACED] = "replaced",
		[OPR_SYMBOLS_NOT_OBJECT] = "no object",
		[OPR_SYMBOLS_HIDDEN] = "hidden",
		[OPR_SYMBOLS_NONE] = "none",
		[OPR_SYMBOLS_EXPORTED] = "exported",
		[OPR_SYMBOLS_TABLE] = "symbols",
		[OPR_SYMBOLS_DEBUG] = "debug info",
	};

	return words[state];
}

static enum opr_symbol_state state_of_search(enum opr_image_state found)
{
	switch (found) {
	case OPR_IMAGE_HAS_NO_FILE:
		return OPR_SYMBOLS_NO_FILE;
	case OPR_IMAGE_UNREADABLE:
		return OPR_SYMBOLS_UNREADABLE;
	case OPR_IMAGE_REPLACED:
	case OPR_IMAGE_OTHER_KERNEL:
		return OPR_SYMBOLS_REPLACED;
	case OPR_IMAGE_FOUND:
	case OPR_IMAGE_NOT_FOUND:
	case OPR_IMAGE_AMBIGUOUS:
		break;
	}
	return OPR_SYMBOLS_NOT_FOUND;
}

/* Whether the file that was found is the one that ran: by build-id, where none is known by the time of its last change. */
static bool is_same_file(const struct op_dcookie_row *row, const char *build_id, const char *path)
{
	struct stat st;

	if (!row)
		return true;
	if (row->id.build_id_bytes) {
		char digits[2 * OP_BUILD_ID_BYTES_MAX + 1];

		opr_format_build_id(row->id.build_id, row->id.build_id_bytes, digits);
		return !strcmp(digits, build_id);
	}
	return !op_dcookie_mtime(row) || stat(path, &st) < 0 || (uint64_t)st.st_mtime == op_dcookie_mtime(row);
}

static enum opr_symbol_state state_of_object(bfd *image)
{
	if (opr_bfd_has_debug_info(image))
		return OPR_SYMBOLS_DEBUG;
	if (bfd_get_file_flags(image) & HAS_SYMS && bfd_get_symtab_upper_bound(image) > (long)sizeof(asymbol *))
		return OPR_SYMBOLS_TABLE;
	return bfd_get_dynamic_symtab_upper_bound(image) > (long)sizeof(asymbol *) ? OPR_SYMBOLS_EXPORTED : OPR_SYMBOLS_NONE;
}

static int note_debug_file(struct opr_debug *debug, const char *path)
{
	debug->debug_file = strdup(path);
	return debug->debug_file ? 0 : -ENOMEM;
}

/* The object's own tables, else those of its separate debug file. */
static int look_at_object(struct opr_debug *debug, bfd *image, const char *name, const char *root)
{
	bfd *separate;
	int err = 0;

	debug->state = state_of_object(image);
	if (debug->state == OPR_SYMBOLS_DEBUG)
		return 0;
	separate = opr_bfd_open_debug_file(image, debug->path, name, root);
	if (!separate)
		return 0;
	debug->state = state_of_object(separate);
	err = note_debug_file(debug, bfd_get_filename(separate));
	bfd_close(separate);
	return err;
}

static int look_at_file(struct opr_debug *debug, const char *name, const struct op_dcookie_row *row, const char *root)
{
	bfd *image = opr_bfd_open(debug->path);
	char build_id[2 * OP_BUILD_ID_BYTES_MAX + 1] = "";
	int err = 0;

	if (image && image->build_id)
		opr_format_build_id(image->build_id->data, image->build_id->size, build_id);
	if (!is_same_file(row, build_id, debug->path)) {
		debug->state = OPR_SYMBOLS_REPLACED;
		free(debug->path);
		debug->path = NULL;
	} else if (!image) {
		debug->state = OPR_SYMBOLS_NOT_OBJECT;
	} else {
		memcpy(debug->build_id, build_id, sizeof(build_id));
		err = look_at_object(debug, image, name, root);
	}
	if (image)
		bfd_close(image);
	return err;
}

static int look_at_kallsyms(struct opr_debug *debug)
{
	struct opr_symbols symbols = { 0 };
	int err = opr_symbols_read_kallsyms(&symbols, debug->path, OPR_DEMANGLE_NONE);

	debug->state = !err ? OPR_SYMBOLS_TABLE : err == -EPERM ? OPR_SYMBOLS_HIDDEN : OPR_SYMBOLS_NONE;
	opr_symbols_free(&symbols);
	return err == -ENOMEM ? err : 0;
}

/* Where a debug file with that build-id belongs. Source: gdb(1), Separate Debug Files. */
static int name_debug_file(struct opr_debug *debug, const char *root)
{
	struct op_text path = { 0 };

	if (strlen(debug->build_id) <= 2)
		return 0;
	op_text_printf(&path, "%s" OPR_DEBUG_DIR "/.build-id/%.2s/%s.debug", root ? root : "", debug->build_id, debug->build_id + 2);
	debug->debug_file = op_text_steal(&path);
	return debug->debug_file ? 0 : -ENOMEM;
}

bool opr_debug_would_help(const struct opr_debug *debug)
{
	return debug->state != OPR_SYMBOLS_NO_FILE && debug->state != OPR_SYMBOLS_DEBUG && debug->state != OPR_SYMBOLS_HIDDEN;
}

/* Debug files of an image that is in an archive are there, too. */
static const char *root_of(const struct opr_finder *finder, const char *path)
{
	return opr_archive_strip(finder->archive, path) == path ? finder->root : finder->archive->dir;
}

int opr_debug_look(struct opr_debug *debug, struct opr_finder *finder, const struct op_image_name *image, const char *name,
		   const struct op_dcookie_row *row)
{
	struct opr_identity identity = row && image->kind != OP_IMAGE_ANON ? opr_identity_of_row(row) : opr_identity_of(name);
	enum opr_image_state found;
	int err = opr_finder_find(finder, image, name, &identity, &found, &debug->path);

	if (err)
		return opr_no_memory();
	debug->state = state_of_search(found);
	if (row)
		opr_format_build_id(row->id.build_id, row->id.build_id_bytes, debug->build_id);
	if (debug->path && opr_identity_is_kallsyms(&identity))
		err = look_at_kallsyms(debug);
	else if (debug->path)
		err = look_at_file(debug, name, row, root_of(finder, debug->path));
	if (!err && !debug->debug_file && opr_debug_would_help(debug))
		err = name_debug_file(debug, finder->root);
	return err ? opr_no_memory() : 0;
}

void opr_debug_free(struct opr_debug *debug)
{
	if (!debug)
		return;
	free(debug->path);
	free(debug->debug_file);
	*debug = (struct opr_debug){ 0 };
}
