#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What scripts/demo shows, on another kernel: opd samples a program with two events, stops, and the
reports name its functions. The ledger is exact, the independent reader agrees, opcheck finds nothing.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import require  # noqa: E402

EVENTS = ("--event=TIMER:1000000", "--event=page-faults:1", "--stacks=99")
WORK_SECONDS = 5
SAMPLES = 500  # of the program


def samples_of(box, application):
    return sum(f.total for f in box.files(live=True) if f.name.image[1] == application and f.name.event == "TIMER")


def test(box):
    box.configure(Stacks="yes")
    program = box.copy_work("demo-program", "demo-program")
    numbers = os.path.join(box.dir, "numbers")
    with open(numbers, "w", encoding="ascii") as stream:
        stream.writelines("%d\n" % n for n in range(50000))
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*EVENTS)
    box.work_until(lambda: box.opcontrol("--dump") is not None and samples_of(box, program) > SAMPLES, "the program has no samples",
                   program, numbers, WORK_SECONDS)
    box.opcontrol("--stop")
    box.check_ledger(not_sampled=oracle.not_sampled())
    box.check_agreement()
    print(box.opreport("--top=8"))
    symbols = box.opreport("-l", program)
    print(symbols)
    for function in ("checksum_block", "match_length"):
        require(function in symbols, "opreport -l does not show %s" % function)
    paths = box.opreport("--format=folded", program)
    require("main;checksum_block " in paths and "main;sort_keys;" in paths, "no stacks from main down:\n%s" % paths)
    print(box.opcontrol("--status"))
    print(box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session))
    box.shutdown()
    print(box.log_text())


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
