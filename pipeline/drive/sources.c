/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/sources.h"

#include "pipeline/drive/ibs_sample.h"
#include "pipeline/drive/stack_records.h"

/* Every pipeline has these, and is their host. */
static const struct opd_record_source built_in[] = {
	{
		.name = "stacks",
		.is_of = opd_stack_records_is_of,
		.take = opd_stack_records_take_record,
		.turn = opd_stack_records_turn,
		.finish = opd_stack_records_finish,
		.begin_session = opd_stack_records_begin_session,
		.oldest_ns = opd_stack_records_oldest_ns,
		.fd = opd_stack_records_fd,
	},
	{ .name = "ibs", .is_of = opd_ibs_is_of, .take = opd_ibs_take },
};

size_t opd_sources_nr(const struct opd_pipeline *pipeline)
{
	return op_array_size(built_in) + pipeline->sources.nr;
}

static const struct opd_record_source *source_at(struct opd_pipeline *pipeline, size_t index, void **ret_host)
{
	const struct opd_record_source *added;

	*ret_host = pipeline;
	if (index < op_array_size(built_in))
		return &built_in[index];
	added = &pipeline->sources.rows[index - op_array_size(built_in)];
	*ret_host = added->host;
	return added;
}

bool opd_sources_take(struct opd_pipeline *pipeline, const struct opd_record *record)
{
	for (size_t i = opd_sources_nr(pipeline); i--;) {
		void *host;
		const struct opd_record_source *source = source_at(pipeline, i, &host);

		if (source->is_of(&pipeline->capture.events[record->event])) {
			source->take(host, record);
			return true;
		}
	}
	return false;
}

int opd_source_fd(struct opd_pipeline *pipeline, size_t index)
{
	void *host;
	const struct opd_record_source *source = source_at(pipeline, index, &host);

	return source->fd ? source->fd(host) : -1;
}

void opd_source_turn(struct opd_pipeline *pipeline, size_t index)
{
	void *host;
	const struct opd_record_source *source = source_at(pipeline, index, &host);

	if (source->turn)
		source->turn(host);
}

void opd_sources_turn(struct opd_pipeline *pipeline)
{
	for (size_t i = 0; i < opd_sources_nr(pipeline); i++)
		opd_source_turn(pipeline, i);
}

void opd_sources_finish(struct opd_pipeline *pipeline, uint64_t wait_ns)
{
	for (size_t i = 0; i < opd_sources_nr(pipeline); i++) {
		void *host;
		const struct opd_record_source *source = source_at(pipeline, i, &host);

		if (source->finish)
			source->finish(host, wait_ns);
	}
}

void opd_sources_begin_session(struct opd_pipeline *pipeline, bool is_reset)
{
	for (size_t i = 0; i < opd_sources_nr(pipeline); i++) {
		void *host;
		const struct opd_record_source *source = source_at(pipeline, i, &host);

		if (source->begin_session)
			source->begin_session(host, is_reset);
	}
}

uint64_t opd_sources_oldest_ns(struct opd_pipeline *pipeline)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (size_t i = 0; i < opd_sources_nr(pipeline); i++) {
		void *host;
		const struct opd_record_source *source = source_at(pipeline, i, &host);

		if (source->oldest_ns)
			oldest_ns = op_min_u64(oldest_ns, source->oldest_ns(host));
	}
	return oldest_ns;
}
