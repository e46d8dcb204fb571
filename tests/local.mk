# SPDX-License-Identifier: GPL-3.0-or-later
# What make does with tests and benchmarks; their programs are in programs.mk.
if ENABLE_TESTS
-include $(srcdir)/tests/programs.mk
endif

# In a build from a clone these have all files.
EXTRA_DIST += tests/fuzz/corpus tests/golden $(foreach suffix,.c .h .jsonl .lds .md .mk .pml .proto .py .sh .txt, \
	$(wildcard $(srcdir)/tests/*$(suffix) $(srcdir)/tests/*/*$(suffix)))

# Symbols are read anew.
AM_TESTS_ENVIRONMENT = OPD_CACHE_DIR=; export OPD_CACHE_DIR;

LONG_KILLS = 500
BAD_IMAGES = 10000
INLINE_ADDRESSES = 10000
MUTANTS = 10000
LONG_CUTS = 30
LONG_PACKS = 100
LONG_FILES = 20000
LONG_CYCLES = 1000
LONG_REQUESTS = 100000
TORTURE_RECORDS = 100000000
IBS_RECORDS = 1000000
OPD_TEST_ENV = OPD_BUILD=$(abs_top_builddir) OPD_SOURCE=$(abs_top_srcdir)

.PHONY: check-programs check-system check-user check-unit check-long check-machines check-foreign check-model

# The real daemon on real perf events: as root.
check-system: all check-programs
	@for t in $(srcdir)/tests/system/test_*.py; do \
		echo "== $$t"; env $(OPD_TEST_ENV) python3 $$t; rc=$$?; \
		test $$rc -eq 0 || test $$rc -eq 77 || exit 1; done

# The same by an opd that is a user of its own, with the capabilities of the unit.
check-user:
	$(MAKE) OPD_TEST_ENV="$(OPD_TEST_ENV) OPD_RUN_AS=user" check-system

# The same inside the sandbox of the unit, in a container that systemd has booted; UNIT_FLAGS=WORD:
# only tests with this in their names.
check-unit: all check-programs
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/systemd/long_unit.py $(UNIT_FLAGS) || test $$? -eq 77

check-long: all check-programs
	$(srcdir)/scripts/test --long
	tests/ring/torture --records=$(TORTURE_RECORDS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_fault_kill.py $(LONG_KILLS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_fault_rotate.py $(LONG_CUTS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_fault_pack.py $(LONG_PACKS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_many_files.py $(LONG_FILES)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_ibs.py --records=$(IBS_RECORDS) || test $$? -eq 77
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_storm.py --long
	srcdir=$(srcdir) python3 $(srcdir)/tests/unit/test_bad_images.py $(BAD_IMAGES)
	srcdir=$(srcdir) python3 $(srcdir)/tests/unit/test_inline.py $(INLINE_ADDRESSES)
	python3 $(srcdir)/tests/unit/test_row_tables.py $(MUTANTS)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_limits.py --long
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_cgroup_storm.py --long || test $$? -eq 77
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_socket.py --requests=$(LONG_REQUESTS) --cycles=$(LONG_CYCLES)
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/test_turns.py --long || test $$? -eq 77
	$(MAKE) check-user
	$(MAKE) check-unit
	$(MAKE) check-machines
	$(MAKE) check-foreign
	env $(OPD_TEST_ENV) python3 $(srcdir)/tests/system/long_soak.py $(LONG_FLAGS)

# Other kernels and more CPUs, under emulation; MACHINES="NAME...": only these. It builds opd anew,
# as a package would.
check-machines:
	$(srcdir)/scripts/machines $(MACHINES) || test $$? -eq 77

# Other architectures: unit tests, and what each reads of the others; FOREIGN="ARCH...": only these.
check-foreign:
	$(srcdir)/scripts/foreign $(FOREIGN) || test $$? -eq 77

# The swap of the memory pair, proved with spin where it is installed.
check-model:
	$(srcdir)/tests/model/run.sh

include $(srcdir)/tests/fuzz/local.mk
include $(srcdir)/tests/bench/local.mk
