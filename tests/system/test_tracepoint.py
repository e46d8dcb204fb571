#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A tracepoint as an event: every time that a program comes to it is a sample, filed under the
program, by the tracepoint's name; what cannot be is
said in a line.
"""
import os
import subprocess
import time

import opdtest
from opdtest import require

DEBUGFS = "/sys/kernel/debug"
TRACEPOINT = "sched:sched_process_exec"
RUNS = 200


def need_tracefs(box):
    if os.path.isdir(os.path.join(opdtest.TRACEFS, "events")):
        return
    opcontrol = os.path.join(box.bin, "opcontrol")
    require("mount -t tracefs" in box.refused(opcontrol, "--setup", "--event=%s:1" % TRACEPOINT), "what is missing is not said")
    box.mount_tracefs()


def show_libpfm(box):
    """libpfm4 knows tracepoints by debugfs: also where it does, what is wrong with one is said in
    opd's words.
    """
    if not os.path.isdir(os.path.join(DEBUGFS, "tracing")) and box.run("mount", "-t", "debugfs", "debugfs", DEBUGFS).rc == 0:
        box.mounts.append(DEBUGFS)


def test(box):
    need_tracefs(box)
    show_libpfm(box)
    opcontrol = os.path.join(box.bin, "opcontrol")
    said = box.refused(opcontrol, "--setup", "--event=sched:no_such_one:1")
    require("no such tracepoint" in said, "an unknown tracepoint: %s" % said)
    box.start_daemon("--event=%s:1" % TRACEPOINT, "--event=TIMER:1000000", "--separate=library,kernel")
    ophelp, cannot = os.path.join(box.bin, "ophelp"), "no event named sched:no_such_one:1"
    require(box.good(ophelp, "-e", TRACEPOINT + ":1", "TIMER:1000000").split() == ["tracepoint", "timer"], "ophelp -e")
    require(cannot in box.refused(ophelp, "-e", "sched:no_such_one:1"), "ophelp -e does not say: " + cannot)
    app = box.copy_work("executed", "/bin/true")
    for _ in range(RUNS):
        subprocess.run([app], check=True)
    time.sleep(0.5)
    box.opcontrol("--stop")
    event = next(e for e in box.check_ledger()["events"] if e["name"] == TRACEPOINT)
    counted = sum(f.total for f in box.files() if f.name.event == TRACEPOINT and f.name.app[1] == app)
    print("%d of %d exec counted under the program, %d of all" % (counted, RUNS, event["taken"]))
    require(counted + event["lost_kernel"] >= RUNS and counted <= RUNS, "%d samples of %d exec" % (counted, RUNS))
    numbers = {f.header.event for f in box.files() if f.name.event == TRACEPOINT}
    require(numbers == {int(box.good(ophelp, TRACEPOINT))}, "ophelp has another number than the files, %s" % numbers)
    report = box.opreport("--verbose=details", "event:" + TRACEPOINT, "image:" + app)
    require("Counted %s events (Tracepoint of the kernel)" % TRACEPOINT in report and str(counted) in report,
            "opreport shows: %s" % report)
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
