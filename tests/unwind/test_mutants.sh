#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# usage: test_mutants.sh [NUMBER]. Damaged ELF files through opd-tables and the walk. Run from the
# build directory by `make check`, with the sanitizers of the build.

# opd-tables reads only ELF files of 64 bits that are little-endian. opd is none when it was built
# for another machine; then the shell of this machine is taken.
is_for_tables() {
	[ "$(od -An -tx1 -N6 "$1")" = " 7f 45 4c 46 02 01" ]
}

for image in daemon/opd /bin/sh; do
	! is_for_tables "$image" || exec tests/unwind/mutants "$image" "${1:-300}"
done
echo "skip: no little-endian ELF file of 64 bits here"
exit 77
