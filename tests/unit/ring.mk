# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests of the memory ring.
ring_unit_tests = \
	tests/unit/test_ring_memory
check_PROGRAMS += $(ring_unit_tests)
TESTS += $(ring_unit_tests)

tests_unit_test_ring_memory_SOURCES = tests/unit/test_ring_memory.c tests/unit/cmocka_all.h
tests_unit_test_ring_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_memory_LDADD = libop/libop.a $(CMOCKA_LIBS)
