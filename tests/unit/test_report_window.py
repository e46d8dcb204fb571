#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of a part of a session, by its timeline: the summary, functions, stacks, forms, the
difference of two spans, and --explain have the samples of the minutes that were asked for, and no
others. A session without a timeline is used as a whole, and that is told. Run from the build
directory.
"""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
sys.dont_write_bytecode = True
from sample_files import ALL, put_image, write_samples  # noqa: E402
from stack_session import PROG, TOOLS, StackCase  # noqa: E402

MAKER = os.path.abspath(os.path.join("tests", "unit", "make_timeline"))
BEGIN, MINUTE, NS = 1795230000, 60, 1000000000  # 2026-11-21 03:00:00 UTC
TIMER, STACKS = "TIMER.1000000.0." + ALL, "STACKS:99:0x0"
# enum op_minute_kind
SAMPLES, OF_STACKS, APP, COMM, CGROUP, THREAD, END, IMAGE, FUNCTION, PLACE, KERNEL = range(1, 12)
# what each of ten minutes adds: a burst of `hot` from minute 3 to minute 5
MINUTES = [dict(hot=4000 if number in (3, 4) else 10, warm=200, cold=40) for number in range(10)]
LOST = 5  # in each minute


class Window(StackCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        shutil.rmtree(os.path.join(self.session, "{root}"))
        totals = {name: sum(minute[name] for minute in MINUTES) for name in MINUTES[0]}
        put_image(self.dir, self.program, [(self.start[name], totals[name]) for name in totals], event=TIMER)
        stored = sum(totals.values())
        with open(os.path.join(self.session, "ledger"), "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t%d.000000000\nend\t%d.000000000\nhost\tdb1\n" % (
                BEGIN, BEGIN + 10 * MINUTE))
            for event, count, number, lost in (("TIMER", 1000000, stored, 10 * LOST), ("STACKS", 99, 100, 0)):
                stream.write("event\t%s\t%d\t0\treceived=%d\tstored=%d\tunattributed=0\tlost_kernel=0\tlost_no_space=%d%s\n" % (
                    event, count, number + lost, number, lost, "\tend_complete=%d" % number if event == "STACKS" else ""))
        for number in range(100):
            self.store.add(self.frames("_start", "cold", "warm", "hot"))
        self.write_minutes(range(10))

    def minute_lines(self, number):
        counts = MINUTES[number]
        yield "event TIMER:1000000:0x0"
        yield "event " + STACKS
        for name in counts:
            yield "add %d %d 0 0 %d 0 %d %d %d %d" % (counts[name], SAMPLES, APP, PROG, FUNCTION, self.start[name], PROG)
        way = " ".join("%d %d %d" % (FUNCTION, self.start[name], PROG) for name in ("_start", "cold", "warm", "hot"))
        yield "add %d %d 1 0 %d 0 %d %d =/a.slice/b%d 0 %s" % (10, OF_STACKS, APP, PROG, CGROUP, number, way)
        for event, name, amount in ((0, "received", sum(counts.values()) + LOST), (0, "stored", sum(counts.values())),
                                    (0, "lost_no_space", LOST), (1, "received", 10), (1, "stored", 10), (1, "end_complete", 10)):
            yield "row %d %s %d" % (event, name, amount)
        yield "block %d %d" % ((BEGIN + number * MINUTE) * NS, (BEGIN + (number + 1) * MINUTE) * NS)

    def write_minutes(self, numbers):
        lines = "".join(line + "\n" for number in numbers for line in self.minute_lines(number))
        subprocess.run([MAKER, self.session], input=lines, text=True, check=True)

    def span(self, first, last):
        return ["--since=@%d" % (BEGIN + first * MINUTE), "--until=@%d" % (BEGIN + last * MINUTE)]

    def samples_of(self, *options):
        report = json.loads(self.report("-l", "--format=json", *options))
        return {row["symbol"]: row["samples"][0] for row in report["symbols"]}

    def sums(self, first, last):
        return {name: sum(MINUTES[number][name] for number in range(first, last)) for name in MINUTES[0]}

    def test_functions(self):
        for first, last in ((0, 1), (3, 5), (9, 10), (2, 7), (0, 10)):
            self.assertEqual(self.samples_of(*self.span(first, last)), self.sums(first, last), (first, last))
        self.assertEqual(self.samples_of("--at=@%d" % (BEGIN + 4 * MINUTE)), self.sums(3, 5))
        self.assertEqual(self.samples_of("--at=@%d" % (BEGIN + 4 * MINUTE + 1), "--window=10s"), self.sums(3, 5))
        self.assertEqual(self.samples_of("--at=@%d" % (BEGIN + 4 * MINUTE + 30), "--window=10s"), self.sums(4, 5))

    def test_summary_and_header(self):
        head = self.report(*self.span(3, 5)).splitlines()
        self.assertIn("Time: 2026-11-21 03:03:00 to 03:05:00 UTC, 2 min", head)
        total = sum(self.sums(3, 5).values())
        self.assertIn("Samples: %d of TIMER:1000000" % total, "\n".join(head))
        self.assertTrue(any(line.split()[:1] == [str(total)] for line in head), head)
        self.assertIn("Using 1 session, from 2026-11-21 03:03:00 UTC to 2026-11-21 03:05:00 UTC, kept in grains of 1 min.\n",
                      self.err)
        report = json.loads(self.report("-l", "--format=json", *self.span(3, 5)))
        self.assertAlmostEqual(report["classes"][0]["lost-percent"], 100 * 2 * LOST / (total + 2 * LOST), 3)

    def test_partial_minutes_count_whole(self):
        """A minute that is asked for in part is counted, and the header says which time that is."""
        self.assertEqual(self.samples_of("--since=@%d" % (BEGIN + 200), "--until=@%d" % (BEGIN + 210)), self.sums(3, 4))
        self.assertIn("03:03:00 to 03:04:00", self.report("--since=@%d" % (BEGIN + 200), "--until=@%d" % (BEGIN + 210)))

    def test_stacks(self):
        text = self.report("--format=folded", *self.span(3, 5))
        self.assertEqual(text, "prog;_start;cold;warm;hot 20\n")
        self.assertIn("prog;_start;cold;warm;hot 100\n", self.report("--format=folded"))
        text = self.report("--format=folded", "--by=cgroup", *self.span(3, 5))
        self.assertEqual(sorted(text.splitlines()), ["/a.slice/b%d;_start;cold;warm;hot 10" % number for number in (3, 4)])
        lines = self.report("--stacks", *self.span(3, 5)).splitlines()
        self.assertTrue(any(line.startswith("Stacks: 20 samples of %s, 100 %% complete" % STACKS) for line in lines), lines)

    def test_calls(self):
        """Calls are those of the stacks of the window, scaled to its samples."""
        part = "{root}%s/" % self.program
        calls = [(self.start[a] + 5 << 32 | self.start[b], 900) for a, b in (("_start", "cold"), ("cold", "warm"), ("warm", "hot"))]
        write_samples(os.path.join(self.session, part + "{dep}/" + part + "{cg}/" + part + TIMER), calls, count=1000000)
        text = self.report("-c", "-n", "-i", "warm", *self.span(3, 5))
        total = sum(self.sums(3, 5).values())
        blocks = [line.split() for line in text.splitlines() if not line.startswith("---")]
        self.assertEqual([(row[0], row[-1]) for row in blocks if row[-1] in ("cold", "hot")],
                         [(str(total), "cold"), (str(total), "hot")])
        self.assertIn("900", self.report("-c", "-n", "-i", "warm"))

    def test_places_in_functions(self):
        for option in (["-d"], ["--inline"]):
            self.report("-l", *option, *self.span(3, 5))
            self.assertIn("positions in a function are not kept by time", self.err)
        self.report("-l", "-d")
        self.assertNotIn("kept by time", self.err)

    def test_archive_has_whole_sessions(self):
        self.store.write(os.path.join(self.session, "stacks"))
        archive = os.path.join(self.dir, "archive")
        subprocess.run([os.path.join(TOOLS, "oparchive"), "--session-dir=" + self.dir, "--output-directory=" + archive,
                        *self.span(3, 5)], capture_output=True, check=True)
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "-l", "--format=json", "archive:" + archive], capture_output=True,
                              check=True)
        self.assertEqual({row["symbol"]: row["samples"][0] for row in json.loads(done.stdout)["symbols"]}, self.sums(0, 10))

    def test_difference_and_explanation(self):
        spans = ["@%d..@%d" % (BEGIN + first * MINUTE, BEGIN + last * MINUTE) for first, last in ((1, 3), (3, 5))]
        rows = json.loads(self.report("-l", "--format=json", "--diff", *spans))
        self.assertEqual({row["symbol"]: row["samples"][0] for row in rows["symbols"]}, self.sums(3, 5))
        self.assertEqual(rows["before"]["classes"][0]["samples"], sum(self.sums(1, 3).values()))
        grown = json.loads(self.report("--top-changes", "--format=json", *self.span(3, 5)))
        self.assertEqual([row["symbol"] for row in grown["symbols"]], ["hot"])
        page = self.report("--explain", *self.span(3, 5))
        self.assertIn("`hot` of `prog`: +90.34 points", page)
        facts = json.loads(self.report("--explain", "--format=json", *self.span(3, 5)))
        self.assertEqual((facts["samples"], facts["stacks"]), (sum(self.sums(3, 5).values()), 20))
        self.assertEqual([row["state"] for row in facts["comparisons"]], ["compared", "not-kept"])

    # ---- over time ----

    def course(self, name=None, *options):
        return json.loads(self.report("--over-time" + ("=" + name if name else ""), "--format=json", *options))

    def test_course(self):
        for name, kind, wanted in (("hot", "function", [minute["hot"] for minute in MINUTES]),
                                   ("prog", "application", [sum(minute.values()) for minute in MINUTES]),
                                   (self.program, "application", [sum(minute.values()) for minute in MINUTES])):
            course = self.course(name)
            self.assertEqual((course["kind"], course["names"]), (kind, [name]))
            self.assertEqual([row["samples"][0] for row in course["course"]], wanted)
            self.assertEqual([row["all"] for row in course["course"]], [sum(minute.values()) for minute in MINUTES])
        course = self.course("hot", *self.span(2, 6))
        self.assertEqual([row["samples"][0] for row in course["course"]], [10, 4000, 4000, 10])
        self.assertEqual(course["course"][1]["begin"], "2026-11-21T03:03:00Z")
        rows = list(csv.reader(io.StringIO(self.report("--over-time=warm", "--format=csv"), newline="")))
        self.assertEqual(rows[0], ["begin", "end", "function", "samples", "all-samples"])
        self.assertEqual([row[2:4] for row in rows[1:]], [["warm", "200"]] * 10)
        self.report("--over-time=nonsense", rc=1)
        self.assertIn("no application, image or function", self.err)

    def test_course_in_a_terminal(self):
        """A burst is found to the minute; the locale C has no Unicode."""
        lines = self.report("--over-time=hot").splitlines()
        bars = [line[38:] for line in lines if line.startswith("2026-11-21 03:0")]
        self.assertEqual([bar for bar in bars if "#" in bar], [bars[3], bars[4]])
        self.assertEqual(len(bars), 10)
        self.assertTrue(all(ord(char) < 128 for line in lines for char in line))
        self.store.write(os.path.join(self.session, "stacks"))
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "--over-time=hot"], check=True,
                              capture_output=True, env=dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8"))
        self.assertIn("\u2588", done.stdout.decode())

    def test_course_of_applications(self):
        """Hours where the time is long; hostile names are escaped."""
        os.unlink(os.path.join(self.session, "timeline"))
        lines = []
        for hour in range(6):
            for number in range(3):
                lines += ["event TIMER:1000000:0x0",
                          "add %d %d 0 0 %d 0 %d %d %d %d" % (hour + 1, SAMPLES, APP, PROG, FUNCTION, self.start["hot"], PROG),
                          "block %d %d" % ((BEGIN + 3600 * hour + 60 * number) * NS, (BEGIN + 3600 * hour + 60 * number + 60) * NS)]
        subprocess.run([MAKER, self.session], input="\n".join(lines) + "\n", text=True, check=True)
        course = self.course()
        self.assertEqual((course["grain"], course["names"]), ("hour", [self.program]))
        self.assertEqual([row["samples"] for row in course["course"]], [[3 * hour + 3] for hour in range(6)])
        self.assertIn("prog", self.report("--over-time"))
        with open(os.path.join(self.session, "timeline"), "r+b") as stream:
            stream.seek(40)
            stream.write(b"damage")
        self.assertEqual([row["samples"] for row in self.course()["course"]][1:], [[3 * hour + 3] for hour in range(1, 6)])
        self.assertIn("1 damaged place", self.err)

    def test_course_is_refused(self):
        for option in ("--stacks", "--explain", "--by=cgroup", "--html=x.html"):
            self.report("--over-time", option, rc=1)
            self.assertIn("does not go together with", self.err)
        self.report("--over-time", "--format=xml", rc=1)
        os.unlink(os.path.join(self.session, "timeline"))
        self.report("--over-time", rc=1)
        self.assertIn("no timeline has that time", self.err)

    def test_rest(self):
        """What the writer could not keep apart is there, without a name."""
        os.unlink(os.path.join(self.session, "timeline"))
        lines = ["event TIMER:1000000:0x0",
                 "add 70 %d 0 0 %d 0 %d %d %d %d" % (SAMPLES, APP, PROG, FUNCTION, self.start["hot"], PROG),
                 "add 30 %d 0 0 %d 0 %d" % (SAMPLES, APP, PROG), "row 0 received 100", "row 0 stored 100",
                 "block %d %d" % (BEGIN * NS, (BEGIN + MINUTE) * NS)]
        subprocess.run([MAKER, self.session], input="\n".join(lines) + "\n", text=True, check=True)
        functions = self.samples_of(*self.span(0, 1))
        self.assertEqual(functions, {"hot": 70, "(other functions)": 30})
        self.assertNotIn("has no names for functions", self.err)

    def test_without_timeline(self):
        os.unlink(os.path.join(self.session, "timeline"))
        self.assertEqual(self.samples_of(*self.span(3, 5)), self.sums(0, 10))
        self.assertIn("keeps no minutes", self.err)
        with open(os.path.join(self.session, "timeline"), "wb") as stream:
            stream.write(b"nonsense" * 100)
        self.assertEqual(self.samples_of(*self.span(3, 5)), self.sums(0, 10))
        self.assertIn("timeline: it is damaged", self.err)

    def test_nothing_kept_of_that_time(self):
        os.unlink(os.path.join(self.session, "timeline"))
        self.write_minutes(range(5))
        self.report(*self.span(7, 9), rc=1)
        self.assertIn("nothing is kept of that time", self.err)


if __name__ == "__main__":
    unittest.main()
