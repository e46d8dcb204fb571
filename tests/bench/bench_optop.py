#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures optop beside perf top. Usage: bench_optop.py [ROUNDS], default 5.

Two processes are busy. In each round both tools draw on a terminal of their own for 15 seconds, one
after the other: every 2 seconds, at 1 kHz. Told are the time until the busy function is shown, CPU
time and memory of the tool, and what opd used meanwhile. The verdict is of rounds: CPU time of
optop and opd divided by that of perf top, and the 95 % interval of the median of these ratios.
"""
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import sys
import termios
import time

import bench
import opdtest
from bench_operf import interval
from opdtest import Skip, require

SECONDS = 15
SIZE = struct.pack("HHHH", 24, 80, 0, 0)
HOT = b"spin_here"


def start(box, words):
    """Its process and its terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe(words[0], words, {**box.env, "TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, SIZE)
    return pid, terminal


def read_until(terminal, end, wanted=None):
    """Seconds until `wanted` was there; the rest is read, too."""
    begin, seen, after = time.monotonic(), b"", None
    while time.monotonic() < end and select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            break  # it has ended
        if wanted and after is None and wanted in seen:
            after = time.monotonic() - begin
    return after


def look(box, *words):
    """(seconds until the first rows, CPU seconds, MiB) of a tool."""
    pid, terminal = start(box, words)
    try:
        first = read_until(terminal, time.monotonic() + SECONDS, HOT)
    finally:
        os.kill(pid, signal.SIGINT)
        read_until(terminal, time.monotonic() + opdtest.CALL_SECONDS)
        usage = os.wait4(pid, 0)[2]
        os.close(terminal)
    require(first is not None, "%s does not show %s" % (words[0], HOT.decode()))
    return first, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def told(name, rows):
    columns = [statistics.median(column) for column in zip(*rows)]
    bench.say("%-10s first rows after %.2f s, %.2f s of CPU in %d s, %.0f MiB" % (name, *columns[:2], SECONDS, columns[2]))


def measure(box, rounds):
    path = os.path.join(box.dir, "busy")
    shutil.copy(box.work, path)
    for _ in range(2):
        box.start(path, "spin", 1000 * 60 * (rounds + 1))
    box.start_daemon("--event=TIMER:1000000", "--stacks=99")
    ours, peers, of_opd = [], [], []
    for _ in range(rounds):
        before = box.status()["cpu_ns"]
        ours.append(look(box, os.path.join(box.bin, "optop"), "-d2"))
        of_opd.append((box.status()["cpu_ns"] - before) / 1e9)
        peers.append(look(box, "perf", "top", "-e", "cpu-clock", "-F", "999", "-d2"))
    told("optop", ours)
    told("perf top", peers)
    bench.say("opd        %.2f s of CPU in %d s" % (statistics.median(of_opd), SECONDS))
    ratios = sorted((our[1] + opd) / peer[1] for our, opd, peer in zip(ours, of_opd, peers))
    low, high = interval(ratios)
    bench.say("CPU time of optop and opd / perf top: median %.2f, 95 %% interval of the median %.2f to %.2f" % (
        statistics.median(ratios), low, high))
    bench.say("aim (not more than perf top): %s" % bench.verdict(high < 1 or low > 1, high < 1))
    require(high < 1, "an aim is not met, or not shown")


def run(box):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    if not os.path.exists(os.path.join(box.bin, "optop")):
        raise Skip("optop is not built: ncurses is missing")
    measure(box, int(sys.argv[1]) if len(sys.argv) > 1 else 5)


if __name__ == "__main__":
    opdtest.run(run)
