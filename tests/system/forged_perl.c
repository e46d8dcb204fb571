/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that looks like Perl 5.36 and lies. usage: forged_perl WAY MILLISECONDS
 *
 * It exports the symbols by which opd knows Perl, and burns CPU time in its "loop".
 * WAY: loop: the list of stacks is a circle; wild: contexts are nowhere; lengths: there are 2^31
 * contexts; negative: fewer than none; bits: all bits of the data of the function are set; good:
 * one call of main::forged in /a/forged.pl.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint8_t interpreter[3768] __attribute__((used, aligned(16)));
uint8_t *PL_curinterp __attribute__((used, visibility("default"))) = interpreter;
uint32_t PL_thr_key __attribute__((used, visibility("default"))) = 1u << 20; /* no key */
const uint8_t PL_version __attribute__((used, visibility("default"))) = 36;
const uint16_t PL_interp_size __attribute__((used, visibility("default"))) = sizeof(interpreter);

struct object {
	uint8_t bytes[512] __attribute__((aligned(16)));
};

static struct object stack_info, contexts, cop, function, body, start, stash, stash_body, key, stash_key;
static const char file[] = "/a/forged.pl";

static void put(void *at, size_t offset, uint64_t value)
{
	memcpy((uint8_t *)at + offset, &value, sizeof(value));
}

static void set_number(void *at, size_t offset, uint32_t value)
{
	memcpy((uint8_t *)at + offset, &value, sizeof(value));
}

/* Offsets of 5.36, as pipeline/runtimes/perl.c has them. */
static void make_good(void)
{
	put(interpreter, 224, (uintptr_t)&stack_info);
	put(interpreter, 208, (uintptr_t)&cop);
	put(interpreter, 1472, (uintptr_t)file);
	set_number(interpreter, 2512, 4); /* it runs */
	put(&stack_info, 8, (uintptr_t)&contexts);
	set_number(&stack_info, 32, 0);
	set_number(&stack_info, 36, 0);
	put(&contexts, 0, 9); /* a sub */
	put(&contexts, 16, (uintptr_t)&cop);
	put(&contexts, 72, (uintptr_t)&function);
	put(&function, 0, (uintptr_t)&body);
	set_number(&function, 12, 13);
	put(&body, 32, (uintptr_t)&stash);
	put(&body, 40, (uintptr_t)&start);
	put(&body, 48, (uintptr_t)&start);
	put(&body, 56, (uintptr_t)&key);
	put(&body, 64, (uintptr_t)file);
	set_number(&body, 92, 0x8000);
	set_number(&start, 32, 195); /* a statement */
	set_number(&start, 36, 7);
	put(&stash, 0, (uintptr_t)&stash_body);
	set_number(&stash, 12, 12);
	put(&stash_body, 32, (uintptr_t)&stash_key);
	memcpy(stash_key.bytes + 8, "main", sizeof("main"));
	memcpy(key.bytes + 8, "forged", sizeof("forged"));
}

static void lie(const char *way)
{
	if (!strcmp(way, "loop")) {
		put(&stack_info, 16, (uintptr_t)&stack_info);
	} else if (!strcmp(way, "wild")) {
		put(&stack_info, 8, 0xdead0000beef0000);
	} else if (!strcmp(way, "lengths")) {
		put(&stack_info, 32, 0x7fffffff7fffffff);
	} else if (!strcmp(way, "negative")) {
		put(&stack_info, 32, 0x00000000fffffff0);
	} else if (!strcmp(way, "bits")) {
		memset(&body, 0xff, sizeof(body));
	}
}

uint64_t Perl_runops_standard(unsigned long ms);

__attribute__((noinline, used, visibility("default"))) uint64_t Perl_runops_standard(unsigned long ms)
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
		fprintf(stderr, "usage: forged_perl WAY MILLISECONDS\n");
		return 2;
	}
	make_good();
	lie(argv[1]);
	printf("%llu\n", (unsigned long long)Perl_runops_standard(strtoul(argv[2], NULL, 10)));
	return 0;
}
