/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/opd-tables/sandbox.h"
#include "tools/opd-tables/table.h"

static const char usage[] =
	"usage: opd-tables [--header] <IMAGE >TABLE\n"
	"\n"
	"Makes the row table of an ELF file (opd-table(5)), by which opd walks call stacks. opd runs it once for each\n"
	"image. Both files are passed as descriptors; the image must be a regular file.\n"
	"\n"
	"--header makes a table without rows: its header has the build-id.\n";

int main(int argc, char **argv)
{
	bool only_header = argc == 2 && !strcmp(argv[1], "--header");
	int err;

	if (argc > 1 && !only_header) {
		bool is_help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fputs(usage, is_help ? stdout : stderr);
		return is_help ? 0 : 2;
	}
	err = opt_sandbox_enter();
	if (!err)
		err = opt_table_make(STDIN_FILENO, STDOUT_FILENO, only_header);
	if (err)
		fprintf(stderr, "opd-tables: %s\n",
			err == -ENOEXEC   ? "not an ELF file of x86-64 or arm64"
			: err == -ENODATA ? "the file has no functions"
					  : strerror(-err));
	return err ? 1 : 0;
}
