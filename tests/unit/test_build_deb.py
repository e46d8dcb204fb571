#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""packaging/build-deb names missing packages before it builds anything, says what it does, and runs
the unit tests only with --check. Programs of the test stand for configure and for those of dpkg-dev.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
CONFIGURE = """#!/bin/sh
echo "configure $*" >>"$CALLS"
printf 'distdir:\\n\\tmkdir $(distdir)\\n' >Makefile
"""
HAVE_ALL = "#!/bin/sh\nexit 0\n"
MISS_TWO = """#!/bin/sh
echo "dpkg-checkbuilddeps: error: Unmet build dependencies: debhelper-compat (= 13) libpopt-dev" >&2
exit 1
"""
PACKAGE = """#!/bin/sh
echo "dpkg-buildpackage $*, options $DEB_BUILD_OPTIONS" >>"$CALLS"
sed -n 1p debian/changelog
touch ../opd_1_all.deb
"""
FAIL = "#!/bin/sh\necho the compiler says no\nexit 1\n"


class BuildDeb(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        shutil.copytree(os.path.join(SOURCE, "packaging"), os.path.join(self.dir, "packaging"))
        self.calls = os.path.join(self.dir, "calls")
        self.program("configure", CONFIGURE)
        self.program("bin/dpkg-checkbuilddeps", HAVE_ALL)
        self.program("bin/dpkg-buildpackage", PACKAGE)

    def program(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(text)
        os.chmod(path, 0o755)

    def run_it(self, *args):
        """Exit code, output, errors, and what was called."""
        environment = dict(os.environ, PATH=os.path.join(self.dir, "bin") + ":" + os.environ["PATH"], CALLS=self.calls)
        done = subprocess.run([os.path.join(self.dir, "packaging", "build-deb"), *args, os.path.join(self.dir, "out")],
                              env=environment, capture_output=True, text=True, check=False)
        called = ""
        if os.path.exists(self.calls):
            with open(self.calls, encoding="ascii") as stream:
                called = stream.read()
        return done.returncode, done.stdout, done.stderr, called

    def test_missing_packages_first(self):
        self.program("bin/dpkg-checkbuilddeps", MISS_TWO)
        rc, out, err, called = self.run_it()
        self.assertEqual((rc, out, called), (1, "", ""))
        self.assertEqual(err, "build-deb: packages are missing: sudo apt-get install debhelper libpopt-dev\n")

    def test_no_unit_tests_unless_asked(self):
        rc, out, err, called = self.run_it()
        self.assertEqual((rc, err), (0, ""))
        self.assertIn("configure --quiet --disable-tests\n", called)
        self.assertIn("-Pnocheck, options nocheck parallel=", called)
        self.assertEqual([line.split()[1] for line in out.splitlines()], ["building", "collecting", "building", "done:"])
        self.assertIn("nothing is installed", out)
        self.assertTrue(os.path.exists(os.path.join(self.dir, "out", "opd_1_all.deb")))

    def test_check(self):
        rc, out, _err, called = self.run_it("--check")
        self.assertEqual(rc, 0)
        self.assertIn("configure --quiet --enable-tests\n", called)
        self.assertNotIn("nocheck", called)
        self.assertIn("running the unit tests", out)

    def test_failure_shows_the_log(self):
        self.program("bin/dpkg-buildpackage", FAIL)
        rc, _out, err, _called = self.run_it()
        self.assertEqual(rc, 1)
        self.assertEqual(err, "the compiler says no\nbuild-deb: failed: building the package\n")

    def test_progress(self):
        """While the compiler works it says how many files there are, until this test has read it."""
        go = os.path.join(self.dir, "go")
        self.program("bin/dpkg-buildpackage", "#!/bin/sh\nmkdir libop tools && touch libop/a.c libop/b.c tools/c.c libop/a.o\n"
                     "while [ ! -e '%s' ]; do sleep 0.1; done\ntouch ../opd_1_all.deb\n" % go)
        environment = dict(os.environ, PATH=os.path.join(self.dir, "bin") + ":" + os.environ["PATH"], CALLS=self.calls)
        with subprocess.Popen([os.path.join(self.dir, "packaging", "build-deb"), os.path.join(self.dir, "out")], env=environment,
                              stdout=subprocess.PIPE, text=True) as child:
            lines = []
            for line in child.stdout:
                lines.append(line)
                if line.startswith("     ..."):
                    with open(go, "wb"):
                        pass
            self.assertEqual(child.wait(), 0)
        self.assertTrue([line for line in lines if line.endswith(" s: 1 of about 3 files compiled\n")], lines)

    def test_version(self):
        rc, out, _err, _called = self.run_it("--verbose", "--version", "7.0-1")
        self.assertEqual(rc, 0)
        self.assertIn("(7.0-1)", out)


if __name__ == "__main__":
    unittest.main()
