# SPDX-License-Identifier: GPL-3.0-or-later
# The swap of the memory pair, proved with spin.
EXTRA_DIST += tests/model/ring_pair.pml tests/model/run.sh

.PHONY: check-model
check-model:
	$(srcdir)/tests/model/run.sh
