#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every input of the corpus through the target, with the compiler and the sanitizers of this build.
exec tests/fuzz/replay_ring "${srcdir:-.}/tests/fuzz/corpus/ring"
