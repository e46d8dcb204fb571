/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ruby: where its structures have what ruby.bpf.h reads. Any thread. */
#ifndef OPD_RUBY_H
#define OPD_RUBY_H

#include "libop/base/compiler.h"
#include "libop/unwind/row_table.h"
#include "pipeline/runtimes/shared.h"

/*
 * How a Ruby is read whose image has these words. False: the version or the build is not known, and
 * *ret_why says so in a few words.
 */
bool opd_ruby_layout(const struct op_row_table *table, struct opd_ruby_layout *ret_layout, const char **ret_why)
	OP_NONNULL OP_MUST_CHECK;

#endif
