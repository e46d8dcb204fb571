/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/text.h"
#include "tools/common/formatting.h"

#define FIRST_NS     OP_NS_PER_S
#define NEXT_NS	     (200u * OP_NS_PER_MS)
#define ERASE	     "\r\033[K"
#define CONTINUES(c) (((c) & 0xc0) == 0x80) /* a byte of UTF-8 that begins no character */

static struct {
	pthread_t owner;
	bool has_begun, is_stopped, is_shown;
	uint64_t next_ns;
	char text[256]; /* "": nothing to show */
} progress;

bool opr_progress_is_on(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static bool is_mine(void)
{
	return progress.has_begun && !progress.is_stopped && pthread_equal(progress.owner, pthread_self());
}

/* The first call says whether anything is shown, and when. */
static bool begin(void)
{
	if (!progress.has_begun) {
		progress.owner = pthread_self();
		progress.is_stopped = progress.is_stopped || !opr_progress_is_on();
		progress.next_ns = op_now_ns() + FIRST_NS;
		progress.has_begun = true;
	}
	return is_mine();
}

/* A line that wraps cannot be erased. */
static void show(void)
{
	size_t max = opr_count_columns(STDERR_FILENO) - 1, length = strlen(progress.text);

	if (length > max)
		for (length = max; length && CONTINUES(progress.text[length]); length--)
			;
	fprintf(stderr, ERASE "%.*s", (int)length, progress.text);
	progress.is_shown = true;
	progress.next_ns = op_now_ns() + NEXT_NS;
}

void opr_progress_tick(void)
{
	if (is_mine() && progress.text[0] && op_now_ns() >= progress.next_ns)
		show();
}

void opr_progress(const char *format, ...)
{
	struct op_text shown = { 0 };
	char text[sizeof(progress.text)];
	va_list args;

	if (!begin())
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	op_text_add_escaped(&shown, text);
	snprintf(progress.text, sizeof(progress.text), "%s", op_text_get(&shown));
	op_text_free(&shown);
	opr_progress_tick();
}

void opr_progress_count(const char *what, uint64_t nr_done, uint64_t nr_all)
{
	if (begin() && op_now_ns() >= progress.next_ns)
		opr_progress("%s: %u %%", what, (unsigned int)opr_percent(nr_done, nr_all));
}

void opr_progress_end(void)
{
	if (!is_mine())
		return;
	if (progress.is_shown)
		fputs(ERASE, stderr);
	progress.is_shown = false;
	progress.text[0] = '\0';
}

void opr_progress_stop(void)
{
	opr_progress_end();
	progress.is_stopped = true;
}
