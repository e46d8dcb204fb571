#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --stacks=wait and --stacks=wall, --idle and --waits: reports of the event WAIT from stores that
this test writes (opd-stacks(5)). All figures are known.

Run from the build directory by `make check`.
"""
import collections
import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import page_data  # noqa: E402
from sample_files import ALL, put_image  # noqa: E402
import stack_session  # noqa: E402
from stack_session import CUT, FRAME, OTHER, PROG, StackCase  # noqa: E402

NAMES = ("epoll_wait", "nanosleep", "pthread_mutex_lock", "fsync", "lock_cache", "backoff", "serve", "pool", "tick", "_start")
MAKER = os.path.abspath(os.path.join("tests", "unit", "make_timeline"))
BEGIN = 1795230000  # 2026-11-21 03:00:00 UTC
BLOCKED, DISK, UNINTERRUPTIBLE, RUNNABLE, PREEMPTED, FROZEN = range(1, 7)
WAIT = "WAIT:1:0"
STACKS = "STACKS:10000000:0"  # a sample is 10 ms
SWITCHES = {"switches": 36426, "idle": 1, "kernel": 284, "emitted": 126, "skipped": 34854, "lost": 1161, "records": 40}
EXACT = {"blocked": 8000000, "disk": 500000, "uninterruptible": 0, "runnable": 250000, "preempted": 0, "frozen": 0}


class Waits(StackCase):
    maxDiff = None
    source = "".join("void %s(void) { }\n" % name for name in NAMES)
    functions = NAMES

    def wait(self, names, seconds, state=BLOCKED, records=1, **options):
        self.store.add(self.frames(*names), round(seconds * 1e6), state=state, records=records, event=WAIT, **options)

    def fill(self, ledger=True):
        """8 s of waits, and 2 s of a CPU."""
        self.wait(("_start", "serve", "lock_cache", "pthread_mutex_lock"), 3, records=12)
        self.wait(("_start", "serve", "lock_cache", "pthread_mutex_lock"), 0.25, RUNNABLE, records=2)
        self.wait(("_start", "serve", "fsync"), 0.5, DISK, records=3)
        self.wait(("_start", "serve", "backoff", "nanosleep"), 0.25, records=4)
        self.wait(("_start", "pool", "epoll_wait"), 3, records=5)
        self.wait(("_start", "tick", "nanosleep"), 1, records=1, comm="tick")
        self.store.add(self.frames("_start", "serve"), 200, event=STACKS)
        if ledger:
            with open(os.path.join(self.session, "ledger"), "a", encoding="ascii") as stream:
                stream.write("waits\tWAIT\t1\t0\treceived=8010000\tstored=8000000\tlost_no_space=10000\tend_complete=8000000\n")
                stream.write("switches\t%s\t%s\n" % ("\t".join("%s=%d" % item for item in SWITCHES.items()),
                                                     "\t".join("%s_us=%d" % item for item in EXACT.items())))

    def folded(self, *options):
        text = self.report("--format=folded", *options)
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def test_waits_are_apart_from_samples(self):
        self.fill()
        cpu = {"prog;_start;serve": 200}
        self.assertEqual(self.folded(), cpu)
        self.assertEqual(self.folded("--stacks"), cpu)
        self.assertEqual(self.folded("--stacks=cpu"), cpu)
        self.assertIn("Stacks: 200 samples of STACKS:10000000:0", self.report("--stacks"))
        self.assertNotIn("WAIT", self.report("--stacks"))
        self.assertEqual(self.folded("--stacks", "prog"), cpu)
        self.report("--stacks=both", rc=1)
        self.assertIn("no image matches both", self.err)

    def test_states_are_below_the_application(self):
        self.fill()
        everything = {
            "prog;[blocked];_start;serve;lock_cache;pthread_mutex_lock": 3000000,
            "prog;[runnable];_start;serve;lock_cache;pthread_mutex_lock": 250000,
            "prog;[disk];_start;serve;fsync": 500000,
            "prog;[blocked];_start;serve;backoff;nanosleep": 250000,
            "prog;[blocked];_start;pool;epoll_wait": 3000000,
            "prog;[blocked];_start;tick;nanosleep": 1000000}
        self.assertEqual(self.folded("--stacks=wait", "--idle=show"), everything)
        wall = dict(everything)
        wall["prog;[running];_start;serve"] = 2000000
        self.assertEqual(self.folded("--stacks=wall", "--idle=show"), wall)
        self.assertEqual(self.folded("--stacks=wait", "--idle=show", "--by=comm", "--focus=tick"),
                         {"tick;[blocked];_start;tick;nanosleep": 1000000})

    def test_idle(self):
        """The loop of a daemon and the pool are one line; a sleep inside of the work is not."""
        self.fill()
        found = self.folded("--stacks=wait")
        self.assertEqual(found, {
            "(waits for work: --idle=show has their stacks)": 4000000,
            "prog;[blocked];_start;serve;lock_cache;pthread_mutex_lock": 3000000,
            "prog;[runnable];_start;serve;lock_cache;pthread_mutex_lock": 250000,
            "prog;[disk];_start;serve;fsync": 500000,
            "prog;[blocked];_start;serve;backoff;nanosleep": 250000})
        self.assertEqual(sum(found.values()), 8000000)
        self.wait(("_start", "pool", "epoll_wait"), 7, RUNNABLE)
        self.assertEqual(self.folded("--stacks=wait")["prog;[runnable];_start;pool;epoll_wait"], 7000000)
        self.report("--stacks", "--idle=show", rc=1)
        self.assertIn("meaningless without --stacks=wait", self.err)

    def test_what_is_not_idle(self):
        """A lock, a child, a socket and a file that is read are shown; hostile names of functions are no states."""
        for names in (("_start", "serve", "pthread_mutex_lock"), ("_start", "serve", "fsync"), ("_start", "serve")):
            self.wait(names, 1)
        for state in (DISK, UNINTERRUPTIBLE, RUNNABLE, PREEMPTED, FROZEN):
            self.wait(("_start", "pool", "epoll_wait"), 1, state)
        found = self.folded("--stacks=wait")
        self.assertEqual(sum(found.values()), 8000000)
        self.assertFalse(any("waits for work" in path for path in found), found)
        self.assertEqual({path.split(";")[1] for path in found if path.endswith("epoll_wait")},
                         {"[disk]", "[uninterruptible]", "[runnable]", "[preempted]", "[frozen]"})
        # a sleep that a function of the work calls is work, however it is called
        self.wait(("_start", "pool", "serve", "tick", "nanosleep"), 1)
        self.assertEqual(self.folded("--stacks=wait")["prog;[blocked];_start;pool;serve;tick;nanosleep"], 1000000)
        inverted = self.folded("--stacks=wait", "--invert")
        self.assertEqual(inverted["nanosleep;tick;serve;pool;_start;[blocked];prog"], 1000000)
        self.assertEqual(sum(inverted.values()), 9000000)

    def test_largest_numbers(self):
        """Counts of a hostile file stay numbers of a report."""
        self.store.add(self.frames("_start", "serve"), (1 << 64) - 1, state=BLOCKED, event=WAIT, records=65535)
        self.store.add(self.frames("_start", "serve"), (1 << 64) - 1, event="STACKS:18446744073709551615:0")
        for form in ("folded", "json", "csv", "text", "speedscope", "firefox"):
            self.assertTrue(self.report("--stacks=wall", "--format=" + form))
        for names, cookie in (((), PROG), (("_start", "serve"), 99)):  # without a frame, and of no image
            frames = self.frames(*names) if names else []
            self.store.add(frames, (1 << 64) - 1, state=BLOCKED, event=WAIT, records=65535, waker=("\x1b[31m<b>", cookie))
        self.assertTrue(self.report("-l", "--waits"))
        self.assertIn("woken by \\x1b[31m<b>", self.report("--wakers"))
        for form in ("json", "csv"):
            self.assertTrue(self.report("--wakers", "--format=" + form))
        self.page()
        self.assertTrue(self.report("--stacks=wait", "--format=pprof", text=False))

    def test_text(self):
        self.fill()
        self.wait(("serve", "fsync"), 2, DISK, end=CUT)
        lines = self.report("--stacks=wait").splitlines()
        for wanted in ("Waits:  10.0 s, from 28 records of waits, 80 % complete, 20 % cut",
                       "Found:  10.0 s of the 8.75 s that threads waited, 114.3 %: blocked 8.00 s, disk 500 ms, runnable 250 ms",
                       "Switches: 36426 = 1 idle + 284 kernel + 126 emitted + 34854 skipped + 1161 lost",
                       "Lost:   10.0 ms"):
            self.assertIn(wanted, lines)
        at = next(i for i, line in enumerate(lines) if line.startswith("    time "))
        rows = [line.split() for line in lines[at + 1:]]
        self.assertEqual(rows[0], ["6.00", "s", "60.0000", "60.0000", "0", "us", "22", "prog"])
        self.assertEqual(rows[1][:8], ["3.25", "s", "32.5000", "54.1667", "0", "us", "16", "[blocked]"])
        self.assertIn(["4.00", "s", "40.0000", "40.0000", "4.00", "s", "6", "(waits", "for", "work:", "--idle=show", "has", "their",
                       "stacks)"], rows)
        wall = self.report("--stacks=wall")
        self.assertIn("Wall:   12.0 s, of that 2.00 s on a CPU and 10.0 s of waits, from 28 records of waits", wall)

    def test_json_and_csv(self):
        self.fill()
        stacks = json.loads(self.report("--stacks=wait", "--format=json"))["stacks"]
        self.assertEqual((stacks["unit"], stacks["total"], stacks["records"], stacks["lost"]), ("microseconds", 8000000, 27, 10000))
        self.assertEqual((stacks["found-us"], stacks["exact-us"]), (8000000, EXACT))
        self.assertEqual(stacks["switches"], {name if name != "switches" else "all": nr for name, nr in SWITCHES.items()
                                              if name != "records"})
        self.assertEqual(sum(node["self"] for node in stacks["nodes"]), 8000000)
        lock = next(node for node in stacks["nodes"] if node["name"] == "lock_cache")
        self.assertEqual((lock["total"], lock["records"]), (3000000, 12))
        self.assertEqual([node["name"] for node in stacks["nodes"] if node["kind"] == "state"],
                         ["[blocked]", "[disk]", "[runnable]"])
        rows = list(csv.DictReader(io.StringIO(self.report("--stacks=wait", "--format=csv"))))
        self.assertEqual([(row["name"], row["records"]) for row in rows],
                         [(node["name"], str(node["records"])) for node in stacks["nodes"]])
        cpu = json.loads(self.report("--stacks", "--format=json"))["stacks"]
        self.assertEqual(cpu["samples"], 200)
        self.assertNotIn("records", cpu["nodes"][0])

    def test_other_tools(self):
        self.fill()
        profile = gzip.decompress(self.report("--stacks=wait", "--format=pprof", text=False))
        self.assertIn(b"nanoseconds", profile)
        self.assertIn(b"lock_cache", profile)
        for view, total in (("wait", 8000000), ("wall", 10000000)):
            scope = json.loads(self.report("--stacks=" + view, "--format=speedscope"))
            self.assertEqual([(one["unit"], one["endValue"], sum(one["weights"])) for one in scope["profiles"]],
                             [("microseconds", total, total)])
            firefox = json.loads(self.report("--stacks=" + view, "--format=firefox"))
            samples = [thread["samples"] for thread in firefox["threads"]]
            self.assertEqual({one["weightType"] for one in samples}, {"tracing-ms"})
            self.assertAlmostEqual(sum(sum(one["weight"]) for one in samples), total / 1000)
        self.report("--stacks=wait", "--format=perf", "--output-file=" + os.path.join(self.dir, "out"), rc=1)
        self.assertIn("waits are times", self.err)

    def test_functions_that_waited(self):
        self.fill()
        self.wait(("_start", "serve", "serve", "fsync"), 0.125, UNINTERRUPTIBLE)  # calls itself
        waits = json.loads(self.report("-l", "--waits", "--format=json"))["waits"]
        rows = {row["symbol"]: row for row in waits["symbols"]}
        self.assertEqual(sum(row["self"] for row in rows.values()) + waits["idle"], 8125000)
        self.assertEqual((waits["total"], waits["idle"], waits["records"]), (8125000, 4000000, 28))
        # no C library here: the innermost function of the program waited
        self.assertEqual({name: (row["self"], row["total"], row["records"]) for name, row in rows.items()}, {
            "pthread_mutex_lock": (3250000, 3250000, 14), "fsync": (625000, 625000, 4), "nanosleep": (250000, 250000, 4)})
        self.assertEqual(rows["pthread_mutex_lock"]["states"], dict.fromkeys(EXACT, 0) | {"blocked": 3000000, "runnable": 250000})
        self.assertEqual(waits["exact-us"], EXACT)
        everything = json.loads(self.report("-l", "--waits", "--idle=show", "--format=json"))["waits"]
        self.assertEqual({row["symbol"]: row["self"] for row in everything["symbols"]},
                         {"pthread_mutex_lock": 3250000, "epoll_wait": 3000000, "nanosleep": 1250000, "fsync": 625000})
        self.assertEqual(everything["idle"], 0)
        table = list(csv.DictReader(io.StringIO(self.report("-l", "--waits", "--format=csv", "--top=1"))))
        self.assertEqual([(row["symbol"], row["self"], row["runnable"], row["records"]) for row in table],
                         [("pthread_mutex_lock", "3250000", "250000", "14")])
        text = self.report("-l", "--waits")
        self.assertIn("  3.25 s  40.0000   3.25 s       14  pthread_mutex_lock  (prog)  blocked 92.3 %, runnable 7.69 %\n", text)
        self.assertIn("  4.00 s  49.2308   4.00 s        6  (waits for work: --idle=show has their stacks)\n", text)
        self.report("--waits", rc=1)
        self.assertIn("--waits goes together with --symbols or --over-time", self.err)
        for option in ("--by=cgroup", "--format=xml", "--callgraph", "--stacks"):
            self.report("-l", "--waits", option, rc=1)

    def fill_wakers(self):
        """3 s in a lock of which `keeper` and others of its program had most, and waits for work."""
        way = ("_start", "serve", "lock_cache", "pthread_mutex_lock")
        for us, records, waker in ((2000000, 8, ("keeper", PROG)), (500000, 2, ("", 0)), (250000, 1, ("a" * 20, OTHER)),
                                   (250000, 3, None)):
            self.wait(way, us / 1e6, records=records, waker=waker)
        self.wait(way, 0.5, RUNNABLE, records=2)
        self.wait(("_start", "serve", "fsync"), 0.25, DISK, waker=("", 0))
        self.wait(("_start", "pool", "epoll_wait"), 4, waker=("client", OTHER))

    def test_wakers(self):
        """Who ended waits; the sums are those of the report without."""
        self.fill_wakers()
        rows = json.loads(self.report("--wakers", "--format=json"))["waits"]["symbols"]
        self.assertEqual([(row["symbol"], row["self"], row["records"]) for row in rows],
                         [("pthread_mutex_lock", 3500000, 16), ("fsync", 250000, 1)])
        self.assertEqual(rows[0]["wakers"], [
            {"thread": "keeper", "image": "prog", "us": 2000000, "records": 8},
            {"thread": "(interrupt)", "image": "", "us": 500000, "records": 2},
            {"thread": "a" * 20, "image": "other", "us": 250000, "records": 1}])
        text = self.report("--wakers")
        self.assertIn("  3.50 s  45.1613   3.50 s       16  pthread_mutex_lock  (prog)  blocked 85.7 %, runnable 14.3 %\n"
                      "  2.00 s  25.8065                 8    woken by keeper  (prog)\n"
                      "  500 ms   6.4516                 2    woken by (interrupt)\n", text)
        self.assertNotIn("client", text)
        self.assertIn("woken by client  (other)", self.report("--wakers", "--idle=show"))
        table = list(csv.DictReader(io.StringIO(self.report("--wakers", "--format=csv"))))
        self.assertEqual([(row["symbol"], row["waker"], row["waker-image"], row["waker-us"]) for row in table],
                         [("pthread_mutex_lock", "keeper", "prog", "2000000"), ("fsync", "(interrupt)", "", "250000")])
        self.assertNotIn("woken", self.report("-l", "--waits"))
        # the stacks do not have them
        self.assertEqual(self.folded("--stacks=wait")["prog;[blocked];_start;serve;lock_cache;pthread_mutex_lock"], 3000000)
        self.assertFalse(any("keeper" in path for path in self.folded("--stacks=wall", "--idle=show")))
        for i in range(9):
            self.wait(("_start", "serve", "fsync"), 0.001, DISK, waker=("thread-%d" % i, PROG))
        self.assertIn("\n%36s    and 5 more\n" % "", self.report("--wakers"))
        self.report("--wakers", "--stacks", rc=1)

    def test_the_c_library_does_not_wait(self):
        """The function that called it does."""
        with open(os.path.join(self.session, "dcookies"), "r+", encoding="ascii") as stream:
            text = stream.read().replace("/bin/other", "/lib/libc.so.6")
            stream.seek(0)
            stream.write(text)
        frames = [*self.frames("_start", "serve", "lock_cache", "fsync")[:-1], (FRAME, OTHER, 64)]
        self.store.add(frames, 500000, state=BLOCKED, event=WAIT)
        rows = json.loads(self.report("-l", "--waits", "--format=json"))["waits"]["symbols"]
        self.assertEqual([(row["symbol"], row["self"]) for row in rows], [("lock_cache", 500000)])

    def write_minutes(self):
        """Three minutes: in the second a lock has four times the waits."""
        lines = []
        shutil.rmtree(os.path.join(self.session, "{root}"))
        put_image(self.dir, self.program, [(self.start["serve"], 3000)], event="TIMER.1000000.0." + ALL)
        for minute in range(3):
            lines += ["event TIMER:1000000:0x0", "event STACKS:10000000:0x0 4", "event WAIT:1:0x0 5 1"]
            for nr_records, us, names in ((3, 1000000 * (4 if minute == 1 else 1), ("_start", "serve", "lock_cache")),
                                          (1, 500000, ("_start", "pool", "epoll_wait"))):
                way = " ".join("9 %d %d" % (self.start[name], PROG) for name in names)  # kind 9: a function
                lines += ["records %d" % nr_records, "add %d 2 2 0 3 0 %d 13 %d 0 %s" % (us, PROG, BLOCKED, way)]
            lines += ["records 0", "add 100 2 1 0 3 0 %d 9 %d %d" % (PROG, self.start["serve"], PROG),
                      "add 1000 1 0 0 3 0 %d 8 0 %d 9 %d %d" % (PROG, PROG, self.start["serve"], PROG)]
            for name, amount in (("stored", 4500000), ("received", 4500000), ("end_complete", 4500000), ("switches", 100),
                                 ("skipped", 96), ("emitted", 4), ("blocked_us", 4600000)):
                lines.append("row 2 %s %d" % (name, amount))
            lines.append("block %d %d" % tuple((BEGIN + 60 * (minute + i)) * 10 ** 9 for i in (0, 1)))
        subprocess.run([MAKER, self.session], input="".join(line + "\n" for line in lines), text=True, check=True)
        with open(os.path.join(self.session, "ledger"), "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t%d.000000000\nend\t%d.000000000\nevent\tTIMER\t1000000\t0\t"
                         "received=3000\tstored=3000\nwaits\tWAIT\t1\t0\treceived=13500000\tstored=13500000\n" % (
                             BEGIN, BEGIN + 180))

    def test_minutes(self):
        self.fill(ledger=False)
        self.write_minutes()
        span = ["--since=@%d" % (BEGIN + 60), "--until=@%d" % (BEGIN + 120)]
        self.assertEqual(self.folded("--stacks=wait", "--idle=show", *span), {
            "prog;[blocked];_start;serve;lock_cache": 4000000, "prog;[blocked];_start;pool;epoll_wait": 500000})
        self.assertEqual(self.folded("--stacks=wall", *span), {
            "prog;[blocked];_start;serve;lock_cache": 4000000, "(waits for work: --idle=show has their stacks)": 500000,
            "prog;[running];serve": 1000000})
        self.assertEqual(self.folded("--stacks", *span), {"prog;serve": 100})
        stacks = json.loads(self.report("--stacks=wait", "--format=json", *span))["stacks"]
        self.assertEqual((stacks["total"], stacks["records"], stacks["exact-us"]["blocked"]), (4500000, 4, 4600000))
        self.assertEqual((stacks["switches"]["all"], stacks["switches"]["skipped"]), (100, 96))
        rows = json.loads(self.report("-l", "--waits", "--format=json", *span))["waits"]["symbols"]
        self.assertEqual([(row["symbol"], row["self"], row["records"]) for row in rows], [("lock_cache", 4000000, 3)])
        # calls are those of samples: waits make none
        self.assertIn("serve", self.report("-c", *span))
        self.assertNotIn("epoll_wait", self.report("-c", *span))

    def write_second(self):
        """A second session, `later`: the same, and 21 records of 3 s of the disk."""
        self.store.write(os.path.join(self.session, "stacks"))
        later = os.path.join(self.dir, "samples", "later")
        shutil.copytree(self.session, later)
        store = stack_session.Store()
        store.nodes, store.index = [list(node) for node in self.store.nodes], dict(self.store.index)
        store.add(self.frames("_start", "serve", "fsync"), 3000000, state=DISK, event=WAIT, records=21)
        store.add(self.frames("_start", "serve", "tick"), 1000, state=BLOCKED, event=WAIT)
        store.write(os.path.join(later, "stacks"))
        return "{", "session:current", "}", "{", "session:later", "}"

    def test_change(self):
        """The functions that waited, in two profiles; noise is that of their records."""
        self.fill()
        sides = self.write_second()
        found = json.loads(self.report("-l", "--waits", "--format=json", *sides))["waits"]
        self.assertEqual((found["total"], found["idle"]), ([4000000, 7001000], [4000000, 4000000]))
        rows = {row["symbol"]: row for row in found["symbols"]}
        self.assertEqual(list(rows)[0], "fsync")
        self.assertEqual((rows["fsync"]["self"], rows["fsync"]["records"]), ([500000, 3500000], [3, 24]))
        self.assertEqual((rows["tick"]["self"], rows["tick"]["records"]), ([0, 1000], [0, 1]))
        points = 100 * (3.5 / 7.001 - 0.5 / 4)
        units = [4.0 / 21, 7.001 / 43]
        noise = 200 * (0.5 * units[0] / 16 + 3.5 * units[1] / 7.001 ** 2) ** 0.5
        self.assertAlmostEqual(rows["fsync"]["points"], points, 3)
        self.assertAlmostEqual(rows["fsync"]["noise"], noise, 3)
        text = self.report("-l", "--waits", *sides)
        self.assertIn("Before   4.00 s of waits, and   4.00 s of waits for work\n", text)
        self.assertIn("  500 ms   3.50 s   12.5000   49.9929   +37.49      3       24  fsync  (prog)\n", text)
        self.assertIn("tick  (prog)  noise\n", text)
        table = list(csv.DictReader(io.StringIO(self.report("-l", "--waits", "--format=csv", "--top=1", *sides))))
        self.assertEqual([(row["symbol"], row["before-us"], row["after-us"]) for row in table], [("fsync", "500000", "3500000")])
        everything = json.loads(self.report("-l", "--waits", "--idle=show", "--format=json", *sides))["waits"]
        self.assertEqual(len(everything["symbols"]), 5)
        self.report("--wakers", *sides, rc=1)

    def test_over_time(self):
        """Functions that waited, by the minute; or one function, image or application."""
        self.fill(ledger=False)
        self.write_minutes()
        table = list(csv.DictReader(io.StringIO(self.report("--over-time", "--waits", "--format=csv"))))
        self.assertEqual([(row["function"], row["us"], row["all-us"]) for row in table],
                         [("lock_cache", us, us) for us in ("1000000", "4000000", "1000000")])
        everything = json.loads(self.report("--over-time", "--waits", "--idle=show", "--format=json"))
        self.assertEqual(everything["names"], ["lock_cache", "epoll_wait"])
        self.assertEqual([(row["us"], row["all"]) for row in everything["course"]],
                         [([1000000, 500000], 1500000), ([4000000, 500000], 4500000), ([1000000, 500000], 1500000)])
        for name, what in (("serve", "function"), ("prog", "application")):
            text = self.report("--over-time=" + name, "--waits")
            self.assertIn("The %s %s waited 6.00 s, 100.0000 %%\n" % (what, name), text)
            self.assertRegex(text, r"\nbegin +time +%\n2026-11-21 03:00:00 +1.00 s 100.0000 ")
        self.assertIn("Waits: 7.50 s\n    time        %  over time  function\n  6.00 s  80.0000",
                      self.report("--over-time", "--waits", "--idle=show"))
        self.report("--over-time=nosuch", "--waits", rc=1)
        self.assertIn("no application, image or function that waited has that name", self.err)
        self.report("--over-time", "--wakers", rc=1)

    def test_explain(self):
        """What waited, with the figures of the report that it names."""
        self.fill()
        page = self.report("--explain")
        rows = json.loads(self.report("-l", "--waits", "--format=json"))["waits"]["symbols"]
        self.assertIn("## Waits\n\nThreads waited 8.00 s. In 4.00 s of it they had no work.\n\n"
                      "- `pthread_mutex_lock` of `prog` waited 3.25 s, 40.62 % (from 14 records): blocked 92.3 %, "
                      "runnable 7.69 %.\n", page)
        self.assertIn("More: `opreport -l --waits ", page)
        facts = json.loads(self.report("--explain", "--format=json"))
        self.assertEqual((facts["waited-us"], facts["idle-us"]), (8000000, 4000000))
        self.assertEqual([(fact["name"], fact["us"], fact["records"]) for fact in facts["waits"]],
                         [(row["symbol"], row["self"], row["records"]) for row in rows])
        self.assertEqual(facts["stacks"], 200)

    def test_losses_are_told_in_time(self):
        self.fill()
        lines = self.report("-l").splitlines()
        self.assertIn("Waits: 8 s, 100 % complete", lines)
        self.assertFalse(any("Stacks" in line and "WAIT" in line for line in lines), lines)
        self.assertNotIn("records:", self.err)
        self.assertIn("Lost waits detected! 0.01 of 8.01 s", self.err)
        self.assertNotIn("Lost samples", self.err)
        self.report("-l", "--verbose=stats")
        self.assertIn(": switches 36426, idle 1, kernel 284, emitted 126, skipped 34854, lost 1161, records 40, "
                      "blocked_us 8000000, disk_us 500000, ", self.err)

    def page(self, *words):
        path = os.path.join(self.dir, "page.html")
        self.report("--html=" + path, *words)
        with open(path, encoding="utf-8") as stream:
            return page_data.Page(stream.read())

    def test_page(self):
        """Samples and microseconds are apart, and waits for work are told; tests/system/test_page.py has the script."""
        self.fill()
        page = self.page()
        self.assertEqual((page.samples(), page.data["time"], page.data["idle"]), (200, "cpu", False))
        self.assertEqual(page.waits(), {
            ("blocked", "_start", "serve", "lock_cache", "pthread_mutex_lock"): (3000000, 12),
            ("runnable", "_start", "serve", "lock_cache", "pthread_mutex_lock"): (250000, 2),
            ("disk", "_start", "serve", "fsync"): (500000, 3), ("blocked", "_start", "serve", "backoff", "nanosleep"): (250000, 4),
            ("idle", "_start", "pool", "epoll_wait"): (3000000, 5), ("idle", "_start", "tick", "nanosleep"): (1000000, 1)})
        side = page.data["sides"][0]
        self.assertEqual((side["samples"], side["unselected"], side["us"]), (200, 0, [8000000, 0, 8000000]))
        self.assertEqual(side["sessions"][0]["waits"],
                         SWITCHES | {name + "_us": us for name, us in EXACT.items()} | {"lost_us": 10000})
        page = self.page("--stacks=wall", "--idle=show")
        self.assertEqual((page.data["time"], page.data["idle"]), ("wall", True))

    def test_page_wakers(self):
        """Each stack has the four that woke it most; their sums are below its own."""
        self.fill_wakers()
        for i in range(9):
            self.wait(("_start", "serve", "fsync"), 0.001 * i, DISK, waker=("thread-%d" % i, PROG))
        page = self.page()
        way = ("_start", "serve", "lock_cache", "pthread_mutex_lock")
        found = {who: us for (path, who), us in page.wakers.items() if path == way}
        self.assertEqual(found, {("keeper", "prog"): 2000000, ("(interrupt)", ""): 500000, ("a" * 20, "other"): 250000})
        found = {who: us for (path, who), us in page.wakers.items() if path[-1] == "fsync"}
        self.assertEqual(found, {("(interrupt)", ""): 250000} | {("thread-%d" % i, "prog"): 1000 * i for i in (8, 7, 6)})
        self.assertEqual(page.waits()[("blocked",) + way], (3000000, 14))

    def test_page_prunes_waits(self):
        """A threshold is of the samples, and of the waits. What is left out is told of both."""
        self.fill()
        page = self.page("--threshold=10")
        self.assertEqual((page.data["pruned"], page.data["prunedUs"]), (0, 750000))
        self.assertEqual(sum(us for us, _ in page.waits().values()), 8000000)
        self.assertEqual(sum(records for _, records in page.waits().values()), 27)
        self.assertEqual(page.waits()["blocked", "_start", "serve", "lock_cache", "pthread_mutex_lock"], (3000000, 12))

    def test_page_by_time(self):
        """Each minute has its waits."""
        self.fill(ledger=False)
        self.write_minutes()
        page = self.page("--since=@%d" % BEGIN, "--until=@%d" % (BEGIN + 180))
        self.assertEqual(len(page.data["spans"]), 3)
        waits = collections.Counter()
        for path, context, span, count in page.times:
            if page.is_wait(context):
                waits[page.name(path[-1] - 1), page.contexts[context][10], span] += count
        self.assertEqual(waits, {("lock_cache", BLOCKED, 0): 1000000, ("lock_cache", BLOCKED, 1): 4000000,
                                 ("lock_cache", BLOCKED, 2): 1000000} | {("epoll_wait", 7, span): 500000 for span in range(3)})

    def test_no_waits(self):
        self.store.add(self.frames("_start", "serve"), 200, event=STACKS)
        self.report("--stacks=wait", rc=1)
        self.assertIn("the sessions have no waits: opcontrol --status says why", self.err)
        self.assertEqual(self.folded("--stacks=wall"), {"prog;[running];_start;serve": 2000000})

    def test_only_waits(self):
        """A session without samples of CPUs, and one without waits."""
        self.wait(("_start", "serve", "fsync"), 1, DISK)
        self.assertEqual(self.folded("--stacks=wall"), {"prog;[disk];_start;serve;fsync": 1000000})
        self.report("--stacks", rc=1)
        self.assertIn("no stack samples yet", self.err)


if __name__ == "__main__":
    unittest.main()
