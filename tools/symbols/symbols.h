/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The symbols of one image: where code begins and what it is called. Positions are what sample
 * files have as keys: file offsets; for /proc/kallsyms offsets from _text; for an object of JIT
 * code addresses. The functions of symbol_sources.h fill the table. Rules: doc/opreport.1,
 * "Symbols". Nothing here prints.
 */
#ifndef OPR_SYMBOLS_H
#define OPR_SYMBOLS_H

#include "tools/common/words.h"
#include "tools/elf/demangle.h"
#include "tools/elf/open_file.h"
#include "tools/symbols/source_set.h"

struct opr_symbol {
	uint64_t start, size; /* positions start to start + size, exclusive, belong to the symbol */
	uint64_t vma;
	/* as the file has it; with has_aliases the other names follow: opr_symbol_next_name */
	const char *name;
	const char *shown; /* for reports: demangled if the options say so */
	uint32_t section;  /* index in the sections of opr_symbols */
	uint32_t rank;     /* of symbols with one start, the one with the smallest rank is kept, */
	uint32_t order;    /* then the first in the file */
	bool has_aliases;
	bool is_sized;   /* for readers: it has `size` bytes at most */
	bool is_unnamed; /* a function range: `name` is its address */
	bool is_local;   /* the file that it was compiled from alone knows the name */
};

struct opr_frame;
struct opr_kept_symbols;
struct opr_line_table;
struct opr_unpacked;

#define OPR_NO_VMA UINT64_MAX

struct opr_section {
	uint64_t start, end; /* positions */
	uint64_t vma; /* of start; OPR_NO_VMA: samples are not at addresses of this section */
};

/*
 * Zeroed at first; opr_symbols_free in any case. One thread at a time; lookups without
 * opr_symbols_code may run in many.
 */
struct opr_symbols {
	struct opr_symbol *symbols; /* sorted by start */
	size_t nr_symbols, capacity;
	uint64_t start_offset; /* of .text: keys of kernel images are relative to it */
	char **strings; /* pieces of memory that own the strings */
	size_t nr_strings, strings_capacity;
	char *free_bytes; /* of the last piece */
	size_t nr_free_bytes;
	size_t nr_name_bytes; /* of all names that were added or demangled */
	struct opr_line_table *table; /* the source lines of some addresses; NULL: none */
	const char *code_path;   /* the file that positions are in; NULL: there is none */
	/* its contents, when that is a compressed module; else NULL */
	struct opr_unpacked *unpacked;
	struct opr_section *sections; /* by index; NULL for kallsyms */
	size_t nr_sections;
	bool has_debug_info;	 /* the image itself has it */
	bool has_table;		 /* .symtab of the image or its debug file was read */
	struct opr_file_read file; /* the one that was read; not serialized */
	bool is_uncertain;	 /* the cache must not keep the symbols */
	bool is_damaged;	 /* the symbol table is damaged: symbols or names are missing */
	const char *build_id;	 /* of the image, hexadecimal digits; NULL: none */
	const char *debug_link;	 /* the name in .gnu_debuglink; NULL: none */
	const char *debug_path;	 /* of the separate debug file that was used; NULL: none */
	uint64_t debug_size, debug_mtime_ns;
};

/* What a report asks of the images and their functions. */
struct opr_naming {
	char *root;                  /* of the file system that the images are in; NULL: none */
	struct opr_words image_path; /* directories with images */
	enum opr_demangle demangle;
	uint32_t sources;              /* of symbols: source_set.h */
	struct opr_kept_symbols *kept; /* symbols that outlive the report; NULL: none do */
	uint64_t time_ns;              /* images not read by then are put off; 0: none is */
	/* which debug files are worth a download (tools/fetch/debuginfod.h): */
	int fetch_lines;      /* for source lines, too, and not for names only */
	double fetch_percent; /* images with fewer of the samples are not shown */
};

/* The same of one image. */
struct opr_symbol_options {
	enum opr_demangle demangle;
	uint32_t sources; /* source_set.h */
	bool by_address;  /* positions are addresses: an object of JIT code */
	bool is_kallsyms; /* the file is a list of the kernel's symbols */
	const char *root; /* --root, for separate debug files; NULL: none */
};

/* ---- lookup ---- */

/* The name that follows one of the names of a symbol, the first of which is `name`. NULL: none. */
static inline const char *opr_symbol_next_name(const struct opr_symbol *symbol, const char *name)
{
	const char *next = name + strlen(name) + 1;

	return symbol->has_aliases && *next ? next : NULL;
}

/*
 * The address of a position outside of all symbols: that of its section of code. Without symbols or
 * such a section it is the position itself, as in oprofile.
 */
uint64_t opr_symbols_vma(const struct opr_symbols *symbols, uint64_t position) OP_NONNULL;

/* The symbol at a position; NULL: none. */
const struct opr_symbol *opr_symbols_find(const struct opr_symbols *symbols, uint64_t position) OP_NONNULL;

/*
 * Source file and line of an address, from the line table. False: not known. *ret_file is valid
 * until the symbols are freed.
 */
bool opr_symbols_line(const struct opr_symbols *symbols, uint64_t vma, const char **ret_file, unsigned int *ret_line) OP_NONNULL;

/* The innermost inlined function at an address, from the line table. NULL: there is none. */
const struct opr_frame *opr_symbols_frame(const struct opr_symbols *symbols, uint64_t vma) OP_NONNULL;

/*
 * The bytes of a symbol, freed by the caller. 0; -ENODATA: there is no file; -ESTALE: another file
 * is at its path by now; another -errno.
 */
int opr_symbols_code(const struct opr_symbols *symbols, const struct opr_symbol *symbol, uint8_t **ret_code,
		     size_t *ret_nr_bytes) OP_NONNULL OP_MUST_CHECK;

void opr_symbols_free(struct opr_symbols *symbols);

/* ---- for readers (symbol_sources.h) ---- */

#define OPR_NAME_BYTES_MAX 16384u /* a longer name is cut */

/* Adds a symbol with start, vma, name (copied), section and rank. 0 or -ENOMEM. */
int opr_symbols_add(struct opr_symbols *symbols, const struct opr_symbol *symbol) OP_NONNULL OP_MUST_CHECK;

/*
 * The rank of a name. As in oprofile, a weak symbol is not local, and a leading underscore matters
 * more than being weak: calloc, which is weak, comes before __libc_calloc. __pi_ and __ia32_ of the
 * kernel come last.
 */
uint32_t opr_symbol_rank(const char *name, bool local, bool weak) OP_NONNULL;

/* Added to the rank of a symbol that stands behind those of .symtab. */
#define OPR_RANK_SIZED (1u << 8) /* of .dynsym and .gnu_debugdata */
#define OPR_RANK_PLT   (2u << 8)

#define OPR_PLT_SUFFIX "@plt"

/*
 * The section of code at an address, for readers that know no section. False: none. *section is the
 * one that was found last.
 */
bool opr_symbols_section(const struct opr_symbols *symbols, uint64_t vma, uint32_t *section) OP_NONNULL;

/*
 * Sorts the symbols, keeps one for each start, with the names of the others of its source as
 * aliases, and sets the sizes: a symbol ends at the next one or at the end of its section, the last
 * one at last_end. One that is_sized ends earlier if its size says so. The sections must be set
 * before. 0 or -ENOMEM.
 */
int opr_symbols_finish(struct opr_symbols *symbols, uint64_t last_end) OP_NONNULL OP_MUST_CHECK;

/* Sets the names for reports. 0 or -ENOMEM. */
int opr_symbols_demangle(struct opr_symbols *symbols, enum opr_demangle demangle) OP_NONNULL OP_MUST_CHECK;

/* Sets the file that code is read from. 0 or -ENOMEM. */
int opr_symbols_keep_path(struct opr_symbols *symbols, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Copies a string, which is freed with the symbols. NULL: no memory. */
const char *opr_symbols_keep_string(struct opr_symbols *symbols, const char *string) OP_NONNULL OP_MUST_CHECK;

#endif
