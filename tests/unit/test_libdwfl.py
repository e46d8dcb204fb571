#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opd's walk finds the frames that libdwfl finds, in recorded stacks of real programs.

Run from the build directory by `make check`.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ORACLE = os.path.abspath("tests/unwind/walk_oracle")
TABLES = os.path.abspath("tools/opd-tables/opd-tables")
SOURCE = os.path.join(os.path.abspath(os.environ.get("srcdir", "..")), "tests", "system", "stacks.c")
RATE, MS = 2000, 800  # samples per second of CPU time
MIN_SAMPLES = 200     # of a program
SAME = 0.995
HANG_SECONDS = 120
SUMS = re.compile(r": (\d+) samples, (\d+) the same \(.*\), (\d+) complete, libdwfl (\d+), (\d+) of these not of opd, ")
PYTHON = "import functools, time\n" \
         "while time.process_time() < %f:\n" \
         " sorted(range(2000), key=functools.cmp_to_key(lambda a, b: (a * 7919 %% 2003) - (b * 7919 %% 2003)))"
PERL = "while ((times)[0] < %f) { my @x = sort { $a * 7919 %% 2003 <=> $b * 7919 %% 2003 } (1 .. 2000); }"


def record(data, *command):
    return subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", str(RATE), "--call-graph", "dwarf,8192",
                           "-o", data, "--", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=HANG_SECONDS, check=False)


class Libdwfl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = tempfile.TemporaryDirectory()
        cls.data = os.path.join(cls.box.name, "perf.data")

    @classmethod
    def tearDownClass(cls):
        cls.box.cleanup()

    def compare(self, *command):
        """Numbers of samples: all, the same, complete, libdwfl's complete ones, of these not opd's."""
        done = record(self.data, *command)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        done = subprocess.run([ORACLE, "--show=1", TABLES, self.data], stdout=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, text)
        nr, same, complete, theirs, less = (int(number) for number in SUMS.search(text).groups())
        self.assertGreaterEqual(nr, MIN_SAMPLES, text)
        self.assertGreaterEqual(same, SAME * nr, text)
        self.assertLessEqual(less, (1 - SAME) * nr, text)
        return nr, complete, theirs

    def test_program_without_frame_pointers(self):
        program = os.path.join(self.box.name, "program")
        subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", program, SOURCE], check=True)
        nr, complete, theirs = self.compare(program, str(MS))
        self.assertGreaterEqual(complete, 0.99 * nr)
        self.assertGreaterEqual(theirs, 0.99 * nr)

    def test_python(self):
        self.compare(sys.executable, "-c", PYTHON % (MS / 1000))

    @unittest.skipUnless(shutil.which("perl"), "perl is missing")
    def test_perl(self):
        self.compare("perl", "-e", PERL % (MS / 1000))


def why_skipped():
    if not os.path.exists(ORACLE):
        return "libdw (libdw-dev) when it is built"
    if not shutil.which("perf"):
        return "perf (linux-perf)"
    with tempfile.NamedTemporaryFile() as data:
        done = record(data.name, "true")
    return "to be allowed to profile: " + done.stderr.decode().strip()[:200] if done.returncode else None


if __name__ == "__main__":
    WHY = why_skipped()
    if WHY:
        print("skip: the test needs " + WHY)
        sys.exit(77)
    unittest.main()
