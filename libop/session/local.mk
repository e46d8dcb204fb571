# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/session/layout.h \
	libop/session/directory.c libop/session/directory.h \
	libop/session/walk.c libop/session/walk.h \
	libop/session/list.c libop/session/list.h \
	libop/session/pack.c libop/session/pack.h \
	libop/session/pack_all.c libop/session/pack_all.h \
	libop/session/contents.c libop/session/contents.h \
	libop/session/close.c libop/session/close.h \
	libop/session/leftovers.c libop/session/leftovers.h \
	libop/session/dcookie.h \
	libop/session/dcookie_table.c libop/session/dcookie_table.h \
	libop/session/dcookie_file.c \
	libop/session/dcookie_name.c \
	libop/session/dcookie_seen.c \
	libop/session/ledger.c libop/session/ledger.h \
	libop/session/ledger_file.c libop/session/ledger_file.h \
	libop/session/sum.c libop/session/sum.h \
	libop/session/part.h \
	libop/session/parts.c libop/session/parts.h \
	libop/session/stack_part.c libop/session/stack_part.h \
	libop/session/stack_ends.c libop/session/stack_ends.h \
	libop/session/wait_states.c libop/session/wait_states.h \
	libop/session/timeline_part.c libop/session/timeline_part.h \
	libop/session/stats_files.c libop/session/stats_files.h \
	libop/session/memory_view.c libop/session/memory_view.h
EXTRA_DIST += libop/session/README.md
