# SPDX-License-Identifier: GPL-3.0-or-later
EXTRA_DIST += tests/machines/README.md tests/machines/boot.sh tests/machines/guest.sh tests/machines/images.sh \
	tests/machines/chain.py tests/machines/many_cpus.py \
	tests/machines/across.py tests/machines/recording.py tests/machines/pmu.py tests/machines/core.py tests/machines/stacks.py \
	tests/machines/signals.c

# Other kernels and more CPUs, under emulation; MACHINES="NAME...": only these. It builds opd anew,
# as a package would.
.PHONY: check-machines
check-machines:
	$(srcdir)/scripts/machines $(MACHINES) || test $$? -eq 77

# Other architectures: unit tests, and what each reads of the others; FOREIGN="ARCH...": only these.
.PHONY: check-foreign
check-foreign:
	$(srcdir)/scripts/foreign $(FOREIGN) || test $$? -eq 77
