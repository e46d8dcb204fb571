/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/kallsyms.h"

#include <errno.h>

bool op_kallsyms_parse(char *line, struct op_kallsyms_line *ret_line)
{
	struct op_kallsyms_line parsed = { 0 };
	char *end, *module;

	errno = 0;
	parsed.address = strtoull(line, &end, 16);
	if (errno || end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	parsed.type = end[1];
	parsed.name = end + 3;
	end += 3 + strcspn(parsed.name, "\t\n ");
	if (end == parsed.name)
		return false;
	if (*end == '\t') {
		module = end + 1;
		*end = '\0';
		end = module + strcspn(module, "\n");
		if (end - module < 3 || *module != '[' || end[-1] != ']')
			return false;
		end--;
		parsed.module = module + 1;
	}
	*end = '\0';
	*ret_line = parsed;
	return true;
}
