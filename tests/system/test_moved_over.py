#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The code of one file is moved to where the code of another file ran. The kernel does not report it.
opd sees it when it compares the most frequent answers with /proc, a few at each visit, and from
then on all samples are right. Other processes are as busy meanwhile. The code is a loop so small
that all its samples have one address.

The test waits for the comparison: how soon it comes depends on how many busy processes have answers
that opd compares, too.
"""
import os
import sys

import opdtest
from hot import PERIOD_NS, SHARE, Wanted, compile_to, hot_place, nr_at, wrong_with
from opdtest import require

LOOK_MS = 10  # of CPU time, between two looks of the program at its input
SAMPLES = 1000  # in each of three phases: before the move, until the comparison is seen, after it
SPREAD = "while True: sum(i * i for i in range(1000))"  # for an interpreter: busy at many addresses


def await_samples(box, path, place, wanted):
    """Until the program has so many samples at a place. Returns its files."""
    mine = []

    def has_them():
        box.opcontrol("--dump")
        mine[:] = [f for f in box.files(live=True) if f.name.app == ("root", path) and not f.header.is_kernel]
        return nr_at([place], mine) >= wanted
    opdtest.wait_until(has_them, opdtest.HANG_SECONDS, "%s has no %d samples in %s" % (path, wanted, place.name))
    return mine


def tell(child):
    child.stdin.write(b"\n")
    child.stdin.flush()


def test(box):
    path, files = os.path.join(box.dir, "mremap-over"), [os.path.join(box.dir, "over-%d" % i) for i in range(2)]
    compile_to(box, path)
    for file in files:
        compile_to(box, file, "-DVARIANT=\"%s\"" % os.path.basename(file))
        require(hot_place(file)[2:] == hot_place(path)[2:], "%s has hot elsewhere than the program that maps it" % file)
    first, second = [hot_place(file) for file in files]
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    others = [box.start(sys.executable, "-c", SPREAD) for _ in range(os.cpu_count())]
    child = box.start_piped(path, "mremap-over", LOOK_MS, *files)
    require(not nr_at([second], await_samples(box, path, first, SAMPLES)), "code that was not yet moved has samples")
    tell(child)
    seen = await_samples(box, path, second, SAMPLES)
    at_first, at_second = nr_at([first], seen), nr_at([second], seen)
    await_samples(box, path, second, at_second + SAMPLES)
    tell(child)
    require(child.wait(opdtest.CALL_SECONDS) == 0, "the program failed")
    for other in others:
        other.kill()
        other.wait()
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    wrong = wrong_with("mremap over", [Wanted(path, [first, second], SHARE, 3 * SAMPLES)], box.files())
    require(not wrong, "\n".join(wrong))
    late, right = nr_at([first], box.files()) - at_first, nr_at([second], box.files()) - at_second
    print("after the comparison %d samples in the code that was moved, %d in the code under it" % (right, late))
    require(right >= SHARE * (right + late), "%d samples are still in code that other code was moved over" % late)
    box.check_ledger()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
