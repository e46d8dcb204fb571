/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A turn of the sync thread: all CPUs, and what is to be done now and then: CPUs that come and go, pruning, what the log should say. */
#include <errno.h>

#include "daemon/capture/cpus.h"
#include "daemon/capture/kernel_source.h"
#include "daemon/count/jit_objects.h"
#include "daemon/resolve/resolver.h"
#include "libop/base/log.h"
#include "daemon/resolve/proc_scan.h"
#include "daemon/sync.h"
#include "daemon/unwritten.h"
#include "libop/base/clock.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define PRUNE_INTERVAL_NS      OP_NS_PER_S
#define BOOK_INTERVAL_NS       (10u * (uint64_t)OP_NS_PER_S)
#define RATE_CHECK_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)
#define TRIM_INTERVAL_NS       (5u * (uint64_t)OP_NS_PER_S)
#define TRIM_SPACES            256 /* of addresses, that were forgotten since the last time */
#define MAX_SAMPLE_RATE_PATH   "/proc/sys/kernel/perf_event_max_sample_rate"

/* ---- CPUs that come and go ---- */

static void take_leave(struct opd_sync *sync, struct opd_cpu *cpu)
{
	opd_visit_rest(&sync->visits, cpu);
	opd_capture_cpu_close(&sync->pipeline->capture, cpu);
	op_log_with(OP_LOG_NOTICE, &(struct op_log_field){ .name = "OPD_CPU", .number = cpu->cpu }, 1,
		     "CPU %u went offline: its samples are taken", cpu->cpu);
}

/* What happened on the CPU before its side band was open is in /proc. */
static void welcome(struct opd_sync *sync, size_t index)
{
	static struct op_rate rate;
	struct opd_cpu *cpu = &sync->pipeline->capture.cpus[index];
	uint64_t now_ns = op_now_ns(), suppressed;
	char *why = NULL;
	int err = opd_capture_cpu_open(&sync->pipeline->capture, cpu, &why);

	if (!err && !cpu->online)
		return; /* it went again */
	if (!err)
		err = opd_sync_watch_cpu(sync, index);
	if (!err)
		opd_visits_missed(&sync->visits, sync->horizon_ns);
	if (!err)
		op_log_with(OP_LOG_NOTICE, &(struct op_log_field){ .name = "OPD_CPU", .number = cpu->cpu }, 1, "CPU %u came online",
			     cpu->cpu);
	else if (op_rate_allows(&rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "CPU %u came online: %s", cpu->cpu, why ? why : strerror(-err));
	free(why);
}

/* Between two looks it went and came back: the kernel has taken its events off for good, and says so to nobody. */
static bool has_been_away(const struct opd_cpu *cpu)
{
	uint64_t stay = opd_cpu_stay(cpu->cpu);

	return stay && stay != cpu->stay;
}

static void check_hotplug(struct opd_sync *sync)
{
	struct opd_capture *capture = &sync->pipeline->capture;
	uint32_t *online;
	size_t nr_online;

	if (opd_cpus_online(&online, &nr_online) < 0)
		return;
	for (size_t i = 0; i < capture->nr_cpus; i++) {
		bool is_online = opd_cpus_has(online, nr_online, capture->cpus[i].cpu);

		if (!capture->cpus[i].source->is_host)
			continue;
		if (capture->cpus[i].online && (!is_online || has_been_away(&capture->cpus[i])))
			take_leave(sync, &capture->cpus[i]);
		if (!capture->cpus[i].online && is_online)
			welcome(sync, i);
	}
	free(online);
}

/* The kernel lowers its limit when interrupts take long; samples are then throttled, and the user should know why. */
static void check_sample_rate(struct opd_sync *sync)
{
	FILE *file = fopen(MAX_SAMPLE_RATE_PATH, "re");
	unsigned long long rate;

	if (!file)
		return;
	if (fscanf(file, "%llu", &rate) == 1) {
		if (sync->max_sample_rate && rate < sync->max_sample_rate)
			op_log(OP_LOG_WARNING,
				"the kernel lowered kernel.perf_event_max_sample_rate from %llu to %llu: interrupts took long",
				(unsigned long long)sync->max_sample_rate, rate);
		sync->max_sample_rate = rate;
	}
	fclose(file);
}

/* Where not all files are known what the others have lost is found by adding all of them up; as long as that cannot be done it waits for the next file that is missed. */
static void recount(struct opd_sync *sync)
{
	static struct op_rate rate;
	int err = sync->pipeline->count.limit.strangers ? opd_ledger_recount(&sync->pipeline->ledger) : 0;

	if (err)
		op_log_failure(&rate, op_now_ns(), "adding up the files of " OP_SESSION_CURRENT, err);
}

void opd_sync_look(struct opd_sync *sync, bool thorough)
{
	if (!opd_count_look(&sync->pipeline->count, thorough))
		return;
	recount(sync);
	pthread_mutex_lock(&sync->lock);
	sync->files_removed = true;
	pthread_mutex_unlock(&sync->lock);
}

/* Somebody removed sample files while they were counted in: they are made anew with the next sample. */
static void release_removed_files(struct opd_sync *sync)
{
	bool removed;

	pthread_mutex_lock(&sync->lock);
	removed = sync->files_removed;
	sync->files_removed = false;
	pthread_mutex_unlock(&sync->lock);
	if (!removed)
		return;
	if (opd_count_give_up_files(&sync->pipeline->count))
		recount(sync);
	/* Without memory the next dump writes the table. */
	if (op_dcookie_none_written(sync->pipeline->resolver.table) < 0)
		op_log(OP_LOG_WARNING, "no memory");
}

/* What could not be written when it was due; and a line about it, once a minute. */
static void keep_cookies(struct opd_sync *sync, uint64_t now_ns)
{
	static struct op_rate rate;
	static uint64_t nr_reported;
	struct opd_cookie_file *file = sync->pipeline->count.cookie_file;
	uint64_t nr_errors, suppressed;
	int err;

	if (!file)
		return;
	opd_cookie_file_flush(file, now_ns);
	nr_errors = opd_cookie_file_errors(file, &err);
	if (nr_errors == nr_reported || !op_rate_allows(&rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		return;
	op_log(OP_LOG_WARNING,
		"%llu times the table of images, " OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE
		", could not be written: %s; samples are counted, it is tried again",
		(unsigned long long)(nr_errors - nr_reported), strerror(-err));
	nr_reported = nr_errors;
}

static void report_loss(const char *reason, uint64_t nr_lost, const char *why, const char *session_dir)
{
	const struct op_log_field fields[] = {
		{ .name = "OPD_LOSS", .text = reason },
		{ .name = "OPD_SAMPLES", .number = nr_lost },
		{ .name = "OPD_SESSION_DIR", .text = session_dir },
	};

	op_log_with(OP_LOG_WARNING, fields, op_array_size(fields), "%llu samples lost (lost_%s): %s, session directory %s",
		     (unsigned long long)nr_lost, reason, why, session_dir);
}

/* A daemon that loses samples says so, with the reason and what helps, once a minute. */
static void report_losses(struct opd_sync *sync, uint64_t now_ns)
{
	static struct op_rate rates[OP_NR_LOSS + 1];
	struct opd_losses losses;
	uint64_t suppressed;

	opd_sum_losses(&sync->pipeline->capture, &losses);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (losses.lost[i] > sync->reported.lost[i] &&
		    op_rate_allows(&rates[i], now_ns, OP_LOG_INTERVAL_NS, &suppressed)) {
			report_loss(op_loss_name((enum op_loss)i), losses.lost[i] - sync->reported.lost[i],
				    op_loss_meaning((enum op_loss)i), sync->status->session_dir);
			sync->reported.lost[i] = losses.lost[i];
		}
	if (losses.kernel > sync->reported.kernel &&
	    op_rate_allows(&rates[OP_NR_LOSS], now_ns, OP_LOG_INTERVAL_NS, &suppressed)) {
		report_loss("kernel", losses.kernel - sync->reported.kernel,
			    "the rings were full, a larger RingSize= or a longer period helps", sync->status->session_dir);
		sync->reported.kernel = losses.kernel;
	}
}

/* After a storm of processes the heap is full of holes that the allocator keeps, and there are sample files of programs that nobody runs any more. */
static void give_memory_back(struct opd_sync *sync, uint64_t now_ns)
{
	uint64_t nr_freed = sync->pipeline->resolver.processes.nr_freed;
	bool many = nr_freed - sync->nr_freed >= TRIM_SPACES;

	if ((!many && !sync->trim_again) || now_ns < sync->next_trim_ns)
		return;
	sync->trim_again = many; /* the last of a storm are forgotten later */
	op_sys_trim_memory();
	opd_count_let_go(&sync->pipeline->count);
	sync->nr_freed = nr_freed;
	sync->next_trim_ns = now_ns + TRIM_INTERVAL_NS;
}

/* One module may take the place of another before an address lies nowhere. */
static void refresh_modules(struct opd_sync *sync, uint64_t now_ns)
{
	static struct op_rate rate;
	struct opd_kernel_map *map = &sync->pipeline->resolver.kernel;

	if (map->text_start && opd_kernel_map_refresh(map, now_ns) < 0)
		op_log_failure(&rate, now_ns, "reading the list of modules", -ENOMEM);
}

/*
 * All CPUs, and what is to be done now and then. What was taken before the turn before last began has been read, late
 * commits included: the horizon of what resolving has to remember.
 */
void opd_sync_turn(struct opd_sync *sync)
{
	struct opd_resolver *resolver = &sync->pipeline->resolver;
	uint64_t now_ns = op_now_ns(), last_begin_ns = sync->turn_begin_ns;

	sync->turn_begin_ns = now_ns;
	release_removed_files(sync);
	check_hotplug(sync);
	opd_visit_all(&sync->visits);
	keep_cookies(sync, now_ns);
	if (now_ns >= sync->next_prune_ns) {
		opd_processes_prune(&resolver->processes, sync->horizon_ns, opd_proc_gone_ns);
		give_memory_back(sync, now_ns);
		refresh_modules(sync, now_ns);
		opd_kernel_map_prune(&resolver->kernel, sync->horizon_ns);
		opd_forget_refused(resolver);
		opd_jit_write(resolver->jit, &sync->pipeline->count, now_ns, false);
		report_losses(sync, now_ns);
		sync->next_prune_ns = now_ns + PRUNE_INTERVAL_NS;
	}
	sync->horizon_ns = last_begin_ns;
	/* Each turn: what a set of mappings has to remember is what one process maps in this time. */
	resolver->processes.horizon_ns = last_begin_ns;
	if (now_ns >= sync->next_rate_check_ns) {
		check_sample_rate(sync);
		sync->next_rate_check_ns = now_ns + RATE_CHECK_INTERVAL_NS;
	}
	opd_rotate_if_due(sync, now_ns);
	if (sync->pipeline->capture.enabled && now_ns >= sync->next_book_ns) {
		opd_sync_write_book(sync, OP_SESSION_open);
		sync->next_book_ns = now_ns + BOOK_INTERVAL_NS;
	}
	opd_retain_if_due(sync, now_ns);
	opd_unwritten_retry(sync, now_ns);
	sync->next_turn_ns = now_ns + sync->config->visit_ms * OP_NS_PER_MS;
}
