#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A number that two processes have one after the other: the samples of each go to its own program.
"""
import os
import subprocess

import opdtest
from hot import PERIOD_NS, compile_to
from opdtest import Skip, require

LAST_PID = "/proc/sys/kernel/ns_last_pid"
NR_PAIRS = 60
RUN_MS = 10


def run_as(box, path, pid=None):
    """Runs a program, with this number when the kernel gives it; the number it had."""
    if pid is not None:
        with open(LAST_PID, "w", encoding="ascii") as stream:
            stream.write(str(pid - 1))
    child = subprocess.Popen([path, "plain", str(RUN_MS)], env=box.env, cwd="/", stdin=subprocess.DEVNULL)
    require(child.wait(opdtest.CALL_SECONDS) == 0, "a program failed")
    return child.pid


def test(box):
    if not os.access(LAST_PID, os.W_OK):
        raise Skip("%s is not there: the kernel is without CONFIG_CHECKPOINT_RESTORE" % LAST_PID)
    box.configure(RingSize="4M", SidebandSize="4M")
    paths = [os.path.join(box.dir, name) for name in ("first", "second")]
    for path in paths:
        compile_to(box, path, "-static", "-w", "-DVARIANT=\"%s\"" % os.path.basename(path))
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    nr_same = 0
    for _ in range(NR_PAIRS):
        pid = run_as(box, paths[0])
        nr_same += run_as(box, paths[1], pid) == pid
    print("%d of %d had the number of another" % (nr_same, NR_PAIRS))
    if not nr_same:
        raise Skip("the kernel gave no number twice")
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    lost = sum(event["lost_kernel"] for event in box.check_ledger()["events"])
    files = box.files()
    totals = [sum(f.total for f in files if f.name.app == ("root", path) and not f.header.is_kernel) for path in paths]
    print("samples: %s" % totals)
    require(max(totals) <= 1.25 * min(totals), "the programs ran alike and have %s samples" % totals)
    foreign = sum(f.total for f in files if f.name.app[1] in paths and f.name.image[1] in paths and f.name.app != f.name.image)
    require(not foreign, "%d samples of one program are filed under the other" % foreign)
    least = 0.8 * NR_PAIRS * RUN_MS * 1e6 / PERIOD_NS
    require(min(totals) + max(0, lost) >= least, "%d samples, %d expected" % (min(totals), least))
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
