# SPDX-License-Identifier: GPL-3.0-or-later
# The tools, one room each, and what they share in rooms of its own.
noinst_LIBRARIES += tools/libreport.a
tools_libreport_a_SOURCES =
include $(srcdir)/tools/common/local.mk
include $(srcdir)/tools/events/local.mk
include $(srcdir)/tools/elf/local.mk
include $(srcdir)/tools/fetch/local.mk
include $(srcdir)/tools/profile/local.mk
include $(srcdir)/tools/symbols/local.mk
include $(srcdir)/tools/report/local.mk
include $(srcdir)/tools/stacks/local.mk
include $(srcdir)/tools/export/local.mk
include $(srcdir)/tools/page/local.mk
include $(srcdir)/tools/code/local.mk
include $(srcdir)/tools/opreport/local.mk
include $(srcdir)/tools/opannotate/local.mk
include $(srcdir)/tools/oparchive/local.mk
include $(srcdir)/tools/opcheck/local.mk
include $(srcdir)/tools/opcontrol/local.mk
include $(srcdir)/tools/opgprof/local.mk
include $(srcdir)/tools/ocount/local.mk
include $(srcdir)/tools/operf/local.mk
include $(srcdir)/tools/ophelp/local.mk
include $(srcdir)/tools/opimport/local.mk
include $(srcdir)/tools/opd-tables/local.mk
include $(srcdir)/tools/opd-events/local.mk
include $(srcdir)/tools/opd-waits/local.mk
include $(srcdir)/tools/optop/local.mk

# Completion for bash and zsh. Each tool writes its own from its table of options.
COMPLETED_TOOLS = ocount opannotate oparchive opcheck opcontrol operf opgprof ophelp opimport opreport
if HAVE_NCURSES
COMPLETED_TOOLS += optop
endif
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = $(COMPLETED_TOOLS:%=bin/completion/%)
nodist_zshcompletion_DATA = $(COMPLETED_TOOLS:%=bin/completion/_%)
CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA)

$(nodist_bashcompletion_DATA): bin/completion/%: bin/%
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(RUN_BUILT) bin/$* --completion=bash >$@.new && mv $@.new $@

$(nodist_zshcompletion_DATA): bin/completion/_%: bin/%
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(RUN_BUILT) bin/$* --completion=zsh >$@.new && mv $@.new $@
