/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for cached symbols and kernel symbols. Input: an entry of a cache file; the same
 * bytes are also read as a cache file and as a list in the form of /proc/kallsyms.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>
#include <fcntl.h>

#include "tools/symbols/pack.h"
#include "tools/symbols/serialize.h"
#include "tools/symbols/symbol_sources.h"

#define LIST_NAME "kallsyms"

static void check(struct opr_symbols *symbols)
{
	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		const struct opr_symbol *symbol = &symbols->symbols[i];

		fuzz_check(symbol->name && symbol->shown && strlen(symbol->shown) < SIZE_MAX / 2);
		for (const char *name = symbol->name; name; name = opr_symbol_next_name(symbol, name))
			fuzz_check(strlen(name) < SIZE_MAX / 2);
		fuzz_check(!i || symbol[-1].start < symbol->start);
		opr_symbols_find(symbols, symbol->start);
	}
}

static void check_pack(int fd)
{
	const char *entry;
	struct opr_pack pack;

	if (opr_pack_open(&pack, fd))
		return;
	for (size_t i = 0; i < pack.nr_rows; i++) {
		const struct opr_pack_row *row = &pack.rows[i];

		fuzz_check(opr_pack_find(&pack, pack.names + row->name) == row);
		fuzz_check(opr_pack_get(&pack, row, &entry) || row->nr_bytes <= pack.nr_bytes);
	}
	opr_pack_close(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct opr_symbols symbols = { 0 };
	char path[FUZZ_PATH_BYTES];
	int err = opr_symbols_deserialize(&symbols, (const char *)bytes, nr_bytes, "/image", true);

	fuzz_check(!err || err == -EBADMSG || err == -ENOMEM);
	if (!err)
		check(&symbols);
	opr_symbols_free(&symbols);
	fuzz_check(fuzz_dir_write(LIST_NAME, bytes, nr_bytes));
	fuzz_dir_path(path, LIST_NAME);
	check_pack(open(path, O_RDONLY | O_CLOEXEC));
	if (!opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NORMAL))
		check(&symbols);
	opr_symbols_free(&symbols);
	return 0;
}
