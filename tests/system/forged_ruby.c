/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A library that looks like libruby 3.1 in any program and lies.
 * usage: OPD_FORGED_WAY=WAY LD_PRELOAD=forged_ruby.so PROGRAM
 *
 * It exports the symbols by which opd knows Ruby, and burns CPU time in its "loop".
 * Then it ends the program.
 * WAY: loop: one frame stands there 400 times; wild: the code of a frame is nowhere; lengths: the
 * stack is larger than all memory; bits: all bits of a string are set; good: one frame of forged in
 * /a/forged.rb, whose path is an array that has itself.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NR_FRAMES   400
#define FRAME_BYTES 64

struct object {
	uint8_t bytes[512] __attribute__((aligned(16)));
};

const char ruby_version[] __attribute__((used, visibility("default"))) = "3.1.2";
__thread struct object *ruby_current_ec __attribute__((used, visibility("default")));

static uint8_t stack[NR_FRAMES * FRAME_BYTES] __attribute__((aligned(16)));
static struct object context, environment, code, body, label, path;

static void put(void *at, size_t offset, uint64_t value)
{
	memcpy((uint8_t *)at + offset, &value, sizeof(value));
}

/* Offsets of 3.1, as pipeline/runtimes/ruby.c has them. */
static void make_good(void)
{
	ruby_current_ec = &context;
	put(&context, 0, (uintptr_t)stack);
	put(&context, 8, sizeof(stack) / 8);
	/* the last one does not run */
	put(&context, 16, (uintptr_t)stack + sizeof(stack) - 2 * FRAME_BYTES);
	for (size_t i = 0; i < NR_FRAMES; i++) {
		put(stack + i * FRAME_BYTES, 16, (uintptr_t)&code);
		put(stack + i * FRAME_BYTES, 32, (uintptr_t)&environment);
	}
	put(&code, 16, (uintptr_t)&body);
	put(&body, 64, (uintptr_t)&path);
	put(&body, 80, (uintptr_t)&label);
	put(&body, 88, 7 << 1 | 1);
	put(&label, 0, 5); /* a short string */
	memcpy(label.bytes + 16, "forged", sizeof("forged"));
	put(&path, 0, 7 | 0x2000); /* a short array: the path, and itself */
	put(&path, 16, (uintptr_t)&path + 256);
	put(&path, 24, (uintptr_t)&path);
	put(&path, 256, 5);
	memcpy(path.bytes + 256 + 16, "/a/forged.rb", sizeof("/a/forged.rb"));
}

static void lie(const char *way)
{
	if (!strcmp(way, "loop")) {
		put(&context, 16, (uintptr_t)stack);
	} else if (!strcmp(way, "wild")) {
		put(stack, sizeof(stack) - 2 * FRAME_BYTES + 16, 0xdead0000beef0000);
	} else if (!strcmp(way, "lengths")) {
		put(&context, 8, UINT64_MAX / 8);
	} else if (!strcmp(way, "bits")) {
		memset(&label, 0xff, sizeof(label));
	}
}

uint64_t rb_vm_exec(unsigned long ms);

__attribute__((noinline, used, visibility("default"))) uint64_t rb_vm_exec(unsigned long ms)
{
	uint64_t sum = 0;

	while ((unsigned long)clock() / (CLOCKS_PER_SEC / 1000) < ms)
		for (unsigned int i = 0; i < 10000; i++)
			sum += (sum ^ i) * 7;
	return sum;
}

__attribute__((constructor)) static void forge(void)
{
	const char *way = getenv("OPD_FORGED_WAY");

	if (!way)
		return;
	make_good();
	lie(way);
	printf("%llu\n", (unsigned long long)rb_vm_exec(600));
	exit(0);
}
