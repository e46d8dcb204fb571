/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lines with fields: they go to the journal when stderr is the journal and the program asked for
 * it; otherwise they are plain lines.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "libop/base/log.h"

#define SHOWN "a\\x9b31m\\xc2\\x9b\\x0a<0>b\\xe2\\x80\\xae\\xe2\\x80\\xa8\\xc0\\x9b"

static const char *name = "gone";
static char sent[256]; /* the fields, each with a semicolon */
static int send_result;

int __wrap_sd_journal_sendv(const struct iovec *iov, int nr_fields);
int __wrap_sd_journal_sendv(const struct iovec *iov, int nr_fields)
{
	size_t length = 0;

	for (int i = 0; i < nr_fields; i++)
		length += (size_t)snprintf(sent + length, sizeof(sent) - length, "%.*s;", (int)iov[i].iov_len,
					   (const char *)iov[i].iov_base);
	return send_result;
}

/* Logs the line while stderr is a file that is the journal, or is not. */
static void log_to(bool is_journal, char line[128])
{
	const struct op_log_field fields[] = { { .name = "OPD_CPU", .number = 3 }, { .name = "OPD_LOSS", .text = name } };
	int saved = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char stream[64];
	struct stat st;

	assert_true(saved >= 0 && file && !fstat(fileno(file), &st) && dup2(fileno(file), STDERR_FILENO) >= 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + !is_journal);
	setenv("JOURNAL_STREAM", stream, 1);
	*sent = '\0';
	op_log_with(OP_LOG_NOTICE, fields, op_array_size(fields), "CPU %u is %s", 3, name);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	memset(line, 0, 128);
	assert_true(pread(fileno(file), line, 127, 0) >= 0);
	close(saved);
	fclose(file);
}

static void test_fields(void **state OP_UNUSED)
{
	char line[128];

	log_to(true, line);
	assert_string_equal(line, OP_LOG_NOTICE "CPU 3 is gone\n");
	assert_string_equal(sent, "");
	opd_journal_use();
	log_to(true, line);
	assert_string_equal(line, "");
	assert_string_equal(sent, "MESSAGE=CPU 3 is gone;PRIORITY=5;OPD_CPU=3;OPD_LOSS=gone;");
	log_to(false, line);
	assert_string_equal(strchr(line, ':'), ": CPU 3 is gone\n");
	assert_string_equal(sent, "");
	send_result = -ENOENT;
	log_to(true, line);
	assert_string_equal(line, OP_LOG_NOTICE "CPU 3 is gone\n");
}

/* A program in a line has the name that its user gave it. */
static void test_names_are_escaped(void **state OP_UNUSED)
{
	char line[128];

	name = "a\x9b" "31m\xc2\x9b\n<0>b\xe2\x80\xae\xe2\x80\xa8\xc0\x9b";
	send_result = 0;
	log_to(true, line);
	assert_string_equal(sent, "MESSAGE=CPU 3 is " SHOWN ";PRIORITY=5;OPD_CPU=3;OPD_LOSS=" SHOWN ";");
	log_to(false, line);
	assert_string_equal(strchr(line, ':'), ": CPU 3 is " SHOWN "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fields), cmocka_unit_test(test_names_are_escaped) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
