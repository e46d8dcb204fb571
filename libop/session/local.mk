# SPDX-License-Identifier: GPL-3.0-or-later
libop_libop_a_SOURCES += \
	libop/session/layout.h \
	libop/session/directory.c libop/session/directory.h \
	libop/session/walk.c libop/session/walk.h \
	libop/session/list.c libop/session/list.h \
	libop/session/contents.c libop/session/contents.h \
	libop/session/close.c libop/session/close.h \
	libop/session/damaged.c libop/session/damaged.h \
	libop/session/import_dir.c libop/session/import_dir.h \
	libop/session/dcookie.h \
	libop/session/dcookie_table.c libop/session/dcookie_table.h \
	libop/session/dcookie_file.c \
	libop/session/dcookie_name.c \
	libop/session/dcookie_seen.c \
	libop/session/ledger.c libop/session/ledger.h \
	libop/session/ledger_file.c libop/session/ledger_file.h \
	libop/session/sum.c libop/session/sum.h \
	libop/session/stats_files.c libop/session/stats_files.h \
	libop/session/memory_view.c libop/session/memory_view.h \
	libop/session/jit_object_check.c libop/session/jit_object_check.h \
	libop/session/pending.c libop/session/pending.h
EXTRA_DIST += libop/session/README.md
