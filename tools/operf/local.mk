# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/operf
bin_operf_SOURCES = \
	tools/events/pfm_names.c tools/events/pfm_names.h \
	tools/events/user_events.c tools/events/user_events.h \
	tools/operf/attach.c tools/operf/attach.h \
	tools/operf/events.c tools/operf/events.h \
	tools/operf/main.c \
	tools/operf/options.c tools/operf/options.h \
	tools/operf/profile.c tools/operf/profile.h \
	tools/operf/session.c tools/operf/session.h
bin_operf_LDADD = tools/libreport.a pipeline/libpipeline.a libop/libop.a $(ZSTD_LIBS) $(PFM_LIBS) $(POPT_LIBS)

dist_man_MANS += doc/operf.1
EXTRA_DIST += tools/operf/README.md
