/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * torture [--records=N] [--seed=N] [MODE...] (N: 1000000, or OPD_TORTURE_RECORDS): a writer and a
 * reader thread on one memory ring or pair, which the reader swaps. Or swapping threads do it: the
 * reader lends them the baton, takes it back now and then, and swaps one time in eight itself. Or
 * many pairs, each with a writer, one reader and a few swapping threads. Or the writer is a
 * process, which has the reader's mapping or has attached, and may write over what it has
 * committed. Or the reader sleeps until it is woken. Or there is an AUX area (torture_aux.c). Every
 * record has a number and a CRC, a random size and random yields around it. What is read must be
 * what was written, in order and once; what is missing must be what LOST records tell (in overwrite
 * mode: nothing may be missing within a snapshot, and between two of them what the ring says was
 * overwritten, to the byte; no ring moves while it is read). Exit code 1 and a line that says what
 * was wrong otherwise.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "tests/ring/torture.h"

#define NR_PAIRS_MAX    8
#define NR_SWAPPERS_MAX 2

static const struct mode modes[] = {
	{ .name = "ring" },
	{ .name = "ring-full", .never_lose = true },
	{ .name = "ring-in-page", .in_page = true },
	{ .name = "ring-copy", .copies = true },
	{ .name = "ring-scribbled", .process = true, .attached = true, .scribbles = true },
	{ .name = "pair", .pair = true },
	{ .name = "pair-fence", .pair = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-full", .pair = true, .never_lose = true },
	{ .name = "pair-full-fence", .pair = true, .never_lose = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-in-page", .pair = true, .in_page = true },
	{ .name = "pair-overwrite", .pair = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "pair-overwrite-fence", .pair = true, .flags = OP_MRING_OVERWRITE | OP_MRING_FENCE },
	{ .name = "pair-overwrite-in-page", .pair = true, .in_page = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "pair-process", .pair = true, .process = true },
	{ .name = "pair-attached", .pair = true, .process = true, .attached = true },
	{ .name = "pair-scribbled", .pair = true, .process = true, .attached = true, .scribbles = true },
	{ .name = "pair-overwrite-scribbled",
	  .pair = true,
	  .flags = OP_MRING_OVERWRITE,
	  .process = true,
	  .attached = true,
	  .scribbles = true },
	{ .name = "swapper", .pair = true, .nr_swappers = 1 },
	{ .name = "swapper-fence", .pair = true, .nr_swappers = 1, .flags = OP_MRING_FENCE },
	{ .name = "swapper-full", .pair = true, .nr_swappers = 1, .never_lose = true },
	{ .name = "swapper-full-fence", .pair = true, .nr_swappers = 1, .never_lose = true, .flags = OP_MRING_FENCE },
	{ .name = "swapper-in-page", .pair = true, .nr_swappers = 1, .in_page = true },
	{ .name = "swapper-overwrite", .pair = true, .nr_swappers = 1, .flags = OP_MRING_OVERWRITE },
	{ .name = "swapper-overwrite-fence", .pair = true, .nr_swappers = 1, .flags = OP_MRING_OVERWRITE | OP_MRING_FENCE },
	{ .name = "swapper-process", .pair = true, .nr_swappers = 1, .process = true },
	{ .name = "two-swappers", .pair = true, .nr_swappers = 2, .never_lose = true },
	{ .name = "wake-bytes", .waits = true, .wake_every = 5000 },
	{ .name = "wake-records", .waits = true, .wake_every = 27, .wake_records = true },
	{ .name = "wake-each-record", .never_lose = true, .wake_every = 1, .wake_records = true },
	{ .name = "wake-full", .never_lose = true, .wake_every = UINT64_MAX },
	{ .name = "wake-process", .waits = true, .wake_every = 5000, .process = true },
	{ .name = "wake-pair-bytes", .pair = true, .waits = true, .wake_every = 5000 },
	{ .name = "wake-pair-records", .pair = true, .waits = true, .wake_every = 27, .wake_records = true },
	{ .name = "wake-pair-full", .pair = true, .never_lose = true, .wake_every = UINT64_MAX },
	{ .name = "wake-pair-fence", .pair = true, .waits = true, .wake_every = 5000, .flags = OP_MRING_FENCE },
	{ .name = "wake-swapper", .pair = true, .nr_swappers = 1, .waits = true, .wake_every = 5000 },
	{ .name = "wake-pair-process", .pair = true, .waits = true, .wake_every = 27, .wake_records = true, .process = true },
	{ .name = "aux", .never_lose = true, .aux = true },
	{ .name = "aux-woken", .never_lose = true, .aux = true, .wake_every = 1000 },
	{ .name = "aux-process", .never_lose = true, .aux = true, .process = true },
	{ .name = "aux-overwrite", .never_lose = true, .aux = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "aux-overwrite-process", .never_lose = true, .aux = true, .flags = OP_MRING_OVERWRITE, .process = true },
	{ .name = "many-pairs", .pair = true, .nr_swappers = 2, .nr_pairs = NR_PAIRS_MAX },
};

struct crew {
	const struct mode *mode;
	struct run *runs;
	size_t nr_runs;
	uint64_t seed;
	bool over;
	struct {
		pthread_t thread;
		pid_t pid;
	} writers[NR_PAIRS_MAX];
	struct swapper {
		pthread_t thread;
		struct crew *crew;
		uint64_t seed;
	} swappers[NR_SWAPPERS_MAX];
};

static uint64_t nr_bytes_down(const struct run *run)
{
	uint64_t nr_bytes = 0;

	for (size_t i = 0; i < 1u + run->mode->pair; i++)
		nr_bytes -= op_load_relaxed(&run->pair.rings[i].control->data_head);
	return nr_bytes;
}

/*
 * Who overwrites has gone round before the first look: something is overwritten also where the
 * reader keeps up with it from then on.
 */
static void await_first_round(const struct run *run)
{
	while (!op_load_acquire(&run->done) && nr_bytes_down(run) < 2 * RING_BYTES)
		sched_yield();
}

static void read_all(struct crew *crew)
{
	uint64_t seed = ~crew->seed;
	size_t nr_finished;

	for (size_t i = 0; i < crew->nr_runs && (crew->mode->flags & OP_MRING_OVERWRITE); i++)
		await_first_round(&crew->runs[i]);
	do {
		nr_finished = 0;
		for (size_t i = 0; i < crew->nr_runs; i++) {
			if (!crew->runs[i].finished)
				read_some(&crew->runs[i], &seed);
			nr_finished += crew->runs[i].finished;
		}
		if (random_u64(&seed) % 4 == 0)
			sched_yield();
	} while (nr_finished < crew->nr_runs);
}

static void *swapper_main(void *arg)
{
	struct swapper *swapper = arg;
	struct crew *crew = swapper->crew;
	bool any;

	while (!op_load_relaxed(&crew->over)) {
		any = false;
		for (size_t i = 0; i < crew->nr_runs; i++)
			any |= swap_one(&crew->runs[i], &swapper->seed);
		if (!any)
			sched_yield();
	}
	return NULL;
}

static void open_run(struct run *run)
{
	const struct mode *mode = run->mode;
	unsigned int flags = mode->flags | (mode->process || mode->copies ? 0 : OP_MRING_OWN_WRITER);

	if (mode->pair ? op_mring_pair_create(RING_BYTES, flags, &run->pair)
		       : op_mring_create(RING_BYTES, mode->aux ? RING_BYTES : 0, flags, &run->pair.rings[0]))
		wrong(run, "create", 0);
	if (mode->aux && op_aux_map(&run->pair.rings[0], &run->aux))
		wrong(run, "aux_map", 0);
	if (mode->pair ? op_mring_pair_reader_open(&run->pair, &run->reader) : op_mring_reader(&run->pair.rings[0], &run->ring))
		wrong(run, "reader", 0);
	if (mode->pair)
		op_mring_pair_wake_every(&run->pair, mode->wake_every, mode->wake_records);
	else
		op_mring_wake_every(&run->pair.rings[0], mode->wake_every, mode->wake_records);
	run->done_fd = op_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (run->done_fd < 0)
		wrong(run, "eventfd", (uint64_t)-run->done_fd);
}

static void close_run(struct run *run)
{
	op_ring_unmap(&run->ring);
	op_mring_pair_reader_close(&run->reader);
	op_aux_unmap(&run->aux);
	op_mring_pair_destroy(&run->pair);
	close(run->done_fd);
}

/* Of a writer that failed or was killed; without it the reader would wait for ever. */
static void on_end_of_child(int signal_number OP_UNUSED, siginfo_t *info, void *context OP_UNUSED)
{
	static const char text[] = "torture: a writer process did not end in order\n";

	if (info->si_code == CLD_EXITED && !info->si_status)
		return;
	if (op_sys_write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void watch_children(const struct crew *crew)
{
	const struct sigaction watching = { .sa_sigaction = on_end_of_child, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP };

	if (sigaction(SIGCHLD, &watching, NULL) < 0)
		wrong(crew->runs, "sigaction", (uint64_t)errno);
}

static void start(struct crew *crew)
{
	fflush(stdout); /* a process would say it again */
	if (crew->mode->process)
		watch_children(crew);
	for (size_t i = 0; i < crew->nr_runs && crew->mode->process; i++) {
		crew->writers[i].pid = fork();
		if (crew->writers[i].pid < 0)
			wrong(crew->runs, "fork", (uint64_t)errno);
		if (!crew->writers[i].pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			write_all(&crew->runs[i]);
			_exit(0);
		}
	}
	for (size_t i = 0; i < crew->nr_runs && !crew->mode->process; i++)
		if (pthread_create(&crew->writers[i].thread, NULL, write_all, &crew->runs[i]))
			wrong(crew->runs, "pthread_create", i);
	for (size_t i = 0; i < crew->mode->nr_swappers; i++) {
		struct swapper *swapper = &crew->swappers[i];

		swapper->crew = crew;
		swapper->seed = crew->seed + (i + 1) * UINT64_C(0x100000000);
		if (pthread_create(&swapper->thread, NULL, swapper_main, swapper))
			wrong(crew->runs, "pthread_create", i);
	}
}

static void stop(struct crew *crew)
{
	for (size_t i = 0; i < crew->nr_runs; i++) {
		int status = 0;

		if (!crew->mode->process)
			pthread_join(crew->writers[i].thread, NULL);
		else if (waitpid(crew->writers[i].pid, &status, 0) < 0 || status)
			wrong(&crew->runs[i], "the writer's status", (uint64_t)status);
	}
	op_store_relaxed(&crew->over, true);
	for (size_t i = 0; i < crew->mode->nr_swappers; i++)
		pthread_join(crew->swappers[i].thread, NULL);
}

struct totals {
	unsigned long long read, dropped, woken, swaps, by_swapper, recalled, late, barriers, aux_bytes, aux_gone, overwritten;
};

static void finish(struct run *run, struct totals *totals)
{
	const struct op_mring_swap *swap = &run->reader.baton.swap;
	uint64_t damaged = run->ring.damaged + run->reader.rings[0].damaged + run->reader.rings[1].damaged, late;

	if (run->mode->aux)
		check_transactions(run);
	else if (!run->mode->scribbles)
		check_sums(run);
	if (run->mode->scribbles ? run->nr_records >= 100000 && !(damaged && run->read) : damaged)
		wrong(run, "damaged", damaged);
	late = run->ring.late + run->reader.rings[0].late + run->reader.rings[1].late;
	if (late)
		wrong(run, "rings that did not stand still", late);
	if (swap->late > swap->swaps)
		wrong(run, "late swaps", swap->late);
	if (run->mode->nr_swappers && run->nr_records >= 100000 && !run->nr_by_swapper)
		wrong(run, "swaps by swapping threads", 0);
	totals->read += run->read;
	totals->dropped += run->dropped;
	totals->swaps += swap->swaps;
	totals->by_swapper += run->nr_by_swapper;
	totals->recalled += run->nr_lent - run->nr_taken; /* each loan ends in one of two ways */
	totals->woken += run->nr_woken;
	totals->aux_bytes += run->aux_copied;
	totals->aux_gone += run->aux_gone;
	totals->overwritten += run->overwritten;
	totals->late += swap->late;
	totals->barriers += swap->barriers;
	close_run(run);
}

static void print_totals(const struct mode *mode, const struct totals *totals)
{
	printf("%-24s %10llu read %10llu no room", mode->name, totals->read, totals->dropped);
	if (mode->pair)
		printf(" %9llu swaps %9llu by swappers %9llu recalled %9llu late %9llu barriers", totals->swaps, totals->by_swapper,
		       totals->recalled, totals->late, totals->barriers);
	if (mode->wake_every)
		printf(" %9llu woken", totals->woken);
	if (mode->aux)
		printf(" %11llu AUX bytes %9llu gone", totals->aux_bytes, totals->aux_gone);
	if (mode->flags & OP_MRING_OVERWRITE)
		printf(" %11llu bytes overwritten", totals->overwritten);
	printf("\n");
}

static void run_mode(const struct mode *mode, uint64_t nr_records, uint64_t seed)
{
	struct crew crew = { .mode = mode, .nr_runs = mode->nr_pairs ? mode->nr_pairs : 1, .seed = seed };
	size_t nr_bytes = crew.nr_runs * sizeof(*crew.runs);
	struct totals totals = { 0 };

	crew.runs = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew.runs == MAP_FAILED) {
		perror("torture: mmap");
		exit(1);
	}
	for (size_t i = 0; i < crew.nr_runs; i++) {
		crew.runs[i] = (struct run){ .mode = mode, .nr_records = nr_records / crew.nr_runs, .seed = seed + i };
		open_run(&crew.runs[i]);
	}
	start(&crew);
	read_all(&crew);
	stop(&crew);
	for (size_t i = 0; i < crew.nr_runs; i++)
		finish(&crew.runs[i], &totals);
	print_totals(mode, &totals);
	munmap(crew.runs, nr_bytes);
}

static bool chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const struct option options[] = { { "records", required_argument, NULL, 'r' },
					  { "seed", required_argument, NULL, 's' },
					  { 0 } };
	const char *preset = getenv("OPD_TORTURE_RECORDS");
	uint64_t nr_records = 1000000, seed = 1;
	int option;

	if (preset && op_parse_u64(preset, 0, UINT64_MAX, &nr_records) < 0)
		return 2;
	while ((option = getopt_long(argc, argv, "r:s:", options, NULL)) != -1)
		if (option == '?' || op_parse_u64(optarg, 0, UINT64_MAX, option == 'r' ? &nr_records : &seed) < 0)
			return 2;
	make_crc_table();
	for (size_t i = 0; i < op_array_size(modes); i++)
		if (chosen(modes[i].name, argv + optind))
			run_mode(&modes[i], nr_records, seed);
	return 0;
}
