#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of the kernel pair in overwrite mode: they join, and in rings that are too small each is the newest part, every record whole.

usage: test_overwrite.py [--long]: 120 snapshots of each CPU in each mode instead of 30.
"""
import os
import sys

import opdtest
from opdtest import require

SNAPSHOTS = 120 if "--long" in sys.argv else 30


def test(box):
    result = box.run(os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "ring", "kernel_overwrite"), "--snapshots=%d" % SNAPSHOTS)
    print(result.out, end="")
    if result.rc == 77:
        raise opdtest.Skip(result.out.strip().replace("skip: ", "", 1))
    require(result.rc == 0, "kernel_overwrite: exit code %d: %s" % (result.rc, result.err))


if __name__ == "__main__":
    opdtest.run(test)
