// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runs in the place of opd-tables. The file `faults` beside this program has lines "INODE FAULT".
 * For an image with such an inode it has that fault, for all others it runs the program `real`
 * beside it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/unwind/row_table.h"

static int here_fd; /* the directory of this program */
static const char *fault;

static void need(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	_exit(3);
}

/* Tells the test that it has begun. */
static void note(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "said/%s", fault);
	fd = openat(here_fd, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	need(fd >= 0 && dprintf(fd, "%d\n", (int)getpid()) > 0, path);
	close(fd);
}

static void run_real(char **argv)
{
	int fd = openat(here_fd, "real", O_RDONLY | O_CLOEXEC);

	fexecve(fd, argv, (char *[]){ NULL });
	need(0, "real");
}

/* The true table, of another file unless path is NULL. */
static void make_table(const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		need(!path || dup2(open(path, O_RDONLY), STDIN_FILENO) == STDIN_FILENO, path);
		run_real((char *[]){ "opd-tables", NULL });
	}
	need(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "the true table");
}

static void read_header(struct op_row_table_header *header)
{
	need(pread(STDOUT_FILENO, header, sizeof(*header), 0) == (ssize_t)sizeof(*header), "header");
}

/* Every rule of the true table becomes this one. */
static void lie(const struct op_row_rule *rule)
{
	struct op_row_table_header header;

	make_table(NULL);
	read_header(&header);
	for (uint32_t i = 1; i < header.nr_rules; i++)
		need(pwrite(STDOUT_FILENO, rule, sizeof(*rule),
			    (off_t)(sizeof(header) + 4u * header.nr_rows + sizeof(*rule) * i)) == (ssize_t)sizeof(*rule), "rule");
}

/* ---- faults ---- */

static void be_killed(void)
{
	raise(SIGKILL);
}

static void crash(void)
{
	raise(SIGSEGV);
}

static void refuse(void)
{
	_exit(1);
}

static void be_empty(void)
{
}

static void write_garbage(void)
{
	uint64_t x = 88172645463325252u;

	for (int i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		need(write(STDOUT_FILENO, &x, sizeof(x)) == (ssize_t)sizeof(x), "garbage");
	}
}

static void cut(void)
{
	struct op_row_table_header header;

	make_table(NULL);
	read_header(&header);
	need(!ftruncate(STDOUT_FILENO, (off_t)header.nr_bytes - 100), "cut");
}

/* More rows than the file has. */
static void count_wrong(void)
{
	struct op_row_table_header header;

	make_table(NULL);
	read_header(&header);
	header.nr_rows = 0xfffffff0u;
	need(pwrite(STDOUT_FILENO, &header, sizeof(header), 0) == (ssize_t)sizeof(header), "header");
}

/* Until no more is allowed. */
static void write_for_ever(void)
{
	static char block[1 << 20];

	while (write(STDOUT_FILENO, block, sizeof(block)) > 0)
		continue;
}

/* A hole that is larger than any table. */
static void make_huge(void)
{
	need(!ftruncate(STDOUT_FILENO, (off_t)1 << 50), "huge");
}

static void take_another(void)
{
	make_table("/bin/sh");
}

/* The test changes the image meanwhile. */
static void wait_for_change(void)
{
	note();
	while (faccessat(here_fd, "go", F_OK, 0) < 0)
		usleep(20000);
	make_table(NULL);
}

/* The caller's stack pointer is 2 GB away. */
static void point_far_away(void)
{
	lie(&(struct op_row_rule){ .cfa_how = OP_CFA_REG, .cfa_reg = 7, .cfa_offset = INT32_MAX - 7,
				   .ra_how = OP_VALUE_AT_CFA, .ra_offset = INT32_MIN + 8 });
}

/* The word on top of the stack, again and again: a caller that is its own caller. */
static void loop(void)
{
	lie(&(struct op_row_rule){ .cfa_how = OP_CFA_REG, .cfa_reg = 7, .ra_how = OP_VALUE_AT_CFA, .flags = OP_ROW_IS_SIGNAL });
}

/* Each word of the stack is a return address. */
static void take_any_word(void)
{
	lie(&(struct op_row_rule){ .cfa_how = OP_CFA_REG, .cfa_reg = 7, .cfa_offset = 8, .ra_how = OP_VALUE_AT_CFA,
				   .ra_offset = -8 });
}

static void stop(void)
{
	note();
	raise(SIGSTOP);
}

static void sleep_for_ever(void)
{
	note();
	for (;;)
		pause();
}

static const struct {
	const char *name;
	void (*make)(void);
} faults[] = {
	{ "killed", be_killed },       { "segv", crash },	   { "refused", refuse },	{ "empty", be_empty },
	{ "garbage", write_garbage },  { "short", cut },	   { "counts", count_wrong },	{ "endless", write_for_ever },
	{ "huge", make_huge },	       { "another", take_another }, { "changed", wait_for_change }, { "offsets", point_far_away },
	{ "loops", loop },	       { "nonsense", take_any_word }, { "stopped", stop },	{ "asleep", sleep_for_ever },
};

/* The fault of the image; false: it has none. */
static int find_fault(char name[32])
{
	int fd = openat(here_fd, "faults", O_RDONLY | O_CLOEXEC), is_found = 0;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned long long inode;
	struct stat st;

	need(file && !fstat(STDIN_FILENO, &st), "faults");
	while (!is_found && fscanf(file, "%llu %31s", &inode, name) == 2)
		is_found = inode == st.st_ino;
	fclose(file);
	return is_found;
}

int main(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };
	char path[4096] = "", name[32];

	(void)argc;
	need(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0, "exe");
	*strrchr(path, '/') = '\0';
	here_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	need(here_fd >= 0 && !setrlimit(RLIMIT_CORE, &none), path);
	if (!find_fault(name))
		run_real(argv);
	fault = name;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!strcmp(faults[i].name, name)) {
			faults[i].make();
			return 0;
		}
	}
	return 3;
}
