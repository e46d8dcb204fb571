#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of stacks: opd's writer and an independent reader (tests/format/stacks.py), damaged files, and
what opcheck and oparchive do with them.

Run from the build directory by `make check`.
"""
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "unit"), os.path.join(SOURCE, "tests", "format")]
from sample_files import put_image, write_ledger  # noqa: E402
import stacks  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
WRITER = os.path.abspath("tests/unit/test_stacks")
NR_STACKS, NR_MUTANTS = 500, 60


def expected(nr_stacks):
    """What add_ith of tests/unit/stack_box.h adds, said a second time."""
    found = {}
    for i in range(nr_stacks):
        nr = 1 + i % 60
        steps = [("STACKS:10101010:0x0", "page-faults:100:0x0")[i % 2], str(1 + i % 3), "work",
                 "/a.slice/b.service" if i % 5 else "-", "0:0"]
        steps += ["[%s]" % stacks.ENDS[i % 6]] if i % 6 else []
        steps += ["%d+0x%x%s" % (1 + k % 4, k if k + 5 < nr else 100 + i // 60 % 50, "k" if k + 3 > nr else "") for k in range(nr)]
        found[";".join(steps)] = found.get(";".join(steps), 0) + 1
    return found


class StackFiles(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="opd-test.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.session = os.path.join(self.dir, "session")
        self.current = os.path.join(self.session, "samples", "current")
        self.path = os.path.join(self.current, "stacks")
        put_image(self.session, "/gone/a", [(1, 1)])
        write_ledger(self.current, 1)
        subprocess.run([WRITER, self.current, str(NR_STACKS)], check=True)
        with open(self.path, "rb") as stream:
            self.data = stream.read()

    def run_tool(self, name, *arguments):
        done = subprocess.run([os.path.join(TOOLS, name), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def check(self, *arguments):
        return self.run_tool("opcheck", "--session-dir=" + self.session, *arguments)

    def write(self, data):
        with open(self.path, "wb") as stream:
            stream.write(data)

    def test_writer(self):
        found = stacks.read(self.path)
        self.assertIsNone(found.fault)
        self.assertEqual(found.stacks(), expected(NR_STACKS))
        self.assertEqual(len(self.data), 64 + 32 * len(found.nodes))

    def test_sound(self):
        code, output = self.check()
        self.assertIn("the ledger has not all events", output)
        self.check("--repair")
        code, output = self.check()
        self.assertEqual(code, 0, output)
        with open(os.path.join(self.current, "ledger"), encoding="ascii") as stream:
            row = [line for line in stream if line.startswith("stacks\tSTACKS")]
        self.assertEqual(len(row), 1)
        self.assertIn("stored=%d" % (NR_STACKS // 2), row[0])

    def test_repair(self):
        self.write(self.data[:8000])
        code, output = self.check()
        self.assertEqual(code, 2, output)
        self.assertIn("current/stacks, byte 8000: a node is damaged", output)
        self.check("--repair")
        found = stacks.read(self.path)
        self.assertIsNone(found.fault)
        self.assertEqual(len(found.nodes), (8000 - 64) // 32)
        self.assertTrue(found.nr_cut)
        self.assertEqual(self.check()[0], 0)

    def test_put_aside(self):
        self.write(b"other" * 100)
        code, output = self.check("--repair")
        self.assertIn("not a file of stacks", output)
        self.assertFalse(os.path.exists(self.path))

    @unittest.skipIf(os.geteuid(), "gives files to another user")
    def test_access(self):
        """A daemon that is not root could not write to it."""
        self.check("--repair")
        for where, _, names in os.walk(self.session):
            for path in [where] + [os.path.join(where, name) for name in names]:
                os.chown(path, 65534, 65534)
        before = stacks.read(self.path).nodes
        for change in (lambda: os.chown(self.path, 0, 0), lambda: os.chmod(self.path, 0o444)):
            self.assertEqual(self.check()[0], 0)
            change()
            code, output = self.check()
            self.assertEqual(code, 2, output)
            self.assertIn("current/stacks: ", output)
            self.assertIn("the daemon", output)
            self.check("--repair")
            found = os.stat(self.path)
            self.assertEqual((found.st_uid, found.st_mode & 0o777), (65534, 0o644))
            self.assertEqual(stacks.read(self.path).nodes, before)

    def assert_same_nodes(self, data):
        """opcheck keeps the nodes that the independent reader keeps."""
        self.write(data)
        before = stacks.read(self.path)
        code, output = self.check()
        self.assertEqual("a node is damaged" in output, before.fault is not None, (code, output, before.fault))
        if before.fault:
            self.check("--repair")
        after = stacks.read(self.path)
        self.assertIsNone(after.fault)
        self.assertEqual(after.nodes, before.nodes)

    def test_mutants(self):
        chance = random.Random(1)
        for _ in range(NR_MUTANTS):
            data = bytearray(self.data)
            for _ in range(4):
                struct.pack_into("<B", data, chance.randrange(64, len(data)), chance.randrange(256))
            self.assert_same_nodes(data)

    def test_rules(self):
        """Each rule is broken at one node of each kind."""
        nodes = stacks.read(self.path).nodes
        first = {node.kind: number for number, node in reversed(list(enumerate(nodes)))}
        self.assertEqual(len(first), 10)
        for kind, number in first.items():
            changes = [(0, "<I", number), (0, "<I", number - 1), (8, "<Q", 0), (8, "<Q", 7), (8, "<Q", number)]
            for offset, form, value in [*changes, *((4, "<H", other) for other in range(11))]:
                data = bytearray(self.data)
                struct.pack_into(form, data, 64 + 32 * number + offset, max(value, 0))
                with self.subTest(kind=kind, offset=offset, value=value):
                    if number or (offset, max(value, 0)) in ((0, 0), (4, 0)) or offset == 8:
                        self.assert_same_nodes(data)

    def test_archive(self):
        self.check("--repair")
        for name, words, has_stacks in (("whole", (), True), ("part", ("/gone/b",), False)):
            put_image(self.session, "/gone/b", [(1, 1)])
            away = os.path.join(self.dir, name)
            self.run_tool("oparchive", "--session-dir=" + self.session, "-o", away, *words)
            copies = [os.path.join(top, "stacks") for top, _, files in os.walk(away) if "stacks" in files]
            self.assertEqual(len(copies), has_stacks, name)
            if copies:
                self.assertEqual(stacks.read(copies[0]).stacks(), expected(NR_STACKS))


if __name__ == "__main__":
    unittest.main()
