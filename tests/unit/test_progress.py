#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that a terminal shows while a tool works (tools/common/progress.h): after a second, for
the work that opreport and opcheck do, and erased before anything else is written.

Clocks are the test's: each look at one takes STEP_MS. Run from the build directory by `make check`.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
from sample_files import put_image, write_ledger  # noqa: E402
from stack_session import TOOLS, StackCase  # noqa: E402
from terminals import read_terminal  # noqa: E402

ERASE = "\r\x1b[K"
CLOCK = r"""
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static long long passed_ms;
	long long ms = __atomic_add_fetch(&passed_ms, atoll(getenv("STEP_MS")), __ATOMIC_RELAXED);
	(void)clock;
	now->tv_sec = 1700000000 + ms / 1000;
	now->tv_nsec = ms % 1000 * 1000000;
	return 0;
}
"""


class Progress(StackCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.utime(cls.program, (1, 1))  # as the sample files say: no warning on the page
        cls.clock = os.path.join(cls.images, "clock.so")
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-shared", "-fPIC", "-o", cls.clock, "-xc", "-"],
                       input=CLOCK, text=True, check=True)

    def setUp(self):
        super().setUp()
        self.fill()
        self.report("--stacks")  # writes the store
        self.out = os.path.join(self.dir, "out")

    def run_on(self, *command, step_ms=400, term="xterm", stdout=subprocess.DEVNULL, columns="80", rc=0):
        """What the terminal gets that stderr is, and standard output with stdout=None."""
        main, terminal = os.openpty()
        with subprocess.Popen([os.path.join(TOOLS, command[0]), "--session-dir=" + self.dir, *command[1:]], stderr=terminal,
                              stdout=terminal if stdout is None else stdout, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, TERM=term, COLUMNS=columns, TZ="UTC", LC_ALL="C", STEP_MS=str(step_ms),
                                       LD_PRELOAD=self.clock, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")) as process:
            shown = read_terminal(main, terminal, process)
            self.assertEqual(process.wait(), rc, shown)
        return shown.decode().replace("\r\n", "\n")

    def lines(self, shown):
        """The lines that were shown one after the other, the last of which was erased."""
        self.assertTrue(shown.startswith(ERASE) and shown.endswith(ERASE), shown)
        self.assertNotIn("\n", shown)
        return shown.split(ERASE)[1:-1]

    def test_exports(self):
        for form in ("pprof", "perf", "speedscope", "firefox", "callgrind", "folded", "json", "csv", "html"):
            out = self.out + "." + form
            options = ["--html=" + out] if form == "html" else ["--stacks"] if form in ("json", "csv") else []
            if form != "html":
                options += ["--format=" + form, "--output-file=" + out]
            lines = self.lines(self.run_on("opreport", *options))
            self.assertTrue(any(re.fullmatch(r"naming functions: \d+ %", line) for line in lines), (form, lines))
            self.assertIn("writing the page" if form == "html" else "writing stacks", lines, form)
            self.assertGreater(os.path.getsize(out), 50)

    def test_inlined(self):
        lines = self.lines(self.run_on("opreport", "--stacks", "--inline", "--output-file=" + self.out))
        self.assertIn("reading the source lines of " + self.program, lines)

    def test_inlined_of_many(self):
        """Several images: how many there are from the start, then the share that is done."""
        for i in range(5):
            put_image(self.dir, shutil.copy2(self.program, "%s%d" % (self.program, i)), [(self.start["hot"], 1)])
        write_ledger(self.session, 55)
        lines = self.lines(self.run_on("opreport", "--inline", "--output-file=" + self.out))
        at = lines.index("reading the source lines of images: 100 %")
        self.assertIn("reading the source lines of 6 images", lines[:at])

    def test_samples(self):
        lines = self.run_on("opreport", "-l", "--output-file=" + self.out, step_ms=1000).split(ERASE)
        self.assertIn("reading sample files: 0 %", lines)
        self.assertIn("reading the symbols of 1 images", lines)

    def test_not_within_a_second(self):
        self.assertEqual(self.run_on("opreport", "--format=pprof", "--output-file=" + self.out, step_ms=0), "")

    def test_no_terminal(self):
        self.assertEqual(self.run_on("opreport", "--format=pprof", "--output-file=" + self.out, term="dumb"), "")
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "--stacks"], capture_output=True,
                              env=dict(os.environ, TERM="xterm", STEP_MS="400", LD_PRELOAD=self.clock,
                                       ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"), timeout=60, check=True)
        self.assertEqual(done.stderr, b"")
        self.assertNotIn(ERASE.encode(), done.stdout)

    def test_a_report_on_the_terminal(self):
        shown = self.run_on("opreport", "--stacks", "--no-pager", stdout=None)
        self.assertIn(ERASE + "naming functions: ", shown)
        *lines, report = shown.split(ERASE)
        self.assertFalse([line for line in lines if "\n" in line])
        self.assertIn("prog\n", report)

    def test_a_pipe_that_may_go_to_the_terminal(self):
        """Nothing is shown after the report has begun: a pager may show it."""
        shown = self.run_on("opreport", "--format=folded", stdout=subprocess.PIPE)
        self.assertNotIn("writing stacks", self.lines(shown))
        with tempfile.TemporaryFile() as out:
            self.assertIn("writing stacks", self.lines(self.run_on("opreport", "--format=folded", stdout=out)))

    def test_a_warning(self):
        with open(os.path.join(self.session, "stacks"), "r+b") as stream:
            stream.seek(-32, os.SEEK_END)
            stream.write(b"\xff" * 32)
        shown = self.run_on("opreport", "--format=pprof", "--output-file=" + self.out, step_ms=1000)
        self.assertRegex(shown, ERASE.replace("[", r"\[") + r"warning: [^\r]*damaged nodes are left out\n")

    def test_narrow(self):
        lines = self.lines(self.run_on("opreport", "--stacks", "--output-file=" + self.out, columns="12"))
        self.assertEqual(max(map(len, lines)), 11)

    def test_opcheck(self):
        shown = self.run_on("opcheck", step_ms=1000, rc=2)  # the ledger has more samples
        self.assertIn(ERASE + "current: 1 sample files" + ERASE, shown)
        self.assertTrue(shown.endswith(ERASE), shown)
        for options in (["--quiet"], ["--json"]):
            self.assertEqual(self.run_on("opcheck", *options, step_ms=1000, rc=2), "", options)


if __name__ == "__main__":
    unittest.main()
