#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every input of the corpora through their targets, with the compiler and the sanitizers of this
# build. Where libFuzzer is the main program, -runs=0 keeps it from making inputs of its own.
runs=
grep -q '^FUZZ_ENGINE = .' Makefile && runs=-runs=0
for corpus in "${srcdir:-.}"/tests/fuzz/corpus/*/; do
	target=$(basename "$corpus")
	"tests/fuzz/fuzz_$target" $runs "$corpus" || exit 1
done
