/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pipeline of one CPU, whose ring and side band are in memory. */
#ifndef PIPELINE_CPU_H
#define PIPELINE_CPU_H

#include <string.h>

#include "pipeline/capture/kernel_source.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/pipeline.h"

/*
 * Opens a pipeline whose CPU has empty rings and one event of this kind, with the counts `own`. The
 * caller sets the number of the CPU. 0 or not.
 */
static inline int pipeline_cpu_begin(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct opd_event *own,
				     const struct op_event *kind, char ret_dir[BOX_PATH_BYTES])
{
	memset(pipeline, 0, sizeof(*pipeline));
	memset(cpu, 0, sizeof(*cpu));
	cpu->events = own;
	cpu->online = true;
	cpu->source = &opd_source_kernel;
	memory_ring_init(&cpu->pair.rings[0]);
	memory_ring_init(&cpu->sideband);
	pipeline->capture.events = kind;
	pipeline->capture.nr_events = pipeline->capture.nr_opened = 1;
	pipeline->capture.cpus = cpu;
	pipeline->capture.nr_cpus = 1;
	return pipeline_begin(pipeline, ret_dir);
}

static inline void pipeline_kernel_text(struct opd_pipeline *pipeline, uint64_t start)
{
	pipeline->resolver.kernel.text_start = start;
	pipeline->resolver.kernel.text_end = start + 0x1000000;
}

static inline int pipeline_cpu_end(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const char *dir)
{
	memory_ring_free(&cpu->pair.rings[0]);
	memory_ring_free(&cpu->sideband);
	return pipeline_end(pipeline, dir);
}

#endif
