/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/seal.h"

#include <endian.h>
#include <errno.h>
#include <sys/stat.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define MAGIC       "opd-seal"
#define BLOCK_WORDS 8192

struct seal {
	char magic[8];
	uint64_t sum; /* little-endian */
};

static_assert(sizeof(struct seal) == 16, "as format.md says");

/* Odd, so that every word but zero has an effect; irregular, so that swapped words have one. */
static uint64_t weight(uint64_t index)
{
	uint64_t value = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (value ^ value >> 31) | 1;
}

/*
 * The sum of the first nr_bytes as little-endian words of 8 bytes, the last one filled up with
 * zeros.
 */
static int sum_up(int fd, uint64_t nr_bytes, uint64_t *ret_sum)
{
	uint64_t block[BLOCK_WORDS], sum = nr_bytes * weight(UINT64_MAX - 1);

	for (uint64_t at = 0; at < nr_bytes; at += sizeof(block)) {
		size_t wanted = op_min_u64(sizeof(block), nr_bytes - at), nr_read = 0;
		int err = op_file_read_at(fd, block, wanted, (off_t)at, &nr_read);

		if (err)
			return err;
		if (nr_read != wanted)
			return -EBADMSG;
		memset((char *)block + wanted, 0, sizeof(block) - wanted);
		for (size_t i = 0; 8 * i < wanted; i++)
			sum += le64toh(block[i]) * weight(at / 8 + i);
	}
	*ret_sum = htole64(sum);
	return 0;
}

uint64_t op_seal_sum(const void *bytes, size_t nr_bytes)
{
	uint64_t sum = nr_bytes * weight(UINT64_MAX - 1);

	for (size_t at = 0; at < nr_bytes; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, (const char *)bytes + at, op_min_u64(sizeof(word), nr_bytes - at));
		sum += le64toh(word) * weight(at / sizeof(word));
	}
	return sum;
}

int op_seal_append(int fd)
{
	struct seal seal = { .magic = MAGIC };
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = sum_up(fd, (uint64_t)st.st_size, &seal.sum);
	return err ? err : op_sys_pwrite_all(fd, &seal, sizeof(seal), st.st_size);
}

/* 0; -EBADMSG: there is none; another -errno. */
static int read_seal(int fd, struct seal *ret_seal, uint64_t *ret_sealed_bytes)
{
	struct stat st;
	size_t nr_read = 0;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	if (st.st_size < (off_t)sizeof(*ret_seal))
		return -EBADMSG;
	*ret_sealed_bytes = (uint64_t)st.st_size - sizeof(*ret_seal);
	err = op_file_read_at(fd, ret_seal, sizeof(*ret_seal), (off_t)*ret_sealed_bytes, &nr_read);
	if (err)
		return err;
	return nr_read == sizeof(*ret_seal) && !memcmp(ret_seal->magic, MAGIC, sizeof(ret_seal->magic)) ? 0 : -EBADMSG;
}

int op_seal_check(int fd)
{
	struct seal seal;
	uint64_t sealed_bytes, sum;
	int err = read_seal(fd, &seal, &sealed_bytes);

	if (!err)
		err = sum_up(fd, sealed_bytes, &sum);
	return err ? err : sum == seal.sum ? 0 : -EBADMSG;
}

bool op_seal_is_there(int fd)
{
	struct seal seal;
	uint64_t sealed_bytes;

	return !read_seal(fd, &seal, &sealed_bytes);
}
