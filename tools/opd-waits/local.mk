# SPDX-License-Identifier: GPL-3.0-or-later
# opd starts it; people do not.
EXTRA_DIST += tools/opd-waits/README.md
if HAVE_BPF
pkglibexec_PROGRAMS += tools/opd-waits/opd-waits
tools_opd_waits_opd_waits_SOURCES = tools/opd-waits/main.c tools/opd-waits/object.c tools/opd-waits/object.h
tools_opd_waits_opd_waits_CPPFLAGS = $(AM_CPPFLAGS) $(BPF_CFLAGS)
tools_opd_waits_opd_waits_LDADD = libop/libop.a $(BPF_LIBS)
$(tools_opd_waits_opd_waits_OBJECTS): pipeline/waits/program.bpf.inc
endif
