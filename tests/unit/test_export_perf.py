#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --format=perf: perf report and perf script show the stacks of opreport.

Run from the build directory by `make check`.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
from stack_session import CUT, FRAME, PROG, StackCase  # noqa: E402
from sample_files import write_ledger  # noqa: E402


@unittest.skipUnless(shutil.which("perf"), "perf is not installed (linux-perf)")
class Perf(StackCase):
    def export(self, *options):
        self.path = os.path.join(self.dir, "perf.data")
        self.report("--format=perf", "--output-file=" + self.path, *options)

    def perf(self, *arguments):
        done = subprocess.run(["perf", arguments[0], "-i", self.path, *arguments[1:]], capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, HOME=self.dir, LC_ALL="C", DEBUGINFOD_URLS="", PERF_CONFIG="/dev/null"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.perf_errors = done.stderr.decode()
        return done.stdout.decode(errors="surrogateescape")

    def stacks(self):
        """The stacks of perf script, weighted by their periods, with the name of the process."""
        stacks = collections.Counter()
        for sample in self.perf("script", "-F", "comm,tid,period,event,ip,sym", "--max-stack=1024").split("\n\n"):
            lines = [line for line in sample.splitlines() if line.strip()]
            if lines:
                head = re.match(r" *(\S+) +\d+ +(\d+) ", lines[0])
                stacks[";".join([head.group(1)] + [line.split()[1] for line in lines[:0:-1]])] += int(head.group(2))
        return stacks

    def folded(self, *options):
        """The same from opreport. perf knows no ends."""
        stacks = collections.Counter()
        for line in self.report("--format=folded", "--by=comm", *options).splitlines():
            stack, count = line.rsplit(" ", 1)
            stacks[";".join(name for name in stack.split(";") if name[0] != "[")] += int(count)
        return stacks

    def fill(self):
        super().fill()
        self.store.add(self.frames("_start", "cold", "warm", "cold", "warm"), 11, comm="other")
        self.store.add(self.frames("cold", "hot"), 3, thread=2 << 32 | 3, end=CUT)

    def test_stacks(self):
        self.fill()
        self.export()
        self.assertEqual(self.stacks(), self.folded())
        self.export("--focus=hot", "--inline")
        self.assertEqual(self.stacks(), self.folded("--focus=hot"))

    def test_report(self):
        """perf report: period and share of each function, alone and with what it called."""
        self.fill()
        self.export()
        own, whole = collections.Counter(), collections.Counter()
        for stack, count in self.folded().items():
            names = stack.split(";")[1:]
            own[names[-1]] += count
            whole.update({name: count for name in set(names)})
        text = self.perf("report", "--stdio", "--children", "--sort=sym", "-g", "none", "-F",
                         "overhead_children,overhead,period,sym")
        rows = {row[4]: (row[0], row[1], int(row[2])) for row in map(str.split, text.splitlines())
                if len(row) == 5 and row[3] == "[.]"}
        total = sum(own.values())
        self.assertEqual(rows, {name: ("%.2f%%" % (100 * whole[name] / total), "%.2f%%" % (100 * own[name] / total), own[name])
                                for name in whole})
        self.assertIn("Event count (approx.): %d" % total, text)
        self.assertIn("of event 'STACKS:99:0'", text)

    def test_lost(self):
        """perf tells lost / (records + lost): the share of the sessions, also for a part of them."""
        self.fill()
        for lost, words, wanted in ((114, (), "50.00%"), (114, ("cgroup:/a.slice",), "50.00%"), (1026, (), "90.00%"),
                                    (3, (), None)):
            write_ledger(self.session, 50, event="STACKS", count=99, lost_kernel=lost, end_complete=94)
            self.export(*words)
            self.perf("report", "--stdio")
            told = re.search(r"Processed \d+ samples and lost ([\d.]+%)", self.perf_errors)
            self.assertEqual(told and told.group(1), wanted, (lost, words))

    def test_sorts(self):
        """perf report by other keys adds up to what opreport has by process name, thread and image."""
        self.fill()
        self.store.add(self.frames("_start", "hot"), 6)
        self.export()
        self.assertEqual(sum(self.periods("comm").values()), 120)
        groups = collections.Counter()
        for stack, count in self.folded().items():
            groups[stack.split(";")[0]] += count
        self.assertEqual(self.periods("comm"), groups)
        self.assertEqual(self.periods("comm,dso", "--comms=other"), {"prog": 15})
        self.assertEqual(self.periods("sym,srcline", "--symbol-filter=hot")["[.] hot prog.c:1"], 79)
        self.assertEqual({name: count for name, count in self.periods("pid").items() if int(name.split(":")[0]) < 100},
                         {"9:other": 4, "3:prog": 3})

    def periods(self, sort, *more):
        text = self.perf("report", "--stdio", "--no-children", "-g", "none", "--sort=" + sort, "-F", "period," + sort, *more)
        rows = (line.split(None, 1) for line in text.splitlines() if line.strip() and line[0] != "#")
        return {" ".join(name.split()): int(period) for period, name in rows}

    def test_build_id(self):
        self.fill()
        self.export()
        note = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        self.assertIn(re.search(r"Build ID: (\w+)", note).group(1), self.perf("script", "--show-mmap-events"))

    def test_header(self):
        """Hotspot refuses a file without the name of a host. It crashes without a number of CPUs."""
        self.fill()
        self.export()
        self.assertRegex(self.perf("report", "--header-only"), r"# hostname : unknown\n(.*\n)*# nrcpus online : 1\n")

    def test_events(self):
        self.store.add(self.frames("hot"), 5)
        self.store.add(self.frames("hot"), 2, event="page-faults:100:0")
        self.export()
        counts = {}
        for event in re.split("# Samples: ", self.perf("report", "--stdio", "--no-children", "-g", "none", "-F", "period,sym"))[1:]:
            counts[re.search("of event '(.*)'", event).group(1)] = int(re.search(r"Event count \(approx.\): (\d+)", event).group(1))
        self.assertEqual(counts, {"STACKS:99:0": 5, "page-faults:100:0": 2})

    def test_hostile(self):
        for name in ("a\nb", "\x01\x7f", "\"';", "\u202e"):
            self.store.add(self.frames("hot"), 2, comm=name)
        self.store.add([(FRAME, PROG, 1 << 60), (FRAME, 77, (1 << 64) - 1)], 4)
        self.store.add([(FRAME, PROG, self.start["cold"] + n % 5) for n in range(1000)], 3)
        self.store.add([], 5)
        self.export()
        text = self.perf("report", "--stdio", "--no-children", "-g", "none", "-F", "period")
        self.assertIn("Event count (approx.): 20", text)
        self.assertEqual(sum(map(int, re.findall(r"^ +(\d+) *$", text, re.M))), 20)


if __name__ == "__main__":
    unittest.main()
