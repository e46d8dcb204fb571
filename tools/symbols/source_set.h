/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which sources the symbols of an image come from: --symbols-from=LIST, else the variable
 * OPREPORT_SYMBOLS_FROM, else all. What each source adds: symbol_sources.h.
 */
#ifndef OPR_SOURCE_SET_H
#define OPR_SOURCE_SET_H

#include "libop/base/compiler.h"

/*
 * A set is the sum of these. The keys of cached symbols have it (cache.h), so a number is never
 * used for another source. A new one is a bit here, its name in source_set.c, and OPR_SOURCE_NAMES.
 */
enum opr_symbol_source {
	OPR_FROM_SYMTAB = 1u << 0,    /* .symtab of the image or of its debug file */
	OPR_FROM_DYNSYM = 1u << 1,    /* .dynsym: exported functions */
	OPR_FROM_DEBUGDATA = 1u << 2, /* .gnu_debugdata: a compressed .symtab */
	OPR_FROM_PLT = 1u << 3,       /* entries of the procedure linkage table, NAME@plt */
	OPR_FROM_RANGES = 1u << 4,    /* functions in .eh_frame, which have no name: [0xSTART] */
	OPR_FROM_DEBUGINFOD = 1u << 5, /* .symtab of a downloaded debug file */
	OPR_FROM_TABLE = 1u << 6, /* opd's row table: the image is gone, or has no symbols */
	OPR_FROM_GO = 1u << 7, /* functions that a Go program keeps for its runtime: .gopclntab */
	OPR_FROM_ALL = (1u << 8) - 1,
};

/* as the value_help of the option */
#define OPR_SOURCE_NAMES "symtab,dynsym,debugdata,plt,ranges,debuginfod,table,gopclntab"

/*
 * True for .symtab alone: then reports are those of oprofile, whose symbols reach to the next one,
 * and which leaves out samples outside of all symbols.
 */
static inline bool opr_sources_are_genuine(uint32_t sources)
{
	return sources == OPR_FROM_SYMTAB;
}

/* For option_table.h: the value of --symbols-from; `field` is a uint32_t. */
int opr_take_sources(void *field, const char *value);

/*
 * Fills a set that no option filled (0) from the variable, else with all sources. 0, or -EINVAL
 * after a message.
 */
int opr_sources_complete(uint32_t *sources) OP_NONNULL OP_MUST_CHECK;

#endif
