#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every input of the corpora through their targets, with the compiler and the sanitizers of this build.
for target in ring perf_map jitdump ibs perf_data session dcookies ledger control symbols symbols_file archive abi events module; do
	"tests/fuzz/replay_$target" "${srcdir:-.}/tests/fuzz/corpus/$target" || exit 1
done
