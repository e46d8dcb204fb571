# SPDX-License-Identifier: GPL-3.0-or-later
# The swap of the memory pair, proved with spin in `make check`, where it is installed.
EXTRA_DIST += tests/model/ring_pair.pml tests/model/run.sh
if ENABLE_TESTS
TESTS += tests/model/run.sh
endif

.PHONY: check-model
check-model:
	$(srcdir)/tests/model/run.sh
