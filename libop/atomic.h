/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All atomic operations of opd. Every use carries a letter that names the ordering point and its partner (doc/ring.md).
 * They work on plain integers, since the control page and the sample files are shared with the kernel and with other programs.
 */
#ifndef OP_ATOMIC_H
#define OP_ATOMIC_H

/* Reads; what follows in program order is not done before. */
#define op_load_acquire(ptr) __atomic_load_n((ptr), __ATOMIC_ACQUIRE)

/* Writes; what stands before in program order is done before. */
#define op_store_release(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELEASE)

/* Whole accesses, without an order. */
#define op_load_relaxed(ptr) __atomic_load_n((ptr), __ATOMIC_RELAXED)
#define op_store_relaxed(ptr, value) __atomic_store_n((ptr), (value), __ATOMIC_RELAXED)

#endif
