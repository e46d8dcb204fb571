/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/object_look.h"

#include <errno.h>

#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/symbols/bfd_file.h"
#include "tools/symbols/lines.h"

struct question {
	const char *path, *name, *root;
	bool closely;
};

/* What the child writes; the strings, with their NUL bytes, follow, and behind them what is wrong with the debugging information, if anything is. */
struct answer {
	uint32_t symbols, debug_symbols;
	char build_id[OP_BUILD_ID_DIGITS];
	uint64_t file_bytes, link_bytes; /* of the names; 0: there is none */
};

/* ---- in the child ---- */

static enum opr_object_symbols symbols_of(bfd *object)
{
	if (opr_bfd_has_debug_info(object))
		return OPR_OBJECT_DEBUG;
	if (bfd_get_file_flags(object) & HAS_SYMS && bfd_get_symtab_upper_bound(object) > (long)sizeof(asymbol *))
		return OPR_OBJECT_TABLE;
	return bfd_get_dynamic_symtab_upper_bound(object) > (long)sizeof(asymbol *) ? OPR_OBJECT_EXPORTED : OPR_OBJECT_NONE;
}

static size_t bytes_of(const char *string)
{
	return string ? strlen(string) + 1 : 0;
}

/* The answer is written: libbfd may fail now. */
static void write_damage(FILE *out, bfd *abfd)
{
	const char *damage = abfd && opr_bfd_has_debug_info(abfd) ? opr_lines_probe(abfd) : NULL;

	if (damage)
		fwrite(damage, 1, strlen(damage), out);
}

static int write_answer(FILE *out, bfd *object, const struct question *question)
{
	bfd *debug = question->name ? opr_bfd_open_debug_file(object, question->path, question->name, question->root) : NULL;
	const char *file = debug ? bfd_get_filename(debug) : NULL;
	unsigned long crc;
	char *link = bfd_get_debug_link_info(object, &crc);
	struct answer answer = { .symbols = symbols_of(object), .file_bytes = bytes_of(file), .link_bytes = bytes_of(link) };

	if (debug)
		answer.debug_symbols = symbols_of(debug);
	if (object->build_id)
		op_build_id_format(object->build_id->data, object->build_id->size, answer.build_id);
	fwrite(&answer, sizeof(answer), 1, out);
	if (file)
		fwrite(file, 1, bytes_of(file), out);
	if (link)
		fwrite(link, 1, bytes_of(link), out);
	free(link);
	if (fflush(out) != EOF && question->closely)
		write_damage(out, answer.symbols == OPR_OBJECT_DEBUG ? object : debug);
	if (debug)
		bfd_close(debug);
	return 0;
}

static int look(FILE *out, void *arg)
{
	const struct question *question = arg;
	bfd *object = opr_bfd_open(question->path);
	int err = object ? write_answer(out, object, question) : -ENOEXEC;

	if (object)
		bfd_close(object);
	return err;
}

/* ---- in the parent ---- */

/* A string of the answer, which must end where it says; NULL without an error: there is none. */
static int take_string(const char *bytes, uint64_t nr_bytes, char **ret_string)
{
	if (!nr_bytes)
		return 0;
	if (bytes[nr_bytes - 1])
		return -EBADMSG;
	*ret_string = strdup(bytes);
	return *ret_string ? 0 : -ENOMEM;
}

/* Whoever did not come to the end had answered all but this. */
static int take_damage(struct opr_object *object, const struct opr_child_result *result, const char *damage)
{
	const char *text = result->err ? opr_child_reason(result->err) : damage;

	if (!*text)
		return 0;
	object->damage = strdup(text);
	return object->damage ? 0 : -ENOMEM;
}

static int take_answer(struct opr_object *object, const struct opr_child_result *result)
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
	err = take_string(strings, answer.file_bytes, &object->debug_file);
	if (!err)
		err = take_string(strings + answer.file_bytes, answer.link_bytes, &object->debug_link);
	nr_bytes = sizeof(answer) + answer.file_bytes + answer.link_bytes;
	return err ? err : take_damage(object, result, result->bytes + nr_bytes);
}

static int look_at(struct opr_object *object, const struct question *question)
{
	struct opr_child_result result = { 0 };
	struct opr_child child;
	int err = opr_child_start(&child, look, (void *)(uintptr_t)question);

	if (!err)
		err = opr_child_wait(&child, &result);
	if (err)
		return err;
	err = result.err && !(question->closely && result.nr_bytes) ? result.err : take_answer(object, &result);
	opr_child_result_free(&result);
	object->is_object = !err;
	if (!err)
		return 0;
	opr_object_free(object);
	opr_verbose(OPR_TOPIC_bfd, "%s: %s", question->path, opr_child_reason(err));
	return 0;
}

int opr_object_look(struct opr_object *object, const char *path, const char *name, const char *root)
{
	const struct question question = { path, name, root, false };

	return look_at(object, &question);
}

int opr_object_look_closely(struct opr_object *object, const char *path, const char *name, const char *root)
{
	const struct question question = { path, name, root, true };

	return look_at(object, &question);
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
