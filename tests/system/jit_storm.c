// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Processes of several users whose files of JIT code are expensive to read, for the system tests:
 *
 *   jit_storm KIND PROCESSES USERS UID KIB DIRECTORY
 *
 * The users are UID and the numbers after it. Each process runs a little, again and again, in
 * memory that its file describes, until the standard input ends. The processes of a user share a
 * file of KIB KiB. Prints the number of processes when all of them run. The kinds:
 *
 *   plain   a map with one small function
 *   wide    a map with functions of 64 MiB that overlap
 *   bytes   a map with functions of one byte, from the last to the first
 *   moves   a jitdump in DIRECTORY with a function of 64 MiB that is moved again and again
 *   lines   a jitdump with many source lines that are not in the function
 */
#include <elf.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/compiler.h"
#include "tests/die.h"

#define SKIP        77
#define LOOP_STEPS  300000u /* a tenth of a millisecond, about */
#define PAUSE_TIMES 200u    /* as long as the loop ran, so that slow machines are not full */
#define CODE_BYTES  4096u
#define WIDE_BYTES  0x4000000u
#define SPAN_BYTES  0x2000000u
#define MOVE_BYTES  64u
#define ENTRY_BYTES 18u
#define LINE_BYTES  26u /* at least, so that the code is among the functions of one byte */

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
static const uint8_t loop_code[] = {
	0x48, 0xff, 0xcf, /* dec %rdi */
	0x75, 0xfb,       /* jne 0 */
	0xc3,             /* ret */
};
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
static const uint32_t loop_code[] = {
	0xf1000400, /* subs x0, x0, #1 */
	0x54ffffe1, /* b.ne 0 */
	0xd65f03c0, /* ret */
};
#else
#define HOST_MACHINE EM_NONE
static const uint8_t loop_code[1];
#endif

struct storm {
	const char *kind, *dir;
	uint64_t nr_processes, nr_users, first_uid, nr_bytes;
	uint8_t *code;
	pid_t *pids;
	int go[2], ready[2]; /* pipes from and to the parent */
};

static bool has_dump(const struct storm *storm)
{
	return !strcmp(storm->kind, "moves") || !strcmp(storm->kind, "lines");
}

static void file_path(const struct storm *storm, uint64_t index, char path[256])
{
	if (has_dump(storm))
		snprintf(path, 256, "%s/jit-%d.dump", storm->dir, (int)storm->pids[index]);
	else
		snprintf(path, 256, "/tmp/perf-%d.map", (int)storm->pids[index]);
}

/* ---- files ---- */

static void write_map(const struct storm *storm, FILE *file)
{
	unsigned long long code = (uintptr_t)storm->code;
	bool is_wide = !strcmp(storm->kind, "wide");

	if (!strcmp(storm->kind, "plain")) {
		fprintf(file, "%llx %zx plain\n", code, sizeof(loop_code));
		return;
	}
	for (uint64_t i = 0; (uint64_t)ftell(file) < storm->nr_bytes; i++) {
		if (is_wide)
			fprintf(file, "%llx %x wide%llu\n", code - i * 4096 % SPAN_BYTES, WIDE_BYTES, (unsigned long long)i);
		else
			fprintf(file, "%llx 1 b%llu\n", code + storm->nr_bytes / LINE_BYTES - i, (unsigned long long)i);
	}
}

static void put(FILE *file, uint64_t value)
{
	fwrite(&value, sizeof(value), 1, file);
}

static void put_record(FILE *file, uint32_t id, uint32_t nr_bytes)
{
	put(file, (uint64_t)nr_bytes << 32 | id);
	put(file, 1); /* its time */
}

static void put_load(const struct storm *storm, FILE *file, uint32_t code_bytes)
{
	put_record(file, 0, 56 + 8 + code_bytes);
	put(file, 1);
	put(file, (uintptr_t)storm->code);
	put(file, (uintptr_t)storm->code);
	put(file, code_bytes);
	put(file, 1);
	fwrite("a_name.", 8, 1, file);
	fseek(file, code_bytes - 1, SEEK_CUR);
	fputc(0, file);
}

static void put_move(const struct storm *storm, FILE *file, uint64_t i)
{
	put_record(file, 1, MOVE_BYTES);
	put(file, 1);
	put(file, 0);
	put(file, (uintptr_t)storm->code - i % 4096);
	put(file, (uintptr_t)storm->code - (i + 1) % 4096);
	put(file, WIDE_BYTES);
	put(file, 1);
}

static void put_lines(const struct storm *storm, FILE *file)
{
	uint64_t nr = storm->nr_bytes / ENTRY_BYTES;

	put_record(file, 2, (uint32_t)(32 + nr * ENTRY_BYTES));
	put(file, (uintptr_t)storm->code);
	put(file, nr);
	for (uint64_t i = 0; i < nr; i++) {
		put(file, 1);
		put(file, 1);
		fwrite("x", 2, 1, file);
	}
	put_load(storm, file, 16);
}

static void write_dump(const struct storm *storm, FILE *file)
{
	put(file, (uint64_t)1 << 32 | 0x4a695444);
	put(file, (uint64_t)HOST_MACHINE << 32 | 40);
	put(file, 0);
	put(file, 0);
	put(file, 0);
	if (!strcmp(storm->kind, "lines")) {
		put_lines(storm, file);
		return;
	}
	put_load(storm, file, WIDE_BYTES);
	for (uint64_t i = 0; i < storm->nr_bytes / MOVE_BYTES; i++)
		put_move(storm, file, i);
}

/* The processes of a user have one file under many names. It is younger than the processes. */
static void write_file(const struct storm *storm, uint64_t user)
{
	uid_t uid = (uid_t)(storm->first_uid + user);
	char path[256], other[256];
	FILE *file;

	file_path(storm, user, path);
	unlink(path);
	file = fopen(path, "we");
	if (!file)
		die(path, -errno);
	if (has_dump(storm))
		write_dump(storm, file);
	else
		write_map(storm, file);
	if (ferror(file) || fchown(fileno(file), uid, uid) < 0 || fclose(file))
		die(path, -errno);
	for (uint64_t i = user + storm->nr_users; i < storm->nr_processes; i += storm->nr_users) {
		file_path(storm, i, other);
		unlink(other);
		if (link(path, other) < 0)
			die(other, -errno);
	}
}

/* ---- processes ---- */

static void map_dump(const struct storm *storm, uint64_t index)
{
	char path[256];
	int fd;

	file_path(storm, index, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		die(path, -errno);
}

static void run(const struct storm *storm, uint64_t index)
{
	uid_t uid = (uid_t)(storm->first_uid + index % storm->nr_users);
	void (*function)(uint64_t steps);
	char byte;

	if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("setuid", -errno);
	if (read(storm->go[0], &byte, 1) != 1)
		exit(1);
	storm->pids[index] = getpid();
	if (has_dump(storm))
		map_dump(storm, index);
	if (write(storm->ready[1], &byte, 1) != 1)
		die("pipe", -errno);
	memcpy(&function, &storm->code, sizeof(function));
	for (;;) {
		clock_t begin = clock(); /* in us, as POSIX says */

		function(LOOP_STEPS);
		usleep((useconds_t)(clock() - begin) * PAUSE_TIMES);
	}
}

static void start(struct storm *storm)
{
	char byte = 0;

	for (uint64_t i = 0; i < storm->nr_processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork", -errno);
		if (!pid)
			run(storm, i);
		storm->pids[i] = pid;
	}
	for (uint64_t user = 0; user < storm->nr_users && user < storm->nr_processes; user++)
		write_file(storm, user);
	for (uint64_t i = 0; i < storm->nr_processes; i++)
		if (write(storm->go[1], &byte, 1) != 1)
			die("pipe", -errno);
	for (uint64_t i = 0; i < storm->nr_processes; i++)
		if (read(storm->ready[0], &byte, 1) != 1)
			die("pipe", -errno);
	printf("%llu\n", (unsigned long long)storm->nr_processes);
	fflush(stdout);
}

static void stop(const struct storm *storm)
{
	char path[256];

	for (uint64_t i = 0; i < storm->nr_processes; i++) {
		kill(storm->pids[i], SIGKILL);
		file_path(storm, i, path);
		unlink(path);
	}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	struct storm storm = { 0 };
	char byte;

	if (HOST_MACHINE == EM_NONE)
		return SKIP;
	if (argc != 7) {
		fprintf(stderr, "usage: jit_storm KIND PROCESSES USERS UID KIB DIRECTORY\n");
		return 2;
	}
	storm.kind = argv[1];
	storm.nr_processes = strtoull(argv[2], NULL, 10);
	storm.nr_users = strtoull(argv[3], NULL, 10);
	storm.first_uid = strtoull(argv[4], NULL, 10);
	storm.nr_bytes = strtoull(argv[5], NULL, 10) << 10;
	storm.dir = argv[6];
	storm.pids = calloc(storm.nr_processes, sizeof(*storm.pids));
	storm.code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!storm.pids || storm.code == MAP_FAILED || pipe(storm.go) < 0 || pipe(storm.ready) < 0)
		die("mmap", -errno);
	memcpy(storm.code, loop_code, sizeof(loop_code));
	__builtin___clear_cache((char *)storm.code, (char *)storm.code + sizeof(loop_code));
	start(&storm);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	stop(&storm);
	return 0;
}
