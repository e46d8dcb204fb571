// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A process that makes code at run time, as a JIT compiler does, for the system tests. Prints
 * nanoseconds of CPU time:
 *
 *   jit_work map MS          about three quarters of MS in jit_alpha, a quarter in jit_beta; both
 *                            in /tmp/perf-PID.map
 *   jit_work late MS         the same, but the map is written after half of the time
 *   jit_work exit MS         the same, but the map is empty until the end
 *   jit_work after MS        the same, but there is no map until the end
 *   jit_work pipe            the same, until the input ends
 *   jit_work grow MS         the same, but jit_beta is appended to the map after half of the time
 *   jit_work rewrite MS      the same, but the map is truncated and written anew for that
 *   jit_work dual MS         the same, written through one mapping of a memfd and run in another
 *   jit_work alien MS UID    the same with a map that belongs to UID
 *   jit_work link MS PATH    the same with a symbolic link to PATH in place of the map
 *   jit_work fifo MS         the same with a FIFO in place of the map
 *   jit_work silent MS       the same without a map
 *   jit_work replace MS      half of MS in jit_old, then half of it in jit_new at the same address
 *   jit_work turn MS         the same, and jit_old runs on until SIGUSR1
 *   jit_work fork MS         jit_alpha and jit_beta in a child that was forked after they were made
 *   jit_work crowd MS N      MS in jit_alpha in each of N children that were forked after it was
 *                            made, without a map; they stay until the input ends
 *   jit_work maps MS N       the same, and each child has a map of its own
 *   jit_work dump MS DIR     the first with a jitdump in DIR: code bytes, source lines, and
 *                            jit_beta moved after half of the time; its name goes
 *                            when it is mapped
 *   jit_work kept MS DIR     the same, and the jitdump keeps its name, as JIT compilers leave it
 *   jit_work buffered MS DIR half of MS in the first two; a quarter in jit_old and a quarter in
 *                            jit_new at the same address. The jitdump is written at the end, with
 *                            the times at which the functions were made. Prints three numbers: the
 *                            last is that of jit_old and jit_new
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/compiler.h"
#include "tests/die.h"

#define NS_PER_MS   UINT64_C(1000000)
#define SLICE_STEPS 20000u
#define ARENA_BYTES 65536u
#define ALPHA_AT    0x100u
#define BETA_AT     0x340u
#define MOVED_AT    0x2000u
#define REUSED_AT   0x4000u
#define ALPHA       "jit_alpha"
#define BETA        "jit_beta of a \"file\" /x/y.js:1"
#define SKIP        77

typedef uint64_t (*made_function)(uint64_t steps, uint64_t x);

/* x = x * odd + 1, steps times: one loop, no calls. */
#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
static const uint8_t loop_code[] = {
	0x48, 0x89, 0xf0,                         /* mov  %rsi,%rax */
	0x48, 0x69, 0xc0, 0x2d, 0xf4, 0x51, 0x58, /* imul $0x5851f42d,%rax,%rax */
	0x48, 0x83, 0xc0, 0x01,                   /* add  $1,%rax */
	0x48, 0xff, 0xcf,                         /* dec  %rdi */
	0x75, 0xf0,                               /* jne  3 */
	0xc3,                                     /* ret */
};
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
static const uint32_t loop_code[] = {
	0x9b010021, /* madd x1, x1, x1, x0 */
	0xf1000400, /* subs x0, x0, #1 */
	0x54ffffc1, /* b.ne 0 */
	0xaa0103e0, /* mov  x0, x1 */
	0xd65f03c0, /* ret */
};
#else
#define HOST_MACHINE EM_NONE
static const uint8_t loop_code[1];
#endif

static uint8_t *writable, *executable; /* the arena; the same but for dual mapping */

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
	uint64_t value = strtoull(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "jit_work: bad number '%s'\n", text);
		exit(2);
	}
	return value;
}

/* ---- code ---- */

static void make_arena(void)
{
	executable = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (executable == MAP_FAILED)
		die("mmap", -errno);
	writable = executable;
}

static void make_dual_arena(void)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, ARENA_BYTES) < 0)
		die("memfd", -errno);
	writable = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	executable = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (writable == MAP_FAILED || executable == MAP_FAILED)
		die("mmap", -errno);
	close(fd);
}

static made_function make_function(size_t at)
{
	made_function function;
	uint8_t *code = executable + at;

	memcpy(writable + at, loop_code, sizeof(loop_code));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(loop_code));
	memcpy(&function, &code, sizeof(function));
	return function;
}

static uint64_t run_ns(made_function function, uint64_t *x)
{
	uint64_t before = cpu_ns();

	*x = function(SLICE_STEPS + (*x >> 48), *x);
	return cpu_ns() - before;
}

/* By chance, not by the time spent so far: work.c says why. */
static void run_shares(uint64_t ns, made_function alpha, made_function beta, uint64_t spent[2])
{
	uint64_t x = 1, end = spent[0] + spent[1] + ns;

	while (spent[0] + spent[1] < end) {
		bool turn_alpha = x >> 46 & 3;

		spent[!turn_alpha] += run_ns(turn_alpha ? alpha : beta, &x);
	}
}

static int report(const uint64_t spent[2])
{
	printf("%llu %llu\n", (unsigned long long)spent[0], (unsigned long long)spent[1]);
	return 0;
}

/* ---- perf map ---- */

static void map_path(char path[64])
{
	snprintf(path, 64, "/tmp/perf-%d.map", (int)getpid());
}

static int open_map(int flags)
{
	char path[64];
	int fd;

	map_path(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	if (fd < 0)
		die("perf map", -errno);
	return fd;
}

static void write_line(int fd, size_t at, const char *name)
{
	if (dprintf(fd, "%llx %zx %s\n", (unsigned long long)(uintptr_t)(executable + at), sizeof(loop_code), name) < 0)
		die("perf map", -errno);
}

static void write_both(int fd)
{
	write_line(fd, ALPHA_AT, ALPHA);
	write_line(fd, BETA_AT, BETA);
	close(fd);
}

static void write_map(void)
{
	write_both(open_map(O_TRUNC));
}

static int run_both(uint64_t ms)
{
	uint64_t spent[2] = { 0 };

	run_shares(ms * NS_PER_MS, make_function(ALPHA_AT), make_function(BETA_AT), spent);
	return report(spent);
}

static int do_map(char **args)
{
	make_arena();
	write_map();
	return run_both(number(args[0]));
}

static int do_late(char **args)
{
	uint64_t spent[2] = { 0 }, half_ns = number(args[0]) * NS_PER_MS / 2;
	made_function alpha, beta;

	make_arena();
	alpha = make_function(ALPHA_AT);
	beta = make_function(BETA_AT);
	run_shares(half_ns, alpha, beta, spent);
	write_map();
	run_shares(half_ns, alpha, beta, spent);
	return report(spent);
}

static int do_exit(char **args)
{
	int fd, result;

	make_arena();
	fd = open_map(O_TRUNC);
	result = run_both(number(args[0]));
	write_both(fd);
	return result;
}

static int do_after(char **args)
{
	int result;

	make_arena();
	result = run_both(number(args[0]));
	write_map();
	return result;
}

static int do_pipe(char **args OP_UNUSED)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t spent[2] = { 0 };
	made_function alpha, beta;

	make_arena();
	alpha = make_function(ALPHA_AT);
	beta = make_function(BETA_AT);
	while (!poll(&input, 1, 0))
		run_shares(NS_PER_MS, alpha, beta, spent);
	write_map();
	return report(spent);
}

static int grow(char **args, bool is_rewritten)
{
	uint64_t spent[2] = { 0 }, half_ns = number(args[0]) * NS_PER_MS / 2;
	made_function alpha, beta;
	int fd;

	make_arena();
	alpha = make_function(ALPHA_AT);
	beta = make_function(BETA_AT);
	fd = open_map(O_TRUNC);
	write_line(fd, ALPHA_AT, ALPHA);
	run_shares(half_ns, alpha, beta, spent);
	if (is_rewritten)
		write_map();
	else
		write_line(fd, BETA_AT, BETA);
	close(fd);
	run_shares(half_ns, alpha, beta, spent);
	return report(spent);
}

static int do_grow(char **args)
{
	return grow(args, false);
}

static int do_rewrite(char **args)
{
	return grow(args, true);
}

static int do_dual(char **args)
{
	make_dual_arena();
	write_map();
	return run_both(number(args[0]));
}

static int do_alien(char **args)
{
	char path[64];

	make_arena();
	write_map();
	map_path(path);
	if (chown(path, (uid_t)number(args[1]), 0) < 0)
		die("chown", -errno);
	return run_both(number(args[0]));
}

static int do_link(char **args)
{
	char path[64];

	make_arena();
	write_map();
	map_path(path);
	if (rename(path, args[1]) < 0 || symlink(args[1], path) < 0)
		die("symlink", -errno);
	return run_both(number(args[0]));
}

static int do_fifo(char **args)
{
	char path[64];

	make_arena();
	map_path(path);
	if (mkfifo(path, 0644) < 0)
		die("mkfifo", -errno);
	return run_both(number(args[0]));
}

static int do_silent(char **args)
{
	make_arena();
	return run_both(number(args[0]));
}

static volatile sig_atomic_t may_turn = 1;

static void on_turn(int number)
{
	(void)number;
	may_turn = 1;
}

static int do_replace(char **args)
{
	uint64_t spent[2] = { 0 }, half_ns = number(args[0]) * NS_PER_MS / 2, x = 1;
	static const char *const names[] = { "jit_old", "jit_new" };
	int fd;

	make_arena();
	fd = open_map(O_TRUNC | O_APPEND);
	for (size_t i = 0; i < 2; i++) {
		made_function function = make_function(ALPHA_AT);

		write_line(fd, ALPHA_AT, names[i]);
		while (spent[i] < half_ns || !may_turn)
			spent[i] += run_ns(function, &x);
	}
	close(fd);
	return report(spent);
}

static int do_turn(char **args)
{
	may_turn = 0;
	if (signal(SIGUSR1, on_turn) == SIG_ERR)
		die("signal", -errno);
	return do_replace(args);
}

static int do_fork(char **args)
{
	int status;
	pid_t pid;

	make_arena();
	write_map();
	pid = fork();
	if (pid < 0)
		die("fork", -errno);
	if (!pid)
		return run_both(number(args[0]));
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 1;
}

static void run_in_crowd(uint64_t ns, bool with_map)
{
	made_function alpha = make_function(ALPHA_AT);
	uint64_t spent = 0, x = 1;

	if (with_map)
		write_map();
	while (spent < ns)
		spent += run_ns(alpha, &x);
}

/* Prints the number of children when all have done their work. They end with this process. */
static int crowd(char **args, bool with_map)
{
	uint64_t ns = number(args[0]) * NS_PER_MS, nr = number(args[1]);
	int done[2], stay[2];
	char byte = 0;

	make_arena();
	if (pipe(done) < 0 || pipe(stay) < 0)
		die("pipe", -errno);
	for (uint64_t i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork", -errno);
		if (pid)
			continue;
		close(stay[1]);
		run_in_crowd(ns, with_map);
		if (write(done[1], &byte, 1) != 1)
			die("pipe", -errno);
		_exit(read(stay[0], &byte, 1) != 0);
	}
	for (uint64_t i = 0; i < nr; i++)
		if (read(done[0], &byte, 1) != 1)
			die("pipe", -errno);
	printf("%llu\n", (unsigned long long)nr);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	close(stay[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int do_crowd(char **args)
{
	return crowd(args, false);
}

static int do_maps(char **args)
{
	return crowd(args, true);
}

/* ---- jitdump ---- */

struct dump_header {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};

struct dump_record {
	uint32_t id, total_size;
	uint64_t timestamp;
};

static int dump_fd;
static uint64_t record_ns; /* time of the next records; 0: now */

static void put(const void *bytes, size_t nr_bytes)
{
	if (write(dump_fd, bytes, nr_bytes) != (ssize_t)nr_bytes)
		die("jitdump", -errno);
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_record(uint32_t id, size_t payload_bytes)
{
	struct dump_record record = { id, (uint32_t)(sizeof(record) + payload_bytes),
				      record_ns ? record_ns : now_ns(CLOCK_MONOTONIC) };

	put(&record, sizeof(record));
}

static void put_ids(void)
{
	uint32_t ids[2] = { (uint32_t)getpid(), (uint32_t)getpid() };

	put(ids, sizeof(ids));
}

/* Line 10 at the start, line 11 in the loop; line 11 is in the file of line 10. */
static void put_lines(size_t at, const char *file)
{
	uint64_t start = (uintptr_t)(executable + at);
	uint32_t first[2] = { 10, 0 }, second[2] = { 11, 0 };

	put_record(2, 16 + 16 + strlen(file) + 1 + 16 + 2);
	put_u64(start);
	put_u64(2);
	put_u64(start);
	put(first, sizeof(first));
	put(file, strlen(file) + 1);
	put_u64(start + 3);
	put(second, sizeof(second));
	put("\xff", 2);
}

static void put_load(size_t at, const char *name, uint64_t index)
{
	uint64_t start = (uintptr_t)(executable + at);

	put_record(0, 8 + 32 + strlen(name) + 1 + sizeof(loop_code));
	put_ids();
	put_u64(start);
	put_u64(start);
	put_u64(sizeof(loop_code));
	put_u64(index);
	put(name, strlen(name) + 1);
	put(loop_code, sizeof(loop_code));
}

static void put_move(size_t from, size_t to, uint64_t index)
{
	put_record(1, 8 + 40);
	put_ids();
	put_u64((uintptr_t)(executable + to));
	put_u64((uintptr_t)(executable + from));
	put_u64((uintptr_t)(executable + to));
	put_u64(sizeof(loop_code));
	put_u64(index);
}

static void open_dump(const char *dir, bool is_kept)
{
	struct dump_header header = {
		0x4a695444, 1, sizeof(header), HOST_MACHINE, 0, (uint32_t)getpid(), now_ns(CLOCK_MONOTONIC), 0
	};
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, (int)getpid());
	dump_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (dump_fd < 0)
		die("jitdump", -errno);
	put(&header, sizeof(header));
	if (mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_fd, 0) == MAP_FAILED)
		die("mmap of the jitdump", -errno);
	if (!is_kept)
		unlink(path); /* it is read by its mapping */
}

static int dump(char **args, bool is_kept)
{
	uint64_t spent[2] = { 0 }, half_ns = number(args[0]) * NS_PER_MS / 2;
	made_function alpha, beta;

	make_arena();
	open_dump(args[1], is_kept);
	put_lines(ALPHA_AT, "/src/alpha.js");
	put_load(ALPHA_AT, "jit_alpha", 1);
	put_load(BETA_AT, "jit_beta", 2);
	alpha = make_function(ALPHA_AT);
	beta = make_function(BETA_AT);
	run_shares(half_ns, alpha, beta, spent);
	beta = make_function(MOVED_AT);
	put_move(BETA_AT, MOVED_AT, 2);
	run_shares(half_ns, alpha, beta, spent);
	put_record(3, 0);
	return report(spent);
}

static uint64_t run_alone(size_t at, uint64_t ns, uint64_t *ret_made_ns)
{
	made_function function = make_function(at);
	uint64_t spent = 0, x = 1;

	*ret_made_ns = now_ns(CLOCK_MONOTONIC);
	while (spent < ns)
		spent += run_ns(function, &x);
	return spent;
}

static int do_buffered(char **args)
{
	uint64_t spent[2] = { 0 }, ns = number(args[0]) * NS_PER_MS, made_ns[3], reused;
	made_function alpha, beta;

	make_arena();
	open_dump(args[1], true);
	alpha = make_function(ALPHA_AT);
	beta = make_function(BETA_AT);
	made_ns[0] = now_ns(CLOCK_MONOTONIC);
	run_shares(ns / 2, alpha, beta, spent);
	reused = run_alone(REUSED_AT, ns / 4, &made_ns[1]);
	reused += run_alone(REUSED_AT, ns / 4, &made_ns[2]);
	record_ns = made_ns[0];
	put_lines(ALPHA_AT, "/src/alpha.js");
	put_load(ALPHA_AT, "jit_alpha", 1);
	put_load(BETA_AT, "jit_beta", 2);
	record_ns = made_ns[1];
	put_load(REUSED_AT, "jit_old", 3);
	record_ns = made_ns[2];
	put_load(REUSED_AT, "jit_new", 4);
	put_record(3, 0);
	printf("%llu ", (unsigned long long)spent[0]);
	spent[0] = spent[1];
	spent[1] = reused;
	return report(spent);
}

static int do_dump(char **args)
{
	return dump(args, false);
}

static int do_kept(char **args)
{
	return dump(args, true);
}

static const struct {
	const char *name;
	int min_args;
	int (*run)(char **args);
} kinds[] = {
	{ "map", 1, do_map },         { "late", 1, do_late },         { "dual", 1, do_dual },     { "alien", 2, do_alien },
	{ "link", 2, do_link },       { "fifo", 1, do_fifo },         { "silent", 1, do_silent }, { "replace", 1, do_replace },
	{ "fork", 1, do_fork },       { "dump", 2, do_dump },         { "kept", 2, do_kept },     { "crowd", 2, do_crowd },
	{ "maps", 2, do_maps },       { "exit", 1, do_exit },         { "after", 1, do_after },   { "grow", 1, do_grow },
	{ "rewrite", 1, do_rewrite }, { "buffered", 2, do_buffered }, { "pipe", 0, do_pipe },       { "turn", 1, do_turn },
};

int main(int argc, char **argv)
{
	if (HOST_MACHINE == EM_NONE)
		return SKIP;
	for (size_t i = 0; argc > 1 && i < op_array_size(kinds); i++)
		if (!strcmp(argv[1], kinds[i].name) && argc - 2 >= kinds[i].min_args)
			return kinds[i].run(argv + 2);
	fprintf(stderr, "usage: jit_work KIND ARGUMENT..., see the source\n");
	return 2;
}
