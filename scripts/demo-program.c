/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What scripts/demo compiles and then runs: a program that reads a file and compresses, checksums
 * and sorts it for some seconds, each in a function that a profile can name. usage: demo-program
 * FILE SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH_BITS 14
#define MATCH_MIN 4
#define NR_KEYS 200000

static uint32_t hash_of(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return (word * 2654435761u) >> (32 - HASH_BITS);
}

/* Length of the longest match of what stands at `at` with what stands at `earlier`. */
__attribute__((noipa)) static size_t match_length(const unsigned char *data, size_t earlier, size_t at, size_t nr_bytes)
{
	size_t length = 0;

	while (at + length < nr_bytes && data[earlier + length] == data[at + length])
		length++;
	return length;
}

/* Counts the tokens that a simple dictionary compressor would write. */
__attribute__((noipa)) static size_t compress_block(const unsigned char *data, size_t nr_bytes)
{
	static uint32_t last[1u << HASH_BITS];
	size_t nr_tokens = 0;

	memset(last, 0, sizeof(last));
	for (size_t at = 0; at + MATCH_MIN < nr_bytes; nr_tokens++) {
		uint32_t hash = hash_of(data + at);
		size_t length = last[hash] ? match_length(data, last[hash] - 1, at, nr_bytes) : 0;

		last[hash] = (uint32_t)at + 1;
		at += length >= MATCH_MIN ? length : 1;
	}
	return nr_tokens;
}

__attribute__((noipa)) static uint32_t checksum_block(const unsigned char *data, size_t nr_bytes)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < nr_bytes; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static int compare_keys(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

__attribute__((noipa)) static uint32_t sort_keys(uint32_t seed)
{
	static uint32_t keys[NR_KEYS];

	for (size_t i = 0; i < NR_KEYS; i++)
		keys[i] = seed = seed * 1664525u + 1013904223u;
	qsort(keys, NR_KEYS, sizeof(keys[0]), compare_keys);
	return keys[NR_KEYS / 2];
}

int main(int argc, char **argv)
{
	static unsigned char data[1u << 22];
	size_t nr_bytes, tokens = 0;
	uint32_t sum = 1;
	time_t end;
	FILE *file;

	file = argc == 3 ? fopen(argv[1], "rb") : NULL;
	if (!file) {
		fprintf(stderr, "usage: demo-program FILE SECONDS\n");
		return 1;
	}
	nr_bytes = fread(data, 1, sizeof(data), file);
	fclose(file);
	end = time(NULL) + strtol(argv[2], NULL, 10);
	while (time(NULL) < end) {
		tokens += compress_block(data, nr_bytes);
		sum ^= checksum_block(data, nr_bytes);
		sum += sort_keys(sum);
	}
	printf("%zu tokens, checksum %08x\n", tokens, sum);
	return 0;
}
