#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The code of one file is moved to where the code of another file ran. The kernel does not report it.
opd sees it when it compares the most frequent answers with /proc, a few at each visit, and then all
samples are right. Other processes are as busy meanwhile. The code is a loop so small that all its
samples have one address.

This test runs alone: every other busy process has answers that opd compares, too.
"""
import os
import sys

import opdtest
from hot import PERIOD_NS, SHARE, Wanted, compile_to, hot_place, wrong_with
from opdtest import require

OVER_MS = 2000
SPREAD = "while True: sum(i * i for i in range(1000))"  # for an interpreter: busy at many addresses


def test(box):
    path, files = os.path.join(box.dir, "mremap-over"), [os.path.join(box.dir, "over-%d" % i) for i in range(2)]
    compile_to(box, path)
    for file in files:
        compile_to(box, file, "-DVARIANT=\"%s\"" % os.path.basename(file))
        require(hot_place(file)[2:] == hot_place(path)[2:], "%s has hot elsewhere than the program that maps it" % file)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    others = [box.start(sys.executable, "-c", SPREAD) for _ in range(os.cpu_count())]
    box.good(path, "mremap-over", OVER_MS, *files)
    for other in others:
        other.kill()
        other.wait()
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    first, second = [[hot_place(file)] for file in files]
    wrong = wrong_with("mremap over", [Wanted(path, first, 0.1, OVER_MS * 10), Wanted(path, second, 0.5, OVER_MS * 10),
                                       Wanted(path, first + second, SHARE, OVER_MS * 10)], box.files())
    require(not wrong, "\n".join(wrong))
    box.check_ledger()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
