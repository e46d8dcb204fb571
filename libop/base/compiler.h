/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attributes for prototypes, and a few helpers that every file needs. */
#ifndef OP_COMPILER_H
#define OP_COMPILER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OP_MUST_CHECK __attribute__((warn_unused_result))
#define OP_NONNULL __attribute__((nonnull))
#define OP_NONNULL_ARGS(...) __attribute__((nonnull(__VA_ARGS__)))
#define OP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define OP_UNUSED __attribute__((unused))
#define OP_NORETURN __attribute__((noreturn))

#define OP_CACHE_LINE_BYTES 64

#define op_array_size(a) (sizeof(a) / sizeof((a)[0]))
#define op_likely(x) __builtin_expect(!!(x), 1)
#define op_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * A binary search: the number of leading rows for which `condition` holds. The condition uses the
 * variable `row`, a pointer to a row, and holds for no row after the first for which it fails.
 */
#define op_nr_leading(rows, nr, row, condition)                                  \
	({                                                                       \
		size_t low_ = 0, high_ = (nr);                                   \
                                                                                 \
		while (low_ < high_) {                                           \
			size_t middle_ = low_ + (high_ - low_) / 2;              \
			const __typeof__((rows)[0]) *row = &(rows)[middle_];     \
                                                                                 \
			if (condition)                                           \
				low_ = middle_ + 1;                              \
			else                                                     \
				high_ = middle_;                                 \
		}                                                                \
		low_;                                                            \
	})

/*
 * Prefetches a line that will be written; the address need not be valid. The empty asm keeps gcc
 * from dropping a function that does nothing else.
 */
static inline void op_prefetch(const void *ptr)
{
	__builtin_prefetch(ptr, 1);
	__asm__ volatile("" : : "r"(ptr));
}

static inline uint64_t op_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t op_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Rounds up to whole cache lines. */
static inline size_t op_whole_lines(size_t nr_bytes)
{
	return (nr_bytes + OP_CACHE_LINE_BYTES - 1) / OP_CACHE_LINE_BYTES * OP_CACHE_LINE_BYTES;
}

#endif
