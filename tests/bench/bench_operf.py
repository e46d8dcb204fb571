#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures operf beside perf record on the same command. Usage: bench_operf.py [ROUNDS], default 15.

Four commands: `spin`, one busy process; `compile`, the C compiler four times, with forks, mappings
and exits; `many`, a shell that runs 300 programs; `short`, a program that does nothing. Each round
runs the command alone, with operf, and with perf record, all as nobody and with the same event and
period (cpu-clock of user code, 1 kHz), and then the report of the functions; `many` and `short`
have hardly any samples to report. Every second round does it backwards. CPU time is that of wait4,
with all children: what a profiler costs is the difference from the command alone. `own` is the CPU
time of the profiler itself, without what the command pays for events in its context switches, forks
and exits.

The command alone varies by more than a profiler costs. So the verdict is of pairs: the CPU time
with operf minus that with perf in the same round, and the 95 % interval of the median of these
differences. The aims: to profile, and to profile and report, costs no more CPU time than with perf.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

import bench
import opdtest
from opdtest import Skip, require

NOBODY = 65534
PERIOD_NS = 1000000
SPIN_MS, COMPILES, PROGRAMS = 3000, 4, 300


class Bench:
    def __init__(self, box):
        self.box, self.path = box, os.path.join(box.dir, "home")
        os.mkdir(self.path)
        with open(os.path.join(self.path, "bench.c"), "w", encoding="ascii") as stream:
            stream.write(bench.source_text())
        os.chown(self.path, NOBODY, NOBODY)
        self.session, self.data = (os.path.join(self.path, name) for name in ("oprofile_data", "perf.data"))
        work = box.copy_work("spin-app")
        self.commands = {
            "spin": [work, "spin", SPIN_MS],
            "compile": ["sh", "-c", "i=0; while [ $i -lt %d ]; do gcc -O1 -c bench.c -o bench.o; i=$((i + 1)); done" % COMPILES],
            "many": ["sh", "-c", "i=0; while [ $i -lt %d ]; do /bin/true; i=$((i + 1)); done" % PROGRAMS],
            "short": ["true"],
        }

    def spend(self, *words):
        """Seconds of CPU of a program and its children, of the clock, and of CPU of the program itself."""
        words = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups", *map(str, words)]
        begun = time.monotonic()
        child = subprocess.Popen(words, cwd=self.path, env=self.box.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with open("/proc/%d/schedstat" % child.pid, encoding="ascii") as stream:
            own = int(stream.read().split()[0]) / 1e9
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        require(status == 0, "%s: %d" % (words, status))
        return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, own

    def operf(self, command):
        shutil.rmtree(self.session, ignore_errors=True)
        return self.spend(os.path.join(self.box.bin, "operf"), "--events=cpu-clock:%d:0:0:1" % PERIOD_NS, *command)

    def perf(self, command):
        return self.spend("perf", "record", "-q", "--no-buildid", "-e", "cpu-clock:u", "-c", PERIOD_NS, "-o", self.data, *command)

    def operf_report(self):
        return self.spend(os.path.join(self.box.bin, "opreport"), "-l")

    def perf_report(self):
        return self.spend("perf", "report", "-i", self.data, "--stdio", "-q")

    def round(self, command, has_report, backwards):
        """CPU seconds, clock and own CPU seconds of each way to run the command; of both reports the CPU seconds."""
        ways = [("alone", lambda: self.spend(*command), None),
                ("operf", lambda: self.operf(command), self.operf_report),
                ("perf", lambda: self.perf(command), self.perf_report)]
        row = {}
        for name, take, report in reversed(ways) if backwards else ways:
            row[name] = take() + (report()[0] if report and has_report else 0,)
        row["bytes"] = bench.disk_bytes(self.session), bench.disk_bytes(self.data)
        return row


def interval(values):
    """The 95 % interval of the median, by the ranks of a binomial distribution; with few values, all of them."""
    ordered, count = sorted(values), len(values)
    rank = max(0, int((count - 1.96 * count ** 0.5) / 2))
    return ordered[rank], ordered[count - 1 - rank]


def print_costs(rows):
    """Prints what operf and perf cost; returns the medians of profiling, and of profiling and reporting."""
    medians = {}
    for who in ("operf", "perf"):
        median = lambda cost: statistics.median(cost(row[who], row["alone"]) for row in rows)
        medians[who] = median(lambda run, alone: run[0] - alone[0]), median(lambda run, alone: run[0] - alone[0] + run[3])
        print("%-6s profile %7.1f ms of CPU, own %6.1f ms, %7.1f ms longer; report %7.1f ms of CPU; both %7.1f ms" %
              (who, 1000 * medians[who][0], 1000 * median(lambda run, _: run[2]),
               1000 * median(lambda run, alone: run[1] - alone[1]), 1000 * median(lambda run, _: run[3]), 1000 * medians[who][1]))
    print("disk   operf %d KiB, perf.data %d KiB" % tuple(n // 1024 for n in rows[-1]["bytes"]))
    return medians


def is_met(what, rows, cost, operf, perf):
    low, high = interval([cost(row["operf"]) - cost(row["perf"]) for row in rows])
    ratio = ", medians %.2f of it" % (operf / perf) if perf > 0 else ""
    print("aim (%s: no more CPU time than perf): %s, operf minus perf %+.1f to %+.1f ms%s" %
          (what, bench.verdict(high <= 0 or low > 0, high <= 0), 1000 * low, 1000 * high, ratio))
    return high <= 0


def measure(rounds):
    def test(box):
        if not shutil.which("perf"):
            raise Skip("perf is not installed (Debian package linux-perf)")
        runs, good = Bench(box), True
        for name, command in runs.commands.items():
            bench.say("%s: %d rounds" % (name, rounds))
            has_report = name in ("spin", "compile")
            rows = [runs.round(command, has_report, i % 2) for i in range(rounds)]
            medians = print_costs(rows)
            good &= is_met("profile", rows, lambda run: run[0], medians["operf"][0], medians["perf"][0])
            if has_report:
                good &= is_met("profile and report", rows, lambda run: run[0] + run[3], medians["operf"][1], medians["perf"][1])
        require(good, "an aim is not met, or not shown")
    return test


if __name__ == "__main__":
    opdtest.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
