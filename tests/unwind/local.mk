# SPDX-License-Identifier: GPL-3.0-or-later
# libdw is a second reader of call frame information, and a second walk, only here.
if HAVE_LIBDW
check_PROGRAMS += tests/unwind/cfi_oracle
tests_unwind_cfi_oracle_SOURCES = tests/unwind/cfi_oracle.c
tests_unwind_cfi_oracle_CPPFLAGS = $(AM_CPPFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS)
tests_unwind_cfi_oracle_LDADD = libop/libop.a $(DW_LIBS) $(ELF_LIBS) $(ZSTD_LIBS)

check_PROGRAMS += tests/unwind/walk_oracle
tests_unwind_walk_oracle_SOURCES = tests/unwind/walk_oracle.c tests/unwind/recording.c tests/unwind/recording.h
tests_unwind_walk_oracle_CPPFLAGS = $(AM_CPPFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS)
tests_unwind_walk_oracle_LDADD = daemon/libpipeline.a libop/libop.a $(DW_LIBS) $(ELF_LIBS) $(ZSTD_LIBS)
endif

# scripts/test --long runs 10,000 of them with the sanitizers.
check_PROGRAMS += tests/unwind/mutants
TESTS += tests/unwind/test_mutants.sh
EXTRA_DIST += tests/unwind/test_mutants.sh
tests_unwind_mutants_SOURCES = tests/unwind/mutants.c tests/unwind/hostile_walk.h
tests_unwind_mutants_LDADD = tools/opd-tables/libtables.a tools/libreport.a daemon/libpipeline.a libop/libop.a \
	$(ELF_LIBS) $(SECCOMP_LIBS) $(ZSTD_LIBS) $(LZMA_LIBS)
