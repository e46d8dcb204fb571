# SPDX-License-Identifier: GPL-3.0-or-later
EXTRA_DIST += scripts/lib.sh scripts/test scripts/demo scripts/demo-work.sh \
	scripts/demo-program.c scripts/demo-service.py scripts/checks.sh scripts/machines scripts/foreign .ci/run \
	tests/hardware/check
