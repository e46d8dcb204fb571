# SPDX-License-Identifier: GPL-3.0-or-later
# libop: what daemon and tools share, a room a fragment.
noinst_LIBRARIES += libop/libop.a
libop_libop_a_SOURCES =
include $(srcdir)/libop/base/local.mk
include $(srcdir)/libop/process/local.mk
include $(srcdir)/libop/ring/local.mk
include $(srcdir)/libop/perf/local.mk
include $(srcdir)/libop/events/local.mk
include $(srcdir)/libop/odb/local.mk
include $(srcdir)/libop/session/local.mk
include $(srcdir)/libop/control/local.mk
include $(srcdir)/libop/unwind/local.mk
include $(srcdir)/libop/stacks/local.mk
include $(srcdir)/libop/timeline/local.mk
