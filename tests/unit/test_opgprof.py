#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gprof reads from opgprof's files, and what opgprof refuses. Run from the build directory by
`make check`.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import ALL, put_image, write_samples  # noqa: E402

OPGPROF = os.path.abspath(os.environ.get("OPGPROF", "bin/opgprof"))
PROGRAM = "void hot(void) { }\nvoid warm(void) { hot(); }\nvoid cold(void) { warm(); }\nint main(void) { cold(); return 0; }\n"
FUNCTIONS = ("hot", "warm", "cold", "main")


class Gprof(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.gmon = os.path.join(self.dir, "gmon")
        self.build()

    def build(self, *options):
        source, self.program = os.path.join(self.dir, "prog.c"), os.path.join(self.dir, "prog")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-o", self.program, source,
                        *options], check=True)
        ranges = elfsyms.symbol_ranges(self.program, FUNCTIONS)
        self.at = {name: ranges[name][0] for name in FUNCTIONS}

    def put(self, counts, **kwargs):
        put_image(self.dir, self.program, [(self.at[name] + 1, count) for name, count in counts.items()], **kwargs)

    def put_calls(self, *calls):
        below = "{root}%s/{dep}/{root}%s/{cg}/{root}%s/TIMER.0.0.%s" % (3 * (self.program,) + (ALL,))
        write_samples(os.path.join(self.dir, "samples/current", below), [(self.at[a] << 32 | self.at[b], n) for a, b, n in calls])

    def run_tool(self, *arguments, rc=0):
        done = subprocess.run([OPGPROF, "--session-dir=" + self.dir, "-o", self.gmon, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, universal_newlines=True)
        self.assertEqual((done.returncode, done.stdout), (rc, ""), done.stderr)
        return done.stderr

    def gprof(self, *options):
        return subprocess.run(["gprof", "-b", *options, self.program, self.gmon], stdout=subprocess.PIPE, check=True,
                              universal_newlines=True).stdout

    def flat(self):
        return {m[2]: float(m[1]) for m in re.finditer(r"^ *[0-9.]+ +[0-9.]+ +([0-9.]+) .*?(\w+)$", self.gprof("-p"), re.M)}

    def test_flat_profile(self):
        for options in ((), ("-no-pie", "-fno-pie")):
            self.build(*options)
            self.put({"hot": 60, "warm": 30, "cold": 10})
            self.run_tool()
            self.assertEqual(self.flat(), {"hot": 60, "warm": 30, "cold": 10}, options)

    def test_calls(self):
        self.put({"hot": 60, "warm": 30})
        self.put_calls(("warm", "hot", 7), ("cold", "warm", 5), ("main", "cold", 2))
        self.run_tool()
        text = self.gprof("-q")
        self.assertRegex(text, r"(?m)^ +\d.* 7/7 +hot \[")
        self.assertRegex(text, r"(?m)^ +\d.* 5/5 +warm \[")
        self.assertRegex(text, r"(?m)^ +\d.* 2/2 +cold \[")

    def test_form(self):
        put_image(self.dir, self.program, [((self.at["hot"] + 4) & ~3, 70000)])
        self.assertIn("65535", self.run_tool())
        with open(self.gmon, "rb") as stream:
            data = stream.read()
        self.assertEqual(data[:20], b"gmon" + struct.pack("<I", 1) + bytes(12))
        tag, low, high, bins, rate, unit, mark = struct.unpack_from("<BQQII15sc", data, 20)
        self.assertEqual((tag, rate, unit.rstrip(b"\0"), mark), (0, 1, b"samples", b"1"))
        self.assertEqual((high - low, bins), (8, 1))
        self.assertEqual(data[20 + 41:], struct.pack("<H", 65535))

    def test_threshold(self):
        self.put({"hot": 90, "warm": 10})
        self.run_tool("-t", "50")
        self.assertEqual(self.flat(), {"hot": 90})

    def test_application_without_its_libraries(self):
        self.put({"hot": 9})
        put_image(self.dir, "/not/there.so", [(16, 5)], app=self.program)
        self.run_tool()
        self.assertEqual(self.flat(), {"hot": 9})

    def test_image_of_others(self):
        self.put({"hot": 9}, app="/one")
        self.put({"hot": 1, "warm": 2}, app="/two")
        self.run_tool()
        self.assertEqual(self.flat(), {"hot": 10, "warm": 2})

    def test_what_is_replaced(self):
        """A profile of before, nothing else: not the program that it is of."""
        self.put({"hot": 9})
        with open(self.program, "rb") as stream:
            before = stream.read()
        self.assertIn("it is not a profile for gprof", self.run_tool("-o", self.program, rc=1))
        with open(self.program, "rb") as stream:
            self.assertEqual(stream.read(), before)
        for _ in range(2):
            self.run_tool()
            self.assertEqual(self.flat(), {"hot": 9})
        self.run_tool("-o", "/dev/null")

    def test_refusals(self):
        self.put({"hot": 9})
        put_image(self.dir, "/not/there", [(16, 5)])
        self.assertIn("more than one image", self.run_tool(rc=1))
        self.assertIn("cannot be read", self.run_tool("/not/there", rc=1))
        self.put({"hot": 9}, event="OTHER.5.0." + ALL)
        self.assertIn("more than one event", self.run_tool(self.program, rc=1))
        self.run_tool(self.program, "event:OTHER")
        subprocess.run(["strip", self.program], check=True)
        self.assertIn("no symbols", self.run_tool(self.program, "event:OTHER", rc=1))


if __name__ == "__main__":
    unittest.main()
