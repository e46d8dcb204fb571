/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target of the IBS decoder, and of call chains. Input: family and model (1 byte each),
 * sample_type beyond what opd asks for (bit 0 of 1 byte: CALLCHAIN), kind (bit 1 of it), then a
 * payload, or with bit 2 the body of a sample record. The bytes are copied to an allocation of
 * their own at an odd address, so the sanitizers see a read outside and an access that trusts an
 * alignment.
 */
#include "libop/perf/chain.h"
#include "libop/events/ibs_derived.h"
#include "libop/perf/record.h"
#include "tests/ibs/ibs_text.h"

#define HEAD_BYTES     3u
#define BODY_BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* What always holds, whatever the registers have. */
static void check_decoded(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	const struct op_ibs_event *event;
	const struct op_ibs_field *field;
	uint64_t sum = op_ibs_data_src(cpu, ibs);

	check(ibs->facts & 1);
	check(ibs->has & OP_IBS_HAS_IP || !ibs->ip);
	check(ibs->has & OP_IBS_HAS_LINEAR || !ibs->linear);
	check(ibs->has & OP_IBS_HAS_PHYSICAL || !ibs->physical);
	check(ibs->has & OP_IBS_HAS_TARGET || !ibs->target);
	check(ibs->has & OP_IBS_HAS_LATENCY || !ibs->latency);
	check(ibs->has & OP_IBS_HAS_TLB_REFILL || !ibs->tlb_refill);
	check(ibs->source < OP_IBS_NR_SOURCES && op_ibs_source_text(ibs->source));
	check(!(ibs->has & OP_IBS_HAS_SOURCE) == (ibs->source == OP_IBS_SOURCE_NONE));
	for (size_t i = 0; (field = op_ibs_field(ibs->kind, i)); i++)
		sum += op_ibs_field_value(ibs, field);
	for (size_t i = 0; (event = op_ibs_event(i)); i++) {
		uint32_t adds = op_ibs_event_adds(event, ibs);

		check(!adds || event->kind == ibs->kind);
		check(adds <= (event->amount == OP_IBS_SAMPLES ? 1 : UINT16_MAX));
	}
	check(sum != 1 || ibs->nr_words);
}

static void decode(const struct op_ibs_cpu *cpu, enum op_ibs_kind kind, const uint8_t *bytes, size_t nr_bytes)
{
	uint8_t *own = malloc(nr_bytes + 1);
	struct op_ibs_counts counts = { { 0 }, 0, 0, 0, 0 };
	enum op_ibs_reason reason;
	struct op_ibs ibs;

	check(own);
	memcpy(own + 1, bytes, nr_bytes);
	reason = op_ibs_decode(cpu, kind, own + 1, nr_bytes, &ibs);
	check(reason < OP_IBS_NR_REASONS && op_ibs_reason_text(reason));
	op_ibs_count(&counts, reason, &ibs);
	check(counts.by_reason[reason] == 1);
	if (reason == OP_IBS_OK)
		check_decoded(cpu, &ibs);
	free(own);
}

/*
 * Both decoders read the same words: the registers are found behind a chain only when the chain is
 * whole.
 */
static bool follow(const struct perf_event_header *record)
{
	struct op_chain_frame frame;
	struct op_chain chain;
	size_t nr_words;

	if (op_chain_begin(record, OP_CPUMODE_USER, &chain) < 0)
		return false;
	nr_words = chain.nr_words;
	check(nr_words <= record->size / sizeof(uint64_t));
	while (op_chain_next(&chain, &frame)) {
		check(frame.ip < PERF_CONTEXT_MAX);
		check(chain.nr_words < nr_words);
	}
	check(!chain.nr_words);
	return true;
}

/* A record with the length in its header, as op_ring_next gives it. */
static void decode_record(const struct op_ibs_cpu *cpu, enum op_ibs_kind kind, uint64_t sample_type, const uint8_t *bytes,
			  size_t nr_bytes)
{
	size_t body_bytes = op_min_u64(nr_bytes, BODY_BYTES_MAX) / 8 * 8, raw_bytes;
	struct perf_event_header *record = malloc(sizeof(*record) + body_bytes);
	enum op_ibs_reason reason;
	const void *raw;

	check(record);
	*record = (struct perf_event_header){ .type = PERF_RECORD_SAMPLE, .size = (uint16_t)(sizeof(*record) + body_bytes) };
	memcpy(record + 1, bytes, body_bytes);
	reason = op_ibs_raw(record, sample_type, &raw, &raw_bytes);
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		check(follow(record) || reason != OP_IBS_OK);
	if (reason == OP_IBS_OK) {
		check((const uint8_t *)raw >= (const uint8_t *)(record + 1));
		check((const uint8_t *)raw + raw_bytes <= (const uint8_t *)record + record->size);
		decode(cpu, kind, raw, raw_bytes);
	}
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	uint64_t sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_RAW;
	struct op_ibs_cpu cpu;
	enum op_ibs_kind kind;

	if (nr_bytes < HEAD_BYTES)
		return 0;
	op_ibs_cpu_init(bytes[0], bytes[1], &cpu);
	kind = bytes[2] & 2 ? OP_IBS_OP : OP_IBS_FETCH;
	if (bytes[2] & 1)
		sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (bytes[2] & 4)
		decode_record(&cpu, kind, sample_type, bytes + HEAD_BYTES, nr_bytes - HEAD_BYTES);
	else
		decode(&cpu, kind, bytes + HEAD_BYTES, nr_bytes - HEAD_BYTES);
	return 0;
}
