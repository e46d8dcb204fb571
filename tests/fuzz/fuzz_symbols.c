/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the readers of symbols and lines of an image. Input: a file. The symbols are
 * sorted, each is found at its own start, and writing them to a cache and reading them gives the
 * same bytes.
 */
#include "tests/fuzz/fuzz_dir.h"

#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/symbols/serialize.h"
#include "tools/symbols/symbol_sources.h"

#define IMAGE_NAME  "image"
#define CHECKED_MAX 64 /* symbols whose code and lines are asked for */

/* The places of inlined functions agree with the line. */
static void check_places(struct opr_lines *lines, uint64_t vma)
{
	struct opr_place places[OPR_PLACES_MAX];
	size_t nr_places = opr_lines_places(lines, vma, places);
	const char *file;
	unsigned int line;

	fuzz_check(nr_places <= OPR_PLACES_MAX);
	if (nr_places && places[0].file && places[0].line)
		fuzz_check(opr_lines_find(lines, vma, &file, &line));
}

static void check_symbol(const struct opr_symbols *symbols, const struct opr_symbol *symbol, struct opr_lines *lines)
{
	const char *file = NULL;
	unsigned int line = 0;
	uint8_t *code = NULL;
	size_t nr_bytes = 0;

	fuzz_check(symbol->name && symbol->shown);
	fuzz_check(!symbol->size || opr_symbols_find(symbols, symbol->start) == symbol);
	if (lines && opr_lines_find(lines, symbol->vma, &file, &line))
		fuzz_check(file && line);
	if (lines)
		check_places(lines, symbol->vma);
	if (!opr_symbols_code(symbols, symbol, &code, &nr_bytes))
		fuzz_check(code && nr_bytes <= symbol->size);
	free(code);
}

static void check_names(const struct opr_symbol *a, const struct opr_symbol *b)
{
	const char *of_a = a->name, *of_b = b->name;

	for (; of_a && of_b; of_a = opr_symbol_next_name(a, of_a), of_b = opr_symbol_next_name(b, of_b))
		fuzz_check(!strcmp(of_a, of_b));
	fuzz_check(!of_a && !of_b && !strcmp(a->shown, b->shown));
}

static void check_kept(const struct opr_symbols *symbols, const char *path)
{
	struct opr_symbols again = { 0 };
	struct opr_symbols_bytes made = { 0 };
	size_t nr_bytes;
	char *bytes;

	fuzz_check(!opr_symbols_serialize(&made, symbols));
	nr_bytes = made.nr_head_bytes + made.strings.length;
	bytes = malloc(nr_bytes);
	fuzz_check(bytes);
	memcpy(bytes, made.head, made.nr_head_bytes);
	if (made.strings.length)
		memcpy(bytes + made.nr_head_bytes, made.strings.data, made.strings.length);
	fuzz_check(!opr_symbols_deserialize(&again, bytes, nr_bytes, path, true));
	fuzz_check(again.nr_symbols == symbols->nr_symbols);
	for (size_t i = 0; i < again.nr_symbols; i++) {
		fuzz_check(again.symbols[i].start == symbols->symbols[i].start);
		check_names(&symbols->symbols[i], &again.symbols[i]);
	}
	opr_symbols_free(&again);
	opr_symbols_bytes_free(&made);
	free(bytes);
}

/* The fault of the debugging information, if there is one, also when lines were found. */
static void check_damage(struct opr_lines *lines, const char *image)
{
	const char *path, *damage = opr_lines_damage(lines, false, &path);
	bfd *abfd;

	fuzz_check(path && (!damage || (*damage && !strchr(damage, '\n'))));
	abfd = opr_bfd_open(image);
	fuzz_check(abfd);
	damage = opr_lines_probe(abfd, NULL);
	fuzz_check(!damage || *damage);
	bfd_close(abfd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	const struct opr_symbol_options options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL };
	struct opr_symbols symbols = { 0 };
	struct opr_lines *lines = NULL;
	char path[FUZZ_PATH_BYTES];

	fuzz_check(fuzz_dir_write(IMAGE_NAME, bytes, nr_bytes));
	fuzz_dir_path(path, IMAGE_NAME);
	if (!opr_symbols_read_bfd(&symbols, path, path, &options)) {
		fuzz_check(!opr_lines_open(path, path, NULL, NULL, &lines));
		for (size_t i = 0; i < symbols.nr_symbols; i++) {
			fuzz_check(!i || symbols.symbols[i - 1].start < symbols.symbols[i].start);
			if (i < CHECKED_MAX)
				check_symbol(&symbols, &symbols.symbols[i], lines);
		}
		check_kept(&symbols, path);
		if (lines)
			check_damage(lines, path);
	}
	opr_lines_close(lines);
	opr_symbols_free(&symbols);
	return 0;
}
