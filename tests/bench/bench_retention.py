#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What many sample files cost a daemon that does nothing else: usage: bench_retention.py [--files=N]
[--minutes=N] [PEER], default 100000 files and 3 minutes. PEER is another opd to compare with.

The files are in 300 sessions, a fifth of them in the current one. Of the others half were closed by
time, half were saved. The daemons run at the same time, and do not sample. One has no files: the
others are compared with it. The CPU time is that of the process, also of threads that ended.
"""
import argparse
import os
import sys
import time

import bench
from bench import opdtest
from opdtest import Box, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
import sample_files  # noqa: E402

AIM_PERCENT = 0.1
NR_SESSIONS = 300
FILES_OF_DIR, FILES_OF_APP = 2, 20
SETTLE_SECONDS = 20


def make_files(path, nr_files):
    """Empty files at the depth of sample files, two of an image, twenty of an application."""
    for i in range(nr_files):
        app, image = i // FILES_OF_APP, i // FILES_OF_DIR
        directory = os.path.join(path, "{root}/usr/bin/app%d/{dep}/{root}/usr/lib/x86_64-linux-gnu/image%d" % (app, image))
        if i % FILES_OF_DIR == 0:
            os.makedirs(directory)
        with open(os.path.join(directory, "TIMER.1000000.0.all.%d.all" % (i % FILES_OF_DIR)), "wb"):
            pass


def make_sessions(box, nr_files):
    samples, nr_current = os.path.join(box.session, "samples"), nr_files // 5
    for i in range(NR_SESSIONS - 1 if nr_files else 0):
        path = os.path.join(samples, "2026-01-%02dT%02d:00Z" % (1 + i // 24, i % 24) if i % 2 else "saved-%d" % i)
        make_files(path, (nr_files - nr_current) * (i + 1) // (NR_SESSIONS - 1) - (nr_files - nr_current) * i // (NR_SESSIONS - 1))
        sample_files.write_ledger(path, 0, "rotated" if i % 2 else "saved")
    make_files(os.path.join(samples, "current"), nr_current)


def cpu_ms(box):
    """By the CPU-time clock of the process, clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~box.daemon.pid << 3) | 2) / 1e6


def start(box, program, nr_files):
    box.use_program(program)
    box.configure(SessionInterval="365d", SessionKeep="0", SessionKeepFree="0", SessionMaxUse="1T")
    make_sessions(box, nr_files)
    box.start_daemon(start=False)


def report(boxes, minutes):
    time.sleep(SETTLE_SECONDS)
    before = {name: cpu_ms(box) for name, box in boxes.items()}
    time.sleep(60 * minutes)
    spent = {name: cpu_ms(box) - before[name] for name, box in boxes.items()}
    percents = {name: (spent[name] - spent["empty"]) / (600 * minutes) for name in boxes}
    print("%-10s %22s %24s %28s" % ("", "CPU ms until settled", "CPU ms in each minute", "% of a CPU for the files"))
    for name in boxes:
        print("%-10s %22.0f %24.1f %28.3f" % (name, before[name], spent[name] / minutes, percents[name]))
    if "peer" in boxes:
        print("peer / opd: %.0f" % (percents["peer"] / max(percents["opd"], 1e-3)))
    return percents["opd"]


def bench_retention(options):
    def test(box):
        boxes = {"empty": Box(), "opd": box}
        if options.peer:
            boxes["peer"] = Box()
        try:
            for name, each in boxes.items():
                start(each, os.path.abspath(options.peer) if name == "peer" else box.program, options.files * (name != "empty"))
            print("%d files in %d sessions, %d minutes" % (options.files, NR_SESSIONS, options.minutes), flush=True)
            percent = report(boxes, options.minutes)
        finally:
            for each in boxes.values():
                each.close()
        print("aim (under %.1f %% of a CPU): %s, with %.3f %%" % (AIM_PERCENT, bench.verdict(True, percent < AIM_PERCENT), percent))
        require(percent < AIM_PERCENT, "the aim is not met")
    return test


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=100000)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("peer", nargs="?")
    return parser.parse_args()


if __name__ == "__main__":
    opdtest.run(bench_retention(options()))
