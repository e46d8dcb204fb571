# SPDX-License-Identifier: GPL-3.0-or-later
# The tools, one program each; tools/common.* is what they share.
include $(srcdir)/tools/opcontrol.mk
include $(srcdir)/tools/opreport.mk
include $(srcdir)/tools/opannotate.mk
include $(srcdir)/tools/oparchive.mk
include $(srcdir)/tools/opgprof.mk
include $(srcdir)/tools/ophelp.mk
include $(srcdir)/tools/opcheck.mk
include $(srcdir)/tools/opimport.mk
include $(srcdir)/tools/completion.mk
