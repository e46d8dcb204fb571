/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that looks like PHP 8.2 and lies. usage: forged_php WAY MILLISECONDS
 *
 * It exports the symbols by which opd knows PHP, and burns CPU time in its "loop".
 * WAY: loop: the list of calls is a circle; wild: the caller is nowhere; lengths: texts do not end;
 * bits: all bits of the function are set; good: one call of forged() in /a/forged.php.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT 24 /* in a string */

uint8_t executor_globals[1800] __attribute__((used, visibility("default"), aligned(16))) = { 1 };
const uint8_t php_random_algo_mt19937[16] __attribute__((used, visibility("default"))) = { 1 };

struct object {
	uint8_t bytes[512] __attribute__((aligned(16)));
};

static struct object call, function, name, file;
static uint8_t long_text[1 << 16];

static void put(void *at, size_t offset, uint64_t value)
{
	memcpy((uint8_t *)at + offset, &value, sizeof(value));
}

/* Offsets of 8.2, as pipeline/runtimes/php.c has them. */
static void make_good(void)
{
	uint32_t first_line = 7;

	put(executor_globals, 488, (uintptr_t)&call);
	put(&call, 24, (uintptr_t)&function);
	function.bytes[0] = 2; /* it is the program's own */
	put(&function, 8, (uintptr_t)&name);
	put(&function, 152, (uintptr_t)&file);
	memcpy(function.bytes + 160, &first_line, sizeof(first_line));
	memcpy(name.bytes + TEXT, "forged", sizeof("forged"));
	memcpy(file.bytes + TEXT, "/a/forged.php", sizeof("/a/forged.php"));
}

static void lie(const char *way)
{
	if (!strcmp(way, "loop")) {
		put(&call, 48, (uintptr_t)&call);
	} else if (!strcmp(way, "wild")) {
		put(&call, 48, 0xdead0000beef0000);
	} else if (!strcmp(way, "lengths")) {
		memset(long_text, '\x1b', sizeof(long_text));
		put(&function, 8, (uintptr_t)long_text);
		put(&function, 152, (uintptr_t)long_text);
		put(&function, 80, UINT64_MAX);
		put(&function, 88, UINT64_MAX - 64);
	} else if (!strcmp(way, "bits")) {
		memset(&function, 0xff, sizeof(function));
	}
}

uint64_t execute_ex(unsigned long ms);

__attribute__((noinline, used, visibility("default"))) uint64_t execute_ex(unsigned long ms)
{
	uint64_t sum = 0;

	while ((unsigned long)clock() / (CLOCKS_PER_SEC / 1000) < ms)
		for (unsigned int i = 0; i < 10000; i++)
			sum += (sum ^ i) * 7;
	return sum;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: forged_php WAY MILLISECONDS\n");
		return 2;
	}
	make_good();
	lie(argv[1]);
	printf("%llu\n", (unsigned long long)execute_ex(strtoul(argv[2], NULL, 10)));
	return 0;
}
