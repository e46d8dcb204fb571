#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Users whose file systems keep everybody waiting who looks there (hanging.c): opd answers, the
samples of others are all there and have their names, and opd ends when it is told to, also by
SIGTERM and SIGKILL.
"""
import os
import signal
import stat
import subprocess
import time

import elfsyms
import opdtest
from opdtest import require, wait_until

# A period in step with the scheduler's tick of 4 ms gives a program between 100 busy processes 0.8
# to 1.3 times the samples of its CPU time.
PERIOD_NS = 937000
WORK_MS = 2000
FOUND_SHARE = 0.9  # of the CPU time of the others: interrupts and other virtual machines take some
FUSE = os.makedev(10, 229)
# processes with a file system of their own, and how long it keeps everybody waiting; 0: for ever
ATTACKS = ((1, 0), (2, 0), (100, 0), (1, 5), (100, 5))


class Attack:
    """Processes with file systems that hang, as long as the block lasts."""

    def __init__(self, box, number, seconds):
        self.box, self.number, self.seconds = box, number, seconds
        self.output = os.path.join(box.dir, "hanging.out")

    def said(self):
        with open(self.output, encoding="ascii") as stream:
            return stream.read()

    def __enter__(self):
        directory = os.path.join(self.box.dir, "hanging")
        for name in ("point", "empty"):
            os.makedirs(os.path.join(directory, name), exist_ok=True)
        node = os.path.join(directory, "fuse")
        if not os.path.exists(node):
            os.mknod(node, stat.S_IFCHR | 0o666, FUSE)
            os.chmod(node, 0o666)
        with open(self.output, "wb") as out, open(self.output + ".err", "wb") as err:
            self.child = subprocess.Popen([os.path.join(os.path.dirname(self.box.work), "hanging"), node, directory,
                                           str(self.number), str(self.seconds)], stdin=subprocess.PIPE, stdout=out, stderr=err)
        self.box.children.append(self.child)
        wait_until(lambda: self.is_refused() or self.said().count("runs") == self.number, opdtest.HANG_SECONDS,
                   "the processes do not run")
        if self.is_refused():
            with open(self.output + ".err", encoding="utf-8") as stream:
                raise opdtest.Skip("no FUSE or overlay in a user namespace here: " + stream.read().strip())
        return self

    def is_refused(self):
        return os.path.getsize(self.output + ".err") > 0

    def await_question(self):
        wait_until(lambda: "asked" in self.said(), opdtest.HANG_SECONDS, "nobody looks for the map of code without a file")

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()


def answers(box, what):
    begin = time.monotonic()
    status = box.status()
    print("%s: the status took %.3f s; %d questions without an answer" % (
        what, time.monotonic() - begin, status["looks_unanswered"]))
    return status


def count_of(box, path):
    ranges = elfsyms.symbol_ranges(path, ("hot_a", "hot_b")).values()
    return sum(n for f in box.files(live=True) if f.name.image[1] == path for key, n in f.keys.items()
               if any(start <= key < end for start, end in ranges))


def check_others(box, what, number):
    """A program that begins during the attack has all its samples under its own name."""
    path = box.copy_work("other-%d" % number)
    spent = sum(int(word) for word in box.good(path, "shares", WORK_MS).split())
    answers(box, what)
    box.opcontrol("--dump")
    found = count_of(box, path)
    print("%s: %d samples of another program, for %d periods of CPU time" % (what, found, spent / PERIOD_NS))
    require(found >= FOUND_SHARE * spent / PERIOD_NS, "%s: other programs lose samples or names" % what)


def test(box):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    unanswered = 0
    for i, (number, seconds) in enumerate(ATTACKS):
        what = "%d mounts that hang%s" % (number, " for %d s" % seconds if seconds else "")
        with Attack(box, number, seconds) as attack:
            attack.await_question()
            check_others(box, what, i)
            before, unanswered = unanswered, answers(box, what)["looks_unanswered"]
            require(unanswered > before, what + ": nothing is counted")
    status = box.check_ledger(with_files=False)
    print("the longest turn took %.3f s; %s samples lost in the kernel" % (
        status["turn_longest_ns"] / 1e9, sum(event["lost_kernel"] for event in status["events"])))
    with Attack(box, 2, 0) as attack:
        attack.await_question()
        answers(box, "before the end")
        box.shutdown()
    for number in (signal.SIGTERM, signal.SIGKILL):
        box.start_daemon()
        with Attack(box, 2, 0) as attack:
            attack.await_question()
            answers(box, "before " + number.name)
            begin = time.monotonic()
            box.daemon.send_signal(number)
            ended = box.daemon.wait(opdtest.HANG_SECONDS)
            print("%s ended opd after %.3f s" % (number.name, time.monotonic() - begin))
            require(ended == (0 if number == signal.SIGTERM else -number), "%s: opd ended with %s" % (number.name, ended))
            require(not os.path.exists("/proc/%d" % box.daemon.pid), "opd is still there")


opdtest.run(test, larger_rings=True)
