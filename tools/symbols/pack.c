/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/pack.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/process/guard.h"
#include "libop/base/htable.h"
#include "libop/base/sys.h"

static_assert(sizeof(struct opr_pack_row) == 24 && sizeof(struct opr_pack_foot) == 32, "no holes");

#define NR_LANES 4 /* as many multiplications as a CPU has under way */

uint32_t opr_pack_sum(uint32_t sum, const void *bytes, size_t nr_bytes)
{
	uint64_t lanes[NR_LANES] = { sum, 1, 2, 3 }, words[NR_LANES];
	size_t nr_left = nr_bytes;
	const char *at = bytes;

	for (; nr_left >= sizeof(words); at += sizeof(words), nr_left -= sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (int i = 0; i < NR_LANES; i++) {
			lanes[i] = (lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15u;
			lanes[i] ^= lanes[i] >> 32;
		}
	}
	return (uint32_t)op_hash_bytes(op_hash_bytes(nr_bytes, at, nr_left), lanes, sizeof(lanes));
}

static uint32_t sum_of(const char *name, const char *bytes, size_t nr_bytes)
{
	return opr_pack_sum(opr_pack_sum(0, name, strlen(name)), bytes, nr_bytes);
}

/* ---- reading ---- */

/* Maps the file with a zero page behind it, so that every string in it ends. */
static int map_file(struct opr_pack *pack, int fd)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), nr_bytes = pack->nr_bytes;
	void *room, *map;
	int err = op_sys_mmap(NULL, nr_bytes + page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &room);

	if (err)
		return err;
	err = op_sys_mmap(room, nr_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0, &map);
	if (!err)
		err = op_guard_new(room, (nr_bytes + page_bytes - 1) / page_bytes * page_bytes, &pack->guard);
	if (err)
		op_sys_munmap(room, nr_bytes + page_bytes);
	else
		pack->map = room;
	return err;
}

static int read_foot(const struct opr_pack *pack, struct opr_pack_foot *foot)
{
	uint64_t room = pack->nr_bytes - sizeof(*foot);

	memcpy(foot, pack->map + room, sizeof(*foot));
	if (memcmp(foot->magic, OPR_PACK_MAGIC, OPR_PACK_MAGIC_BYTES) || foot->spare ||
	    foot->nr_rows > room / sizeof(struct opr_pack_row) ||
	    foot->nr_name_bytes > room - foot->nr_rows * sizeof(struct opr_pack_row))
		return -EBADMSG;
	return 0;
}

/* True when the rows are sorted, as opr_pack_find needs them, and each entry is within the file. */
static bool are_sound(const struct opr_pack *pack, uint64_t nr_name_bytes, uint64_t entries_end)
{
	if (pack->nr_rows && (!nr_name_bytes || pack->names[nr_name_bytes - 1]))
		return false;
	for (size_t i = 0; i < pack->nr_rows; i++) {
		const struct opr_pack_row *row = &pack->rows[i];

		if (row->name >= nr_name_bytes || row->at > entries_end || row->nr_bytes > entries_end - row->at ||
		    (i && strcmp(pack->names + row[-1].name, pack->names + row->name) >= 0))
			return false;
	}
	return true;
}

static int read_rows(struct opr_pack *pack, const struct opr_pack_foot *foot)
{
	size_t nr_row_bytes = foot->nr_rows * sizeof(*pack->rows), nr_bytes = nr_row_bytes + foot->nr_name_bytes;
	uint64_t at = pack->nr_bytes - sizeof(*foot) - nr_bytes;

	pack->rows = malloc(nr_bytes + 1);
	if (!pack->rows)
		return -ENOMEM;
	pack->nr_rows = foot->nr_rows;
	pack->names = (const char *)pack->rows + nr_row_bytes;
	memcpy(pack->rows, pack->map + at, nr_bytes);
	if (opr_pack_sum(opr_pack_sum(0, pack->rows, nr_row_bytes), pack->names, foot->nr_name_bytes) != foot->sum ||
	    !are_sound(pack, foot->nr_name_bytes, at))
		return -EBADMSG;
	return 0;
}

static int size_of(int fd, uint64_t *ret_nr_bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct opr_pack_foot))
		return -EBADMSG;
	*ret_nr_bytes = (uint64_t)st.st_size;
	return 0;
}

int opr_pack_open(struct opr_pack *pack, int fd)
{
	struct opr_pack_foot foot;
	int err;

	*pack = (struct opr_pack){ 0 };
	err = size_of(fd, &pack->nr_bytes);
	if (!err)
		err = map_file(pack, fd);
	close(fd);
	if (err)
		goto fail;
	err = read_foot(pack, &foot);
	if (err)
		goto fail;
	err = read_rows(pack, &foot);
	if (!err && opr_pack_is_broken(pack))
		err = -EIO;
	if (err)
		goto fail;
	return 0;

fail:
	opr_pack_close(pack);
	return err;
}

const struct opr_pack_row *opr_pack_find(const struct opr_pack *pack, const char *name)
{
	size_t nr = op_nr_leading(pack->rows, pack->nr_rows, row, strcmp(pack->names + row->name, name) < 0);

	return nr < pack->nr_rows && !strcmp(pack->names + pack->rows[nr].name, name) ? &pack->rows[nr] : NULL;
}

int opr_pack_get(const struct opr_pack *pack, const struct opr_pack_row *row, const char **ret_bytes)
{
	const char *bytes = pack->map + row->at;

	if (sum_of(pack->names + row->name, bytes, row->nr_bytes) != row->sum)
		return -EBADMSG;
	*ret_bytes = bytes;
	return 0;
}

bool opr_pack_is_broken(const struct opr_pack *pack)
{
	return op_guard_is_broken(pack->guard);
}

void opr_pack_close(struct opr_pack *pack)
{
	op_guard_free(pack->guard);
	if (pack->map)
		op_sys_munmap((void *)(uintptr_t)pack->map, pack->nr_bytes + (size_t)sysconf(_SC_PAGESIZE));
	opr_pack_leave(pack);
}

void opr_pack_leave(struct opr_pack *pack)
{
	free(pack->rows);
	*pack = (struct opr_pack){ 0 };
}

/* ---- writing ---- */

void opr_pack_writer_begin(struct opr_pack_writer *writer, int fd)
{
	*writer = (struct opr_pack_writer){ .fd = fd };
}

int opr_pack_writer_add(struct opr_pack_writer *writer, const char *name, const char *bytes, size_t nr_bytes)
{
	size_t name_at = writer->names.length;
	int err;

	if (!op_grow(&writer->rows, &writer->capacity, writer->nr_rows + 1))
		return -ENOMEM;
	op_text_add_bytes(&writer->names, name, strlen(name) + 1);
	if (writer->names.failed)
		return -ENOMEM;
	if (writer->names.length > UINT32_MAX)
		return -EOVERFLOW;
	err = op_sys_write_all(writer->fd, bytes, nr_bytes);
	if (err)
		return err;
	writer->rows[writer->nr_rows++] =
		(struct opr_pack_row){ writer->at, nr_bytes, (uint32_t)name_at, sum_of(name, bytes, nr_bytes) };
	writer->at += nr_bytes;
	return 0;
}

static int compare_rows(const void *left, const void *right, void *names)
{
	const struct opr_pack_row *a = left, *b = right;
	int order = strcmp((const char *)names + a->name, (const char *)names + b->name);

	return order ? order : a->at < b->at ? -1 : a->at > b->at;
}

static void sort_rows(struct opr_pack_writer *writer)
{
	const char *names = writer->names.data;
	size_t nr_kept = 0;

	if (writer->nr_rows)
		qsort_r(writer->rows, writer->nr_rows, sizeof(*writer->rows), compare_rows, writer->names.data);
	for (size_t i = 0; i < writer->nr_rows; i++) {
		bool is_last = i + 1 == writer->nr_rows || strcmp(names + writer->rows[i].name, names + writer->rows[i + 1].name);

		if (is_last)
			writer->rows[nr_kept++] = writer->rows[i];
	}
	writer->nr_rows = nr_kept;
}

static bool has_own(const struct opr_pack_writer *writer, const char *name)
{
	const char *names = writer->names.data;
	size_t nr = op_nr_leading(writer->rows, writer->nr_own, row, strcmp(names + row->name, name) < 0);

	return nr < writer->nr_own && !strcmp(names + writer->rows[nr].name, name);
}

int opr_pack_writer_merge(struct opr_pack_writer *writer, const struct opr_pack *pack)
{
	const char *bytes;
	int err = 0;

	if (!writer->nr_own) {
		sort_rows(writer);
		writer->nr_own = writer->nr_rows;
	}
	for (size_t i = 0; i < pack->nr_rows && !err; i++) {
		const struct opr_pack_row *row = &pack->rows[i];
		const char *name = pack->names + row->name;

		if (!has_own(writer, name) && !opr_pack_get(pack, row, &bytes))
			err = opr_pack_writer_add(writer, name, bytes, row->nr_bytes);
	}
	return err;
}

static int write_end(struct opr_pack_writer *writer)
{
	struct opr_pack_foot foot = { .magic = OPR_PACK_MAGIC };
	size_t nr_row_bytes;
	int err;

	sort_rows(writer);
	nr_row_bytes = writer->nr_rows * sizeof(*writer->rows);
	foot.nr_rows = writer->nr_rows;
	foot.nr_name_bytes = writer->names.length;
	foot.sum = opr_pack_sum(opr_pack_sum(0, writer->rows, nr_row_bytes), writer->names.data, writer->names.length);
	err = op_sys_write_all(writer->fd, writer->rows, nr_row_bytes);
	if (!err)
		err = op_sys_write_all(writer->fd, writer->names.data, writer->names.length);
	return err ? err : op_sys_write_all(writer->fd, &foot, sizeof(foot));
}

int opr_pack_writer_end(struct opr_pack_writer *writer, int err)
{
	if (!err)
		err = write_end(writer);
	if (close(writer->fd) < 0 && !err)
		err = -errno;
	free(writer->rows);
	op_text_free(&writer->names);
	return err;
}
