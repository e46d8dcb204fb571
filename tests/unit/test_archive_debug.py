#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that debugging information refers to are in an archive: .dwo files, packages, and the
alternate files of dwz. Run from the build directory by `make check`.
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
os.environ["CCACHE_DISABLE"] = "1"  # with CCACHE_NOHASHDIR it gives a program with the paths of another directory
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from archive_case import FUNCTIONS, ArchiveCase  # noqa: E402
from sample_files import put_image  # noqa: E402

INLINING = """static inline __attribute__((always_inline)) int step(volatile int *x) { return *x * 7 + 1; }
int hot(volatile int *x) { return step(x) + 3 * step(x + 1); }
int warm(volatile int *x) { return hot(x) + step(x); }
void _start(void) { int x[2] = { 1, 2 }; warm(x); }
"""


class DebugFiles(ArchiveCase):
    def check_inlined(self, program):
        """The archive has the inlined functions, and nobody misses a file."""
        os.utime(program, (1, 1))
        start, end = elfsyms.symbol_ranges(self.whole, FUNCTIONS)["hot"]
        shutil.rmtree(self.session, ignore_errors=True)
        shutil.rmtree(self.away, ignore_errors=True)
        put_image(self.session, program, [(place, 1) for place in range(start, end)])
        reports = self.check_same()
        self.assertIn("step (inlined by ", reports[("opreport", "-l", "-d", "-g", "--inline")])
        self.assertIn("debug info", reports[("opreport", "--images")])
        self.assertNotIn("missing", self.errors)

    def build_inlining(self, *options, output=None):
        """Builds it in a folder beside that of the program."""
        self.whole = os.path.join(self.dir, "whole")
        source, program = os.path.join(self.dir, "inlining.c"), os.path.join(self.home, "out", "inlining")
        for folder in ("out", "work"):
            shutil.rmtree(os.path.join(self.home, folder), ignore_errors=True)
            os.makedirs(os.path.join(self.home, folder))
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(INLINING)
        compiler, common = shutil.which("gcc") or "clang", ("-O2", "-g", "-nostdlib", "-static", "-fno-pie", "-no-pie", *options)
        for command in ([*common, "-c", "-o", output or "../out/inlining.o", source],
                        [*common, "-o", program, output or "../out/inlining.o"]):
            subprocess.run([compiler, *command], cwd=os.path.join(self.home, "work"), check=True)
        shutil.copy(program, self.whole)
        return program

    def dwo_files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.home) for name in names if name.endswith(".dwo")]

    def test_split(self):
        """The .dwo files are at a path with "..", beside the program, or in a relative directory."""
        for version in ("-gdwarf-4", "-gdwarf-5"):
            with self.subTest(version=version):
                self.check_inlined(self.build_inlining("-gsplit-dwarf", version))
                for options, name in ((("-fdebug-prefix-map=%s/home/work=." % self.dir,), "inlining.o"),
                                      ((), os.path.join(self.home, "work", "whole.o"))):
                    program = self.build_inlining("-gsplit-dwarf", version, *options, output=name)
                    if options:  # the relative path begins at the program
                        for dwo in self.dwo_files():
                            shutil.move(dwo, os.path.dirname(program))
                    self.check_inlined(program)

    def build_relative(self, begin, output):
        """Its .dwo file has a relative path, which begins with `begin`."""
        return self.build_inlining("-gsplit-dwarf", "-fdebug-prefix-map=%s/home/work=%s" % (self.dir, begin), output=output)

    def check_left_out(self, program):
        dwo, = self.dwo_files()
        shutil.rmtree(self.session, ignore_errors=True)
        put_image(self.session, program, [(elfsyms.symbol_ranges(self.whole, FUNCTIONS)["hot"][0], 1)])
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, rc=1)
        self.assertIn(os.path.basename(dwo) + " is left out: reports would look for it at ", self.errors)
        self.assertTrue(os.path.exists(self.away + program))
        with open(os.path.join(self.away, "opd-archive"), encoding="utf-8") as stream:
            self.assertIn("left-out\t%s\n" % os.path.realpath(dwo), stream.read())

    def test_relative_split(self):
        """A relative path with "..", also through a folder that the archive does not have."""
        self.check_inlined(self.build_relative(".", "../out/inlining.o"))
        program = self.build_relative("source", "../out/inlining.o")
        dwo, = self.dwo_files()
        for folder in ("source", "out"):
            os.mkdir(os.path.join(self.home, "out", folder))
        shutil.move(dwo, os.path.join(self.home, "out", "out"))
        self.check_inlined(program)

    def test_split_outside(self):
        """A path that leads out of the archive: the file is left out, and the archive is made."""
        self.check_left_out(self.build_relative(".", "../" * 30 + self.home[1:] + "/out/inlining.o"))

    def test_split_behind_a_link(self):
        """A link comes before "..", so the plain path is another one: the file does not get that."""
        os.makedirs(self.home + "/whole")
        program = self.build_relative("link", "../whole/inlining.o")
        os.makedirs(self.home + "/other/deep")
        os.rename(self.home + "/whole", self.home + "/other/whole")
        os.symlink("../other/deep", self.home + "/out/link")
        self.check_left_out(program)
        self.assertFalse(os.path.exists(self.away + self.home + "/out/whole/inlining.dwo"))

    def test_wrong_split_before_the_right_one(self):
        """A .dwo file of another build beside the program does not hide the one at the recorded path."""
        self.build_inlining("-gsplit-dwarf", "-gdwarf-4", output="inlining.o")
        wrong = os.path.join(self.dir, "wrong.dwo")
        shutil.copy(self.dwo_files()[0], wrong)
        program = self.build_inlining("-gsplit-dwarf", "-gdwarf-5", output="inlining.o")
        dwo, = self.dwo_files()
        shutil.copy(wrong, os.path.join(os.path.dirname(program), os.path.basename(dwo)))
        self.check_inlined(program)

    def test_split_of_another(self):
        """A file that is not the part of the program is not copied, whatever its name is."""
        program = self.build_inlining("-gsplit-dwarf")
        dwo, = self.dwo_files()
        shutil.copy("/etc/passwd", dwo)
        put_image(self.session, program, [(elfsyms.symbol_ranges(program, FUNCTIONS)["hot"][0], 1)])
        self.archive()
        self.assertFalse(os.path.exists(self.away + dwo))
        self.assertTrue(os.path.exists(self.away + program))

    @unittest.skipUnless(shutil.which("dwp"), "no dwp")
    def test_package(self):
        """The package lies beside the program, or beside its debug file."""
        program = self.build_inlining("-gsplit-dwarf", "-gdwarf-4")
        for dwo in self.dwo_files():
            subprocess.run(["dwp", dwo, "-o", program + ".dwp"], check=True)
            os.remove(dwo)
        self.check_inlined(program)
        self.strip_to_debug_file(program)
        os.rename(program + ".dwp", program + ".debug.dwp")
        self.check_inlined(program)

    @unittest.skipUnless(shutil.which("dwz"), "no dwz")
    def test_alternate(self):
        """The alternate debug file, of the program and of its debug file, by a relative path."""
        program = self.build_inlining("-gdwarf-4")
        shutil.copy(program, program + "2")
        subprocess.run(["dwz", "-m", "../alternate", "-M", "../alternate", "inlining", "inlining2"],
                       cwd=os.path.dirname(program), check=True)
        self.check_inlined(program)
        self.strip_to_debug_file(program)
        self.check_inlined(program)


if __name__ == "__main__":
    unittest.main()
