/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the ledger says after an overflow: with a kernel that counts the losses of each event, and
 * with a kernel before 6.0, which refuses PERF_FORMAT_LOST and has only LOST records. Also a CPU
 * that goes offline while it is opened. Real rings; the events belong to this thread, so the test
 * knows each sample.
 */
#include <sys/wait.h>

#include "libop/base/clock.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/ledger/event_sums.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/kernel_events.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/pipeline.h"

#define RING_BYTES  4096u
#define FAULTS_MIN  (200 - RING_BYTES / 40) /* at least so many of 200 are lost */
#define NR_CHILDREN 200 /* two records each, of 56 bytes at least */
/* of a few hundred faults, at most: the kernel counts them without a sample (doc/ring.md) */
#define NOT_SAMPLED 3

enum { FAULTS, SWITCHES, NR_EVENTS };

static struct {
	struct opd_pipeline pipeline;
	struct op_event events[NR_EVENTS];
	struct opd_cpu *cpu; /* the CPU of this thread */
	struct faults faults;
	struct op_ring synthetic;
	struct op_config config;
	char dir[BOX_PATH_BYTES];
	bool before_6_0;
	unsigned int refused;
	uint64_t time_divisor; /* a counter has each event for this part of the time; 0: always */
} box;

/* A CPU that goes offline while its events are opened. */
static struct {
	bool goes;
	bool without_pmu; /* only sampling events are refused */
	bool comes_back;  /* at once */
	bool is_coming;   /* it has its number already */
	uint32_t cpu;
	/* events that are opened before it goes, and after it */
	unsigned int nr_before, nr_refused;
	uint64_t nr_reopened;
} away;

int __real_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

ssize_t __real_op_sys_read(int fd, void *data, size_t nr_bytes);
ssize_t __wrap_op_sys_read(int fd, void *data, size_t nr_bytes);

/* The counts of an event: value, time_enabled, time_running, and lost since Linux 6.0. */
ssize_t __wrap_op_sys_read(int fd, void *data, size_t nr_bytes)
{
	ssize_t nr = __real_op_sys_read(fd, data, nr_bytes);
	uint64_t *counts = data;

	if (box.time_divisor && nr >= (ssize_t)(3 * sizeof(*counts)))
		counts[2] = counts[1] / box.time_divisor;
	return nr;
}

uint64_t __real_opd_cpu_online_id(uint32_t cpu);
uint64_t __wrap_opd_cpu_online_id(uint32_t cpu);

uint64_t __wrap_opd_cpu_online_id(uint32_t cpu)
{
	return __real_opd_cpu_online_id(cpu) + away.nr_reopened;
}

static bool refuses(const struct perf_event_attr *attr, int cpu)
{
	if (!away.goes || cpu != (int)away.cpu || (away.without_pmu && attr->config == PERF_COUNT_SW_DUMMY))
		return false;
	if (away.nr_before) {
		away.nr_before--;
		return false;
	}
	away.nr_refused++;
	away.goes = !away.comes_back;
	away.nr_reopened += away.comes_back && !away.is_coming;
	return true;
}

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	if (refuses(attr, cpu))
		return -ENODEV;
	if (box.before_6_0 && attr->read_format & PERF_FORMAT_LOST) {
		box.refused++;
		return -EINVAL;
	}
	if (attr->config != PERF_COUNT_SW_DUMMY)
		pid = 0;
	return __real_op_sys_perf_event_open(attr, pid, cpu, group_fd, flags);
}

static int open_box(bool before_6_0)
{
	static const char *const specs[NR_EVENTS] = { [FAULTS] = "page-faults:1", [SWITCHES] = "context-switches:1" };
	struct opd_capture *capture = &box.pipeline.capture;
	uint32_t cpu = (uint32_t)pin_to_a_cpu();
	char *why = NULL;

	memset(&box, 0, sizeof(box));
	memset(&away, 0, sizeof(away));
	box.before_6_0 = before_6_0;
	for (size_t i = 0; i < NR_EVENTS; i++)
		assert_int_equal(op_event_parse(specs[i], &box.events[i], &why), 0);
	assert_int_equal(op_config_init(&box.config), 0);
	box.config.ring_bytes = box.config.sideband_bytes = RING_BYTES;
	assert_int_equal(opd_capture_open(capture, &box.config, box.events, NR_EVENTS, false, 0, &why), 0);
	for (size_t i = 0; i < capture->nr_cpus; i++)
		if (capture->cpus[i].cpu == cpu)
			box.cpu = &capture->cpus[i];
	assert_non_null(box.cpu);
	faults_open(&box.faults);
	memory_ring_init(&box.synthetic);
	return pipeline_begin(&box.pipeline, box.dir);
}

static int capture_setup(void **state)
{
	(void)state;
	return open_box(false);
}

static int setup_before_6_0(void **state)
{
	(void)state;
	return open_box(true);
}

static int capture_teardown(void **state)
{
	(void)state;
	memory_ring_free(&box.synthetic);
	faults_close(&box.faults);
	opd_capture_close(&box.pipeline.capture);
	op_config_free(&box.config);
	return pipeline_end(&box.pipeline, box.dir);
}

static void enable(size_t index, bool on)
{
	assert_int_equal(op_sys_ioctl(box.cpu->events[index].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL), 0);
}

static void take_faults(uint64_t nr)
{
	enable(FAULTS, true);
	faults_take(&box.faults, nr);
	enable(FAULTS, false);
	faults_forget(&box.faults);
}

static void take_a_switch(void)
{
	enable(SWITCHES, true);
	switch_context();
	enable(SWITCHES, false);
}

static void visit(void)
{
	assert_int_equal(op_ring_pair_swap(&box.cpu->pair), 0);
	opd_drain_ring(&box.pipeline, box.cpu, op_ring_pair_read_ring(&box.cpu->pair));
}

static struct op_ledger_event ledger(size_t index)
{
	struct op_ledger_event sum;

	opd_sum_event(&box.pipeline.capture, index, &sum);
	return sum;
}

static void check_ledger(size_t index, uint64_t lost_kernel, uint64_t outstanding)
{
	struct op_ledger_event event = ledger(index);

	assert_int_equal(event.received, box.cpu->events[index].received);
	assert_int_equal(event.lost_kernel, lost_kernel);
	assert_in_range(event.outstanding, outstanding, outstanding + NOT_SAMPLED);
}

/* The event counts the loss as soon as the sample is lost. */
static void a_kernel_that_counts_is_believed(void **state)
{
	struct op_ledger_event event;

	(void)state;
	assert_true(box.pipeline.capture.has_format_lost);
	take_faults(200);
	visit();
	event = ledger(FAULTS);
	assert_true(event.lost_kernel >= FAULTS_MIN);
	assert_in_range(event.taken - event.received - event.lost_kernel, 0, NOT_SAMPLED);
	take_a_switch(); /* goes to the other ring */
	visit();
	take_a_switch(); /* reports the loss of the faults under its own name */
	visit();
	assert_int_equal(box.cpu->events[SWITCHES].lost_records, event.lost_kernel);
	check_ledger(FAULTS, event.lost_kernel, 0);
	check_ledger(SWITCHES, 0, 0);
}

/* A loss is outstanding until the kernel writes again to the ring that had it. */
static void records_are_believed_before_6_0(void **state)
{
	struct op_ledger_event event;
	uint64_t lost;

	(void)state;
	assert_false(box.pipeline.capture.has_format_lost);
	assert_int_equal(box.refused, 1);
	take_faults(200);
	visit();
	event = ledger(FAULTS);
	assert_true(event.outstanding >= FAULTS_MIN);
	assert_int_equal(event.lost_kernel, 0);
	assert_int_equal(event.taken, event.received + event.outstanding);
	take_faults(1);
	visit(); /* that was the other ring */
	check_ledger(FAULTS, 0, event.outstanding);
	take_faults(1);
	visit();
	lost = box.cpu->events[FAULTS].lost_records;
	assert_in_range(lost, event.outstanding - NOT_SAMPLED, event.outstanding);
	check_ledger(FAULTS, lost, 0);
}

/*
 * With several events the sum is right. The event that found room has the losses of the others in
 * its row.
 */
static void before_6_0_the_sum_of_the_events_is_right(void **state)
{
	uint64_t lost, taken = 0, accounted = 0;

	(void)state;
	take_faults(200);
	visit();
	for (int i = 0; i < 2; i++) {
		take_a_switch();
		visit();
	}
	lost = box.cpu->events[SWITCHES].lost_records;
	assert_true(lost >= FAULTS_MIN);
	check_ledger(FAULTS, 0, lost);
	check_ledger(SWITCHES, lost, 0);
	for (size_t i = 0; i < NR_EVENTS; i++) {
		struct op_ledger_event event = ledger(i);

		taken += event.taken;
		accounted += event.received + event.lost_kernel;
	}
	assert_in_range(taken - accounted, 0, NOT_SAMPLED);
}

static void lose_samples(uint64_t nr)
{
	uint64_t id = box.cpu->events[FAULTS].id, words[] = { nr, 0, 0, id };

	assert_true(memory_ring_record(&box.synthetic, PERF_RECORD_LOST_SAMPLES, 0, words, op_array_size(words)));
	opd_drain_ring(&box.pipeline, box.cpu, &box.synthetic);
}

/* These samples never asked for room, so neither PERF_FORMAT_LOST nor LOST records count them. */
static void lost_samples_are_added(void **state)
{
	char *why = NULL;
	uint64_t lost;

	(void)state;
	take_faults(200);
	for (int i = 0; i < 2; i++) {
		visit();
		take_faults(1);
	}
	visit();
	lost = ledger(FAULTS).lost_kernel;
	assert_true(lost >= FAULTS_MIN);
	lose_samples(30);
	lose_samples(3);
	assert_int_equal(ledger(FAULTS).lost_kernel, lost + 33);
	opd_capture_reset_ledger(&box.pipeline.capture);
	check_ledger(FAULTS, 0, 0);
	lose_samples(7);
	assert_int_equal(ledger(FAULTS).lost_kernel, 7);
	opd_capture_cpu_close(&box.pipeline.capture, box.cpu);
	assert_int_equal(ledger(FAULTS).lost_kernel, 7);
	assert_int_equal(opd_capture_cpu_open(&box.pipeline.capture, box.cpu, &why), 0);
	assert_int_equal(ledger(FAULTS).lost_kernel, 7);
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, capture_teardown)

static void run_children(size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

static struct opd_sideband_loss drain_sideband(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&box.pipeline.capture, &box.pipeline.resolver, op_now_ns(), &loss), 0);
	return loss;
}

/*
 * The kernel writes a LOST record when there is room again and another record comes. That may never
 * happen.
 */
static void what_the_side_band_lost_is_known_before_it_is_told(void **state)
{
	const struct opd_cpu *cpu = box.cpu;
	uint64_t counts[4], nr_lost; /* value, time_enabled, time_running, lost */

	(void)state;
	run_children(NR_CHILDREN);
	assert_int_equal(op_sys_read(cpu->sideband_fd, counts, sizeof(counts)), sizeof(counts));
	nr_lost = counts[3];
	assert_true(nr_lost > NR_CHILDREN / 2);
	assert_true(drain_sideband().nr_lost >= nr_lost);
	assert_true(cpu->sideband_lost >= nr_lost);
	run_children(1);
	drain_sideband();
	assert_true(cpu->sideband_reported >= nr_lost);
	assert_int_equal(cpu->sideband_lost, op_max_u64(cpu->sideband_known, cpu->sideband_reported));
}

static void expect_share(double share)
{
	struct op_ledger_event event = ledger(FAULTS);

	assert_true(event.enabled_ns > 0);
	assert_float_equal(op_ledger_counted_share(&event), share, 0.001);
}

/* More events than counters: the ledger says for which part of the time each was counted. */
static void the_time_without_a_counter_is_told(void **state)
{
	struct opd_capture *capture = &box.pipeline.capture;
	struct op_ledger_event event;

	(void)state;
	take_faults(2);
	expect_share(1);
	box.time_divisor = 4;
	expect_share(0.25);
	visit();
	opd_capture_reset_ledger(capture);
	take_faults(2);
	expect_share(0.25);
	opd_capture_cpu_close(capture, box.cpu);
	box.time_divisor = 0;
	expect_share(0.25);
	opd_capture_reset_ledger(capture);
	event = ledger(FAULTS);
	assert_int_equal(event.enabled_ns, 0);
	assert_float_equal(op_ledger_counted_share(&event), 1, 0);
}

#define NR_OPENED (3 + NR_EVENTS) /* on a CPU: two anchors, the side band, the events */

static void check_closed(const struct opd_cpu *cpu, size_t nr_online)
{
	assert_false(cpu->online);
	assert_int_equal(box.pipeline.capture.nr_online, nr_online);
	assert_int_equal(cpu->sideband_fd, -1);
	assert_int_equal(cpu->pair.anchor_fds[0], -1);
	for (size_t i = 0; i < NR_EVENTS; i++)
		assert_int_equal(cpu->events[i].fd, -1);
}

/* The CPU goes offline at each of its events in turn. It may be back already. */
static void a_cpu_that_goes_while_it_is_opened_is_offline(void **state)
{
	struct opd_capture *capture = &box.pipeline.capture;
	size_t nr_others = capture->nr_online - 1;
	char *why = NULL;

	(void)state;
	opd_capture_cpu_close(capture, box.cpu);
	for (unsigned int i = 0; i < 2 * NR_OPENED; i++) {
		away.cpu = box.cpu->cpu;
		away.goes = true;
		away.comes_back = i >= NR_OPENED;
		away.nr_before = i % NR_OPENED;
		assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), 0);
		assert_null(why);
		check_closed(box.cpu, nr_others);
	}
	away.goes = false;
	assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), 0);
	assert_true(box.cpu->online);
	assert_int_equal(capture->nr_online, nr_others + 1);
}

/* It has its number some time before it is online. */
static void a_cpu_that_is_coming_while_it_is_opened_is_offline(void **state)
{
	struct opd_capture *capture = &box.pipeline.capture;
	size_t nr_others = capture->nr_online - 1;
	char *why = NULL;

	(void)state;
	opd_capture_cpu_close(capture, box.cpu);
	for (unsigned int i = 0; i < NR_OPENED - NR_EVENTS; i++) {
		away.cpu = box.cpu->cpu;
		away.goes = away.comes_back = away.is_coming = true;
		away.nr_before = i;
		assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), 0);
		assert_null(why);
		check_closed(box.cpu, nr_others);
	}
	assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), 0);
	assert_true(box.cpu->online);
}

static void a_cpu_that_goes_while_all_are_opened_is_offline(void **state)
{
	struct opd_capture *capture = &box.pipeline.capture;
	size_t nr_others = capture->nr_online - 1, index = (size_t)(box.cpu - capture->cpus);
	char *why = NULL;

	(void)state;
	away.cpu = box.cpu->cpu;
	for (unsigned int i = 0; i < NR_OPENED; i++) {
		opd_capture_close(capture);
		away.goes = true;
		/* for the first CPU, the cost of a swap is measured before */
		away.nr_before = i + 3;
		away.nr_refused = 0;
		assert_int_equal(opd_capture_open(capture, &box.config, box.events, NR_EVENTS, false, 0, &why), 0);
		box.cpu = &capture->cpus[index];
		if (away.nr_refused)
			check_closed(box.cpu, nr_others);
	}
	away.goes = false;
	assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), 0);
	assert_true(box.cpu->online);
}

/* The CPU has the same number and is online. */
static void an_event_that_a_cpu_has_not_is_an_error(void **state)
{
	struct opd_capture *capture = &box.pipeline.capture;
	char *why = NULL;

	(void)state;
	opd_capture_cpu_close(capture, box.cpu);
	away.cpu = box.cpu->cpu;
	away.goes = away.without_pmu = true;
	assert_int_equal(opd_capture_cpu_open(capture, box.cpu, &why), -ENODEV);
	assert_non_null(strstr(why, "page-faults"));
	free(why);
	opd_capture_close(capture);
	why = NULL;
	assert_int_equal(opd_capture_open(capture, &box.config, box.events, NR_EVENTS, false, 0, &why), -ENODEV);
	assert_non_null(why);
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_time_without_a_counter_is_told, capture_setup),
		TEST(a_kernel_that_counts_is_believed, capture_setup),
		TEST(records_are_believed_before_6_0, setup_before_6_0),
		TEST(before_6_0_the_sum_of_the_events_is_right, setup_before_6_0),
		TEST(what_the_side_band_lost_is_known_before_it_is_told, capture_setup),
		TEST(lost_samples_are_added, capture_setup),
		TEST(a_cpu_that_goes_while_it_is_opened_is_offline, capture_setup),
		TEST(a_cpu_that_is_coming_while_it_is_opened_is_offline, capture_setup),
		TEST(a_cpu_that_goes_while_all_are_opened_is_offline, capture_setup),
		TEST(an_event_that_a_cpu_has_not_is_an_error, capture_setup),
		TEST(lost_samples_are_added, setup_before_6_0),
	};

	if (!kernel_events_allowed())
		return 77;
	return cmocka_run_group_tests_name("capture_loss", tests, NULL, NULL);
}
