/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures the store of stacks. Usage: bench_stacks [SAMPLES], default 1000000, in a file below
 * TMPDIR or /tmp. It measures a sample whose nodes are there, one with new nodes, and opening a
 * file, and says how large the file is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/stacks/store.h"
#include "tests/bench/bench.h"
#include "tests/die.h"

#define NR_FRAMES   30u
#define NR_STACKS   2000u /* different ones, as a busy server has */
#define AIM_NS      40.0  /* of a frame, warm */
#define NAME        "stacks"
#define NAME_TMP    "stacks.tmp"
#define BENCH_BYTES 64

static const char *const events[] = { "STACKS:10101010:0x0" };

static void add(struct op_stacks *stacks, uint64_t number)
{
	const struct op_stack_path path = { .app = 1, .comm = "postgres", .cgroup = "/system.slice/postgresql.service" };
	struct op_stack_frame frames[NR_FRAMES];
	uint64_t random = number;
	int err;

	/* The stacks part ways at different depths. */
	for (size_t i = 0; i < NR_FRAMES; i++) {
		random = i < NR_FRAMES / 3 ? i : random * UINT64_C(6364136223846793005) + number;
		frames[i] = (struct op_stack_frame){ .image = 1 + i % 5, .value = (random >> 40) + i * 64, .is_kernel = i > 25 };
	}
	err = op_stacks_add(stacks, &path, frames, NR_FRAMES, 1);
	if (err)
		die("adding", err);
}

static double measure(struct op_stacks *stacks, const char *what, uint64_t first, uint64_t nr_samples, uint64_t nr_stacks)
{
	uint64_t begin_ns = bench_cpu_ns();
	double ns;

	for (uint64_t i = 0; i < nr_samples; i++)
		add(stacks, first + i * 7919 % nr_stacks);
	ns = (double)(bench_cpu_ns() - begin_ns) / (double)nr_samples;
	printf("%-40s %10.0f ns a sample %8.1f ns a frame\n", what, ns, ns / NR_FRAMES);
	return ns / NR_FRAMES;
}

static struct op_stacks *open_stacks(int dir_fd)
{
	const struct op_stacks_setup setup = { .events = events, .nr_events = 1, .max_bytes = 1u << 30 };
	struct op_stacks *stacks;
	int err = op_stacks_open(dir_fd, NAME, NAME_TMP, &setup, &stacks);

	if (err)
		die("opening", err);
	return stacks;
}

int main(int argc, char **argv)
{
	char directory[BENCH_BYTES];
	const char *top = getenv("TMPDIR");
	uint64_t nr_samples = 1000000, begin_ns;
	struct op_stacks *stacks;
	double warm_ns;
	int dir_fd;

	if (argc > 1 && op_parse_u64(argv[1], 1, UINT32_MAX, &nr_samples))
		die("SAMPLES", -EINVAL);
	snprintf(directory, sizeof(directory), "%.30s/opd-bench.XXXXXX", top ? top : "/tmp");
	if (!mkdtemp(directory))
		die(directory, -errno);
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY);
	stacks = open_stacks(dir_fd);
	measure(stacks, "new stacks", 0, NR_STACKS, NR_STACKS);
	warm_ns = measure(stacks, "the same again", 0, nr_samples, NR_STACKS);
	measure(stacks, "10 times as many, new", NR_STACKS, 10 * NR_STACKS, 10 * NR_STACKS);
	measure(stacks, "10 times as many, again", NR_STACKS, nr_samples, 10 * NR_STACKS);
	printf("%u nodes, %.1f MB\n", op_stacks_nr_nodes(stacks), (double)op_stacks_file_bytes(op_stacks_nr_nodes(stacks)) / 1e6);
	op_stacks_close(stacks);
	begin_ns = bench_cpu_ns();
	stacks = open_stacks(dir_fd);
	printf("%-40s %10.1f ms\n", "opening it", (double)(bench_cpu_ns() - begin_ns) / 1e6);
	op_stacks_close(stacks);
	printf("aim: at most %.0f ns a frame whose nodes are there: %s\n", AIM_NS, warm_ns <= AIM_NS ? "met" : "NOT met");
	unlinkat(dir_fd, NAME, 0);
	close(dir_fd);
	rmdir(directory);
	return warm_ns > AIM_NS;
}
