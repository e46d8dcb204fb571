/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/control/daemonrc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define EVENT_KEY	 "CHOSEN_EVENTS_"
#define IMAGES_KEY	 "IMAGE_FILTER"
#define VALUE_CHARACTERS "-_:,./"

struct row;

/* The setup while it is read. NR_CHOSEN says at the end how many events count. */
struct reading {
	struct op_setup setup;
	bool has_event[OP_EVENTS_MAX];
	uint64_t nr_chosen;
};

/* False: it adds a reason to `why`. */
typedef bool (*read_fn)(const struct row *row, const char *value, struct reading *reading, struct op_text *why);
typedef void (*write_fn)(const struct row *row, const struct op_setup *setup, struct op_text *text);

struct row {
	const char *key;
	read_fn read;
	write_fn write;
	size_t offset; /* of the field in struct op_setup */
	uint64_t max;
	const char *none; /* how an empty value is written; NULL: no line */
};

static bool no_memory(struct op_text *why)
{
	why->failed = true;
	return false;
}

static bool read_string(const struct row *row, const char *value, struct reading *reading, struct op_text *why)
{
	char **field = (char **)((char *)&reading->setup + row->offset);
	bool nothing = !*value || (row->none && !strcmp(value, row->none));
	char *copy = nothing ? NULL : strdup(value);

	if (!nothing && !copy)
		return no_memory(why);
	free(*field);
	*field = copy;
	return true;
}

static void write_string(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	const char *value = *(char *const *)((const char *)setup + row->offset);

	if (!value)
		value = row->none;
	if (value)
		op_text_printf(text, "%s=%s\n", row->key, value);
}

static bool read_limited(const char *value, uint64_t max, uint64_t *ret_number, struct op_text *why)
{
	int err = *value ? op_parse_u64(value, 0, max, ret_number) : 0;

	if (!*value)
		*ret_number = 0;
	else if (err == -ERANGE)
		op_text_printf(why, "%s is more than %" PRIu64, value, max);
	else if (err)
		op_text_printf(why, "'%s' is not a number", value);
	return !err;
}

static bool read_number(const struct row *row, const char *value, struct reading *reading, struct op_text *why)
{
	return read_limited(value, row->max, (uint64_t *)((char *)&reading->setup + row->offset), why);
}

static void write_number(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	uint64_t number = *(const uint64_t *)((const char *)setup + row->offset);

	if (number || row->none)
		op_text_printf(text, "%s=%" PRIu64 "\n", row->key, number);
}

static bool read_flag(const struct row *row, const char *value, struct reading *reading, struct op_text *why)
{
	uint64_t flag;

	if (!read_limited(value, 1, &flag, why))
		return false;
	*(bool *)((char *)&reading->setup + row->offset) = flag;
	return true;
}

static void write_flag(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	op_text_printf(text, "%s=%d\n", row->key, *(const bool *)((const char *)setup + row->offset));
}

/* A flag that oprofile does not know is written only when it is set. */
static void write_set_flag(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	if (*(const bool *)((const char *)setup + row->offset))
		write_flag(row, setup, text);
}

static bool read_nr_events(const struct row *row, const char *value, struct reading *reading, struct op_text *why)
{
	return read_limited(value, row->max, &reading->nr_chosen, why);
}

/* The events come before their number. */
static void write_events(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	for (size_t i = 0; i < setup->nr_events; i++) {
		op_text_printf(text, EVENT_KEY "%zu=", i);
		op_event_format(&setup->events[i], text);
		op_text_add_char(text, '\n');
	}
	op_text_printf(text, "%s=%zu\n", row->key, setup->nr_events);
}

static bool read_stacks(const struct row *row, const char *value, struct reading *reading, struct op_text *why)
{
	(void)row;
	if (!*value)
		reading->setup.stacks = (struct op_stack_setup){ 0 };
	else if (!op_stack_setup_parse(value, &reading->setup.stacks))
		op_text_printf(why, "unknown word '%s'; allowed: on, off, event, RATE[:BYTES]", value);
	return !why->length;
}

static void write_stacks(const struct row *row, const struct op_setup *setup, struct op_text *text)
{
	if (setup->stacks.mode == OP_STACKS_CONFIGURED)
		return;
	op_text_printf(text, "%s=", row->key);
	op_stack_setup_format(&setup->stacks, text);
	op_text_add_char(text, '\n');
}

#define FIELD(name) offsetof(struct op_setup, name)

/* In the order of the file. */
static const struct row rows[] = {
	{ "SESSION_DIR", read_string, write_string, FIELD(session_dir), 0, NULL },
	{ "NR_CHOSEN", read_nr_events, write_events, 0, OP_EVENTS_MAX, NULL },
	{ "SEPARATE_LIB", read_flag, write_flag, FIELD(separate_lib), 1, NULL },
	{ "SEPARATE_KERNEL", read_flag, write_flag, FIELD(separate_kernel), 1, NULL },
	{ "SEPARATE_THREAD", read_flag, write_flag, FIELD(separate_thread), 1, NULL },
	{ "SEPARATE_CPU", read_flag, write_flag, FIELD(separate_cpu), 1, NULL },
	{ "SEPARATE_CGROUP", read_flag, write_set_flag, FIELD(separate_cgroup), 1, NULL },
	{ "SEPARATE_PROCESS_NAME", read_flag, write_set_flag, FIELD(separate_name), 1, NULL },
	{ "SEPARATE_USER", read_flag, write_set_flag, FIELD(separate_user), 1, NULL },
	{ "VMLINUX", read_string, write_string, FIELD(vmlinux), 0, "none" },
	{ IMAGES_KEY, read_string, write_string, FIELD(image_filter), 0, "" },
	{ "BUF_SIZE", read_number, write_number, FIELD(buffer_size), UINT32_MAX, NULL },
	{ "BUF_WATERSHED", read_number, write_number, FIELD(buffer_watershed), UINT32_MAX, NULL },
	{ "CPU_BUF_SIZE", read_number, write_number, FIELD(cpu_buffer_size), UINT32_MAX, "0" },
	{ "CALLGRAPH", read_number, write_number, FIELD(callgraph), 127, "0" },
	{ "STACKS", read_stacks, write_stacks, 0, 0, NULL },
	{ "KERNEL_RANGE", read_string, write_string, FIELD(kernel_range), 0, NULL },
};

/* For scripts that read the file; opd profiles no hypervisor. */
static const char last_lines[] = "XENIMAGE=none\n";

static bool read_event(const char *index, const char *value, struct reading *reading, struct op_text *why)
{
	char *reason = NULL;
	uint64_t i;
	int err;

	if (op_parse_u64(index, 0, OP_EVENTS_MAX - 1, &i) < 0) {
		op_text_printf(why, "there is no event number '%s', only 0 to %d", index, OP_EVENTS_MAX - 1);
		return false;
	}
	err = op_event_parse(value, &reading->setup.events[i], &reason);
	if (err == -ENOMEM)
		return no_memory(why);
	if (err) {
		op_text_add(why, reason);
		free(reason);
		return false;
	}
	reading->has_event[i] = true;
	return true;
}

/* Unknown keys are skipped, as by a shell that reads the file. */
static bool read_setting(const char *key, const char *value, struct reading *reading, struct op_text *why)
{
	if (!strncmp(key, EVENT_KEY, sizeof(EVENT_KEY) - 1))
		return read_event(key + sizeof(EVENT_KEY) - 1, value, reading, why);
	for (size_t i = 0; i < op_array_size(rows); i++) {
		if (strcmp(key, rows[i].key))
			continue;
		if (rows[i].read(&rows[i], value, reading, why))
			return true;
		if (!why->failed) {
			char *reason = op_text_steal(why);

			if (!reason)
				return no_memory(why);
			op_text_printf(why, "%s: %s", key, reason);
			free(reason);
		}
		return false;
	}
	return true;
}

static bool consists_of(const char *string, const char *others)
{
	for (; *string; string++)
		if (!isalnum((unsigned char)*string) && !strchr(others, *string))
			return false;
	return true;
}

bool op_setup_value_ok(const char *value)
{
	return consists_of(value, VALUE_CHARACTERS);
}

bool op_setup_images_ok(const char *images)
{
	return consists_of(images, VALUE_CHARACTERS "+");
}

static bool has_good_value(const char *key, const char *value)
{
	if (!strcmp(key, IMAGES_KEY))
		return op_setup_images_ok(value);
	return consists_of(value, strncmp(key, EVENT_KEY, sizeof(EVENT_KEY) - 1) ? VALUE_CHARACTERS : VALUE_CHARACTERS "=");
}

static bool read_line(char *line, struct reading *reading, struct op_text *why)
{
	char *equals = strchr(line, '=');

	if (!*line)
		return true;
	if (!equals) {
		op_text_add(why, "not KEY=value");
		return false;
	}
	*equals = '\0';
	if (!*line || !consists_of(line, "_")) {
		op_text_add(why, "the key has characters other than letters, digits and _");
		return false;
	}
	if (!has_good_value(line, equals + 1)) {
		op_text_printf(why, "the value of %s has characters other than letters, digits and " VALUE_CHARACTERS, line);
		return false;
	}
	return read_setting(line, equals + 1, reading, why);
}

/* *ret_line is the line of `why`; 0: the whole file. */
static bool read_lines(char *text, struct reading *reading, unsigned int *ret_line, struct op_text *why)
{
	*ret_line = 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (rest)
			++*ret_line;
		if (!read_line(line, reading, why))
			return false;
	}
	for (uint64_t i = 0; i < reading->nr_chosen; i++) {
		if (!reading->has_event[i]) {
			op_text_printf(why, "NR_CHOSEN is %" PRIu64 ", but there is no " EVENT_KEY "%" PRIu64, reading->nr_chosen,
				       i);
			return false;
		}
	}
	reading->setup.nr_events = reading->nr_chosen;
	*ret_line = 0;
	return true;
}

/* Adds "DIRECTORY/name", or the name alone when /proc does not give the directory. */
static void add_path(int dir_fd, const char *name, struct op_text *text)
{
	char link[64], path[PATH_MAX];
	ssize_t nr = -1;

	if (dir_fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
		nr = readlink(link, path, sizeof(path) - 1);
	}
	if (nr > 0 && name[0] != '/')
		op_text_printf(text, "%.*s/", (int)nr, path);
	op_text_add(text, name);
}

/* -EINVAL and the message for the user; line 0: the whole file. */
static int refuse(int dir_fd, const char *name, unsigned int line, const struct op_text *why, char **ret_why)
{
	struct op_text text = { 0 };
	char *message;

	add_path(dir_fd, name, &text);
	if (line)
		op_text_printf(&text, ":%u", line);
	op_text_printf(&text, ": %s", op_text_get(why));
	message = op_text_steal(&text);
	if (why->failed || !message) {
		free(message);
		return -ENOMEM;
	}
	*ret_why = message;
	return -EINVAL;
}

/*
 * A file that cannot be a setup, as after a crash, is -EINVAL; other errors of reading stay what
 * they are.
 */
static int refuse_file(int dir_fd, const char *name, int read_err, char **ret_why)
{
	struct op_text why = { 0 };
	int err;

	if (read_err != -EINVAL && read_err != -EFBIG && read_err != -ELOOP)
		return read_err == -ENOENT ? 0 : read_err;
	op_text_add(&why, read_err == -EFBIG ? "too large for a setup" : read_err == -ELOOP ? "is a link" : "holds NUL bytes");
	err = refuse(dir_fd, name, 0, &why, ret_why);
	op_text_free(&why);
	return err;
}

/* The owner of a directory, or of the first parent that exists. */
static int find_owner(const char *path, uid_t *ret_owner)
{
	char *part = strdup(path), *slash;
	struct stat st;
	int err;

	if (!part)
		return -ENOMEM;
	while ((err = stat(*part ? part : "/", &st) < 0 ? -errno : 0) == -ENOENT && (slash = strrchr(part, '/')))
		*slash = '\0';
	free(part);
	if (!err)
		*ret_owner = st.st_uid;
	return err;
}

/* A directory that cannot be looked at passes: opening it fails later, with the reason. */
static bool check_owner(struct op_setup *setup, uid_t author, struct op_text *why)
{
	uid_t owner;
	int err;

	if (!setup->session_dir || !author || author == geteuid())
		return true;
	setup->session_dir_owner = author;
	if (setup->session_dir[0] != '/') {
		op_text_printf(why, "SESSION_DIR: %s is no absolute path", setup->session_dir);
		return false;
	}
	err = find_owner(setup->session_dir, &owner);
	if (err == -ENOMEM)
		return no_memory(why);
	if (err || owner == author)
		return true;
	op_text_printf(why, "SESSION_DIR: %s belongs to user %u, but this file to user %u, who may name only his own directories",
		       setup->session_dir, owner, author);
	return false;
}

void op_setup_init(struct op_setup *setup)
{
	*setup = (struct op_setup){ .session_dir_owner = OP_SETUP_ANYBODY, .separate_lib = true, .separate_kernel = true };
}

int op_setup_read(struct op_setup *setup, int dir_fd, const char *name, char **ret_why)
{
	struct reading *reading;
	struct op_text why = { 0 };
	unsigned int line;
	uid_t author;
	char *text;
	int err = op_file_read_own(dir_fd, name, OP_FILE_MAX_BYTES, &text, &author);

	if (err < 0)
		return refuse_file(dir_fd, name, err, ret_why);
	reading = calloc(1, sizeof(*reading));
	if (!reading) {
		free(text);
		return -ENOMEM;
	}
	op_setup_init(&reading->setup);
	if (read_lines(op_file_skip_bom(text), reading, &line, &why) && check_owner(&reading->setup, author, &why)) {
		op_setup_free(setup);
		*setup = reading->setup;
	} else {
		err = refuse(dir_fd, name, line, &why, ret_why);
		op_setup_free(&reading->setup);
	}
	op_text_free(&why);
	free(reading);
	free(text);
	return err;
}

/* The author of a file that root writes is the owner of its directory. */
int op_setup_check(const struct op_setup *setup, int dir_fd, const char *name, char **ret_why)
{
	struct op_setup copy = *setup;
	struct op_text why = { 0 };
	struct stat st;
	int err = op_sys_fstat(dir_fd, &st);

	if (!err && !check_owner(&copy, st.st_uid, &why))
		err = refuse(dir_fd, name, 0, &why, ret_why);
	op_text_free(&why);
	return err;
}

static bool strings_ok(const struct op_setup *setup)
{
	const char *const strings[] = { setup->session_dir, setup->vmlinux, setup->kernel_range };

	for (size_t i = 0; i < op_array_size(strings); i++)
		if (strings[i] && !op_setup_value_ok(strings[i]))
			return false;
	return !setup->image_filter || op_setup_images_ok(setup->image_filter);
}

int op_setup_write(const struct op_setup *setup, int dir_fd, const char *name)
{
	struct op_text text = { 0 };
	char *data;
	int err;

	if (!strings_ok(setup))
		return -EINVAL;
	for (size_t i = 0; i < op_array_size(rows); i++)
		rows[i].write(&rows[i], setup, &text);
	op_text_add(&text, last_lines);
	data = op_text_steal(&text);
	if (!data)
		return -ENOMEM;
	err = op_file_publish(dir_fd, name, data, 0644);
	free(data);
	return err;
}

int op_setup_promote(int dir_fd)
{
	int err = op_sys_renameat(dir_fd, OP_SETUP_NEW_NAME, dir_fd, OP_SETUP_NAME);

	return err == -ENOENT ? 0 : err;
}

void op_setup_free(struct op_setup *setup)
{
	if (!setup)
		return;
	free(setup->session_dir);
	free(setup->vmlinux);
	free(setup->image_filter);
	free(setup->kernel_range);
	*setup = (struct op_setup){ 0 };
}

/* ---- separation ---- */

#define LIB    1u
#define KERNEL 2u
#define THREAD 4u
#define CPU    8u
#define CGROUP 16u
#define NAME   32u
#define USER   64u

static const struct {
	const char *word;
	unsigned int bits;
} separations[] = {
	{ "none", 0 },
	{ "lib", LIB },
	{ "library", LIB },
	{ "kernel", LIB | KERNEL },
	{ "thread", THREAD },
	{ "cpu", CPU },
	{ "cgroup", CGROUP },
	/* They divide applications, so everything must be filed under one. */
	{ "process-name", LIB | KERNEL | NAME },
	{ "user", LIB | KERNEL | USER },
	{ "all", LIB | KERNEL | THREAD | CPU },
};

static bool add_separation(const char *word, unsigned int *bits)
{
	for (size_t i = 0; i < op_array_size(separations); i++) {
		if (!strcmp(word, separations[i].word)) {
			*bits |= separations[i].bits;
			return true;
		}
	}
	return false;
}

int op_setup_set_separate(struct op_setup *setup, const char *words, char **ret_bad_word)
{
	char *copy = strdup(words), *bad_word = NULL;
	unsigned int bits = 0;
	int err = copy ? 0 : -ENOMEM;

	for (char *rest = copy, *word; !err && (word = strsep(&rest, ","));) {
		if (add_separation(word, &bits))
			continue;
		bad_word = strdup(word);
		err = bad_word ? -EINVAL : -ENOMEM;
	}
	free(copy);
	if (err == -EINVAL)
		*ret_bad_word = bad_word;
	if (err)
		return err;
	setup->separate_lib = bits & LIB;
	setup->separate_kernel = bits & KERNEL;
	setup->separate_thread = bits & THREAD;
	setup->separate_cpu = bits & CPU;
	setup->separate_cgroup = bits & CGROUP;
	setup->separate_name = bits & NAME;
	setup->separate_user = bits & USER;
	return 0;
}
