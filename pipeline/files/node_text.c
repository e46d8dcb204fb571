/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/node_text.h"

#include <stdlib.h>

#define SOURCE_MAX     (16u << 20) /* bytes of a script in front of a function */
#define STRING_CHARS   4096u       /* of a name, as it is in memory */
#define PIECES_MAX     32u         /* parts of a string that wait */
#define POSITIONS_MAX  1024u       /* of a function; OPD_NODE_LINES_MAX */
#define POSITION_BYTES 8192u
#define INLINED_MAX    256u /* places where functions are inlined, of a function */
#define LINES_READS    24576u /* with fewer left lines are not looked for */
#define HOPS_MAX       4u     /* from a string to the one that has its characters */

/* ---- memory ---- */

bool opd_node_fail(struct opd_node_heap *heap, enum opd_node_outcome problem)
{
	if (heap->problem == OPD_NODE_NAMED)
		heap->problem = problem;
	return false;
}

bool opd_node_bytes(struct opd_node_heap *heap, uint64_t address, void *to, size_t nr_bytes)
{
	if (!heap->nr_reads_left || heap->nr_bytes_left < nr_bytes)
		return opd_node_fail(heap, OPD_NODE_LIMIT);
	heap->nr_reads_left--;
	heap->nr_bytes_left -= nr_bytes;
	return heap->memory(heap->arg, address, to, nr_bytes) || opd_node_fail(heap, OPD_NODE_FAULT);
}

bool opd_node_field(struct opd_node_heap *heap, uint64_t object, int32_t offset, void *to, size_t nr_bytes)
{
	if (!opd_node_is_object(object))
		return opd_node_fail(heap, OPD_NODE_FAULT);
	return opd_node_bytes(heap, object - 1 + (uint64_t)(int64_t)offset, to, nr_bytes);
}

bool opd_node_word(struct opd_node_heap *heap, uint64_t object, int32_t offset, uint64_t *ret_word)
{
	return opd_node_field(heap, object, offset, ret_word, sizeof(*ret_word));
}

/* The type in the map of an object. */
bool opd_node_type(struct opd_node_heap *heap, uint64_t object, int32_t *ret_type)
{
	uint16_t type;
	uint64_t map;

	if (!opd_node_word(heap, object, 0, &map) || !opd_node_field(heap, map, heap->layout->map_type, &type, sizeof(type)))
		return false;
	*ret_type = type;
	return true;
}

bool opd_node_has_type(struct opd_node_heap *heap, uint64_t object, int32_t wanted)
{
	int32_t type;

	return opd_node_type(heap, object, &type) && (type == wanted || opd_node_fail(heap, OPD_NODE_FAULT));
}

/* ---- strings ---- */

/* Some characters of a string. */
struct piece {
	uint64_t string;
	uint32_t from, nr;
};

/* Where the characters of a string lie. */
struct flat {
	uint64_t address;
	uint32_t width; /* bytes of a character: 1 or 2 */
};

static bool read_string(struct opd_node_heap *heap, uint64_t string, int32_t *ret_type, uint32_t *ret_length)
{
	if (!opd_node_type(heap, string, ret_type))
		return false;
	if (*ret_type >= heap->layout->first_nonstring)
		return opd_node_fail(heap, OPD_NODE_FAULT);
	return opd_node_field(heap, string, heap->layout->string_length, ret_length, sizeof(*ret_length));
}

/* Finds the characters of a piece. *ret_is_cons: they lie in two strings. */
static bool find_flat(struct opd_node_heap *heap, struct piece *piece, struct flat *ret_flat, bool *ret_is_cons)
{
	const struct opd_node_layout *layout = heap->layout;
	uint32_t length;
	uint64_t word;
	int32_t type;

	*ret_is_cons = false;
	for (size_t hops = 0; hops < HOPS_MAX; hops++) {
		int32_t shape;

		if (!read_string(heap, piece->string, &type, &length))
			return false;
		if (piece->from > length || piece->nr > length - piece->from)
			return opd_node_fail(heap, OPD_NODE_FAULT);
		shape = type & layout->string_shape_mask;
		ret_flat->width = type & layout->string_is_one_byte ? 1 : 2;
		if (!shape) {
			ret_flat->address = piece->string - 1 +
					    (uint64_t)(ret_flat->width == 1 ? layout->string_one_byte : layout->string_two_bytes);
			return true;
		}
		if (shape == layout->string_external) {
			if (type & heap->version->uncached)
				return opd_node_fail(heap, OPD_NODE_FAULT);
			return opd_node_word(heap, piece->string, layout->string_resource + (int32_t)OPD_NODE_WORD_BYTES,
					     &ret_flat->address);
		}
		*ret_is_cons = shape == layout->string_cons;
		if (*ret_is_cons)
			return true;
		if (shape == layout->string_sliced) {
			if (!opd_node_word(heap, piece->string, layout->string_parent_offset, &word))
				return false;
			if (!opd_node_is_smi(word) || opd_node_smi(word) < 0 ||
			    opd_node_smi(word) > INT32_MAX - (int32_t)piece->from)
				return opd_node_fail(heap, OPD_NODE_FAULT);
			piece->from += (uint32_t)opd_node_smi(word);
		} else if (shape != layout->string_thin) {
			return opd_node_fail(heap, OPD_NODE_FAULT);
		}
		/* the parent of a slice stands where a thin string has the actual one */
		if (!opd_node_word(heap, piece->string, layout->string_actual, &piece->string))
			return false;
	}
	return opd_node_fail(heap, OPD_NODE_LIMIT);
}

static void add_character(struct op_text *to, uint32_t c)
{
	if (c < 0x80) {
		op_text_add_char(to, c ? (char)c : '?');
	} else if (c < 0x800) {
		op_text_add_char(to, (char)(0xc0 | c >> 6));
		op_text_add_char(to, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		op_text_add_char(to, (char)(0xe0 | c >> 12));
		op_text_add_char(to, (char)(0x80 | (c >> 6 & 0x3f)));
		op_text_add_char(to, (char)(0x80 | (c & 0x3f)));
	} else {
		op_text_add_char(to, (char)(0xf0 | c >> 18));
		op_text_add_char(to, (char)(0x80 | (c >> 12 & 0x3f)));
		op_text_add_char(to, (char)(0x80 | (c >> 6 & 0x3f)));
		op_text_add_char(to, (char)(0x80 | (c & 0x3f)));
	}
}

static uint32_t character_at(const uint8_t *characters, uint32_t width, size_t i)
{
	uint16_t two;

	if (width == 1)
		return characters[i];
	memcpy(&two, characters + 2 * i, sizeof(two));
	return two;
}

/* Adds characters as UTF-8. A half of a pair becomes '?'. */
static void add_characters(struct op_text *to, const uint8_t *characters, uint32_t width, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uint32_t c = character_at(characters, width, i), low;

		if (c >= 0xd800 && c < 0xe000) {
			low = i + 1 < nr ? character_at(characters, width, i + 1) : 0;
			if (c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i++;
			} else {
				c = '?';
			}
		}
		add_character(to, c);
	}
}

/*
 * Adds a string: its first characters, or with `last` its last ones. Strings are trees: the
 * part behind waits while the one in front is read.
 */
bool opd_node_add_string(struct opd_node_heap *heap, uint64_t string, bool last, struct op_text *to)
{
	struct piece pieces[PIECES_MAX];
	uint8_t characters[2 * STRING_CHARS];
	size_t nr_pieces = 1;
	uint32_t length;
	int32_t type;

	if (!read_string(heap, string, &type, &length))
		return false;
	pieces[0] = (struct piece){ string, last && length > STRING_CHARS ? length - STRING_CHARS : 0,
				    length < STRING_CHARS ? length : STRING_CHARS };
	while (nr_pieces) {
		struct piece piece = pieces[--nr_pieces], front;
		struct flat flat;
		bool is_cons;

		if (!piece.nr)
			continue;
		if (!find_flat(heap, &piece, &flat, &is_cons))
			return false;
		if (!is_cons) {
			if (!opd_node_bytes(heap, flat.address + (uint64_t)piece.from * flat.width, characters,
					    (size_t)piece.nr * flat.width))
				return false;
			add_characters(to, characters, flat.width, piece.nr);
			continue;
		}
		front = piece;
		if (!opd_node_word(heap, piece.string, heap->layout->string_first, &front.string) ||
		    !read_string(heap, front.string, &type, &length) ||
		    !opd_node_word(heap, piece.string, heap->layout->string_second, &piece.string))
			return false;
		if (nr_pieces + 2 > PIECES_MAX)
			return opd_node_fail(heap, OPD_NODE_LIMIT);
		front.nr = front.from >= length ? 0 : (uint32_t)op_min_u64(front.nr, length - front.from);
		piece.nr -= front.nr;
		piece.from = piece.from > length ? piece.from - length : 0;
		pieces[nr_pieces++] = piece;
		pieces[nr_pieces++] = front;
	}
	return true;
}

/* ---- lines ---- */

/* The line of a position by the ends of lines, which V8 made for a stack trace: Smis, ascending. */
static bool find_line(struct opd_node_heap *heap, uint64_t ends, uint32_t position, uint32_t *ret_line)
{
	uint64_t word;
	int32_t low = 0, high;

	if (!opd_node_word(heap, ends, heap->layout->array_length, &word))
		return false;
	if (!opd_node_is_smi(word) || opd_node_smi(word) < 0 || opd_node_smi(word) > (1 << 27))
		return opd_node_fail(heap, OPD_NODE_FAULT);
	high = opd_node_smi(word);
	while (low < high) {
		int32_t middle = low + (high - low) / 2;

		if (!opd_node_word(heap, ends, heap->layout->array_data + middle * (int32_t)OPD_NODE_WORD_BYTES, &word))
			return false;
		if (opd_node_is_smi(word) && opd_node_smi(word) < (int32_t)position)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_line = (uint32_t)low + 1;
	return true;
}

/* Counts the ends of lines as V8 does: \n, \r without \n, U+2028, U+2029. */
static uint32_t nr_lines_in(const uint8_t *characters, uint32_t width, size_t nr, bool *was_return)
{
	uint32_t nr_lines = 0;

	for (size_t i = 0; i < nr; i++) {
		uint32_t c = character_at(characters, width, i);

		nr_lines += c == '\r' || (c == '\n' && !*was_return) || c == 0x2028 || c == 0x2029;
		*was_return = c == '\r';
	}
	return nr_lines;
}

/* Counts lines in the source, from the last position that was looked for in this script on. */
static bool count_lines(struct opd_node_heap *heap, uint64_t script, uint64_t source, uint32_t position, uint32_t *ret_line)
{
	uint8_t characters[16384];
	struct opd_node_counted counted = heap->counted;
	struct piece piece = { .string = source, .nr = position };
	bool is_cons, was_return = false;
	struct flat flat;

	if (counted.script != script || counted.position > position)
		counted = (struct opd_node_counted){ .script = script, .line = 1 };
	/* a source whose parts were put together: all of it is in the first one */
	for (size_t hops = 0;; hops++) {
		if (!find_flat(heap, &piece, &flat, &is_cons))
			return false;
		if (!is_cons)
			break;
		if (hops == HOPS_MAX)
			return opd_node_fail(heap, OPD_NODE_LIMIT);
		if (!opd_node_word(heap, piece.string, heap->layout->string_first, &piece.string))
			return false;
	}
	if ((uint64_t)(position - counted.position) * flat.width > SOURCE_MAX)
		return opd_node_fail(heap, OPD_NODE_LIMIT);
	while (counted.position < position) {
		size_t nr = op_min_u64(sizeof(characters) / flat.width, position - counted.position);

		if (!opd_node_bytes(heap, flat.address + ((uint64_t)piece.from + counted.position) * flat.width, characters,
				    nr * flat.width))
			return false;
		counted.line += nr_lines_in(characters, flat.width, nr, &was_return);
		counted.position += (uint32_t)nr;
	}
	heap->counted = counted;
	*ret_line = counted.line;
	return true;
}

/* The line of a position in a script; 0: it cannot be found, and the function keeps its name. */
uint32_t opd_node_line(struct opd_node_heap *heap, uint64_t script, int32_t position)
{
	enum opd_node_outcome problem = heap->problem;
	uint64_t ends, source, first;
	uint32_t line = 0;
	int32_t type;
	bool is_known;

	if (position < 0 || !opd_node_word(heap, script, heap->layout->script_line_ends, &ends) ||
	    !opd_node_word(heap, script, heap->version->script_first_line, &first))
		return 0;
	if (opd_node_is_object(ends) && opd_node_type(heap, ends, &type) && type == heap->layout->type_array)
		is_known = find_line(heap, ends, (uint32_t)position, &line);
	else
		is_known = opd_node_word(heap, script, heap->layout->script_source, &source) &&
			   count_lines(heap, script, source, (uint32_t)position, &line);
	heap->problem = problem;
	if (!is_known || !opd_node_is_smi(first) || opd_node_smi(first) < 0)
		return 0;
	return (uint32_t)op_min_u64((uint64_t)line + (uint32_t)opd_node_smi(first), INT32_MAX);
}

/* ---- lines of bytecode ---- */

struct position {
	uint32_t offset, position, line;
	uint32_t inlined; /* number of the inlined function, from 1 on; 0: the function itself */
};

/* The parts of a position (V8's source-position.h). */
static uint32_t place_of(uint64_t position)
{
	return (uint32_t)(position >> 1 & 0x3fffffff);
}

static uint32_t inlined_of(uint64_t position)
{
	return (uint32_t)(position >> 31 & 0xffff);
}

static int by_position(const void *a, const void *b)
{
	const struct position *left = a, *right = b;

	return left->position < right->position ? -1 : left->position > right->position;
}

static int by_offset(const void *a, const void *b)
{
	const struct position *left = a, *right = b;

	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* A number of a table: seven bits in each byte, the lowest first; its lowest bit is the sign. */
static bool next_number(const uint8_t *table, size_t nr_bytes, size_t *at, int64_t *ret_number)
{
	uint64_t number = 0;

	for (uint32_t shift = 0; *at < nr_bytes && shift < 64; shift += 7) {
		uint8_t byte = table[(*at)++];

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret_number = (int64_t)(number >> 1 ^ -(number & 1));
		return true;
	}
	return false;
}

/*
 * Reads a table of positions: pairs of numbers, each the difference to the pair before. Of the
 * first, an offset, the sign says whether a statement begins there. The second is a position: from
 * bit 1 on the place in the script plus 1 (V8's src/codegen: source-position-table.cc,
 * source-position.h).
 */
static size_t read_positions(const uint8_t *table, size_t nr_bytes, struct position positions[POSITIONS_MAX])
{
	int64_t offset = 0, position = 0, number;
	size_t at = 0, nr = 0;

	while (nr < POSITIONS_MAX && next_number(table, nr_bytes, &at, &number)) {
		number = number < 0 ? -(number + 1) : number;
		if (number > INT32_MAX - offset)
			break;
		offset += number;
		if (!next_number(table, nr_bytes, &at, &number))
			break;
		position = (int64_t)((uint64_t)position + (uint64_t)number);
		positions[nr++] = (struct position){ .offset = (uint32_t)offset,
						     .position = place_of((uint64_t)position),
						     .inlined = inlined_of((uint64_t)position) };
	}
	return nr;
}

/* Lines are counted from one position on to the next one. False: the source cannot be read. */
static bool find_lines(struct opd_node_heap *heap, uint64_t script, struct position *positions, size_t nr)
{
	qsort(positions, nr, sizeof(*positions), by_position);
	for (size_t i = 0; i < nr; i++) {
		bool is_same = i && positions[i].position == positions[i - 1].position;

		positions[i].line =
			is_same ? positions[i - 1].line : opd_node_line(heap, script, (int32_t)positions[i].position - 1);
		if (!positions[i].line)
			return false;
	}
	qsort(positions, nr, sizeof(*positions), by_offset);
	return true;
}

/* Reads the table that a field of an object has. Returns the number of positions. */
static size_t read_table(struct opd_node_heap *heap, uint64_t object, int32_t field, struct position positions[POSITIONS_MAX])
{
	uint8_t bytes[POSITION_BYTES];
	uint64_t table, length;

	if (heap->nr_reads_left <= LINES_READS || !opd_node_word(heap, object, field, &table) ||
	    !opd_node_word(heap, table, heap->layout->array_length, &length) || !opd_node_is_smi(length) ||
	    opd_node_smi(length) <= 0 || opd_node_smi(length) > (int32_t)sizeof(bytes) ||
	    !opd_node_field(heap, table, heap->layout->array_data, bytes, (size_t)opd_node_smi(length)))
		return 0;
	return read_positions(bytes, (size_t)opd_node_smi(length), positions);
}

/* Adds a line wherever it changes. */
static uint32_t add_changes(const struct position *positions, size_t nr, struct op_text *to)
{
	uint32_t nr_lines = 0;

	for (size_t i = 0; i < nr; i++) {
		if (i && positions[i].line == positions[i - 1].line)
			continue;
		op_text_add_bytes(to, &(struct opd_node_line){ positions[i].offset, positions[i].line },
				  sizeof(struct opd_node_line));
		nr_lines++;
	}
	return nr_lines;
}

uint32_t opd_node_add_lines(struct opd_node_heap *heap, uint64_t bytecode, uint64_t script, struct op_text *to)
{
	enum opd_node_outcome problem = heap->problem;
	struct position positions[POSITIONS_MAX];
	size_t nr = read_table(heap, bytecode, heap->version->bytecode_positions, positions);

	if (nr && !find_lines(heap, script, positions, nr))
		nr = 0;
	heap->problem = problem;
	return add_changes(positions, nr, to);
}

/* Where a function is inlined: a position, and which function. */
struct inlined {
	uint64_t position;
	int32_t function;
	uint32_t spare;
};

/*
 * Puts the place where it is inlined in place of each position in an inlined function, step by step
 * to the outermost one; one that leads nowhere is left out. Returns how many are left.
 */
static size_t leave_inlined(struct opd_node_heap *heap, uint64_t deopt, struct position *positions, size_t nr)
{
	struct inlined inlined[INLINED_MAX];
	uint64_t array, length;
	uint32_t nr_inlined = 0;
	size_t nr_left = 0;

	if (opd_node_word(heap, deopt,
			  heap->layout->array_data + heap->version->deopt_inlined * (int32_t)OPD_NODE_WORD_BYTES, &array) &&
	    opd_node_word(heap, array, heap->layout->array_length, &length) && opd_node_is_smi(length) &&
	    opd_node_smi(length) > 0 && opd_node_smi(length) <= (int32_t)sizeof(inlined) &&
	    opd_node_field(heap, array, heap->layout->array_data, inlined, (size_t)opd_node_smi(length)))
		nr_inlined = (uint32_t)opd_node_smi(length) / sizeof(inlined[0]);
	for (size_t i = 0; i < nr; i++) {
		struct position at = positions[i];

		/* an inlined function has a larger number than the one it is in */
		while (at.inlined && at.inlined <= nr_inlined) {
			uint64_t outer = inlined[at.inlined - 1].position;

			if (inlined_of(outer) >= at.inlined)
				break;
			at.position = place_of(outer);
			at.inlined = inlined_of(outer);
		}
		if (!at.inlined && at.position)
			positions[nr_left++] = at;
	}
	return nr_left;
}

uint32_t opd_node_add_code_lines(struct opd_node_heap *heap, uint64_t code, uint64_t deopt, uint64_t script, struct op_text *to)
{
	enum opd_node_outcome problem = heap->problem;
	struct position positions[POSITIONS_MAX];
	size_t nr = read_table(heap, code, heap->version->code_positions, positions);

	nr = nr ? leave_inlined(heap, deopt, positions, nr) : 0;
	if (nr && !find_lines(heap, script, positions, nr))
		nr = 0;
	heap->problem = problem;
	return add_changes(positions, nr, to);
}
