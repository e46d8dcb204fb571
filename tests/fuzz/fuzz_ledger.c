/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the ledger of a session. Input: the file. A ledger that was read is written and
 * read again: both texts are the same, and each event has one row. For an invalid ledger the error
 * names a line of the input.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>

#include "libop/session/ledger_file.h"

static void check_rows(struct op_session_ledger *ledger)
{
	size_t nr_events = ledger->nr_events;

	fuzz_check(nr_events <= OP_SESSION_LEDGER_EVENTS_MAX && ledger->ended < OP_NR_SESSION_ENDS &&
		   ledger->begin_ns <= ledger->end_ns);
	for (size_t i = 0; i < nr_events; i++) {
		struct op_ledger_event event = ledger->events[i];

		fuzz_check(op_session_ledger_row(ledger, &event) == &ledger->events[i]);
	}
	fuzz_check(ledger->nr_events == nr_events);
}

static void write_and_read(const struct op_session_ledger *ledger)
{
	struct op_text text = { 0 }, again = { 0 };
	struct op_session_ledger second;

	op_session_ledger_format(ledger, &text);
	fuzz_check(!text.failed && fuzz_dir_write(OP_SESSION_LEDGER, text.data, text.length));
	fuzz_check(!op_session_ledger_read(fuzz_dir_open(), &second, NULL));
	op_session_ledger_format(&second, &again);
	fuzz_check(!strcmp(op_text_get(&text), op_text_get(&again)));
	op_session_ledger_free(&second);
	op_text_free(&text);
	op_text_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_session_ledger ledger;
	unsigned int line = 0, nr_lines = 1;
	int err;

	for (size_t i = 0; i < nr_bytes; i++)
		nr_lines += bytes[i] == '\n';
	fuzz_check(fuzz_dir_write(OP_SESSION_LEDGER, bytes, nr_bytes));
	err = op_session_ledger_read(fuzz_dir_open(), &ledger, &line);
	fuzz_check(!err || (err == -EBADMSG && line <= nr_lines));
	if (err)
		return 0;
	check_rows(&ledger);
	write_and_read(&ledger);
	op_session_ledger_free(&ledger);
	return 0;
}
