/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS from a request to the sample files: which IBS a host has, the list of events, records of a
 * sampler in a ring, each counted at its own address or lost under a name, and the memory view.
 */
#include "pipeline/capture/kernel_source.h"
#include "tests/unit/cmocka_all.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/events/event_list.h"
#include "libop/events/ibs_host.h"
#include "libop/odb/odb.h"
#include "libop/session/ledger_file.h"
#include "libop/session/memory_view.h"
#include "libop/session/sum.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/count/memory_limit.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/pipeline.h"

#define ZEN4_CAPS   0xbffu
#define OP_ID       102u
#define OP_WORDS    8u
#define OP_BYTES    (4 + 8 * OP_WORDS)
#define OP_CTL_VAL  (UINT64_C(1) << 18)
#define RIP_INVALID (UINT64_C(1) << 38)
#define LOAD_MISS   (UINT64_C(1) | 1u << 7 | 1u << 20)
#define DRAM        3u
#define COUNT       100000u
#define NEVER       0x800000001000u /* an address where no process has anything */

static const struct op_ibs_cpuid zen4 = { "AuthenticAMD", 0x19, 0x11, false, true, ZEN4_CAPS };
static const uint32_t pmu_types[OP_IBS_NR_KINDS] = { 8, 9 };

static struct op_ibs_host make_host(void)
{
	struct op_ibs_host host;
	const char *why;

	assert_int_equal(op_ibs_host_make(&zen4, pmu_types, &host, &why), 0);
	return host;
}

static struct op_event derive(const char *spec)
{
	struct op_ibs_host host = make_host();
	struct op_ibs_request request;
	struct op_event event;
	char *why = NULL;

	assert_int_equal(op_ibs_request_parse(spec, &host, &request, &why), 0);
	op_event_derive(request.event, &request.sampler, &host, &event);
	return event;
}

/* ---- what a host has ---- */

static void hosts(void **state OP_UNUSED)
{
	static const uint32_t none[OP_IBS_NR_KINDS] = { 0, 0 }, op_only[OP_IBS_NR_KINDS] = { 0, 9 };
	static const struct {
		struct op_ibs_cpuid cpuid;
		const uint32_t *pmu_types;
		const char *why; /* NULL: it has IBS */
	} cases[] = {
		{ { "GenuineIntel", 6, 0x55, false, false, 0 }, none, "another vendor's" },
		{ { "AuthenticAMD", 0x0f, 0x41, false, false, 0 }, none, "has no IBS" },
		{ { "AuthenticAMD", 0x19, 0x11, true, false, 0 }, none, "hypervisor hides" },
		{ { "AuthenticAMD", 0x19, 0x11, false, false, 0 }, none, "firmware has not enabled" },
		{ { "AuthenticAMD", 0x19, 0x11, false, true, ZEN4_CAPS }, none, "kernel does not offer" },
		{ { "AuthenticAMD", 0x19, 0x11, true, true, ZEN4_CAPS }, pmu_types, NULL },
		{ { "HygonGenuine", 0x18, 0x01, false, true, 0x3ff }, pmu_types, NULL },
		{ { "AuthenticAMD", 0x10, 0x02, false, true, 0 }, op_only, NULL },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_ibs_host host = { .caps = 1 };
		const char *why = NULL;
		int err = op_ibs_host_make(&cases[i].cpuid, cases[i].pmu_types, &host, &why);

		assert_int_equal(err, cases[i].why ? -ENODEV : 0);
		if (cases[i].why)
			assert_non_null(strstr(why, cases[i].why));
		else
			assert_int_equal(!(host.caps & OP_IBS_CAP_FETCH), !cases[i].pmu_types[OP_IBS_FETCH]);
	}
}

/* ---- lists of events ---- */

static void lists(void **state OP_UNUSED)
{
	struct op_event wanted[] = { derive("IBS_OP_LOAD:100000"), { .name = "TIMER", .count = 1000000 },
				     derive("IBS_FETCH_ALL:50000"), derive("IBS_OP_STORE:100000") };
	struct op_event_list list;
	char *why = NULL;

	assert_int_equal(op_event_list_make(wanted, op_array_size(wanted), &list, &why), 0);
	assert_int_equal(list.nr_opened, 3);
	assert_int_equal(list.nr_events, 7);
	assert_int_equal(op_event_nr_opened(list.events, list.nr_events), 3);
	assert_string_equal(list.events[0].name, "TIMER");
	for (size_t i = 1; i < list.nr_opened; i++) {
		const struct op_event *sampler = &list.events[i];
		bool is_op = sampler->sampler.kind == OP_IBS_OP;

		assert_string_equal(sampler->name, is_op ? "ibs_op" : "ibs_fetch");
		assert_int_equal(sampler->end_derived - sampler->first_derived, is_op ? 2 : 1);
		assert_int_equal(!sampler->memory, !is_op);
		for (uint32_t d = sampler->first_derived; d < sampler->end_derived; d++)
			assert_int_equal(list.events[d].derived->kind, sampler->sampler.kind);
	}
	op_event_list_free(&list);
	wanted[3] = derive("IBS_OP_STORE:200000");
	assert_int_equal(op_event_list_make(wanted, op_array_size(wanted), &list, &why), -EINVAL);
	assert_non_null(strstr(why, "count"));
	free(why);
}

static void open_sampler(struct op_event_list *list, uint64_t count, uint32_t unit_mask)
{
	struct op_event sampler = { .name = "ibs_op", .count = count, .unit_mask = unit_mask, .role = OP_EVENT_SAMPLER };

	assert_int_equal(op_event_list_open(list, &sampler), 0);
}

/* Two requests with the same files are one event: a file is opened once. */
static void samplers_share_a_memory_view(void **state OP_UNUSED)
{
	struct op_event_list list = { .events = NULL };

	open_sampler(&list, COUNT, 1);
	open_sampler(&list, COUNT, 1);
	open_sampler(&list, COUNT, 0);
	open_sampler(&list, 2 * COUNT, 1);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(op_event_list_add_memory(&list, i), 0);
	assert_int_equal(list.nr_events, 4 + 3);
	assert_int_equal(list.events[0].memory, 4);
	assert_int_equal(list.events[1].memory, 4);
	assert_int_equal(list.events[2].memory, 5);
	assert_int_equal(list.events[3].memory, 6);
	op_event_list_free(&list);
}

static void attributes_both_ways(void **state OP_UNUSED)
{
	static const char *const specs[] = { "IBS_OP_LOAD:100000:0", "IBS_OP_LOAD:250000:1:l3miss",
					     "IBS_FETCH_ALL:160:rand:l3miss" };

	for (size_t i = 0; i < op_array_size(specs); i++) {
		struct op_event event = derive(specs[i]);
		struct op_ibs_sampler read = { .kind = event.sampler.kind };
		struct perf_event_attr attr = { 0 };

		op_event_attr(&event, &attr);
		assert_int_equal(attr.type, pmu_types[event.sampler.kind]);
		op_ibs_attr_read(&attr, &read);
		assert_int_equal(read.count, event.sampler.count);
		assert_int_equal(read.unit_mask, event.sampler.unit_mask);
		assert_int_equal(read.filter.l3_miss_only, event.sampler.filter.l3_miss_only);
		assert_int_equal(read.filter.random, event.sampler.filter.random);
	}
}

/* ---- buckets ---- */

static unsigned int bucket_of(uint16_t latency)
{
	const struct op_ibs ibs = { .kind = OP_IBS_OP, .has = OP_IBS_HAS_LATENCY, .latency = latency };
	struct op_memory_view_add adds[OP_MEM_ADDS_MAX];

	assert_int_equal(op_memory_view_adds(&ibs, adds), latency ? 2 : 1);
	assert_in_range(adds[0].fact, OP_MEM_LATENCY, UINT8_MAX);
	return adds[0].fact - OP_MEM_LATENCY;
}

static void buckets(void **state OP_UNUSED)
{
	unsigned int before = 0;

	for (uint32_t latency = 0; latency <= UINT16_MAX; latency++) {
		unsigned int bucket = bucket_of((uint16_t)latency);
		uint32_t last = op_memory_view_bucket_last(bucket);

		assert_true(bucket < OP_MEM_NR_BUCKETS && (bucket == before || bucket == before + 1));
		assert_true(last >= latency && last - latency <= latency / 8);
		assert_true(latency > 15 || last == latency);
		before = bucket;
	}
	assert_int_equal(before, OP_MEM_NR_BUCKETS - 1);
	assert_true(op_memory_view_offset(op_memory_view_key(UINT64_C(0xffffffff81000010), OP_MEM_BRANCH)) ==
		    UINT64_C(0xffffffff81000010));
	assert_int_equal(op_memory_view_offset(op_memory_view_key(0x1234, UINT8_MAX)), 0x1234);
}

/* ---- the pipeline ---- */

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct op_event_list events;
static char dir[BOX_PATH_BYTES];

static int ibs_setup(void **state OP_UNUSED)
{
	struct op_event wanted[] = { derive("IBS_OP_ALL:100000"), derive("IBS_OP_LOAD:100000"),
				     derive("IBS_OP_DC_LOAD_LAT:100000") };
	char *why = NULL;

	memset(&pipeline, 0, sizeof(pipeline));
	memset(&cpu, 0, sizeof(cpu));
	if (op_event_list_make(wanted, op_array_size(wanted), &events, &why) < 0)
		return -1;
	cpu.events = calloc(events.nr_events, sizeof(*cpu.events));
	cpu.events[0].id = OP_ID;
	cpu.online = true;
	cpu.source = &opd_source_kernel;
	memory_ring_init(&cpu.pair.rings[0]);
	pipeline.capture = (struct opd_capture){
		.events = events.events,
		.nr_events = events.nr_events,
		.nr_opened = events.nr_opened,
		.cpus = &cpu,
		.nr_cpus = 1,
	};
	op_ibs_cpu_init(zen4.family, zen4.model, &pipeline.ibs.cpu);
	return pipeline_begin(&pipeline, dir);
}

static int ibs_teardown(void **state OP_UNUSED)
{
	memory_ring_free(&cpu.pair.rings[0]);
	free(cpu.events);
	op_event_list_free(&events);
	return pipeline_end(&pipeline, dir);
}

/*
 * A record that states raw_bytes, with as many words behind the capability word as fit, at most
 * nr_words.
 */
static void give(uint64_t control, uint64_t data, uint64_t data3, uint32_t caps, uint32_t raw_bytes, size_t nr_words)
{
	uint64_t words[5 + OP_WORDS + 2] = { OP_ID, NEVER, 0, 1000, PAIR(raw_bytes, htole32(caps)),
					     control, NEVER + 0x10, data, DRAM, data3 | UINT64_C(300) << 32 };

	for (size_t i = 5; i < op_array_size(words); i++)
		words[i] = htole64(words[i]);
	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 5 + nr_words));
}

static void drain(void)
{
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

static const struct opd_event *account(const char *name)
{
	size_t i = 0;

	while (i < events.nr_events && strcmp(events.events[i].name, name) != 0)
		i++;
	assert_true(i < events.nr_events);
	return &cpu.events[i];
}

static void samples_are_derived(void **state OP_UNUSED)
{
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	give(OP_CTL_VAL, RIP_INVALID, LOAD_MISS, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	give(OP_CTL_VAL, 0, 0, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	drain();
	assert_int_equal(account("ibs_op")->received, 3);
	assert_int_equal(account("ibs_op")->stored, 3);
	assert_int_equal(account("IBS_OP_ALL")->stored, 3);
	assert_int_equal(account("IBS_OP_LOAD")->stored, 2);
	assert_int_equal(account("IBS_OP_DC_LOAD_LAT")->stored, 600);
	assert_int_equal(pipeline.count.nr_memory_dropped, 0);
	assert_int_equal(pipeline.ibs.counts[OP_IBS_OP].by_reason[OP_IBS_OK], 3);
}

/*
 * The image filter drops samples of IBS and their facts like all others. The samples of the sampler
 * are decoded all the same.
 */
static void samples_of_unwanted_images_are_filtered(void **state OP_UNUSED)
{
	static const char *const lists[] = { "no-process", "/no/such" };

	for (size_t i = 0; i < op_array_size(lists); i++) {
		struct opd_image_filter *filter = opd_image_filter_new(lists[i]);

		assert_non_null(filter);
		pipeline.count.filter = filter;
		give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS, OP_BYTES, OP_WORDS);
		drain();
		opd_count_close_files(&pipeline.count);
		op_dcookie_row(pipeline.resolver.table, pipeline.resolver.pseudo[OPD_PSEUDO_NO_PROCESS])->wanted =
			OP_DCOOKIE_NOT_ASKED;
		pipeline.count.filter = NULL;
		opd_image_filter_free(filter);
	}
	assert_int_equal(account("ibs_op")->stored, 2);
	assert_int_equal(account("IBS_OP_LOAD")->stored, 1);
	assert_int_equal(account("IBS_OP_LOAD")->filtered, 1);
	assert_int_equal(account("IBS_OP_DC_LOAD_LAT")->received, 600);
	assert_int_equal(account("IBS_OP_DC_LOAD_LAT")->filtered, 300);
	assert_int_equal(pipeline.count.nr_memory_dropped, 0);
}

static void useless_records_are_counted(void **state OP_UNUSED)
{
	static const struct {
		uint64_t control;
		uint32_t caps, raw_bytes;
		size_t nr_words;
		enum op_ibs_reason reason;
	} cases[] = {
		{ OP_CTL_VAL, ZEN4_CAPS, 28, 3, OP_IBS_SHORT },
		{ OP_CTL_VAL, ZEN4_CAPS, 36, 4, OP_IBS_SHORT },
		{ OP_CTL_VAL, ZEN4_CAPS, 61, OP_WORDS, OP_IBS_UNEVEN },
		{ OP_CTL_VAL, ZEN4_CAPS, 76, OP_WORDS + 1, OP_IBS_EXTRA },
		{ OP_CTL_VAL, ZEN4_CAPS & ~1u, OP_BYTES, OP_WORDS, OP_IBS_NO_CAPS },
		{ 0, ZEN4_CAPS, OP_BYTES, OP_WORDS, OP_IBS_NOT_VALID },
		{ OP_CTL_VAL, ZEN4_CAPS, OP_BYTES, 3, OP_IBS_CUT },
		{ OP_CTL_VAL, ZEN4_CAPS, UINT32_MAX, OP_WORDS, OP_IBS_CUT },
	};
	uint64_t nr = 0;

	for (size_t i = 0; i < op_array_size(cases); i++) {
		uint64_t before = pipeline.ibs.counts[OP_IBS_OP].by_reason[cases[i].reason];

		give(cases[i].control, 0, LOAD_MISS, cases[i].caps, cases[i].raw_bytes, cases[i].nr_words);
		drain();
		assert_int_equal(pipeline.ibs.counts[OP_IBS_OP].by_reason[cases[i].reason], before + 1);
		assert_int_equal(account("ibs_op")->lost[OP_LOSS_undecodable], ++nr);
	}
	/*
	 * With 60 bytes a word is missing. With 76 bytes and one more capability nothing is wrong.
	 * An unknown bit does no harm.
	 */
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS, 60, OP_WORDS - 1);
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS | OP_IBS_CAP_OP_DATA4, 76, OP_WORDS + 1);
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS | 1u << 25, 76, OP_WORDS + 1);
	drain();
	assert_int_equal(account("ibs_op")->stored, 3);
	assert_int_equal(account("IBS_OP_LOAD")->stored, 3);
	assert_int_equal(account("ibs_op")->received, nr + 3);
	assert_int_equal(pipeline.ibs.counts[OP_IBS_OP].missing, 1);
	assert_int_equal(pipeline.ibs.counts[OP_IBS_OP].unknown_caps, 1);
}

static void the_memory_view_has_a_limit(void **state OP_UNUSED)
{
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	drain();
	assert_true(pipeline.count.nr_memory_nodes > 0);
	pipeline.count.nr_memory_nodes = OPD_MEMORY_NODES_MAX;
	give(OP_CTL_VAL, 0, LOAD_MISS, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	drain();
	assert_int_equal(pipeline.count.nr_memory_dropped, 0);
	give(OP_CTL_VAL, 0, 2, ZEN4_CAPS, OP_BYTES, OP_WORDS);
	drain();
	assert_int_equal(pipeline.count.nr_memory_dropped, 1);
	assert_int_equal(account("ibs_op")->stored, 3);
	assert_int_equal(pipeline.count.nr_memory_nodes, OPD_MEMORY_NODES_MAX);
}

/* ---- calls ---- */

static uint64_t image(const char *name)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = name }, .inode = 7 };

	return op_dcookie_get(pipeline.resolver.table, &id);
}

static void call(const char *name, uint32_t amount)
{
	const struct opd_resolved callee = { .location = { image("/bin/callee"), 0x20 } };
	struct opd_resolved resolved = { .location = { image("/bin/caller"), 0x10 } };
	struct opd_counted counted = { .resolved = &resolved, .amount = amount };

	while (strcmp(events.events[counted.event].name, name) != 0)
		counted.event++;
	counted.account = &cpu.events[counted.event];
	opd_count_call(&pipeline.count, &counted, &callee);
}

static void remove_current(void)
{
	char command[BOX_PATH_BYTES + 64];

	snprintf(command, sizeof(command), "rm -r %s/samples/current/*", dir);
	assert_int_equal(system(command), 0);
}

/* The calls of an event that adds up cycles are counted one by one, not in cycles. */
static void calls_are_no_cycles(void **state OP_UNUSED)
{
	const uint64_t *arcs = pipeline.count.arcs;

	call("IBS_OP_DC_LOAD_LAT", 300);
	call("IBS_OP_DC_LOAD_LAT", 200);
	opd_count_flush(&pipeline.count);
	assert_int_equal(arcs[OP_ARC_stored], 2);
	call("IBS_OP_LOAD", 1);
	call("IBS_OP_LOAD", 1);
	call("IBS_OP_DC_LOAD_LAT", 100);
	opd_count_flush(&pipeline.count);
	assert_int_equal(arcs[OP_ARC_stored], 5);
	remove_current();
	assert_true(opd_count_check_files(&pipeline.count, false));
	assert_int_equal(arcs[OP_ARC_lost_io_error], 2 + 1);
	assert_int_equal(arcs[OP_ARC_stored], 2);
}

/* ---- the ledger of a session ---- */

static void ledgers_know_samplers(void **state OP_UNUSED)
{
	struct op_ledger_event sampler = { .name = "ibs_op", .count = COUNT, .role = OP_EVENT_SAMPLER };
	struct op_ledger_event derived = { .name = "IBS_OP_LOAD", .count = COUNT, .role = OP_EVENT_DERIVED };
	struct op_ledger_event second = { .name = "IBS_OP_DC_LOAD_LAT_2", .count = COUNT, .role = OP_EVENT_DERIVED };
	struct op_session_ledger ledger = { .ended = OP_SESSION_stopped }, read;
	struct op_text text = { 0 };
	int fd;

	op_session_ledger_row(&ledger, &sampler)->stored = 5;
	op_session_ledger_row(&ledger, &derived)->stored = 3;
	op_session_ledger_row(&ledger, &second)->stored = 900;
	op_session_ledger_format(&ledger, &text);
	fd = openat(pipeline.count.session_fd, OP_SESSION_LEDGER, O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, text.data, text.length), text.length);
	close(fd);
	assert_int_equal(op_session_ledger_read(pipeline.count.session_fd, &read, NULL), 0);
	assert_int_equal(read.nr_events, 3);
	assert_int_equal(read.events[2].role, OP_EVENT_DERIVED);
	assert_int_equal(read.events[0].role, OP_EVENT_SAMPLER);
	assert_int_equal(read.events[0].stored, 5);
	assert_int_equal(read.events[1].role, OP_EVENT_DERIVED);
	op_session_ledger_free(&read);
	op_session_ledger_free(&ledger);
	op_text_free(&text);
}

/* A session whose ledger is lost has sample files of a second event of the name. */
static void sums_know_derived_events(void **state OP_UNUSED)
{
	static const char path[] = "{root}/bin/x/{dep}/{root}/bin/x/IBS_OP_DC_LOAD_LAT_2.100000.1.all.all.all";
	const struct op_odb_header header = { .magic = OP_ODB_MAGIC, .version = OP_ODB_VERSION };
	struct op_session_ledger sums = { 0 };
	struct op_odb *odb;
	uint64_t nr_bad;

	assert_int_equal(op_odb_open(pipeline.count.session_fd, path, "tmp/sample", &header, &odb), 0);
	assert_int_equal(op_odb_add(odb, 0x10, 300), 0);
	op_odb_close(odb);
	assert_int_equal(op_session_ledger_add_files(&sums, pipeline.count.session_fd, &nr_bad), 0);
	assert_int_equal(nr_bad, 0);
	assert_int_equal(sums.nr_events, 1);
	assert_int_equal(sums.events[0].stored, 300);
	assert_int_equal(sums.events[0].role, OP_EVENT_DERIVED);
	op_session_ledger_free(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),
		cmocka_unit_test(lists),
		cmocka_unit_test(samplers_share_a_memory_view),
		cmocka_unit_test(attributes_both_ways),
		cmocka_unit_test(buckets),
		cmocka_unit_test_setup_teardown(samples_are_derived, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(samples_of_unwanted_images_are_filtered, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(useless_records_are_counted, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(the_memory_view_has_a_limit, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(calls_are_no_cycles, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(ledgers_know_samplers, ibs_setup, ibs_teardown),
		cmocka_unit_test_setup_teardown(sums_know_derived_events, ibs_setup, ibs_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
