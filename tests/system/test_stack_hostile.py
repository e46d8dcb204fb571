#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Programs whose stacks mislead whoever walks them: into themselves, into rows that loop, to addresses
that are none, on an alternative signal stack, in code without a file. Each walk ends under the name
that says why. The ledger adds up, opd keeps up, and a program beside them has its whole stacks.
"""
import collections
import os
import platform

import opdtest
from hot import compile_to
from opdtest import require
from test_stack_shares import FLAGS, NEEDED, check_ledger, make_tables, stacks_of

RATE = 997
MS = 400  # of each process
SHARE = 0.8  # of the samples of a process, in the function that misleads
# how the walks of each process end, and how many frames of the program they have
WANTED = {"h-itself": ("left_code", 1), "h-upwards": ("too_deep", 512), "h-frames": ("no_row", 2), "h-still": ("no_row", 2),
          "h-rows": ("too_deep", 512), "h-bare": ("guessed", 2), "h-no-file": ("guessed", 0), "h-last-word": ("cut", 2),
          "h-behind": ("cut", 1), "h-zero": ("cut", 1), "h-kernel": ("cut", 1), "h-no-address": ("cut", 1),
          "h-alternative": ("cut", 1)}


def check_each(box):
    for name, (end, nr_frames) in WANTED.items():
        found = collections.Counter()
        for (how, frames), count in stacks_of(box.session, name).items():
            found[how, len(frames)] += count
        print("%-14s %s" % (name, dict(found)))
        total = sum(count for (how, _), count in found.items() if how != "no_table_yet")
        require(total >= RATE * MS / 1000 / 10, "%s: only %d samples" % (name, total))
        require(found[end, nr_frames] >= SHARE * total, "%s: %d of %d samples end with %s after %d frames: %s" % (
            name, found[end, nr_frames], total, end, nr_frames, dict(found)))


def check_beside(box, path):
    """The program beside them."""
    ends = collections.Counter()
    for (end, _frames), count in stacks_of(box.session, os.path.basename(path)).items():
        ends[end] += count
    print("beside them: %s" % dict(ends))
    total = sum(ends.values()) - ends["no_table_yet"]
    require(total >= 50 and ends["complete"] >= NEEDED * total, "the stacks of a program beside them: %s" % dict(ends))


def test(box):
    if platform.machine() != "x86_64":
        raise opdtest.Skip("hostile_stacks.c is for x86-64")
    hostile, honest = os.path.join(box.dir, "hostile"), os.path.join(box.dir, "honest")
    compile_to(box, hostile, file="hostile_stacks.c")
    compile_to(box, honest, *FLAGS, file="stacks.c")
    make_tables(box, hostile, honest)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    before, beside = opdtest.cpu_seconds(box.daemon.pid), box.start(honest, 2000)
    box.good(hostile, MS)
    require(beside.wait(opdtest.CALL_SECONDS) == 0, "the program beside them ended with %s" % beside.returncode)
    box.opcontrol("--stop")
    status = box.check_ledger(with_files=False)
    check_ledger(status)
    spent = opdtest.cpu_seconds(box.daemon.pid) - before
    print("opd: %.2f s of CPU time, %.0f ns a frame" % (spent, status["stack_walk_ns"] / max(1, status["stack_frames"])))
    # a walk has an end: 512 frames
    require(spent < len(WANTED) * MS / 1000 / 2, "opd took %.2f s of CPU time" % spent)
    check_each(box)
    check_beside(box, honest)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
