/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/log.h"

#include <errno.h>
#include <stdarg.h>

#include "libop/base/htable.h"
#include "libop/base/text.h"
#include "tools/common/formatting.h"
#include "tools/common/progress.h"

static const char *program_name = "opreport";
static bool enabled[OPR_NR_TOPICS];
static const char *option_name, *option_value; /* of errors, now */

static const char *const topic_names[] = {
#define X(name, meaning) [OPR_TOPIC_##name] = #name,
	OPR_TOPICS(X)
#undef X
};

void opr_log_init(const char *program)
{
	program_name = program;
}

bool opr_log_enable(const char *topic)
{
	bool all = !strcmp(topic, "all"), found = all;

	for (size_t i = 0; i < op_array_size(topic_names); i++) {
		if (!all && strcmp(topic, topic_names[i]))
			continue;
		enabled[i] = true;
		found = true;
	}
	return found;
}

bool opr_log_shows(enum opr_topic topic)
{
	return enabled[topic];
}

/* The lines that were printed once. They live as long as the program. */
struct printed {
	struct op_hlink link;
	char *text;
};

static struct op_htable printed;

/* Without memory, a line may be repeated. */
static bool is_repeated(const char *text)
{
	uint64_t hash = op_hash_bytes(0, text, strlen(text));
	struct printed *entry;

	for (struct op_hlink *link = op_htable_first(&printed, hash); link; link = op_htable_next(link))
		if (!strcmp(op_container_of(link, struct printed, link)->text, text))
			return true;
	entry = calloc(1, sizeof(*entry));
	if (entry)
		entry->text = strdup(text);
	if (entry && (!entry->text || op_htable_insert(&printed, &entry->link, hash))) {
		free(entry->text);
		free(entry);
	}
	return false;
}

static void print(const char *who, bool is_once, const char *format, va_list args) OP_PRINTF(3, 0);

/* Writes with one write(2): stderr has no buffer, and there may be thousands of messages. */
static void print(const char *who, bool is_once, const char *format, va_list args)
{
	struct op_text line = { 0 };
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	if (!is_once || !text || !is_repeated(text)) {
		op_text_printf(&line, "%s%s", who, *who ? ": " : "");
		op_text_add_escaped(&line, text ? text : format);
		opr_shorten(&line);
		op_text_add_char(&line, '\n');
		opr_progress_end();
		fputs(line.failed ? format : op_text_get(&line), stderr);
	}
	op_text_free(&line);
	free(text);
}

void opr_log_set_option(const char *name, const char *value)
{
	option_name = name;
	option_value = value;
}

/* "PROGRAM: --NAME=VALUE", or as much of it as the error does not say itself. */
static void add_subject(struct op_text *subject, const char *error)
{
	const char *name = option_name ? strstr(error, option_name) : NULL;

	op_text_add(subject, program_name);
	if (!option_name || (name && name >= error + 2 && name[-1] == '-' && name[-2] == '-'))
		return;
	op_text_printf(subject, ": --%s%s", option_name, *option_value ? "=" : "");
	op_text_add_escaped(subject, option_value);
}

int opr_error(int err, const char *format, ...)
{
	struct op_text subject = { 0 };
	va_list args;

	add_subject(&subject, format);
	va_start(args, format);
	print(subject.failed ? program_name : op_text_get(&subject), false, format, args);
	va_end(args);
	op_text_free(&subject);
	return err;
}

int opr_error_why(int err, char *why)
{
	if (err)
		opr_error(err, "%s", why ? why : strerror(-err));
	free(why);
	return err;
}

void opr_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("warning", true, format, args);
	va_end(args);
}

void opr_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("note", true, format, args);
	va_end(args);
}

void opr_verbose(enum opr_topic topic, const char *format, ...)
{
	va_list args;

	if (!enabled[topic])
		return;
	va_start(args, format);
	print("", false, format, args);
	va_end(args);
}

int opr_no_memory(void)
{
	return opr_error(-ENOMEM, "no memory");
}
