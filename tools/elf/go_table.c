/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/go_table.h"

#include <elf.h>

#define WORD_BYTES     8u
#define HEADER_BYTES   8u /* magic, two zeros, quantum, bytes of an address */
#define FUNCTIONS_MAX  (2u << 20)
#define NAME_BYTES_MAX 8192u /* a hostile file has 2^21 names in the same bytes */
#define NO_FILE        UINT32_MAX

/* The first word of the table says which version of Go wrote it. */
enum { GO_1_2 = 0xfffffffb, GO_1_16 = 0xfffffffa, GO_1_18 = 0xfffffff0, GO_1_20 = 0xfffffff1 };

/* enum FuncFlag of internal/abi/symtab.go */
enum { FLAG_TOP_FRAME = 1, FLAG_WRITES_SP = 2 };

/* ---- numbers and strings of the table ---- */

static struct opr_bytes at(const struct opr_go_table *table, uint64_t offset)
{
	offset = op_min_u64(offset, table->nr_bytes);
	return (struct opr_bytes){ .at = table->bytes + offset, .end = table->bytes + table->nr_bytes };
}

static bool read_number(const struct opr_go_table *table, uint64_t offset, size_t nr_bytes, uint64_t *ret_number)
{
	struct opr_bytes bytes = at(table, offset);

	*ret_number = opr_bytes_unsigned(&bytes, nr_bytes);
	return !bytes.is_bad;
}

/* NULL: it has no end, is empty, or too long. */
static const char *string_at(const struct opr_go_table *table, uint64_t part, uint64_t offset)
{
	struct opr_bytes bytes = at(table, part + offset);
	size_t nr_bytes = op_min_u64((uint64_t)(bytes.end - bytes.at), NAME_BYTES_MAX);

	return nr_bytes && *bytes.at && memchr(bytes.at, 0, nr_bytes) ? (const char *)bytes.at : NULL;
}

/* ---- functions ---- */

static size_t width_of(const struct opr_go_table *table)
{
	return table->is_wide ? WORD_BYTES : sizeof(uint32_t);
}

/* The list has two numbers for each function: where it begins, and where the rest is. */
static bool read_entry(const struct opr_go_table *table, uint64_t index, uint64_t *ret_start, uint64_t *ret_at)
{
	uint64_t offset = table->functions + index * 2 * width_of(table);

	if (!read_number(table, offset, width_of(table), ret_start) ||
	    (index < table->nr_functions && !read_number(table, offset + width_of(table), width_of(table), ret_at)))
		return false;
	*ret_start += table->text;
	*ret_at += table->magic == GO_1_2 ? 0 : table->functions;
	return true;
}

/* Before Go 1.17 there were no flags. */
static bool is_known_start(const char *name)
{
	static const char *const names[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go" };
	size_t length = strlen(name);

	for (size_t i = 0; i < op_array_size(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* where the program begins; but C calls the one of a library */
	return !strncmp(name, "_rt0_", 5) && (length < 4 || strcmp(name + length - 4, "_lib") != 0);
}

/* Go ends its own stacks in a signal handler, too. But the kernel says what was interrupted. */
static bool is_handler(const char *name)
{
	return strstr(name, ".sigtramp") || strstr(name, ".cgoSigtramp");
}

static bool is_known_switch(const char *name)
{
	static const char *const names[] = { "runtime.mcall", "runtime.systemstack", "runtime.morestack", "runtime.gogo",
					     "runtime.asmcgocall" };

	for (size_t i = 0; i < op_array_size(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool opr_go_function(const struct opr_go_table *table, uint64_t index, struct opr_go_function *ret_function)
{
	struct opr_go_function function = { 0 };
	uint64_t offset, unused = 0, name;
	struct opr_bytes bytes;
	uint8_t flags = 0;

	if (index >= table->nr_functions || !read_entry(table, index, &function.start, &offset) ||
	    !read_entry(table, index + 1, &function.end, &unused) || function.start >= function.end)
		return false;
	bytes = at(table, offset);
	opr_bytes_take(&bytes, width_of(table)); /* the start again */
	name = opr_bytes_unsigned(&bytes, 4);
	opr_bytes_take(&bytes, 8); /* bytes of arguments; how it defers calls */
	function.depths = (uint32_t)opr_bytes_unsigned(&bytes, 4);
	function.files = (uint32_t)opr_bytes_unsigned(&bytes, 4);
	function.lines = (uint32_t)opr_bytes_unsigned(&bytes, 4);
	opr_bytes_take(&bytes, 4); /* how many other tables there are */
	if (table->magic != GO_1_2) {
		function.unit = (uint32_t)opr_bytes_unsigned(&bytes, 4);
		/* the number of the function, and before it its first line */
		opr_bytes_take(&bytes, table->magic == GO_1_20 ? 5 : 1);
		flags = (uint8_t)opr_bytes_unsigned(&bytes, 1);
	}
	function.name = string_at(table, table->names, name);
	if (bytes.is_bad || !function.name)
		return false;
	function.is_start = (flags & FLAG_TOP_FRAME && !is_handler(function.name)) || is_known_start(function.name);
	function.moves_stack = flags & FLAG_WRITES_SP || is_known_switch(function.name);
	*ret_function = function;
	return true;
}

/* ---- values ---- */

struct opr_go_values opr_go_values(const struct opr_go_table *table, const struct opr_go_function *function, uint32_t values)
{
	return (struct opr_go_values){
		/* 0: there is no table */
		.bytes = at(table, values ? table->values + values : table->nr_bytes),
		.end = function->start,
		.value = -1,
		.first = function->start,
		.last = function->end,
		.quantum = table->quantum,
	};
}

/* Each step has the change of the value, with the sign in the last bit, and how far it holds. */
bool opr_go_next(struct opr_go_values *values)
{
	uint64_t change = opr_bytes_uleb(&values->bytes), distance = opr_bytes_uleb(&values->bytes);

	/* a change of 0 ends the list, unless it is the first one */
	if (values->bytes.is_bad || (!change && values->end != values->first) || !distance || values->end >= values->last)
		return false;
	values->value = (int64_t)((uint64_t)values->value + (change & 1 ? ~(change >> 1) : change >> 1));
	values->start = values->end;
	values->end = distance > (values->last - values->start) / values->quantum ? values->last
										  : values->start + distance * values->quantum;
	return true;
}

static bool value_at(const struct opr_go_table *table, const struct opr_go_function *function, uint32_t offset, uint64_t address,
		     uint64_t *steps, int64_t *ret_value)
{
	struct opr_go_values values = opr_go_values(table, function, offset);

	while (*steps && opr_go_next(&values)) {
		--*steps;
		if (address < values.end) {
			*ret_value = values.value;
			return true;
		}
	}
	return false;
}

static const char *file_of(const struct opr_go_table *table, const struct opr_go_function *function, int64_t number)
{
	uint64_t offset, index = (uint64_t)number + (table->magic == GO_1_2 ? 0 : function->unit);
	uint64_t list = table->magic == GO_1_2 ? table->files : table->units;

	if (number < 0 || number > UINT32_MAX || !read_number(table, list + index * 4, 4, &offset) || offset == NO_FILE)
		return NULL;
	return string_at(table, table->magic == GO_1_2 ? 0 : table->files, offset);
}

bool opr_go_line(const struct opr_go_table *table, uint64_t address, uint64_t *steps, const char **ret_file,
		 unsigned int *ret_line)
{
	struct opr_go_function function;
	uint64_t low = 0, high = table->nr_functions, start, unused;
	const char *file;
	int64_t number, line;

	while (high - low > 1) { /* the last function that begins at the address or before it */
		uint64_t middle = low + (high - low) / 2;

		if (!read_entry(table, middle, &start, &unused))
			return false;
		if (start <= address)
			low = middle;
		else
			high = middle;
	}
	if (!opr_go_function(table, low, &function) || address < function.start || address >= function.end ||
	    !value_at(table, &function, function.files, address, steps, &number) ||
	    !value_at(table, &function, function.lines, address, steps, &line) || line < 0 || line > UINT32_MAX)
		return false;
	file = file_of(table, &function, number);
	if (!file)
		return false;
	*ret_file = file;
	*ret_line = (unsigned int)line;
	return true;
}

/* ---- where the table is ---- */

struct search {
	const uint8_t *file;
	uint64_t nr_bytes;
	Elf64_Ehdr header;
};

static bool read_at(const struct search *search, uint64_t position, void *to, uint64_t nr_bytes)
{
	if (position > search->nr_bytes || nr_bytes > search->nr_bytes - position)
		return false;
	memcpy(to, search->file + position, nr_bytes);
	return true;
}

static bool segment_at(const struct search *search, unsigned int index, Elf64_Phdr *ret_segment)
{
	return index < search->header.e_phnum && read_at(search, search->header.e_phoff + index * sizeof(*ret_segment), ret_segment,
							 sizeof(*ret_segment));
}

static bool is_code(const struct search *search, uint64_t address)
{
	Elf64_Phdr segment;

	for (unsigned int i = 0; segment_at(search, i, &segment); i++)
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz)
			return true;
	return false;
}

/* The position of an address; UINT64_MAX: none. */
static uint64_t position_of(const struct search *search, uint64_t address)
{
	Elf64_Phdr segment;

	for (unsigned int i = 0; segment_at(search, i, &segment); i++)
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
			return segment.p_offset + (address - segment.p_vaddr);
	return UINT64_MAX;
}

/* The word at an address after relocation, where the file only has a relocation for it. 0: none. */
static uint64_t relocated_word(const struct search *search, uint64_t address)
{
	uint64_t list = 0, nr_bytes = 0;
	Elf64_Phdr segment;
	Elf64_Rela row;
	Elf64_Dyn entry;

	for (unsigned int i = 0; segment_at(search, i, &segment); i++)
		for (uint64_t at = 0; segment.p_type == PT_DYNAMIC && at + sizeof(entry) <= segment.p_filesz &&
				      read_at(search, segment.p_offset + at, &entry, sizeof(entry)) && entry.d_tag != DT_NULL;
		     at += sizeof(entry)) {
			list = entry.d_tag == DT_RELA ? entry.d_un.d_ptr : list;
			nr_bytes = entry.d_tag == DT_RELASZ ? entry.d_un.d_val : nr_bytes;
		}
	list = list ? position_of(search, list) : UINT64_MAX;
	if (list > search->nr_bytes)
		return 0;
	nr_bytes = op_min_u64(nr_bytes, search->nr_bytes - list);
	for (uint64_t at = 0; at + sizeof(row) <= nr_bytes && read_at(search, list + at, &row, sizeof(row)); at += sizeof(row))
		if (row.r_offset == address)
			return (uint64_t)row.r_addend;
	return 0;
}

/* Whether its first and last entries are sound, and the first is in code. */
static bool is_table(const struct search *search, const struct opr_go_table *table)
{
	struct opr_go_function first, last;
	uint64_t copy = 0, offset = 0;

	if (!opr_go_function(table, 0, &first) || !opr_go_function(table, table->nr_functions - 1, &last) ||
	    !is_code(search, first.start) || !is_code(search, last.start) || last.start < first.start)
		return false;
	/* each entry leads to a copy of its start */
	return read_entry(table, 0, &first.start, &offset) && read_number(table, offset, width_of(table), &copy) &&
	       copy + table->text == first.start;
}

/*
 * What entries are relative to. The header has it. A file that can be loaded anywhere may have only
 * a relocation for it there. A program without C begins in a function that is in the table.
 */
static bool find_text(const struct search *search, struct opr_go_table *table, uint64_t header_word, uint64_t word_address)
{
	struct opr_go_function function;

	for (unsigned int i = 0; i < 2; i++) {
		table->text = i ? relocated_word(search, word_address) : header_word;
		if (is_code(search, table->text) && is_table(search, table))
			return true;
	}
	table->text = 0;
	for (uint64_t i = 0; i < table->nr_functions && opr_go_function(table, i, &function); i++)
		if (!strncmp(function.name, "_rt0_", 5)) {
			table->text = search->header.e_entry - function.start;
			return is_table(search, table);
		}
	return false;
}

/* Whether there is a table. Its bytes end with the segment. */
static bool read_header(const struct search *search, struct opr_go_table *table, uint64_t address)
{
	struct opr_bytes bytes = at(table, HEADER_BYTES);
	uint64_t text = 0, text_address, functions;

	table->nr_functions = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->is_wide = table->magic == GO_1_2 || table->magic == GO_1_16;
	if (table->magic == GO_1_2) {
		uint64_t end_of_list = HEADER_BYTES + WORD_BYTES + (2 * table->nr_functions + 1) * WORD_BYTES;

		table->functions = HEADER_BYTES + WORD_BYTES;
		if (table->nr_functions > FUNCTIONS_MAX || !read_number(table, end_of_list, 4, &table->files))
			return false;
		return table->nr_functions && is_table(search, table);
	}
	opr_bytes_take(&bytes, WORD_BYTES); /* number of files */
	text_address = address + (uint64_t)(bytes.at - table->bytes);
	if (!table->is_wide)
		text = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->names = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->units = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->files = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->values = opr_bytes_unsigned(&bytes, WORD_BYTES);
	table->functions = functions = opr_bytes_unsigned(&bytes, WORD_BYTES);
	if (bytes.is_bad || !table->nr_functions || table->nr_functions > FUNCTIONS_MAX || table->names > table->units ||
	    table->units > table->files || table->files > table->values || table->values > functions || functions > table->nr_bytes)
		return false;
	return table->is_wide ? is_table(search, table) : find_text(search, table, text, text_address);
}

/* The magic number, two zeros, the quantum, and 8 bytes of an address, as one word. */
static bool is_first_word(uint64_t word)
{
	uint32_t magic = (uint32_t)word;
	uint8_t quantum = (uint8_t)(word >> 48);

	return word >> 56 == WORD_BYTES && !(uint16_t)(word >> 32) && (quantum == 1 || quantum == 4) &&
	       (magic == GO_1_2 || magic == GO_1_16 || magic == GO_1_18 || magic == GO_1_20);
}

/* Linkers of Go leave a note. Its name is "Go" in four bytes. */
static bool has_note(const struct search *search)
{
	enum { NAME_AT = 12 };
	Elf64_Phdr segment;
	char name[4];

	for (unsigned int i = 0; segment_at(search, i, &segment); i++)
		if (segment.p_type == PT_NOTE && segment.p_filesz >= NAME_AT + sizeof(name) &&
		    read_at(search, segment.p_offset + NAME_AT, name, sizeof(name)) && !memcmp(name, "Go\0", sizeof(name)))
			return true;
	return false;
}

static bool find_in(const struct search *search, const Elf64_Phdr *segment, struct opr_go_table *ret_table)
{
	uint64_t end = op_min_u64(segment->p_offset + op_min_u64(segment->p_filesz, search->nr_bytes), search->nr_bytes);
	uint64_t begin = (segment->p_offset + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES, word;
	enum { CANDIDATES_MAX = 16 };
	unsigned int nr_candidates = 0;

	for (uint64_t at = begin; at + WORD_BYTES <= end && nr_candidates < CANDIDATES_MAX; at += WORD_BYTES) {
		struct opr_go_table table;

		memcpy(&word, search->file + at, sizeof(word));
		word = le64toh(word);
		if (op_likely(!is_first_word(word)))
			continue;
		nr_candidates++;
		table = (struct opr_go_table){ .bytes = search->file + at, .nr_bytes = end - at, .magic = (uint32_t)word,
					       .quantum = (uint8_t)(word >> 48) };
		if (read_header(search, &table, segment->p_vaddr + (at - segment->p_offset))) {
			*ret_table = table;
			return true;
		}
	}
	return false;
}

/*
 * The table is looked for in data, since section names may be missing. Reading all code as well
 * would be slow, and only linkers other than Go's put the table there.
 */
bool opr_go_find(const uint8_t *file, uint64_t nr_bytes, struct opr_go_table *ret_table)
{
	struct search search = { .file = file, .nr_bytes = nr_bytes };
	unsigned int nr_kinds;
	Elf64_Phdr segment;

	if (!read_at(&search, 0, &search.header, sizeof(search.header)) || memcmp(file, ELFMAG, SELFMAG) != 0 ||
	    file[EI_CLASS] != ELFCLASS64 || file[EI_DATA] != ELFDATA2LSB || search.header.e_phentsize != sizeof(segment))
		return false;
	nr_kinds = has_note(&search) ? 2 : 1;
	for (unsigned int in_code = 0; in_code < nr_kinds; in_code++)
		for (unsigned int i = 0; segment_at(&search, i, &segment); i++)
			if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_X) == !in_code && segment.p_offset <= nr_bytes &&
			    find_in(&search, &segment, ret_table))
				return true;
	return false;
}
