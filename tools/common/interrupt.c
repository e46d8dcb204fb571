/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/interrupt.h"

#include "tools/common/log.h"

static struct op_stop stop = { .fd = -1 };

static void on_signal(int number OP_UNUSED)
{
	op_stop_set(&stop);
}

int opr_interrupt_catch(const struct op_stop **ret_stop)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	int err = op_stop_open(&stop);

	if (err)
		return opr_error(err, "cannot wait for signals: %s", strerror(-err));
	for (size_t i = 0; i < op_array_size(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	*ret_stop = &stop;
	return 0;
}
