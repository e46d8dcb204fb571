/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/kept.h"

#include <sys/stat.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "tools/elf/line_table.h"

static uint64_t hash_of(const char *path)
{
	return op_hash_bytes(0, path, strlen(path));
}

static void read_state(const char *path, struct opr_file_state *ret_state)
{
	struct stat st = { 0 };

	*ret_state = (struct opr_file_state){ .read_ns = op_now_ns() };
	if (stat(path, &st) < 0)
		return;
	ret_state->device = st.st_dev;
	ret_state->inode = st.st_ino;
	ret_state->size = (uint64_t)st.st_size;
	ret_state->mtime_ns = (uint64_t)st.st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	ret_state->ctime_ns = (uint64_t)st.st_ctim.tv_sec * OP_NS_PER_S + (uint64_t)st.st_ctim.tv_nsec;
}

static void remove_row(struct opr_kept_symbols *kept, size_t i)
{
	free(kept->rows[i].path);
	kept->rows[i] = kept->rows[--kept->nr_rows];
}

static void forget_old(struct opr_kept_symbols *kept, uint64_t now_ns)
{
	for (size_t i = kept->nr_rows; i-- > 0;) {
		if (now_ns - kept->rows[i].state.read_ns <= OPR_KEPT_NS)
			continue;
		opr_symbols_free(&kept->rows[i].symbols);
		remove_row(kept, i);
	}
}

static bool is_same(const struct opr_file_state *a, const struct opr_file_state *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

bool opr_kept_take(struct opr_kept_symbols *kept, const char *path, struct opr_symbols *symbols, struct opr_file_state *state)
{
	uint64_t hash = hash_of(path);

	read_state(path, state);
	forget_old(kept, state->read_ns);
	for (size_t i = 0; i < kept->nr_rows; i++) {
		struct opr_kept *row = &kept->rows[i];

		if (row->hash != hash || strcmp(row->path, path) != 0 || !is_same(&row->state, state))
			continue;
		*state = row->state;
		*symbols = row->symbols;
		remove_row(kept, i);
		return true;
	}
	return false;
}

void opr_kept_give(struct opr_kept_symbols *kept, const char *path, struct opr_symbols *symbols,
		   const struct opr_file_state *state)
{
	struct opr_kept row = { .path = strdup(path), .hash = hash_of(path), .state = *state };

	opr_line_table_free(symbols->table);
	symbols->table = NULL;
	if (!row.path || !op_grow(&kept->rows, &kept->capacity, kept->nr_rows + 1)) {
		free(row.path);
		opr_symbols_free(symbols);
		return;
	}
	row.symbols = *symbols;
	kept->rows[kept->nr_rows++] = row;
	*symbols = (struct opr_symbols){ 0 };
}

void opr_kept_free(struct opr_kept_symbols *kept)
{
	for (size_t i = 0; i < kept->nr_rows; i++) {
		opr_symbols_free(&kept->rows[i].symbols);
		free(kept->rows[i].path);
	}
	free(kept->rows);
	*kept = (struct opr_kept_symbols){ 0 };
}
