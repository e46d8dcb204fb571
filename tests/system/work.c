// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Work with a known profile, for the system tests:
 *
 *   work shares MS          about three quarters of MS of CPU time in hot_a, one quarter in hot_b;
 *                           prints the nanoseconds of both
 *   work spin MS            MS of CPU time in spin_here
 *   work busy MS CPU        keeps one CPU busy for MS of real time
 *   work faults N           touches N new pages, one page fault each, in touch_pages; prints N
 *   work sites N            as faults, but at N different addresses: N nodes of a sample file
 *   work forks N MS         N children, one after the other, each with MS of CPU time in spin_here,
 *                           without exec
 *   work exec MS PATH ...   MS of CPU time in spin_here, then exec of PATH
 *   work kernel MS          MS of CPU time, nearly all of it in the kernel
 *   work library MS         MS of CPU time, nearly all of it in the C library
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/compiler.h"

#define NS_PER_MS   UINT64_C(1000000)
#define SLICE_STEPS 20000u

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text) {
		fprintf(stderr, "work: bad number '%s'\n", text);
		exit(2);
	}
	return value;
}

/* The three hot functions are alike and distinct: the asm keeps the loop and the function. */
__attribute__((noinline)) static uint64_t hot_a(uint64_t steps, uint64_t x)
{
	for (; steps; steps--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

__attribute__((noinline)) static uint64_t hot_b(uint64_t steps, uint64_t x)
{
	for (; steps; steps--) {
		x = x * 2862933555777941757u + 3037000493u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

__attribute__((noinline)) static uint64_t spin_here(uint64_t steps, uint64_t x)
{
	for (; steps; steps--) {
		x = x * 3202034522624059733u + 1u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/*
 * Slices of changing length, each given to one of the functions by chance: a balance by the time
 * measured so far would answer to each interrupt. Then a sample that comes at a fixed time after an
 * interrupt, as with another profiler of the same period, finds one of the functions too often. The
 * caller knows the shares by the numbers that are printed.
 */
static int do_shares(char **args)
{
	uint64_t end = number(args[0]) * NS_PER_MS, a = 0, b = 0, x = 1, before = cpu_ns(), after;

	while (a + b < end) {
		uint64_t steps = SLICE_STEPS + (x >> 48);
		bool turn_a = x >> 46 & 3;

		x = turn_a ? hot_a(steps, x) : hot_b(steps, x);
		after = cpu_ns();
		*(turn_a ? &a : &b) += after - before;
		before = after;
	}
	printf("%llu %llu\n", (unsigned long long)a, (unsigned long long)b);
	return 0;
}

static void spin_ms(uint64_t ms)
{
	uint64_t end = cpu_ns() + ms * NS_PER_MS, x = 1;

	while (cpu_ns() < end)
		x = spin_here(SLICE_STEPS, x);
}

static int do_spin(char **args)
{
	spin_ms(number(args[0]));
	return 0;
}

static int do_busy(char **args)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + number(args[0]) * NS_PER_MS, x = 1;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number(args[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0) {
		perror("work: sched_setaffinity");
		return 1;
	}
	while (now_ns(CLOCK_MONOTONIC) < end)
		x = spin_here(SLICE_STEPS, x);
	return 0;
}

__attribute__((noinline)) static void touch_pages(volatile char *memory, size_t nr_pages, size_t page_bytes)
{
	for (size_t i = 0; i < nr_pages; i++)
		memory[i * page_bytes] = 1;
}

/* Pages that are not there yet, each one of its own. */
static char *map_pages(size_t nr_pages, size_t page_bytes)
{
	char *memory =
		mmap(NULL, nr_pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("work: mmap");
		exit(1);
	}
	if (madvise(memory, nr_pages * page_bytes, MADV_NOHUGEPAGE) < 0 && errno != EINVAL) {
		perror("work: madvise");
		exit(1);
	}
	return memory;
}

static int do_faults(char **args)
{
	size_t nr_pages = number(args[0]), page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	touch_pages(map_pages(nr_pages, page_bytes), nr_pages, page_bytes);
	printf("%zu\n", nr_pages);
	return 0;
}

#if defined(__x86_64__)
#define SITE "movb (%rdi), %al\n\tret\n"
#elif defined(__aarch64__)
#define SITE "ldrb w0, [x0]\n\tret\n"
#endif

#ifdef SITE
#define NR_SITES   16384
#define SITE_BYTES 8

/* So many functions that load a byte from where their argument says, one behind the other. */
__asm__(".pushsection .text\n\t.balign 16\n\t.type work_sites, %function\nwork_sites:\n\t.rept 16384\n\t.balign 8\n\t" SITE
	"\t.endr\n\t.size work_sites, . - work_sites\n\t.popsection");
extern const char work_sites[];

static int do_sites(char **args)
{
	size_t nr_sites = op_min_u64(number(args[0]), NR_SITES), page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	const char *memory = map_pages(nr_sites, page_bytes);

	for (size_t i = 0; i < nr_sites; i++) {
		const char *site = work_sites + i * SITE_BYTES;
		void (*load)(const char *);

		memcpy(&load, &site, sizeof(load));
		load(memory + i * page_bytes);
	}
	printf("%zu\n", nr_sites);
	return 0;
}
#else
static int do_sites(char **args OP_UNUSED)
{
	fprintf(stderr, "work: no sites on this processor\n");
	return 77;
}
#endif

static int do_forks(char **args)
{
	uint64_t nr = number(args[0]), ms = number(args[1]);

	for (uint64_t i = 0; i < nr; i++) {
		int status;
		pid_t pid = fork();

		if (pid < 0) {
			perror("work: fork");
			return 1;
		}
		if (!pid) {
			spin_ms(ms);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 0;
}

static int do_exec(char **args)
{
	spin_ms(number(args[0]));
	execv(args[1], args + 1);
	perror("work: exec");
	return 1;
}

static int do_kernel(char **args)
{
	uint64_t end = cpu_ns() + number(args[0]) * NS_PER_MS;
	static char buffer[256 * 1024];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		perror("work: /dev/zero");
		return 1;
	}
	while (cpu_ns() < end)
		if (read(fd, buffer, sizeof(buffer)) < 0)
			return 1;
	close(fd);
	return 0;
}

static int do_library(char **args)
{
	uint64_t end = cpu_ns() + number(args[0]) * NS_PER_MS;
	static char buffer[256 * 1024];
	void *(*volatile find)(const void *, int, size_t) = memchr;

	while (cpu_ns() < end)
		if (find(buffer, 1, sizeof(buffer)))
			return 1;
	return 0;
}

#ifdef __x86_64__
#define VSYSCALL_TIME 0xffffffffff600400u /* time(2), at an address that never changed */

static int do_vsyscall(char **args)
{
	long (*call)(long *) = (long (*)(long *))(uintptr_t)VSYSCALL_TIME;

	for (size_t i = number(args[0]); i > 0; i--)
		if (call(NULL) <= 0)
			return 1;
	return 0;
}
#else
static int do_vsyscall(char **args OP_UNUSED)
{
	return 1;
}
#endif

static const struct {
	const char *name;
	int min_args;
	int (*run)(char **args);
} kinds[] = {
	{ "shares", 1, do_shares }, { "spin", 1, do_spin },         { "busy", 2, do_busy },   { "faults", 1, do_faults },
	{ "sites", 1, do_sites },   { "vsyscall", 1, do_vsyscall }, { "forks", 2, do_forks }, { "exec", 2, do_exec },
	{ "kernel", 1, do_kernel }, { "library", 1, do_library },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < op_array_size(kinds); i++)
		if (argc >= 2 && !strcmp(argv[1], kinds[i].name) && argc - 2 >= kinds[i].min_args)
			return kinds[i].run(argv + 2);
	fprintf(stderr, "usage: work shares|spin|busy|faults|sites|vsyscall|forks|exec|kernel|library ARGUMENTS\n");
	return 2;
}
