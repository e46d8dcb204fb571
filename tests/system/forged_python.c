/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that looks like Python 3.11 and lies. usage: forged_python WAY MILLISECONDS
 *
 * It exports the symbols by which opd knows Python, and burns CPU time in its "loop".
 * WAY: loop: the list of frames is a circle; lengths: names and tables are longer than all memory;
 * wild: frames point nowhere; state: no state of a thread; bits: all bits of a string are set, and
 * its name has control characters; good: one frame of forged() in /a/forged.py; direct: the same,
 * where the state of the thread has the frame itself, as from 3.13 on.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Offsets of 3.11, as pipeline/runtimes/python.c has them. */
#define STATE_FRAME  56
#define STATE_THREAD 152

const uint32_t Py_Version __attribute__((used, visibility("default"))) = 0x030b0200;
uint8_t _PyRuntime[4096] __attribute__((used, visibility("default"), aligned(16))) = { 1 };

struct object {
	uint8_t bytes[512] __attribute__((aligned(16)));
};

static struct object interpreter, state, cframe, frames[2], code, name, file, table, instructions;

static void put(void *at, size_t offset, uint64_t value)
{
	memcpy((uint8_t *)at + offset, &value, sizeof(value));
}

static void put_text(struct object *string, const char *text)
{
	put(string, 16, strlen(text));
	put(string, 32, 1 << 2 | 1 << 5 | 1 << 6); /* of one byte a character, compact, ASCII */
	memcpy(string->bytes + 48, text, strlen(text));
}

static void make_good(void)
{
	uint32_t first_line = 7;

	put(_PyRuntime, 596, 1u << 20); /* no key: the list of threads is looked through */
	put(_PyRuntime, 40, (uintptr_t)&interpreter);
	put(&interpreter, 16, (uintptr_t)&state);
	put(&state, STATE_THREAD, (uint64_t)pthread_self());
	put(&state, STATE_FRAME, (uintptr_t)&cframe);
	put(&cframe, 8, (uintptr_t)&frames[0]);
	for (int i = 0; i < 2; i++) {
		put(&frames[i], 32, (uintptr_t)&code);
		put(&frames[i], 56, (uintptr_t)&instructions);
	}
	memcpy(code.bytes + 72, &first_line, sizeof(first_line));
	put(&code, 112, (uintptr_t)&file);
	put(&code, 128, (uintptr_t)&name);
	put(&code, 136, (uintptr_t)&table);
	put_text(&name, "forged");
	put_text(&file, "/a/forged.py");
}

static void lie(const char *way)
{
	if (!strcmp(way, "loop")) {
		put(&frames[0], 48, (uintptr_t)&frames[1]);
		put(&frames[1], 48, (uintptr_t)&frames[0]);
	} else if (!strcmp(way, "lengths")) {
		put(&name, 16, UINT64_MAX / 2);
		put(&file, 16, UINT32_MAX);
		put(&table, 16, UINT64_MAX);
	} else if (!strcmp(way, "wild")) {
		put(&frames[0], 48, 0xdead0000beef0000);
	} else if (!strcmp(way, "state")) {
		put(&state, STATE_THREAD, 1);
		put(&state, 8, (uintptr_t)&state); /* the list is a circle */
	} else if (!strcmp(way, "direct")) {
		put(&state, STATE_FRAME, (uintptr_t)&frames[0]);
	} else if (!strcmp(way, "bits")) {
		put_text(&name, "\x1b[2J\x1f\n\x9b\xff");
		put(&name, 32, UINT32_MAX);
		put(&file, 32, 4 << 2 | 1 << 5);
	}
}

uint64_t _PyEval_EvalFrameDefault(unsigned long ms);

__attribute__((noinline, used, visibility("default"))) uint64_t _PyEval_EvalFrameDefault(unsigned long ms)
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
		fprintf(stderr, "usage: forged_python WAY MILLISECONDS\n");
		return 2;
	}
	make_good();
	lie(argv[1]);
	printf("%llu\n", (unsigned long long)_PyEval_EvalFrameDefault(strtoul(argv[2], NULL, 10)));
	return 0;
}
