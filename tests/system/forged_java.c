/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that looks like a Java machine and lies. usage: forged_java WAY MILLISECONDS
 *
 * Its file is to be called libjvm.so; its process calls itself java_WAY. It exports the tables by
 * which opd knows OpenJDK 17, and burns CPU time in code that it wrote into memory, as a compiler
 * does. WAY:
 *
 *   good      one method, forged.Java.spin in line 7
 *   circle    a method that is inlined in itself
 *   hops      a map of segments that leads back by one segment at a time
 *   heaps     more heaps of code than there are numbers
 *   sizes     code, descriptors and numbers that are larger than all memory
 *   wild      pointers to where nothing is
 *   table     the table of structures has no end
 *   names     names of 65,535 bytes, and with control characters
 *   lines     a table of lines that has no end
 *   changing  a thread writes other numbers all the time
 *   many      as many methods as fit, each for a moment
 *   version   OpenJDK 11
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "pipeline/readers/java_format.h"

#define EXPORT  __attribute__((used, visibility("default")))
#define SEGMENT 7 /* log2 of its bytes */
#define BLOCK   0x2000u /* bytes of a piece of code with all that belongs to it */
#define HEADER  1024u
#define CODE    0x800u /* in the blob, which begins behind the header */
#define SIZE    512u /* of a ConstMethod, a ConstantPool and a PcDesc */
#define SPACE   2048u /* offset of the second space of a heap */
#define MANY    3000u

/* The offset of each field: its number times 8. */
enum {
#define X(name, type, field, kind) AT_##name,
	OPD_JAVA_FIELDS(X)
#undef X
};

static struct {
	uint64_t array, low, high, call_stub_return;
	int32_t version;
} statics;

struct entry {
	const char *type, *field, *kind;
	int32_t is_static;
	uint64_t offset;
	const void *address;
};

static const void *const addresses[] = { &statics.array, &statics.low, &statics.high, &statics.call_stub_return,
					 &statics.version };
static struct entry structs[4200];

static const struct {
	const char *name;
	uint64_t size;
} types[] = {
#define X(name, type) { type, #name[0] == 'b' ? HEADER : SIZE },
	OPD_JAVA_SIZES(X)
#undef X
	{ NULL, 0 },
};

static const struct {
	const char *name;
	int32_t value;
} numbers[] = { { "ConstMethod::_has_linenumber_table", 1 },
		{ "frame::interpreter_frame_sender_sp_offset", -1 },
		{ "frame::interpreter_frame_last_sp_offset", -2 },
		{ NULL, 0 } };

EXPORT const void *gHotSpotVMStructs = structs, *gHotSpotVMTypes = types, *gHotSpotVMIntConstants = numbers;
EXPORT uint64_t gHotSpotVMStructEntryArrayStride = sizeof(structs[0]);
EXPORT uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct entry, type);
EXPORT uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct entry, field);
EXPORT uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct entry, kind);
EXPORT uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct entry, is_static);
EXPORT uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct entry, offset);
EXPORT uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct entry, address);
EXPORT uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(types[0]), gHotSpotVMTypeEntryTypeNameOffset = 0;
EXPORT uint64_t gHotSpotVMTypeEntrySizeOffset = 8;
EXPORT uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(numbers[0]), gHotSpotVMIntConstantEntryNameOffset = 0;
EXPORT uint64_t gHotSpotVMIntConstantEntryValueOffset = 8;

static uint8_t array[4096], heaps[64], heap[8192], method[4096], constant[0x30000], pool[4096], tags[64], klass[4096];
static uint8_t symbols[4][0x11000] __attribute__((aligned(16))), segments[1 << 18];
static uint8_t *code; /* of all blobs */
static uint32_t nr_blobs = 1;

static void put(void *at, size_t offset, uint64_t value, size_t nr_bytes)
{
	memcpy((uint8_t *)at + offset, &value, nr_bytes);
}

static void make_tables(void)
{
	struct entry *at = structs;
	size_t i = 0;

#define X(name, type, field, kind) *at++ = (struct entry){ type, field, kind, 1, 0, addresses[i++] };
	OPD_JAVA_STATICS(X)
#undef X
#define X(name, type, field, kind)                                                                                                 \
	*at++ = (struct entry){ type, field, kind, 0, AT_##name == AT_heap_segmap ? SPACE : 8 * AT_##name, NULL };
	OPD_JAVA_FIELDS(X)
#undef X
}

static void make_symbol(unsigned int number, const char *text)
{
	put(symbols[number], 8 * AT_symbol_length, strlen(text), 2);
	memcpy(symbols[number] + 8 * AT_symbol_body, text, strlen(text));
	put(pool, SIZE + 8 * (number + 1), (uintptr_t)symbols[number], 8);
	tags[4 + number + 1] = 1;
}

static void make_method(void)
{
	static const uint8_t lines[] = { 0xff, 0, 14, 0 }; /* line 7 from bytecode 0 on */

	put(method, 8 * AT_method_const, (uintptr_t)constant, 8);
	put(constant, 8 * AT_const_pool, (uintptr_t)pool, 8);
	put(constant, 8 * AT_const_flags, 1, 2);
	put(constant, 8 * AT_const_code_size, 20, 2);
	put(constant, 8 * AT_const_name, 1, 2);
	memcpy(constant + SIZE + 20, lines, sizeof(lines));
	put(pool, 8 * AT_pool_tags, (uintptr_t)tags, 8);
	put(pool, 8 * AT_pool_length, 8, 4);
	put(pool, 8 * AT_pool_holder, (uintptr_t)klass, 8);
	put(pool, 8 * AT_pool_file, 2, 2);
	make_symbol(0, "spin");
	make_symbol(1, "Java.java");
	make_symbol(2, "forged/Java");
	put(klass, 8 * AT_klass_name, (uintptr_t)symbols[2], 8);
}

/* push rbp; mov rbp, rsp; mov rax, rdi; again: dec rax; jnz again; pop rbp; ret */
static const uint8_t spin[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3 };

static void make_blob(uint32_t number)
{
	/* nothing; then: no sender, metadata 1, bytecode 0 */
	static const uint8_t scope[] = { 0, 0, 1, 1 };
	uint8_t *block = code + number * BLOCK, *blob = block + HEADER;

	for (uint32_t i = 0; i < BLOCK >> SEGMENT; i++)
		segments[(number * BLOCK >> SEGMENT) + i] = (uint8_t)i;
	put(block, 8 * AT_block_header + 8 * AT_block_length, BLOCK >> SEGMENT, 8);
	put(block, 8 * AT_block_header + 8 * AT_block_used, 1, 1);
	put(blob, 8 * AT_blob_name, (uintptr_t)"nmethod", 8);
	put(blob, 8 * AT_blob_size, BLOCK - HEADER, 4);
	put(blob, 8 * AT_blob_frame, 2, 4);
	put(blob, 8 * AT_blob_complete, 4, 4);
	put(blob, 8 * AT_blob_code, (uintptr_t)blob + CODE, 8);
	put(blob, 8 * AT_blob_code_end, (uintptr_t)blob + CODE + sizeof(spin), 8);
	memcpy(blob + CODE, spin, sizeof(spin));
	put(blob, 8 * AT_compiled_method, (uintptr_t)method, 8);
	put(blob, 8 * AT_compiled_scopes, (uintptr_t)blob + 0x1000, 8);
	put(blob, 8 * AT_nmethod_id, number + 1, 4);
	put(blob, 8 * AT_nmethod_metadata, 0xf00, 4);
	put(blob, 8 * AT_nmethod_pcs, 0x1100, 4);
	put(blob, 8 * AT_nmethod_pcs_end, 0x1100 + 2 * SIZE, 4);
	put(blob, 0xf00, (uintptr_t)method, 8);
	memcpy(blob + 0x1000, scope, sizeof(scope));
	put(blob, 0x1100 + 8 * AT_pc_offset, (uint32_t)-1, 4);
	put(blob, 0x1100 + SIZE + 8 * AT_pc_offset, sizeof(spin), 4);
	put(blob, 0x1100 + SIZE + 8 * AT_pc_scope, 1, 4);
}

static int make_machine(void)
{
	size_t nr_bytes = (size_t)nr_blobs * BLOCK;

	code = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return -1;
	make_tables();
	statics.array = (uintptr_t)array;
	statics.low = (uintptr_t)code;
	statics.high = (uintptr_t)code + nr_bytes;
	statics.version = OPD_JAVA_OLD;
	put(array, 8 * AT_array_length, 1, 4);
	put(array, 8 * AT_array_data, (uintptr_t)heaps, 8);
	put(heaps, 0, (uintptr_t)heap, 8);
	put(heap, 8 * AT_heap_memory + 8 * AT_space_low, statics.low, 8);
	put(heap, 8 * AT_heap_memory + 8 * AT_space_high, statics.high, 8);
	put(heap, SPACE + 8 * AT_space_low, (uintptr_t)segments, 8);
	put(heap, SPACE + 8 * AT_space_high, (uintptr_t)segments + sizeof(segments), 8);
	put(heap, 8 * AT_heap_log2, SEGMENT, 4);
	make_method();
	for (uint32_t i = 0; i < nr_blobs; i++)
		make_blob(i);
	return 0;
}

static void lie(const char *way)
{
	static const uint8_t itself[] = { 0, 1, 1, 1 };
	uint8_t *blob = code + HEADER;

	if (!strcmp(way, "circle")) {
		memcpy(blob + 0x1000, itself, sizeof(itself));
	} else if (!strcmp(way, "hops")) { /* the code seems to be at the end of a long heap */
		memset(segments, 1, sizeof(segments));
		put(heap, 8 * AT_heap_memory + 8 * AT_space_low, statics.low - ((sizeof(segments) - 256) << SEGMENT), 8);
	} else if (!strcmp(way, "heaps")) {
		put(array, 8 * AT_array_length, INT32_MAX, 4);
	} else if (!strcmp(way, "sizes")) {
		put(blob, 8 * AT_blob_size, INT32_MAX, 4);
		put(blob, 8 * AT_blob_code_end, UINT64_MAX, 8);
		put(blob, 8 * AT_nmethod_pcs_end, INT32_MAX, 4);
	} else if (!strcmp(way, "wild")) {
		put(method, 8 * AT_method_const, 0xdead0000beef0000, 8);
	} else if (!strcmp(way, "table")) {
		for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
			if (!structs[i].type)
				structs[i] = (struct entry){ "CodeBlob", "_none", "int", 0, 0, NULL };
	} else if (!strcmp(way, "names")) {
		memset(symbols[0] + 8 * AT_symbol_body, '\n', 0x10000);
		put(symbols[0], 8 * AT_symbol_length, 0xffff, 2);
		memcpy(symbols[2] + 8 * AT_symbol_body, "\x1b[2J\x1f\x9b\xff\0;", 9);
	} else if (!strcmp(way, "version")) {
		statics.version = 11;
	} else if (!strcmp(way, "lines")) {
		memset(constant + SIZE + 20, 1 << 3, 0x20000);
	}
}

static void *change(void *arg)
{
	uint8_t *blob = code + HEADER;

	for (uint64_t i = 1;; i++) {
		put(blob, 8 * AT_nmethod_id, i, 4);
		put(blob, 8 * AT_blob_code_end, (uintptr_t)blob + CODE + sizeof(spin) + (i & 1) * 64, 8);
		put(constant, 8 * AT_const_code_size, i & 0xffff, 2);
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned long ms = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	char name[16];
	pthread_t thread;
	uint32_t number = 0;

	if (!ms) {
		fprintf(stderr, "usage: forged_java WAY MILLISECONDS\n");
		return 2;
	}
	snprintf(name, sizeof(name), "java_%s", argv[1]);
	prctl(PR_SET_NAME, name);
	nr_blobs = strcmp(argv[1], "many") ? 1 : MANY;
	if (make_machine())
		return 1;
	lie(argv[1]);
	if (!strcmp(argv[1], "changing") && pthread_create(&thread, NULL, change, NULL))
		return 1;
	while ((unsigned long)clock() / (CLOCKS_PER_SEC / 1000) < ms) {
		uint64_t (*function)(uint64_t) = NULL;
		const void *at = code + number * BLOCK + HEADER + CODE;

		memcpy(&function, &at, sizeof(function));
		function(500000);
		number = (number + 1) % nr_blobs;
	}
	return 0;
}
