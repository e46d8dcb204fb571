/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All atomic operations of opd. Every use carries a letter that names the ordering point and its partner (doc/ring.md).
 * They work on plain integers, since the control page and the sample files are shared with the kernel and with other programs.
 */
#ifndef OP_ATOMIC_H
#define OP_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* Reads; what follows in program order is not done before. */
#define op_load_acquire(ptr) __atomic_load_n((ptr), __ATOMIC_ACQUIRE)

/* Writes; what stands before in program order is done before. */
#define op_store_release(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELEASE)

/* Whole accesses, without an order. */
#define op_load_relaxed(ptr) __atomic_load_n((ptr), __ATOMIC_RELAXED)
#define op_store_relaxed(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELAXED)

/* Adds, and gives what was there before; without an order. */
#define op_fetch_add_relaxed(ptr, value) __atomic_fetch_add((ptr), (value), __ATOMIC_RELAXED)

/*
 * Store-then-load: a load of this kind that follows a store of this kind in program order is not done before that store is
 * seen by everyone. All accesses of such a shape, on both sides, are of this kind. The load acquires, the store releases as
 * well. The fence is part of the accesses and not a call of its own because ThreadSanitizer knows accesses only.
 */
#define op_store_fence(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_SEQ_CST)
#define op_load_fence(ptr) __atomic_load_n((ptr), __ATOMIC_SEQ_CST)

/*
 * Store-then-load without a fence, for the side that does it often, when the other side puts membarrier(2) between its store and
 * its load: the kernel then makes every thread of the process pass a full fence, wherever it is, and the
 * compiler's order is all that is needed here. The store releases, the load is op_load_acquire. ThreadSanitizer knows accesses
 * only: in its builds both sides fence.
 */
#define op_store_light(ptr, value)                                                                                                 \
	do {                                                                                                                       \
		op_store_release(ptr, value);                                                                                      \
		op_compiler_fence();                                                                                               \
	} while (0)
#if defined(__SANITIZE_THREAD__)
#define OP_HAVE_LIGHT_STORE false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OP_HAVE_LIGHT_STORE false
#endif
#endif
#ifndef OP_HAVE_LIGHT_STORE
#define OP_HAVE_LIGHT_STORE true
#endif

/* The compiler keeps the accesses before and after in order. Enough where the other party looks only when this one has stopped. */
#define op_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Makes `value` of 0, with acquire; false when it was not 0. Undone with op_store_release of 0. */
static inline bool op_claim(uint32_t *word, uint32_t value)
{
	uint32_t expected = 0;

	return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Makes `value` of 0 unless somebody was first; no order. */
static inline void op_claim_u64(uint64_t *word, uint64_t value)
{
	uint64_t expected = 0;

	__atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Makes 0 of `value`, with release; another value stays. For who speaks in the place of the one that claimed. */
static inline void op_unclaim(uint32_t *word, uint32_t value)
{
	__atomic_compare_exchange_n(word, &value, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

#endif
