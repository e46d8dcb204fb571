/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs.h"

#include <endian.h>

#include "libop/events/ibs_meaning.h"

#define CAPS_BYTES       4u
#define FETCH_WORDS      3u /* in every generation */
#define OP_WORDS         7u
#define EXTD_CTL_LIMIT   0x10000u
#define PERIOD_SHIFT     4
#define PERIOD_HI_SHIFT  16
#define WORDS_FIT(words) ((words) <= UINT8_MAX)

static_assert(CAPS_BYTES + 8 * FETCH_WORDS == OP_IBS_FETCH_BYTES_MIN, "a fetch");
static_assert(CAPS_BYTES + 8 * OP_WORDS == OP_IBS_OP_BYTES_MIN, "an op");
static_assert(CAPS_BYTES + 8 * (OP_WORDS + 2) == OP_IBS_BYTES_MAX, "an op with all words");

/* The registers stand behind the capability word, at any alignment. */
struct payload {
	const uint8_t *registers;
	uint32_t caps;
	unsigned int nr_words;
};

static uint64_t word(const struct payload *payload, unsigned int index)
{
	uint64_t value;

	memcpy(&value, payload->registers + 8 * (size_t)index, sizeof(value));
	return le64toh(value);
}

static uint64_t bits(uint64_t value, unsigned int first, unsigned int nr)
{
	return value >> first & UINT64_MAX >> (64 - nr);
}

#define TAKE(type, member, name, first, nr) into->member = (type)bits(value, first, nr);
#define FILL(function, kind, FIELDS)                                                                                               \
	static void function(struct kind *into, uint64_t value)                                                                    \
	{                                                                                                                          \
		FIELDS(TAKE)                                                                                                       \
	}
FILL(fill_fetch_ctl, op_ibs_fetch, OP_IBS_FIELDS_FETCH_CTL)
FILL(fill_fetch_extd_ctl, op_ibs_fetch, OP_IBS_FIELDS_FETCH_EXTD_CTL)
FILL(fill_op_ctl, op_ibs_op, OP_IBS_FIELDS_OP_CTL)
FILL(fill_op_data, op_ibs_op, OP_IBS_FIELDS_OP_DATA)
FILL(fill_op_data2, op_ibs_op, OP_IBS_FIELDS_OP_DATA2)
FILL(fill_op_data3, op_ibs_op, OP_IBS_FIELDS_OP_DATA3)
FILL(fill_op_data4, op_ibs_op, OP_IBS_FIELDS_OP_DATA4)
#undef FILL
#undef TAKE

/* The number of registers that a current kernel writes with these capabilities. */
static unsigned int announced_words(enum op_ibs_kind kind, uint32_t caps)
{
	if (kind == OP_IBS_FETCH)
		return FETCH_WORDS + !!(caps & OP_IBS_CAP_FETCH_EXTD_CTL);
	return OP_WORDS + !!(caps & OP_IBS_CAP_BR_TARGET) + !!(caps & OP_IBS_CAP_OP_DATA4);
}

/* Before Linux 5.10 a fetch had the optional registers of an op. */
static bool is_old_fetch(const struct payload *payload)
{
	uint32_t caps = payload->caps;
	unsigned int nr_old = FETCH_WORDS + !!(caps & OP_IBS_CAP_BR_TARGET) + !!(caps & OP_IBS_CAP_OP_DATA4);

	if (payload->nr_words == FETCH_WORDS || payload->nr_words != nr_old)
		return false;
	return payload->nr_words != announced_words(OP_IBS_FETCH, caps) || word(payload, FETCH_WORDS) >= EXTD_CTL_LIMIT;
}

static enum op_ibs_reason check_length(enum op_ibs_kind kind, const struct payload *payload, unsigned int *ret_notes)
{
	unsigned int announced = announced_words(kind, payload->caps), notes = 0;

	if (kind == OP_IBS_FETCH && is_old_fetch(payload))
		notes |= OP_IBS_NOTE_OLD_FETCH;
	else if (payload->nr_words < announced)
		notes |= OP_IBS_NOTE_MISSING;
	if (payload->caps & ~(uint32_t)OP_IBS_CAPS_KNOWN)
		notes |= OP_IBS_NOTE_UNKNOWN_CAPS;
	if (payload->nr_words > announced && !notes)
		return OP_IBS_EXTRA;
	*ret_notes = notes;
	return OP_IBS_OK;
}

static enum op_ibs_reason find_registers(enum op_ibs_kind kind, const uint8_t *raw, size_t raw_bytes, struct payload *payload)
{
	size_t min_words = kind == OP_IBS_FETCH ? FETCH_WORDS : OP_WORDS;
	uint32_t caps;

	if (raw_bytes < CAPS_BYTES + 8 * min_words)
		return OP_IBS_SHORT;
	if ((raw_bytes - CAPS_BYTES) % 8 || !WORDS_FIT((raw_bytes - CAPS_BYTES) / 8))
		return OP_IBS_UNEVEN;
	memcpy(&caps, raw, sizeof(caps));
	*payload = (struct payload){ raw + CAPS_BYTES, le32toh(caps), (unsigned int)((raw_bytes - CAPS_BYTES) / 8) };
	return payload->caps & OP_IBS_CAP_AVAIL ? OP_IBS_OK : OP_IBS_NO_CAPS;
}

static enum op_ibs_reason read_fetch(const struct op_ibs_cpu *cpu, const struct payload *payload, struct op_ibs *ibs)
{
	struct op_ibs_fetch *fetch = &ibs->fetch;

	fill_fetch_ctl(fetch, word(payload, 0));
	fetch->lin_ad = word(payload, 1);
	fetch->phys_ad = word(payload, 2);
	if (payload->caps & OP_IBS_CAP_FETCH_EXTD_CTL && payload->nr_words > FETCH_WORDS && !(ibs->notes & OP_IBS_NOTE_OLD_FETCH))
		fill_fetch_extd_ctl(fetch, word(payload, FETCH_WORDS));
	if (!fetch->val)
		return OP_IBS_NOT_VALID;
	if (cpu->traits & OP_IBS_ERRATUM_1197 && !fetch->lin_ad)
		return OP_IBS_NO_ADDRESS;
	ibs->period = (uint32_t)fetch->max_cnt << PERIOD_SHIFT;
	return OP_IBS_OK;
}

/*
 * The optional registers have no fixed position: the second one moves up when the first is missing.
 */
static void read_op_optional(const struct payload *payload, struct op_ibs_op *op)
{
	unsigned int next = OP_WORDS;

	if (payload->caps & OP_IBS_CAP_BR_TARGET && next < payload->nr_words)
		op->br_target = word(payload, next++);
	if (payload->caps & OP_IBS_CAP_OP_DATA4 && next < payload->nr_words)
		fill_op_data4(op, word(payload, next));
}

static enum op_ibs_reason read_op(const struct payload *payload, struct op_ibs *ibs)
{
	struct op_ibs_op *op = &ibs->op;
	uint32_t max_cnt;

	fill_op_ctl(op, word(payload, 0));
	op->op_rip = word(payload, 1);
	fill_op_data(op, word(payload, 2));
	fill_op_data2(op, word(payload, 3));
	fill_op_data3(op, word(payload, 4));
	op->dc_lin_ad = word(payload, 5);
	op->dc_phys_ad = word(payload, 6);
	read_op_optional(payload, op);
	if (!op->val)
		return OP_IBS_NOT_VALID;
	max_cnt = op->max_cnt_lo;
	if (payload->caps & OP_IBS_CAP_OP_CNT_EXT)
		max_cnt |= (uint32_t)op->max_cnt_hi << PERIOD_HI_SHIFT;
	ibs->period = max_cnt << PERIOD_SHIFT;
	return OP_IBS_OK;
}

enum op_ibs_reason op_ibs_decode(const struct op_ibs_cpu *cpu, enum op_ibs_kind kind, const void *raw, size_t raw_bytes,
				 struct op_ibs *ret_ibs)
{
	struct payload payload;
	enum op_ibs_reason reason = find_registers(kind, raw, raw_bytes, &payload);
	unsigned int notes;
	struct op_ibs_cpu guessed;
	struct op_ibs ibs;

	if (reason != OP_IBS_OK)
		return reason;
	if (op_unlikely(cpu->traits & OP_IBS_GUESSED)) {
		op_ibs_cpu_of_caps(payload.caps, &guessed);
		cpu = &guessed;
	}
	reason = check_length(kind, &payload, &notes);
	if (reason != OP_IBS_OK)
		return reason;
	ibs = (struct op_ibs){ .kind = kind, .caps = payload.caps, .nr_words = (uint8_t)payload.nr_words, .notes = (uint8_t)notes };
	reason = kind == OP_IBS_FETCH ? read_fetch(cpu, &payload, &ibs) : read_op(&payload, &ibs);
	if (reason != OP_IBS_OK)
		return reason;
	if (kind == OP_IBS_FETCH)
		op_ibs_fetch_meaning(cpu, &ibs);
	else
		op_ibs_op_meaning(cpu, &ibs);
	*ret_ibs = ibs;
	return OP_IBS_OK;
}

/* ---- the payload in the record ---- */

/* The fields of one word each that stand before READ, CALLCHAIN and RAW in a sample. */
#define WORDS_BEFORE                                                                                                               \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |        \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

enum op_ibs_reason op_ibs_raw(const struct perf_event_header *header, uint64_t sample_type, const void **ret_raw,
			      size_t *ret_raw_bytes)
{
	const uint8_t *record = (const uint8_t *)header;
	size_t at = sizeof(*header) + 8 * (size_t)__builtin_popcountll(sample_type & WORDS_BEFORE);
	uint64_t nr_chain;
	uint32_t raw_bytes;

	if (!(sample_type & PERF_SAMPLE_RAW) || sample_type & PERF_SAMPLE_READ)
		return OP_IBS_CUT;
	if (sample_type & PERF_SAMPLE_CALLCHAIN) {
		if (at + sizeof(nr_chain) > header->size)
			return OP_IBS_CUT;
		memcpy(&nr_chain, record + at, sizeof(nr_chain));
		at += sizeof(nr_chain);
		if (nr_chain > (header->size - at) / 8)
			return OP_IBS_CUT;
		at += 8 * (size_t)nr_chain;
	}
	if (at + sizeof(raw_bytes) > header->size)
		return OP_IBS_CUT;
	memcpy(&raw_bytes, record + at, sizeof(raw_bytes));
	at += sizeof(raw_bytes);
	if (raw_bytes > header->size - at)
		return OP_IBS_CUT;
	*ret_raw = record + at;
	*ret_raw_bytes = raw_bytes;
	return OP_IBS_OK;
}

/* ---- counters ---- */

void op_ibs_count(struct op_ibs_counts *counts, enum op_ibs_reason reason, const struct op_ibs *ibs)
{
	counts->by_reason[reason]++;
	if (reason != OP_IBS_OK)
		return;
	counts->unknown_caps += !!(ibs->notes & OP_IBS_NOTE_UNKNOWN_CAPS);
	counts->missing += !!(ibs->notes & OP_IBS_NOTE_MISSING);
	counts->old_fetch += !!(ibs->notes & OP_IBS_NOTE_OLD_FETCH);
	counts->redacted += !!(ibs->notes & OP_IBS_NOTE_REDACTED);
}
