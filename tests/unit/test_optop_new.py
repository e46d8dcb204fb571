#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""optop names only what has new samples, and counts it right, whatever the session had before. Run
from the build directory by `make check`.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
import stack_session  # noqa: E402
from sample_files import put_image, write_ledger  # noqa: E402
from stack_session import StackCase  # noqa: E402

OPTOP = os.path.abspath(os.path.join(os.environ.get("TOOLS", "bin"), "optop"))
NR_IMAGES = 40
HANG_SECONDS = 120
ROW = re.compile(r"^ *(\d+) +\d+\.\d\d  (.*)$")


class Displays:
    """optop --batch, display by display: {row: count}."""

    def __init__(self, session_dir, *options):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([OPTOP, "--batch", "--delay=0.1", "--session-dir=" + session_dir, *options],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=dict(os.environ, LC_ALL="C", XDG_CACHE_HOME=session_dir))
        self.watch = threading.Timer(HANG_SECONDS, self.process.kill)
        self.watch.start()

    def next(self):
        rows, line = {}, self.process.stdout.readline()
        while not line.startswith(" SAMPLES"):
            if not line:
                raise AssertionError("optop ended")
            line = self.process.stdout.readline()
        while (line := self.process.stdout.readline().rstrip("\n")):
            count, name = ROW.match(line).groups()
            rows[" ".join(name.split())] = int(count)
        return rows

    def lines(self):
        """The rows of a display as they are."""
        rows, line = [], self.process.stdout.readline()
        while not re.match(r" *(SAMPLES|TIME) +%", line):
            if not line:
                raise AssertionError("optop ended")
            line = self.process.stdout.readline()
        while (line := self.process.stdout.readline().rstrip("\n")):
            rows.append(line)
        return rows

    def await_rows(self):
        while not (rows := self.next()):
            pass
        return rows

    def has_said(self, text):
        size = os.fstat(self.errors.fileno()).st_size
        return text in os.pread(self.errors.fileno(), size, 0).decode()

    def end(self):
        """What optop wrote to standard error."""
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait()
        self.watch.cancel()
        self.errors.seek(0)
        with self.errors:
            return self.errors.read().decode()


class TestNew(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.images = [os.path.join(self.dir, "image%d" % i) for i in range(NR_IMAGES)]
        for image in self.images:
            with open(image, "w", encoding="ascii") as stream:
                stream.write("not an ELF file: optop warns when it reads the symbols\n")
            self.put(image, [(0x10, 1000), (0x20, 100), (0x30, 10)])
        write_ledger(os.path.join(self.dir, "samples", "current"), 1110 * NR_IMAGES, "open")

    def put(self, image, samples):
        """Replaces the sample file, as opd does when it grows."""
        new = tempfile.mkdtemp(dir=self.dir)
        event = "TIMER.0.0.all.all.all"
        put_image(new, image, samples, event)
        below = "samples/current/{root}%s/{dep}/{root}%s/%s" % (image, image, event)
        os.makedirs(os.path.dirname(os.path.join(self.dir, below)), exist_ok=True)
        os.replace(os.path.join(new, below), os.path.join(self.dir, below))
        shutil.rmtree(new)

    def start(self, *options):
        displays = Displays(self.dir, *options)
        self.assertEqual(displays.next(), {})  # the base is read
        return displays

    def check(self, samples, nr_new, *options):
        displays = self.start("--accumulate", *options)
        self.put(self.images[3], samples)
        try:
            rows = displays.await_rows()
        finally:
            errors = displays.end()
        self.assertEqual(list(rows.values()), [nr_new])
        self.assertIn("image3", next(iter(rows)))
        return errors

    def test_only_what_is_new_is_named(self):
        errors = self.check([(0x10, 1007), (0x20, 100), (0x30, 10)], 7)
        named = set(re.findall(r"image\d+", errors))
        self.assertEqual(named, {"image3"}, errors)
        self.assertNotIn("gone", errors)  # the ledger has all samples, also the earlier ones

    def test_new_keys(self):
        self.check([(0x10, 1000), (0x20, 101), (0x30, 10), (0x40, 5), (0x50, 2)], 8)

    def test_images(self):
        self.check([(0x10, 1000), (0x20, 103), (0x30, 10)], 3, "--by=image")

    def test_other_order(self):
        self.check([(0x30, 12), (0x20, 100), (0x40, 4), (0x10, 1001)], 7)

    def test_count_that_is_full_goes_on_in_a_second_node(self):
        self.check([(0x30, 10), (0x20, 100), (0x10, 900), (0x10, 109)], 9)

    def test_file_that_could_not_be_read_once(self):
        """What is known of it stays, as long as it is there."""
        path = os.path.join(self.dir, "samples/current/{root}%s/{dep}/{root}%s/TIMER.0.0.all.all.all" % ((self.images[3],) * 2))
        displays = self.start()
        try:
            with open(path + ".new", "wb") as stream:
                stream.write(bytes(4096))
            os.replace(path + ".new", path)
            while not displays.has_said("it is left out"):
                self.assertEqual(displays.next(), {})
            self.put(self.images[3], [(0x10, 1007), (0x20, 100), (0x30, 10)])
            self.assertEqual(list(displays.await_rows().values()), [7])
        finally:
            displays.end()

    def test_displays_add_up(self):
        displays, seen = self.start(), 0
        try:
            for nr in (1, 2, 4):
                self.put(self.images[3], [(0x10, 1000 + 2 * nr - 1), (0x20, 100), (0x30, 10)])
                self.assertEqual(list(displays.await_rows().values()), [nr])
                seen += nr
            self.put(self.images[3], [(0x10, 1007), (0x20, 100), (0x30, 10)])
            self.assertEqual(displays.next(), {})
        finally:
            displays.end()
        self.assertEqual(seen, 7)


class TestNewStacks(StackCase):
    def write(self):
        new = os.path.join(self.dir, "new-stacks")
        self.store.write(new)
        os.replace(new, os.path.join(self.session, "stacks"))

    def test_stacks(self):
        self.fill()
        self.store.add([(stack_session.FRAME, stack_session.OTHER, 0x100)], 1000)
        self.write()
        displays = Displays(self.dir, "--accumulate", "--by=path")
        try:
            self.assertEqual(displays.next(), {})
            self.store.add(self.frames("_start", "cold", "warm", "hot"), 3)
            self.store.add(self.frames("_start", "cold"), 2)
            self.write()
            rows = displays.await_rows()
        finally:
            errors = displays.end()
        self.assertEqual({name.split()[-2]: count for name, count in rows.items() if "(" in name}, {"cold": 5, "hot": 3}, rows)
        self.assertNotIn("/bin/other", errors)

    def test_waits(self):
        """What threads waited since the display before, in time; samples of CPUs are not mixed with it."""
        def wait(names, us, state=1):
            self.store.add(self.frames(*names), us, state=state, event="WAIT:1:0")

        self.fill()
        wait(("_start", "cold"), 9000000)
        self.write()
        times = ["  2.50 s  83.33  prog                   warm", "  500 ms  16.67  prog                   hot"]
        for view, wanted in (("wait", times), ("comm", ["       7 100.00  prog"])):
            displays = Displays(self.dir, "--accumulate", "--by=" + view)
            try:
                self.assertEqual(displays.lines(), [])
                wait(("_start", "cold", "warm"), 2500000)
                wait(("_start", "hot"), 500000, state=2)
                self.store.add(self.frames("_start", "cold", "warm", "hot"), 7)
                self.write()
                while not (lines := displays.lines()):
                    pass
            finally:
                displays.end()
            self.assertEqual(lines, wanted)


if __name__ == "__main__":
    if not os.path.exists(OPTOP):
        print("optop is not built: ncurses is missing")
        sys.exit(77)
    unittest.main()
