#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What scripts/demo shows, on another kernel: opd samples a program with two events, stops, and the
reports name its functions. The ledger is exact, the independent reader agrees, opcheck finds nothing.

Debian's kernels start with kernel.perf_event_paranoid=3. Then CAP_PERFMON is not enough, so an opd
that has no more, as in its unit, does not start, and says how it would.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import require  # noqa: E402

EVENTS = ("--event=TIMER:1000000", "--event=page-faults:1", "--stacks=99")
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
WORK_SECONDS = 5
SAMPLES = 500  # of the program


def samples_of(box, application):
    return sum(f.total for f in box.files(live=True) if f.name.image[1] == application and f.name.event == "TIMER")


def check_refused(box):
    """An opd with CAP_PERFMON on a kernel that wants CAP_SYS_ADMIN. Sets what opd asks for."""
    with open(PARANOID, encoding="ascii") as stream:
        level = int(stream.read())
    if level <= 2 or box.run_as == "root":
        return
    try:
        box.start_daemon(*EVENTS)
    except opdtest.Failure as failure:
        require("'sysctl kernel.perf_event_paranoid=2'" in str(failure), "opd does not say why it does not start: %s" % failure)
        print("kernel.perf_event_paranoid=%d: %s" % (level, failure))
    else:
        raise opdtest.Failure("opd starts with CAP_PERFMON alone where kernel.perf_event_paranoid is %d" % level)
    started = box.run(os.path.join(box.bin, "opcontrol"), "--start")
    print("opcontrol --start: exit code %d: %s%s" % started)
    require(started.rc == 1 and "'sysctl kernel.perf_event_paranoid=2'" in started.err, "opcontrol does not say how opd starts")
    with open(PARANOID, "w", encoding="ascii") as stream:
        stream.write("2")


def sample(box, program, numbers):
    """opd samples the program, and stops. Returns the events of the status."""
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*EVENTS)
    box.work_until(lambda: box.opcontrol("--dump") is not None and samples_of(box, program) > SAMPLES, "the program has no samples",
                   program, numbers, WORK_SECONDS)
    box.opcontrol("--stop")
    return box.check_ledger(not_sampled=oracle.not_sampled())["events"]


def check_followed(box, program, numbers):
    """Without a copy of the stack the kernel follows frame pointers. Since Linux 6.19 it hands in
    the user part of a stack later, in a record of its own.
    """
    box.configure(Stacks="yes", StackBytes="0")
    print("followed by the kernel: %s" % next(event for event in sample(box, program, numbers) if event["name"] == "STACKS"))
    require("checksum_block " in box.opreport("--format=folded", program), "no stacks that the kernel followed")
    box.shutdown()


def test(box):
    check_refused(box)
    box.configure(Stacks="yes")
    program = box.copy_work("demo-program", "demo-program")
    numbers = os.path.join(box.dir, "numbers")
    with open(numbers, "w", encoding="ascii") as stream:
        stream.writelines("%d\n" % n for n in range(50000))
    sample(box, program, numbers)
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
    box.opcontrol("--reset")
    check_followed(box, program, numbers)
    print(box.log_text())


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
