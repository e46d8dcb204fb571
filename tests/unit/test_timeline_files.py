#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timelines: opd's writer and an independent reader (tests/format/timeline.py), whole and damaged files.

Run from the build directory by `make check`.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "unit"), os.path.join(SOURCE, "tests", "format")]
from sample_files import put_image, write_ledger  # noqa: E402
import timeline  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))

WRITER = os.path.abspath("tests/unit/test_timeline")
TIMER, STACKS = "TIMER:1000000:0x0", "STACKS:10101010:0x0"
NS_PER_MIN, NR_MINUTES, NR_MUTANTS = 60 * 10 ** 9, 80, 40
BEGIN_NS = 1700000000 // 60 * NS_PER_MIN


def expected(i):
    """What fill() of test_timeline.c adds to minute i, said a second time."""
    found = {}

    def add(steps, amount):
        own, rest = found.get(";".join(steps), (0, 0))
        found[";".join(steps)] = (own + amount, rest)

    for k in range(40):
        image = 7 + k % 5
        add(["samples " + TIMER, "app %d" % (1 + k % 3), "image %d" % image, "%d+0x%x" % (image, 0x400 + 16 * (k * (i + 1) % 97))],
            1 + k % 4)
    for k in range(30):
        salt = k * (i + 1) % 53
        steps = ["stacks " + STACKS, "app %d" % (1 + salt % 3), "work" if salt % 2 else "idle", "5:%d@%d" % (salt % 4, salt % 3)]
        for frame in range(2 + salt % 11):
            steps.append("%d+0x%x%s" % (7 + frame % 3, 0x1000 + salt * frame % 37 * 64, "~k" if frame > 7 else ""))
        add(steps, 1)
    for state in (1, 2, 3) if i % 2 else ():
        add(["stacks WAIT:1:0x0", "app 2", "[1]", "[state %d]" % state, "8+0x400", "python:/a.py:main:1", "python:/a.py:work:9",
             "9+0x1000~k"], 1000 * state)
    return found


class TimelineFiles(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="opd-test.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.path = os.path.join(self.dir, "timeline")
        self.write(0, NR_MINUTES)
        with open(self.path, "rb") as stream:
            self.data = stream.read()

    def write(self, first, number):
        subprocess.run([WRITER, self.dir, str(first), str(number)], check=True)

    def test_writer(self):
        found = timeline.read(self.path)
        self.assertIsNone(found.fault)
        self.assertEqual(len(found.blocks), NR_MINUTES)
        for i, block in enumerate(found.blocks):
            self.assertEqual(block.weights(), expected(i))
            self.assertEqual([node.records for node in block.nodes if node.records], [1, 2, 3] if i % 2 else [])
            self.assertEqual(block.begin, (BEGIN_NS + i * NS_PER_MIN, (i + 9) * NS_PER_MIN, (i + 5) * NS_PER_MIN))
            self.assertEqual(block.end, (BEGIN_NS + (i + 1) * NS_PER_MIN, (i + 10) * NS_PER_MIN, (i + 6) * NS_PER_MIN))
            self.assertEqual((block.gap, block.flags), (int(not i), 0))
            self.assertEqual(block.events, [(TIMER, 0, 0), (STACKS, 0, 3)] + [("WAIT:1:0x0", 1, 5)] * (i % 2))
            self.assertEqual(block.ledger, [(0, "before", 100 * i), (0, "stored", 100), (1, "stored", 30), (1, "lost_kernel", -2)])
            self.assertEqual(block.context, [(1, 0, 250), (1, 1, i % 1001), (3, 2, 17), (4, 1, 1 << 20)])

    def test_torn(self):
        """Both readers and the writer keep the blocks before a torn end."""
        for nr_bytes in (len(self.data) - 1, len(self.data) - 300, 17, 16, 15, 3, 0):
            with open(self.path, "wb") as stream:
                stream.write(self.data[:nr_bytes])
            before = timeline.read(self.path)
            self.write(len(before.blocks), 2)
            after = timeline.read(self.path)
            self.assertIsNone(after.fault)
            self.assertEqual(len(after.blocks), len(before.blocks) + 2)
            self.assertEqual([block.weights() for block in after.blocks], [expected(i) for i in range(len(after.blocks))])

    def test_mutants(self):
        """No change goes unnoticed."""
        chance = random.Random(1)
        for _ in range(NR_MUTANTS):
            data = bytearray(self.data)
            at = chance.randrange(timeline.HEADER.size, len(data))
            data[at] ^= 1 << chance.randrange(8)
            with self.subTest(at=at):
                try:
                    self.assertTrue(timeline.Timeline(bytes(data)).fault)
                except timeline.FormatError:
                    pass

    def test_opcheck(self):
        """Samples in minutes are compared with the ledger; a damaged block is reported, and repaired."""
        session = os.path.join(self.dir, "session")
        current = os.path.join(session, "samples", "current")
        put_image(session, "/gone/a", [(1, 100 * NR_MINUTES)], event="TIMER.1000000.0.all.all.all")
        write_ledger(current, 100 * NR_MINUTES, count=1000000)
        shutil.copy(self.path, os.path.join(current, "timeline"))

        def check(*arguments):
            done = subprocess.run([os.path.join(TOOLS, "opcheck"), "--session-dir=" + session, *arguments], capture_output=True,
                                  text=True, check=False)
            return done.stdout + done.stderr

        output = check()
        self.assertNotIn("a minute", output)
        self.assertNotIn("samples are in minutes", output)
        put_image(session, "/gone/a", [(1, 100 * NR_MINUTES + 7)], event="TIMER.1000000.0.all.all.all")
        write_ledger(current, 100 * NR_MINUTES + 7, count=1000000)
        self.assertIn("%s: %d samples are in minutes, %d in the session" % (TIMER, 100 * NR_MINUTES, 100 * NR_MINUTES + 7), check())
        with open(os.path.join(current, "timeline"), "r+b") as stream:
            stream.seek(len(self.data) // 2)
            stream.write(b"damage")
        self.assertRegex(check(), "current/timeline, byte [0-9]+: a block is damaged")
        check("--repair")
        self.assertNotIn("damaged", check())
        found = timeline.read(os.path.join(current, "timeline"))
        self.assertIsNone(found.fault)
        self.assertEqual(len(found.blocks), NR_MINUTES - 1)
        self.assertEqual([block.gap for block in found.blocks].count(6), 1)


if __name__ == "__main__":
    unittest.main()
