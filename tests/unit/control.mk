# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests of the control side.
check_PROGRAMS += tests/unit/test_events tests/unit/test_pfm_names tests/unit/test_file \
	tests/unit/test_config tests/unit/test_daemonrc tests/unit/test_control \
	tests/unit/test_server tests/unit/test_jobs tests/unit/test_session_close \
	tests/unit/test_service
TESTS += tests/unit/test_layers.py tests/unit/test_postrm.py tests/unit/test_build_deb.py \
	tests/unit/test_runner.py tests/unit/test_events tests/unit/test_pfm_names \
	tests/unit/test_file tests/unit/test_config tests/unit/test_daemonrc \
	tests/unit/test_control tests/unit/test_server tests/unit/test_jobs \
	tests/unit/test_session_close tests/unit/test_service

tests_unit_test_pfm_names_SOURCES = tests/unit/test_pfm_names.c tools/events/pfm_names.c \
	tools/events/pfm_names.h
tests_unit_test_pfm_names_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_pfm_names_LDADD = libop/libop.a $(PFM_LIBS) $(CMOCKA_LIBS)

tests_unit_test_events_SOURCES = tests/unit/test_events.c
tests_unit_test_events_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_events_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_events_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_perf_event_open

tests_unit_test_file_SOURCES = tests/unit/test_file.c tests/unit/test_box.h
tests_unit_test_file_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_file_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_file_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=op_sys_write_all -Wl,--wrap=op_sys_fsync \
	-Wl,--wrap=op_sys_renameat -Wl,--wrap=op_sys_open_dir_below -Wl,--wrap=op_sys_openat

tests_unit_test_config_SOURCES = tests/unit/test_config.c tests/unit/test_box.h
tests_unit_test_config_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_config_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_daemonrc_SOURCES = tests/unit/test_daemonrc.c tests/unit/test_box.h
tests_unit_test_daemonrc_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_daemonrc_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_control_SOURCES = tests/unit/test_control.c tests/unit/test_box.h
tests_unit_test_control_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_control_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_server_SOURCES = tests/unit/test_server.c tests/unit/test_box.h daemon/server.c \
	daemon/server.h
tests_unit_test_server_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_server_LDADD = libop/libop.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS)
tests_unit_test_server_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sd_event_add_time_relative \
	-Wl,--wrap=sd_event_source_set_time_relative -Wl,--wrap=getgrnam

tests_unit_test_jobs_SOURCES = tests/unit/test_jobs.c daemon/jobs/queue.c daemon/jobs/queue.h
tests_unit_test_jobs_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_jobs_LDADD = libop/libop.a $(CMOCKA_LIBS)

tests_unit_test_session_close_SOURCES = tests/unit/test_session_close.c tests/unit/test_box.h \
	tests/unit/sample_writer.h
tests_unit_test_session_close_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_session_close_LDADD = libop/libop.a $(CMOCKA_LIBS)
tests_unit_test_session_close_LDFLAGS = $(AM_LDFLAGS) -pthread

EXTRA_DIST += tests/system/test_opcontrol.py tests/unit/test_postrm.py tests/unit/test_build_deb.py tests/unit/test_runner.py

tests_unit_test_service_SOURCES = tests/unit/test_service.c
tests_unit_test_service_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_test_service_LDADD = daemon/libopd.a daemon/libpipeline.a libop/libop.a $(CMOCKA_LIBS) \
	$(SYSTEMD_LIBS)
