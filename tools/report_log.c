/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report_log.h"

#include <errno.h>
#include <stdarg.h>

#include "tools/escape.h"

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

static void print(const char *prefix, const char *format, va_list args) OP_PRINTF(2, 0);

static void print(const char *prefix, const char *format, va_list args)
{
	char *text = NULL;

	fputs(prefix, stderr);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	opr_write_escaped(stderr, text ? text : format);
	free(text);
	fputc('\n', stderr);
}

int opr_error(int err, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_name);
	va_start(args, format);
	print("", format, args);
	va_end(args);
	return err;
}

void opr_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("warning: ", format, args);
	va_end(args);
}

void opr_verbose(enum opr_topic topic, const char *format, ...)
{
	va_list args;

	if (!enabled[topic])
		return;
	va_start(args, format);
	print("", format, args);
	va_end(args);
}

int opr_no_memory(void)
{
	return opr_error(-ENOMEM, "no memory");
}
