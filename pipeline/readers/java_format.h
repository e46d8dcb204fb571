/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The questions about a Java virtual machine (HotSpot), which a looker answers from the memory of
 * the process. libjvm.so describes its own structures: gHotSpotVMStructs and gHotSpotVMTypes have
 * the names, types and offsets of fields (vmStructs.hpp of OpenJDK). The layout is read once for
 * each process and comes with each further question.
 *
 * Nothing is trusted: neither the memory, nor a layout that was made of it. Any thread.
 */
#ifndef OPD_JAVA_FORMAT_H
#define OPD_JAVA_FORMAT_H

#include "libop/base/compiler.h"

/*
 * The fields that are read: name here, type, field, type of the field. Their offsets, or of static
 * ones their addresses. All must be there, with these types. A name that has two rows is another
 * field in another version: one of them must be there.
 */
/* clang-format off */
#define OPD_JAVA_STATICS(X) \
	X(heaps, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*") \
	X(low_bound, "CodeCache", "_low_bound", "address") \
	X(high_bound, "CodeCache", "_high_bound", "address") \
	X(call_stub_return, "StubRoutines", "_call_stub_return_address", "address") \
	X(vm_major, "Abstract_VM_Version", "_vm_major_version", "int")
#define OPD_JAVA_FIELDS(X) \
	X(array_length, "GrowableArrayBase", "_len", "int") \
	X(array_data, "GrowableArray<int>", "_data", "int*") \
	X(heap_memory, "CodeHeap", "_memory", "VirtualSpace") \
	X(heap_segmap, "CodeHeap", "_segmap", "VirtualSpace") \
	X(heap_log2, "CodeHeap", "_log2_segment_size", "int") \
	X(space_low, "VirtualSpace", "_low", "char*") \
	X(space_high, "VirtualSpace", "_high", "char*") \
	X(block_header, "HeapBlock", "_header", "HeapBlock::Header") \
	X(block_length, "HeapBlock::Header", "_length", "size_t") \
	X(block_used, "HeapBlock::Header", "_used", "bool") \
	X(blob_name, "CodeBlob", "_name", "const char*") \
	X(blob_size, "CodeBlob", "_size", "int") \
	X(blob_complete, "CodeBlob", "_frame_complete_offset", "int") \
	X(blob_frame, "CodeBlob", "_frame_size", "int") \
	X(blob_code, "CodeBlob", "_code_begin", "address") \
	X(blob_code_end, "CodeBlob", "_code_end", "address") \
	X(compiled_method, "CompiledMethod", "_method", "Method*") \
	X(compiled_scopes, "CompiledMethod", "_scopes_data_begin", "address") \
	X(compiled_deopt, "CompiledMethod", "_deopt_handler_begin", "address") \
	X(compiled_deopt_mh, "CompiledMethod", "_deopt_mh_handler_begin", "address") \
	X(nmethod_id, "nmethod", "_compile_id", "int") \
	X(nmethod_orig_pc, "nmethod", "_orig_pc_offset", "int") \
	X(nmethod_metadata, "nmethod", "_metadata_offset", "int") \
	X(nmethod_pcs, "nmethod", "_scopes_pcs_offset", "int") \
	X(nmethod_pcs_end, "nmethod", "_dependencies_offset", "int") \
	X(pc_offset, "PcDesc", "_pc_offset", "int") \
	X(pc_scope, "PcDesc", "_scope_decode_offset", "int") \
	X(method_const, "Method", "_constMethod", "ConstMethod*") \
	X(const_pool, "ConstMethod", "_constants", "ConstantPool*") \
	X(const_flags, "ConstMethod", "_flags", "u2") /* 17 */ \
	X(const_code_size, "ConstMethod", "_code_size", "u2") \
	X(const_name, "ConstMethod", "_name_index", "u2") \
	X(pool_tags, "ConstantPool", "_tags", "Array<u1>*") \
	X(pool_holder, "ConstantPool", "_pool_holder", "InstanceKlass*") \
	X(pool_length, "ConstantPool", "_length", "int") \
	X(pool_file, "ConstantPool", "_source_file_name_index", "u2") \
	X(klass_name, "Klass", "_name", "Symbol*") \
	X(symbol_length, "Symbol", "_length", "u2") \
	X(symbol_body, "Symbol", "_body[0]", "u1")
/* Sizes of types: those behind which data lie. */
#define OPD_JAVA_SIZES(X) \
	X(block, "HeapBlock") \
	X(const_method, "ConstMethod") \
	X(pool, "ConstantPool") \
	X(pc_desc, "PcDesc")
/* clang-format on */

/* Those whose interpreter and whose compressed numbers are known. */
#define OPD_JAVA_OLD 17
#define OPD_JAVA_NEW 21

struct opd_java_layout {
#define X(name, type, field, kind) uint64_t name;
	OPD_JAVA_STATICS(X)
#undef X
#define X(name, type, field, kind) uint32_t name;
	OPD_JAVA_FIELDS(X)
#undef X
#define X(name, type) uint32_t name##_bytes;
	OPD_JAVA_SIZES(X)
#undef X
	uint32_t version;   /* OPD_JAVA_OLD or OPD_JAVA_NEW */
	uint32_t has_lines; /* the flag of a method with a table of lines */
};

enum opd_java_what {
	OPD_JAVA_LAYOUT,  /* of the machine; one item */
	OPD_JAVA_PLACES,  /* the code at addresses */
	OPD_JAVA_METHODS, /* names and lines of methods */
	OPD_JAVA_CHECK,   /* whether code and methods are as they were */
};

struct opd_java_item {
	uint64_t address;     /* in libjvm.so; a pc; a Method; CHECK: a CodeBlob or a Method */
	uint64_t fingerprint; /* CHECK */
	uint32_t is_exact;    /* PLACES: the pc is where the code was, not behind a call */
	uint32_t is_method;   /* CHECK */
};

#define OPD_JAVA_ITEMS_MAX  64u
#define OPD_JAVA_CHECKS_MAX 512u

/* Then the items. */
struct opd_java_question {
	uint32_t pid;
	uint32_t what; /* enum opd_java_what */
	uint32_t nr_items, spare;
	uint64_t who; /* opd_far_memory_who of the process */
	struct opd_java_layout layout;
};

enum opd_java_code {
	OPD_JAVA_NO_CODE, /* the address is in no code of the machine */
	OPD_JAVA_INTERPRETER,
	OPD_JAVA_COMPILED,  /* a method; a wrapper of a native one, too */
	OPD_JAVA_STUB,      /* its frame has a fixed size, or it has none (frame_bytes 0) */
	OPD_JAVA_CALL_STUB, /* behind its call: the native code that called Java is next */
};

/* What of its frame the code has at an address. */
enum opd_java_shape {
	OPD_JAVA_FULL,
	OPD_JAVA_NO_FRAME,  /* the return address is at sp */
	OPD_JAVA_PUSHED,    /* the caller's fp is at sp, the return address behind it */
	OPD_JAVA_MADE_ROOM, /* the frame has its size, and the caller's fp is not in it yet */
};

#define OPD_JAVA_SCOPES_MAX 32u

struct opd_java_scope {
	uint64_t method;
	int32_t bci; /* -1: before the first */
	uint32_t spare;
};

struct opd_java_place {
	uint64_t low, high;      /* of all code of the machine */
	uint32_t code;           /* enum opd_java_code */
	uint32_t shape;          /* enum opd_java_shape */
	uint64_t blob;           /* address of the CodeBlob */
	uint64_t start, end;     /* of its code */
	uint64_t from, to;       /* the answer holds for these addresses */
	uint64_t fingerprint;    /* of the blob */
	uint32_t frame_bytes;    /* with the return address; 0: there is none */
	int32_t original_pc;     /* of a deoptimized frame: offset from sp; -1: it is none */
	uint32_t is_behind_call; /* the instruction before the address is a call */
	uint32_t nr_scopes;      /* struct opd_java_scope that follow, the innermost first */
};

struct opd_java_line {
	uint16_t bci, line;
};

#define OPD_JAVA_LINES_MAX 16384u

/* Then struct opd_java_line, sorted by bci, and two texts with their NUL: file and function. */
struct opd_java_method {
	uint64_t fingerprint;
	uint64_t code_start; /* of its bytecode */
	uint32_t code_bytes;
	uint32_t nr_lines;
};

/* Every answer begins with it. Then there is for each item a struct opd_java_part and its bytes. */
struct opd_java_answer {
	uint64_t cpu_ns;   /* that it took */
	uint32_t nr_pages; /* that were read */
	uint32_t nr_items;
};

/*
 * Its bytes are struct opd_java_layout, opd_java_place or opd_java_method and what follows that;
 * CHECK: none. LAYOUT: -ENOEXEC, -ENOENT, -EPROTONOSUPPORT: no machine that is known; -EAGAIN: it
 * has not begun. Others: -EFAULT: memory is not there; -EBADMSG: it is not as described; -EDQUOT:
 * too much of it; CHECK: -ESTALE: it is not the same.
 */
struct opd_java_part {
	int32_t err;
	uint32_t nr_bytes;
};

#endif
