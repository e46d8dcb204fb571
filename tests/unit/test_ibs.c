/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS payloads of every length and generation, damaged ones by their reason, and records out of a
 * ring.
 */
#include "tests/unit/memory_ring.h"

#include <endian.h>
#include <errno.h>

#include "libop/events/ibs.h"
#include "libop/perf/record.h"
#include "tests/ibs/ibs_text.h"

#define CAPS_FAM10      0x1fu
#define CAPS_FAM15      0x7ffu
#define CAPS_ZEN2       0x3ffu
#define CAPS_ZEN4       0xbffu
#define CAPS_ZEN5       0x81bffu
#define FETCH_SAMPLE    (UINT64_C(3) << 48) /* En, Val */
#define OP_SAMPLE       (UINT64_C(3) << 17)
#define WORDS_MAX       12
#define PAYLOAD_BYTES   (4 + 8 * WORDS_MAX)
#define SAMPLE_TYPE_RAW (OP_SAMPLE_TYPE | PERF_SAMPLE_RAW)

struct payload {
	uint8_t bytes[PAYLOAD_BYTES];
	size_t nr_bytes;
};

static struct payload payload(uint32_t caps, const uint64_t *words, size_t nr_words)
{
	struct payload result = { .nr_bytes = 4 + 8 * nr_words };

	caps = htole32(caps);
	memcpy(result.bytes, &caps, 4);
	for (size_t i = 0; i < nr_words; i++) {
		uint64_t word = htole64(words[i]);

		memcpy(result.bytes + 4 + 8 * i, &word, 8);
	}
	return result;
}

static enum op_ibs_reason decode(uint32_t family, uint32_t model, enum op_ibs_kind kind, const struct payload *from,
				 struct op_ibs *ret_ibs)
{
	struct op_ibs_cpu cpu;

	op_ibs_cpu_init(family, model, &cpu);
	return op_ibs_decode(&cpu, kind, from->bytes, from->nr_bytes, ret_ibs);
}

static bool is_fact(const struct op_ibs *ibs, unsigned int bit)
{
	return ibs->facts & OP_IBS_FACT(bit);
}

/* ---- lengths ---- */

static void every_length(void **state OP_UNUSED)
{
	static const struct {
		uint32_t family, model, caps;
		enum op_ibs_kind kind;
		size_t nr_bytes;
	} cases[] = {
		{ 0x10, 2, CAPS_FAM10, OP_IBS_FETCH, 28 },    { 0x10, 2, CAPS_FAM10, OP_IBS_OP, 60 },
		{ 0x15, 0x65, CAPS_FAM15, OP_IBS_FETCH, 36 }, { 0x15, 0x65, CAPS_FAM15, OP_IBS_OP, 76 },
		{ 0x17, 0x31, CAPS_ZEN2, OP_IBS_FETCH, 36 },  { 0x17, 0x31, CAPS_ZEN2, OP_IBS_OP, 68 },
		{ 0x1a, 0x44, CAPS_ZEN5, OP_IBS_FETCH, 36 },  { 0x1a, 0x44, CAPS_ZEN5, OP_IBS_OP, 68 },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		uint64_t words[WORDS_MAX] = { cases[i].kind == OP_IBS_FETCH ? FETCH_SAMPLE : OP_SAMPLE, 0x401000 };
		struct payload whole = payload(cases[i].caps, words, (cases[i].nr_bytes - 4) / 8);
		struct op_ibs ibs;

		assert_int_equal(decode(cases[i].family, cases[i].model, cases[i].kind, &whole, &ibs), OP_IBS_OK);
		assert_int_equal(ibs.notes, 0);
		assert_int_equal(ibs.ip, 0x401000);
		assert_int_equal(ibs.nr_words, (cases[i].nr_bytes - 4) / 8);
	}
}

static void words_by_position(void **state OP_UNUSED)
{
	uint64_t words[9] = { OP_SAMPLE, 0x401000, UINT64_C(1) << 37, [7] = 0x402000, [8] = 1 };
	struct payload with_both = payload(CAPS_FAM15, words, 9);
	struct payload without_data4 = payload(CAPS_FAM15, words, 8);
	struct payload data4_only = payload(CAPS_FAM15 & ~(uint32_t)OP_IBS_CAP_BR_TARGET, words, 8);
	struct op_ibs ibs;

	assert_int_equal(decode(0x15, 0x65, OP_IBS_OP, &with_both, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.target, 0x402000);
	assert_int_equal(ibs.op.ld_resync, 1);
	assert_int_equal(decode(0x15, 0x65, OP_IBS_OP, &without_data4, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.notes, OP_IBS_NOTE_MISSING);
	assert_int_equal(ibs.target, 0x402000);
	assert_int_equal(ibs.op.ld_resync, 0);
	words[7] = 1;
	data4_only = payload(CAPS_FAM15 & ~(uint32_t)OP_IBS_CAP_BR_TARGET, words, 8);
	assert_int_equal(decode(0x15, 0x65, OP_IBS_OP, &data4_only, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.has & OP_IBS_HAS_TARGET, 0);
	assert_int_equal(ibs.op.ld_resync, 1);
}

/* A fetch of a kernel before 5.10 has a branch target where a new one has the refill latency. */
static void old_fetches(void **state OP_UNUSED)
{
	uint64_t words[5] = { FETCH_SAMPLE | UINT64_C(1) << 50, 0x401000, 0, 0xffffffff81000000, 0 };
	struct payload old = payload(CAPS_ZEN2, words, 4), old_fam15 = payload(CAPS_FAM15, words, 5), new;
	struct op_ibs ibs;

	assert_int_equal(decode(0x17, 0x31, OP_IBS_FETCH, &old, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.notes, OP_IBS_NOTE_OLD_FETCH);
	assert_int_equal(ibs.has & OP_IBS_HAS_TLB_REFILL, 0);
	assert_int_equal(decode(0x15, 0x65, OP_IBS_FETCH, &old_fam15, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.notes, OP_IBS_NOTE_OLD_FETCH);
	words[3] = 33;
	new = payload(CAPS_ZEN2, words, 4);
	assert_int_equal(decode(0x17, 0x31, OP_IBS_FETCH, &new, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.notes, 0);
	assert_int_equal(ibs.tlb_refill, 33);
}

/* ---- damage ---- */

static void wrong_lengths(void **state OP_UNUSED)
{
	uint64_t words[WORDS_MAX] = { OP_SAMPLE | FETCH_SAMPLE, 0x401000 };
	struct payload cut = payload(CAPS_ZEN4, words, WORDS_MAX);
	struct op_ibs ibs, before;

	memset(&ibs, 0x5a, sizeof(ibs));
	before = ibs;
	for (cut.nr_bytes = 0; cut.nr_bytes <= PAYLOAD_BYTES; cut.nr_bytes++) {
		for (int kind = 0; kind < OP_IBS_NR_KINDS; kind++) {
			size_t min = kind == OP_IBS_FETCH ? OP_IBS_FETCH_BYTES_MIN : OP_IBS_OP_BYTES_MIN;
			size_t announced = kind == OP_IBS_FETCH ? 36 : 68;
			enum op_ibs_reason want = OP_IBS_OK, got;

			if (cut.nr_bytes < min)
				want = OP_IBS_SHORT;
			else if ((cut.nr_bytes - 4) % 8)
				want = OP_IBS_UNEVEN;
			else if (cut.nr_bytes > announced)
				want = OP_IBS_EXTRA;
			got = decode(0x19, 0x11, (enum op_ibs_kind)kind, &cut, &ibs);
			assert_int_equal(got, want);
			if (got != OP_IBS_OK)
				assert_memory_equal(&ibs, &before, sizeof(ibs));
			ibs = before;
		}
	}
}

static void not_a_sample(void **state OP_UNUSED)
{
	uint64_t fetch[4] = { UINT64_C(1) << 48, 0x401000 }, op[8] = { 1u << 17, 0x401000 }, at_zero[4] = { FETCH_SAMPLE, 0 };
	struct payload no_val_fetch = payload(CAPS_ZEN4, fetch, 4), no_val_op = payload(CAPS_ZEN4, op, 8), no_caps, zero;
	struct op_ibs ibs;

	assert_int_equal(decode(0x19, 0x11, OP_IBS_FETCH, &no_val_fetch, &ibs), OP_IBS_NOT_VALID);
	assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &no_val_op, &ibs), OP_IBS_NOT_VALID);
	op[0] = OP_SAMPLE;
	no_caps = payload(CAPS_ZEN4 & ~(uint32_t)OP_IBS_CAP_AVAIL, op, 8);
	assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &no_caps, &ibs), OP_IBS_NO_CAPS);
	zero = payload(CAPS_ZEN2, at_zero, 4);
	assert_int_equal(decode(0x19, 0x01, OP_IBS_FETCH, &zero, &ibs), OP_IBS_NO_ADDRESS);
	assert_int_equal(decode(0x17, 0x31, OP_IBS_FETCH, &zero, &ibs), OP_IBS_OK);
}

static void unknown_capabilities(void **state OP_UNUSED)
{
	uint64_t words[10] = { OP_SAMPLE, 0x401000, [8] = UINT64_MAX, [9] = UINT64_MAX };
	struct payload future = payload(CAPS_ZEN4 | 1u << 27, words, 10);
	struct op_ibs_counts counts = { { 0 }, 0, 0, 0, 0 };
	struct op_ibs ibs;
	enum op_ibs_reason reason = decode(0x1b, 0x02, OP_IBS_OP, &future, &ibs);

	assert_int_equal(reason, OP_IBS_OK);
	assert_int_equal(ibs.notes, OP_IBS_NOTE_UNKNOWN_CAPS);
	assert_int_equal(ibs.op.ld_resync, 0);
	op_ibs_count(&counts, reason, &ibs);
	op_ibs_count(&counts, OP_IBS_CUT, &ibs);
	assert_int_equal(counts.by_reason[OP_IBS_OK], 1);
	assert_int_equal(counts.by_reason[OP_IBS_CUT], 1);
	assert_int_equal(counts.unknown_caps, 1);
}

/* ---- gates ---- */

/* Addresses and targets in registers whose valid bit is 0 belong to another op. */
static void stale_words(void **state OP_UNUSED)
{
	uint64_t words[8] = { OP_SAMPLE, 0xdeadbeef, UINT64_C(1) << 38, 0x33, 0x90, 0x7f0000400000, 0x123456000, 0x401020 };
	struct payload stale = payload(CAPS_ZEN4, words, 8);
	struct op_ibs ibs;

	assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &stale, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.has, OP_IBS_HAS_RETIRE);
	assert_int_equal(ibs.ip | ibs.linear | ibs.physical | ibs.target, 0);
	assert_int_equal(ibs.source, OP_IBS_SOURCE_NONE);
	assert_int_equal(ibs.facts, OP_IBS_FACT(OP_IBS_O_ALL));
	assert_int_equal(ibs.op.dc_lin_ad, 0x7f0000400000);
	stale = payload(CAPS_FAM10, words, 7); /* this event does not check the RIP */
	assert_int_equal(decode(0x10, 0x02, OP_IBS_OP, &stale, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.ip, 0xdeadbeef);
}

static void errata_of_zen3(void **state OP_UNUSED)
{
	uint64_t op[8] = { OP_SAMPLE, 0x401000, 0, 3, 0x6415170081 };
	uint64_t fetch[4] = { FETCH_SAMPLE | UINT64_C(0xbc) << 48, 0x401000, 0x1000 };
	struct payload lost = payload(CAPS_ZEN2, op, 8), page = payload(CAPS_ZEN2, fetch, 4);
	struct op_ibs ibs;

	assert_int_equal(decode(0x19, 0x01, OP_IBS_OP, &lost, &ibs), OP_IBS_OK);
	assert_true(is_fact(&ibs, OP_IBS_O_DC_MISS));
	assert_false(is_fact(&ibs, OP_IBS_O_L2_MISS) || is_fact(&ibs, OP_IBS_O_L2_HIT) || is_fact(&ibs, OP_IBS_O_BEYOND));
	assert_int_equal(ibs.has & (OP_IBS_HAS_SOURCE | OP_IBS_HAS_DEPTH), 0);
	assert_int_equal(decode(0x17, 0x31, OP_IBS_OP, &lost, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.source, OP_IBS_SOURCE_DRAM);
	assert_int_equal(decode(0x19, 0x01, OP_IBS_FETCH, &page, &ibs), OP_IBS_OK);
	assert_true(is_fact(&ibs, OP_IBS_F_PAGE_16K));
	assert_false(is_fact(&ibs, OP_IBS_F_IC_MISS));
	assert_int_equal(decode(0x19, 0x11, OP_IBS_FETCH, &page, &ibs), OP_IBS_OK);
	assert_true(is_fact(&ibs, OP_IBS_F_PAGE_2M));
	assert_true(is_fact(&ibs, OP_IBS_F_IC_MISS));
}

static void gated_fetch(void **state OP_UNUSED)
{
	uint64_t words[4] = { FETCH_SAMPLE | UINT64_C(0xc) << 48 | UINT64_C(9) << 32, 0x401000 };
	struct payload no_physical = payload(CAPS_ZEN5, words, 4), redacted;
	struct op_ibs ibs;

	assert_int_equal(decode(0x1a, 0x51, OP_IBS_FETCH, &no_physical, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.facts, OP_IBS_FACT(OP_IBS_F_ALL));
	assert_int_equal(ibs.latency, 0);
	assert_int_equal(decode(0x1a, 0x44, OP_IBS_FETCH, &no_physical, &ibs), OP_IBS_OK);
	assert_true(is_fact(&ibs, OP_IBS_F_COMPLETED));
	assert_int_equal(ibs.latency, 9);
	words[0] |= UINT64_C(1) << 52;
	redacted = payload(CAPS_ZEN5, words, 4);
	assert_int_equal(decode(0x1a, 0x51, OP_IBS_FETCH, &redacted, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.notes, OP_IBS_NOTE_REDACTED);
	assert_true(is_fact(&ibs, OP_IBS_F_COMPLETED));
}

/* A killed op is in no event but ALL. An attempted fetch was completed or aborted. */
static void killed_fetches(void **state OP_UNUSED)
{
	static const struct {
		uint64_t control;
		bool is_killed, completed, aborted;
	} fetches[] = {
		{ 0, true, false, false },
		{ UINT64_C(1) << 50 | UINT64_C(1) << 52, false, true, false },
		{ UINT64_C(1) << 52, false, false, true },
		{ UINT64_C(1) << 51, false, false, true },
		{ UINT64_C(1) << 55, false, false, true },
	};

	for (size_t i = 0; i < op_array_size(fetches); i++) {
		uint64_t words[4] = { FETCH_SAMPLE | fetches[i].control, 0x401000 };
		struct payload record = payload(CAPS_ZEN4, words, 4);
		struct op_ibs ibs;

		assert_int_equal(decode(0x19, 0x11, OP_IBS_FETCH, &record, &ibs), OP_IBS_OK);
		assert_int_equal(is_fact(&ibs, OP_IBS_F_KILLED), fetches[i].is_killed);
		assert_int_equal(is_fact(&ibs, OP_IBS_F_COMPLETED), fetches[i].completed);
		assert_int_equal(is_fact(&ibs, OP_IBS_F_ABORTED), fetches[i].aborted);
		assert_int_equal(is_fact(&ibs, OP_IBS_F_ATTEMPTED), fetches[i].completed || fetches[i].aborted);
	}
}

/*
 * Next to a store, or to a load that did not miss, OP_DATA2 belongs to another op: nothing says
 * that the memory is a device's.
 */
static void stale_devices(void **state OP_UNUSED)
{
	static const uint32_t data3[] = { 0x4001, 0x4002, 0x104082, 0x4081 };
	struct op_ibs ibs;

	for (size_t i = 0; i < op_array_size(data3); i++) {
		for (uint64_t source = 0; source < 8; source++) {
			uint64_t words[8] = { OP_SAMPLE, 0x401000, 0, source, data3[i] };
			struct payload record = payload(CAPS_ZEN4, words, 8);

			assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &record, &ibs), OP_IBS_OK);
			assert_true(is_fact(&ibs, OP_IBS_O_UC));
			assert_false(is_fact(&ibs, OP_IBS_O_DC_MISS) || is_fact(&ibs, OP_IBS_O_DC_HIT) ||
				     is_fact(&ibs, OP_IBS_O_L2_HIT));
			assert_false(is_fact(&ibs, OP_IBS_O_SRC_IO) || ibs.has & (OP_IBS_HAS_SOURCE | OP_IBS_HAS_LATENCY));
		}
	}
}

/* Uncacheable memory has no misses; a device's registers are the exception. */
static void uncacheable(void **state OP_UNUSED)
{
	uint64_t words[8] = { OP_SAMPLE, 0x401000, 0, 3, 0x104081 };
	struct payload memory = payload(CAPS_ZEN4, words, 8), device;
	struct op_ibs ibs;
	struct op_ibs_cpu cpu;

	op_ibs_cpu_init(0x19, 0x11, &cpu);
	assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &memory, &ibs), OP_IBS_OK);
	assert_false(is_fact(&ibs, OP_IBS_O_DC_MISS) || is_fact(&ibs, OP_IBS_O_DC_HIT));
	assert_int_equal(op_ibs_data_src(&cpu, &ibs) >> PERF_MEM_LVL_SHIFT & PERF_MEM_LVL_UNC, PERF_MEM_LVL_UNC);
	words[3] = 7;
	device = payload(CAPS_ZEN4, words, 8);
	assert_int_equal(decode(0x19, 0x11, OP_IBS_OP, &device, &ibs), OP_IBS_OK);
	assert_int_equal(ibs.source, OP_IBS_SOURCE_IO);
	assert_int_equal(op_ibs_data_src(&cpu, &ibs) >> PERF_MEM_LVL_SHIFT & PERF_MEM_LVL_IO, PERF_MEM_LVL_IO);
}

static uint64_t data_src_of(uint32_t family, uint32_t model, uint32_t caps, uint64_t data2)
{
	uint64_t words[8] = { OP_SAMPLE, 0x401000, 0, data2, 1u | 1u << 7 | 1u << 20 };
	struct payload load = payload(caps, words, 8);
	struct op_ibs_cpu cpu;
	struct op_ibs ibs;

	op_ibs_cpu_init(family, model, &cpu);
	assert_int_equal(decode(family, model, OP_IBS_OP, &load, &ibs), OP_IBS_OK);
	return op_ibs_data_src(&cpu, &ibs);
}

/*
 * What the bit of another node changes, with three bits and with five: memory of any kind, but
 * neither devices nor caches.
 */
static void other_nodes(void **state OP_UNUSED)
{
	static const struct {
		uint64_t code;
		bool zen2, zen4;
	} changes[] = { { 1, false, false }, { 2, false, false }, { 3, true, true },   { 4, false, false },
			{ 5, false, false }, { 6, false, true },  { 7, false, false }, { 0x40, false, true } };
	const uint64_t remote_node = 1u << 4;

	for (size_t i = 0; i < op_array_size(changes); i++) {
		uint64_t code = changes[i].code;

		if (code < 8)
			assert_int_equal(data_src_of(0x17, 0x31, 0x3ff, code) != data_src_of(0x17, 0x31, 0x3ff, code | remote_node),
					 changes[i].zen2);
		assert_int_equal(data_src_of(0x19, 0x11, CAPS_ZEN4, code) != data_src_of(0x19, 0x11, CAPS_ZEN4, code | remote_node),
				 changes[i].zen4);
	}
}

/* ---- records ---- */

/* A PERF_RECORD_SAMPLE as the kernel lays it out: padded to 8 bytes. Its length. */
static size_t make_sample(uint8_t *record, const struct payload *raw, uint32_t raw_bytes)
{
	uint64_t body[4] = { 7, 0x401000, PAIR(77, 77), 1000 };
	size_t nr_bytes = (8 + sizeof(body) + 4 + raw->nr_bytes + 7) / 8 * 8;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = (uint16_t)nr_bytes };

	memset(record, 0, nr_bytes);
	memcpy(record, &header, sizeof(header));
	memcpy(record + 8, body, sizeof(body));
	memcpy(record + 40, &raw_bytes, sizeof(raw_bytes));
	memcpy(record + 44, raw->bytes, raw->nr_bytes);
	return nr_bytes;
}

static void raw_in_a_record(void **state OP_UNUSED)
{
	_Alignas(8) uint8_t record[256], with_chain[256] = { 0 };
	uint64_t words[8] = { OP_SAMPLE, 0x401000 }, chain[3] = { 2, 0x401000, 0x402000 };
	struct payload op = payload(CAPS_ZEN4, words, 8);
	size_t nr_bytes = make_sample(record, &op, (uint32_t)op.nr_bytes), raw_bytes = 1;
	struct perf_event_header *header = (void *)record, *chained = (void *)with_chain;
	const void *raw = NULL;

	assert_int_equal(op_ibs_raw(header, SAMPLE_TYPE_RAW, &raw, &raw_bytes), OP_IBS_OK);
	assert_ptr_equal(raw, record + 44);
	assert_int_equal(raw_bytes, 68);
	memcpy(with_chain, record, 40);
	memcpy(with_chain + 40, chain, sizeof(chain));
	memcpy(with_chain + 40 + sizeof(chain), record + 40, nr_bytes - 40);
	chained->size = (uint16_t)(nr_bytes + sizeof(chain));
	assert_int_equal(op_ibs_raw(chained, SAMPLE_TYPE_RAW | PERF_SAMPLE_CALLCHAIN, &raw, &raw_bytes), OP_IBS_OK);
	assert_ptr_equal(raw, with_chain + 44 + sizeof(chain));
	assert_int_equal(op_ibs_raw(header, OP_SAMPLE_TYPE, &raw, &raw_bytes), OP_IBS_CUT);
	for (uint16_t size = 8; size < 112; size += 8) { /* 112: all of it */
		header->size = size;
		assert_int_equal(op_ibs_raw(header, SAMPLE_TYPE_RAW, &raw, &raw_bytes), OP_IBS_CUT);
	}
	for (uint16_t size = 8; size < 136; size += 8) {
		chained->size = size;
		assert_int_equal(op_ibs_raw(chained, SAMPLE_TYPE_RAW | PERF_SAMPLE_CALLCHAIN, &raw, &raw_bytes), OP_IBS_CUT);
	}
	chain[0] = 2 + (UINT64_C(1) << 61); /* times 8 it would be 2 again */
	memcpy(with_chain + 40, chain, 8);
	chained->size = 136;
	assert_int_equal(op_ibs_raw(chained, SAMPLE_TYPE_RAW | PERF_SAMPLE_CALLCHAIN, &raw, &raw_bytes), OP_IBS_CUT);
}

/*
 * Decodes the records in the ring. Returns how many there are; the RIP of each follows the one
 * before.
 */
static unsigned int drain(struct op_ring *ring, uint64_t *next_rip)
{
	const struct perf_event_header *record;
	struct op_ibs_cpu cpu;
	unsigned int nr = 0;

	op_ibs_cpu_init(0x19, 0x11, &cpu);
	op_ring_begin(ring);
	for (; (record = op_ring_next(ring)); nr++) {
		const void *raw;
		size_t raw_bytes;
		struct op_ibs ibs;

		assert_int_equal(op_ibs_raw(record, SAMPLE_TYPE_RAW, &raw, &raw_bytes), OP_IBS_OK);
		assert_int_equal(op_ibs_decode(&cpu, OP_IBS_OP, raw, raw_bytes, &ibs), OP_IBS_OK);
		assert_int_equal(ibs.ip, (*next_rip)++);
		assert_int_equal(ibs.target, 0x402000);
	}
	op_ring_end(ring);
	return nr;
}

/*
 * Records of 112 bytes in a ring of 4096 bytes: every 36th record crosses the end, at another byte
 * in each round.
 */
static void cut_by_the_end_of_the_ring(void **state OP_UNUSED)
{
	uint64_t rip = 0x401000, next = rip;
	unsigned int nr = 0;
	struct op_ring ring;

	memory_ring_init(&ring);
	for (int i = 0; i < 1000; i++) {
		_Alignas(8) uint8_t record[128];
		uint64_t words[8] = { OP_SAMPLE, rip++, UINT64_C(1) << 37, [7] = 0x402000 };
		struct payload op = payload(CAPS_ZEN4, words, 8);

		assert_true(memory_ring_write(&ring, record, make_sample(record, &op, 68)));
		nr += drain(&ring, &next);
	}
	assert_int_equal(nr, 1000);
	assert_int_equal(ring.damaged, 0);
	memory_ring_free(&ring);
}

/* The writer stopped in the middle: the part of the record is not read, and the ring counts it. */
static void cut_by_the_writer(void **state OP_UNUSED)
{
	_Alignas(8) uint8_t record[128];
	uint64_t words[8] = { OP_SAMPLE, 0x401000, UINT64_C(1) << 37, [7] = 0x402000 }, next = 0x401000;
	struct payload op = payload(CAPS_ZEN4, words, 8);
	struct op_ring ring;

	memory_ring_init(&ring);
	assert_true(memory_ring_write(&ring, record, make_sample(record, &op, 68)));
	assert_true(memory_ring_write(&ring, record, 64));
	assert_int_equal(drain(&ring, &next), 1);
	assert_int_equal(ring.damaged, 1);
	memory_ring_free(&ring);
}

static void cpu_from_text(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "AuthenticAMD", "AuthenticAMD,25,1", "AuthenticAMD,25,1,2,3",
					   "AuthenticAMD,25,x,1" };
	struct op_ibs_cpu cpu = { 1, 2, 3 };

	for (size_t i = 0; i < op_array_size(bad); i++)
		assert_int_equal(op_ibs_cpu_parse(bad[i], &cpu), -EINVAL);
	assert_int_equal(op_ibs_cpu_parse("GenuineIntel,6,143,8", &cpu), -ENODEV);
	assert_int_equal(cpu.traits, 3);
	assert_int_equal(op_ibs_cpu_parse("AuthenticAMD,25,1,1", &cpu), 0);
	assert_int_equal(cpu.family, 0x19);
	assert_int_equal(cpu.traits & OP_IBS_ERRATUM_1293, OP_IBS_ERRATUM_1293);
	op_ibs_cpu_init(0x0f, 0x41, &cpu);
	assert_int_equal(cpu.traits, 0);
	op_ibs_cpu_init(0x1b, 0x00, &cpu);
	assert_int_equal(cpu.traits & OP_IBS_FETCH_GATED, OP_IBS_FETCH_GATED);
}

/*
 * A load that missed L1 with a data source that may be stale: the file does not say which CPU it is
 * from.
 */
static void decode_unknown(uint32_t caps, uint64_t data3, struct op_ibs *ret_ibs)
{
	const uint64_t words[] = { 3u << 17, 0x401000, 0, 3, data3, 0, 0, 0, 0 };
	struct payload from = payload(caps, words, 7 + !!(caps & OP_IBS_CAP_BR_TARGET) + !!(caps & OP_IBS_CAP_OP_DATA4));
	struct op_ibs_cpu cpu;

	op_ibs_cpu_unknown(&cpu);
	assert_int_equal(op_ibs_decode(&cpu, OP_IBS_OP, from.bytes, from.nr_bytes, ret_ibs), OP_IBS_OK);
}

static void a_cpu_by_its_capabilities(void **state OP_UNUSED)
{
	const uint64_t load = 1, dc_miss = 1u << 7, l2_miss = 1u << 20;
	static const uint32_t of_one_generation[] = { 0xbff, 0x3ff, CAPS_FAM15, 0x81bff }, of_several[] = { CAPS_FAM10, 0xff };
	struct op_ibs ibs;

	for (size_t i = 0; i < op_array_size(of_one_generation); i++) {
		decode_unknown(of_one_generation[i], load | dc_miss, &ibs);
		assert_int_equal(ibs.source, OP_IBS_SOURCE_L2);
		assert_true(is_fact(&ibs, OP_IBS_O_L2_HIT));
		decode_unknown(of_one_generation[i], load | dc_miss | l2_miss, &ibs);
		assert_int_equal(ibs.source, OP_IBS_SOURCE_DRAM);
	}
	for (size_t i = 0; i < op_array_size(of_several); i++) {
		decode_unknown(of_several[i], load | dc_miss | l2_miss, &ibs);
		assert_int_equal(ibs.has & OP_IBS_HAS_SOURCE, 0);
		assert_false(is_fact(&ibs, OP_IBS_O_BEYOND));
		decode_unknown(of_several[i], load, &ibs);
		assert_int_equal(ibs.source, OP_IBS_SOURCE_L1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(words_by_position),
		cmocka_unit_test(old_fetches),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(not_a_sample),
		cmocka_unit_test(unknown_capabilities),
		cmocka_unit_test(stale_words),
		cmocka_unit_test(errata_of_zen3),
		cmocka_unit_test(gated_fetch),
		cmocka_unit_test(killed_fetches),
		cmocka_unit_test(stale_devices),
		cmocka_unit_test(uncacheable),
		cmocka_unit_test(other_nodes),
		cmocka_unit_test(raw_in_a_record),
		cmocka_unit_test(cut_by_the_end_of_the_ring),
		cmocka_unit_test(cut_by_the_writer),
		cmocka_unit_test(cpu_from_text),
		cmocka_unit_test(a_cpu_by_its_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
