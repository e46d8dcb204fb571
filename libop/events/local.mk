# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/events/event.c libop/events/event.h \
	libop/events/event_def.h \
	libop/events/event_ibs.c libop/events/event_ibs.h \
	libop/events/event_list.c libop/events/event_list.h \
	libop/events/event_request.h \
	libop/events/host_cpu.c libop/events/host_cpu.h \
	libop/events/ibs.c libop/events/ibs.h \
	libop/events/ibs_cpu.c libop/events/ibs_cpu.h \
	libop/events/ibs_derived.c libop/events/ibs_derived.h \
	libop/events/ibs_fields.h \
	libop/events/ibs_host.c libop/events/ibs_host.h \
	libop/events/ibs_meaning.c libop/events/ibs_meaning.h \
	libop/events/ibs_request.c libop/events/ibs_request.h \
	libop/events/ibs_decoded.h \
	libop/events/tracepoint.c libop/events/tracepoint.h
EXTRA_DIST += libop/events/README.md
