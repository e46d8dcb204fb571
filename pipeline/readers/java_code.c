/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/readers/java_code.h"

#include <errno.h>
#include <string.h>

#include "libop/base/htable.h"

#define HEAPS_MAX       8u
#define HOPS_MAX        65536u /* in a segment map */
#define FREE_SEGMENT    0xffu
#define LOG2_MAX        16
#define BLOB_MAX        (64u << 20) /* bytes of a piece of code, and of what belongs to it */
#define FRAME_WORDS_MAX (1 << 20)
#define PROLOGUE_MAX    256u /* bytes of code before the frame is complete that are looked at */
#define AROUND_BYTES    512u /* of code on both sides of an address, in which its range lies */
#define PCS_MAX         (1u << 20)
#define NUMBER_BYTES    5u

/* A blob as it is in memory. */
struct blob {
	uint64_t at, bytes, name, code, code_end;
	int32_t complete, frame_words;
	char words[24]; /* the beginning of its name */
};

static int read_u64(struct opd_far_memory *memory, uint64_t address, uint64_t *ret_value)
{
	return opd_far_memory_read(memory, address, ret_value, sizeof(*ret_value));
}

static int read_i32(struct opd_far_memory *memory, uint64_t address, int32_t *ret_value)
{
	return opd_far_memory_read(memory, address, ret_value, sizeof(*ret_value));
}

static int read_u16(struct opd_far_memory *memory, uint64_t address, uint16_t *ret_value)
{
	return opd_far_memory_read(memory, address, ret_value, sizeof(*ret_value));
}

/* ---- from an address to its blob ---- */

struct heap {
	uint64_t low, high, map, map_bytes;
	int32_t log2;
};

static int read_heap(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t at, struct heap *ret_heap)
{
	uint64_t space = at + layout->heap_memory, map = at + layout->heap_segmap, map_end;
	int err;

	if ((err = read_u64(memory, space + layout->space_low, &ret_heap->low)) ||
	    (err = read_u64(memory, space + layout->space_high, &ret_heap->high)) ||
	    (err = read_u64(memory, map + layout->space_low, &ret_heap->map)) ||
	    (err = read_u64(memory, map + layout->space_high, &map_end)) ||
	    (err = read_i32(memory, at + layout->heap_log2, &ret_heap->log2)))
		return err;
	ret_heap->map_bytes = map_end - ret_heap->map;
	if (ret_heap->low > ret_heap->high || map_end < ret_heap->map || ret_heap->log2 < 0 || ret_heap->log2 > LOG2_MAX)
		return -EBADMSG;
	return 0;
}

/*
 * The map has a byte for each segment: 0 at the first one of a block, else how many segments to go
 * back, at most 254, towards it.
 */
static int find_block(struct opd_far_memory *memory, const struct heap *heap, uint64_t pc, uint64_t *ret_segment)
{
	uint64_t segment = (pc - heap->low) >> heap->log2;
	uint8_t back;

	for (unsigned int i = 0; i < HOPS_MAX; i++) {
		int err = segment < heap->map_bytes ? opd_far_memory_read(memory, heap->map + segment, &back, 1) : -EBADMSG;

		if (err)
			return err;
		if (!back) {
			*ret_segment = segment;
			return 0;
		}
		if (back == FREE_SEGMENT)
			return -ENOENT;
		if (back > segment)
			return -EBADMSG;
		segment -= back;
	}
	return -EBADMSG;
}

static int read_blob(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t at, struct blob *ret_blob)
{
	int32_t bytes;
	int err;

	*ret_blob = (struct blob){ .at = at };
	if ((err = read_i32(memory, at + layout->blob_size, &bytes)) ||
	    (err = read_i32(memory, at + layout->blob_complete, &ret_blob->complete)) ||
	    (err = read_i32(memory, at + layout->blob_frame, &ret_blob->frame_words)) ||
	    (err = read_u64(memory, at + layout->blob_code, &ret_blob->code)) ||
	    (err = read_u64(memory, at + layout->blob_code_end, &ret_blob->code_end)) ||
	    (err = read_u64(memory, at + layout->blob_name, &ret_blob->name)))
		return err;
	ret_blob->bytes = (uint64_t)(int64_t)bytes;
	if (bytes <= 0 || (uint32_t)bytes > BLOB_MAX || at > UINT64_MAX - BLOB_MAX || ret_blob->code < at ||
	    ret_blob->code_end < ret_blob->code || ret_blob->code_end > at + ret_blob->bytes ||
	    ret_blob->frame_words > FRAME_WORDS_MAX)
		return -EBADMSG;
	err = opd_far_memory_string(memory, ret_blob->name, ret_blob->words, sizeof(ret_blob->words));
	ret_blob->words[sizeof(ret_blob->words) - 1] = '\0';
	return err == -EBADMSG ? 0 : err; /* only its beginning counts */
}

/* The blob of an address. -ENOENT: there is none. */
static int find_blob(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t pc, struct blob *ret_blob)
{
	uint64_t heaps, data, at, segment, length;
	struct heap heap;
	int32_t nr;
	uint8_t is_used;
	int err;

	if ((err = read_u64(memory, layout->heaps, &heaps)) || (err = read_i32(memory, heaps + layout->array_length, &nr)) ||
	    (err = read_u64(memory, heaps + layout->array_data, &data)))
		return err;
	if (nr < 0 || (uint32_t)nr > HEAPS_MAX)
		return -EBADMSG;
	for (int32_t i = 0; i < nr; i++) {
		if ((err = read_u64(memory, data + (uint64_t)i * sizeof(at), &at)) || (err = read_heap(memory, layout, at, &heap)))
			return err;
		if (pc < heap.low || pc >= heap.high)
			continue;
		err = find_block(memory, &heap, pc, &segment);
		at = heap.low + (segment << heap.log2);
		if (err || (err = opd_far_memory_read(memory, at + layout->block_header + layout->block_used, &is_used, 1)) ||
		    (err = read_u64(memory, at + layout->block_header + layout->block_length, &length)))
			return err;
		if (!is_used)
			return -ENOENT;
		if (length > BLOB_MAX >> heap.log2 || pc - at >= length << heap.log2)
			return -EBADMSG;
		err = read_blob(memory, layout, at + layout->block_bytes, ret_blob);
		return err ? err : pc < ret_blob->code || pc >= ret_blob->code_end ? -ENOENT : 0;
	}
	return -ENOENT;
}

/* ---- fingerprints ---- */

static bool is_compiled(const struct blob *blob)
{
	return !strcmp(blob->words, "nmethod") || !strcmp(blob->words, "native nmethod");
}

/* Each compilation has another number, and the machine does not use a number again. */
static int blob_fingerprint(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct blob *blob,
			    uint64_t *ret_fingerprint)
{
	uint64_t hash = op_hash_add(op_hash_add(op_hash_add(blob->name, blob->code), blob->code_end), blob->bytes), method;
	int32_t id;
	int err;

	hash = op_hash_add(hash, (uint64_t)(uint32_t)blob->frame_words << 32 | (uint32_t)blob->complete);
	if (is_compiled(blob)) {
		if ((err = read_u64(memory, blob->at + layout->compiled_method, &method)) ||
		    (err = read_i32(memory, blob->at + layout->nmethod_id, &id)))
			return err;
		hash = op_hash_add(op_hash_add(hash, method), (uint32_t)id);
	}
	*ret_fingerprint = hash;
	return 0;
}

struct method {
	uint64_t constant, pool;
	uint16_t flags, code_bytes, name_index;
};

static int read_method(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t at, struct method *ret_method)
{
	int err;

	if (at % sizeof(uint64_t))
		return -EBADMSG;
	if ((err = read_u64(memory, at + layout->method_const, &ret_method->constant)) ||
	    (err = read_u64(memory, ret_method->constant + layout->const_pool, &ret_method->pool)) ||
	    (err = read_u16(memory, ret_method->constant + layout->const_flags, &ret_method->flags)) ||
	    (err = read_u16(memory, ret_method->constant + layout->const_code_size, &ret_method->code_bytes)) ||
	    (err = read_u16(memory, ret_method->constant + layout->const_name, &ret_method->name_index)))
		return err;
	return ret_method->constant % sizeof(uint64_t) || ret_method->pool % sizeof(uint64_t) ? -EBADMSG : 0;
}

static uint64_t method_fingerprint(const struct method *method)
{
	uint64_t hash = op_hash_add(method->constant, method->pool);

	return op_hash_add(hash, (uint64_t)method->code_bytes << 16 | method->name_index);
}

int opd_java_fingerprint(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t address, bool is_method,
			 uint64_t *ret_fingerprint)
{
	struct method method;
	struct blob blob;
	int err;

	if (is_method) {
		err = read_method(memory, layout, address, &method);
		if (!err)
			*ret_fingerprint = method_fingerprint(&method);
		return err;
	}
	err = read_blob(memory, layout, address, &blob);
	return err ? err : blob_fingerprint(memory, layout, &blob, ret_fingerprint);
}

/* ---- the frame at an address: x86-64 ---- */

/* Code around an address: bytes[0] is at `start`. */
struct code {
	uint64_t start, end;
	uint8_t bytes[2 * AROUND_BYTES];
};

static bool is_at(const struct code *code, uint64_t address, const uint8_t *bytes, size_t nr)
{
	return address >= code->start && address <= code->end && code->end - address >= nr &&
	       !memcmp(code->bytes + (address - code->start), bytes, nr);
}

static int read_code(struct opd_far_memory *memory, const struct blob *blob, uint64_t from, uint64_t to, struct code *ret_code)
{
	ret_code->start = from < blob->code ? blob->code : from;
	ret_code->end = to > blob->code_end ? blob->code_end : to;
	return opd_far_memory_read(memory, ret_code->start, ret_code->bytes, (size_t)(ret_code->end - ret_code->start));
}

/*
 * The end of a compiled method: [vzeroupper] [cmp rsp, [r15+n]; ja] or [test eax, [rip+n]], ret. It
 * begins behind `pop rbp`. True where `address` is in this sequence: the frame is gone.
 */
static bool is_leaving(const struct code *code, uint64_t address)
{
	if (is_at(code, address, (const uint8_t[]){ 0xc5, 0xf8, 0x77 }, 3))
		address += 3;
	if (is_at(code, address, (const uint8_t[]){ 0x49, 0x3b, 0x67 }, 3))
		address += 4;
	else if (is_at(code, address, (const uint8_t[]){ 0x49, 0x3b, 0xa7 }, 3))
		address += 7;
	if (is_at(code, address, (const uint8_t[]){ 0x0f, 0x87 }, 2))
		address += 6;
	if (is_at(code, address, (const uint8_t[]){ 0x85, 0x05 }, 2))
		address += 6;
	return is_at(code, address, (const uint8_t[]){ 0xc3 }, 1);
}

static bool is_pop_and_leaving(const struct code *code, uint64_t address)
{
	return is_at(code, address, (const uint8_t[]){ 0x5d }, 1) && is_leaving(code, address + 1);
}

/*
 * In 21 the frame is followed by a look at a word that says whether the code may run: cmp dword
 * [r15+n], m; then jne, or je over a call. Returns where the frame is made.
 */
static uint64_t frame_end(const struct code *code, uint64_t complete)
{
	static const uint8_t cmp[] = { 0x41, 0x81, 0x7f };

	if (is_at(code, complete - 6, (const uint8_t[]){ 0x0f, 0x85 }, 2) && is_at(code, complete - 14, cmp, sizeof(cmp)))
		return complete - 14;
	if (is_at(code, complete - 7, (const uint8_t[]){ 0x74, 5, 0xe8 }, 3) && is_at(code, complete - 15, cmp, sizeof(cmp)))
		return complete - 15;
	return complete;
}

/*
 * The prologue ends at `complete`: push rbp; [mov rbp, rsp]; [sub rsp, n], or sub rsp, n; mov
 * [rsp+m], rbp. Before it the stack is only looked at.
 */
static enum opd_java_shape prologue_shape(const struct code *code, uint64_t complete, uint64_t pc)
{
	static const uint8_t sub_long[] = { 0x48, 0x81, 0xec }, sub_short[] = { 0x48, 0x83, 0xec };
	static const uint8_t save_long[] = { 0x48, 0x89, 0xac, 0x24 }, save_short[] = { 0x48, 0x89, 0x6c, 0x24 };
	uint64_t push;

	/* from the end: the save of rbp, else sub, then push */
	if ((complete - 8 >= code->start && is_at(code, complete - 8, save_long, sizeof(save_long))) ||
	    (complete - 5 >= code->start && is_at(code, complete - 5, save_short, sizeof(save_short)))) {
		uint64_t save = is_at(code, complete - 5, save_short, sizeof(save_short)) ? complete - 5 : complete - 8;

		if (is_at(code, save - 7, sub_long, sizeof(sub_long)) || is_at(code, save - 4, sub_short, sizeof(sub_short)))
			return pc >= save ? OPD_JAVA_MADE_ROOM : OPD_JAVA_NO_FRAME;
	}
	push = complete;
	if (is_at(code, push - 7, sub_long, sizeof(sub_long)))
		push -= 7;
	else if (is_at(code, push - 4, sub_short, sizeof(sub_short)))
		push -= 4;
	if (is_at(code, push - 3, (const uint8_t[]){ 0x48, 0x8b, 0xec }, 3) ||
	    is_at(code, push - 3, (const uint8_t[]){ 0x48, 0x89, 0xe5 }, 3))
		push -= 3;
	return is_at(code, push - 1, (const uint8_t[]){ 0x55 }, 1) && pc >= push ? OPD_JAVA_PUSHED : OPD_JAVA_NO_FRAME;
}

/*
 * The shape of the frame where a thread was, and for which addresses around it holds. A prologue
 * and the end of a method hold for one address alone.
 */
static int read_shape(struct opd_far_memory *memory, const struct blob *blob, uint64_t pc, struct opd_java_place *place)
{
	uint64_t complete = blob->code + (uint64_t)(int64_t)blob->complete;
	struct code code;
	int err = read_code(memory, blob, pc - AROUND_BYTES, pc + AROUND_BYTES, &code);

	if (err)
		return err;
	place->from = pc;
	place->to = pc + 1;
	if (blob->complete >= 0 && pc < complete) {
		complete = frame_end(&code, complete);
		if (pc >= complete)
			place->shape = OPD_JAVA_FULL;
		else if (complete - pc > PROLOGUE_MAX)
			place->shape = OPD_JAVA_NO_FRAME;
		else
			place->shape = prologue_shape(&code, complete, pc);
		return 0;
	}
	if (is_leaving(&code, pc)) {
		place->shape = OPD_JAVA_NO_FRAME;
		return 0;
	}
	if (is_pop_and_leaving(&code, pc)) {
		place->shape = OPD_JAVA_PUSHED;
		return 0;
	}
	place->shape = OPD_JAVA_FULL;
	while (place->from > code.start && (blob->complete < 0 || place->from > complete) && !is_leaving(&code, place->from - 1) &&
	       !is_pop_and_leaving(&code, place->from - 1))
		place->from--;
	/* a sequence that begins before the end of the bytes may end behind them */
	while (place->to + 32 < code.end && !is_leaving(&code, place->to) && !is_pop_and_leaving(&code, place->to))
		place->to++;
	return 0;
}

/* call rel32, or call through a register or memory. */
static int read_is_behind_call(struct opd_far_memory *memory, const struct blob *blob, uint64_t pc, uint32_t *ret_is)
{
	struct code code;
	int err = read_code(memory, blob, pc - 8, pc, &code);

	*ret_is = 0;
	if (err)
		return err;
	*ret_is |= is_at(&code, pc - 5, (const uint8_t[]){ 0xe8 }, 1);
	for (uint64_t length = 2; length <= 7; length++) {
		uint64_t at = pc - length;

		if (at >= code.start && at + 1 < code.end && code.bytes[at - code.start] == 0xff)
			*ret_is |= (code.bytes[at + 1 - code.start] >> 3 & 7) == 2;
	}
	return 0;
}

/* ---- which functions an address is of ---- */

/*
 * A number of 1 to 5 bytes: bytes from 192 on say that one more follows. In 21 no byte is 0, and
 * each one has 1 more than its value.
 */
static int read_number(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t *at, uint64_t end,
		       uint32_t *ret_number)
{
	uint8_t byte, least = layout->version == OPD_JAVA_NEW;
	uint32_t sum = 0;

	for (unsigned int i = 0; i < NUMBER_BYTES; i++) {
		int err = *at < end ? opd_far_memory_read(memory, *at, &byte, 1) : -EBADMSG;

		if (err)
			return err;
		++*at;
		if (byte < least)
			return -EBADMSG;
		sum += (uint32_t)(byte - least) << (6 * i);
		if (byte < 192)
			break;
	}
	*ret_number = sum;
	return 0;
}

struct compiled {
	uint64_t method, scopes, pcs, pcs_end, metadata;
};

static int read_compiled(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct blob *blob,
			 struct compiled *ret_compiled)
{
	int32_t metadata, pcs, pcs_end;
	int err;

	if ((err = read_u64(memory, blob->at + layout->compiled_method, &ret_compiled->method)) ||
	    (err = read_u64(memory, blob->at + layout->compiled_scopes, &ret_compiled->scopes)) ||
	    (err = read_i32(memory, blob->at + layout->nmethod_metadata, &metadata)) ||
	    (err = read_i32(memory, blob->at + layout->nmethod_pcs, &pcs)) ||
	    (err = read_i32(memory, blob->at + layout->nmethod_pcs_end, &pcs_end)))
		return err;
	ret_compiled->pcs = blob->at + (uint64_t)(int64_t)pcs;
	ret_compiled->pcs_end = blob->at + (uint64_t)(int64_t)pcs_end;
	ret_compiled->metadata = blob->at + (uint64_t)(int64_t)metadata;
	if (metadata < 0 || pcs < metadata || pcs_end < pcs || (uint64_t)pcs_end > blob->bytes || ret_compiled->scopes < blob->at ||
	    ret_compiled->scopes > ret_compiled->pcs || !layout->pc_desc_bytes)
		return -EBADMSG;
	return 0;
}

/*
 * The descriptor of an address: the first whose offset is not less, as the machine itself finds it.
 * *ret_before: the offset of the one before, *ret_scope: where its scopes are; 0: there are none.
 */
static int find_descriptor(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct compiled *compiled,
			   int64_t offset, int32_t *ret_before, int32_t *ret_offset, int32_t *ret_scope)
{
	uint64_t low = 0, high = (compiled->pcs_end - compiled->pcs) / layout->pc_desc_bytes, nr = high;
	int32_t at;
	int err;

	if (nr > PCS_MAX)
		return -EBADMSG;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		err = read_i32(memory, compiled->pcs + middle * layout->pc_desc_bytes + layout->pc_offset, &at);
		if (err)
			return err;
		if (at < offset)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_scope = 0;
	*ret_offset = INT32_MAX;
	*ret_before = -1;
	if (low == nr)
		return 0;
	if (low && (err = read_i32(memory, compiled->pcs + (low - 1) * layout->pc_desc_bytes + layout->pc_offset, ret_before)))
		return err;
	if ((err = read_i32(memory, compiled->pcs + low * layout->pc_desc_bytes + layout->pc_offset, ret_offset)))
		return err;
	return read_i32(memory, compiled->pcs + low * layout->pc_desc_bytes + layout->pc_scope, ret_scope);
}

/* The scopes of a descriptor, from the innermost on: each names the one that it is inlined in. */
static int read_scopes(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct compiled *compiled,
		       uint32_t scope, struct opd_java_place *place, struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX])
{
	while (scope && place->nr_scopes < OPD_JAVA_SCOPES_MAX) {
		uint64_t at = compiled->scopes + scope, method = 0;
		uint32_t sender, index, bci;
		int err;

		if ((err = read_number(memory, layout, &at, compiled->pcs, &sender)) ||
		    (err = read_number(memory, layout, &at, compiled->pcs, &index)) ||
		    (err = read_number(memory, layout, &at, compiled->pcs, &bci)))
			return err;
		if (!index || index > (compiled->scopes - compiled->metadata) / sizeof(method))
			return -EBADMSG;
		err = read_u64(memory, compiled->metadata + (uint64_t)(index - 1) * sizeof(method), &method);
		if (err)
			return err;
		scopes[place->nr_scopes++] = (struct opd_java_scope){ .method = method, .bci = (int32_t)bci - 1 };
		if (sender >= scope && sender) /* the outer ones are written first */
			return -EBADMSG;
		scope = sender;
	}
	return 0;
}

static int read_functions(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct blob *blob, uint64_t pc,
			  bool is_exact, struct opd_java_place *place, struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX])
{
	int64_t offset = (int64_t)(pc - blob->code);
	struct compiled compiled;
	int32_t before, at, scope;
	int err = read_compiled(memory, layout, blob, &compiled);

	if (err || (err = find_descriptor(memory, layout, &compiled, offset, &before, &at, &scope)))
		return err;
	if (is_exact && before >= 0 && place->from < blob->code + (uint64_t)before + 1)
		place->from = blob->code + (uint64_t)before + 1;
	if (is_exact && at >= offset && place->to > blob->code + (uint64_t)at + 1)
		place->to = blob->code + (uint64_t)at + 1;
	/* an address behind all descriptors, or in the prologue, is of the method itself */
	if (scope > 0 && (blob->complete < 0 || offset >= blob->complete))
		return read_scopes(memory, layout, &compiled, (uint32_t)scope, place, scopes);
	scopes[place->nr_scopes++] = (struct opd_java_scope){ .method = compiled.method, .bci = -1 };
	return 0;
}

/* A frame that was deoptimized returns to the handler of that. The frame keeps the real address. */
static int read_deoptimized(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct blob *blob,
			    uint64_t pc, struct opd_java_place *place)
{
	uint64_t handler, handler_mh;
	int err;

	if ((err = read_u64(memory, blob->at + layout->compiled_deopt, &handler)) ||
	    (err = read_u64(memory, blob->at + layout->compiled_deopt_mh, &handler_mh)))
		return err;
	if (pc != handler && pc != handler_mh)
		return 0;
	err = read_i32(memory, blob->at + layout->nmethod_orig_pc, &place->original_pc);
	return err ? err : place->original_pc < 0 ? -EBADMSG : 0;
}

int opd_java_read_place(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t pc, bool is_exact,
			struct opd_java_place *ret_place, struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX])
{
	struct opd_java_place place = { .code = OPD_JAVA_NO_CODE, .original_pc = -1, .from = pc, .to = pc + 1 };
	/* a call may be the last instruction */
	uint64_t address = is_exact ? pc : pc - 1, call_stub_return;
	struct blob blob;
	int err;

	if ((err = read_u64(memory, layout->low_bound, &place.low)) || (err = read_u64(memory, layout->high_bound, &place.high)))
		return err;
	err = pc < place.low || pc >= place.high ? -ENOENT : find_blob(memory, layout, address, &blob);
	if (err == -ENOENT) {
		*ret_place = place;
		return 0;
	}
	if (err)
		return err;
	place.blob = blob.at;
	place.start = blob.code;
	place.end = blob.code_end;
	place.frame_bytes = blob.frame_words > 0 ? (uint32_t)blob.frame_words * 8u : 0;
	err = blob_fingerprint(memory, layout, &blob, &place.fingerprint);
	if (err || (!is_exact && (err = read_is_behind_call(memory, &blob, pc, &place.is_behind_call))) ||
	    (err = read_u64(memory, layout->call_stub_return, &call_stub_return)))
		return err;
	if (!strcmp(blob.words, "Interpreter")) {
		place.code = OPD_JAVA_INTERPRETER;
		place.from = blob.code + !is_exact;
		place.to = blob.code_end + !is_exact;
	} else if (is_compiled(&blob)) {
		place.code = OPD_JAVA_COMPILED;
		if ((is_exact && (err = read_shape(memory, &blob, pc, &place))) ||
		    (!is_exact && (err = read_deoptimized(memory, layout, &blob, pc, &place))) ||
		    (place.original_pc < 0 && (err = read_functions(memory, layout, &blob, pc, is_exact, &place, scopes))))
			return err;
	} else if (!strcmp(blob.words, "flush_icache_stub")) {
		/* native code calls it, and it leaves the stack as it is */
		place.code = OPD_JAVA_STUB;
		place.frame_bytes = sizeof(uint64_t);
		place.shape = OPD_JAVA_NO_FRAME;
		place.from = blob.code + !is_exact;
		place.to = blob.code_end + !is_exact;
	} else {
		place.code = pc == call_stub_return && !is_exact ? OPD_JAVA_CALL_STUB : OPD_JAVA_STUB;
		if (is_exact && place.frame_bytes && (err = read_shape(memory, &blob, pc, &place)))
			return err;
	}
	*ret_place = place;
	return 0;
}

/* ---- names and lines ---- */

#define TAG_UTF8       1u
#define LINE_BYTES_MAX (64u << 10)

/* A text of the constant pool. -EBADMSG: the index leads to none. */
static int read_symbol(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t symbol,
		       char to[OPD_FAR_STRING_MAX])
{
	uint16_t length;
	int err = symbol % sizeof(uint64_t) ? -EBADMSG : read_u16(memory, symbol + layout->symbol_length, &length);

	if (err)
		return err;
	if (length >= OPD_FAR_STRING_MAX)
		length = OPD_FAR_STRING_MAX - 1;
	err = opd_far_memory_read(memory, symbol + layout->symbol_body, to, length);
	to[err ? 0 : length] = '\0';
	for (size_t i = 0; i < length && !err; i++)
		if (!to[i])
			to[i] = '?';
	return err;
}

static int read_pool(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t pool, uint16_t index,
		     char to[OPD_FAR_STRING_MAX])
{
	uint64_t tags, symbol;
	int32_t length;
	uint8_t tag;
	int err;

	if ((err = read_i32(memory, pool + layout->pool_length, &length)) ||
	    (err = read_u64(memory, pool + layout->pool_tags, &tags)))
		return err;
	if (!index || index >= length)
		return -EBADMSG;
	/* an Array has its length, and its bytes behind that */
	if ((err = opd_far_memory_read(memory, tags + sizeof(int32_t) + index, &tag, 1)))
		return err;
	if (tag != TAG_UTF8)
		return -EBADMSG;
	err = read_u64(memory, pool + layout->pool_bytes + (uint64_t)index * sizeof(symbol), &symbol);
	return err ? err : read_symbol(memory, layout, symbol, to);
}

static int32_t unfold(uint32_t number)
{
	return (int32_t)(number >> 1 ^ -(number & 1));
}

/* Pairs of bytecode and line, each as the difference to the one before. */
static int read_lines(struct opd_far_memory *memory, const struct opd_java_layout *layout, const struct method *method,
		      struct op_text *text, uint32_t *ret_nr)
{
	uint64_t at = method->constant + layout->const_method_bytes + method->code_bytes, end = at + LINE_BYTES_MAX;
	int64_t bci = 0, line = 0, last = -1;
	uint32_t by_bci, by_line;
	uint8_t byte;

	*ret_nr = 0;
	if (!(method->flags & layout->has_lines))
		return 0;
	while (at < end && *ret_nr < OPD_JAVA_LINES_MAX) {
		struct opd_java_line pair;
		int err = opd_far_memory_read(memory, at++, &byte, 1);

		if (err)
			return err;
		if (!byte)
			return 0;
		if (byte == 0xff) {
			if ((err = read_number(memory, layout, &at, end, &by_bci)) ||
			    (err = read_number(memory, layout, &at, end, &by_line)))
				return err;
			bci += unfold(by_bci);
			line += unfold(by_line);
		} else {
			bci += byte >> 3;
			line += byte & 7;
		}
		if (bci < 0 || bci > UINT16_MAX || line < 0 || line > UINT16_MAX)
			return -EBADMSG;
		if (bci < last) /* compilers of other languages may not sort them */
			continue;
		last = bci;
		pair = (struct opd_java_line){ (uint16_t)bci, (uint16_t)line };
		op_text_add_bytes(text, &pair, sizeof(pair));
		++*ret_nr;
	}
	return -EBADMSG;
}

static void add_string(struct op_text *text, const char *string)
{
	op_text_add_bytes(text, string, strlen(string) + 1);
}

/* A file has the folders of its package, as it has below the root of the sources. */
static void add_names(struct op_text *text, char *class, const char *file, const char *name)
{
	const char *slash = strrchr(class, '/');
	struct op_text function = { 0 };

	if (*file && slash)
		op_text_add_bytes(text, class, (size_t)(slash + 1 - class));
	add_string(text, file);
	for (char *c = class; *c; c++)
		if (*c == '/')
			*c = '.';
	op_text_printf(&function, "%s.%s", class, name);
	add_string(text, op_text_get(&function));
	text->failed |= function.failed;
	op_text_free(&function);
}

int opd_java_read_method(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t at, struct op_text *ret_text)
{
	char name[OPD_FAR_STRING_MAX], class[OPD_FAR_STRING_MAX], file[OPD_FAR_STRING_MAX];
	struct opd_java_method head = { 0 };
	struct op_text lines = { 0 };
	uint64_t holder, symbol;
	struct method method;
	uint16_t file_index;
	int err = read_method(memory, layout, at, &method);

	if (err || (err = read_pool(memory, layout, method.pool, method.name_index, name)) ||
	    (err = read_u64(memory, method.pool + layout->pool_holder, &holder)) ||
	    (err = read_u64(memory, holder + layout->klass_name, &symbol)) || (err = read_symbol(memory, layout, symbol, class)) ||
	    (err = read_u16(memory, method.pool + layout->pool_file, &file_index)))
		return err;
	file[0] = '\0';
	if (file_index && (err = read_pool(memory, layout, method.pool, file_index, file)))
		return err;
	/* a table that is damaged leaves the method without lines */
	if (read_lines(memory, layout, &method, &lines, &head.nr_lines) < 0)
		head.nr_lines = 0;
	head.fingerprint = method_fingerprint(&method);
	head.code_start = method.constant + layout->const_method_bytes;
	head.code_bytes = method.code_bytes;
	op_text_add_bytes(ret_text, &head, sizeof(head));
	op_text_add_bytes(ret_text, op_text_get(&lines), head.nr_lines * sizeof(struct opd_java_line));
	add_names(ret_text, class, file, name);
	ret_text->failed |= lines.failed;
	op_text_free(&lines);
	return ret_text->failed ? -ENOMEM : 0;
}
