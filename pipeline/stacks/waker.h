/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who ended a wait: a thread woke the one that waited, or an interrupt did. */
#ifndef OPD_STACK_WAKER_H
#define OPD_STACK_WAKER_H

#include "libop/base/compiler.h"

struct opd_waker {
	bool is_known, is_interrupt; /* without both there is no waker */
	uint32_t pid, tid;
	char name[16]; /* of the thread */
};

#endif
