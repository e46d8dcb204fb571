/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/log.h"

#include <stdarg.h>

void opd_log(const char *priority, const char *format, ...)
{
	/* systemd sets it for services whose stderr is the journal (systemd.exec(5)). */
	bool to_journal = getenv("JOURNAL_STREAM");
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "%s%s\n", to_journal ? priority : "opd: ", line);
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
