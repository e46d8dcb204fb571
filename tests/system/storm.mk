# SPDX-License-Identifier: GPL-3.0-or-later
# Storms of short-lived processes: a driver, a small static program and a library, without the flags
# of sanitizers and of hardening.
if ENABLE_TESTS
check_PROGRAMS += tests/system/storm tests/system/storm_worker tests/system/storm_lib.so
endif

storm_cflags = -std=gnu11 -pthread -g -O1 -fno-omit-frame-pointer $(WARN_CFLAGS)

tests_system_storm_SOURCES = tests/system/storm.c tests/system/storm_touch.h
tests_system_storm_CFLAGS = $(storm_cflags)
tests_system_storm_LDFLAGS = -pthread

tests_system_storm_worker_SOURCES = tests/system/storm_worker.c tests/system/storm_touch.h
tests_system_storm_worker_CFLAGS = $(storm_cflags)
tests_system_storm_worker_LDFLAGS = -static

tests_system_storm_lib_so_SOURCES = tests/system/storm_lib.c tests/system/storm_touch.h
tests_system_storm_lib_so_CFLAGS = $(storm_cflags) -fPIC
tests_system_storm_lib_so_LDFLAGS = -shared -Wl,-z,noexecstack
