/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the microseconds since 1970 of each time, or "refused": test_when_forms.py asks it. */
#include <stdio.h>
#include <stdlib.h>

#include "libop/base/sys.h"
#include "tools/common/when.h"

int main(int argc, char **argv)
{
	uint64_t now_us = op_sys_wall_ns() / 1000, us;

	for (int i = 1; i < argc; i++) {
		if (opr_when_parse(argv[i], now_us, &us))
			puts("refused");
		else
			printf("%llu\n", (unsigned long long)us);
	}
	return EXIT_SUCCESS;
}
