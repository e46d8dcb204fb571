#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --format=bolt: the flat samples of a program as llvm-bolt reads them.

Run from the build directory by `make check`.
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

TOOLS = os.path.abspath(os.environ.get("OPD_BINDIR", "bin"))
BOLT = next(filter(None, map(shutil.which, ["llvm-bolt"] + ["llvm-bolt-%d" % n for n in range(30, 15, -1)])), None)
# Two files have a local function of the same name.
FILES = {"a.c": """
int second(int);
static __attribute__((noinline)) int twin(int x) { if (x & 1) return x * 3; return x / 5; }
int first(int x) { return twin(x) + twin(x + 1); }
int main(int argc, char **argv) { (void)argv; return first(argc) + second(argc); }
""", "b.c": """
static __attribute__((noinline)) int twin(int x) { if (x & 2) return x * 7; return x / 3; }
int second(int x) { return twin(x) - twin(x + 1); }
"""}


class Bolt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        for name, text in FILES.items():
            with open(os.path.join(cls.images, name), "w", encoding="ascii") as stream:
                stream.write(text)
        cls.program = os.path.join(cls.images, "prog")
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O1", "-Wl,--emit-relocs", "-o", cls.program,
                        *(os.path.join(cls.images, name) for name in FILES)], check=True)
        cls.symbols = []  # name, file offset
        table = subprocess.run(["readelf", "-sW", cls.program], capture_output=True, text=True, check=True).stdout
        text = subprocess.run(["readelf", "-SW", cls.program], capture_output=True, text=True, check=True).stdout
        address, offset = (int(digits, 16) for digits in re.search(r" \.text +PROGBITS +(\w+) (\w+)", text).groups())
        table = table[table.index("'.symtab'"):]
        for row in re.finditer(r"^ *\d+: (\w+) +\d+ FUNC +(LOCAL|GLOBAL) +\w+ +\d+ (first|second|main|twin)$", table, re.M):
            cls.symbols.append((row.group(3), int(row.group(1), 16) - address + offset))
        cls.symbols.sort(key=lambda symbol: symbol[1])
        cls.at = {name: where for name, where in cls.symbols if name != "twin"}
        cls.twins = [where for name, where in cls.symbols if name == "twin"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.session = os.path.join(self.dir, "samples", "current")

    def put(self, samples):
        put_image(self.dir, self.program, samples)
        write_ledger(self.session, sum(count for _, count in samples))

    def report(self, *options, rc=0):
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "--format=bolt", *options],
                              capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, rc, done.stderr)
        self.err = done.stderr
        return done.stdout

    def fill(self):
        self.put([(self.at["main"], 5), (self.at["main"] + 4, 7), (self.at["first"] + 3, 20), (self.at["second"] + 1, 9),
                  (self.twins[0] + 2, 40), (self.twins[1] + 6, 60)])

    def test_lines(self):
        self.fill()
        lines = self.report().splitlines()
        self.assertRegex(lines[0], r"\Ano_lbr \S+\Z")
        self.assertEqual(sorted(lines[1:]), sorted(["1 main 0 5", "1 main 4 7", "1 first 3 20", "1 second 1 9", "1 twin/1 2 40",
                                                    "1 twin/2 6 60"]))

    def test_samples_outside_are_told(self):
        self.put([(self.at["main"], 5), (8, 2)])
        self.assertIn("1 main 0 5\n", self.report())
        self.assertIn("2 samples are in no function", self.err)
        shutil.rmtree(self.session)
        self.put([(8, 2)])
        self.report(rc=1)
        self.assertIn("no sample is in a function", self.err)

    def test_libraries_are_left_out(self):
        self.fill()
        put_image(self.dir, shutil.which("true"), [(64, 3)], app=self.program)
        self.assertEqual(len(self.report().splitlines()), 7)

    def test_refused(self):
        self.fill()
        put_image(self.dir, shutil.which("true"), [(64, 3)])
        self.report(rc=1)
        self.assertIn("one program", self.err)
        kept = os.path.join(self.dir, "kept")
        with open(kept, "w", encoding="ascii") as stream:
            stream.write("what was there")
        self.report("-o", kept, rc=1)
        with open(kept, encoding="ascii") as stream:
            self.assertEqual(stream.read(), "what was there")
        self.assertEqual(len(self.report(self.program).splitlines()), 7)
        put_image(self.dir, self.program, [(self.at["main"], 5)], event="TIMER.7.0.all.all.all")
        self.report(self.program, rc=1)
        self.assertIn("one event", self.err)
        self.report("--stacks", rc=1)
        self.assertIn("--stacks", self.err)
        self.report("--inline", rc=1)
        self.assertIn("--format=bolt", self.err)

    @unittest.skipUnless(BOLT, "llvm-bolt is not installed (bolt-19)")
    def test_bolt_knows_the_functions(self):
        """llvm-bolt finds the samples of all five functions, and its program still runs."""
        self.fill()
        data, made = os.path.join(self.dir, "prog.fdata"), os.path.join(self.dir, "prog.bolt")
        self.report("--output-file=" + data)
        done = subprocess.run([BOLT, self.program, "-o", made, "-data=" + data, "-reorder-blocks=ext-tsp",
                               "-reorder-functions=hfsort"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout + done.stderr
        self.assertIn("no LBR", text)
        self.assertRegex(text, r"\b5 out of \d+ functions in the binary .* have non-empty execution profile")
        codes = [subprocess.run([program], check=False).returncode for program in (self.program, made)]
        self.assertEqual(codes[0], codes[1])


if __name__ == "__main__":
    unittest.main()
