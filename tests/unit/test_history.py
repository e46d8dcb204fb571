#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol --history: each session with its time and bytes, the blocks of its timeline, and the gaps
with their reason. Run from the build directory.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

OPCONTROL = os.path.abspath(os.path.join(os.environ.get("OPD_BINDIR", "bin"), "opcontrol"))
MAKER = os.path.abspath(os.path.join("tests", "unit", "make_timeline"))
BEGIN, NS = 1795230000, 1000000000  # 2026-11-21 03:00:00 UTC
OFF, SUSPENDED = 2, 4  # enum op_timeline_gap


class History(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        with open(os.path.join(self.dir, "opd.conf"), "w", encoding="ascii") as stream:
            stream.write("SessionDir=%s\nControlSocket=%s/socket\n" % (self.dir, self.dir))

    def put(self, name, begin, end, *blocks):
        session = os.path.join(self.dir, "samples", name)
        os.makedirs(session)
        with open(os.path.join(session, "ledger"), "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t%d.000000000\nend\t%d.000000000\n" % (begin, end))
        lines = ["block %d %d %d" % (first * NS, last * NS, gap) for first, last, gap in blocks]
        if lines:
            subprocess.run([MAKER, session], input="\n".join(lines) + "\n", text=True, check=True)
        return session

    def history(self, *options, rc=0):
        done = subprocess.run([OPCONTROL, "--config=" + os.path.join(self.dir, "opd.conf"), "--history", *options], check=False,
                              capture_output=True, text=True, env=dict(os.environ, TZ="UTC", LC_ALL="C"))
        self.assertEqual(done.returncode, rc, done.stderr)
        self.err = done.stderr
        return done.stdout

    def test_sessions_and_gaps(self):
        self.put("current", BEGIN, BEGIN + 600, (BEGIN, BEGIN + 60, 1), (BEGIN + 60, BEGIN + 120, 0),
                 (BEGIN + 420, BEGIN + 480, SUSPENDED), (BEGIN + 540, BEGIN + 600, OFF))
        self.put("older", BEGIN - 7200, BEGIN - 3600)
        lines = self.history().splitlines()
        self.assertTrue(lines[0].startswith("older: from 2026-11-21 01:00:00 UTC to 2026-11-21 02:00:00 UTC, "), lines)
        self.assertIn("timeline: none", lines[1])
        self.assertTrue(lines[2].startswith("current: from 2026-11-21 03:00:00 UTC to 2026-11-21 03:10:00 UTC, "), lines)
        wanted = "  timeline: 4 blocks of 1 min, from 2026-11-21 03:00:00 UTC to 2026-11-21 03:10:00 UTC, "
        self.assertEqual(lines[3][:len(wanted)], wanted)
        self.assertTrue(lines[3].endswith(" KiB an hour"), lines)
        self.assertEqual(lines[4:], ["  gap from 2026-11-21 03:02:00 UTC to 2026-11-21 03:07:00 UTC: the host was suspended",
                                     "  gap from 2026-11-21 03:08:00 UTC to 2026-11-21 03:09:00 UTC: opd did not run"])
        facts = json.loads(self.history("--json"))["sessions"]
        self.assertEqual([(session["name"], session["timeline"]["blocks"]) for session in facts], [("older", 0), ("current", 4)])
        self.assertEqual([gap["end_ns"] - gap["begin_ns"] for gap in facts[1]["timeline"]["gaps"]], [300 * NS, 60 * NS])
        size = os.stat(os.path.join(self.dir, "samples", "current", "timeline")).st_size
        self.assertEqual(facts[1]["timeline"]["bytes"], size)

    def test_what_cannot_be_read(self):
        self.history(rc=1)
        self.assertIn(os.path.join(self.dir, "samples"), self.err)
        session = self.put("\x1b[31mred", BEGIN, BEGIN + 60)
        with open(os.path.join(session, "timeline"), "wb") as stream:
            stream.write(b"nonsense" * 99)
        text = self.history()
        self.assertNotIn("\x1b", text + self.err)
        self.assertIn("no timeline, or of a later version", self.err)
        self.assertIn("\\x1b[31mred: from", text)
        self.assertEqual(json.loads(self.history("--json"))["sessions"][0]["name"], "\\x1b[31mred")


if __name__ == "__main__":
    unittest.main()
