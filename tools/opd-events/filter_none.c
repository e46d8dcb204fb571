/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-events/filter.h"

#include <errno.h>

int ope_filter_apply(int socket_fd OP_UNUSED)
{
	return -ENOSYS;
}
