# SPDX-License-Identifier: GPL-3.0-or-later
# Of opreport alone, as it needs tools/libcode.a.
bin_opreport_SOURCES = \
	tools/page/code.c tools/page/code.h \
	tools/page/collect.c tools/page/collect.h \
	tools/page/pack.c tools/page/pack.h \
	tools/page/web.h \
	tools/page/write_page.c tools/page/write_page.h
nodist_bin_opreport_SOURCES = tools/page/web.c
page_files = $(srcdir)/tools/page/web/page.css $(srcdir)/tools/page/web/page.js \
	$(srcdir)/tools/page/web/page.html
CLEANFILES += tools/page/web.c
EXTRA_DIST += tools/page/README.md tools/page/embed.sh tools/page/minify.awk tools/page/web/page.css \
	tools/page/web/page.js tools/page/web/page.html

tools/page/web.c: $(page_files) $(srcdir)/tools/page/embed.sh $(srcdir)/tools/page/minify.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		AWK='$(AWK)' sh $(srcdir)/tools/page/embed.sh $(srcdir)/tools/page >$@.new && mv $@.new $@
