/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory of a made-up Java machine: an image with the tables of its structures, one heap of
 * code, one compiled method, which another one is inlined in, and the interpreter. Its offsets are
 * not those of any real machine.
 */
#ifndef JAVA_BOX_H
#define JAVA_BOX_H

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/readers/java_code.h"
#include "pipeline/readers/java_layout.h"

#define BOX_BASE        0x7f0000000000ull
#define BOX_BYTES       0x30000u
#define BOX_STATICS     (BOX_BASE + 0x18000)
#define BOX_ARRAY       (BOX_BASE + 0x18100)
#define BOX_HEAPS       (BOX_BASE + 0x18200)
#define BOX_HEAP        (BOX_BASE + 0x18400)
#define BOX_METHODS     (BOX_BASE + 0x1a000) /* 0x1000 bytes each: Method, ConstMethod */
#define BOX_POOL        (BOX_BASE + 0x1d000)
#define BOX_TAGS        (BOX_BASE + 0x1d800)
#define BOX_KLASS       (BOX_BASE + 0x1d900)
#define BOX_SYMBOLS     (BOX_BASE + 0x1e000) /* 0x200 bytes each */
#define BOX_SEGMAP      (BOX_BASE + 0x1f000)
#define BOX_CODE        (BOX_BASE + 0x20000)
#define BOX_BLOB        (BOX_CODE + BOX_BLOCK)
#define BOX_START       (BOX_BLOB + 0x800) /* of its code */
#define BOX_INTERPRETER (BOX_CODE + 0x6000)
#define BOX_BLOCK       1024u /* bytes of the header of a block */
#define BOX_SEGMENT     7     /* log2 of its bytes */
#define BOX_SPACE       2048u /* offset of the second space of a heap */
#define BOX_SIZE        512u  /* of a ConstMethod, a ConstantPool and a PcDesc */

/* The number of a field, which is its offset / 8. */
enum {
#define X(name, type, field, kind) BOX_##name,
	OPD_JAVA_FIELDS(X)
#undef X
		BOX_NR_FIELDS,
};

struct java_box {
	uint8_t bytes[BOX_BYTES];
	struct opd_far_memory memory;
	struct opd_java_layout layout;
	uint64_t text; /* where the next text goes */
	uint32_t nr_symbols;
};

static inline ssize_t box_read(void *arg, uint64_t address, void *to, size_t nr_bytes)
{
	const struct java_box *box = arg;
	uint64_t offset = address - BOX_BASE, nr;

	if (offset >= BOX_BYTES)
		return -EIO;
	nr = BOX_BYTES - offset < nr_bytes ? BOX_BYTES - offset : nr_bytes;
	memcpy(to, box->bytes + offset, nr);
	return (ssize_t)nr;
}

/* A question begins: nothing is known of the memory. */
static inline struct opd_far_memory *box_memory(struct java_box *box, uint32_t nr_pages)
{
	memset(box->memory.slots, 0, sizeof(box->memory.slots));
	box->memory.read = box_read;
	box->memory.arg = box;
	box->memory.nr_pages_left = nr_pages;
	box->memory.nr_pages = 0;
	return &box->memory;
}

static inline void box_put(struct java_box *box, uint64_t address, uint64_t value, size_t nr_bytes)
{
	memcpy(box->bytes + (address - BOX_BASE), &value, nr_bytes);
}

static inline uint64_t box_text(struct java_box *box, const char *text)
{
	uint64_t at = box->text;

	memcpy(box->bytes + (at - BOX_BASE), text, strlen(text) + 1);
	box->text += strlen(text) + 1;
	return at;
}

/* ---- the image ---- */

#define BOX_DYNAMIC (BOX_BASE + 0x200)
#define BOX_SYMTAB  (BOX_BASE + 0x400)
#define BOX_HASH    (BOX_BASE + 0x1000)
#define BOX_VALUES  (BOX_BASE + 0x1800) /* the symbols that are numbers */
#define BOX_STRUCTS (BOX_BASE + 0x2000)
#define BOX_TYPES   (BOX_BASE + 0x5000)
#define BOX_INTS    (BOX_BASE + 0x6000)
#define BOX_TEXTS   (BOX_BASE + 0x8000)

/* All symbols are in one bucket: their hashes are one chain, whose last one is odd. */
static inline void box_symbol(struct java_box *box, const char *name, uint64_t value)
{
	uint32_t index = ++box->nr_symbols, hash = 5381;
	Elf64_Sym symbol = { .st_name = (uint32_t)(box_text(box, name) - BOX_TEXTS), .st_shndx = 1 };

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	symbol.st_value = BOX_VALUES + 8 * index - BOX_BASE;
	memcpy(box->bytes + (BOX_SYMTAB - BOX_BASE) + index * sizeof(symbol), &symbol, sizeof(symbol));
	box_put(box, BOX_VALUES + 8 * index, value, 8);
	box_put(box, BOX_HASH + 28 + 4 * (index - 1), hash | 1, 4);
	if (index > 1)
		box->bytes[BOX_HASH + 28 + 4 * (index - 2) - BOX_BASE] &= 0xfe;
}

static inline void box_make_image(struct java_box *box)
{
	Elf64_Ehdr header = { .e_phoff = sizeof(header), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };
	Elf64_Phdr programs[] = { { .p_type = PT_LOAD }, { .p_type = PT_DYNAMIC, .p_vaddr = BOX_DYNAMIC - BOX_BASE } };
	/* as the dynamic linker leaves them, and as the file has them */
	Elf64_Dyn dynamic[] = { { .d_tag = DT_SYMTAB, .d_un.d_ptr = BOX_SYMTAB },
				{ .d_tag = DT_STRTAB, .d_un.d_ptr = BOX_TEXTS - BOX_BASE },
				{ .d_tag = DT_GNU_HASH, .d_un.d_ptr = BOX_HASH },
				{ .d_tag = DT_NULL } };
	/* one bucket, from symbol 1 on, and a filter of one word */
	const uint32_t hash[] = { 1, 1, 1, 0, 0, 0, 1 };
	uint64_t at = BOX_STRUCTS;
	size_t i = 0;

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(box->bytes, &header, sizeof(header));
	memcpy(box->bytes + sizeof(header), programs, sizeof(programs));
	memcpy(box->bytes + (BOX_DYNAMIC - BOX_BASE), dynamic, sizeof(dynamic));
	memcpy(box->bytes + (BOX_HASH - BOX_BASE), hash, sizeof(hash));
	box->text = BOX_TEXTS;
	box_symbol(box, "gHotSpotVMStructs", BOX_STRUCTS);
	box_symbol(box, "gHotSpotVMStructEntryArrayStride", 56);
	box_symbol(box, "gHotSpotVMStructEntryTypeNameOffset", 0);
	box_symbol(box, "gHotSpotVMStructEntryFieldNameOffset", 8);
	box_symbol(box, "gHotSpotVMStructEntryTypeStringOffset", 16);
	box_symbol(box, "gHotSpotVMStructEntryIsStaticOffset", 24);
	box_symbol(box, "gHotSpotVMStructEntryOffsetOffset", 32);
	box_symbol(box, "gHotSpotVMStructEntryAddressOffset", 40);
	box_symbol(box, "gHotSpotVMTypes", BOX_TYPES);
	box_symbol(box, "gHotSpotVMTypeEntryArrayStride", 16);
	box_symbol(box, "gHotSpotVMTypeEntryTypeNameOffset", 0);
	box_symbol(box, "gHotSpotVMTypeEntrySizeOffset", 8);
	box_symbol(box, "gHotSpotVMIntConstants", BOX_INTS);
	box_symbol(box, "gHotSpotVMIntConstantEntryArrayStride", 16);
	box_symbol(box, "gHotSpotVMIntConstantEntryNameOffset", 0);
	box_symbol(box, "gHotSpotVMIntConstantEntryValueOffset", 8);
#define ENTRY(type, field, kind, is_static, offset, address)                                                                       \
	(box_put(box, at, box_text(box, type), 8), box_put(box, at + 8, box_text(box, field), 8),                                  \
	 box_put(box, at + 16, box_text(box, kind), 8), box_put(box, at + 24, is_static, 4), box_put(box, at + 32, offset, 8),     \
	 box_put(box, at + 40, address, 8), at += 56)
#define X(name, type, field, kind) ENTRY(type, field, kind, 1, 0, BOX_STATICS + 8 * i), i++;
	OPD_JAVA_STATICS(X)
#undef X
	ENTRY("CodeCache", "_other", "int", 1, 0, 1);
#define X(name, type, field, kind) ENTRY(type, field, kind, 0, BOX_##name == BOX_heap_segmap ? BOX_SPACE : 8 * BOX_##name, 0);
	OPD_JAVA_FIELDS(X)
#undef X
#undef ENTRY
	at = BOX_TYPES;
#define X(name, type)                                                                                                              \
	box_put(box, at, box_text(box, type), 8);                                                                                  \
	box_put(box, at + 8, #name[0] == 'b' ? BOX_BLOCK : BOX_SIZE, 8);                                                           \
	at += 16;
	OPD_JAVA_SIZES(X)
#undef X
	box_put(box, BOX_INTS, box_text(box, "ConstMethod::_has_linenumber_table"), 8);
	box_put(box, BOX_INTS + 8, 1, 4);
	box_put(box, BOX_INTS + 16, box_text(box, "frame::interpreter_frame_sender_sp_offset"), 8);
	box_put(box, BOX_INTS + 24, (uint32_t)-1, 4);
	box_put(box, BOX_INTS + 32, box_text(box, "frame::interpreter_frame_last_sp_offset"), 8);
	box_put(box, BOX_INTS + 40, (uint32_t)-2, 4);
	box_put(box, BOX_STATICS + 8 * 4, OPD_JAVA_OLD, 4);
}

/* ---- its code ---- */

static inline void box_make_blob(struct java_box *box, uint64_t block, uint64_t bytes, uint64_t code, uint64_t code_end,
				 const char *name, int32_t frame_words, int32_t complete)
{
	uint64_t segment = (block - BOX_CODE) >> BOX_SEGMENT, nr = (bytes + BOX_BLOCK + 127) >> BOX_SEGMENT;
	uint64_t blob = block + BOX_BLOCK;

	for (uint64_t i = 0; i < nr; i++) /* as the machine goes back: in hops of 254 at most */
		box_put(box, BOX_SEGMAP + segment + i, i < 255 ? i : 254, 1);
	box_put(box, block + 8 * BOX_block_header + 8 * BOX_block_length, nr, 8);
	box_put(box, block + 8 * BOX_block_header + 8 * BOX_block_used, 1, 1);
	box_put(box, blob + 8 * BOX_blob_name, box_text(box, name), 8);
	box_put(box, blob + 8 * BOX_blob_size, bytes, 4);
	box_put(box, blob + 8 * BOX_blob_frame, (uint32_t)frame_words, 4);
	box_put(box, blob + 8 * BOX_blob_complete, (uint32_t)complete, 4);
	box_put(box, blob + 8 * BOX_blob_code, code, 8);
	box_put(box, blob + 8 * BOX_blob_code_end, code_end, 8);
}

static inline uint64_t box_method(unsigned int number)
{
	return BOX_METHODS + 0x1000 * number;
}

/* A symbol of the pool, which is also its number + 1 there. */
static inline uint64_t box_make_symbol(struct java_box *box, unsigned int number, const char *text)
{
	uint64_t at = BOX_SYMBOLS + 0x200 * number;

	box_put(box, at + 8 * BOX_symbol_length, strlen(text), 2);
	memcpy(box->bytes + (at + 8 * BOX_symbol_body - BOX_BASE), text, strlen(text));
	box_put(box, BOX_POOL + BOX_SIZE + 8 * (number + 1), at, 8);
	box_put(box, BOX_TAGS + 4 + number + 1, 1, 1);
	return at;
}

static inline void box_make_method(struct java_box *box, unsigned int number, const uint8_t *lines, size_t nr_bytes)
{
	uint64_t method = box_method(number), constant = method + 0x400;

	box_put(box, method + 8 * BOX_method_const, constant, 8);
	box_put(box, constant + 8 * BOX_const_pool, BOX_POOL, 8);
	box_put(box, constant + 8 * BOX_const_flags, 1, 2);
	box_put(box, constant + 8 * BOX_const_code_size, 20, 2);
	box_put(box, constant + 8 * BOX_const_name, number + 1, 2);
	memcpy(box->bytes + (constant + BOX_SIZE + 20 - BOX_BASE), lines, nr_bytes);
}

static inline void box_make_descriptor(struct java_box *box, unsigned int number, int32_t offset, int32_t scope)
{
	uint64_t at = BOX_BLOB + 0x1800 + BOX_SIZE * number;

	box_put(box, at + 8 * BOX_pc_offset, (uint32_t)offset, 4);
	box_put(box, at + 8 * BOX_pc_scope, (uint32_t)scope, 4);
}

static inline void box_make(struct java_box *box)
{
	/* line 7 from bytecode 0 on, 9 from 3 on, 300 from 10 on */
	static const uint8_t lines[] = { 0xff, 0, 14, 3 << 3 | 2, 0xff, 14, 192 + (582 - 192) % 64, (582 - 192) / 64, 0 };
	/* the outer one: method 1, bytecode 5; in it the inner one: method 2, bytecode 2 */
	static const uint8_t scopes[] = { 0, 0, 1, 6, 1, 2, 3 };
	uint64_t statics = BOX_STATICS;

	memset(box, 0, sizeof(*box));
	box_make_image(box);
	box_put(box, statics, BOX_ARRAY, 8);
	box_put(box, statics + 8, BOX_CODE, 8);
	box_put(box, statics + 16, BOX_CODE + 0x8000, 8);
	box_put(box, statics + 24, BOX_CODE + 0x5000, 8);
	box_put(box, BOX_ARRAY + 8 * BOX_array_length, 1, 4);
	box_put(box, BOX_ARRAY + 8 * BOX_array_data, BOX_HEAPS, 8);
	box_put(box, BOX_HEAPS, BOX_HEAP, 8);
	box_put(box, BOX_HEAP + 8 * BOX_heap_memory + 8 * BOX_space_low, BOX_CODE, 8);
	box_put(box, BOX_HEAP + 8 * BOX_heap_memory + 8 * BOX_space_high, BOX_CODE + 0x8000, 8);
	box_put(box, BOX_HEAP + BOX_SPACE + 8 * BOX_space_low, BOX_SEGMAP, 8);
	box_put(box, BOX_HEAP + BOX_SPACE + 8 * BOX_space_high, BOX_SEGMAP + 0x100, 8);
	box_put(box, BOX_HEAP + 8 * BOX_heap_log2, BOX_SEGMENT, 4);
	memset(box->bytes + (BOX_SEGMAP - BOX_BASE), 0xff, 0x100);
	box_make_blob(box, BOX_CODE, 0x4000, BOX_START, BOX_START + 0x800, "nmethod", 6, 0x10);
	box_make_blob(box, BOX_INTERPRETER, 0x1000, BOX_INTERPRETER + 0x800, BOX_INTERPRETER + 0x1000, "Interpreter", 0, -1);
	/* mov eax, [rsp - n]; push rbp; sub rsp, 32; ... call; ... add rsp, 32; pop rbp; ret */
	memset(box->bytes + (BOX_START - BOX_BASE), 0x90, 0x800);
	box_put(box, BOX_START + 11, 0x55, 1);
	box_put(box, BOX_START + 12, 0x20ec8348, 4);
	box_put(box, BOX_START + 0x80 - 5, 0xe8, 1);
	box_put(box, BOX_START + 0x100, 0xc35d, 2);
	box_put(box, BOX_BLOB + 8 * BOX_compiled_method, box_method(0), 8);
	box_put(box, BOX_BLOB + 8 * BOX_compiled_scopes, BOX_BLOB + 0x1400, 8);
	box_put(box, BOX_BLOB + 8 * BOX_compiled_deopt, BOX_START + 0x700, 8);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_id, 4711, 4);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_orig_pc, 24, 4);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_metadata, 0x1300, 4);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_pcs, 0x1800, 4);
	box_put(box, BOX_BLOB + 8 * BOX_nmethod_pcs_end, 0x1800 + 4 * BOX_SIZE, 4);
	box_put(box, BOX_BLOB + 0x1300, box_method(0), 8);
	box_put(box, BOX_BLOB + 0x1308, box_method(1), 8);
	memcpy(box->bytes + (BOX_BLOB + 0x1400 - BOX_BASE), scopes, sizeof(scopes));
	box_make_descriptor(box, 0, -1, 0);
	box_make_descriptor(box, 1, 0x40, 4);
	box_make_descriptor(box, 2, 0x80, 1);
	box_make_descriptor(box, 3, INT32_MAX, 0);
	box_put(box, BOX_POOL + 8 * BOX_pool_tags, BOX_TAGS, 8);
	box_put(box, BOX_POOL + 8 * BOX_pool_length, 8, 4);
	box_put(box, BOX_POOL + 8 * BOX_pool_holder, BOX_KLASS, 8);
	box_put(box, BOX_POOL + 8 * BOX_pool_file, 3, 2);
	box_make_symbol(box, 0, "outer");
	box_make_symbol(box, 1, "inner");
	box_make_symbol(box, 2, "Main.java");
	box_put(box, BOX_KLASS + 8 * BOX_klass_name, box_make_symbol(box, 3, "a/b/Main"), 8);
	box_make_method(box, 0, lines, sizeof(lines));
	box_make_method(box, 1, lines, sizeof(lines));
#define X(name, type, field, kind) box->layout.name = 8 * BOX_##name;
	OPD_JAVA_FIELDS(X)
#undef X
	box->layout.heap_segmap = BOX_SPACE;
	box->layout.heaps = statics;
	box->layout.low_bound = statics + 8;
	box->layout.high_bound = statics + 16;
	box->layout.call_stub_return = statics + 24;
	box->layout.vm_major = statics + 32;
	box->layout.block_bytes = BOX_BLOCK;
	box->layout.const_method_bytes = box->layout.pool_bytes = box->layout.pc_desc_bytes = BOX_SIZE;
	box->layout.version = OPD_JAVA_OLD;
	box->layout.has_lines = 1;
}

#endif
