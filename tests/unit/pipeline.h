/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pipeline behind the rings, with a session in a temporary directory. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/count/file_sinks.h"
#include "pipeline/drive/drain.h"
#include "tests/unit/kernel_list.h"
#include "tests/unit/test_box.h"

/* Opens everything but the capture, whose events are set already. 0 or not. */
static inline int pipeline_begin(struct opd_pipeline *pipeline, char ret_dir[BOX_PATH_BYTES])
{
	struct opd_count *count = &pipeline->count;

	if (box_make(ret_dir) || opd_resolver_init(&pipeline->resolver, op_dcookie_table_new(), 1000, NULL) < 0)
		return -1;
	count->session_fd = open(ret_dir, O_RDONLY | O_DIRECTORY);
	count->table = pipeline->resolver.table;
	count->events = pipeline->capture.events;
	count->nr_events = pipeline->capture.nr_events;
	count->separate_lib = count->separate_kernel = true;
	count->no_process_cookie = pipeline->resolver.pseudo[OPD_PSEUDO_NO_PROCESS];
	count->max_open = 100;
	opd_file_sinks_open(count);
	return mkdirat(count->session_fd, "tmp", 0755);
}

static inline int pipeline_end(struct opd_pipeline *pipeline, const char *dir)
{
	opd_count_close_files(&pipeline->count);
	close(pipeline->count.session_fd);
	op_dcookie_table_free(pipeline->resolver.table);
	opd_resolver_free(&pipeline->resolver);
	return box_remove(dir);
}

#endif
