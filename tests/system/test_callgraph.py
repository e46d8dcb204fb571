#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
--callgraph: a program whose calls are known, sampled with its call chains. Every sample has its
callers, in the right proportion, across the border
between kernel and program as well; opreport shows them; without the option there are none, and what
is asked for is checked. After kill -9 all files are sound.
"""
import os
import platform
import re
import signal
import struct
import time

import elfsyms
import opdtest
from hot import compile_to
from opdtest import require

PERIOD_NS = 197000
DEPTH = 24  # of the kernel and the program together
MS = 800
FLAGS = ("-O0",)  # every function has a frame
FUNCTIONS = ("leaf", "a", "c", "into_kernel", "work", "main")
TREE = {("main", "work"), ("work", "a"), ("work", "c"), ("work", "into_kernel"), ("a", "leaf"), ("c", "leaf")}
MAX_STACK = "/proc/sys/kernel/perf_event_max_stack"


def of_app(files, app):
    """Sample files and callgraph files of an application."""
    mine = [f for f in files if f.name.app[1] == app]
    return [f for f in mine if not f.name.callee], [f for f in mine if f.name.callee]


def is_within(ranges, name, offset):
    first, end = ranges[name]
    return first <= offset < end


def function_of(ranges, offset):
    for name in ranges:
        if is_within(ranges, name, offset):
            return name
    return None


def arcs_within(files, app, ranges):
    """{(caller, callee): count} by the functions of the program."""
    arcs = {}
    for f in files:
        if f.name.image[1] != app or f.name.callee[1] != app:
            continue
        for key, count in f.keys.items():
            ends = function_of(ranges, key >> 32), function_of(ranges, key & 0xffffffff)
            arcs[ends] = arcs.get(ends, 0) + count
    return arcs


def samples_in(files, app, ranges, name):
    return sum(count for f in files if f.name.image[1] == app for key, count in f.keys.items() if is_within(ranges, name, key))


def calls_at(files, app, ranges, name, of_callee):
    """Calls of a function, or those that it does, whatever is at the other end."""
    found = 0
    for f in files:
        if (f.name.callee if of_callee else f.name.image)[1] == app:
            found += sum(count for key, count in f.keys.items() if is_within(ranges, name, key & 0xffffffff
                    if of_callee else key >> 32))
    return found


def check_tree(box, files, app, ranges):
    samples, calls = of_app(files, app)
    arcs = arcs_within(calls, app, ranges)
    print("arcs: %s" % arcs)
    # The samples for which a function was called: its own samples and those of its callees. Its
    # first instructions have no frame yet, so a sample there lacks the caller.
    for name in ("leaf", "a", "c", "into_kernel", "work"):
        wanted = samples_in(samples, app, ranges, name) + calls_at(calls, app, ranges, name, False)
        found = calls_at(calls, app, ranges, name, True)
        print("%-12s %5d samples, with what it calls %5d, called for %5d" % (name, samples_in(samples, app, ranges,
                name), wanted, found))
        require(wanted > 200 and 0.97 * wanted <= found <= wanted, "%s has %d and is called for %d" % (name, wanted, found))
    from_a, from_c = arcs.get(("a", "leaf"), 0), arcs.get(("c", "leaf"), 0)
    require(0.68 < from_a / (from_a + from_c) < 0.82, "a has %d of %d, not three quarters" % (from_a, from_a + from_c))
    require({ends for ends, count in arcs.items() if count > 20} == TREE, "the tree is %s" % arcs)
    check_report(box, app, {caller: count for (caller, callee), count in arcs.items() if callee == "leaf" and caller})


def check_report(box, app, wanted):
    """The block of leaf: its callers with exact counts. In a sample in its first instructions, the
    caller of its caller is the caller.
    """
    report = box.opreport("-c", "-n", "image:" + app)
    blocks = [block for block in report.split("-" * 79 + "\n") if re.search(r"^\d.* leaf$", block, re.M)]
    require(len(blocks) == 1, "opreport -c has %d blocks of leaf: %s" % (len(blocks), report))
    callers = re.findall(r"^  (\d+) .* (\w+)$", blocks[0].split("\n%s" % re.search(r"^\d", blocks[0], re.M).group())[0], re.M)
    counts = {name: int(count) for count, name in callers if name in wanted or name in ("a", "c")}
    require(counts == wanted, "opreport shows %s as callers of leaf, the files have %s: %s" % (counts, wanted, blocks[0]))


def check_border(files, app, ranges):
    """From the kernel to where the program entered it, and on from there."""
    samples, calls = of_app(files, app)
    kernel = [f for f in calls if f.header.cg_to_is_kernel and not f.header.is_kernel and f.name.image[1] == app]
    entries = sum(count for f in kernel for key, count in f.keys.items() if is_within(ranges, "into_kernel", key >> 32))
    in_kernel = sum(f.total for f in samples if f.header.is_kernel)
    inside = sum(f.total for f in calls if f.header.is_kernel and f.header.cg_to_is_kernel)
    print("%d samples in the kernel, %d calls from into_kernel to it, %d calls in it" % (in_kernel, entries, inside))
    require(entries > 100 and inside > 100, "%d calls into the kernel, %d in it" % (entries, inside))
    require(entries <= in_kernel, "%d calls into the kernel and %d samples there" % (entries, in_kernel))
    onwards = arcs_within(calls, app, ranges).get(("work", "into_kernel"), 0)
    require(onwards >= 0.98 * entries, "%d calls into the kernel, %d calls of who did it" % (entries, onwards))


def check_status(box, files):
    status = box.check_ledger()
    stored = sum(f.total for f in files if f.name.callee)
    require(status["callgraph"] == DEPTH and status["arcs_stored"] == stored > 0, "%d calls are stored, the files have %d" % (
        status["arcs_stored"], stored))
    losses = {key: value for key, value in status.items() if key.startswith("arcs_lost") and value}
    require(not losses and not status["arcs_undecodable"] and not status["arcs_not_split"], "calls were lost: %s" % losses)
    text = box.opcontrol("--status")
    require("Call-graph depth: %d" % DEPTH in text and "arcs_stored: %d" % stored in text, text)


def check_calls(box, app, ranges):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel", "--callgraph=%d" % DEPTH)
    box.good(app, str(MS))
    box.opcontrol("--stop")
    files = box.files()
    check_status(box, files)
    check_tree(box, files, app, ranges)
    check_border(files, app, ranges)
    box.check_agreement()
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    box.opcontrol("--reset")
    require(box.status()["arcs_stored"] == 0, "--reset keeps calls")


def check_kill(box, app, ranges):
    """Calls that were counted are still there after kill -9, and the next daemon continues with the
    same files.
    """
    box.opcontrol("--start")
    box.good(app, str(MS // 2))
    box.opcontrol("--dump")
    before = sum(f.total for f in box.files(live=True) if f.name.callee)
    work = box.start(app, str(MS // 2))
    time.sleep(MS / 4000)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    work.wait()
    left = sum(f.total for f in box.files(live=True) if f.name.callee)
    print("%d calls were dumped, %d are there after kill -9" % (before, left))
    require(left >= before > 0, "%d calls were dumped, %d are left" % (before, left))
    box.start_daemon()
    box.good(app, str(MS // 2))
    box.shutdown()
    files = box.files()
    require(sum(f.total for f in files if f.name.callee) > left, "nothing was added")
    require(arcs_within(of_app(files, app)[1], app, ranges).get(("a", "leaf"), 0) > 0, "the files of calls are others")
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)


def check_depth(box, app, ranges):
    """One caller is one caller, and none is none."""
    for depth, wanted in ((1, True), (0, False)):
        box.start_daemon("--callgraph=%d" % depth)
        box.opcontrol("--reset")
        box.good(app, str(MS // 4))
        box.shutdown()
        arcs = arcs_within(of_app(box.files(), app)[1], app, ranges)
        require(bool(arcs.get(("a", "leaf"))) == wanted, "--callgraph=%d: %s" % (depth, arcs))
        require(arcs.get(("main", "work"), 0) < 0.1 * max(arcs.values(), default=1), "--callgraph=%d: %s" % (depth, arcs))


def check_refused(box):
    """What the kernel does not follow, and events that would come too often."""
    opcontrol = os.path.join(box.bin, "opcontrol")
    line = box.refused(opcontrol, "--event=page-faults:14", "--callgraph=1")
    require("page-faults" in line and "15" in line, line)
    line = box.refused(opcontrol, "--callgraph=1", "--event=TIMER:100000")
    require("TIMER" in line and "150000" in line, line)
    box.good(opcontrol, "--callgraph=1", "--event=page-faults:15")
    box.good(opcontrol, "--callgraph=0", "--event=page-faults:1")
    with open(MAX_STACK, encoding="ascii") as stream:
        usual = stream.read()
    try:
        with open(MAX_STACK, "w", encoding="ascii") as stream:
            stream.write("20")
    except OSError as error:
        print("not shown, who follows more than the kernel does: %s" % error)
        return
    try:
        line = box.refused(opcontrol, "--callgraph=21", "--event=default")
        box.good(opcontrol, "--callgraph=20", "--event=default")
    finally:
        with open(MAX_STACK, "w", encoding="ascii") as stream:
            stream.write(usual)
    require("20" in line and "kernel.perf_event_max_stack" in line, line)


def test(box):
    if platform.machine() != "x86_64" or struct.calcsize("P") != 8:
        raise opdtest.Skip("calls.c enters the kernel of x86-64")
    app = os.path.join(box.dir, "calls-app")
    compile_to(box, app, *FLAGS, file="calls.c")
    ranges = elfsyms.symbol_ranges(app, FUNCTIONS)
    check_refused(box)
    check_calls(box, app, ranges)
    check_kill(box, app, ranges)
    check_depth(box, app, ranges)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
