#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Many processes of several users have files of JIT code that are expensive to read: opd reads them
within its budget, puts off the rest, loses no sample, and each user has a share. Code of another
user, who comes later, has its names.
No limit of time is tested, because the machine may be busy: opd itself measures the CPU time that
it spends in a visit.
"""
import os
import re
import shutil

import opdtest
from opdtest import Skip, require

PERIOD_NS = 497000
VISIT_NS = 10000000  # CPU time for these files in a visit: OPD_JIT_VISIT_NS
SLICE_NS = 10000000  # beyond it: some lines, and the interrupts that a busy machine takes meanwhile
FIRST_UID = 61000
TURNS = 12
MIN_NAMED = 100
KINDS = (  # name, processes, users, KiB of the file, whether the budget is too small for all
    ("wide", 100, 10, 1024, True),
    ("bytes", 20, 10, 256, False),
    ("moves", 20, 10, 512, False),
    ("lines", 6, 3, 20000, False),
)


def start_storm(box, *args):
    """A storm runs when it has told its number of processes."""
    program = os.path.join(os.path.dirname(box.work), "jit_storm")
    directory = os.path.join(box.dir, "dumps")
    os.makedirs(directory, exist_ok=True)
    os.chmod(directory, 0o755)
    child = box.start_piped(program, *args, directory)
    line = child.stdout.readline()
    if not line and child.wait(opdtest.CALL_SECONDS) == 77:
        raise Skip("the tests make no code for this machine")
    require(line == b"%d\n" % args[1], "jit_storm says %r" % line)
    return child


def has_seen(box, begin, nr_users):
    """Some turns have passed, and code of as many processes as there are users has names."""
    status = box.status()
    return status.get("turns", 0) >= begin["turns"] + TURNS and status["jit_processes"] >= begin["jit_processes"] + nr_users


def named_samples(box, app):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == app and f.name.image[0] == "jo")


def comes_later(box):
    """A process of root, which has no expensive file, while the storm goes on."""
    app = box.copy_work("jit-late", "jit_work")
    child = box.start(app, "map", 4000 * opdtest.HANG_SECONDS)

    def has_names():
        box.opcontrol("--dump")
        return named_samples(box, app) >= MIN_NAMED
    opdtest.wait_until(has_names, opdtest.HANG_SECONDS, "a process that comes later has no names")
    box.end_process(child.pid)
    child.wait()


def check_put_off(box, before):
    """opcontrol --status shows what was put off. opd goes on putting off while the processes live."""
    shown = re.search(r"put_off: (\d+)", box.opcontrol("--status"))
    after = box.status()["jit_put_off"]
    require(shown and before <= int(shown.group(1)) <= after, "opcontrol --status shows %s, %d to %d were put off" % (
        shown and shown.group(0), before, after))


def check(box, kind, nr_processes, nr_users, kib, is_too_much):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    begin = box.status()
    child = start_storm(box, kind, nr_processes, nr_users, FIRST_UID, kib)
    opdtest.wait_until(lambda: has_seen(box, begin, nr_users), opdtest.HANG_SECONDS, "not every user has code with names")
    comes_later(box)
    box.opcontrol("--stop")
    status = box.check_ledger()
    event = status["events"][0]
    print("%s: %d processes, %d functions, %d put off, %.1f ms of CPU time in a visit, longest turn %.0f ms, %d of %d lost" % (
        kind, status["jit_processes"], status["jit_functions"], status["jit_put_off"], status["jit_cpu_longest_ns"] / 1e6,
        status["turn_longest_ns"] / 1e6, event["lost_kernel"], event["taken"]))
    require(event["lost_kernel"] == 0, "%s: %d samples of %d were lost" % (kind, event["lost_kernel"], event["taken"]))
    require(status["jit_cpu_longest_ns"] <= VISIT_NS + SLICE_NS,
            "%s: %d ns of CPU time in a visit" % (kind, status["jit_cpu_longest_ns"]))
    require(not is_too_much or status["jit_put_off"] > 0, "%s: nothing was put off" % kind)
    if is_too_much:
        check_put_off(box, status["jit_put_off"])
    child.stdin.close()
    require(child.wait(opdtest.CALL_SECONDS) == 0, "jit_storm failed")
    box.children.remove(child)
    box.shutdown()
    shutil.rmtree(box.session)


def test(box):
    opdtest.needs_root()
    if not opdtest.sees_all_processes():
        raise Skip("processes of other users need the host's process numbers")
    box.configure(RingSize="8M")
    try:
        for row in KINDS:
            check(box, *row)
    finally:
        for child in box.children:
            if child.stdin:
                child.stdin.close()  # it removes its files
                child.wait(opdtest.CALL_SECONDS)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
