# SPDX-License-Identifier: GPL-3.0-or-later
# From the rings to the sample files: opd, operf, ocount and opimport link it. It uses libop alone.
noinst_LIBRARIES += pipeline/libpipeline.a
pipeline_libpipeline_a_SOURCES =
include $(srcdir)/pipeline/capture/local.mk
include $(srcdir)/pipeline/files/local.mk
include $(srcdir)/pipeline/readers/local.mk
include $(srcdir)/pipeline/resolve/local.mk
include $(srcdir)/pipeline/jit/local.mk
include $(srcdir)/pipeline/runtimes/local.mk
include $(srcdir)/pipeline/stacks/local.mk
include $(srcdir)/pipeline/count/local.mk
include $(srcdir)/pipeline/ledger/local.mk
include $(srcdir)/pipeline/timeline/local.mk
include $(srcdir)/pipeline/waits/local.mk
include $(srcdir)/pipeline/drive/local.mk
EXTRA_DIST += pipeline/README.md
