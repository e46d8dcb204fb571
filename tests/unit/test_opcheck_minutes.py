#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcheck: the minutes of a session add up, by application and image, to its sample files and to its
file of stacks. What a minute does not keep apart belongs to its application, or to its event. Run
from the build directory.
"""
import os
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
sys.dont_write_bytecode = True
import test_report_window  # noqa: E402
from stack_session import PROG, TOOLS, Store  # noqa: E402
from test_report_window import APP, CGROUP, FUNCTION, OF_STACKS, SAMPLES  # noqa: E402

OTHER = 2  # a second program
APP_FAULT, IMAGE_FAULT = ("the minutes of an %s do not add up to its files" % what for what in ("application", "image"))


class Minutes(test_report_window.Window):
    def setUp(self):
        self.change = lambda line: line
        super().setUp()
        store = Store()
        store.add(self.frames("_start", "cold", "warm", "hot"), 100, event=test_report_window.STACKS)
        store.write(os.path.join(self.session, "stacks"))
        path = os.path.join(self.session, "dcookies")
        with open(path, "a", encoding="ascii") as stream:
            stream.write("\t".join(map(str, (OTHER, "file", "/bin/other", "/bin/other", "-", "-", "-", "0:0", 0, 0,
                                             "0.000000000", 0, 0, 1, 1))) + "\n")

    def minute_lines(self, number):
        for line in super().minute_lines(number):
            if line.startswith("event STACKS"):
                line += " 4"  # its role
            if line.startswith("block"):
                yield "row 0 before %d" % sum(self.sums(0, number).values())
                yield "row 1 before %d" % (10 * number)
            yield from [self.change(line)] if number == 3 else [line]

    def opcheck(self):
        """The faults of the timeline."""
        os.unlink(os.path.join(self.session, "timeline"))
        self.write_minutes(range(10))
        done = subprocess.run([os.path.join(TOOLS, "opcheck"), "--session-dir=" + self.dir], capture_output=True, text=True,
                              timeout=120, check=False)
        return [line for line in (done.stdout + done.stderr).splitlines() if "minute" in line]

    def replaced(self, old, new):
        seen = []

        def change(line):
            seen.append(old in line)
            return line.replace(old, new, 1)
        self.change = change
        found = self.opcheck()
        self.assertIn(True, seen)
        return found

    def test_sums(self):
        self.assertEqual(self.opcheck(), [])

    def test_another_application(self):
        hot = "add 4000 %d 0 0 %d 0 " % (SAMPLES, APP)
        found = self.replaced(hot + "%d" % PROG, hot + "%d" % OTHER)
        self.assertTrue(found and all(APP_FAULT in line for line in found), found)
        self.assertTrue(any("/bin/other: 4000 in minutes, 0 in files" in line for line in found), found)

    def test_another_image(self):
        image = " %d %d " % (FUNCTION, self.start["hot"])
        found = self.replaced(image + "%d" % PROG, image + "%d" % OTHER)
        self.assertTrue(found and all(IMAGE_FAULT in line for line in found), found)
        self.assertTrue(any("/bin/other: 4000 in minutes, 0 in files" in line for line in found), found)

    def test_stacks_of_another_application(self):
        stack = "add 10 %d 1 0 %d 0 " % (OF_STACKS, APP)
        found = self.replaced(stack + "%d %d" % (PROG, CGROUP), stack + "%d %d" % (OTHER, CGROUP))
        self.assertTrue(found and all(APP_FAULT in line and "STACKS" in line for line in found), found)

    def test_rest(self):
        """Of an application, then of the event: the sums above stay."""
        code = " %d %d %d" % (FUNCTION, self.start["hot"], PROG)
        self.assertEqual(self.replaced(code, ""), [])
        self.assertEqual(self.replaced(" %d 0 %d%s" % (APP, PROG, code), ""), [])


for name in list(vars(test_report_window.Window)):
    if name.startswith("test_") and name not in vars(Minutes):
        setattr(Minutes, name, None)

if __name__ == "__main__":
    unittest.main()
