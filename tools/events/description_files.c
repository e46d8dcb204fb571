/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/events/description_files.h"

#include <ctype.h>
#include <errno.h>

#include "libop/base/parse.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"

#define EVENTS_FILE      "events"
#define MASKS_FILE       "unit_masks"
#define INCLUDE_TAG      "include:"
#define MAX_DEPTH        8
#define MAX_INCLUDES     64
#define MASK_MEMBERS_MAX 64

struct reader {
	struct opr_event_files *files;
	const char *dir; /* the parent of the directories of CPUs */
	const char *file_name;
	int (*take_line)(struct reader *reader, char *line);
	size_t depth, nr_includes;
};

static int read_file(struct reader *reader, const char *cpu_name);

/* ---- strings and numbers ---- */

/* Sets a field once. */
static int set_string(char **string, const char *text)
{
	if (*string)
		return -EINVAL;
	*string = strdup(text);
	return *string ? 0 : -ENOMEM;
}

static char *strip(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* ---- events: "event:0x76 counters:0,1 um:zero minimum:3000 name:NAME : text" ---- */

enum event_tag { TAG_EVENT, TAG_COUNTERS, TAG_EXT, TAG_UM, TAG_MINIMUM, TAG_NAME, TAG_FILTER, NR_EVENT_TAGS };

static const char *const event_tags[NR_EVENT_TAGS] = {
	[TAG_EVENT] = "event:",     [TAG_COUNTERS] = "counters:", [TAG_EXT] = "ext:",       [TAG_UM] = "um:",
	[TAG_MINIMUM] = "minimum:", [TAG_NAME] = "name:",         [TAG_FILTER] = "filter:",
};

static bool find_tag(const char *word, enum event_tag *ret_tag)
{
	for (enum event_tag tag = 0; tag < NR_EVENT_TAGS; tag++) {
		if (!strncmp(word, event_tags[tag], strlen(event_tags[tag]))) {
			*ret_tag = tag;
			return true;
		}
	}
	return false;
}

static int take_number(const char *text, uint32_t *ret_number)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 16);
	if (errno || end == text || *end || number > UINT32_MAX)
		return -EINVAL;
	*ret_number = (uint32_t)number;
	return 0;
}

/* "0,1" or "cpuid": all that the CPU has */
static int take_counters(const char *text, uint32_t *ret_counters)
{
	uint32_t counters = 0;

	if (!strcmp(text, "cpuid"))
		return 0;
	while (*text) {
		char *end;
		unsigned long counter = strtoul(text, &end, 10);

		if (end == text || counter >= 32 || (*end && *end != ','))
			return -EINVAL;
		counters |= 1u << counter;
		text = end + (*end == ',');
	}
	*ret_counters = counters;
	return 0;
}

static int take_minimum(const char *text, uint32_t *ret_minimum)
{
	uint64_t minimum;

	if (op_parse_u64(text, 0, UINT32_MAX, &minimum) < 0)
		return -EINVAL;
	*ret_minimum = (uint32_t)minimum;
	return 0;
}

static int take_event_word(struct opr_event_row *row, const char *word, bool seen[NR_EVENT_TAGS])
{
	enum event_tag tag;
	const char *value;

	if (!find_tag(word, &tag) || seen[tag])
		return -EINVAL;
	seen[tag] = true;
	value = word + strlen(event_tags[tag]);
	if (tag == TAG_EVENT)
		return take_number(value, &row->number);
	if (tag == TAG_NAME)
		return strpbrk(value, "/.") || !*value ? -EINVAL : set_string(&row->name, value);
	if (tag == TAG_EXT)
		return set_string(&row->ext, value);
	if (tag == TAG_COUNTERS)
		return take_counters(value, &row->counters);
	if (tag == TAG_MINIMUM)
		return take_minimum(value, &row->minimum);
	return tag == TAG_UM ? set_string(&row->masks, value) : 0;
}

static void free_event(struct opr_event_row *row)
{
	free(row->name);
	free(row->description);
	free(row->masks);
	free(row->ext);
}

/* Words up to a single ':', then the description. */
static int parse_event(char *line, struct opr_event_row *row)
{
	bool seen[NR_EVENT_TAGS] = { false };
	char *rest = line;
	int err = 0;

	while (!err && rest) {
		char *word;

		rest += strspn(rest, " \t");
		word = strsep(&rest, " \t");
		if (!strcmp(word, ":"))
			break;
		if (*word)
			err = take_event_word(row, word, seen);
	}
	if (err)
		return err;
	if (!seen[TAG_EVENT] || !seen[TAG_NAME])
		return -EINVAL;
	err = set_string(&row->description, rest ? strip(rest) : "");
	if (err || row->masks)
		return err;
	return set_string(&row->masks, "");
}

static int take_event_line(struct reader *reader, char *line)
{
	struct opr_event_files *files = reader->files;
	struct opr_event_row row = { 0 };
	int err = parse_event(strip(line), &row);

	if (!err && !op_grow(&files->events, &files->events_capacity, files->nr_events + 1))
		err = -ENOMEM;
	if (err < 0) {
		free_event(&row);
		return err;
	}
	files->events[files->nr_events++] = row;
	return 0;
}

/* ---- unit masks: "name:N type:T default:V", then "<TAB>0xVV text" ---- */

static int take_set_word(struct opr_mask_set *set, const char *word)
{
	static const char *const types[] = {
		[OPR_MASK_BITMASK] = "type:bitmask",
		[OPR_MASK_EXCLUSIVE] = "type:exclusive",
		[OPR_MASK_MANDATORY] = "type:mandatory",
	};

	if (!strncmp(word, "default:", 8))
		return take_number(word + 8, &set->default_value) < 0 ? set_string(&set->default_name, word + 8) : 0;
	for (size_t i = 0; i < op_array_size(types); i++)
		if (!strcmp(word, types[i]))
			set->type = (enum opr_mask_type)i;
	return 0;
}

static int begin_set(struct opr_event_files *files, char *line)
{
	char *rest = line, *word = strsep(&rest, " \t");
	struct opr_mask_set set = { 0 };
	int err;

	if (strncmp(word, "name:", 5) || !word[5])
		return -EINVAL;
	if (!op_grow(&files->sets, &files->sets_capacity, files->nr_sets + 1))
		return -ENOMEM;
	err = set_string(&set.name, word + 5);
	if (err)
		return err;
	files->sets[files->nr_sets++] = set;
	while (!err && (word = strsep(&rest, " \t")))
		err = take_set_word(&files->sets[files->nr_sets - 1], strip(word));
	return err;
}

/* Bits of perf_event_attr.config. EXTRA_NONE: the list is empty. */
#define EXTRA_MASK_SHIFT  8
#define EXTRA_NONE        (1u << 22)
#define EXTRA_CMASK       "cmask="
#define EXTRA_CMASK_SHIFT 24
#define EXTRA_CMASK_MAX   0xff

static const struct {
	const char *word;
	uint32_t bit;
} extra_bits[] = { { "edge", 1u << 18 }, { "pebs", 1u << 19 }, { "any", 1u << 21 }, { "inv", 1u << 23 } };

static int take_extra_word(const char *word, uint32_t *extra)
{
	uint32_t cmask;

	for (size_t i = 0; i < op_array_size(extra_bits); i++) {
		if (!strcmp(word, extra_bits[i].word)) {
			*extra |= extra_bits[i].bit;
			return 0;
		}
	}
	if (strncmp(word, EXTRA_CMASK, strlen(EXTRA_CMASK)) || take_number(word + strlen(EXTRA_CMASK), &cmask) < 0 ||
	    cmask > EXTRA_CMASK_MAX)
		return -EINVAL;
	*extra |= cmask << EXTRA_CMASK_SHIFT;
	return 0;
}

/* "edge,cmask=1" */
static int take_extra(char *list, struct opr_mask_value *value)
{
	uint32_t extra = *list ? 0 : EXTRA_NONE;
	int err = 0;

	for (char *rest = list, *word; !err && *list && (word = strsep(&rest, ","));)
		err = take_extra_word(word, &extra);
	value->extra = extra | value->value << EXTRA_MASK_SHIFT;
	return err;
}

/* A name follows "extra:...". */
static int take_mask_text(char *rest, struct opr_mask_value *value)
{
	rest = strip(rest);
	if (!strncmp(rest, "extra:", 6)) {
		char *word = strsep(&rest, " \t");

		if (take_extra(word + 6, value) < 0)
			return -EINVAL;
		rest = rest ? strip(rest) : word + strlen(word);
		word = strsep(&rest, " \t");
		if (set_string(&value->name, word) < 0)
			return -ENOMEM;
	}
	return set_string(&value->description, rest ? strip(rest) : "");
}

static int add_value(struct opr_event_files *files, char *line)
{
	struct opr_mask_set *set = files->nr_sets ? &files->sets[files->nr_sets - 1] : NULL;
	char *rest = strip(line), *word = strsep(&rest, " \t");
	struct opr_mask_value value = { 0 };
	int err = take_number(word, &value.value);

	if (err < 0 || !set || set->nr_values == MASK_MEMBERS_MAX)
		return -EINVAL;
	if (!op_grow(&set->values, &set->capacity, set->nr_values + 1))
		return -ENOMEM;
	err = rest ? take_mask_text(rest, &value) : set_string(&value.description, "");
	if (err) {
		free(value.name);
		return err;
	}
	set->values[set->nr_values++] = value;
	return 0;
}

static int take_mask_line(struct reader *reader, char *line)
{
	return isspace((unsigned char)*line) ? add_value(reader->files, line) : begin_set(reader->files, line);
}

/* ---- files ---- */

static int take_include(struct reader *reader, const char *cpu_name)
{
	int err;

	if (reader->depth == MAX_DEPTH || reader->nr_includes++ == MAX_INCLUDES)
		return -EINVAL;
	reader->depth++;
	err = read_file(reader, cpu_name);
	reader->depth--;
	return err == -ENOENT ? -EINVAL : err;
}

static int take_any_line(struct reader *reader, char *line)
{
	const char *first = line + strspn(line, " \t\n");

	if (!*first || *first == '#')
		return 0;
	if (!strncmp(first, INCLUDE_TAG, strlen(INCLUDE_TAG)))
		return take_include(reader, strip(line) + strlen(INCLUDE_TAG));
	return reader->take_line(reader, line);
}

static int read_lines(struct reader *reader, FILE *file, const char *path)
{
	char *line = NULL;
	size_t bytes = 0, number = 0;
	int err = 0;

	while (!err && getline(&line, &bytes, file) > 0) {
		number++;
		err = take_any_line(reader, line);
		if (err == -EINVAL)
			err = opr_error(-EBADMSG, "parse error in %s, line %zu", path, number);
	}
	free(line);
	return err == -ENOMEM ? opr_no_memory() : err;
}

/* -ENOENT without a message: the file does not exist. */
static int read_file(struct reader *reader, const char *cpu_name)
{
	char *path = NULL;
	FILE *file;
	int err;

	if (asprintf(&path, "%s/%s/%s", reader->dir, cpu_name, reader->file_name) < 0)
		return opr_no_memory();
	file = fopen(path, "re");
	err = file ? read_lines(reader, file, path) : -errno;
	if (!file && err != -ENOENT)
		opr_error(err, "%s: %s", path, strerror(-err));
	if (file)
		fclose(file);
	free(path);
	return err;
}

static int read_dir(struct opr_event_files *files, const char *dir, const char *cpu_name)
{
	struct reader reader = { .files = files, .dir = dir, .file_name = EVENTS_FILE, .take_line = take_event_line };
	int err = read_file(&reader, cpu_name);

	if (err < 0)
		return err;
	reader.file_name = MASKS_FILE;
	reader.take_line = take_mask_line;
	reader.nr_includes = 0;
	err = read_file(&reader, cpu_name);
	return err == -ENOENT ? opr_error(-EBADMSG, "could not open unit mask description file %s/%s/" MASKS_FILE, dir, cpu_name)
			      : err;
}

int opr_event_files_read(struct opr_event_files *files, const char *cpu_name)
{
	static const char *const dirs[] = { OPD_DATADIR "/opd/events", "/usr/share/oprofile" };
	const char *said = getenv(OPR_EVENTS_DIR_ENV);
	int err = -ENOENT;

	if (said && *said)
		return read_dir(files, said, cpu_name);
	for (size_t i = 0; i < op_array_size(dirs) && err == -ENOENT; i++)
		err = read_dir(files, dirs[i], cpu_name);
	return err;
}

/* ---- looking up ---- */

static bool names_set(const char *masks, const char *name)
{
	size_t length = strlen(name);

	for (const char *word = masks; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!strncmp(word, name, length) && (!word[length] || word[length] == ','))
			return true;
	}
	return false;
}

const struct opr_mask_set *opr_event_set(const struct opr_event_files *files, const struct opr_event_row *event, size_t index)
{
	for (size_t i = 0; i < files->nr_sets; i++)
		if (names_set(event->masks, files->sets[i].name) && !index--)
			return &files->sets[i];
	return NULL;
}

const char *opr_event_mask(const struct opr_event_files *files, const struct opr_event_row *event, uint32_t mask)
{
	for (size_t i = 0; i < files->nr_sets; i++) {
		const struct opr_mask_set *set = &files->sets[i];

		for (size_t j = 0; names_set(event->masks, set->name) && j < set->nr_values; j++)
			if (set->values[j].value == mask)
				return set->values[j].description;
	}
	return NULL;
}

const struct opr_event_row *opr_event_find(const struct opr_event_files *files, uint32_t number, uint32_t mask)
{
	const struct opr_event_row *first = NULL;

	for (size_t i = 0; i < files->nr_events; i++) {
		const struct opr_event_row *event = &files->events[i];

		if (event->number != number)
			continue;
		if (opr_event_mask(files, event, mask))
			return event;
		if (!first)
			first = event;
	}
	return first;
}

static void free_value(struct opr_mask_value *value)
{
	free(value->name);
	free(value->description);
}

void opr_event_files_free(struct opr_event_files *files)
{
	for (size_t i = 0; i < files->nr_events; i++)
		free_event(&files->events[i]);
	for (size_t i = 0; i < files->nr_sets; i++) {
		for (size_t j = 0; j < files->sets[i].nr_values; j++)
			free_value(&files->sets[i].values[j]);
		free(files->sets[i].values);
		free(files->sets[i].name);
		free(files->sets[i].default_name);
	}
	free(files->events);
	free(files->sets);
	*files = (struct opr_event_files){ 0 };
}
