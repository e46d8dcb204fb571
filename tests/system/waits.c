/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Threads that wait, and say for how long by their own clocks:
 *
 *   waits MODE THREADS SECONDS [FILE]
 *
 *   sleep   600 ms in long_sleep, then short sleeps in short_sleep for 400 ms, again and again
 *   mutex   a lock that each thread holds for 2 ms
 *   spin    busy threads
 *   poll    one epoll_wait in each thread, for all of the time
 *   disk    O_DIRECT reads of FILE
 *   held    two threads: "keeper" has a lock nearly always, and "client" waits for it
 *   ends    each thread begins others, which sleep for 30 ms and end, one after the other
 *   still   each thread waits until the input of the program ends; SECONDS means nothing
 *
 * Each mode prints "ready" when its threads have begun, and at its end one line: microseconds of
 * waiting of all threads, in long_sleep, in short_sleep.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 100000
#define STACK_BYTES 65536
#define BLOCK_BYTES 65536

static double end_s, waited_s, long_s, short_s;
static const char *path;
static pthread_attr_t small;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER, sums = PTHREAD_MUTEX_INITIALIZER;

static double clock_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

static void work(double seconds)
{
	double until_s = now_s() + seconds;

	while (now_s() < until_s)
		continue;
}

static void count_waits(double wall_s, double cpu_s)
{
	pthread_mutex_lock(&sums);
	waited_s += wall_s - cpu_s;
	pthread_mutex_unlock(&sums);
}

static double sleep_s(int64_t ns)
{
	struct timespec span = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	double begin_s = now_s();

	nanosleep(&span, NULL);
	return now_s() - begin_s;
}

__attribute__((noinline)) static void long_sleep(void)
{
	long_s += sleep_s(600000000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void short_sleep(void)
{
	short_s += sleep_s(100000);
	__asm__ volatile("");
}

static void be_sleepy(void)
{
	while (now_s() < end_s) {
		double until_s;

		long_sleep();
		until_s = now_s() + 0.4;
		while (now_s() < until_s)
			short_sleep();
	}
}

static void lock(void)
{
	while (now_s() < end_s) {
		pthread_mutex_lock(&contended);
		work(0.002);
		pthread_mutex_unlock(&contended);
		work(0.0001);
	}
}

static void spin(void)
{
	while (now_s() < end_s)
		continue;
}

static void await_nothing(void)
{
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	epoll_wait(fd, &event, 1, (int)(1000 * (end_s - now_s())));
	close(fd);
}

static void read_blocks(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	off_t nr_blocks = lseek(fd, 0, SEEK_END) / BLOCK_BYTES;
	uint32_t number = 1;
	void *block;

	if (fd < 0 || !nr_blocks || posix_memalign(&block, 4096, BLOCK_BYTES))
		_exit(3);
	while (now_s() < end_s) {
		number = number * 1103515245 + 12345;
		if (pread(fd, block, BLOCK_BYTES, (off_t)(number >> 8) % nr_blocks * BLOCK_BYTES) != BLOCK_BYTES)
			_exit(3);
	}
	free(block);
	close(fd);
}

__attribute__((noinline)) static void await_lock(void)
{
	pthread_mutex_lock(&contended);
	__asm__ volatile("");
}

/* The first thread keeps the lock, the other one waits for it. */
static void keep_or_wait(void)
{
	static int nr;
	bool keeps = !__atomic_fetch_add(&nr, 1, __ATOMIC_SEQ_CST);

	pthread_setname_np(pthread_self(), keeps ? "keeper" : "client");
	while (now_s() < end_s) {
		await_lock();
		if (keeps)
			sleep_s(60000000);
		pthread_mutex_unlock(&contended);
		sleep_s(keeps ? 2000000 : 1000000);
	}
}

static void *sleep_and_end(void *begin_s)
{
	sleep_s(30000000);
	count_waits(now_s() - *(const double *)begin_s, clock_s(CLOCK_THREAD_CPUTIME_ID));
	return NULL;
}

/* Both wait: the thread that ends, and the one that waits for its end. */
static void begin_others(void)
{
	while (now_s() < end_s) {
		double begin_s = now_s();
		pthread_t thread;

		if (pthread_create(&thread, &small, sleep_and_end, &begin_s))
			_exit(3);
		pthread_join(thread, NULL);
	}
}

static void be_still(void)
{
	struct pollfd input = { .fd = 0 };

	poll(&input, 1, -1);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "sleep", be_sleepy }, { "mutex", lock }, { "spin", spin }, { "poll", await_nothing }, { "disk", read_blocks },
	{ "held", keep_or_wait }, { "ends", begin_others }, { "still", be_still },
};

/* What a thread does not run, it waits. */
static void *run(void *mode)
{
	double begin_s = now_s(), cpu_s = clock_s(CLOCK_THREAD_CPUTIME_ID);

	((void (*)(void))(uintptr_t)mode)();
	count_waits(now_s() - begin_s, clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t mode = 0, nr_threads = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	static pthread_t threads[THREADS_MAX];

	while (argc > 3 && mode < sizeof(modes) / sizeof(modes[0]) && strcmp(modes[mode].name, argv[1]) != 0)
		mode++;
	if (argc < 4 || mode == sizeof(modes) / sizeof(modes[0]) || nr_threads > THREADS_MAX)
		return 2;
	path = argc > 4 ? argv[4] : "";
	end_s = now_s() + strtod(argv[3], NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (size_t i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i], &small, run, (void *)(uintptr_t)modes[mode].run))
			return 3;
	puts("ready");
	fflush(stdout);
	for (size_t i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%.0f %.0f %.0f\n", waited_s * 1e6, long_s * 1e6, short_s * 1e6);
	return 0;
}
