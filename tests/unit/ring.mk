# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests of the memory ring, and of the kernel pair in overwrite mode.
ring_unit_tests = \
	tests/unit/test_ring_aux \
	tests/unit/test_ring_barrier \
	tests/unit/test_ring_differential \
	tests/unit/test_ring_hostile \
	tests/unit/test_ring_killed \
	tests/unit/test_ring_killed_aux \
	tests/unit/test_ring_loss \
	tests/unit/test_ring_memory \
	tests/unit/test_ring_memory_pair \
	tests/unit/test_ring_pair \
	tests/unit/test_ring_wake_fd
check_PROGRAMS += $(ring_unit_tests)
TESTS += $(ring_unit_tests)

tests_unit_test_ring_memory_SOURCES = tests/unit/test_ring_memory.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_memory_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_memory_pair_SOURCES = tests/unit/test_ring_memory_pair.c \
	tests/unit/cmocka_all.h tests/unit/memory_ring.h
tests_unit_test_ring_memory_pair_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_memory_pair_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_ring_memory_pair_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_membarrier \
	-Wl,--wrap=op_sys_write

tests_unit_test_ring_aux_SOURCES = tests/unit/test_ring_aux.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_aux_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_aux_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_barrier_SOURCES = tests/unit/test_ring_barrier.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_barrier_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_barrier_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_ring_barrier_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_membarrier

tests_unit_test_ring_hostile_SOURCES = tests/unit/test_ring_hostile.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_hostile_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_hostile_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_ring_hostile_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc

tests_unit_test_ring_killed_SOURCES = tests/unit/test_ring_killed.c tests/unit/cmocka_all.h \
	tests/unit/stepped.h
tests_unit_test_ring_killed_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_killed_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_killed_aux_SOURCES = tests/unit/test_ring_killed_aux.c \
	tests/unit/cmocka_all.h tests/unit/memory_ring.h tests/unit/stepped.h
tests_unit_test_ring_killed_aux_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_killed_aux_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_pair_SOURCES = tests/unit/test_ring_pair.c tests/unit/cmocka_all.h
tests_unit_test_ring_pair_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_pair_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_perf_event_open \
	-Wl,--wrap=op_sys_ioctl -Wl,--wrap=op_sys_mmap
tests_unit_test_ring_pair_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_wake_fd_SOURCES = tests/unit/test_ring_wake_fd.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ring_wake_fd_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_wake_fd_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_ring_wake_fd_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=preadv2 -Wl,--wrap=preadv64v2

tests_unit_test_ring_loss_SOURCES = tests/unit/test_ring_loss.c tests/unit/cmocka_all.h \
	tests/unit/kernel_events.h
tests_unit_test_ring_loss_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_loss_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ring_differential_SOURCES = tests/unit/test_ring_differential.c \
	tests/unit/cmocka_all.h tests/unit/kernel_events.h tests/unit/memory_ring.h \
	tests/unit/record_text.h
tests_unit_test_ring_differential_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_differential_LDADD = libop/libop.a $(CMOCKA_LIBS)
