#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Stacks that are guessed are never called complete: code that nothing describes keeps a number in rbp
that leads to words of 0, to nothing, or to a frame that somebody forged. And stacks through a signal
handler are exact: they show the code that the handler returns to, and no function that was never
called.
"""
import collections
import os
import platform
import re

import opdtest
from hot import compile_to
from opdtest import require
from test_stack_shares import check_ledger, make_tables

RATE = 997
MS = 500
LEAST = RATE * MS / 1000 / 10  # samples of each process
# the function that ran, and how stacks end in which it did; the first function that is there
WANTED = (("bare_leaf", {"no_row"}), ("burn", {"no_row"}), (None, {"no_row"}), ("never_called", {"guessed"}))
HANDLER = ("main", "work", "__restore_rt", "on_signal")


def stacks(box, path):
    """{(names of the frames, the end among them): count} of a program, without the kernel's."""
    found = collections.Counter()
    for line in box.opreport("--format=folded", path).splitlines():
        frames, count = line.rsplit(" ", 1)
        names = [re.sub(r"(@@.*|\+0x.*)$", "", name) for name in frames.split(";")]
        found[tuple(name for name in names if not name.endswith("_[k]"))] += int(count)
    return found


def check_guess(path, found, function, ends):
    """A stack with the function, or with none but an address, is not complete."""
    nr = 0
    for names, count in found.items():
        is_it = function in names if function else not {"main", "_start"} & set(names)
        # A stack of execve or of the end of the process has no frame of the program.
        if is_it and len(names) > 1 and not {"[no_table_yet]", "clock_gettime"} & set(names):
            nr += count
            require({name[1:-1] for name in names if name.startswith("[")} & ends, "%s: %s" % (path, names))
    require(nr >= LEAST, "%s: %d samples of %s: %s" % (path, nr, function, found.most_common(5)))


def check_handler(path, found):
    nr = 0
    for names, count in found.items():
        if names[-1] == "on_signal" and "[no_table_yet]" not in names:
            nr += count
            require([name for name in names if name in HANDLER] == list(HANDLER) and "_start" in names,
                    "%s: %s" % (path, names))
            require("sigaction" not in names, "%s: %s" % (path, names))
    require(nr >= LEAST, "%s: %d samples: %s" % (path, nr, found.most_common(5)))


def test(box):
    if platform.machine() != "x86_64":
        raise opdtest.Skip("guess.c is for x86-64")
    paths = [os.path.join(box.dir, "guess%d" % mode) for mode in range(len(WANTED) + 1)]
    for path in paths:
        compile_to(box, path, "-fomit-frame-pointer", "-fno-optimize-sibling-calls", file="guess.c")
    make_tables(box, *paths)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for path in paths:
        box.good(path, MS)
    box.opcontrol("--stop")
    check_ledger(box.check_ledger(with_files=False))
    for path, (function, ends) in zip(paths, WANTED):
        check_guess(path, stacks(box, path), function, ends)
    check_handler(paths[-1], stacks(box, paths[-1]))
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
