/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the reader of Java machines (pipeline/readers). Input: words that are written to
 * the memory of a made-up machine (tests/unit/java_box.h), 12 bytes each: where, and what. Every
 * question ends within its budget, and its answer is as described.
 */
#include "tests/fuzz/fuzz_dir.h"
#include "tests/unit/java_box.h"

#define PAGES       4096u
#define WORDS_MAX   256u
#define PATCH_BYTES 12u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static const uint64_t offsets[] = { 0, 12, 0x40, 0x80, 0x100, 0x700, BOX_INTERPRETER + 0x900 - BOX_START };
	static struct java_box box;
	struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX];
	struct opd_java_layout layout;
	struct op_text text = { 0 };
	uint64_t fingerprint;

	box_make(&box);
	for (size_t i = 0; i < WORDS_MAX && (i + 1) * PATCH_BYTES <= nr_bytes; i++) {
		uint32_t at;

		memcpy(&at, bytes + i * PATCH_BYTES, sizeof(at));
		memcpy(box.bytes + at % (BOX_BYTES - 8), bytes + i * PATCH_BYTES + sizeof(at), 8);
	}
	(void)!opd_java_read_layout(box_memory(&box, PAGES), BOX_BASE, &layout);
	for (size_t i = 0; i < 2 * op_array_size(offsets); i++) {
		uint64_t pc = BOX_START + offsets[i / 2];
		struct opd_java_place place = { 0 };

		if (opd_java_read_place(box_memory(&box, PAGES), &box.layout, pc, i & 1, &place, scopes))
			continue;
		fuzz_check(place.from <= pc && pc < place.to);
		fuzz_check(place.nr_scopes <= OPD_JAVA_SCOPES_MAX);
		fuzz_check(box.memory.nr_pages + box.memory.nr_pages_left == PAGES);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (!opd_java_read_method(box_memory(&box, PAGES), &box.layout, box_method(i), &text))
			fuzz_check(text.length > sizeof(struct opd_java_method));
		op_text_free(&text);
		(void)!opd_java_fingerprint(box_memory(&box, PAGES), &box.layout, i ? BOX_BLOB : box_method(0), !i, &fingerprint);
	}
	return 0;
}
