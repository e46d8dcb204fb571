/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/object_look.h"

#include <errno.h>

#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/symbols/symbol_sources.h"

struct request {
	const char *path, *name, *root;
	uint32_t sources;
	bool probe;
};

/* The child writes this, the two names with their NUL bytes, and the damage, if any. */
struct answer {
	uint32_t symbols, debug_symbols;
	char build_id[OP_BUILD_ID_DIGITS];
	uint64_t mtime, debug_device, debug_inode;
	uint64_t file_bytes, link_bytes; /* of debug_file and debug_link; 0: there is none */
};

/* ---- in the child ---- */

/* The first that the file has. */
static enum opr_object_symbols symbols_of(bfd *object, uint32_t sources)
{
	bool has_table = bfd_get_file_flags(object) & HAS_SYMS && bfd_get_symtab_upper_bound(object) > (long)sizeof(asymbol *);
	bool is_linked = bfd_get_file_flags(object) & (EXEC_P | DYNAMIC);

	if (opr_bfd_has_debug_info(object))
		return OPR_OBJECT_DEBUG;
	if (sources & OPR_FROM_SYMTAB && has_table)
		return OPR_OBJECT_TABLE;
	if (sources & OPR_FROM_DEBUGDATA && is_linked && bfd_get_section_by_name(object, OPR_DEBUGDATA))
		return OPR_OBJECT_MINIMAL;
	if (sources & OPR_FROM_DYNSYM && bfd_get_dynamic_symtab_upper_bound(object) > (long)sizeof(asymbol *))
		return OPR_OBJECT_EXPORTED;
	return sources & OPR_FROM_RANGES && is_linked && bfd_get_section_by_name(object, OPR_FRAMES) ? OPR_OBJECT_RANGES
												     : OPR_OBJECT_NONE;
}

static size_t bytes_of(const char *string)
{
	return string ? strlen(string) + 1 : 0;
}

static int write_answer(FILE *out, bfd *object, const struct request *request)
{
	bfd *debug = request->name ? opr_bfd_open_debug_file(object, request->path, request->name, request->root) : NULL;
	const char *file = debug ? bfd_get_filename(debug) : NULL, *damage = NULL;
	bfd *probed;
	unsigned long crc;
	char *link = bfd_get_debug_link_info(object, &crc);
	struct answer answer = { .symbols = symbols_of(object, request->sources),
				 .mtime = (uint64_t)opr_bfd_stat(object)->st_mtime,
				 .file_bytes = bytes_of(file),
				 .link_bytes = bytes_of(link) };

	if (debug) {
		answer.debug_symbols = symbols_of(debug, OPR_FROM_SYMTAB);
		answer.debug_device = opr_bfd_stat(debug)->st_dev;
		answer.debug_inode = opr_bfd_stat(debug)->st_ino;
	}
	if (object->build_id)
		op_build_id_format(object->build_id->data, object->build_id->size, answer.build_id);
	fwrite(&answer, sizeof(answer), 1, out);
	if (file)
		fwrite(file, 1, bytes_of(file), out);
	if (link)
		fwrite(link, 1, bytes_of(link), out);
	free(link);
	probed = answer.symbols == OPR_OBJECT_DEBUG ? object : debug;
	/* libbfd may crash from here on: the answer is flushed first. */
	if (fflush(out) != EOF && request->probe && probed && opr_bfd_has_debug_info(probed))
		damage = opr_lines_probe(probed, request->root);
	if (damage)
		fwrite(damage, 1, strlen(damage), out);
	if (debug)
		bfd_close(debug);
	return 0;
}

static int read_object(FILE *out, void *arg)
{
	const struct request *request = arg;
	bfd *object = opr_bfd_open(request->path);
	int err = object ? write_answer(out, object, request) : -ENOEXEC;

	if (object)
		bfd_close(object);
	return err;
}

/* ---- in the parent ---- */

/* Copies a string of nr_bytes with its NUL; *ret_string stays NULL when nr_bytes is 0. */
static int copy_string(const char *bytes, uint64_t nr_bytes, char **ret_string)
{
	if (!nr_bytes)
		return 0;
	if (bytes[nr_bytes - 1])
		return -EBADMSG;
	*ret_string = strdup(bytes);
	return *ret_string ? 0 : -ENOMEM;
}

/* When the child failed after it wrote its answer, its failure is the damage. */
static int copy_damage(struct opr_object *object, const struct opr_child_result *result, const char *damage)
{
	const char *text = result->err ? opr_child_reason(result->err) : damage;

	if (!*text)
		return 0;
	object->damage = strdup(text);
	return object->damage ? 0 : -ENOMEM;
}

static int read_answer(struct opr_object *object, const struct opr_child_result *result)
{
	const char *strings = result->bytes + sizeof(struct answer);
	struct answer answer;
	uint64_t nr_bytes;
	int err;

	if (result->nr_bytes < sizeof(answer))
		return -EBADMSG;
	memcpy(&answer, result->bytes, sizeof(answer));
	if (answer.symbols >= OPR_OBJECT_NR_SYMBOLS || answer.debug_symbols >= OPR_OBJECT_NR_SYMBOLS ||
	    answer.build_id[sizeof(answer.build_id) - 1] || answer.file_bytes > result->nr_bytes - sizeof(answer) ||
	    answer.link_bytes > result->nr_bytes - sizeof(answer) - answer.file_bytes)
		return -EBADMSG;
	object->symbols = (enum opr_object_symbols)answer.symbols;
	object->debug_symbols = (enum opr_object_symbols)answer.debug_symbols;
	memcpy(object->build_id, answer.build_id, sizeof(answer.build_id));
	object->mtime = answer.mtime;
	object->debug_device = answer.debug_device;
	object->debug_inode = answer.debug_inode;
	err = copy_string(strings, answer.file_bytes, &object->debug_file);
	if (!err)
		err = copy_string(strings + answer.file_bytes, answer.link_bytes, &object->debug_link);
	nr_bytes = sizeof(answer) + answer.file_bytes + answer.link_bytes;
	return err ? err : copy_damage(object, result, result->bytes + nr_bytes);
}

int opr_object_look(struct opr_object *object, const char *path, const char *name, const char *root, uint32_t sources, bool probe)
{
	struct request request = { path, name, root, sources, probe };
	struct opr_child_result result = { 0 };
	struct opr_child child;
	int err = opr_child_start(&child, read_object, &request);

	if (!err)
		err = opr_child_wait(&child, &result);
	if (err)
		return err;
	err = result.err && !(probe && result.nr_bytes) ? result.err : read_answer(object, &result);
	opr_child_result_free(&result);
	object->is_object = !err;
	if (!err)
		return 0;
	opr_object_free(object);
	opr_verbose(OPR_TOPIC_bfd, "%s: %s", path, opr_child_reason(err));
	return 0;
}

void opr_object_free(struct opr_object *object)
{
	if (!object)
		return;
	free(object->debug_file);
	free(object->debug_link);
	free(object->damage);
	*object = (struct opr_object){ 0 };
}
