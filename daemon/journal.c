/* SPDX-License-Identifier: GPL-3.0-or-later */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "daemon/journal.h"

#include <inttypes.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "libop/base/log.h"

static void add_field(struct op_text *text, const struct op_log_field *field)
{
	op_text_printf(text, "%s=", field->name);
	if (field->text)
		op_text_add_escaped(text, field->text);
	else
		op_text_printf(text, "%" PRIu64, field->number);
}

/* False: nothing was sent. A priority is a number in angle brackets. */
static bool send_to_journal(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *line)
{
	struct op_text texts[OP_LOG_MAX_FIELDS + 2] = { 0 };
	struct iovec iov[OP_LOG_MAX_FIELDS + 2];
	bool failed = false;

	assert(nr_fields <= OP_LOG_MAX_FIELDS);
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

void opd_journal_use(void)
{
	op_log_set_sender(send_to_journal);
}
