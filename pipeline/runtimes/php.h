/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PHP: where its structures have what php.bpf.h reads. Any thread. */
#ifndef OPD_PHP_H
#define OPD_PHP_H

#include "libop/base/compiler.h"
#include "libop/unwind/row_table.h"
#include "pipeline/runtimes/shared.h"

/*
 * How a PHP is read whose image has these words. False: the version or the build is not known, and
 * *ret_why says so in a few words.
 */
bool opd_php_layout(const struct op_row_table *table, struct opd_php_layout *ret_layout, const char **ret_why)
	OP_NONNULL OP_MUST_CHECK;

#endif
