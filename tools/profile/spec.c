/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/spec.h"

#include <errno.h>

#include "libop/base/nearest.h"
#include "libop/base/parse.h"
#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/symbols/image_identity.h"

enum value_kind { VALUE_WORDS, VALUE_SESSIONS, VALUE_PATHS, VALUE_DECIMAL, VALUE_MASK, VALUE_DIRECTORY, VALUE_CGROUPS };

static const struct tag {
	const char *name;
	enum value_kind kind;
	size_t offset; /* of the struct opr_words in struct opr_spec */
} tags[] = {
	{ "session:", VALUE_SESSIONS, offsetof(struct opr_spec, sessions) },
	{ "session-exclude:", VALUE_SESSIONS, offsetof(struct opr_spec, session_exclude) },
	{ "image:", VALUE_PATHS, offsetof(struct opr_spec, image) },
	{ "image-exclude:", VALUE_PATHS, offsetof(struct opr_spec, image_exclude) },
	{ "lib-image:", VALUE_PATHS, offsetof(struct opr_spec, lib_image) },
	{ "cgroup:", VALUE_CGROUPS, offsetof(struct opr_spec, cgroup) },
	{ "event:", VALUE_WORDS, offsetof(struct opr_spec, event) },
	{ "count:", VALUE_DECIMAL, offsetof(struct opr_spec, count) },
	{ "unit-mask:", VALUE_MASK, offsetof(struct opr_spec, unit_mask) },
	{ "cpu:", VALUE_DECIMAL, offsetof(struct opr_spec, cpu) },
	{ "tid:", VALUE_DECIMAL, offsetof(struct opr_spec, tid) },
	{ "tgid:", VALUE_DECIMAL, offsetof(struct opr_spec, tgid) },
	{ "archive:", VALUE_DIRECTORY, offsetof(struct opr_spec, archive) },
};

const char *opr_spec_tag(size_t nth, enum opr_tag_kind *ret_kind)
{
	static const enum opr_tag_kind kinds[] = {
		[VALUE_WORDS] = OPR_TAG_ANY,
		[VALUE_SESSIONS] = OPR_TAG_SESSION,
		[VALUE_PATHS] = OPR_TAG_FILE,
		[VALUE_DECIMAL] = OPR_TAG_ANY,
		[VALUE_MASK] = OPR_TAG_ANY,
		[VALUE_DIRECTORY] = OPR_TAG_DIRECTORY,
		[VALUE_CGROUPS] = OPR_TAG_ANY,
	};

	if (nth >= op_array_size(tags))
		return NULL;
	*ret_kind = kinds[tags[nth].kind];
	return tags[nth].name;
}

static struct opr_words *words_of(struct opr_spec *spec, const struct tag *tag)
{
	return (struct opr_words *)(void *)((char *)spec + tag->offset);
}

/* "tag:value" or "tag=value". */
static const struct tag *find_tag(const char *word)
{
	for (size_t i = 0; i < op_array_size(tags); i++) {
		size_t length = strlen(tags[i].name) - 1;

		if (!strncmp(word, tags[i].name, length) && (word[length] == ':' || word[length] == '='))
			return &tags[i];
	}
	return NULL;
}

int opr_spec_check_file(const char *option, const char *file)
{
	if (!*file)
		return opr_error(-EINVAL, "--%s= names no file", option);
	if (!find_tag(file))
		return 0;
	return opr_error(-EINVAL, "--%s %s: this is a word of the profile specification, not a file; write ./%s for a file",
			 option, file, file);
}

void opr_spec_suggest_tag(const char *word, struct op_text *text)
{
	char *name = strndup(word, strcspn(word, ":="));
	struct op_nearest nearest;

	if (!name)
		return;
	op_nearest_init(&nearest, name);
	for (size_t i = 0; i < op_array_size(tags) && name[0] != '\0' && strlen(name) < strlen(word); i++) {
		char tag[OP_NEAREST_BYTES];

		snprintf(tag, sizeof(tag), "%.*s", (int)strlen(tags[i].name) - 1, tags[i].name);
		op_nearest_try(&nearest, tag);
	}
	op_nearest_add_hint(&nearest, "", text);
	free(name);
}

/*
 * Adds a path. Sample files have absolute paths, so the real path of a file that exists is added,
 * too.
 */
static int add_path(struct opr_words *words, const char *path)
{
	char *real = realpath(path, NULL);
	int err = opr_words_add(words, path);

	if (!err && real && strcmp(real, path))
		err = opr_words_add(words, real);
	free(real);
	return err;
}

/* Adds the values of a tag to those that it had before. */
static int add_values(struct opr_words *words, const char *text, bool are_paths)
{
	struct opr_words values = { 0 };
	int err = opr_words_split(&values, text);

	for (size_t i = 0; i < values.nr_words && !err; i++)
		err = are_paths ? add_path(words, values.words[i]) : opr_words_add(words, values.words[i]);
	opr_words_free(&values);
	return err;
}

static bool is_decimal(const char *text)
{
	return *text && strlen(text) < 20 && strspn(text, "0123456789") == strlen(text);
}

static int check_numbers(const struct tag *tag, const struct opr_words *words, const char *word)
{
	for (size_t i = 0; i < words->nr_words; i++) {
		const char *text = words->words[i];
		uint64_t mask;

		if (strcmp(text, "all") &&
		    !(tag->kind == VALUE_MASK ? !op_parse_u64(text, 0, UINT32_MAX, &mask) : is_decimal(text)))
			return opr_error(-EINVAL, "%s: '%s' is not a number", word, text);
	}
	return 0;
}

/*
 * Makes cgroups what the kernel writes: absolute, without a slash at the end. Without one at the
 * begin the word is the last part of a path, as the name of a service.
 */
static int complete_cgroups(struct opr_words *words)
{
	for (size_t i = 0; i < words->nr_words; i++) {
		char *path = words->words[i], *whole = NULL;
		size_t length;

		if (*path != '/' && *path != '*' && *path != '?' && *path != '[') {
			if (asprintf(&whole, "*/%s", path) < 0)
				return opr_no_memory();
			free(path);
			words->words[i] = path = whole;
		}
		length = strlen(path);
		while (length > 1 && path[length - 1] == '/')
			path[--length] = '\0';
	}
	return 0;
}

static int parse_tag(struct opr_spec *spec, const struct tag *tag, const char *word)
{
	struct opr_words *words = words_of(spec, tag);
	const char *value = word + strlen(tag->name);
	size_t nr_before = words->nr_words;

	if (opr_words_have(&spec->seen, word))
		return opr_error(-EINVAL, "%s: tag specified more than once", word);
	if (opr_words_add(&spec->seen, word) < 0 || add_values(words, value, tag->kind == VALUE_PATHS) < 0)
		return opr_no_memory();
	if (words->nr_words == nr_before)
		return opr_error(-EINVAL, "%s: a value is missing", word);
	if (tag->kind == VALUE_CGROUPS)
		return complete_cgroups(words);
	return tag->kind == VALUE_DECIMAL || tag->kind == VALUE_MASK ? check_numbers(tag, words, word) : 0;
}

static int parse_word(struct opr_spec *spec, const char *word)
{
	const struct tag *tag = find_tag(word);

	if (tag)
		return parse_tag(spec, tag, word);
	/* opreport has removed its blocks before (opr_spec_words_split). */
	if (!strcmp(word, "{") || !strcmp(word, "}") || !strcmp(word, "{}"))
		return opr_error(-EINVAL, "invalid profile specification %s: opreport alone compares profiles", word);
	return add_path(&spec->names, word) < 0 ? opr_no_memory() : 0;
}

int opr_spec_parse(struct opr_spec *spec, const char *const words[], size_t nr_words)
{
	int err = 0;

	for (size_t i = 0; i < nr_words && !err; i++)
		err = parse_word(spec, words[i]);
	spec->sessions_given = spec->sessions.nr_words;
	if (!err && !spec->sessions.nr_words && opr_words_add(&spec->sessions, "current") < 0)
		err = opr_no_memory();
	return err;
}

bool opr_spec_match_number(const struct opr_words *words, uint64_t number)
{
	if (!words->nr_words)
		return true;
	for (size_t i = 0; i < words->nr_words; i++) {
		uint64_t value;

		if (!strcmp(words->words[i], "all"))
			return true;
		errno = 0;
		value = strtoull(words->words[i], NULL, words->words[i][0] == '0' && (words->words[i][1] | 32) == 'x' ? 16 : 10);
		if (!errno && value == number)
			return true;
	}
	return false;
}

/* A file that is not separated by this number has OP_CLASS_ALL, which no user can ask for. */
static bool has_class(const struct opr_words *words, int32_t value)
{
	return opr_spec_match_number(words, (uint64_t)value);
}

bool opr_spec_match_word(const struct opr_words *words, const char *word)
{
	return !words->nr_words || opr_words_have(words, "all") || opr_words_have(words, word);
}

/* An image that is counted apart (tools/symbols/image_identity.h) also matches by its path. */
bool opr_spec_match_name(const struct opr_words *words, const char *name)
{
	char *path;
	bool matches = opr_words_match(words, name);

	if (matches || !words->nr_words || opr_identity_of(name).kind == OPR_IDENTITY_NONE)
		return matches;
	path = opr_identity_path(name);
	matches = path && opr_words_match(words, path);
	free(path);
	return matches;
}

static bool match_images(const struct opr_spec *spec, const char *app, const char *image)
{
	if (spec->image.nr_words && !opr_spec_match_name(&spec->image, app))
		return false;
	if (spec->lib_image.nr_words && !opr_spec_match_name(&spec->lib_image, image))
		return false;
	if (opr_spec_match_name(&spec->image_exclude, app) || opr_spec_match_name(&spec->image_exclude, image))
		return false;
	return !spec->names.nr_words || opr_spec_match_name(&spec->names, app) || opr_spec_match_name(&spec->names, image);
}

/* A program is selected by its application; by its own name unless something is excluded. */
bool opr_spec_match_images(const struct opr_spec *spec, const char *app, const char *application, const char *image)
{
	if (!application)
		return match_images(spec, app, image);
	return match_images(spec, application, image) || (!spec->image_exclude.nr_words && match_images(spec, app, image));
}

bool opr_spec_match(const struct opr_spec *spec, const struct op_sample_name *name)
{
	return opr_spec_match_word(&spec->event, name->event) && opr_spec_match_number(&spec->count, name->count) &&
	       opr_spec_match_number(&spec->unit_mask, name->unit_mask) && has_class(&spec->cpu, name->cpu) &&
	       has_class(&spec->tid, name->tid) && has_class(&spec->tgid, name->tgid);
}

bool opr_spec_match_cgroup(const struct opr_spec *spec, const char *path)
{
	char *ancestor = strdup(path), *slash;
	bool matches = !spec->cgroup.nr_words || opr_words_match(&spec->cgroup, "/");

	while (ancestor && !matches) {
		matches = opr_words_match(&spec->cgroup, ancestor);
		slash = strrchr(ancestor, '/');
		if (!slash || slash == ancestor)
			break;
		*slash = '\0';
	}
	free(ancestor);
	return matches;
}

void opr_spec_free(struct opr_spec *spec)
{
	if (!spec)
		return;
	for (size_t i = 0; i < op_array_size(tags); i++)
		opr_words_free(words_of(spec, &tags[i]));
	opr_words_free(&spec->names);
	opr_words_free(&spec->seen);
}

/* ---- { first } { second } ---- */

#define NR_SIDES 2

struct split {
	struct opr_words outside, blocks[NR_SIDES];
	size_t nr_opened, nr_closed;
};

/* 0; -EINVAL: the braces make no pair of blocks. */
static int take_brace(struct split *split, char brace)
{
	if (brace == '{' && (split->nr_opened > split->nr_closed || split->nr_opened == NR_SIDES))
		return -EINVAL;
	if (brace == '}' && split->nr_opened == split->nr_closed)
		return -EINVAL;
	if (brace == '{')
		split->nr_opened++;
	else
		split->nr_closed++;
	return 0;
}

static int take_word(struct split *split, const char *word)
{
	bool inside = split->nr_opened > split->nr_closed;

	if (!strcmp(word, "{") || !strcmp(word, "}"))
		return take_brace(split, *word);
	if (!strcmp(word, "{}")) {
		int err = take_brace(split, '{');

		return err ? err : take_brace(split, '}');
	}
	return opr_words_add(inside ? &split->blocks[split->nr_opened - 1] : &split->outside, word);
}

static int add_all(struct opr_words *to, const struct opr_words *from)
{
	int err = 0;

	for (size_t i = 0; i < from->nr_words && !err; i++)
		err = opr_words_add(to, from->words[i]);
	return err;
}

static int join(struct opr_spec_words *words, const struct split *split)
{
	bool first = split->blocks[0].nr_words, second = split->blocks[1].nr_words;
	int err = 0;

	if (split->nr_opened != split->nr_closed || split->nr_opened == 1 || (!first && second))
		return -EINVAL;
	words->differential = split->nr_opened && (first || split->outside.nr_words);
	for (size_t i = 0; i < NR_SIDES && !err; i++) {
		err = add_all(&words->sides[i], &split->outside);
		if (!err)
			err = add_all(&words->sides[i], &split->blocks[i]);
	}
	return err;
}

static int report_invalid(const struct opr_words *words)
{
	struct op_text text = { 0 };

	for (size_t i = 0; i < words->nr_words; i++)
		op_text_printf(&text, " %s", words->words[i]);
	opr_error(-EINVAL, "invalid profile specification%s: two blocks { ... } { ... } are compared", op_text_get(&text));
	op_text_free(&text);
	return -EINVAL;
}

int opr_spec_words_split(struct opr_spec_words *words, const struct opr_words *all)
{
	struct split split = { 0 };
	int err = 0;

	for (size_t i = 0; i < all->nr_words && !err; i++)
		err = take_word(&split, all->words[i]);
	if (!err)
		err = join(words, &split);
	opr_words_free(&split.outside);
	for (size_t i = 0; i < NR_SIDES; i++)
		opr_words_free(&split.blocks[i]);
	return err == -EINVAL ? report_invalid(all) : err ? opr_no_memory() : 0;
}

void opr_spec_words_free(struct opr_spec_words *words)
{
	for (size_t i = 0; i < NR_SIDES; i++)
		opr_words_free(&words->sides[i]);
}
