#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# usage: test_mutants.sh [NUMBER]. Damaged ELF files through opd-tables and the walk. Run from the
# build directory by `make check`, with the sanitizers of the build.
exec tests/unwind/mutants daemon/opd "${1:-300}"
