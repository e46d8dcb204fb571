/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/pipeline.h"

#include <errno.h>

#include "libop/events/event_list.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/count/file_sinks.h"
#include "pipeline/count/memory_limit.h"
#include "pipeline/files/build_ids.h"
#include "pipeline/jit/space.h"
#include "pipeline/runtimes/runtimes.h"
#include "pipeline/stacks/state.h"

/* The images of the session keep their cookies and names. */
static int open_cookies(struct opd_pipeline *pipeline, int session_fd)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	int err = table ? opd_cookie_file_open(&pipeline->cookie_file, session_fd, table) : -ENOMEM;

	if (err) {
		op_dcookie_table_free(table);
		pipeline->cookie_file.table = NULL;
	}
	return err;
}

static bool has_stacks(const struct opd_pipeline_config *config)
{
	for (size_t i = 0; i < config->nr_events; i++)
		if (op_event_has_stack(&config->events[i]))
			return true;
	return false;
}

static int open_resolver(struct opd_pipeline *pipeline, const struct opd_pipeline_config *config)
{
	struct opd_resolver *resolver = &pipeline->resolver;
	struct op_dcookie_table *table = pipeline->cookie_file.table;
	int err = config->is_foreign  ? opd_resolver_init_foreign(resolver, table, config->max_images, config->vmlinux)
		  : config->user_only ? opd_resolver_init_user_only(resolver, table, config->max_images)
				      : opd_resolver_init(resolver, table, config->max_images, config->vmlinux);

	resolver->processes.by_name = config->separate_name;
	resolver->processes.by_user = config->separate_user;
	resolver->processes.keeps_names |= config->separate_name || config->separate_user || has_stacks(config);
	resolver->processes.mount_views.lookers = config->lookers;
	if (resolver->jit)
		resolver->jit->lookers = config->lookers;
	if (config->build_ids)
		resolver->processes.build_ids = &pipeline->build_ids;
	if (!err && (config->separate_cgroup || op_events_have_cgroup(config->events, config->nr_events)))
		err = opd_cgroups_init(&resolver->cgroups, "/proc/self/mountinfo");
	return err;
}

static int open_count(struct opd_pipeline *pipeline, const struct opd_pipeline_config *config)
{
	struct opd_count *count = &pipeline->count;
	int err;

	*count = (struct opd_count){
		.session_fd = config->session_fd,
		.table = pipeline->cookie_file.table,
		/* The session of an import is read after its end, so its table is written once. */
		.cookie_file = config->is_foreign ? NULL : &pipeline->cookie_file,
		.events = config->events,
		.nr_events = config->nr_events,
		.separate_lib = config->separate_lib,
		.separate_kernel = config->separate_kernel,
		.separate_thread = config->separate_thread,
		.separate_cpu = config->separate_cpu,
		.cgroups = config->separate_cgroup ? &pipeline->resolver.cgroups : NULL,
		.filter = config->filter,
		.sync = config->sync,
		.stacks = { .max_bytes = config->max_stack_bytes },
		.cpu_speed_mhz = config->is_foreign ? 0 : opd_cpu_speed_mhz(),
		.no_process_cookie = pipeline->resolver.pseudo[OPD_PSEUDO_NO_PROCESS],
		.max_open = config->max_open,
		.max_closed = config->max_closed,
		.limit = { .max = config->max_files,
			   .nr_last_max = config->nr_events,
			   .bytes_of = config->bytes_of,
			   .space = { .max_bytes = config->max_bytes } },
	};
	opd_file_sinks_open(count);
	err = opd_file_limit_recount(&count->limit, config->session_fd);
	return err ? err : opd_memory_recount(count);
}

int opd_pipeline_open(struct opd_pipeline *pipeline, const struct opd_pipeline_config *config)
{
	int err = open_cookies(pipeline, config->session_fd);

	if (err)
		goto fail;
	err = open_resolver(pipeline, config);
	if (err)
		goto fail;
	err = open_count(pipeline, config);
	if (err)
		goto fail;
	err = has_stacks(config) ? opd_stacks_new(config->tables, &pipeline->stacks) : 0;
	if (err)
		goto fail;
	/* The memory of processes of this host is read by lookers. */
	if (pipeline->stacks && config->lookers && config->runtimes && !config->is_foreign)
		err = opd_runtimes_new(config->lookers, config->runtimes, &pipeline->stacks->runtimes);
	if (err)
		goto fail;
	return 0;

fail:
	opd_pipeline_close(pipeline);
	return err;
}

void opd_pipeline_close(struct opd_pipeline *pipeline)
{
	opd_interpreter_notes_forget(&pipeline->interpreter_notes);
	opd_stacks_free(pipeline->stacks);
	pipeline->stacks = NULL;
	opd_count_close_files(&pipeline->count);
	opd_resolver_free(&pipeline->resolver);
	op_dcookie_table_free(pipeline->cookie_file.table);
	opd_cookie_file_close(&pipeline->cookie_file);
}
