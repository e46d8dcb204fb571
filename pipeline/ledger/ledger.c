/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/events/host_cpu.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/leftovers.h"
#include "libop/session/sum.h"
#include "pipeline/ledger/event_sums.h"
#include "pipeline/ledger/stats_dir.h"

#define PATH       OP_SESSION_CURRENT "/" OP_SESSION_LEDGER
#define TMP_PATH   OP_SESSION_TMP "/" OP_SESSION_LEDGER
#define AT_ONCE_NS OP_NS_PER_MS /* two clocks that are read within it show the same moment */
#define LOOKS_MAX  100u

static_assert(op_array_size(((struct opd_ledger *)NULL)->stats_base) == OP_STATS_NR, "a base for each number");

/* ---- times ---- */

struct moment {
	uint64_t wall_ns;
	int64_t boot_ns;
};

static int64_t boot_ns(void)
{
	return (int64_t)op_sys_boot_ns();
}

/* The time by both clocks. They are read again when the thread was interrupted between them. */
static struct moment this_moment(void)
{
	struct moment moment;
	unsigned int nr_looks = 0;

	do {
		moment.boot_ns = boot_ns();
		moment.wall_ns = op_sys_wall_ns();
	} while (boot_ns() - moment.boot_ns > AT_ONCE_NS && ++nr_looks < LOOKS_MAX);
	return moment;
}

static uint64_t begin_seen_at(const struct opd_ledger *ledger, const struct moment *moment)
{
	int64_t elapsed_ns = moment->boot_ns - ledger->begin_boot_ns;

	return elapsed_ns > 0 && (uint64_t)elapsed_ns < moment->wall_ns ? moment->wall_ns - (uint64_t)elapsed_ns : moment->wall_ns;
}

uint64_t opd_ledger_begin_ns(const struct opd_ledger *ledger)
{
	struct moment now = this_moment();

	return begin_seen_at(ledger, &now);
}

static void end_pause(struct opd_ledger *ledger)
{
	struct moment now = this_moment();
	uint64_t since_ns = ledger->base.end_ns;

	if (ledger->is_stopped)
		ledger->paused_ns += (uint64_t)(now.boot_ns - ledger->stopped_boot_ns);
	else if (!ledger->sampled && ledger->base.ended == OP_SESSION_stopped && since_ns && since_ns < now.wall_ns)
		ledger->paused_ns += now.wall_ns - since_ns; /* since an earlier daemon */
	ledger->is_stopped = false;
}

void opd_ledger_begin(struct opd_ledger *ledger)
{
	if (ledger->begun)
		end_pause(ledger);
	else
		ledger->begin_boot_ns = boot_ns();
	ledger->begun = ledger->sampled = true;
}

static void stop_at(struct opd_ledger *ledger, int64_t at_boot_ns)
{
	ledger->is_stopped = true;
	ledger->stopped_boot_ns = at_boot_ns;
}

void opd_ledger_stop(struct opd_ledger *ledger)
{
	if (ledger->sampled && !ledger->is_stopped)
		stop_at(ledger, boot_ns());
}

/* begin_ns is a time of the wall clock. One in the future is taken as now. */
static void begin_at(struct opd_ledger *ledger, uint64_t begin_ns)
{
	struct moment now = this_moment();

	ledger->begun = true;
	ledger->begin_boot_ns = now.boot_ns - (begin_ns < now.wall_ns ? (int64_t)(now.wall_ns - begin_ns) : 0);
}

/* ---- what an earlier daemon left ---- */

static void put_aside(int session_fd)
{
	char aside[OP_DAMAGED_NAME_BYTES];
	int err = op_damaged_put_aside(session_fd, PATH, aside);

	if (err)
		op_log(OP_LOG_WARNING, PATH " is no ledger: %s", strerror(-err));
	else
		op_log(OP_LOG_WARNING, PATH " is not a ledger: moved to %s in the session directory; opd begins a new ledger",
		       aside);
}

static int recount(struct op_session_ledger *base, int current_fd)
{
	uint64_t nr_before = op_session_ledger_lost(base, OP_LOSS_io_error), nr_missing;
	int err = op_session_ledger_recount(base, current_fd);

	if (err && err != -ENOMEM)
		op_log(OP_LOG_WARNING, "the samples of " OP_SESSION_CURRENT " could not be added up: %s", strerror(-err));
	nr_missing = op_session_ledger_lost(base, OP_LOSS_io_error) - nr_before;
	if (nr_missing)
		op_log(OP_LOG_WARNING,
			"%llu samples that an earlier opd had stored in " OP_SESSION_CURRENT
			" are in no file any more: they are lost_io_error",
			(unsigned long long)nr_missing);
	return err == -ENOMEM ? err : 0;
}

/* Samples without a ledger are of the genuine tools, or a power cut took the ledger. */
static int begin_without(struct opd_ledger *ledger, int current_fd)
{
	uint64_t *total = &ledger->stats_base[OP_STATS_total_samples];
	int err = recount(&ledger->base, current_fd);

	if (err || !ledger->base.nr_events)
		return err;
	for (size_t i = 0; i < ledger->base.nr_events; i++)
		*total -= op_min_u64(*total, ledger->base.events[i].received);
	op_session_ledger_guess_times(&ledger->base, current_fd);
	begin_at(ledger, ledger->base.begin_ns);
	ledger->is_mended = true;
	return 0;
}

/* False when files were removed, restored or overwritten while no daemon ran. */
static bool is_as_left(const struct op_session_ledger *sums, int current_fd)
{
	struct op_session_files files;

	return sums->ended == OP_SESSION_stopped && sums->has_files && !op_session_files_look(current_fd, &files) &&
	       files.nr == sums->files.nr && files.fingerprint == sums->files.fingerprint;
}

static int take_base(struct opd_ledger *ledger, int current_fd, bool was_unclean)
{
	int err = op_session_ledger_read(current_fd, &ledger->base, NULL);

	if (err == -EBADMSG)
		put_aside(ledger->session_fd);
	if (err == -EBADMSG || err == -ENOENT) {
		opd_stats_dir_read(ledger->session_fd, ledger->stats_base);
		return begin_without(ledger, current_fd);
	}
	if (err)
		return err == -ENOMEM ? err : 0;
	begin_at(ledger, ledger->base.begin_ns);
	ledger->is_mended = was_unclean || !is_as_left(&ledger->base, current_fd);
	return ledger->is_mended ? recount(&ledger->base, current_fd) : 0;
}

int opd_ledger_open(struct opd_ledger *ledger, int session_fd, const struct opd_capture *capture, bool was_unclean)
{
	int fd, err = 0;

	*ledger = (struct opd_ledger){ .session_fd = session_fd, .capture = capture };
	ledger->cpu_type = op_host_has_pmu() ? op_host_cpu_type() : NULL;
	ledger->before = calloc(2 * capture->nr_events + 1, sizeof(*ledger->before));
	if (!ledger->before)
		return -ENOMEM;
	ledger->latest = ledger->before + capture->nr_events;
	fd = op_session_open_current(session_fd);
	if (fd >= 0) {
		err = take_base(ledger, fd, was_unclean);
		close(fd);
	}
	if (err)
		opd_ledger_close(ledger);
	return err;
}

void opd_ledger_close(struct opd_ledger *ledger)
{
	op_session_ledger_free(&ledger->base);
	free(ledger->before);
	ledger->before = NULL;
}

/* ---- the sums ---- */

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void add_event(struct op_ledger_event *row, const struct op_ledger_event *now, const struct op_ledger_event *before)
{
	row->received += since(now->received, before->received);
	row->stored += since(now->stored, before->stored);
	row->unattributed += since(now->unattributed, before->unattributed);
	row->filtered += since(now->filtered, before->filtered);
	row->lost_kernel += since(now->lost_kernel, before->lost_kernel);
	row->nr_throttles += since(now->nr_throttles, before->nr_throttles);
	row->enabled_ns += since(now->enabled_ns, before->enabled_ns);
	row->counted_ns += since(now->counted_ns, before->counted_ns);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		row->lost[i] += since(now->lost[i], before->lost[i]);
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		row->ends[i] += since(now->ends[i], before->ends[i]);
}

void opd_ledger_set_waits(struct opd_ledger *ledger, const struct op_wait_ledger *waits)
{
	ledger->waits = *waits;
}

static void add_waits(struct opd_ledger *ledger, struct op_session_ledger *sums)
{
	sums->waits = ledger->base.waits;
	ledger->waits_latest = ledger->waits;
	op_wait_ledger_add(&sums->waits, &ledger->waits, &ledger->waits_before);
}

static int add_capture(struct opd_ledger *ledger, struct op_session_ledger *sums)
{
	for (size_t i = 0; i < ledger->capture->nr_events; i++) {
		struct op_ledger_event *now = &ledger->latest[i], *row;

		opd_sum_event(ledger->capture, i, now);
		if (now->role == OP_EVENT_MEMORY || (now->role == OP_EVENT_DERIVED && !now->received))
			continue;
		row = op_session_ledger_row(sums, now);
		if (!row)
			return -ENOMEM;
		add_event(row, now, &ledger->before[i]);
	}
	return 0;
}

/* By these the next daemon sees whether the files have changed since. */
static void note_files(const struct opd_ledger *ledger, struct op_session_ledger *sums)
{
	int fd;

	if (ledger->files) {
		sums->files = *ledger->files;
		sums->has_files = true;
		return;
	}
	fd = op_session_open_current(ledger->session_fd);
	sums->has_files = fd >= 0 && !op_session_files_look(fd, &sums->files);
	if (fd >= 0)
		close(fd);
}

static void name_host(const struct opd_ledger *ledger, struct op_session_ledger *sums)
{
	bool is_foreign = ledger->foreign_host;
	struct utsname own;

	sums->is_imported = is_foreign;
	if (!is_foreign && uname(&own) < 0)
		return;
	op_session_ledger_set_host(sums, is_foreign ? ledger->foreign_host : own.nodename);
	op_session_ledger_set_kernel(sums, is_foreign ? ledger->foreign_kernel : own.release);
	op_session_ledger_set_cpu(sums, is_foreign ? NULL : ledger->cpu_type);
}

static uint64_t end_seen_at(const struct opd_ledger *ledger, const struct moment *moment)
{
	uint64_t ago_ns = ledger->is_stopped ? (uint64_t)(moment->boot_ns - ledger->stopped_boot_ns) : 0;

	return ledger->sampled ? moment->wall_ns - op_min_u64(ago_ns, moment->wall_ns) : ledger->base.end_ns;
}

int opd_ledger_sum(struct opd_ledger *ledger, enum op_session_end ended, struct op_session_ledger *ret_sums)
{
	struct moment now = this_moment();
	struct op_session_ledger sums = { .ended = ended, .begin_ns = begin_seen_at(ledger, &now) };
	int err = 0;

	name_host(ledger, &sums);

	ledger->latest_boot_ns = now.boot_ns;
	sums.end_ns = op_max_u64(end_seen_at(ledger, &now), sums.begin_ns);
	sums.paused_ns = op_min_u64(ledger->base.paused_ns + ledger->paused_ns, sums.end_ns - sums.begin_ns);
	sums.is_stopped = ledger->is_stopped || !ledger->sampled;
	for (size_t i = 0; i < ledger->base.nr_events && !err; i++) {
		struct op_ledger_event *row = op_session_ledger_row(&sums, &ledger->base.events[i]);

		if (row)
			*row = ledger->base.events[i];
		else
			err = -ENOMEM;
	}
	add_waits(ledger, &sums);
	if (!err)
		err = add_capture(ledger, &sums);
	if (!err && ended == OP_SESSION_stopped)
		note_files(ledger, &sums);
	if (err)
		op_session_ledger_free(&sums);
	else
		*ret_sums = sums;
	return err;
}

/* ---- samples that are gone ---- */

/* Books up to `amount` stored samples of one CPU as lost. Returns what is left of the amount. */
/* A stack that is gone had one of the ends; which one is not known. */
static void lose_ends(uint64_t ends[OP_NR_STACK_ENDS], uint64_t amount)
{
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++) {
		uint64_t nr_gone = op_min_u64(amount, ends[i]);

		ends[i] -= nr_gone;
		amount -= nr_gone;
	}
}

static uint64_t take_back(struct opd_event *account, bool is_of_stacks, uint64_t amount)
{
	uint64_t nr_gone = op_min_u64(amount, account->stored);

	account->stored -= nr_gone;
	account->unattributed = op_min_u64(account->unattributed, account->stored);
	account->lost[OP_LOSS_io_error] += nr_gone;
	if (is_of_stacks)
		lose_ends(account->ends, nr_gone);
	return amount - nr_gone;
}

static void lose_base(struct opd_ledger *ledger, const struct op_ledger_event *event, uint64_t amount)
{
	struct op_ledger_event *row = amount ? op_session_ledger_row(&ledger->base, event) : NULL;

	if (!row)
		return;
	amount = op_min_u64(amount, row->stored);
	row->stored -= amount;
	row->unattributed = op_min_u64(row->unattributed, row->stored);
	row->lost[OP_LOSS_io_error] += amount;
	if (op_event_is_stacks(row->role))
		lose_ends(row->ends, amount);
}

/* Samples of an earlier daemon are booked as lost last. */
void opd_ledger_lose(struct opd_ledger *ledger, uint32_t event, uint64_t amount)
{
	const struct opd_capture *capture = ledger->capture;
	struct op_ledger_event sum;
	uint64_t nr_ours;

	opd_sum_event(capture, event, &sum);
	nr_ours = op_min_u64(amount, since(sum.stored, ledger->before[event].stored));
	amount -= nr_ours;
	for (size_t i = 0; i < capture->nr_cpus; i++)
		nr_ours = take_back(&capture->cpus[i].events[event], op_event_is_stacks(sum.role), nr_ours);
	lose_base(ledger, &sum, amount);
}

/* The index of an event in the capture, or the number of events there for none. */
static size_t find_event(const struct opd_capture *capture, const struct op_ledger_event *event)
{
	struct op_ledger_event sum;
	const struct op_session_ledger one = { .events = &sum, .nr_events = 1 };
	size_t i = 0;

	for (; i < capture->nr_events; i++) {
		opd_sum_event(capture, i, &sum);
		if (sum.role != OP_EVENT_MEMORY && op_session_ledger_find(&one, event))
			break;
	}
	return i;
}

static void lose_missing(struct opd_ledger *ledger, const struct op_ledger_event *event, const struct op_session_ledger *in_files)
{
	const struct op_ledger_event *sum = op_session_ledger_find(in_files, event);
	uint64_t missing = since(event->stored, sum ? sum->stored : 0);
	size_t index;

	if (!missing || event->role == OP_EVENT_SAMPLER)
		return;
	op_log(OP_LOG_WARNING, "%llu samples of %s that were stored in " OP_SESSION_CURRENT " are in no file any more",
		(unsigned long long)missing, event->name);
	index = find_event(ledger->capture, event);
	if (index < ledger->capture->nr_events)
		opd_ledger_lose(ledger, (uint32_t)index, missing);
	else
		lose_base(ledger, event, missing);
}

/* A missing session has no samples. */
static int sum_files(const struct opd_ledger *ledger, struct op_session_ledger *in_files)
{
	int fd = op_session_open_current(ledger->session_fd), err;
	uint64_t nr_bad = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_session_ledger_add_files(in_files, fd, &nr_bad);
	close(fd);
	return !err && nr_bad ? -EBADMSG : err;
}

int opd_ledger_recount(struct opd_ledger *ledger)
{
	struct op_session_ledger in_files = { 0 }, sums;
	int err = opd_ledger_sum(ledger, OP_SESSION_open, &sums);

	if (err)
		return err;
	err = sum_files(ledger, &in_files);
	for (size_t i = 0; !err && i < sums.nr_events; i++)
		lose_missing(ledger, &sums.events[i], &in_files);
	op_session_ledger_free(&in_files);
	op_session_ledger_free(&sums);
	return err;
}

/* ---- writing ---- */

static int write_ledger(int session_fd, const struct op_session_ledger *sums)
{
	struct op_text text = { 0 };
	int fd, err;

	op_session_ledger_format(sums, &text);
	if (text.failed)
		return -ENOMEM;
	fd = op_file_open_below(session_fd, TMP_PATH, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	err = fd < 0 ? fd : op_sys_write_all(fd, text.data, text.length);
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_file_rename_below(session_fd, TMP_PATH, PATH);
	if (err)
		op_file_unlink_below(session_fd, TMP_PATH);
	op_text_free(&text);
	return err;
}

int opd_ledger_write(const struct opd_ledger *ledger, const struct op_session_ledger *sums)
{
	uint64_t numbers[OP_STATS_NR];
	bool throttled = false;
	int err, ledger_err;

	memcpy(numbers, ledger->stats_base, sizeof(numbers));
	op_stats_add(sums, numbers);
	for (size_t i = 0; i < sums->nr_events; i++)
		throttled |= sums->events[i].nr_throttles;
	err = opd_stats_dir_write(ledger->session_fd, numbers, throttled, ledger->hides_kernel);
	ledger_err = write_ledger(ledger->session_fd, sums);
	return err ? err : ledger_err;
}

const char *opd_ledger_in_the_way(const struct opd_ledger *ledger)
{
	static const struct {
		const char *path;
		mode_t type;
	} places[] = { { OP_SESSION_TMP, S_IFDIR }, { TMP_PATH, S_IFREG },      { OPD_STATS_TMP, S_IFREG },
		       { PATH, S_IFREG },           { OPD_STATS_DIR, S_IFDIR },
#define X(name) { OPD_STATS_DIR "/" #name, S_IFREG },
		       OP_STATS_NUMBERS(X)
#undef X
	};
	struct stat st;

	for (size_t i = 0; i < op_array_size(places); i++)
		if (!fstatat(ledger->session_fd, places[i].path, &st, AT_SYMLINK_NOFOLLOW) &&
		    (st.st_mode & S_IFMT) != places[i].type)
			return places[i].path;
	return NULL;
}

/* ---- the next session ---- */

static void forget_base(struct opd_ledger *ledger)
{
	op_session_ledger_free(&ledger->base);
	memset(ledger->stats_base, 0, sizeof(ledger->stats_base));
	ledger->begun = false;
	ledger->sampled = false;
	ledger->is_stopped = false;
	ledger->paused_ns = 0;
}

void opd_ledger_begin_next(struct opd_ledger *ledger)
{
	bool was_stopped = ledger->is_stopped;

	memcpy(ledger->before, ledger->latest, ledger->capture->nr_events * sizeof(*ledger->before));
	ledger->waits_before = ledger->waits_latest;
	forget_base(ledger);
	opd_ledger_begin(ledger);
	ledger->begin_boot_ns = ledger->latest_boot_ns;
	if (was_stopped)
		stop_at(ledger, ledger->latest_boot_ns);
}

void opd_ledger_reset(struct opd_ledger *ledger)
{
	memset(ledger->before, 0, ledger->capture->nr_events * sizeof(*ledger->before));
	ledger->waits_before = ledger->waits_latest = ledger->waits;
	forget_base(ledger);
	if (ledger->capture->enabled)
		opd_ledger_begin(ledger);
}

/* The session keeps its begin. */
void opd_ledger_reset_to_rest(struct opd_ledger *ledger)
{
	bool begun = ledger->begun;
	int64_t begin_boot_ns = ledger->begin_boot_ns;
	int fd = op_session_open_current(ledger->session_fd), err;

	opd_ledger_reset(ledger);
	ledger->begun |= begun;
	if (begun)
		ledger->begin_boot_ns = begin_boot_ns;
	ledger->base.end_ns = op_sys_wall_ns();
	err = fd < 0 ? fd : recount(&ledger->base, fd);
	if (err == -ENOMEM)
		op_log(OP_LOG_WARNING, "the samples that are left in " OP_SESSION_CURRENT " could not be added up: %s",
			strerror(-err));
	if (fd >= 0)
		close(fd);
}
