/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kinds of helper processes (libop/process/helper.h): one row each, in all programs that start
 * helpers. A new kind is a number and a row here.
 */
#ifndef OPD_HELPER_KINDS_H
#define OPD_HELPER_KINDS_H

#include "libop/process/helper.h"
#include "pipeline/files/lookers.h"
#include "pipeline/stacks/tabler.h"

enum opd_helper_kind {
	OPD_HELPER_LOOKER, /* looks at files of processes */
	OPD_HELPER_TABLER, /* runs opd-tables */
};

/*
 * Initializes an array of struct op_helper_kind. A program has its own name for lookers and its own
 * rights to give up: `begin` is as there.
 */
#define OPD_HELPER_KINDS(looker_name, looker_begin, tabler_begin)                     \
	{                                                                             \
		[OPD_HELPER_LOOKER] = { looker_name, looker_begin, opd_look_answer }, \
		[OPD_HELPER_TABLER] = { "opd-tabler", tabler_begin, opd_tabler_answer }, \
	}

#endif
