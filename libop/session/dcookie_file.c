/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The dcookie table as a file: opd-dcookies(5). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/session/dcookie_table.h"
#include "libop/base/clock.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define MAGIC	   "opd-dcookies "
#define FORMAT_VERSION "1"
#define UNKNOWN	   "-"
#define NEXT	   "next"
#define LINE_BYTES_MAX (1024 * 1024) /* three names of 4096 bytes, all escaped, are far below */
#define BAD_BYTES_MAX  (64ull * 1024 * 1024) /* of damaged lines; a hole may have a TiB */

/* The columns in their order. */
#define COLUMNS(X) \
	X(cookie) \
	X(kind) \
	X(name) \
	X(path) \
	X(host_path) \
	X(container) \
	X(build_id) \
	X(device) \
	X(inode) \
	X(generation) \
	X(mtime) \
	X(size) \
	X(is_kernel) \
	X(first_seen) \
	X(last_seen) \
	X(program_of) \
	X(comm) \
	X(user)

enum {
#define X(name) COLUMN_##name,
	COLUMNS(X)
#undef X
		NR_COLUMNS,
};

/* The columns that the first sessions had. Later ones may be missing. */
#define NR_FIRST_COLUMNS COLUMN_program_of

enum kind { KIND_FILE, KIND_KERNEL, KIND_PSEUDO, KIND_ANON, KIND_PROGRAM, NR_KINDS };

static const struct {
	const char *word;
	enum op_image_kind kind;
	bool is_pseudo, is_program;
} kinds[NR_KINDS] = {
	[KIND_FILE] = { "file", OP_IMAGE_FILE, false, false },
	[KIND_KERNEL] = { "kernel", OP_IMAGE_KERNEL, false, false },
	[KIND_PSEUDO] = { "pseudo", OP_IMAGE_KERNEL, true, false },
	[KIND_ANON] = { "anon", OP_IMAGE_ANON, false, false },
	[KIND_PROGRAM] = { "program", OP_IMAGE_FILE, false, true },
};

/* ---- writing ---- */

void op_dcookie_format_head(struct op_text *text)
{
	const char *before = "#";

	op_text_add(text, MAGIC FORMAT_VERSION "\n");
#define X(name) \
	op_text_printf(text, "%s%s", before, #name); \
	before = "\t";
	COLUMNS(X)
#undef X
	op_text_add_char(text, '\n');
}

void op_dcookie_format_next(uint64_t next, struct op_text *text)
{
	op_text_printf(text, NEXT "\t%" PRIu64 "\n", next);
}

static void add_escaped(struct op_text *text, const char *string)
{
	if (!strcmp(string, UNKNOWN)) {
		op_text_add(text, "\\x2d");
		return;
	}
	for (; *string; string++) {
		unsigned char c = (unsigned char)*string;

		if (c == '\\')
			op_text_add(text, "\\\\");
		else if (c < ' ' || c == 0x7f)
			op_text_printf(text, "\\x%02x", c);
		else
			op_text_add_char(text, *string);
	}
}

static void add_known(struct op_text *text, const char *string)
{
	if (string && *string)
		add_escaped(text, string);
	else
		op_text_add(text, UNKNOWN);
}

static void add_string(struct op_text *text, const char *string)
{
	add_known(text, string);
	op_text_add_char(text, '\t');
}

static enum kind kind_of(const struct op_image_id *id)
{
	enum kind kind = KIND_FILE;

	while (kinds[kind].kind != id->name.kind || kinds[kind].is_pseudo != id->is_pseudo ||
	       kinds[kind].is_program != op_dcookie_is_program(id))
		kind++;
	return kind;
}

/* The name of a region is the part of its path below the label. */
static void add_name(struct op_text *text, const struct op_dcookie_row *row)
{
	const struct op_image_name *name = &row->id.name;

	if (name->kind == OP_IMAGE_ANON)
		op_text_printf(text, "%" PRId32 ".0x%" PRIx64 ".0x%" PRIx64 "\t", name->tgid, name->start, name->end);
	else
		add_string(text, row->name);
}

static void add_build_id(struct op_text *text, const struct op_image_id *id)
{
	for (size_t i = 0; i < id->build_id_bytes; i++)
		op_text_printf(text, "%02x", id->build_id[i]);
	op_text_add(text, id->build_id_bytes ? "\t" : UNKNOWN "\t");
}

/* The last columns; rows of images do without. */
static void add_program(struct op_text *text, const struct op_image_id *id)
{
	op_text_printf(text, "\t%" PRIu64 "\t", id->program_of);
	add_string(text, id->comm);
	if (id->user == OP_USER_NONE)
		op_text_add(text, UNKNOWN);
	else
		op_text_printf(text, "%" PRIu32, id->user);
}

void op_dcookie_format_row(const struct op_dcookie_row *row, struct op_text *text)
{
	const struct op_image_id *id = &row->id;

	op_text_printf(text, "%" PRIu64 "\t%s\t", row->cookie, kinds[kind_of(id)].word);
	add_name(text, row);
	add_string(text, id->name.name);
	add_string(text, row->host_path);
	add_string(text, row->container);
	add_build_id(text, id);
	op_text_printf(text, "%u:%u\t", major(id->device), minor(id->device));
	op_text_printf(text, "%" PRIu64 "\t%" PRIu64 "\t", id->inode, id->inode_generation);
	op_text_printf(text, "%" PRIu64 ".%09" PRIu64 "\t", id->mtime_ns / OP_NS_PER_S, id->mtime_ns % OP_NS_PER_S);
	op_text_printf(text, "%" PRIu64 "\t%d\t", id->bytes, id->is_kernel);
	op_text_printf(text, "%" PRId64 "\t%" PRId64, row->first_seen, row->last_seen);
	if (op_dcookie_is_program(id))
		add_program(text, id);
	op_text_add_char(text, '\n');
}

size_t op_dcookie_nr_unwritten(const struct op_dcookie_table *table)
{
	return table->nr_unwritten;
}

void op_dcookie_format_unwritten(const struct op_dcookie_table *table, struct op_text *text)
{
	for (size_t i = 0; i < table->nr_unwritten; i++) {
		const struct op_dcookie_entry *entry = op_dcookie_entry_of(table, table->unwritten[i]);

		if (entry && entry->row.name)
			op_dcookie_format_row(&entry->row, text);
	}
}

void op_dcookie_all_written(struct op_dcookie_table *table)
{
	for (size_t i = 0; i < table->nr_unwritten; i++) {
		struct op_dcookie_entry *entry = op_dcookie_entry_of(table, table->unwritten[i]);

		if (entry)
			entry->is_unwritten = false;
	}
	table->nr_unwritten = 0;
}

struct unwriting {
	struct op_dcookie_table *table;
	int err;
};

static void unwrite(struct op_dcookie_row *row, void *arg)
{
	struct unwriting *unwriting = arg;

	if (row->name && !unwriting->err)
		unwriting->err = op_dcookie_note_unwritten(unwriting->table, op_container_of(row, struct op_dcookie_entry, row));
}

int op_dcookie_none_written(struct op_dcookie_table *table)
{
	struct unwriting unwriting = { .table = table };

	op_dcookie_visit(table, unwrite, &unwriting);
	return unwriting.err;
}

/* ---- reading ---- */

/* The row of a line. Its strings lie in the line. */
struct parsed {
	struct op_dcookie_row row;
	char *columns[NR_COLUMNS];
};

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of two digits, or -1. */
static int byte_value(const char *digits)
{
	int high = digit_value(digits[0]), low = high < 0 ? -1 : digit_value(digits[1]);

	return low < 0 ? -1 : high << 4 | low;
}

/* Undoes the escapes in place. False: a bad escape, an empty string, or a NUL. */
static bool unescape(char *string)
{
	char *to = string;

	if (!*string)
		return false;
	for (const char *from = string; *from; from++) {
		int value;

		if (*from != '\\') {
			*to++ = *from;
			continue;
		}
		from++;
		value = *from == 'x' ? byte_value(from + 1) : -1;
		if (*from == '\\')
			*to++ = '\\';
		else if (value > 0)
			*to++ = (char)value;
		else
			return false;
		if (*from == 'x')
			from += 2;
	}
	*to = '\0';
	return true;
}

/* A string column; *ret_string NULL for an unknown one. */
static bool take_string(char *column, const char **ret_string)
{
	bool is_unknown = !strcmp(column, UNKNOWN);

	if (!is_unknown && !unescape(column))
		return false;
	*ret_string = is_unknown ? NULL : column;
	return true;
}

static bool number_of(const char *column, uint64_t *ret_value)
{
	return !op_parse_decimal(column, UINT64_MAX, ret_value);
}

static bool take_kind(const char *word, struct op_image_id *id)
{
	for (size_t i = 0; i < NR_KINDS; i++) {
		if (strcmp(word, kinds[i].word))
			continue;
		id->name.kind = kinds[i].kind;
		id->is_pseudo = kinds[i].is_pseudo;
		id->program_of = kinds[i].is_program;
		return true;
	}
	return false;
}

static bool take_hex(const char *digits, uint64_t *ret_value)
{
	char *end;

	if (strncmp(digits, "0x", 2) != 0 || !isxdigit((unsigned char)digits[2]))
		return false;
	errno = 0;
	*ret_value = strtoull(digits, &end, 16);
	return !errno && !*end;
}

static bool take_region(char *column, struct op_image_name *name)
{
	const char *tgid_digits = strsep(&column, "."), *start = strsep(&column, ".");
	uint64_t tgid;

	if (!column || op_parse_decimal(tgid_digits, INT32_MAX, &tgid))
		return false;
	name->tgid = (int32_t)tgid;
	return take_hex(start, &name->start) && take_hex(column, &name->end);
}

static bool take_name(struct parsed *parsed)
{
	struct op_dcookie_row *row = &parsed->row;

	if (!take_string(parsed->columns[COLUMN_path], &row->id.name.name) || !row->id.name.name)
		return false;
	if (row->id.name.kind != OP_IMAGE_ANON)
		return take_string(parsed->columns[COLUMN_name], &row->name) && row->name;
	row->name = row->id.name.name;
	return take_region(parsed->columns[COLUMN_name], &row->id.name);
}

static bool take_build_id(const char *digits, struct op_image_id *id)
{
	size_t nr_bytes = strlen(digits) / 2;

	if (!strcmp(digits, UNKNOWN))
		return true;
	if (!nr_bytes || strlen(digits) % 2 || nr_bytes > sizeof(id->build_id))
		return false;
	for (size_t i = 0; i < nr_bytes; i++) {
		int value = byte_value(digits + 2 * i);

		if (value < 0)
			return false;
		id->build_id[i] = (uint8_t)value;
	}
	id->build_id_bytes = (uint8_t)nr_bytes;
	return true;
}

static bool take_device(char *column, uint64_t *ret_device)
{
	const char *major_digits = strsep(&column, ":");
	uint64_t maj, min;

	if (!column || op_parse_decimal(major_digits, UINT32_MAX, &maj) || op_parse_decimal(column, UINT32_MAX, &min))
		return false;
	*ret_device = makedev((unsigned int)maj, (unsigned int)min);
	return true;
}

static bool take_seconds(const char *column, int64_t *ret_seconds)
{
	uint64_t seconds;

	if (op_parse_decimal(column, INT64_MAX, &seconds))
		return false;
	*ret_seconds = (int64_t)seconds;
	return true;
}

/* Of a program: whose it is, and a name, a user or both. */
static bool take_program(char *const columns[NR_COLUMNS], struct op_image_id *id)
{
	const char *comm = NULL;
	uint64_t user = OP_USER_NONE;

	if (!columns[COLUMN_user] || !number_of(columns[COLUMN_program_of], &id->program_of) || !op_dcookie_is_program(id) ||
	    !take_string(columns[COLUMN_comm], &comm) || (comm && strlen(comm) >= sizeof(id->comm)))
		return false;
	if (strcmp(columns[COLUMN_user], UNKNOWN) != 0 && op_parse_decimal(columns[COLUMN_user], OP_USER_NONE - 1, &user))
		return false;
	snprintf(id->comm, sizeof(id->comm), "%s", comm ? comm : "");
	id->user = (uint32_t)user;
	return comm || id->user != OP_USER_NONE;
}

/* Returns the fault of a line, or NULL. */
static const char *parse_row(struct parsed *parsed)
{
	struct op_dcookie_row *row = &parsed->row;
	char **columns = parsed->columns;
	uint64_t is_kernel;

	if (!number_of(columns[COLUMN_cookie], &row->cookie) || row->cookie == OP_DCOOKIE_NONE || row->cookie == UINT64_MAX)
		return "not a cookie";
	if (!take_kind(columns[COLUMN_kind], &row->id))
		return "not a kind of image";
	if (!take_name(parsed))
		return "not a name";
	if (!take_string(columns[COLUMN_host_path], &row->host_path) || !take_string(columns[COLUMN_container], &row->container))
		return "not a path on the host or a container";
	if (!take_build_id(columns[COLUMN_build_id], &row->id))
		return "not a build-id";
	if (!take_device(columns[COLUMN_device], &row->id.device) || !number_of(columns[COLUMN_inode], &row->id.inode) ||
	    !number_of(columns[COLUMN_generation], &row->id.inode_generation))
		return "not a device, inode and generation";
	if (op_parse_time_ns(columns[COLUMN_mtime], &row->id.mtime_ns) || !number_of(columns[COLUMN_size], &row->id.bytes))
		return "not a time and a size";
	if (!number_of(columns[COLUMN_is_kernel], &is_kernel) || is_kernel > 1)
		return "is_kernel is neither 0 nor 1";
	row->id.is_kernel = is_kernel;
	if (!take_seconds(columns[COLUMN_first_seen], &row->first_seen) ||
	    !take_seconds(columns[COLUMN_last_seen], &row->last_seen))
		return "not the times of samples";
	if (op_dcookie_is_program(&row->id) && !take_program(columns, &row->id))
		return "not a program";
	return NULL;
}

/* A later opd of the same version may add columns. */
static const char *split(char *line, char *columns[NR_COLUMNS])
{
	size_t nr_columns = 0;

	while (nr_columns < NR_COLUMNS && (columns[nr_columns] = strsep(&line, "\t")))
		nr_columns++;
	return nr_columns < NR_FIRST_COLUMNS ? "too few columns" : NULL;
}

static int add_aliases(struct op_dcookie_table *table, const struct op_image_id *by_build_id, uint64_t cookie)
{
	int err = by_build_id->build_id_bytes ? op_dcookie_alias(table, by_build_id, cookie) : 0;

	return err == -ENOMEM ? err : op_dcookie_alias_unseen(table, cookie);
}

/*
 * The identity of a file is its inode; its build-id is an alias. The kernel and its modules have a
 * build-id only. An identity that another row has stays there: that row is older and is the same
 * image. But the identity that makes a row replaces an alias. The file does not keep all of an
 * alias: an image in a container has the same path and build-id there as one on the host. So only
 * images under the plain name of a host's file have it.
 */
static struct op_dcookie_entry *add_by_identities(struct op_dcookie_table *table, const struct op_dcookie_row *row)
{
	struct op_image_id seen = row->id, by_build_id = { .name = row->id.name };
	bool is_file = row->id.name.kind == OP_IMAGE_FILE && !row->id.is_kernel && !op_dcookie_is_program(&row->id);
	bool was_seen = row->id.inode || row->id.mtime_ns;
	struct op_dcookie_entry *entry;

	by_build_id.build_id_bytes = row->id.build_id_bytes;
	memcpy(by_build_id.build_id, row->id.build_id, sizeof(by_build_id.build_id));
	if (is_file && was_seen) {
		seen.build_id_bytes = 0;
		memset(seen.build_id, 0, sizeof(seen.build_id));
	}
	if (row->id.is_kernel && row->id.build_id_bytes)
		seen.mtime_ns = 0;
	entry = op_dcookie_add_entry(table, &seen, row->cookie);
	if (!entry && op_dcookie_drop_alias(table, &seen))
		entry = op_dcookie_add_entry(table, &seen, row->cookie);
	/* A file without this path on the host must not be found for one that has it. */
	if (is_file && (row->container || strcmp(row->name, row->id.name.name) != 0))
		by_build_id.build_id_bytes = 0;
	if (entry && is_file && was_seen && add_aliases(table, &by_build_id, row->cookie) == -ENOMEM) {
		op_dcookie_remove_entry(table, entry);
		return NULL;
	}
	return entry;
}

static int fill_entry(struct op_dcookie_table *table, struct op_dcookie_entry *entry, const struct op_dcookie_row *row)
{
	int err = op_dcookie_enter_name(table, entry, strdup(row->name));

	if (!err)
		err = op_dcookie_set_build_id(table, row->cookie, row->id.build_id, row->id.build_id_bytes);
	if (!err)
		err = op_dcookie_set_place(table, row->cookie, row->host_path, row->container);
	entry->row.id.mtime_ns = row->id.mtime_ns;
	entry->row.first_seen = row->first_seen;
	entry->row.last_seen = row->last_seen;
	return err;
}

/* The last line of a cookie holds. */
static int add_row(struct op_dcookie_table *table, const struct op_dcookie_row *row, const char **ret_why)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, row->cookie);
	struct op_image_name name = row->id.name;
	uint64_t owner;
	int err;

	if (entry)
		op_dcookie_remove_entry(table, entry);
	name.name = row->name;
	owner = op_dcookie_by_name(table, &name);
	if (owner != OP_DCOOKIE_NONE && name.kind != OP_IMAGE_KERNEL) {
		*ret_why = "the name of another image";
		return 0;
	}
	errno = 0;
	entry = add_by_identities(table, row);
	if (!entry && errno == ENOMEM)
		return -ENOMEM;
	if (!entry) {
		*ret_why = "the identity of another image";
		return 0;
	}
	err = fill_entry(table, entry, row);
	if (err)
		op_dcookie_remove_entry(table, entry);
	return err;
}

struct orphans {
	struct op_dcookie_table *table;
	size_t nr;
};

static void find_orphan(struct op_dcookie_row *row, void *arg)
{
	struct orphans *orphans = arg;
	const struct op_dcookie_entry *application;

	if (!op_dcookie_is_program(&row->id))
		return;
	application = op_dcookie_entry_of(orphans->table, row->id.program_of);
	if (application && application->row.id.name.kind == OP_IMAGE_FILE && !op_dcookie_is_program(&application->row.id))
		return;
	op_dcookie_remove_entry(orphans->table, op_container_of(row, struct op_dcookie_entry, row));
	orphans->nr++;
}

/* A program is nothing without its application, whose line may be damaged. Returns their number. */
static size_t drop_orphans(struct op_dcookie_table *table)
{
	struct orphans orphans = { .table = table };

	op_dcookie_visit(table, find_orphan, &orphans);
	return orphans.nr;
}

static int take_next(struct op_dcookie_table *table, const char *line, const char **ret_why)
{
	uint64_t next;

	if (!number_of(line, &next))
		*ret_why = "not a number";
	else
		table->next = op_max_u64(table->next, next);
	return 0;
}

static int take_line(struct op_dcookie_table *table, char *line, struct op_dcookie_reading *reading, const char **ret_why)
{
	struct parsed parsed = { 0 };
	int err;

	if (line[0] == '#')
		return 0;
	if (!strncmp(line, NEXT "\t", sizeof(NEXT)))
		return take_next(table, line + sizeof(NEXT), ret_why);
	*ret_why = split(line, parsed.columns);
	if (!*ret_why)
		*ret_why = parse_row(&parsed);
	if (*ret_why)
		return 0;
	err = add_row(table, &parsed.row, ret_why);
	reading->nr_rows += !err && !*ret_why;
	return err;
}

static int complain(struct op_dcookie_reading *reading, const char *path, size_t number, const char *why)
{
	struct op_text text = { 0 };

	reading->nr_bad++;
	if (reading->complaint)
		return 0;
	op_text_printf(&text, "%s:%zu: %s", path, number, why);
	reading->complaint = op_text_steal(&text);
	return reading->complaint ? 0 : -ENOMEM;
}

static int check_version(const char *line, struct op_dcookie_reading *reading, const char *path)
{
	const char *why;

	if (!strcmp(line, MAGIC FORMAT_VERSION))
		return 0;
	why = strncmp(line, MAGIC, strlen(MAGIC)) ? "not a dcookie table" : "a dcookie table of a later version";
	return complain(reading, path, 1, why) ? -ENOMEM : -EBADMSG;
}

/*
 * Reads a line with its end. Of a line that is too long, only the beginning is kept. *ret_nr_bytes:
 * 0 after the last line; more than BAD_BYTES_MAX: the line goes on. 0 or -errno.
 */
static int next_line(FILE *in, char line[LINE_BYTES_MAX], uint64_t *ret_nr_bytes, bool *ret_is_torn)
{
	uint64_t nr_bytes = 0;
	int c = 0;

	errno = 0;
	while (c != '\n' && nr_bytes <= BAD_BYTES_MAX && (c = getc_unlocked(in)) != EOF) {
		if (nr_bytes < LINE_BYTES_MAX)
			line[nr_bytes] = (char)c;
		nr_bytes++;
	}
	*ret_nr_bytes = nr_bytes;
	*ret_is_torn = nr_bytes && c == EOF;
	return ferror(in) ? -errno : 0;
}

/* 0 or -errno. */
static int read_line(struct op_dcookie_table *table, char *line, uint64_t nr_bytes, size_t number, const char *path,
		     struct op_dcookie_reading *reading)
{
	const char *why = NULL;
	int err = 0;

	line[op_min_u64(nr_bytes, LINE_BYTES_MAX) - 1] = '\0';
	if (nr_bytes > LINE_BYTES_MAX)
		why = "too long";
	else if (strlen(line) != nr_bytes - 1)
		why = "a NUL byte";
	else if (number == 1)
		err = check_version(line, reading, path);
	else
		err = take_line(table, line, reading, &why);
	reading->nr_bytes += nr_bytes;
	if (why)
		reading->nr_bad_bytes += nr_bytes;
	if (!err && why)
		err = complain(reading, path, number, why);
	return !err && why && number == 1 ? -EBADMSG : err;
}

/* The rest is left unread, as a torn line is. */
static int give_up(struct op_dcookie_reading *reading, const char *path, size_t number)
{
	free(reading->complaint);
	reading->complaint = NULL;
	reading->is_torn = true;
	return complain(reading, path, number, "more than 64 MiB of damaged lines, and the rest is not read");
}

static int read_lines(struct op_dcookie_table *table, FILE *in, const char *path, struct op_dcookie_reading *reading)
{
	char *line = malloc(LINE_BYTES_MAX);
	uint64_t nr_bytes;
	size_t number = 0;
	int err = line ? 0 : -ENOMEM;

	while (!err) {
		err = next_line(in, line, &nr_bytes, &reading->is_torn);
		number++;
		if (!err && (nr_bytes > BAD_BYTES_MAX || reading->nr_bad_bytes > BAD_BYTES_MAX)) {
			err = give_up(reading, path, number);
			break;
		}
		if (err || !nr_bytes || reading->is_torn)
			break;
		err = read_line(table, line, nr_bytes, number, path, reading);
	}
	free(line);
	return err;
}

static int check_kind(int fd, const char *path, struct op_dcookie_reading *reading)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err || S_ISREG(st.st_mode))
		return err;
	return complain(reading, path, 1, "not a file") ? -ENOMEM : -EBADMSG;
}

int op_dcookie_table_read(struct op_dcookie_table *table, int dir_fd, const char *path, struct op_dcookie_reading *ret_reading)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;
	FILE *in;

	*ret_reading = (struct op_dcookie_reading){ 0 };
	if (fd < 0)
		return fd;
	err = check_kind(fd, path, ret_reading);
	in = err ? NULL : fdopen(fd, "r");
	if (!in) {
		close(fd);
		return err ? err : -ENOMEM;
	}
	err = read_lines(table, in, path, ret_reading);
	fclose(in);
	ret_reading->nr_rows -= drop_orphans(table);
	if (!err)
		op_dcookie_all_written(table);
	return err;
}
