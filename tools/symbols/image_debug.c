/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/image_debug.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/elf/debug_path.h"
#include "tools/elf/lines.h"
#include "tools/symbols/object_look.h"
#include "tools/symbols/symbol_sources.h"

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
		[OPR_SYMBOLS_RANGES] = "ranges",
		[OPR_SYMBOLS_EXPORTED] = "exported",
		[OPR_SYMBOLS_MINIMAL] = "minimal",
		[OPR_SYMBOLS_TABLE] = "symbols",
		[OPR_SYMBOLS_DEBUG] = "debug info",
		[OPR_SYMBOLS_DAMAGED] = "damaged",
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

/* True when the file that ran has the same build-id, else the same mtime. */
static bool is_same_file(const struct op_dcookie_row *row, const struct opr_object *object)
{
	if (!row)
		return true;
	if (row->id.build_id_bytes) {
		char digits[OP_BUILD_ID_DIGITS];

		op_build_id_format(row->id.build_id, row->id.build_id_bytes, digits);
		return !strcmp(digits, object->build_id);
	}
	return !op_dcookie_mtime(row) || !object->is_object || object->mtime == op_dcookie_mtime(row);
}

static const enum opr_symbol_state states[OPR_OBJECT_NR_SYMBOLS] = {
	[OPR_OBJECT_NONE] = OPR_SYMBOLS_NONE,         [OPR_OBJECT_RANGES] = OPR_SYMBOLS_RANGES,
	[OPR_OBJECT_EXPORTED] = OPR_SYMBOLS_EXPORTED, [OPR_OBJECT_MINIMAL] = OPR_SYMBOLS_MINIMAL,
	[OPR_OBJECT_TABLE] = OPR_SYMBOLS_TABLE,       [OPR_OBJECT_DEBUG] = OPR_SYMBOLS_DEBUG,
};

/* The path of the debug file; in an archive the path that it had on the other machine. */
static char *name_found_file(const struct opr_archive *archives, const char *image_path, const char *debug_file)
{
	const struct opr_archive *archive = opr_archive_of(archives, image_path);
	const char *home = archive ? opr_archive_fact(&archive->debug, opr_archive_strip(archive, image_path)) : NULL;

	return strdup(home ? home : opr_archive_strip(archives, debug_file));
}

/* First its own debugging information, then its debug file, then its other symbols. */
static int set_object_state(struct opr_debug *debug, const struct opr_object *object, const struct opr_finder *finder)
{
	bool is_own = object->symbols == OPR_OBJECT_DEBUG || !object->debug_file;

	memcpy(debug->build_id, object->build_id, sizeof(debug->build_id));
	debug->state = states[is_own ? object->symbols : object->debug_symbols];
	if (debug->state == OPR_SYMBOLS_DEBUG && object->damage) {
		opr_lines_warn_damage(opr_finder_shown(finder, is_own ? debug->path : object->debug_file), object->damage);
		debug->state = OPR_SYMBOLS_DAMAGED;
	}
	if (is_own)
		return 0;
	debug->debug_file = name_found_file(finder->archive, debug->path, object->debug_file);
	return debug->debug_file ? 0 : -ENOMEM;
}

/* An archive has the debug files of its images. */
static const char *root_of(const struct opr_finder *finder, const char *path)
{
	const struct opr_archive *archive = opr_archive_of(finder->archive, path);

	return archive ? archive->dir : finder->root;
}

static int look_at_file(struct opr_debug *debug, const char *name, const struct op_dcookie_row *row,
			const struct opr_finder *finder, uint32_t sources)
{
	struct opr_object object = { 0 };
	int err = opr_object_look(&object, debug->path, name, root_of(finder, debug->path), sources, true);

	if (err)
		goto out;
	if (!is_same_file(row, &object)) {
		debug->state = OPR_SYMBOLS_REPLACED;
		free(debug->path);
		debug->path = NULL;
	} else if (!object.is_object) {
		debug->state = OPR_SYMBOLS_NOT_OBJECT;
	} else {
		err = set_object_state(debug, &object, finder);
	}
out:
	opr_object_free(&object);
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

/* Sets the path that a debug file with this build-id would have. */
static int name_debug_file(struct opr_debug *debug, const char *root)
{
	const struct opr_debug_search search = { .path = "", .name = "", .root = root, .build_id = debug->build_id };
	struct op_text path = { 0 };

	if (opr_debug_path(&search, OPR_DEBUG_BY_BUILD_ID, &path))
		debug->debug_file = op_text_steal(&path);
	return path.failed ? -ENOMEM : 0;
}

bool opr_debug_lacks_names(const struct opr_debug *debug)
{
	return debug->state >= OPR_SYMBOLS_NONE && debug->state < OPR_SYMBOLS_TABLE;
}

bool opr_debug_would_help(const struct opr_debug *debug)
{
	return debug->state != OPR_SYMBOLS_NO_FILE && debug->state != OPR_SYMBOLS_DEBUG && debug->state != OPR_SYMBOLS_DAMAGED &&
	       debug->state != OPR_SYMBOLS_HIDDEN;
}

int opr_debug_look(struct opr_debug *debug, struct opr_finder *finder, const struct op_image_name *image, const char *name,
		   const struct op_dcookie_row *row, uint32_t sources)
{
	struct opr_identity identity = row && image->kind != OP_IMAGE_ANON ? opr_identity_of_row(row) : opr_identity_of(name);
	enum opr_image_state found;
	int err = opr_finder_find(finder, image, name, &identity, &found, &debug->path);

	if (err)
		return opr_no_memory();
	debug->state = state_of_search(found);
	if (row)
		op_build_id_format(row->id.build_id, row->id.build_id_bytes, debug->build_id);
	if (debug->path && opr_identity_is_kallsyms(&identity))
		err = look_at_kallsyms(debug);
	else if (debug->path)
		err = look_at_file(debug, name, row, finder, sources);
	if (!err && !debug->debug_file && opr_debug_would_help(debug))
		err = name_debug_file(debug, finder->root);
	return err ? opr_error(err, "%s: %s", name, strerror(-err)) : 0;
}

void opr_debug_free(struct opr_debug *debug)
{
	if (!debug)
		return;
	free(debug->path);
	free(debug->debug_file);
	*debug = (struct opr_debug){ 0 };
}
