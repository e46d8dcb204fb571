# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/stacks/arrange.c tools/stacks/arrange.h \
	tools/stacks/call_tree.c tools/stacks/call_tree.h \
	tools/stacks/contexts.c tools/stacks/contexts.h \
	tools/stacks/count_stacks.c tools/stacks/count_stacks.h \
	tools/stacks/idle.c tools/stacks/idle.h \
	tools/stacks/inclusive.c tools/stacks/inclusive.h \
	tools/stacks/leaf_rows.c tools/stacks/leaf_rows.h \
	tools/stacks/read_stacks.c tools/stacks/read_stacks.h \
	tools/stacks/select_stacks.c tools/stacks/select_stacks.h \
	tools/stacks/short_images.c tools/stacks/short_images.h \
	tools/stacks/stores.c tools/stacks/stores.h \
	tools/stacks/view.c tools/stacks/view.h \
	tools/stacks/wait_list.c tools/stacks/wait_list.h \
	tools/stacks/write_stacks.c tools/stacks/write_stacks.h
EXTRA_DIST += tools/stacks/README.md
