/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The perf.data reader on layouts that this host's perf does not write, and the import of records
 * that are out of order.
 */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/opimport/event_match.h"
#include "libop/perf/data_record.h"
#include "libop/perf/data_shape.h"
#include "libop/perf/record.h"

#define FORMAT_LOST (1u << 4)

struct words {
	struct perf_event_header header;
	uint64_t body[16];
};

static struct op_perf_events events;
static struct op_perf_features features;
static struct op_perf_translator translator;

static void add_event(uint64_t sample_type, uint64_t id, uint64_t read_format)
{
	struct perf_event_attr attr = { .sample_type = sample_type, .read_format = read_format, .sample_id_all = 1 };
	uint32_t event;

	assert_int_equal(op_perf_events_add(&events, &attr, &event), 0);
	assert_int_equal(op_perf_events_add_id(&events, id, event), 0);
}

static int translator_setup(void **state OP_UNUSED)
{
	translator = (struct op_perf_translator){ .events = &events, .features = &features };
	return 0;
}

static int translator_teardown(void **state OP_UNUSED)
{
	op_perf_events_free(&events);
	op_perf_features_free(&features);
	return 0;
}

static struct words words_of(uint32_t type, uint16_t misc, size_t nr_words)
{
	return (struct words){ .header = { .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * nr_words) } };
}

static struct op_perf_record translate(const struct words *words)
{
	struct op_perf_record record;

	assert_int_equal(op_perf_translate(&translator, &words->header, (const uint8_t *)words->body, &record), 0);
	return record;
}

static void assert_sample(const struct op_perf_record *record, uint64_t id, uint64_t ip, uint64_t time_ns, uint32_t cpu)
{
	struct op_sample sample;

	assert_int_equal(record->kind, OP_PERF_RING);
	assert_int_equal(op_record_sample(record->header, &sample), 0);
	assert_int_equal(sample.id, id);
	assert_int_equal(sample.ip, ip);
	assert_int_equal(sample.time_ns, time_ns);
	assert_int_equal(record->cpu, cpu);
}

/* Every field of fixed size, each with its own value. */
static void all_fields(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 9);
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
			  PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER,
		  7, 0);
	for (size_t i = 0; i < 9; i++)
		words.body[i] = 100 + i;
	words.body[7] = PAIR(107, 0); /* the CPU */
	record = translate(&words);
	assert_sample(&record, 1, 101, 103, 107);
}

/*
 * An old perf: no identifier in front. It is behind the address, and missing when there is only one
 * event.
 */
static void identifier_behind(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 4);
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU, 50, 0);
	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU, 51, 0);
	words.body[0] = 0x1000;
	words.body[1] = 77;
	words.body[2] = 51;
	words.body[3] = PAIR(3, 0);
	record = translate(&words);
	assert_sample(&record, 2, 0x1000, 77, 3);
	words.body[2] = 52;
	record = translate(&words);
	assert_int_equal(record.kind, OP_PERF_RING);
	assert_int_equal(record.header->size, sizeof(struct perf_event_header));
}

static void events_that_cannot_be_told_apart(void **state OP_UNUSED)
{
	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_ID, 1, 0);
	assert_true(op_perf_events_are_told_apart(&events));
	add_event(PERF_SAMPLE_ID, 2, 0);
	assert_false(op_perf_events_are_told_apart(&events));
}

static void short_samples_are_undecodable(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 1);
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, 0);
	assert_int_equal(op_perf_translate(&translator, &words.header, (const uint8_t *)words.body, &record), -EBADMSG);
	assert_int_equal(record.kind, OP_PERF_RING);
	assert_int_equal(record.event, 0);
	assert_int_equal(record.header->size, sizeof(struct perf_event_header) + sizeof(uint64_t));
}

/* Too short for its fields but not for its identifier; then too short for the identifier, too. */
static void short_samples_have_their_event(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 2);
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 40, 0);
	add_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 41, 0);
	words.body[0] = 41;
	assert_int_equal(op_perf_translate(&translator, &words.header, (const uint8_t *)words.body, &record), -EBADMSG);
	assert_int_equal(record.event, 1);
	assert_int_equal(((const uint64_t *)(const void *)record.header)[1], 2);
	words.header.size = sizeof(words.header);
	assert_int_equal(op_perf_translate(&translator, &words.header, (const uint8_t *)words.body, &record), -EBADMSG);
	assert_int_equal(record.kind, OP_PERF_RING);
	assert_int_equal(record.event, OP_PERF_NO_EVENT);
}

/*
 * An op of Zen 4 as the kernel writes it: caps, control with En and Val, RIP, five more words,
 * target.
 */
static struct words op_of(uint64_t ip, uint64_t rip, uint32_t raw_bytes)
{
	struct words words = words_of(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 10);
	const uint64_t caps = 0xbff;

	words.body[0] = ip;
	words.body[1] = PAIR(raw_bytes, caps);
	words.body[2] = 3u << 17;
	words.body[3] = rip;
	return words;
}

static void add_raw_event(uint32_t type)
{
	struct perf_event_attr attr = { .type = type, .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW };
	uint32_t event;

	assert_int_equal(op_perf_events_add(&events, &attr, &event), 0);
}

static void assert_kind(uint32_t type, const struct words *words, bool is_recognised)
{
	enum op_ibs_kind kind = OP_IBS_NR_KINDS;

	add_raw_event(type);
	translator = (struct op_perf_translator){ .events = &events, .features = &features };
	translate(words);
	assert_int_equal(op_perf_is_ibs(&features, &events.events[0], &kind), is_recognised);
	assert_int_equal(kind, is_recognised ? OP_IBS_OP : OP_IBS_NR_KINDS);
	op_perf_events_free(&events);
}

static void registers_by_their_shape(void **state OP_UNUSED)
{
	struct words words = op_of(0x401000, 0x401000, 68);

	assert_kind(11, &words, true);
	assert_kind(PERF_TYPE_HARDWARE, &words, true);
	assert_kind(PERF_TYPE_RAW, &words, true);
	assert_kind(PERF_TYPE_TRACEPOINT, &words, false);
	assert_kind(PERF_TYPE_SOFTWARE, &words, false);
	words = op_of(0x401000, 0x501000, 68); /* of another address, */
	assert_kind(11, &words, false);
	words = op_of(0x401000, 0x401000, 60); /* shorter than its capability word, */
	assert_kind(11, &words, false);
	words = op_of(0x401000, 0x401000, 68);
	words.body[2] = 0; /* no sample, */
	assert_kind(11, &words, false);
	words = op_of(0x401000, 0x401000, 68);
	features.has_pmus = true; /* of a PMU that is another */
	assert_kind(11, &words, false);
	features.has_pmus = false;
}

static void registers_that_are_cut(void **state OP_UNUSED)
{
	struct words words = op_of(0x401000, 0x401000, 4000);
	struct op_perf_record record;

	add_raw_event(11);
	assert_int_equal(op_perf_translate(&translator, &words.header, (const uint8_t *)words.body, &record), -EBADMSG);
	assert_sample(&record, 1, 0x401000, 1, 0);
}

/* LOST records report lost samples that the kernel also counts for each event. */
static void lost_is_counted_once(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_LOST, 0, 4);
	struct op_lost_record lost;
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER, 9, 0);
	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER, 10, FORMAT_LOST);
	words.body[0] = words.body[3] = 9;
	words.body[1] = 5;
	record = translate(&words);
	assert_int_equal(record.kind, OP_PERF_RING);
	assert_int_equal(op_record_lost(record.header, &lost), 0);
	assert_int_equal(lost.lost, 5);
	assert_int_equal(lost.id, 1);
	words.body[0] = 10;
	record = translate(&words);
	assert_int_equal(record.kind, OP_PERF_LOST_AGAIN);
	assert_int_equal(op_record_lost(record.header, &lost), 0);
	assert_int_equal(lost.lost, 5);
	assert_int_equal(lost.id, 2);
}

/* Sums that perf wrote have no time. Samples that a filter dropped are not lost. */
static void lost_samples_by_perf_are_sums(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_LOST_SAMPLES, 0, 3);
	struct op_lost_record lost;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER, 9, 0);
	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER, 10, FORMAT_LOST);
	words.body[0] = 7;
	for (uint64_t id = 9; id <= 10; id++) {
		for (uint64_t time_ns = 0; time_ns < 80; time_ns += 40) {
			struct op_perf_record record;

			words.body[1] = time_ns;
			words.body[2] = id;
			record = translate(&words);
			assert_int_equal(record.kind, OP_PERF_RING);
			assert_int_equal(record.is_sum, id == 10 && !time_ns);
			assert_int_equal(op_record_lost_samples(record.header, &lost), 0);
			assert_int_equal(lost.lost, 7);
			assert_int_equal(lost.id, id - 8);
		}
	}
	words.header.misc = 1u << 15;
	assert_int_equal(translate(&words).kind, OP_PERF_PASSED_OVER);
}

/*
 * For a process that is older than the recording, perf writes a fork that would give it the
 * mappings of its parent.
 */
static void made_up_forks(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_FORK, 0, 4);
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, 0);
	words.body[2] = 40;
	words.body[3] = 40;
	record = translate(&words);
	assert_int_equal(record.kind, OP_PERF_SIDEBAND);
	assert_int_equal(record.time_ns, 40);
	words.header.misc = PERF_RECORD_MISC_FORK_EXEC;
	assert_int_equal(translate(&words).kind, OP_PERF_PASSED_OVER);
	words.header.misc = 0;
	words.body[2] = 0;
	assert_int_equal(translate(&words).kind, OP_PERF_PASSED_OVER);
}

/* With another profiler on the host, records with device and inode have the flag set. */
static void a_flag_without_build_id(void **state OP_UNUSED)
{
	struct words words = words_of(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 10);
	struct op_mmap_record mapping;
	struct op_perf_record record;

	add_event(PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, 0);
	words.body[1] = 0x400000;
	words.body[2] = 0x1000;
	words.body[5] = 4711; /* the inode */
	memcpy(&words.body[8], "/bin/x", 7);
	words.body[9] = 12;
	record = translate(&words);
	assert_int_equal(record.kind, OP_PERF_SIDEBAND);
	assert_int_equal(op_record_mmap(record.header, &mapping), 0);
	assert_int_equal(mapping.build_id_bytes, 0);
	assert_int_equal(mapping.inode, 4711);
	assert_int_equal(mapping.who.time_ns, 12);
	assert_string_equal(mapping.file_name, "/bin/x");
	events.has_build_ids = true;
	record = translate(&words);
	assert_true(op_record_mmap(record.header, &mapping) || mapping.build_id_bytes == 0);
}

static void attributes_of_any_size(void **state OP_UNUSED)
{
	uint8_t bytes[256] = { 0 };
	struct perf_event_attr attr;
	size_t nr_bytes;

	((struct perf_event_attr *)(void *)bytes)->sample_type = 5;
	assert_int_equal(op_perf_attr_read(bytes, PERF_ATTR_SIZE_VER0, false, &attr, &nr_bytes), 0);
	assert_int_equal(nr_bytes, PERF_ATTR_SIZE_VER0);
	assert_int_equal(attr.sample_type, 5);
	((struct perf_event_attr *)(void *)bytes)->size = 240; /* newer than this host's */
	assert_int_equal(op_perf_attr_read(bytes, sizeof(bytes), false, &attr, &nr_bytes), 0);
	assert_int_equal(nr_bytes, 240);
	assert_int_equal(op_perf_attr_read(bytes, 232, false, &attr, NULL), -EBADMSG);
	bytes[4] = 60;
	assert_int_equal(op_perf_attr_read(bytes, sizeof(bytes), false, &attr, NULL), -EBADMSG);
}

static void empty_features_are_no_damage(void **state OP_UNUSED)
{
	for (uint64_t feature = 0; feature < OP_PERF_FEATURES_MAX; feature++)
		assert_int_equal(op_perf_feature_read(&features, &events, feature, (const uint8_t *)"", 0, false), 0);
	assert_null(features.hostname);
	assert_int_equal(features.nr_cpus, 0);
}

static void event_names(void **state OP_UNUSED)
{
	struct op_perf_event clock = { .attr = { .type = PERF_TYPE_SOFTWARE, .freq = 1, .sample_freq = 1000 } };
	struct op_perf_event raw = { .attr = { .type = PERF_TYPE_RAW, .config = 0x76, .sample_period = 250000 } };
	char odd[] = "ibs_op/l3miss.only=1/u";
	struct op_perf_event ibs = { .attr = { .type = 11, .config = 0x80000, .sample_period = 99 }, .name = odd };
	struct op_event event;

	opi_event_name(&clock, &event);
	assert_string_equal(event.name, "cpu-clock");
	assert_int_equal(event.count, 1000000);
	opi_event_name(&raw, &event);
	assert_string_equal(event.name, "r76");
	assert_int_equal(event.count, 250000);
	opi_event_name(&ibs, &event);
	assert_string_equal(event.name, "ibs_op_l3miss_only=1_u");
	ibs.name = NULL;
	opi_event_name(&ibs, &event);
	assert_string_equal(event.name, "type-11-config-80000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_fields, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(identifier_behind, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(events_that_cannot_be_told_apart, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(short_samples_are_undecodable, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(short_samples_have_their_event, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(registers_by_their_shape, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(registers_that_are_cut, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(lost_is_counted_once, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(lost_samples_by_perf_are_sums, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(made_up_forks, translator_setup, translator_teardown),
		cmocka_unit_test_setup_teardown(a_flag_without_build_id, translator_setup, translator_teardown),
		cmocka_unit_test(attributes_of_any_size),
		cmocka_unit_test_setup_teardown(empty_features_are_no_damage, translator_setup, translator_teardown),
		cmocka_unit_test(event_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
