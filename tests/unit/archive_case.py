# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of a program, and whether their reports are those from home."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
PROGRAM = "int hot(int x) { return x + 1; }\nint warm(int x) { return hot(x) + 2; }\nvoid _start(void) { warm(1); }\n"
FUNCTIONS = ("hot", "warm")
REPORTS = ((), ("-f",), ("-l",), ("-l", "-f", "-g"), ("-d", "-g"), ("-c",), ("-l", "-m", "all"),
           ("--format=json", "-d", "-g", "-f"), ("-l", "-d", "-g", "--inline"), ("--images",))
LISTINGS = (("-s",), ("-a",), ("-s", "-a"))


class ArchiveCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.home, self.away = os.path.join(self.dir, "home"), os.path.join(self.dir, "archive")
        self.session = os.path.join(self.home, "session")
        os.makedirs(self.home)
        self.program = self.build("prog", "-g")

    def build(self, name, *options):
        source, program = os.path.join(self.dir, name + ".c"), os.path.join(self.home, name)
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static",
                        "-fno-pie", "-no-pie", "-o", program, source,
                        *options], check=True)
        os.utime(program, (1, 1))
        return program

    def put(self, program, samples, **kwargs):
        ranges = elfsyms.symbol_ranges(program, FUNCTIONS)
        put_image(self.session, program, [(ranges[name][0], count) for name, count in samples.items()], **kwargs)

    def strip_to_debug_file(self, program):
        debug = program + ".debug"
        for arguments in (["--only-keep-debug", program, debug], ["--strip-all", "--add-gnu-debuglink=" + debug, program]):
            subprocess.run(["objcopy", *arguments], check=True)
        os.utime(program, (1, 1))

    def run_tool(self, tool, *arguments, rc=0, user=None):
        done = subprocess.run([os.path.join(TOOLS, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              **({} if user is None else {"user": user, "group": user, "extra_groups": []}))
        self.assertEqual(done.returncode, rc, done.stderr.decode())
        self.errors = done.stderr.decode()
        return done.stdout.decode()

    def archive(self, *arguments):
        return self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, *arguments)

    def reports(self, *where):
        made = {("opreport", *arguments): self.run_tool("opreport", *arguments, *where) for arguments in REPORTS}
        for arguments in LISTINGS:
            made[("opannotate", *arguments)] = self.run_tool("opannotate", *arguments, *where).split("*/\n", 1)[1]
        return made

    def check_same(self):
        before = self.reports("--session-dir=" + self.session)
        self.archive()
        os.rename(self.home, self.home + ".gone")
        after = self.reports("archive:" + self.away)
        for what, text in before.items():
            self.assertEqual(after[what], text, what)
        os.rename(self.home + ".gone", self.home)
        return before
