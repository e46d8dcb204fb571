/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/file_sinks.h"

#include "pipeline/count/count.h"
#include "pipeline/count/session_files.h"
#include "pipeline/count/stack_file.h"

void opd_file_sinks_open(struct opd_count *count)
{
	count->sinks = (struct opd_sinks){
		.rows = {
			{ .name = "sample files", .sample = opd_files_take, .close = opd_files_close, .host = count },
			{ .name = "file of stacks", .stack = opd_stack_file_take, .close = opd_stack_file_end, .host = count },
		},
		.nr = 2,
	};
}
