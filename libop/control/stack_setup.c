/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/control/stack_setup.h"

#include <inttypes.h>

#include "libop/base/parse.h"

static const char *const words_of[] = { [OP_STACKS_OFF] = "off", [OP_STACKS_ON] = "on", [OP_STACKS_EVENT] = "event" };

bool op_stack_setup_parse(const char *words, struct op_stack_setup *ret_setup)
{
	struct op_stack_setup setup = { .mode = OP_STACKS_ON };
	const char *colon = strchr(words, ':');
	char rate[16];

	for (size_t mode = OP_STACKS_OFF; mode < op_array_size(words_of); mode++) {
		if (!strcmp(words, words_of[mode])) {
			*ret_setup = (struct op_stack_setup){ .mode = (enum op_stack_mode)mode };
			return true;
		}
	}
	setup.has_bytes = colon;
	if (snprintf(rate, sizeof(rate), "%.*s", (int)strcspn(words, ":"), words) >= (int)sizeof(rate) ||
	    op_parse_u64(rate, 1, OP_STACK_RATE_MAX, &setup.rate_hz) ||
	    (colon && op_parse_size_bytes(colon + 1, 0, OP_STACK_BYTES_MAX, &setup.bytes)))
		return false;
	*ret_setup = setup;
	return true;
}

void op_stack_setup_format(const struct op_stack_setup *setup, struct op_text *text)
{
	if (setup->mode == OP_STACKS_ON && setup->rate_hz)
		op_text_printf(text, "%" PRIu64, setup->rate_hz);
	else if (setup->mode != OP_STACKS_CONFIGURED)
		op_text_add(text, words_of[setup->mode]);
	if (setup->has_bytes)
		op_text_printf(text, ":%" PRIu64, setup->bytes);
}
