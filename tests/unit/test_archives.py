#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several archives in one report: archive:A archive:B adds up what two hosts recorded, with the
symbols of each host's files, or refuses. Run from the build directory by `make check`.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
sys.dont_write_bytecode = True
import elfsyms  # noqa: E402
from sample_files import ALL, put_image, write_samples  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
EVENT = "TIMER.1000000.0." + ALL
PPC = 3  # an old type of CPU
FUNCTIONS = ("hot", "warm")
PROGRAMS = ("int hot(int x) { return x + 1; }\nint warm(int x) { return x + 2; }\n",
            "int warm(int x) { return x * x * 7 + 2; }\nint hot(int x) { return x + 1; }\n")


class Archives(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.home = os.path.join(self.dir, "home")
        self.session, self.program = os.path.join(self.home, "session"), os.path.join(self.home, "prog")

    def run_tool(self, tool, *arguments, rc=0):
        done = subprocess.run([os.path.join(TOOLS, tool), *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, rc, done.stderr)
        self.errors = done.stderr
        return done.stdout

    def build(self, source, build_id):
        with open(self.dir + "/prog.c", "w", encoding="ascii") as stream:
            stream.write(source + "void _start(void) { hot(warm(1)); }\n")
        options = ["-Wl,--build-id"] if build_id else ["-Wl,--build-id=none"]
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-g", "-nostdlib", "-static", "-fno-pie",
                        "-no-pie", *options, "-o", self.program, self.dir + "/prog.c"], check=True)
        os.utime(self.program, (1, 1))

    def ledger(self, directory, host, *events):
        with open(directory + "/ledger", "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t1795230000.000000000\nend\t1795231800.000000000\n"
                         "host\t%s\n" % host)
            for event, count, stored in events:
                stream.write("event\t%s\t%d\t0\treceived=%d\tstored=%d\tunattributed=0\tlost_kernel=0\n" % (
                    event, count, stored, stored))

    def table(self, directory):
        notes = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        found = re.search(r"Build ID: ([0-9a-f]+)", notes)
        st = os.stat(self.program)
        row = (1, "file", self.program, self.program, "-", "-", found.group(1) if found else "-", "0:0", st.st_ino,
               st.st_size, "1.000000000", 0, 1, 1, 1)
        with open(directory + "/dcookies", "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t2\n%s\n" % "\t".join(map(str, row)))

    def make(self, number, counts, event=EVENT, session="current", build_id=True, source=None, table=True, also=(), jit=0,
             cpu_type=4):
        """The archive of a host, whose files are gone afterwards."""
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.home)
        self.build(PROGRAMS[number] if source is None else source, build_id)
        ranges = elfsyms.symbol_ranges(self.program, FUNCTIONS)
        put_image(self.session, self.program, [(ranges[name][0], counts[name]) for name in counts], event=event,
                  session=session, cpu_type=cpu_type)
        directory = os.path.join(self.session, "samples", session)
        if jit:
            below = os.path.join(directory, "{root}%s/{dep}/{anon:jit-1}" % self.program)
            start = 0x401000
            write_samples(os.path.join(below, "7.0x%x.0x%x" % (start, start + 4096), event),
                          [(ranges["warm"][0] & 0xfff, jit)], count=1000000, anon_start=start)
            shutil.copy(self.program, os.path.join(below, "7.jo"))
        name, count = event.split(".")[:2]
        self.ledger(directory, "host%d" % number, (name, int(count), sum(counts.values()) + jit), *also)
        if table:
            self.table(directory)
        away = os.path.join(self.dir, "a%d" % number)
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", away, "session:" + session)
        shutil.rmtree(self.home)
        return "archive:" + away

    def rows(self, *words):
        """Samples by symbol, of all images."""
        sums = {}
        for line in self.run_tool("opreport", "-l", "-n", *words).splitlines():
            fields = line.split()
            sums[fields[-1]] = sums.get(fields[-1], 0) + int(fields[0])
        return sums

    def test_added_up(self):
        """Two hosts have another program at the same path: each has its own symbols."""
        a, b = self.make(0, {"hot": 60, "warm": 30}), self.make(1, {"hot": 5, "warm": 7})
        for words in ((a, b), (b, a), (a + "," + b[len("archive:"):],)):
            self.assertEqual(self.rows(*words), {"hot": 65, "warm": 37})
            self.assertEqual(self.errors, "")
            head = self.run_tool("opreport", "--verbose=details", *words)
            self.assertRegex(head, "Hosts: host[01], host[01]\n")
            self.assertIn("Samples: 102 of TIMER:1000000", head)
            self.assertEqual(len(re.findall("prog", head)), 2)
        for words in (("{", a, "}", "{", b, "}"),):
            self.assertRegex(self.run_tool("opreport", "-l", "-n", *words), "hot")

    def test_same_program(self):
        a, b = self.make(0, {"hot": 60}), self.make(1, {"hot": 5, "warm": 7}, source=PROGRAMS[0])
        self.assertEqual(self.rows(a, b), {"hot": 65, "warm": 7})
        self.assertEqual(len(re.findall("prog", self.run_tool("opreport", "-n", a, b))), 1)
        annotated = self.run_tool("opannotate", "-s", "--search-dirs=" + self.dir, a, b)
        self.assertIn("65", annotated)
        self.run_tool("opgprof", "-o", self.dir + "/gmon.out", a, b)
        self.assertTrue(os.path.exists(self.dir + "/gmon.out"))

    def test_without_build_id(self):
        """By inode, and without a table by the bytes: no name of one file for a sample of the other."""
        a, b = self.make(0, {"hot": 60}, build_id=False), self.make(1, {"hot": 5}, build_id=False)
        rows = self.rows(a, b)
        self.assertEqual(sum(rows.values()), 65)
        self.assertNotIn("warm", rows)
        shutil.rmtree(self.dir + "/a0")
        shutil.rmtree(self.dir + "/a1")
        a = self.make(0, {"hot": 60}, build_id=False, table=False)
        b = self.make(1, {"hot": 5}, build_id=False, table=False)
        self.assertEqual(list(self.rows(a, b).values()), [65])
        self.assertIn("matches more than one file", self.errors)
        shutil.rmtree(self.dir + "/a1")
        b = self.make(1, {"hot": 5}, build_id=False, table=False, source=PROGRAMS[0])
        self.assertEqual(self.rows(a, b), {"hot": 65})

    def test_jit_objects(self):
        """Sessions of both hosts have the same path, and so has the JIT object of a process."""
        a, b = self.make(0, {"hot": 60}, jit=3), self.make(1, {"hot": 5}, jit=4)
        self.assertEqual(self.rows(a, b), {"hot": 65, "warm": 7})
        images = self.run_tool("opreport", "-n", "-f", a, b)
        for away in ("/a0/var/lib", "/a1/var/lib"):
            self.assertIn(self.dir + away, images)

    def test_refused(self):
        a = self.make(0, {"hot": 60})
        for name, kwargs in (("period", {"event": "TIMER.2000000.0." + ALL}), ("event", {"event": "cpu-clock.1000000.0." + ALL}),
                             ("CPU", {"cpu_type": PPC})):
            with self.subTest(name):
                shutil.rmtree(self.dir + "/a1", ignore_errors=True)
                b = self.make(1, {"hot": 5}, **kwargs)
                for words in ((a, b), (b, a)):
                    self.run_tool("opreport", *words, rc=1)
                    self.assertEqual(self.errors.count("\n"), 1, self.errors)
                    self.assertIn("another type of CPU" if name == "CPU" else "select events that all archives have", self.errors)
                    self.run_tool("opannotate", "-a", *words, rc=1)
                    self.assertIn("archives", self.errors)

    def test_an_event_without_samples(self):
        """The ledger says that an event was counted."""
        a, b = self.make(0, {"hot": 60}), self.make(1, {"hot": 5}, event="cpu-clock.1000000.0." + ALL,
                                                    also=[("TIMER", 1000000, 0)])
        self.run_tool("opreport", a, b, rc=1)
        self.assertIn("has cpu-clock:1000000", self.errors)
        self.assertIn("60", self.run_tool("opreport", "-n", a, b, "event:TIMER"))

    def test_sessions(self):
        a, b = self.make(0, {"hot": 60}, session="monday"), self.make(1, {"hot": 5}, session="tuesday")
        self.assertEqual(self.rows(a, b, "session:monday,tuesday"), {"hot": 65})
        self.run_tool("opreport", a, b, "session:monday", rc=1)
        self.assertIn("a1 has none of the summed sessions, for example monday. The sessions there: tuesday.", self.errors)
        self.run_tool("opreport", a, b, "session:monday,tuesday,friday", rc=1)
        self.assertIn("there is no session 'friday'", self.errors)
        self.run_tool("opreport", a, b, rc=1)
        self.assertIn("has none of the summed sessions, for example current", self.errors)
        self.run_tool("opreport", a, b, "session:./monday", rc=1)
        self.assertIn("name of a session without /", self.errors)
        self.assertEqual(self.rows(a, b, "--since=2026-11-20"), {"hot": 65})

    def test_named_twice(self):
        a = self.make(0, {"hot": 60})
        os.symlink(self.dir + "/a0", self.dir + "/link")
        self.assertEqual(self.rows(a, "archive:" + self.dir + "/link"), {"hot": 60})
        self.assertIn("named twice", self.errors)

    def test_no_archive_of_several(self):
        a, b = self.make(0, {"hot": 60}), self.make(1, {"hot": 5})
        self.run_tool("oparchive", a, b, "-o", self.dir + "/both", rc=1)
        self.assertIn("names several archives", self.errors)


if __name__ == "__main__":
    unittest.main()
