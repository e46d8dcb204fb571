/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report_log.h"

#include <errno.h>
#include <stdarg.h>

#include "libop/text.h"

static const char *program_name = "opreport";
static bool enabled[OPR_NR_TOPICS];

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

static void print(const char *who, const char *colon, const char *format, va_list args) OP_PRINTF(3, 0);

/* One write(2) for a message: stderr has no buffer, and thousands of images may have one each. */
static void print(const char *who, const char *colon, const char *format, va_list args)
{
	struct op_text line = { 0 };
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	op_text_add(&line, who);
	op_text_add(&line, colon);
	op_text_add_escaped(&line, text ? text : format);
	op_text_add_char(&line, '\n');
	fputs(line.failed ? format : op_text_get(&line), stderr);
	op_text_free(&line);
	free(text);
}

int opr_error(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(program_name, ": ", format, args);
	va_end(args);
	return err;
}

void opr_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("warning", ": ", format, args);
	va_end(args);
}

void opr_verbose(enum opr_topic topic, const char *format, ...)
{
	va_list args;

	if (!enabled[topic])
		return;
	va_start(args, format);
	print("", "", format, args);
	va_end(args);
}

int opr_no_memory(void)
{
	return opr_error(-ENOMEM, "no memory");
}
