/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In place of tools/common/log.c. Each line is formatted all the same. */
#include "tests/fuzz/fuzz_log.h"

#include <errno.h>
#include <stdarg.h>

unsigned int fuzz_nr_errors;

static void make_line(const char *format, va_list args) OP_PRINTF(1, 0);

static void make_line(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) >= 0)
		free(text);
}

void opr_log_init(const char *program OP_UNUSED)
{
}

bool opr_log_enable(const char *topic OP_UNUSED)
{
	return false;
}

int opr_error(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make_line(format, args);
	va_end(args);
	fuzz_nr_errors++;
	return err;
}

void opr_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make_line(format, args);
	va_end(args);
}

void opr_verbose(enum opr_topic topic OP_UNUSED, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make_line(format, args);
	va_end(args);
}

int opr_no_memory(void)
{
	fuzz_nr_errors++;
	return -ENOMEM;
}
