#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of the kernel pair in overwrite mode.

Snapshots join. In rings that are too small each one is the newest part, and every record is whole.

usage: test_overwrite.py [--long]: 120 snapshots of each CPU in each mode instead of 30.
"""
import os
import sys

import opdtest
from opdtest import require

SNAPSHOTS = 120 if "--long" in sys.argv else 30
LARGER = (0, 1, 0, 1, 2, 0, 1, 2)  # in powers of two; a larger ring holds more, and takes longer to be looked at
DISTURBED = 75  # the machine was so busy that the rings were too small


def is_shown(box, program, mode):
    """False: the machine was too busy, each time."""
    for larger in LARGER:
        result = box.run(program, "--snapshots=%d" % SNAPSHOTS, "--larger=%d" % larger, mode)
        print(result.out, end="")
        if result.rc != DISTURBED:
            break
    if result.rc == 77:
        raise opdtest.Skip(result.out.strip().replace("skip: ", "", 1))
    require(result.rc in (0, DISTURBED), "kernel_overwrite: exit code %d: %s" % (result.rc, result.err))
    return result.rc == 0


def test(box):
    program = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "ring", "kernel_overwrite")
    not_shown = [mode for mode in box.good(program, "--list").split() if not is_shown(box, program, mode)]
    if not_shown:
        raise opdtest.Skip("too busy a machine for %s: its rings were full %d times" % (", ".join(not_shown), len(LARGER)))


if __name__ == "__main__":
    opdtest.run(test)
