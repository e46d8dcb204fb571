# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of the tests, and what `make check` runs: for GNU make alone, automake does not read
# this. A new tests/unit/test_NAME.c, .py or .sh is found by its name; a program has no rule of its
# own. Below, lines without a recipe name the objects that a program has beside NAME.o.
unit_programs = $(filter-out $(if $(SECCOMP_LIBS),,tests/unit/test_call_filter), \
	$(patsubst $(srcdir)/%.c,%,$(wildcard $(srcdir)/tests/unit/*.c)))
fuzz_programs = $(filter-out tests/fuzz/fuzz_dir tests/fuzz/fuzz_log, \
	$(patsubst $(srcdir)/%.c,%,$(wildcard $(srcdir)/tests/fuzz/fuzz_*.c)))
test_programs = $(unit_programs) $(fuzz_programs) \
	$(addprefix tests/bench/bench_,files memory ring sim stacks swap tick) tests/bench/make_days \
	$(addprefix tests/ring/,torture litmus kernel_overwrite) \
	$(addprefix tests/system/,fault_oracle fed_opd jit_storm jit_work perf_data) \
	$(if $(DW_LIBS),tests/unwind/cfi_oracle tests/unwind/walk_oracle) \
	tests/ibs/ibs_dump tests/systemd/reach tests/unwind/mutants

tests/unit/test_pfm_names: tools/events/pfm_names.o
tests/unit/test_source tests/bench/bench_sim: tests/bench/load.o tests/bench/sim.o
tests/bench/bench_sim: tests/bench/sim_stacks.o
tests/bench/bench_ring: tests/bench/capture_run.o tests/bench/perf_peer.o
tests/unit/test_ibs tests/ibs/ibs_dump tests/fuzz/fuzz_ibs: tests/ibs/ibs_text.o tests/ibs/data_src.o
tests/ring/torture: $(addprefix tests/ring/torture_,aux.o records.o threads.o)
tests/ring/kernel_overwrite: tests/ring/overwrite_load.o tests/ring/overwrite_seen.o
tests/unwind/walk_oracle: tests/unwind/recording.o
# opd and opcontrol on a host with the IBS of a Zen 4, and a CPU that a test feeds.
tests/system/fed_opd tests/system/fed_opcontrol: tests/system/ibs_host.o
tests/system/fed_opcontrol: $(bin_opcontrol_OBJECTS)

# libFuzzer is the main program with configure --enable-fuzzing; else replay.c is, which runs a
# corpus.
$(fuzz_programs): tests/fuzz/fuzz_dir.o $(if $(FUZZ_ENGINE),,tests/fuzz/replay.o)
$(fuzz_programs): private AM_LDFLAGS += $(FUZZ_ENGINE)
tests/fuzz/fuzz_archive tests/fuzz/fuzz_abi tests/fuzz/fuzz_events: tests/fuzz/fuzz_log.o
tests/fuzz/fuzz_archive: $(addprefix tools/oparchive/,check.o copy.o earlier.o elf_extent.o)
tests/fuzz/fuzz_abi: tools/opimport/foreign.o
tests/unit/test_pack: $(addprefix tools/oparchive/,copy.o earlier.o elf_extent.o lock.o store.o) \
	$(addprefix tools/opcheck/,findings.o header.o ledger.o misplaced.o ownership.o sample_file.o session.o shares.o \
		timeline.o unnamed.o)
tests/unit/test_timeline_days: $(addprefix tools/opcheck/,findings.o header.o shares.o timeline.o)

# All peers alike: where a loop of some bytes begins must not decide (the same code, 16 bytes
# further on, took 24 ns for a record instead of 15).
bench_memory_objects = $(addprefix tests/bench/,bench_memory.o peer_lttng.o peer_memcpy.o peer_ring.o \
	$(if $(CK_LIBS),peer_ck.o) $(if $(URCU_LIBS),peer_wfcqueue.o))
tests/bench/bench_memory: $(bench_memory_objects)
$(bench_memory_objects): AM_CFLAGS += -falign-functions=64 -falign-loops=32

# A function __wrap_NAME in an object takes the calls of NAME. TEST_LDFLAGS may choose a linker.
test_libs = tools/libcode.a tools/opd-tables/libtables.a tools/opd-events/libevents.a tools/libimport.a tools/libreport.a \
	daemon/libopd.a pipeline/libpipeline.a libop/libop.a
$(test_programs): %: %.o
$(test_programs) tests/system/fed_opcontrol: $(test_libs)
	$(AM_V_CCLD)wraps=`$(NM) $(filter %.o,$^) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p'` && \
	$(LINK) $(TEST_LDFLAGS) -Wl,--as-needed -Wl,--build-id $$wraps $(filter %.o,$^) $(filter %.a,$^) $(CMOCKA_LIBS) \
		$(SYSTEMD_LIBS) $(POPT_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS) $(PFM_LIBS) $(OPCODES_LIBS) $(BFD_LIBS) \
		$(IBERTY_LIBS) $(DW_LIBS) $(ELF_LIBS) $(MD_LIBS) $(MODULE_LIBS) $(CK_LIBS) $(URCU_LIBS) $(LIBS)

# UNIT_CFLAGS may save the time of optimizing what only calls the functions that are tested.
tests/unit/%.o: private CFLAGS += $(UNIT_CFLAGS)
tests/%.o: tests/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(COMPILE) $(CMOCKA_CFLAGS) $(DW_CFLAGS) $(CK_CFLAGS) $(URCU_CFLAGS) \
		-MMD -MP -c -o $@ $<

# Processes to watch, and libraries to preload: without the flags of sanitizers and of hardening.
plain_programs = $(addprefix tests/system/,clockshim.so crowd deep faultshim.so family forged_java forged_perl \
	forged_php forged_python forged_ruby.so hanging storm storm_lib.so storm_worker waits work) tests/bench/pingpong
plain_flags = $(if $(filter %.so,$@),-fPIC -shared -Wl$(comma)-z$(comma)noexecstack -U_FORTIFY_SOURCE)
comma = ,
tests/system/storm_worker: private plain_flags = -static
tests/system/forged_java: private plain_flags = -rdynamic
$(plain_programs): private AM_CFLAGS = -std=gnu11 -pthread -g -O1 -fno-omit-frame-pointer $(WARN_CFLAGS)
$(filter-out %.so,$(plain_programs)): %: %.c
$(filter %.so,$(plain_programs)): %.so: %.c
$(plain_programs):
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(COMPILE) $(LDFLAGS) $(plain_flags) -MMD -MP -MT $@ -MF $@.d -o $@ $<

# As LTTng's own programs are built: its headers have neither our warnings nor our banned functions.
ifneq ($(LTTNG_LIBS),)
plain_programs += tests/bench/lttng_writer
tests/bench/lttng_writer: private AM_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir) $(LTTNG_CFLAGS)
tests/bench/lttng_writer: private AM_CFLAGS = -std=gnu11 -pthread -Wall
tests/bench/lttng_writer: private plain_flags = $(LTTNG_LIBS) -ldl
BENCH_LTTNG = OPD_BENCH_LTTNG="$(srcdir)/tests/bench/lttng.sh tests/bench/lttng_writer"
endif

check_programs = $(test_programs) tests/system/fed_opcontrol $(plain_programs)
-include $(wildcard tests/*/*.d)
CLEANFILES += $(check_programs) $(wildcard tests/*/*.[od])

# One after the other: two makes at once would both build the libraries.
check-programs: all
	@$(MAKE) --no-print-directory all-check-programs
.PHONY: all-check-programs fuzz-programs system-programs
fuzz-programs: $(fuzz_programs)
system-programs: $(filter tests/system/%,$(check_programs))
all-check-programs check-TESTS: $(check_programs)

# What `make check` runs, the longest first. Its harness is automake's, which has a rule for a log
# only of tests that it knows; this is that rule.
TESTS += tests/ring/torture tests/ring/litmus $(filter tests/unit/test_%,$(unit_programs)) \
	$(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/tests/unit/test_*.py $(srcdir)/tests/unit/test_*.sh)) \
	tests/fuzz/test_corpus.sh tests/unwind/test_mutants.sh tests/model/run.sh
LOG_DRIVER = $(SHELL) $(top_srcdir)/build-aux/test-driver
$(TESTS:=.log): %.log: %
	@p='$<'; $(am__set_b); $(am__check_pre) $(LOG_DRIVER) --test-name "$$f" --log-file $$b.log \
		--trs-file $$b.trs $(am__common_driver_flags) $(AM_LOG_DRIVER_FLAGS) $(LOG_DRIVER_FLAGS) -- \
		$(LOG_COMPILE) "$$tst" $(AM_TESTS_FD_REDIRECT)
