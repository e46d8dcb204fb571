/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/words.h"

#include <gelf.h>

enum how { ADDRESS, CONTENT, SIZE, TLS, TLS_SLOT };

static const struct {
	const char *symbol;
	enum how how;
} known[OP_NR_SYMBOL_WORDS] = {
#define X(name, symbol, how) [OP_WORD_##name] = { symbol, how },
	OP_RUNTIME_WORDS(X)
#undef X
#define X(name, symbol) [OP_WORD_node_##name] = { symbol, CONTENT },
	OP_NODE_WORDS(X)
#undef X
};

/* Symbols that other programs have as well make no runtime of an image. */
static bool is_runtime(uint32_t word)
{
	return word == OP_WORD_PYTHON_RUNTIME || word == OP_WORD_node_function_shared || word == OP_WORD_PERL_LOOP ||
	       word == OP_WORD_PHP_LOOP || word == OP_WORD_RUBY_LOOP;
}

/* The number in the file at an address. False: it is not in the file. */
static bool read_content(const struct opt_image *image, uint64_t address, uint64_t nr_bytes, uint64_t *ret_value)
{
	size_t nr_headers = 0;

	*ret_value = 0;
	if (!nr_bytes || nr_bytes > sizeof(*ret_value) || elf_getphdrnum(image->elf, &nr_headers) < 0)
		return false;
	for (size_t i = 0; i < nr_headers; i++) {
		GElf_Phdr header;
		uint64_t at;

		if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_LOAD || address < header.p_vaddr ||
		    address - header.p_vaddr >= header.p_filesz || header.p_filesz - (address - header.p_vaddr) < nr_bytes)
			continue;
		at = header.p_offset + (address - header.p_vaddr);
		if (at > image->nr_bytes || image->nr_bytes - at < nr_bytes)
			return false;
		memcpy(ret_value, image->bytes + at, nr_bytes); /* both are little-endian */
		return true;
	}
	return false;
}

/* Where the number of the image is relocated to, for a variable of threads. False: nowhere. */
static bool find_slot(const struct opt_image *image, const GElf_Sym *wanted, uint64_t *ret_address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header, of_symbols;

	while ((section = elf_nextscn(image->elf, section))) {
		Elf_Scn *symbols;
		Elf_Data *data, *list;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		symbols = elf_getscn(image->elf, header.sh_link);
		if (!symbols || !gelf_getshdr(symbols, &of_symbols) || of_symbols.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		list = elf_getdata(symbols, NULL);
		for (size_t i = 0; data && list && i < data->d_size / sizeof(Elf64_Rela); i++) {
			GElf_Rela rela;
			GElf_Sym symbol;

			if (gelf_getrela(data, (int)i, &rela) && GELF_R_TYPE(rela.r_info) == R_X86_64_DTPMOD64 &&
			    gelf_getsym(list, (int)GELF_R_SYM(rela.r_info), &symbol) && symbol.st_value == wanted->st_value &&
			    GELF_ST_TYPE(symbol.st_info) == STT_TLS) {
				*ret_address = rela.r_offset;
				return true;
			}
		}
	}
	return false;
}

static bool has_word(const struct opt_words *words, uint32_t word)
{
	for (size_t i = 0; i < words->nr_words; i++)
		if (le32toh(words->words[i].word) == word)
			return true;
	return false;
}

static void add_word(struct opt_words *words, uint32_t word, uint64_t nr_bytes, uint64_t value)
{
	words->words[words->nr_words++] = (struct op_row_word){
		.word = htole32(word),
		.nr_bytes = htole32((uint32_t)op_min_u64(nr_bytes, UINT32_MAX)),
		.value = htole64(value),
	};
}

/* The table of offsets that Python has for debuggers: numbers, as far as the file has them. */
static void take_python_offsets(struct opt_words *words, const struct opt_image *image, const GElf_Sym *runtime)
{
	uint64_t value;

	for (uint32_t i = 0; i < OP_PYTHON_OFFSETS_MAX && (i + 1) * sizeof(value) <= runtime->st_size; i++) {
		if (!read_content(image, runtime->st_value + i * sizeof(value), sizeof(value), &value) ||
		    (!i && value != OP_PYTHON_COOKIE))
			return;
		add_word(words, OP_WORD_PYTHON_OFFSETS + i, sizeof(value), value);
	}
}

static void take_symbol(struct opt_words *words, const struct opt_image *image, const GElf_Sym *symbol, uint32_t word)
{
	uint64_t value = symbol->st_value - (image->segments[0].address - image->segments[0].position);

	if (has_word(words, word))
		return;
	switch (known[word].how) {
	case ADDRESS:
		break;
	case CONTENT:
		if (!read_content(image, symbol->st_value, symbol->st_size, &value))
			return;
		break;
	case SIZE:
		value = symbol->st_size;
		break;
	case TLS:
		if (GELF_ST_TYPE(symbol->st_info) != STT_TLS)
			return;
		value = symbol->st_value;
		break;
	case TLS_SLOT:
		if (!find_slot(image, symbol, &value))
			return;
		value -= image->segments[0].address - image->segments[0].position;
		break;
	}
	add_word(words, word, symbol->st_size, value);
	if (word == OP_WORD_PYTHON_RUNTIME)
		take_python_offsets(words, image, symbol);
}

static void read_symbols(struct opt_words *words, const struct opt_image *image, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr_symbols = data ? data->d_size / sizeof(Elf64_Sym) : 0;

	for (size_t i = 0; i < nr_symbols; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(image->elf, header->sh_link, symbol.st_name);
		for (uint32_t word = 1; name && word < OP_NR_SYMBOL_WORDS; word++)
			if (known[word].symbol && !strcmp(name, known[word].symbol))
				take_symbol(words, image, &symbol, word);
	}
}

/* Whether a library that the image needs is musl: by its name on Alpine, or on Debian. */
static bool needs_musl(const struct opt_image *image, Elf_Scn *dynamic, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(dynamic, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < nr; i++) {
		GElf_Dyn entry;
		const char *name;

		if (!gelf_getdyn(data, (int)i, &entry) || entry.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(image->elf, header->sh_link, entry.d_un.d_val);
		if (name && (!strncmp(name, "libc.musl-", strlen("libc.musl-")) || !strcmp(name, "libc.so")))
			return true;
	}
	return false;
}

void opt_words_read(struct opt_words *words, const struct opt_image *image)
{
	Elf_Scn *section = NULL;
	bool has_runtime = false, has_musl = false;
	GElf_Shdr header;

	while (image->nr_segments && (section = elf_nextscn(image->elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			read_symbols(words, image, section, &header);
		else if (header.sh_type == SHT_DYNAMIC)
			has_musl |= needs_musl(image, section, &header);
	}
	if (has_musl && !has_word(words, OP_WORD_MUSL))
		add_word(words, OP_WORD_MUSL, 0, 1);
	for (size_t i = 0; i < words->nr_words; i++)
		has_runtime |= is_runtime(le32toh(words->words[i].word));
	if (!has_runtime)
		words->nr_words = 0;
}
