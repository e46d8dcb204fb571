/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The symbols of one image: where code begins, in positions that the keys of sample files have (file offsets, relative to _text for
 * /proc/kallsyms, or addresses for an object of JIT code), and what it is called. Loaders: bfd_file.c for object files, kallsyms.c. Rules: doc/opreport.1, "Symbols".
 */
#ifndef OPR_SYMBOLS_H
#define OPR_SYMBOLS_H

#include "tools/symbols/demangle.h"

struct opr_symbol {
	uint64_t start, size; /* position; a sample at start <= position < start + size is this symbol's */
	uint64_t vma;
	const char *name;  /* as the file has it */
	const char *shown; /* demangled, when that was asked for */
	/* for choosing among symbols of one address, and sizes */
	uint32_t section;
	uint32_t rank;  /* smaller is better */
	uint32_t order; /* in the file */
};

struct opr_lines;
struct opr_line_table;

struct opr_section {
	uint64_t start, end; /* positions */
};

struct opr_symbols {
	struct opr_symbol *symbols; /* sorted by start */
	size_t nr_symbols, capacity;
	uint64_t start_offset; /* of the first code section: what keys of kernel images are relative to */
	char **strings; /* pieces of memory that they lie in */
	size_t nr_strings, strings_capacity;
	char *free_bytes; /* of the last piece */
	size_t nr_free_bytes;
	struct opr_lines *lines; /* NULL: no line numbers were asked for */
	struct opr_line_table *table; /* the same for addresses that were known before (line_table.h); NULL: none */
	const char *code_path;   /* the file that positions are in; NULL: there is none */
	struct opr_unpacked *unpacked; /* what is in it, when that is a compressed module; NULL: it is none */
	struct opr_section *sections; /* of it, by the number that symbols have */
	size_t nr_sections;
	bool has_debug_info;	 /* the image itself */
	bool is_damaged;	 /* its symbol table: symbols are missing, or without their names */
	const char *build_id;	 /* of the image, hexadecimal digits; NULL: none */
	const char *debug_link;	 /* the name of a separate debug file that the image says; NULL: none */
	const char *debug_path;	 /* of the separate debug file that was used; NULL: none */
	uint64_t debug_size, debug_mtime_ns;
};

struct opr_symbol_options {
	enum opr_demangle demangle;
	bool lines;       /* line numbers will be asked for */
	bool by_address;  /* positions are addresses: an object of JIT code */
	const char *root; /* --root, for separate debug files; NULL: none */
};

/*
 * Reads the symbols of the object file at `path`; `name` is the image's own name, for debug files below /usr/lib/debug. 0, also when it has none;
 * -ENOEXEC when it is no object file; another -errno. Says nothing to the user. Bad input may crash it, or keep it for ever: it is for a process of its own (parallel_read.h).
 */
int opr_symbols_read_bfd(struct opr_symbols *symbols, const char *path, const char *name,
			 const struct opr_symbol_options *options) OP_NONNULL OP_MUST_CHECK;

/* Reads a list of kernel symbols in the form of /proc/kallsyms. 0; -EPERM when every address is hidden; another -errno. Says nothing. */
int opr_symbols_read_kallsyms(struct opr_symbols *symbols, const char *path, enum opr_demangle demangle) OP_NONNULL OP_MUST_CHECK;

/* For loaders: adds a symbol whose name is copied; start, vma, section and rank are set. 0 or -ENOMEM. */
int opr_symbols_add(struct opr_symbols *symbols, const struct opr_symbol *symbol) OP_NONNULL OP_MUST_CHECK;

/* For loaders: the rank of a name: global or not, weak or not. */
uint32_t opr_symbol_rank(const char *name, bool global, bool weak) OP_NONNULL;

/* For loaders: sorts, keeps one symbol for each address, and sets the sizes; the last symbol ends at last_end. */
void opr_symbols_finish(struct opr_symbols *symbols, const struct opr_section *sections, uint64_t last_end) OP_NONNULL_ARGS(1);

/* For loaders: a copy that is freed with the symbols; NULL: no memory. */
const char *opr_symbols_keep_string(struct opr_symbols *symbols, const char *string) OP_NONNULL OP_MUST_CHECK;

/* For loaders: the file that the code can be read from. 0 or -ENOMEM. */
int opr_symbols_keep_path(struct opr_symbols *symbols, const char *path) OP_NONNULL OP_MUST_CHECK;

/* For loaders: the names to show. 0 or -ENOMEM. */
int opr_symbols_demangle(struct opr_symbols *symbols, enum opr_demangle demangle) OP_NONNULL OP_MUST_CHECK;

/* The symbol at a position, NULL when there is none. Binary search. */
const struct opr_symbol *opr_symbols_find(const struct opr_symbols *symbols, uint64_t position) OP_NONNULL;

/* Source file and line of an address. False when they are not known. *ret_file is valid until the symbols are freed. */
bool opr_symbols_line(const struct opr_symbols *symbols, uint64_t vma, const char **ret_file, unsigned int *ret_line) OP_NONNULL;

/*
 * The bytes of a symbol, freed by the caller. 0; -ENODATA when there is no file to read them from; another -errno. Says nothing.
 */
int opr_symbols_code(const struct opr_symbols *symbols, const struct opr_symbol *symbol, uint8_t **ret_code,
		     size_t *ret_nr_bytes) OP_NONNULL OP_MUST_CHECK;

void opr_symbols_free(struct opr_symbols *symbols);

#endif
