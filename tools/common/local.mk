# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/common/archive.c tools/common/archive.h \
	tools/common/cache_dir.c tools/common/cache_dir.h \
	tools/common/child.c tools/common/child.h \
	tools/common/completion.c tools/common/completion.h \
	tools/common/formatting.c tools/common/formatting.h \
	tools/common/log.c tools/common/log.h \
	tools/common/option_table.c tools/common/option_table.h \
	tools/common/option_values.c tools/common/option_values.h \
	tools/common/output.c tools/common/output.h \
	tools/common/packages.c tools/common/packages.h \
	tools/common/parallel_sort.c tools/common/parallel_sort.h \
	tools/common/program.c tools/common/program.h \
	tools/common/session_dir.c tools/common/session_dir.h \
	tools/common/when.c tools/common/when.h \
	tools/common/words.c tools/common/words.h
EXTRA_DIST += tools/common/README.md
