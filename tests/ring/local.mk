# SPDX-License-Identifier: GPL-3.0-or-later
# Threads on memory rings: 10^6 records for each mode in `make check`, as many as asked for in `make
# check-long`.
check_PROGRAMS += tests/ring/torture
TESTS += tests/ring/torture

tests_ring_torture_SOURCES = \
	tests/ring/torture.c tests/ring/torture.h \
	tests/ring/torture_aux.c \
	tests/ring/torture_records.c \
	tests/ring/torture_threads.c
tests_ring_torture_LDADD = libop/libop.a

# What the light store of a pair's writer rests on.
check_PROGRAMS += tests/ring/litmus
TESTS += tests/ring/litmus
tests_ring_litmus_SOURCES = tests/ring/litmus.c
tests_ring_litmus_LDADD = libop/libop.a

# For check-long in tests/local.mk.
TORTURE_RECORDS = 100000000

# Real events: driven by tests/system/test_overwrite.py.
check_PROGRAMS += tests/ring/kernel_overwrite

tests_ring_kernel_overwrite_SOURCES = \
	tests/ring/kernel_overwrite.c \
	tests/ring/overwrite_load.c tests/ring/overwrite_load.h \
	tests/ring/overwrite_seen.c tests/ring/overwrite_seen.h
tests_ring_kernel_overwrite_LDADD = libop/libop.a
