# SPDX-License-Identifier: GPL-3.0-or-later
# Completion for bash and zsh: each tool writes its own, from the table that its command line is read with.
COMPLETED_TOOLS = opannotate oparchive opcheck opcontrol opgprof ophelp opimport opreport
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = $(COMPLETED_TOOLS:%=tools/completion/%)
nodist_zshcompletion_DATA = $(COMPLETED_TOOLS:%=tools/completion/_%)
CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA)

$(nodist_bashcompletion_DATA): tools/completion/%: tools/%
	$(AM_V_GEN)$(MKDIR_P) $(@D) && tools/$* --completion=bash >$@.new && mv $@.new $@

$(nodist_zshcompletion_DATA): tools/completion/_%: tools/%
	$(AM_V_GEN)$(MKDIR_P) $(@D) && tools/$* --completion=zsh >$@.new && mv $@.new $@
