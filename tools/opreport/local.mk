# SPDX-License-Identifier: GPL-3.0-or-later
bin_PROGRAMS += bin/opreport
bin_opreport_SOURCES += \
	tools/opreport/main.c \
	tools/opreport/notes.c tools/opreport/notes.h \
	tools/opreport/over_time.c tools/opreport/over_time.h tools/opreport/over_time_waits.c \
	tools/opreport/over_time_write.c \
	tools/opreport/explain.c tools/opreport/explain.h tools/opreport/explain_text.c \
	tools/opreport/runtimes.c tools/opreport/runtimes.h \
	tools/opreport/waits.c tools/opreport/waits.h tools/opreport/waits_change.c \
	tools/opreport/options.c tools/opreport/options.h
bin_opreport_LDADD = tools/libcode.a tools/libreport.a libop/libop.a $(OPCODES_LIBS) $(MD_LIBS) $(POPT_LIBS) \
	$(BFD_LIBS) $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) $(MODULE_LIBS) -lm

dist_man_MANS += doc/opreport.1
EXTRA_DIST += tools/opreport/README.md
