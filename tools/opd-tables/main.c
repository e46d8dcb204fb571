/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/unwind/row_table.h"
#include "tools/opd-tables/filter.h"
#include "tools/opd-tables/table.h"

static const char usage[] =
	"usage: opd-tables [--header] <IMAGE >TABLE\n"
	"\n"
	"Makes the row table of an ELF file (opd-table(5)), by which opd walks call stacks. opd runs it once for each\n"
	"image. Both files are passed as descriptors; the image must be a regular file.\n"
	"\n"
	"--header makes a table without rows: its header has the build-id.\n";

/* libLLVM-14 and node take less than a tenth of both. */
#define MEMORY_BYTES (2ull << 30)
#define CPU_SECONDS  10u

/* Sanitizers reserve terabytes, so with them there is no limit of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVED_BYTES RLIM_INFINITY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESERVED_BYTES RLIM_INFINITY
#endif
#endif
#ifndef RESERVED_BYTES
#define RESERVED_BYTES MEMORY_BYTES
#endif

static int set_limits(void)
{
	const struct rlimit memory = { RESERVED_BYTES, RESERVED_BYTES }, cpu = { CPU_SECONDS, CPU_SECONDS }, none = { 0, 0 };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_AS, &memory) < 0)
		return -errno;
	return 0;
}

/*
 * What this process may still do before it opens an image: read that file, write the table, and use
 * a bounded amount of memory and of CPU time. Anything else ends it.
 */
static int enter_sandbox(void)
{
	int err = set_limits();

	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	return err ? err : opt_filter_apply();
}

int main(int argc, char **argv)
{
	bool only_header = argc == 2 && !strcmp(argv[1], "--header");
	int err;

	if (argc > 1 && !only_header) {
		bool is_help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fputs(usage, is_help ? stdout : stderr);
		return is_help ? 0 : 2;
	}
	err = enter_sandbox();
	if (err) {
		fprintf(stderr, "opd-tables: the sandbox cannot be entered: %s\n", strerror(-err));
		return OP_ROW_TABLE_NO_SANDBOX;
	}
	err = opt_table_make(STDIN_FILENO, STDOUT_FILENO, only_header);
	if (err)
		fprintf(stderr, "opd-tables: %s\n",
			err == -ENOEXEC   ? "not an ELF file of x86-64 or arm64"
			: err == -ENODATA ? "the file has no functions"
					  : strerror(-err));
	return err ? 1 : 0;
}
