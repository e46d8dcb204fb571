/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/control/config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/nearest.h"
#include "libop/base/parse.h"
#include "libop/control/stack_setup.h"
#include "libop/session/layout.h"
#include "libop/stacks/runtime_name.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define US_PER_S 1000000ull
#define US_MAX	 (200ull * 365 * 86400 * US_PER_S)

struct row;

/* Reads a value into its field. False: it adds a reason to `why`. */
typedef bool (*parse_fn)(const struct row *row, const char *value, void *field, struct op_text *why);

struct row {
	const char *key;
	const char *preset; /* the default, as in the file */
	parse_fn parse;
	size_t offset; /* of the field in struct op_config */
	uint64_t min, max;
	enum { AT_START, AT_ONCE } when; /* a change takes effect; AT_ONCE: numbers only */
};

static bool keep_string(void *field, const char *value, struct op_text *why)
{
	char **string = field, *copy = value ? strdup(value) : NULL;

	if (value && !copy) {
		why->failed = true;
		return false;
	}
	free(*string);
	*string = copy;
	return true;
}

static bool parse_path(const struct row *row, const char *value, void *field, struct op_text *why)
{
	if (value[0] != '/') {
		op_text_printf(why, "'%s' is not an absolute path", value);
		return false;
	}
	if (strlen(value) > row->max) {
		op_text_printf(why, "the path is longer than %ju bytes", (uintmax_t)row->max);
		return false;
	}
	return keep_string(field, value, why);
}

static bool parse_optional_path(const struct row *row, const char *value, void *field, struct op_text *why)
{
	return *value ? parse_path(row, value, field, why) : keep_string(field, NULL, why);
}

/* Adds the reason of an error of op_parse_...() */
static bool number_is_good(const struct row *row, const char *value, int err, struct op_text *why)
{
	if (err == -ERANGE)
		op_text_printf(why, "%s is not within %ju to %ju", value, (uintmax_t)row->min, (uintmax_t)row->max);
	else if (err)
		op_text_printf(why, "'%s' is not a number", value);
	return !err;
}

static bool parse_bytes(const struct row *row, const char *value, void *field, struct op_text *why)
{
	uint64_t bytes;

	if (!number_is_good(row, value, op_parse_size_bytes(value, row->min, row->max, &bytes), why))
		return false;
	*(uint64_t *)field = bytes;
	return true;
}

static bool parse_ring_bytes(const struct row *row, const char *value, void *field, struct op_text *why)
{
	uint64_t bytes = 0;

	if (strcasecmp(value, "auto") && !parse_bytes(row, value, &bytes, why))
		return false;
	if (bytes & (bytes - 1) || (bytes && bytes < (uint64_t)sysconf(_SC_PAGESIZE))) {
		op_text_printf(why, "%s is not a power of two of pages", value);
		return false;
	}
	*(uint64_t *)field = bytes;
	return true;
}

static bool parse_number(const struct row *row, const char *value, void *field, struct op_text *why)
{
	uint64_t number;

	if (!number_is_good(row, value, op_parse_u64(value, row->min, row->max, &number), why))
		return false;
	*(uint64_t *)field = number;
	return true;
}

/* 0 is off and may be below the minimum. */
static bool parse_span(const struct row *row, const char *value, void *field, struct op_text *why)
{
	uint64_t us = 0;
	int err = op_parse_span_us(value, &us);

	if (err == -EINVAL)
		op_text_printf(why, "'%s' is not a time span such as 1h or 2weeks", value);
	else if (err || us > row->max || (us && us < row->min))
		op_text_printf(why, "%s is not within %ju to %ju seconds", value, (uintmax_t)(row->min / US_PER_S),
			       (uintmax_t)(row->max / US_PER_S));
	else
		*(uint64_t *)field = us;
	return !why->length;
}

/* The words of systemd.syntax(7). */
static bool parse_bool(const struct row *row, const char *value, void *field, struct op_text *why)
{
	static const char *const words[2][4] = { { "no", "off", "false", "0" }, { "yes", "on", "true", "1" } };

	(void)row;
	for (uint64_t truth = 0; truth < op_array_size(words); truth++) {
		for (size_t i = 0; i < op_array_size(words[truth]); i++) {
			if (!strcasecmp(value, words[truth][i])) {
				*(uint64_t *)field = truth;
				return true;
			}
		}
	}
	op_text_printf(why, "'%s' is neither yes nor no", value);
	return false;
}

/* yes, no, or the words of runtimes. */
static bool parse_runtimes(const struct row *row, const char *value, void *field, struct op_text *why)
{
	struct op_text no_bool = { 0 };
	const char *at = value;
	uint64_t bits = 0;

	if (parse_bool(row, value, field, &no_bool)) {
		*(uint64_t *)field = *(uint64_t *)field ? OP_RUNTIMES_ALL : 0;
		return true;
	}
	op_text_free(&no_bool);
	while (*(at += strspn(at, ", "))) {
		size_t length = strcspn(at, ", ");
		enum op_runtime runtime = OP_RUNTIME_none + 1;

		while (runtime < OP_NR_RUNTIMES &&
		       (strlen(op_runtime_word(runtime)) != length || strncmp(op_runtime_word(runtime), at, length) != 0))
			runtime++;
		if (runtime == OP_NR_RUNTIMES) {
			op_text_printf(why, "'%.*s' is neither yes, no nor one of", (int)length, at);
			for (runtime = OP_RUNTIME_none + 1; runtime < OP_NR_RUNTIMES; runtime++)
				op_text_printf(why, " %s", op_runtime_word(runtime));
			return false;
		}
		bits |= 1u << runtime;
		at += length;
	}
	*(uint64_t *)field = bits;
	return true;
}

#define FIELD(name)  offsetof(struct op_config, name)
#define SOCKET_BYTES (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

static const struct row rows[] = {
	{ "SessionDir", OP_SESSION_DIR_DEFAULT, parse_path, FIELD(session_dir), 1, 4000, AT_START },
	{ "ControlSocket", OP_CONTROL_SOCKET_DEFAULT, parse_path, FIELD(control_socket), 1, SOCKET_BYTES, AT_START },
	{ "Vmlinux", "", parse_optional_path, FIELD(vmlinux), 1, 4000, AT_START },
	{ "RingSize", "auto", parse_ring_bytes, FIELD(ring_bytes), 16 * KIB, 256 * MIB, AT_START },
	{ "SidebandSize", "auto", parse_ring_bytes, FIELD(sideband_bytes), 16 * KIB, 256 * MIB, AT_START },
	{ "Watermark", "0", parse_bytes, FIELD(watermark_bytes), 0, 256 * MIB, AT_START },
	{ "WakeupRecords", "0", parse_number, FIELD(wakeup_records), 0, 1000000, AT_START },
	{ "VisitInterval", "250", parse_number, FIELD(visit_ms), 10, 10000, AT_START },
	{ "MaxOpenFiles", "0", parse_number, FIELD(max_open_files), 0, 1048576, AT_ONCE },
	{ "MaxSampleFiles", "50000", parse_number, FIELD(max_sample_files), 0, 100000000, AT_ONCE },
	{ "MaxImages", "20000", parse_number, FIELD(max_images), 1, 10000000, AT_START },
	{ "SessionInterval", "1d", parse_span, FIELD(session_interval_us), US_PER_S, US_MAX, AT_ONCE },
	{ "SessionKeep", "90d", parse_span, FIELD(session_keep_us), US_PER_S, US_MAX, AT_ONCE },
	{ "SessionMaxUse", "1G", parse_bytes, FIELD(session_max_use), 0, UINT64_MAX, AT_ONCE },
	{ "SessionKeepFree", "256M", parse_bytes, FIELD(session_keep_free), 0, UINT64_MAX, AT_ONCE },
	{ "TimelineInterval", "1min", parse_span, FIELD(timeline_interval_us), 10 * US_PER_S, 3600 * US_PER_S, AT_ONCE },
	{ "TimelineKeep", "7d", parse_span, FIELD(timeline_keep_us), US_PER_S, US_MAX, AT_ONCE },
	{ "StackMaxUse", "64M", parse_bytes, FIELD(stack_max_use), 64 * KIB, 1024 * MIB, AT_ONCE },
	{ "BuildIds", "yes", parse_bool, FIELD(build_ids), 0, 1, AT_START },
	{ "TableDir", OP_TABLE_DIR_DEFAULT, parse_optional_path, FIELD(table_dir), 1, 4000, AT_START },
	{ "TableMaxUse", "256M", parse_bytes, FIELD(table_max_use), 0, UINT64_MAX, AT_START },
	{ "Stacks", "yes", parse_bool, FIELD(stacks), 0, 1, AT_START },
	{ "StackRate", "99", parse_number, FIELD(stack_rate_hz), 1, OP_STACK_RATE_MAX, AT_START },
	{ "StackBytes", "8K", parse_bytes, FIELD(stack_bytes), 0, OP_STACK_BYTES_MAX, AT_START },
	{ "DeepStackBudget", "4M", parse_bytes, FIELD(deep_stack_budget), 0, 1024 * MIB, AT_START },
	{ "StackRingMaxUse", "64M", parse_bytes, FIELD(stack_ring_max_use), 0, UINT64_MAX, AT_START },
	{ "Bpf", "yes", parse_bool, FIELD(bpf), 0, 1, AT_START },
	{ "Waits", "yes", parse_bool, FIELD(waits), 0, 1, AT_START },
	{ "WaitBudget", "1M", parse_bytes, FIELD(wait_budget), 16 * KIB, 1024 * MIB, AT_START },
	{ "Runtimes", "yes", parse_runtimes, FIELD(runtimes), 0, 0, AT_START },
	{ "ProfileOnStart", "yes", parse_bool, FIELD(profile_on_start), 0, 1, AT_START },
};

int op_config_init(struct op_config *config)
{
	struct op_config fresh = { 0 };
	struct op_text why = { 0 };

	for (size_t i = 0; i < op_array_size(rows); i++) {
		if (!rows[i].parse(&rows[i], rows[i].preset, (char *)&fresh + rows[i].offset, &why)) {
			assert(why.failed);
			op_text_free(&why);
			op_config_free(&fresh);
			return -ENOMEM;
		}
	}
	*config = fresh;
	return 0;
}

void op_config_free(struct op_config *config)
{
	free(config->session_dir);
	free(config->control_socket);
	free(config->vmlinux);
	free(config->table_dir);
	*config = (struct op_config){ 0 };
}

/* Cuts blanks at both ends; `string` is changed. */
static char *trim(char *string)
{
	char *end = string + strlen(string);

	while (end > string && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*string))
		string++;
	return string;
}

static void read_setting(struct op_config *config, const char *key, const char *value, struct op_text *why)
{
	struct op_nearest nearest;

	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct op_text reason = { 0 };

		if (strcasecmp(key, rows[i].key))
			continue;
		if (!rows[i].parse(&rows[i], value, (char *)config + rows[i].offset, &reason))
			op_text_printf(why, "%s: %s", rows[i].key, reason.failed ? "no memory" : op_text_get(&reason));
		op_text_free(&reason);
		return;
	}
	op_nearest_init(&nearest, key);
	for (size_t i = 0; i < op_array_size(rows); i++)
		op_nearest_try(&nearest, rows[i].key);
	op_text_printf(why, "unknown key '%s'", key);
	op_nearest_add_hint(&nearest, "", why);
}

static void read_line(struct op_config *config, char *line, struct op_text *why)
{
	char *text = trim(line), *equals;

	if (!*text || *text == '#')
		return;
	equals = strchr(text, '=');
	if (!equals) {
		op_text_printf(why, "'%s' is not Key=value", text);
		return;
	}
	*equals = '\0';
	read_setting(config, trim(text), trim(equals + 1), why);
}

static int read_file(struct op_config *config, int dir_fd, const char *name, const char *shown, struct op_text *warnings)
{
	unsigned int number = 0;
	char *text;
	int err = op_file_read(dir_fd, name, OP_FILE_MAX_BYTES, &text);

	if (err < 0)
		return err;
	for (char *rest = op_file_skip_bom(text), *line; (line = strsep(&rest, "\n"));) {
		struct op_text why = { 0 };

		number++;
		read_line(config, line, &why);
		if (why.length)
			op_text_printf(warnings, "%s:%u: %s\n", shown, number, op_text_get(&why));
		op_text_free(&why);
	}
	free(text);
	return 0;
}

/* ---- drop-ins ---- */

static int is_drop_in(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 && !strcmp(entry->d_name + length - 5, ".conf");
}

static int bytewise(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* A drop-in that cannot be read is a warning: the others are read nevertheless. */
static void read_drop_in(struct op_config *config, int dir_fd, const char *dir, const char *name, struct op_text *warnings)
{
	struct op_text shown = { 0 };
	int err;

	op_text_printf(&shown, "%s/%s", dir, name);
	err = read_file(config, dir_fd, name, op_text_get(&shown), warnings);
	if (err < 0)
		op_text_printf(warnings, "%s: cannot be read: %s\n", op_text_get(&shown), strerror(-err));
	op_text_free(&shown);
}

static int read_drop_ins(struct op_config *config, const char *dir, struct op_text *warnings)
{
	struct dirent **entries;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), nr;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	nr = scandirat(fd, ".", &entries, is_drop_in, bytewise);
	for (int i = 0; i < nr; i++) {
		read_drop_in(config, fd, dir, entries[i]->d_name, warnings);
		free(entries[i]);
	}
	close(fd);
	if (nr < 0)
		return -errno;
	free(entries);
	return 0;
}

int op_config_read(struct op_config *config, const char *path, bool must_exist, struct op_text *warnings)
{
	struct op_text dir = { 0 };
	int err = read_file(config, AT_FDCWD, path, path, warnings);

	if (err == -ENOENT && !must_exist)
		err = 0;
	op_text_printf(&dir, "%s.d", path);
	if (!err)
		err = read_drop_ins(config, op_text_get(&dir), warnings);
	op_text_free(&dir);
	if (!err && config->ring_bytes && config->watermark_bytes > config->ring_bytes) {
		op_text_printf(warnings, "%s: Watermark is larger than RingSize, a quarter of the ring is used\n", path);
		config->watermark_bytes = 0;
	}
	return err;
}

/* ---- a change ---- */

static bool is_same(const struct row *row, const struct op_config *a, const struct op_config *b)
{
	const char *of_a = (const char *)a + row->offset, *of_b = (const char *)b + row->offset;
	const char *string_a, *string_b;

	if (row->parse != parse_path && row->parse != parse_optional_path)
		return *(const uint64_t *)(const void *)of_a == *(const uint64_t *)(const void *)of_b;
	string_a = *(char *const *)(const void *)of_a;
	string_b = *(char *const *)(const void *)of_b;
	return string_a && string_b ? !strcmp(string_a, string_b) : string_a == string_b;
}

void op_config_waiting(const struct op_config *config, const struct op_config *fresh, struct op_text *keys)
{
	for (size_t i = 0; i < op_array_size(rows); i++)
		if (rows[i].when == AT_START && !is_same(&rows[i], config, fresh))
			op_text_printf(keys, "%s%s", keys->length ? ", " : "", rows[i].key);
}

void op_config_adopt(struct op_config *config, const struct op_config *fresh)
{
	for (size_t i = 0; i < op_array_size(rows); i++)
		if (rows[i].when == AT_ONCE)
			memcpy((char *)config + rows[i].offset, (const char *)fresh + rows[i].offset, sizeof(uint64_t));
}

const char *op_config_path(const char *option, bool *ret_explicit)
{
	const char *env = getenv(OP_CONFIG_ENV);

	*ret_explicit = true;
	if (option)
		return option;
	if (env && *env)
		return env;
	*ret_explicit = false;
	return OP_CONFIG_PATH_DEFAULT;
}
