/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 1024 /* what is longer is cut */

static op_log_sender *sender;

void op_log_set_sender(op_log_sender *send)
{
	sender = send;
}

/*
 * systemd names the file that stderr is, where that is the journal (systemd.exec(5)); it may have
 * been redirected since.
 */
static bool goes_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

/* `fields` may be NULL. Names in a line are escaped here, once. */
static void write_line(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *format, va_list args)
	OP_PRINTF(4, 0);

static void write_line(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *format, va_list args)
{
	bool to_journal = goes_to_journal();
	struct op_text escaped = { 0 };
	char line[LINE_BYTES];
	const char *shown;

	vsnprintf(line, sizeof(line), format, args);
	op_text_add_escaped(&escaped, line);
	shown = escaped.failed ? format : op_text_get(&escaped);
	if (!sender || !nr_fields || !to_journal || !sender(priority, fields, nr_fields, shown))
		fprintf(stderr, "%s%s%s\n", to_journal ? priority : program_invocation_short_name, to_journal ? "" : ": ", shown);
	op_text_free(&escaped);
}

void op_log(const char *priority, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(priority, NULL, 0, format, args);
	va_end(args);
}

void op_log_with(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(priority, fields, nr_fields, format, args);
	va_end(args);
}

bool op_rate_allows(struct op_rate *rate, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_suppressed)
{
	if (now_ns < rate->next_ns) {
		rate->suppressed++;
		return false;
	}
	*ret_suppressed = rate->suppressed;
	rate->suppressed = 0;
	rate->next_ns = now_ns + interval_ns;
	return true;
}

void op_log_failure(struct op_rate *rate, uint64_t now_ns, const char *what, int err)
{
	uint64_t suppressed;

	if (op_rate_allows(rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "%s: %s (%ju more since the last line)", what, strerror(-err), (uintmax_t)suppressed);
}
