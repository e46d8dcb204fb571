// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runs one known function, hot, from where a kind of mapping puts it, for the test of mappings:
 *
 *   mapped KIND MS [FILE ...]
 *
 * First everything is mapped, then it waits for the end of its standard input, then it spends MS of
 * CPU time in hot. So a test decides whether the mappings are there before the profiler or come
 * while it looks. FILE is a copy of this program, or a library made of it with -DLIBRARY.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE  4096ul
#define STEPS 1000000ul

typedef uint64_t (*hot_function)(uint64_t steps);

/* In a page of its own, registers only: a copy of the page runs anywhere. */
__attribute__((noinline, aligned(4096), section(".text.hot"))) uint64_t hot(uint64_t steps)
{
	uint64_t x = 1;

	for (; steps; steps--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

__attribute__((noinline, aligned(4096), section(".text.hot"))) uint64_t after_hot(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

#ifdef VARIANT
const char variant[] = VARIANT; /* what makes a build-id of its own */
#endif

#ifndef LIBRARY

static void need(int condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(3);
}

static void go(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void run(hot_function function, uint64_t ms)
{
	uint64_t end = cpu_ms() + ms;

	while (cpu_ms() < end)
		function(STEPS);
}

static void go_and_run(hot_function function, uint64_t ms)
{
	go();
	run(function, ms);
}

static void *map(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *memory = mmap(at, bytes, prot, flags, fd, offset);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

static void *anonymous(void *at, size_t bytes, int flags)
{
	return map(at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Reserves address space, so that the kernel cannot merge the next mapping with another one. */
static void *elsewhere(size_t bytes)
{
	char *memory = map(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory + PAGE;
}

static hot_function copy_hot(void *memory)
{
	memcpy(memory, (void *)(uintptr_t)hot, PAGE);
	return (hot_function)(uintptr_t)memory;
}

/* Where the page of hot lies in a file that is mapped here. */
static off_t file_offset_of_hot(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[8192];
	unsigned long start, end, offset;

	need(maps != NULL, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && start <= (uintptr_t)hot &&
		    (uintptr_t)hot < end) {
			fclose(maps);
			return (off_t)((uintptr_t)hot - start + offset);
		}
	need(0, "no mapping of hot");
	return 0;
}

/* ---- kinds ---- */

static void plain(uint64_t ms, char **files)
{
	(void)files;
	go_and_run(hot, ms);
}

/* The process is still there when the profiler has its samples. */
static void stays(uint64_t ms, char **files)
{
	(void)files;
	run(hot, ms);
	go();
}

static hot_function symbol(void *library)
{
	void *address = library ? dlsym(library, "hot") : NULL;

	need(address != NULL, "dlopen, dlsym");
	return (hot_function)(uintptr_t)address;
}

static void library(uint64_t ms, char **files)
{
	go_and_run(symbol(dlopen(files[0], RTLD_NOW)), ms);
}

/* Two libraries, one after the other, at the same address. */
static void library_twice(uint64_t ms, char **files)
{
	uintptr_t first;
	void *handle = dlopen(files[0], RTLD_NOW);

	first = (uintptr_t)symbol(handle);
	go_and_run(symbol(handle), ms / 2);
	dlclose(handle);
	handle = dlopen(files[1], RTLD_NOW);
	need((uintptr_t)symbol(handle) == first, "the second library is at another address");
	run(symbol(handle), ms / 2);
}

/* Generated code where a library was. */
static void jit_after_library(uint64_t ms, char **files)
{
	void *handle = dlopen(files[0], RTLD_NOW);
	char *at = (char *)(uintptr_t)symbol(handle);

	dlclose(handle);
	at = anonymous(at, PAGE, MAP_FIXED_NOREPLACE);
	go_and_run(copy_hot(at), ms);
}

static void *map_file(const char *path, int prot, int flags)
{
	int fd = open(path, O_RDONLY);
	void *memory;

	need(fd >= 0, path);
	memory = map(elsewhere(PAGE), PAGE, prot, flags | MAP_FIXED, fd, file_offset_of_hot());
	close(fd);
	return memory;
}

static void mprotect_later(uint64_t ms, char **files)
{
	void *memory = map_file(files[0], PROT_READ, MAP_PRIVATE);

	go();
	need(!mprotect(memory, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	run((hot_function)(uintptr_t)memory, ms);
}

/* A page in the middle of many gets other rights and them back. */
static void mprotect_part(uint64_t ms, char **files)
{
	(void)files;
	go();
	need(!mprotect((void *)(uintptr_t)hot, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
	run(hot, ms / 2);
	need(!mprotect((void *)(uintptr_t)hot, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	run(hot, ms / 2);
}

static hot_function move(void *memory)
{
	void *to = mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere(PAGE));

	need(to != MAP_FAILED, "mremap");
	return (hot_function)(uintptr_t)to;
}

static void mremap_file(uint64_t ms, char **files)
{
	void *memory = map_file(files[0], PROT_READ | PROT_EXEC, MAP_PRIVATE);

	go();
	((hot_function)(uintptr_t)memory)(STEPS);
	run(move(memory), ms);
}

/* Until there is a byte to read, or the end of the input; looks after each MS of CPU time. */
static void run_until_told(hot_function function, uint64_t ms)
{
	struct pollfd input = { .events = POLLIN };
	char c;

	do
		run(function, ms);
	while (!poll(&input, 1, 0));
	need(read(0, &c, 1) >= 0, "read");
}

/*
 * Code that is moved to where another file's ran, which is in no record. A byte of the input tells
 * when to move it, the next one when to end.
 */
static void mremap_over(uint64_t ms, char **files)
{
	void *first = map_file(files[0], PROT_READ | PROT_EXEC, MAP_PRIVATE),
	     *second = map_file(files[1], PROT_READ | PROT_EXEC, MAP_PRIVATE);

	run_until_told((hot_function)(uintptr_t)first, ms);
	need(mremap(second, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, first) == first, "mremap");
	run_until_told((hot_function)(uintptr_t)first, ms);
}

static void mremap_memory(uint64_t ms, char **files)
{
	void *memory = anonymous(elsewhere(PAGE), PAGE, MAP_FIXED);

	(void)files;
	copy_hot(memory)(STEPS);
	go();
	run(move(memory), ms);
}

/* As programs move their text into huge pages. */
static void text_copied(uint64_t ms, char **files)
{
	static char saved[PAGE];

	(void)files;
	memcpy(saved, (void *)(uintptr_t)hot, PAGE);
	map((void *)(uintptr_t)hot, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy((void *)(uintptr_t)hot, saved, PAGE);
	need(!mprotect((void *)(uintptr_t)hot, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	go_and_run(hot, ms);
}

static void text_moved(uint64_t ms, char **files)
{
	void *copy = anonymous(NULL, PAGE, 0), *to;

	(void)files;
	copy_hot(copy);
	need(!mprotect(copy, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	to = mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)hot);
	need(to != MAP_FAILED, "mremap");
	go_and_run(hot, ms);
}

static void memory(uint64_t ms, char **files)
{
	(void)files;
	go_and_run(copy_hot(anonymous(NULL, PAGE, 0)), ms);
}

static void huge_memory(uint64_t ms, char **files)
{
	size_t bytes = 2ul << 20;

	(void)files;
	go_and_run(copy_hot(anonymous(NULL, bytes, MAP_HUGETLB)), ms);
}

static void heap(uint64_t ms, char **files)
{
	char *begin = sbrk(0);
	char *page;

	(void)files;
	need(sbrk(4 * PAGE) != (void *)-1, "sbrk");
	page = (char *)(((uintptr_t)begin + PAGE) & ~(PAGE - 1));
	need(!mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
	go_and_run(copy_hot(page), ms);
}

static void stack(uint64_t ms, char **files)
{
	char room[3 * PAGE]; /* executable by -z execstack */

	(void)files;
	go_and_run(copy_hot((char *)(((uintptr_t)room + PAGE) & ~(PAGE - 1))), ms);
}

static void vdso(uint64_t ms, char **files)
{
	uint64_t end;
	struct timespec t;

	(void)files;
	go();
	end = cpu_ms() + ms;
	while (cpu_ms() < end)
		for (int i = 0; i < 10000; i++)
			clock_gettime(CLOCK_MONOTONIC, &t);
}

static void code_file(uint64_t ms, int fd)
{
	void *page;

	need(fd >= 0 && !ftruncate(fd, PAGE), "a file for code");
	page = map(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	go_and_run(copy_hot(page), ms);
}

static void memfd(uint64_t ms, char **files)
{
	code_file(ms, memfd_create(files[0], 0));
}

static void shared_file(uint64_t ms, char **files)
{
	code_file(ms, open(files[0], O_RDWR | O_CREAT, 0700));
}

static void huge_file(uint64_t ms, char **files)
{
	int fd = open(files[0], O_RDWR | O_CREAT, 0700);

	need(fd >= 0 && !ftruncate(fd, 2 << 20), "a file for code");
	go_and_run(copy_hot(map(NULL, 2 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0)), ms);
}

static void sysv(uint64_t ms, char **files)
{
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0700);
	void *page = shmat(id, NULL, SHM_EXEC);

	(void)files;
	need(page != (void *)-1, "shmat");
	shmctl(id, IPC_RMID, NULL);
	go_and_run(copy_hot(page), ms);
}

/* ---- processes ---- */

static void wait_for(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, 0) == pid && !status, "child");
}

static void forked(uint64_t ms, char **files)
{
	pid_t pid;

	(void)files;
	go();
	pid = fork();
	if (!pid) {
		run(hot, ms);
		_exit(0);
	}
	wait_for(pid);
}

/* The child runs in the parent's memory and then in another program. */
static void vforked(uint64_t ms, char **files)
{
	char number[32];
	pid_t pid;

	go();
	snprintf(number, sizeof(number), "%lu", (unsigned long)ms / 2);
	pid = vfork();
	if (!pid) {
		run(hot, ms / 2);
		execl(files[0], files[0], "plain", number, (char *)NULL);
		_exit(4);
	}
	wait_for(pid);
}

static void *in_thread(void *arg)
{
	usleep(50000); /* the leader is gone by then */
	go_and_run(hot, *(uint64_t *)arg);
	exit(0);
}

static void threads(uint64_t ms, char **files)
{
	static uint64_t thread_ms;
	pthread_t thread;

	(void)files;
	thread_ms = ms;
	need(!pthread_create(&thread, NULL, in_thread, &thread_ms), "pthread_create");
	pthread_exit(NULL);
}

static void executed(uint64_t ms, char **files)
{
	char number[32];

	go();
	run(hot, ms / 2);
	snprintf(number, sizeof(number), "%lu", (unsigned long)ms / 2);
	execl(files[0], files[0], "plain", number, (char *)NULL);
	need(0, "exec");
}

static const struct {
	const char *name;
	void (*run)(uint64_t ms, char **files);
} kinds[] = {
	{ "plain", plain },
	{ "library", library },
	{ "library-twice", library_twice },
	{ "jit-after-library", jit_after_library },
	{ "mprotect-later", mprotect_later },
	{ "mprotect-part", mprotect_part },
	{ "mremap-file", mremap_file },
	{ "mremap-over", mremap_over },
	{ "stays", stays },
	{ "mremap-memory", mremap_memory },
	{ "text-copied", text_copied },
	{ "text-moved", text_moved },
	{ "memory", memory },
	{ "huge-memory", huge_memory },
	{ "heap", heap },
	{ "stack", stack },
	{ "vdso", vdso },
	{ "memfd", memfd },
	{ "shared-file", shared_file },
	{ "huge-file", huge_file },
	{ "sysv", sysv },
	{ "forked", forked },
	{ "vforked", vforked },
	{ "threads", threads },
	{ "executed", executed },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc >= 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		kinds[i].run(strtoul(argv[2], NULL, 10), argv + 3);
		return after_hot(0) != 0;
	}
	fprintf(stderr, "usage: mapped KIND MS [FILE ...]\n");
	return 2;
}

#endif
