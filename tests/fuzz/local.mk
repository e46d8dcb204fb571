# SPDX-License-Identifier: GPL-3.0-or-later
# `make fuzz` makes a build with libFuzzer below fuzz-build/ and runs each target for FUZZ_SECONDS.
# New inputs and findings stay there.
FUZZ_TARGETS = $(fuzz_programs:tests/fuzz/fuzz_%=%)
FUZZ_SECONDS = 600

.PHONY: fuzz
# As long an input as reaches what it leads to: as many events as a perf.data file may have.
FUZZ_MAX_BYTES = case $$t in perf_data) max=131072;; *) max=16384;; esac

fuzz:
	$(MKDIR_P) fuzz-build
	test -e fuzz-build/config.status || (cd fuzz-build && $(abs_top_srcdir)/configure --quiet \
		--enable-fuzzing --enable-sanitizers CC=clang CFLAGS="-g -O1")
	$(MAKE) -C fuzz-build $(fuzz_programs)
	cd fuzz-build && for t in $(FUZZ_TARGETS); do \
		$(MKDIR_P) tests/fuzz/found/$$t && $(FUZZ_MAX_BYTES) && \
		tests/fuzz/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) -max_len=$$max -timeout=5 -print_final_stats=1 \
			-artifact_prefix=tests/fuzz/found/ tests/fuzz/found/$$t \
			$(abs_top_srcdir)/tests/fuzz/corpus/$$t || exit 1; done

clean-local: clean-fuzz
clean-fuzz:
	rm -rf fuzz-build
