#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Whole stacks of programs with and without frame pointers, with signed return addresses, and through
signal handlers: the shares of their paths, and how many are complete.
"""
import collections
import ctypes
import os
import platform
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import elfsyms  # noqa: E402
import opdtest  # noqa: E402
import test_stack_shares as shares  # noqa: E402
from hot import compile_to  # noqa: E402
from opdtest import require  # noqa: E402
from pmu import lift_rate_limit  # noqa: E402

RATE, WORK_MS = 199, 8000
SIGNAL_FRAMES = ["_start", "main", "interrupted", "handler", "in_handler"]
IN_MAIN = 0.03  # at most, of the signals: main and the clock that it reads take a hundredth of the time
AT_HWCAP, HWCAP_PACA = 16, 1 << 30


def what_was_interrupted(end, names):
    """The function that the signal interrupted, of a whole stack through the handler. The last frame
    may be missing: the sample came in the handler itself.
    """
    for name, below in ("interrupted", SIGNAL_FRAMES[:3]), ("main", SIGNAL_FRAMES[:2]):
        if end == "complete" and names in (below + SIGNAL_FRAMES[3:], below + SIGNAL_FRAMES[3:4]):
            return name
    return "not whole"


def check_signals(box, path):
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    box.good(path, WORK_MS)
    box.opcontrol("--stop")
    symbols = elfsyms.symbol_ranges(path, SIGNAL_FRAMES)
    found = collections.Counter()
    for (end, frames), count in shares.stacks_of(box.session, os.path.basename(path)).items():
        names = shares.functions_of(frames, symbols)
        if "handler" in names:
            found[what_was_interrupted(end, names)] += count
    print("%s: %d stacks through the handler, %s" % (os.path.basename(path), found.total(), dict(found)), flush=True)
    require(found["interrupted"] >= 20 and found["not whole"] <= 0.01 * found["interrupted"],
            "stacks through a signal handler: %s" % found)
    # A walk that misses the interrupted function finds its return address, which is in main.
    require(found["main"] <= IN_MAIN * found.total(), "too many signals interrupted main: %s" % found)
    box.shutdown()
    box.opcontrol("--reset")


VARIANTS = {
    "pointers": ("-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"),
    "none": shares.FLAGS,
}
if platform.machine() == "aarch64":  # all functions, also those that call none
    require(ctypes.CDLL(None).getauxval(AT_HWCAP) & HWCAP_PACA, "this CPU does not sign addresses: there is nothing to test")
    VARIANTS["signed"] = (*shares.FLAGS, "-mbranch-protection=pac-ret+leaf")


def test(box):
    lift_rate_limit()
    programs, signals = [], []
    for name, flags in VARIANTS.items():
        for file, paths in ("stacks.c", programs), ("../machines/signals.c", signals):
            path = os.path.join(box.dir, "%s-%s" % (os.path.basename(file)[:2], name))
            compile_to(box, path, *flags, file=file)
            paths.append(path)
    shares.make_tables(box, *programs, *signals)
    for path in programs:
        print(path)
        shares.check_shares(box, path, RATE, WORK_MS)
    for path in signals:
        check_signals(box, path)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
