# SPDX-License-Identifier: GPL-3.0-or-later
# The program in the kernel is built where clang and libbpf are; the rest is always there.
pipeline_libpipeline_a_SOURCES += \
	pipeline/waits/deep.c pipeline/waits/deep.h \
	pipeline/waits/loading.h \
	pipeline/waits/open.c pipeline/waits/open.h \
	pipeline/waits/program.c pipeline/waits/program.h \
	pipeline/waits/shared.h \
	pipeline/waits/source.c pipeline/waits/source.h
EXTRA_DIST += pipeline/waits/README.md pipeline/waits/kernel.bpf.h pipeline/waits/program.bpf.c
if HAVE_BPF
CLEANFILES += pipeline/waits/program.bpf.o pipeline/waits/program.bpf.inc
# The include directories of this machine's C library: clang does not look there for BPF.
pipeline/waits/program.bpf.o: $(srcdir)/pipeline/waits/program.bpf.c $(srcdir)/pipeline/waits/kernel.bpf.h \
		$(srcdir)/pipeline/waits/shared.h \
		$(srcdir)/pipeline/drive/note_record.h $(srcdir)/libop/stacks/runtimes.h $(srcdir)/pipeline/runtimes/shared.h \
		$(wildcard $(srcdir)/pipeline/runtimes/*.bpf.h)
	$(AM_V_GEN)$(MKDIR_P) pipeline/waits && $(CLANG) -O2 -g -Wall -Werror -target bpf -mcpu=v3 $(BPF_CPPFLAGS) \
		-fdebug-prefix-map=$(abs_srcdir)=. -I$(srcdir) -c $(srcdir)/pipeline/waits/program.bpf.c -o $@
pipeline/waits/program.bpf.inc: pipeline/waits/program.bpf.o
	$(AM_V_GEN)od -An -v -t u1 pipeline/waits/program.bpf.o | sed 's/  */,/g;s/^,//;s/$$/,/' >$@
endif
