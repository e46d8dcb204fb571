/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/log.h"

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define MAX_FIELDS 8

/* systemd names the file that stderr is, where that is the journal (systemd.exec(5)); it may have been redirected since. */
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

static void add_field(struct op_text *text, const struct opd_log_field *field)
{
	if (field->text)
		op_text_printf(text, "%s=%s", field->name, field->text);
	else
		op_text_printf(text, "%s=%" PRIu64, field->name, field->number);
}

/* False: nothing was sent. The number of a priority is between its angle brackets. */
static bool send_to_journal(const char *priority, const struct opd_log_field *fields, size_t nr_fields, const char *line)
{
	struct op_text texts[MAX_FIELDS + 2] = { 0 };
	struct iovec iov[MAX_FIELDS + 2];
	bool failed = false;

	assert(nr_fields <= MAX_FIELDS);
	op_text_printf(&texts[0], "MESSAGE=%s", line);
	op_text_printf(&texts[1], "PRIORITY=%c", priority[1]);
	for (size_t i = 0; i < nr_fields; i++)
		add_field(&texts[i + 2], &fields[i]);
	for (size_t i = 0; i < nr_fields + 2; i++) {
		failed |= texts[i].failed;
		iov[i] = (struct iovec){ texts[i].data, texts[i].length };
	}
	if (!failed)
		failed = sd_journal_sendv(iov, (int)nr_fields + 2) < 0;
	for (size_t i = 0; i < nr_fields + 2; i++)
		op_text_free(&texts[i]);
	return !failed;
}

OP_PRINTF(4, 0)
static void log_line(const char *priority, const struct opd_log_field *fields, size_t nr_fields, const char *format, va_list args)
{
	bool to_journal = goes_to_journal();
	char line[1024];

	vsnprintf(line, sizeof(line), format, args);
	if (!to_journal || !nr_fields || !send_to_journal(priority, fields, nr_fields, line))
		fprintf(stderr, "%s%s%s\n", to_journal ? priority : program_invocation_short_name, to_journal ? "" : ": ", line);
}

void opd_log_with(const char *priority, const struct opd_log_field *fields, size_t nr_fields, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(priority, fields, nr_fields, format, args);
	va_end(args);
}

void opd_log(const char *priority, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(priority, NULL, 0, format, args);
	va_end(args);
}

bool opd_rate_allows(struct opd_rate *rate, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_suppressed)
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

void opd_log_failure(struct opd_rate *rate, uint64_t now_ns, const char *what, int err)
{
	uint64_t suppressed;

	if (opd_rate_allows(rate, now_ns, OPD_LOG_INTERVAL_NS, &suppressed))
		opd_log(SD_WARNING, "%s: %s (%llu more since the last line)", what, strerror(-err), (unsigned long long)suppressed);
}
