#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""scripts/test itself, with a list of cases made for this test: verdicts, the second try of a system
test, the closing lines, and the order of the next run.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
CHECKS = """# shellcheck shell=bash
is_built() { true; }
need_build() { true; }
once() { [ -e "$top/second" ] || { touch "$top/second"; echo "not yet"; return 1; }; }
say_and() { echo "$1"; return "$2"; }
list_checks() {
%s
}
"""
PASSES = "check compute - unit/good true"
SLOW = "check compute - unit/slow sleep 2"
SKIPS = "check compute - unit/skipped say_and 'skip: no such thing here' 77"
UNIT_FAILS = "check compute - unit/bad say_and 'this is why' 1"
SYSTEM_FAILS = "check system - gcc/system/bad say_and 'this is why' 1"
SYSTEM_FLAKY = "check system - gcc/system/sometimes once"


@unittest.skipIf(os.geteuid() != 0, "scripts/test needs root")
class Runner(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        os.chmod(self.top, 0o755)
        os.mkdir(os.path.join(self.top, "scripts"))
        for name in ("test", "lib.sh"):
            shutil.copy(os.path.join(SOURCE, "scripts", name), os.path.join(self.top, "scripts"))
        self.write("bin/dpkg-query", "#!/bin/sh\necho installed\n")
        self.write("configure", "#!/bin/sh\n")

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(text)
        os.chmod(path, 0o755)

    def run_it(self, cases, *args):
        """Exit code and lines of output."""
        self.write("scripts/checks.sh", CHECKS % "\n".join(cases))
        # lib.sh sets PATH itself, so the program of the test is named there
        with open(os.path.join(self.top, "scripts", "lib.sh"), encoding="ascii") as stream:
            text = stream.read()
        self.write("scripts/lib.sh", text.replace("export PATH=", "export PATH=%s/bin:" % self.top))
        done = subprocess.run(["bash", os.path.join(self.top, "scripts", "test"), *args], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_good_and_skipped(self):
        rc, lines, _err = self.run_it([PASSES, SKIPS])
        self.assertEqual((rc, lines[-2:]), (0, ["== 0 flaky", "1 passed, 0 failed, 1 skipped"]))
        self.assertIn("skip unit/skipped (no such thing here)", lines)

    def test_no_second_try_of_a_unit_test(self):
        rc, lines, _err = self.run_it([PASSES, UNIT_FAILS])
        self.assertEqual((rc, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("     | this is why", lines)
        self.assertFalse([line for line in lines if line.startswith("again ")])

    def test_flaky(self):
        rc, lines, _err = self.run_it([SYSTEM_FLAKY, PASSES])
        self.assertEqual((rc, lines[-2:]),
                         (0, ["== 1 flaky, passed at the second try: gcc/system/sometimes", "2 passed, 0 failed"]))
        line, = (line for line in lines if line.startswith("flaky "))
        first, second = (os.path.join(self.top, "build-test", "log", "gcc", "system", name) for name in ("sometimes.first.log",
                         "sometimes.log"))
        self.assertTrue(first in line and second in line, line)
        with open(first, encoding="ascii") as stream:
            self.assertEqual(stream.read(), "not yet\n")
        self.assertTrue(os.path.exists(second))

    def test_a_system_test_that_fails_twice(self):
        rc, lines, _err = self.run_it([SYSTEM_FAILS, PASSES])
        self.assertEqual((rc, lines[-2:]), (1, ["== 0 flaky", "1 passed, 1 failed"]))
        failed = next(i for i, line in enumerate(lines) if line.startswith("FAIL "))
        self.assertLess(lines.index("ok   unit/good (0 s, 0 s of CPU time)"), failed)

    def test_many_failures_are_not_chance(self):
        rc, lines, _err = self.run_it([SYSTEM_FAILS.replace("bad", "bad%d" % i) for i in range(13)])
        self.assertEqual((rc, lines[-1]), (1, "0 passed, 13 failed"))
        self.assertEqual(sum(line.startswith("again ") for line in lines), 10)

    def test_the_longest_comes_first(self):
        cases = [PASSES.replace("compute", "alone"), SLOW.replace("compute", "alone")]
        for names in (["unit/good", "unit/slow"], ["unit/slow", "unit/good"]):
            rc, lines, _err = self.run_it(cases)
            self.assertEqual((rc, [line.split()[1] for line in lines if line.startswith("ok ")]), (0, names))
        with open(os.path.join(self.top, "build-test", "durations"), encoding="ascii") as stream:
            self.assertRegex(stream.readline(), r"^[2-9]\d* unit/slow$")
        slowest = lines.index(next(line for line in lines if line.startswith("== the slowest cases")))
        self.assertRegex(lines[slowest + 1], r"^ +\d+ s unit/slow$")

    def test_a_clone_that_only_root_may_enter(self):
        os.chmod(self.top, 0o700)
        rc, lines, _err = self.run_it([PASSES])
        place = lines[0].rsplit(" ", 1)[1]
        self.addCleanup(shutil.rmtree, place)
        self.assertEqual((rc, lines[0]), (0, "== only root may enter %s: building in %s" % (self.top, place)))
        self.assertTrue(os.path.exists(os.path.join(place, "log", "unit", "good.log")))

    def test_a_place_that_somebody_else_made(self):
        """The name of the directory in /var/tmp can be guessed."""
        place = "/var/tmp/opd-build-test.%d" % os.stat(self.top).st_ino
        os.chmod(self.top, 0o700)
        os.mkdir(place)
        self.addCleanup(lambda: os.unlink(place) if os.path.islink(place) else shutil.rmtree(place))
        os.chown(place, 65534, 65534)
        self.check_refused(place)
        os.rmdir(place)
        os.symlink(os.path.join(self.top, "bin"), place)
        self.check_refused(place)
        self.assertEqual(os.listdir(place), ["dpkg-query"])

    def check_refused(self, place):
        rc, lines, err = self.run_it([PASSES])
        self.assertEqual((rc, len(lines)), (1, 1))
        self.assertEqual(err, "test: %s belongs to somebody else; remove it, or let users enter %s\n" % (place, self.top))

    def test_pattern(self):
        rc, lines, _err = self.run_it([PASSES, UNIT_FAILS], "goo")
        self.assertEqual((rc, lines[-1]), (0, "1 passed, 0 failed"))
        rc, _lines, err = self.run_it([PASSES], "nothing-like-it")
        self.assertEqual((rc, err), (1, "test: no case has a name with: nothing-like-it\n"))


if __name__ == "__main__":
    unittest.main()
