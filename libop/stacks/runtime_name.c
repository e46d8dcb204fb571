/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/stacks/runtime_name.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of FILE and of FUNCTION: with the rest less than OP_RUNTIME_NAME_MAX. */
#define PART_MAX 480u

static const char *const words[OP_NR_RUNTIMES] = {
	[OP_RUNTIME_none] = "",
#define X(name) [OP_RUNTIME_##name] = #name,
	OP_RUNTIMES(X)
#undef X
};

const char *op_runtime_word(enum op_runtime runtime)
{
	return runtime < OP_NR_RUNTIMES ? words[runtime] : "";
}

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void add_part(struct op_text *to, const char *part, bool keep_end)
{
	struct op_text clean = { 0 };
	const char *from;
	size_t nr_bytes;

	op_text_add_clean(&clean, part);
	from = op_text_get(&clean);
	nr_bytes = clean.length;
	if (nr_bytes > PART_MAX && keep_end) {
		from += nr_bytes - PART_MAX;
		while (is_inside_character(*from))
			from++;
		nr_bytes = strlen(from);
	} else if (nr_bytes > PART_MAX) {
		nr_bytes = PART_MAX;
		while (is_inside_character(from[nr_bytes]))
			nr_bytes--;
	}
	to->failed |= clean.failed;
	op_text_add_bytes(to, from, nr_bytes);
	free(op_text_steal(&clean));
}

void op_runtime_name_write(struct op_text *to, enum op_runtime runtime, const char *file, const char *function, uint32_t line)
{
	op_text_add(to, op_runtime_word(runtime));
	op_text_add_char(to, OP_RUNTIME_SEPARATOR);
	add_part(to, file, true);
	op_text_add_char(to, OP_RUNTIME_SEPARATOR);
	add_part(to, function, false);
	op_text_printf(to, "%c%u", OP_RUNTIME_SEPARATOR, line);
}

static char *cut_part(char **rest)
{
	char *part = *rest, *end = strchr(part, OP_RUNTIME_SEPARATOR);

	if (!end)
		return NULL;
	*end = '\0';
	*rest = end + 1;
	return part;
}

bool op_runtime_name_parse(char *text, struct op_runtime_name *ret_name)
{
	char *word = cut_part(&text), *file = word ? cut_part(&text) : NULL, *function = file ? cut_part(&text) : NULL;
	enum op_runtime runtime = (enum op_runtime)1;
	char *end;

	if (!function)
		return false;
	while (runtime < OP_NR_RUNTIMES && strcmp(words[runtime], word))
		runtime++;
	*ret_name = (struct op_runtime_name){
		.runtime = runtime, .file = file, .function = function, .line = (uint32_t)strtoul(text, &end, 10)
	};
	return runtime < OP_NR_RUNTIMES && !*end;
}
