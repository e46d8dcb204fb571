# SPDX-License-Identifier: GPL-3.0-or-later
# The IBS decoder: unit tests, and what the system test compares with perf and with the predicates.
ibs_unit_tests = tests/unit/test_ibs tests/unit/test_ibs_events tests/unit/test_ibs_request \
	tests/unit/test_ibs_pipeline tests/unit/test_memory_limit
check_PROGRAMS += $(ibs_unit_tests) tests/ibs/ibs_dump
TESTS += $(ibs_unit_tests)
EXTRA_DIST += tests/ibs/ibsdata.py tests/ibs/ibswork.py tests/ibs/predicates.py \
	tests/ibs/vectors.jsonl tests/system/test_ibs.py tests/system/test_ibs_import.py \
	tests/system/test_ibs_live.py

# Records of check-long.
IBS_RECORDS = 1000000

ibs_text = tests/ibs/ibs_text.c tests/ibs/ibs_text.h tests/ibs/data_src.c

tests_ibs_ibs_dump_SOURCES = tests/ibs/ibs_dump.c $(ibs_text)
tests_ibs_ibs_dump_LDADD = libop/libop.a

tests_unit_test_ibs_SOURCES = tests/unit/test_ibs.c $(ibs_text) tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h
tests_unit_test_ibs_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ibs_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ibs_events_SOURCES = tests/unit/test_ibs_events.c tests/unit/cmocka_all.h
tests_unit_test_ibs_events_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ibs_events_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ibs_request_SOURCES = tests/unit/test_ibs_request.c tests/unit/cmocka_all.h
tests_unit_test_ibs_request_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ibs_request_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_ibs_pipeline_SOURCES = tests/unit/test_ibs_pipeline.c tests/unit/cmocka_all.h \
	tests/unit/memory_ring.h tests/unit/pipeline.h
tests_unit_test_ibs_pipeline_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_ibs_pipeline_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_memory_limit_SOURCES = tests/unit/test_memory_limit.c tests/unit/cmocka_all.h \
	tests/unit/pipeline.h
tests_unit_test_memory_limit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_memory_limit_LDADD = daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS)

# opd and opcontrol on a host with the IBS of a Zen 4, and a CPU that a test feeds.
check_PROGRAMS += tests/system/fed_opd tests/system/fed_opcontrol
ibs_host_wraps = -Wl,--wrap=op_ibs_host_read -Wl,--wrap=op_sys_perf_event_open

tests_system_fed_opd_SOURCES = tests/system/fed_opd.c tests/system/ibs_host.c
tests_system_fed_opd_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_system_fed_opd_LDFLAGS = $(AM_LDFLAGS) $(ibs_host_wraps) -Wl,--wrap=opd_capture_open
tests_system_fed_opd_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(SYSTEMD_LIBS) \
	$(POPT_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)

tests_system_fed_opcontrol_SOURCES = $(bin_opcontrol_SOURCES) tests/system/ibs_host.c
tests_system_fed_opcontrol_CPPFLAGS = $(bin_opcontrol_CPPFLAGS)
tests_system_fed_opcontrol_LDFLAGS = $(AM_LDFLAGS) $(ibs_host_wraps)
tests_system_fed_opcontrol_LDADD = $(bin_opcontrol_LDADD)
