/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All atomic operations of opd. Every use has a letter that names the ordering point and its
 * partner (doc/ring.md). The operands are plain integers, because the kernel and other programs
 * share the control page and the sample files.
 */
#ifndef OP_ATOMIC_H
#define OP_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* Loads; later accesses in program order are not done before it. */
#define op_load_acquire(ptr) __atomic_load_n((ptr), __ATOMIC_ACQUIRE)

/* Stores; earlier accesses in program order are done before it. */
#define op_store_release(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELEASE)

/* Accesses in one piece, without an order. */
#define op_load_relaxed(ptr) __atomic_load_n((ptr), __ATOMIC_RELAXED)
#define op_store_relaxed(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELAXED)

/* Adds and returns the old value; without an order. */
#define op_fetch_add_relaxed(ptr, value) __atomic_fetch_add((ptr), (value), __ATOMIC_RELAXED)

/*
 * Store-then-load: a load of this kind is not done before an earlier store of this kind, in program
 * order, is seen by every thread. Both sides use this kind for all accesses of the pattern. The
 * load also acquires and the store also releases. The fence is a part of the accesses, not a call
 * of its own, because ThreadSanitizer understands only accesses.
 */
#define op_store_fence(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_SEQ_CST)
#define op_load_fence(ptr) __atomic_load_n((ptr), __ATOMIC_SEQ_CST)

/*
 * Store-then-load without a fence, for the side that does it often. The other side calls
 * membarrier(2) between its store and its load: the kernel then makes every thread of the process
 * pass a full fence, wherever it is, so here only the order of the compiler is needed. The store
 * releases, the load is op_load_acquire. In builds for ThreadSanitizer, which understands only
 * accesses, both sides fence.
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

/*
 * Orders accesses for the compiler only. That is enough where the other side looks only when this
 * one has stopped.
 */
#define op_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Changes 0 to `value`, with acquire; false when it was not 0. To undo: op_store_release of 0. */
static inline bool op_claim(uint32_t *word, uint32_t value)
{
	uint32_t expected = 0;

	return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Changes 0 to `value`; does nothing when it was not 0. Without an order. */
static inline void op_claim_u64(uint64_t *word, uint64_t value)
{
	uint64_t expected = 0;

	__atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Changes `value` to 0, with release; another value stays. For acting on behalf of the claimer. */
static inline void op_unclaim(uint32_t *word, uint32_t value)
{
	__atomic_compare_exchange_n(word, &value, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

#endif
