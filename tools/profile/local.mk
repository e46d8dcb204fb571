# SPDX-License-Identifier: GPL-3.0-or-later
tools_libreport_a_SOURCES += \
	tools/profile/archive_sums.c tools/profile/archive_sums.h \
	tools/profile/archives.c tools/profile/archives.h \
	tools/profile/before.c tools/profile/before.h \
	tools/profile/classes.c tools/profile/classes.h \
	tools/profile/container_name.c tools/profile/container_name.h \
	tools/profile/docker_name.c tools/profile/docker_name.h \
	tools/profile/groups.c tools/profile/groups.h \
	tools/profile/image_list.c tools/profile/image_list.h \
	tools/profile/image_name.c tools/profile/image_name.h \
	tools/profile/losses.c tools/profile/losses.h \
	tools/profile/open_sessions.c tools/profile/open_sessions.h \
	tools/profile/profile.c tools/profile/profile.h \
	tools/profile/query.h \
	tools/profile/read_samples.c tools/profile/read_samples.h \
	tools/profile/recorded.c tools/profile/recorded.h \
	tools/profile/select_files.c tools/profile/select_files.h \
	tools/profile/selection.c tools/profile/selection.h \
	tools/profile/session_hint.c tools/profile/session_hint.h \
	tools/profile/session_read.c tools/profile/session_read.h \
	tools/profile/session_span.c tools/profile/session_span.h \
	tools/profile/spans.c tools/profile/spans.h \
	tools/profile/spec.c tools/profile/spec.h \
	tools/profile/window.c tools/profile/window.h
EXTRA_DIST += tools/profile/README.md
