/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/functions.h"

#include <errno.h>

#include "libop/base/grow.h"

int opd_jit_functions_add(struct opd_jit_functions *functions, const struct opd_jit_function *function, const char *name,
			  uint32_t *ret_number)
{
	uint32_t number = functions->nr_free ? functions->first_free : (uint32_t)functions->nr_rows;
	char *copy;

	if (!functions->nr_free && !op_grow(&functions->rows, &functions->capacity, functions->nr_rows + 1))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (functions->nr_free) {
		functions->nr_free--;
		functions->first_free = functions->rows[number].bytes;
	} else {
		functions->nr_rows++;
	}
	functions->rows[number] = *function;
	functions->rows[number].name = copy;
	functions->rows[number].nr_pieces = 0;
	functions->nr_bytes += opd_jit_function_cost(strlen(name));
	*ret_number = number;
	return 0;
}

void opd_jit_functions_hold(struct opd_jit_functions *functions, uint32_t number)
{
	functions->rows[number].nr_pieces++;
}

void opd_jit_functions_let_go(struct opd_jit_functions *functions, uint32_t number)
{
	struct opd_jit_function *function = &functions->rows[number];

	if (--function->nr_pieces || function->offset != OPD_JIT_NO_OFFSET)
		return;
	functions->nr_bytes -= opd_jit_function_cost(strlen(function->name));
	functions->nr_forgotten++;
	free(function->name);
	*function = (struct opd_jit_function){ .offset = OPD_JIT_NO_OFFSET, .bytes = functions->first_free };
	functions->first_free = number;
	functions->nr_free++;
}

void opd_jit_functions_free(struct opd_jit_functions *functions)
{
	for (size_t i = 0; i < functions->nr_rows; i++)
		free(functions->rows[i].name);
	free(functions->rows);
	*functions = (struct opd_jit_functions){ 0 };
}
