#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every input of the corpus through the target, with the compiler and the sanitizers of this build.
tests/fuzz/replay_ring "${srcdir:-.}/tests/fuzz/corpus/ring" && exec tests/fuzz/replay_session "${srcdir:-.}/tests/fuzz/corpus/session"
