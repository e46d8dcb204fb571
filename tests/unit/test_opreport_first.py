#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What opreport tells somebody who uses it for the first time: the header, columns with names, names
that are told apart, words that match a base name, and what comes near a word that matches nothing.

Run from the build directory by `make check`. The sessions have a ledger, as opd writes it; without
one the report is as that of oprofile, which the golden cases show.
"""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import elfsyms  # noqa: E402
from sample_files import ALL, put_image, write_samples  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("OPD_BINDIR", "bin"))
SCHEMA = os.path.join(SOURCE, "doc", "opreport.xsd")
PROGRAM = "void hot(void) { }\nvoid warm(void) { hot(); }\nvoid cold(void) { warm(); }\nvoid _start(void) { cold(); }\n"
FUNCTIONS = ("hot", "warm", "cold")
BEGIN = 1795230000  # 2026-11-21 03:00:00 UTC
MS = "TIMER.1000000.0."


def compile_program(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".c", "w", encoding="utf-8") as stream:
        stream.write(PROGRAM)
    subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static", "-fno-pie",
                    "-no-pie", "-o", path, path + ".c"], check=True)
    os.utime(path, (1, 1))


class First(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        cls.program, cls.other = (os.path.join(cls.images, below, "prog") for below in ("one/bin", "two/bin"))
        compile_program(cls.program)
        os.makedirs(os.path.dirname(cls.other))
        shutil.copy2(cls.program, cls.other)
        ranges = elfsyms.symbol_ranges(cls.program, FUNCTIONS)
        cls.at = {name: ranges[name][0] for name in FUNCTIONS}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def put(self, event=MS + ALL, session="current", image=None, number=0, app=None, **counts):
        image = image or self.program
        write_samples(os.path.join(self.dir, "samples", session, "{root}%s/{dep}/{root}%s" % (app or image, image), event),
                      [(self.at[name], counts[name]) for name in counts], event=number, count=int(event.split(".")[1]))

    def ledger(self, *events, session="current", host="db1", begin=BEGIN, seconds=1800, more=""):
        """The ledger of opd; an event is (name, count, stored, lost)."""
        with open(os.path.join(self.dir, "samples", session, "ledger"), "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t%d.000000000\nend\t%d.000000000\n%s%s" % (
                begin, begin + seconds, "host\t%s\n" % host if host else "", more))
            for name, count, stored, lost in events:
                stream.write("event\t%s\t%d\t0\treceived=%d\tstored=%d\tunattributed=0\tlost_kernel=0\tlost_no_space=%d\n" % (
                    name, count, stored + lost, stored, lost))

    def run_tool(self, *arguments, tool="opreport", rc=0, zone="UTC"):
        done = subprocess.run([os.path.join(TOOLS, tool), "--session-dir=" + self.dir] + list(arguments), capture_output=True,
                              env=dict(os.environ, TZ=zone), text=True, check=False, cwd=self.images)
        self.assertEqual(done.returncode, rc, done.stderr)
        self.errors = done.stderr
        return done.stdout

    def refused(self, *arguments, **more):
        """One line on standard error, and nothing else."""
        self.assertEqual(self.run_tool(*arguments, rc=1, **more), "")
        self.assertEqual(self.errors.count("\n"), 1, self.errors)
        return self.errors.rstrip("\n")

    # ---- the header ----

    def test_header(self):
        self.put(hot=60, warm=40)
        self.ledger(("TIMER", 1000000, 100, 25))
        head = self.run_tool("--verbose=details", "-l").splitlines()
        self.assertEqual(head[2:5], ["Host: db1", "Time: 2026-11-21 03:00:00 to 03:30:00 UTC, 30 min",
                                     "Samples: 100 of TIMER:1000000, 0.10 CPU seconds, 20 % lost"])
        self.assertEqual(self.run_tool("--verbose=details").splitlines()[2:5], head[2:5])
        self.ledger(("TIMER", 1000000, 100, 25), more="paused\t1764.250000000\nstopped\tyes\n")
        self.assertEqual(self.run_tool("--verbose=details").splitlines()[3],
                         "Time: 2026-11-21 03:00:00 to 03:30:00 UTC, profiled 36 s")
        self.ledger(("TIMER", 1000000, 100, 25), more="paused\t99999.000000000\n")  # nonsense is no long time
        self.assertEqual(self.run_tool("--verbose=details").splitlines()[3],
                         "Time: 2026-11-21 03:00:00 to 03:30:00 UTC, profiled 0 s")
        self.ledger(("TIMER", 1000000, 100, 25))
        self.assertEqual(self.run_tool("--verbose=details", "--images").splitlines()[2:5], head[2:5])
        self.assertIn("Time: 2026-11-21 04:00:00 to 04:30:00 CET", self.run_tool("--verbose=details", zone="CET-1"))
        self.assertNotIn("Host", self.run_tool("--verbose=details", "-l", "-n"))

    def test_header_has_three_lines(self):
        """At most, before the table; --verbose has all of it."""
        self.put(hot=60, warm=40)
        self.put(event="page-faults.1.0." + ALL, hot=7)
        self.ledger(("TIMER", 1000000, 100, 25), ("page-faults", 1, 7, 0))
        time = "Time: 2026-11-21 03:00:00 to 03:30:00 UTC, 30 min"
        samples = "Samples: 100 of TIMER:1000000, 0.10 CPU seconds, 20 % lost; 7 of page-faults:1, 0 % lost"
        for options in ([], ["-l"], ["--images"]):
            lines = self.run_tool(*options).splitlines()
            self.assertEqual(lines[:2], [time, samples])
            self.assertNotIn("Profiling", "\n".join(lines))
            whole = self.run_tool("--verbose=details", *options).splitlines()
            self.assertEqual([line.split(" ")[0] for line in whole[:7]],
                             ["CPU:", "Profiling", "Profiling", "Host:", "Time:", "Samples:", "Samples:"])
            self.assertEqual(whole[7:], lines[2:])
        self.put(session="old", hot=50)
        self.ledger(("TIMER", 1000000, 50, 0), session="old")
        lines = self.run_tool("-l", "event:TIMER", "{", "session:old", "}", "{", "session:current", "}").splitlines()
        self.assertEqual(lines[0], "First profile: Samples: 50 of TIMER:1000000, 0.05 CPU seconds, 0 % lost")
        self.assertTrue(lines[1].startswith("Second profile: Samples: 100 of") and lines[2].startswith("~: ")
                        and lines[3].startswith("samples  %"), lines)

    def test_names_that_fit(self):
        """Text has short names of C++ unasked, and takes what is too long out of the arguments of templates; --wide
        and JSON have the whole names, and -i takes both.
        """
        path = os.path.join(self.images, "cxx", "prog")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mangled = "_ZNSt6vectorIiSaIiEE9push_backERKi"  # push_back of std::vector<int, std::allocator<int> >
        long = "_ZN4shop3MapI" + "N4shop20ABCDEFGHIJKLMNOPQRSTE" * 8 + "E6lookupEv"
        subprocess.run(["objcopy", "--redefine-sym", "hot=" + mangled, "--redefine-sym", "warm=" + long, self.program, path],
                       check=True)
        os.utime(path, (1, 1))
        self.put(image=path, hot=60, warm=40)
        self.ledger(("TIMER", 1000000, 100, 0))

        def names(*options):
            return [line.split(None, 2)[2] for line in self.run_tool("-l", "-n", *options).splitlines()]
        full = "std::vector<int, std::allocator<int> >::push_back(int const&)"
        whole = names("--wide")
        self.assertEqual(whole[0], full)
        self.assertGreater(len(whole[1]), 180)
        short = names()
        self.assertEqual(short[0], "std::vector<int>::push_back(int const&)")
        self.assertRegex(short[1], r"^shop::Map<shop::ABC.*\.\.\..*PQRST>::lookup\(\)$")
        self.assertLessEqual(len(short[1]), 100)
        self.assertEqual(names("-D", "normal"), whole)
        rows = json.loads(self.run_tool("-l", "--format=json"))
        self.assertEqual([row["symbol"] for row in rows["symbols"]], whole)
        for word in (full, short[0]):
            self.assertEqual(names("-i", word), short[:1], word)

    def test_messages_name_their_option(self):
        for words, wanted in ((["--stacks", "--depth=0"], "opreport: --depth=0: invalid number '0': 1 or more"),
                              (["-t", "101"], "opreport: --threshold=101: illegal threshold"),
                              (["--sort=x"], "opreport: --sort=x: invalid sort key 'x'"),
                              (["--since="], "opreport: --since"),
                              (["-D", "a\nb"], "opreport: --demangle=a\\x0ab: ")):
            self.assertIn(wanted, self.refused(*words))
        self.put(hot=60)
        self.ledger(("TIMER", 1000000, 60, 0))
        self.assertEqual(self.refused("tid:5"), "opreport: the profile specification selects no samples")

    # ---- what is said at the end ----

    def notes(self, *arguments):
        """Of a report without and with symbols."""
        self.run_tool(*arguments)
        summary = self.errors
        self.run_tool("-l", *arguments)
        return [[line for line in errors.splitlines() if line.startswith("note: ")] for errors in (summary, self.errors)]

    def put_memory(self, app, count, more=""):
        below = "{root}%s/{dep}/{anon:anon}/7.0x1000.0x2000/" % app
        write_samples(os.path.join(self.dir, "samples", "current", below, MS + ALL), [(16, count)], count=1000000,
                      anon_start=0x1000)
        for image in more.split():
            self.put(app=app, image=image, hot=1)

    def test_gone_images_are_one_line(self):
        """A host with many short-lived programs has dozens of them."""
        self.put(hot=60)
        names = ["/gone/%d" % i for i in range(30)]
        for i, name in enumerate(names):
            self.put(image=name, hot=10 + i)
        self.ledger(("TIMER", 1000000, 795, 0))
        self.run_tool("-l")
        lines = [line for line in self.errors.splitlines() if "/gone/" in line]
        self.assertEqual(lines, ["warning: 30 images could not be found, above all /gone/29: 0 have the functions that "
                                 "opd kept, 30 are one symbol each; at the paths of 0 are other files. --verbose lists them."])
        for verbose in ("--verbose", "--verbose=details", "-V"):
            self.run_tool("-l", verbose)
            self.assertEqual(self.errors.count("/gone/"), 30, self.errors)
            self.assertIn("warning: /gone/7 could not be found.", self.errors)

    def test_a_gone_image_has_its_line(self):
        self.put(image="/gone/one", hot=10)
        self.ledger(("TIMER", 1000000, 10, 0))
        self.run_tool("-l")
        self.assertIn("warning: /gone/one could not be found.\n", self.errors)

    def test_processes_that_are_not_seen(self):
        """As in a container: what they are, and where to run opd."""
        for unseen, is_told in ((40, True), (2, False)):
            self.put(image="/no-process", app="/no-process", hot=unseen)
            self.put(image="/usr/bin/other", hot=60)
            for words in ((), ("-l",)):
                self.run_tool(*words)
                self.assertEqual("note: 40 % of the samples are of processes that opd does not see (no-process)" in self.errors,
                                 is_told, self.errors)

    def test_code_of_runtimes(self):
        """Samples in memory without a file are followed once by what they are and what helps, as the images of the
        application say.
        """
        for app, images, wanted in (("/opt/shop", "/usr/lib/jvm/libjvm.so", "Java code .*: opreport -l --runtime .*perfmap"),
                                    ("/usr/bin/java", "", "Java code without names: .*PreserveFramePointer"),
                                    ("/usr/bin/node", "", "JavaScript code without names: .*--perf-basic-prof"),
                                    ("/srv/api", "/usr/share/dotnet/libcoreclr.so", ".NET code .*PerfMapEnabled=1"),
                                    ("/usr/bin/nodeless", "", "code that nodeless made while it ran.*/tmp/perf-PID.map"),
                                    ("/usr/bin/node", "/tmp/7.jo", "JavaScript .*--perf-basic-prof; what has names")):
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            self.put(hot=60)
            self.put_memory(app, 39, images)
            self.ledger(("TIMER", 1000000, 99, 0))
            for notes in self.notes():
                self.assertEqual(len(notes), 1, self.errors)
                self.assertRegex(notes[0], "^note: (39|40) % of the samples are " + wanted)
        shutil.rmtree(os.path.join(self.dir, "samples"))
        self.put(hot=6000)
        self.put_memory("/usr/bin/node", 3)
        self.ledger(("TIMER", 1000000, 6003, 0))
        self.assertEqual(self.notes(), [[], []])

    def test_loops_of_interpreters(self):
        for name, function, wanted in (("python3.11", "_PyEval_EvalFrameDefault", "Python: .*opreport -l --runtime"),
                                       ("python3.12", "_PyEval_EvalFrameDefault", "Python: this report has"),
                                       ("perl", "Perl_runops_standard", "Perl: this report has the functions of the interpreter")):
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            image = os.path.join(self.images, "run", name)
            os.makedirs(os.path.dirname(image), exist_ok=True)
            subprocess.run(["objcopy", "--redefine-sym", "hot=" + function, self.program, image], check=True)
            os.utime(image, (1, 1))
            self.put(image=image, hot=60, warm=40)
            self.ledger(("TIMER", 1000000, 100, 0))
            summary, symbols = self.notes()
            self.assertEqual((summary, len(symbols)), ([], 1), self.errors)
            self.assertRegex(symbols[0], "^note: 60 % of the samples are in the loop of the interpreter of " + wanted)

    def test_cpu(self):
        """The ledger has the CPU of a host with a PMU; sessions of two kinds of host have none."""
        self.put(hot=60)
        self.ledger(("TIMER", 1000000, 60, 0), more="cpu\tarm/armv8-ca57\n")
        self.assertEqual(self.run_tool("--verbose=details", "-l").splitlines()[0], "CPU: ARM Cortex-A57")
        self.put(session="other", warm=40)
        self.ledger(("TIMER", 1000000, 40, 0), session="other", more="cpu\tarm/armv8-ca57\n")
        both = "session:current,other"
        self.assertIn("CPU: ARM Cortex-A57\n", self.run_tool("--verbose=details", "-l", "--merge=lib", both))
        self.ledger(("TIMER", 1000000, 40, 0), session="other", more="cpu\tnew_core\n")
        self.assertIn("CPU: CPU with timer interrupt\n", self.run_tool("--verbose=details", "-l", "--merge=lib", both))
        self.assertIn("CPU: new_core\n", self.run_tool("--verbose=details", "-l", "session:other"))

    def test_no_ledger(self):
        """A session of the genuine tools has the header of the genuine tools."""
        self.put(hot=60)
        self.assertEqual(len(self.run_tool().splitlines()), 6)

    def test_part(self):
        """The header is about the samples of the report; what was lost is about the session."""
        self.put(hot=60)
        self.put(image=self.other, warm=40)
        self.ledger(("TIMER", 1000000, 100, 0))
        self.assertIn("Samples: 40 of TIMER:1000000, 0.04 CPU seconds, 0 % lost\n", self.run_tool(self.other))

    def test_sessions(self):
        for i, session in enumerate(("one", "two")):
            self.put(session=session, hot=50)
            self.ledger(("TIMER", 1000000, 50, 0), session=session, begin=BEGIN + 86400 * i, host="db%d" % i)
        head = self.run_tool("--verbose=details", "session:one,two", "-m", "lib").splitlines()
        self.assertEqual(head[2:5], ["Hosts: db0, db1", "Time: 2026-11-21 03:00:00 to 2026-11-22 03:30:00 UTC, 1 h in 2 sessions",
                                     "Samples: 100 of TIMER:1000000, 0.10 CPU seconds, 0 % lost"])

    def test_import(self):
        """The time of an import is not the time of the samples."""
        self.put(hot=50)
        self.ledger(("TIMER", 1000000, 50, 0), more="imported\tyes\n")
        self.assertIn("Host: db1\nSamples: 50 of", self.run_tool("--verbose=details"))

    def test_cycles(self):
        self.put(event="page-faults.1.0." + ALL, hot=50)
        self.ledger(("page-faults", 1, 50, 0))
        self.assertIn("Samples: 50 of page-faults:1, 0 % lost\n", self.run_tool())

    def test_bad_host(self):
        self.put(hot=50)
        for host in ("\033[2J", "a b", "x" * 65):
            self.ledger(("TIMER", 1000000, 50, 0), host=host)
            self.assertNotIn("Host", self.run_tool())

    # ---- the header for programs ----

    def two_events(self):
        self.put(hot=60, warm=40)
        self.put(event="page-faults.1.0." + ALL, number=0x202, cold=5)
        self.ledger(("TIMER", 1000000, 100, 25), ("page-faults", 1, 5, 0))

    def test_json(self):
        self.two_events()
        for more in ([], ["-l"], ["--images"]):
            report = json.loads(self.run_tool("--format=json", *more))
            self.assertEqual((report["hosts"], report["begin"], report["end"], report["seconds"], report["sessions"]),
                             (["db1"], "2026-11-21T03:00:00Z", "2026-11-21T03:30:00Z", 1800, 1))
            self.assertEqual([(c["samples"], c.get("cpu-seconds"), c["lost-percent"]) for c in report["classes"]],
                             [(100, 0.1, 20), (5, None, 0)])

    def test_csv(self):
        self.two_events()
        for more in ([], ["-l"], ["--images"], ["-l", "-a"]):
            rows = list(csv.reader(io.StringIO(self.run_tool("--format=csv", *more), newline="")))
            self.assertEqual(len({len(row) for row in rows}), 1, rows)
            facts = {row[1]: row[2] for row in rows if row[0] == "profile"}
            self.assertEqual(facts, {"host": "db1", "sessions": "1", "begin": "2026-11-21T03:00:00Z",
                                     "end": "2026-11-21T03:30:00Z", "seconds": "1800", "samples TIMER:1000000": "100",
                                     "cpu-seconds TIMER:1000000": "0.1", "lost-percent TIMER:1000000": "20",
                                     "samples page-faults:1": "5", "lost-percent page-faults:1": "0"})
        self.assertNotIn("profile", self.run_tool("--format=csv", "-n"))

    def test_xml(self):
        self.two_events()
        text = self.run_tool("-X")
        recorded = xml.etree.ElementTree.fromstring(text).find("recorded")
        self.assertEqual(recorded.get("begin"), "2026-11-21T03:00:00Z")
        self.assertEqual([host.get("name") for host in recorded.findall("host")], ["db1"])
        self.assertEqual([(t.get("name"), t.get("count"), t.get("cpuseconds"), float(t.get("lostpercent")))
                          for t in recorded.findall("total")],
                         [("TIMER:1000000", "100", "0.100000", 20), ("page-faults:1", "5", None, 0)])
        if not shutil.which("xmllint"):
            self.skipTest("xmllint is not there")
        done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, "-"], input=text, text=True, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- columns, rows and levels ----

    def test_named_columns(self):
        self.two_events()
        lines = self.run_tool("-l").splitlines()
        at = lines.index("TIMER:1000000     page-faults:1")
        self.assertEqual(lines[at + 1], "samples  %        samples  %        symbol name")
        lines = self.run_tool("-l", "-w", "-a").splitlines()
        names = next(line for line in lines if "page-faults:1" in line and "Samples" not in line)
        titles = lines[lines.index(names) + 1]
        self.assertEqual([names.index(n) for n in ("TIMER", "page-faults")],
                         [titles.index("samples"), titles.index("samples", titles.index("cum. %"))])

    def test_top(self):
        """--top limits the images of an application, and the addresses of a symbol, too."""
        library = os.path.join(self.images, "lib.so")
        self.put(hot=60)
        self.put(image=library, app=self.program, hot=20)
        self.put(image=self.other, hot=10)
        self.ledger(("TIMER", 1000000, 90, 0))
        self.assertEqual([line.split()[-1] for line in self.run_tool("-n", "-f", "--top=1").splitlines()], [self.program] * 2)
        self.assertEqual(len(self.run_tool("-n", "-f", "--top=2").splitlines()), 4)
        report = json.loads(self.run_tool("--format=json", "--top=1"))
        self.assertEqual([len(a["images"]) for a in report["applications"]], [1])
        put_image(self.dir, self.other, [(self.at["hot"] + i, n) for i, n in enumerate((3, 9, 1, 9, 4))], event=MS + ALL)
        details = [line.split()[1] for line in self.run_tool("-d", "-n", "--top=3", self.other).splitlines() if line[0] == " "]
        self.assertEqual(details, ["9", "9", "4"])
        report = json.loads(self.run_tool("-d", "--format=json", "--top=1", self.other))
        self.assertEqual([[d["samples"] for d in s["details"]] for s in report["symbols"]], [[[9]]])

    def test_equal_names(self):
        """Directories tell files with one name apart; other names stay short."""
        third = os.path.join(self.images, "three", "alone")
        self.put(hot=60)
        self.put(image=self.other, hot=40)
        self.put(image=third, hot=20)
        self.ledger(("TIMER", 1000000, 120, 0))
        self.assertEqual([line.split()[-1] for line in self.run_tool("-n").splitlines()], ["one/bin/prog", "two/bin/prog", "alone"])
        self.assertEqual({line.split()[2] for line in self.run_tool("-n", "-l").splitlines()},
                         {"one/bin/prog", "two/bin/prog", "alone"})
        self.assertIn("\n       60 50.0000 %s\n" % self.program, "\n" + self.run_tool("-n", "-f"))

    def test_path_within_path(self):
        for image, count in (("/bin/x", 3), ("/opt/bin/x", 2), ("/opt/opt/bin/x", 1)):
            self.put(image=image, hot=count)
        self.ledger(("TIMER", 1000000, 6, 0))
        self.assertEqual([line.split()[-1] for line in self.run_tool("-n").splitlines()],
                         ["/bin/x", "/opt/bin/x", "/opt/opt/bin/x"])

    # ---- threads and CPUs ----

    def put_threads(self, session="current", begin=BEGIN):
        for tgid, tid, cpu, count in ((7, 7, 0, 3), (7, 8, 1, 5), (9, 9, 0, 7)):
            self.put(event=MS + "%d.%d.%d" % (tgid, tid, cpu), session=session, hot=count)
        self.ledger(("TIMER", 1000000, 15, 0), session=session, begin=begin)

    def rows_of(self, *words):
        """The samples of each application."""
        return [line.split()[0] for line in self.run_tool("-n", *words).splitlines() if line[0] != "\t"]

    def columns_of(self, *words):
        return self.run_tool("-n", *words).split()[:-1:2]

    def test_threads_are_merged(self):
        self.put_threads()
        self.assertEqual(self.columns_of("cpu:all", "-m", "tgid"), ["10", "5"])
        self.assertEqual(self.columns_of("-m", "cpu,tgid"), ["15"])
        self.assertEqual(self.errors, "")
        self.assertEqual(self.columns_of("-m", "cpu", "tgid:9"), ["7"])
        self.assertEqual(self.columns_of(), ["10", "5"])
        self.assertEqual(self.errors, "note: the samples of 2 processes, 3 threads are summed; "
                         "to have a column for each: tgid:all, tid:all\n")
        self.assertEqual(self.columns_of("tid:all"), ["3", "5", "7"])
        self.assertIn("the samples of 2 CPUs are summed", self.errors)
        self.assertEqual(self.columns_of("tgid:all"), ["8", "7"])
        self.assertEqual(self.columns_of("tid:8"), ["5"])

    def test_merged_events(self):
        """Events keep their columns; threads and CPUs are added up."""
        self.put_threads()
        self.put(event="page-faults.1.0.7.7.0", number=0x202, hot=2)
        self.assertEqual(self.columns_of(), ["15", "2"])
        self.assertIn("2 processes, 3 threads, 2 CPUs are summed", self.errors)

    def test_since(self):
        self.put_threads(session="one")
        self.put_threads(session="two", begin=BEGIN + 3600)
        self.assertEqual(self.columns_of("--since=@%d" % BEGIN, "cpu:all"), ["20", "10"])
        self.assertEqual(self.columns_of("--since=@%d" % BEGIN, "tid:8"), ["10"])

    def test_by_thread(self):
        self.put_threads()
        self.assertEqual([line.split(None, 2)[2] for line in self.run_tool("-n", "--by=thread", "cpu:all").splitlines()],
                         ["tid:9 tgid:9 prog", "tid:8 tgid:7 (prog)", "tid:7 tgid:7 prog"])
        self.assertIn("hot", self.run_tool("-n", "-l", "--by=thread"))
        self.put(hot=1, event=MS + ALL, session="merged")
        self.ledger(("TIMER", 1000000, 1, 0), session="merged")
        line = self.refused("--by=thread", "session:merged")
        for remedy in ("opcontrol --setup --separate=kernel,thread", "operf --separate-thread"):
            self.assertIn(remedy, line)

    def test_genuine_threads(self):
        """Without a ledger the report is refused as by the genuine tool."""
        self.put_threads()
        os.unlink(os.path.join(self.dir, "samples", "current", "ledger"))
        self.assertIn("conflicts with parameter tid", self.refused())
        self.assertEqual(self.columns_of("tid:all", "-m", "tgid", "cpu:0"), ["10"])

    def test_opannotate_merges(self):
        self.put_threads()
        self.run_tool("-a", tool="opannotate")
        self.assertIn("3 threads", self.errors)

    # ---- changes ----

    def test_changes(self):
        """What changed most comes first, noise last and with a mark."""
        for session, counts in (("a", dict(hot=10000, warm=5000, cold=100)), ("b", dict(hot=10000, warm=8000, cold=105))):
            self.put(session=session, **counts)
            self.ledger(("TIMER", 1000000, sum(counts.values()), 0), session=session)
        sides = ["-l", "{", "session:a", "}", "{", "session:b", "}", "--sort=change"]
        lines = self.run_tool("--verbose=details", *sides).splitlines()
        self.assertEqual([line.split()[-1] for line in lines[-3:]], ["warm", "hot", "cold"])
        before, after = 15100, 18105
        changes = [100 * (new / after - old / before) / (old / before) for old, new in ((5000, 8000), (10000, 10000), (100, 105))]
        self.assertEqual([line.split()[2] for line in lines[-3:]],
                         [("%+7.4f" % change)[:8] + mark for change, mark in zip(changes, ("", "", "~"))])
        self.assertIn("~: the change is within counting noise (two standard errors)", lines)
        self.assertEqual((lines.index("First profile:"), lines.index("Second profile:")), (2, 6))
        self.assertIn("Samples: 15100 of TIMER:1000000, 15.1 CPU seconds, 0 % lost", lines[3:6])
        rows = json.loads(self.run_tool("--verbose=details", *sides, "--format=json"))
        self.assertEqual([(row["symbol"], row["noise"]) for row in rows["symbols"]],
                         [("warm", [False]), ("hot", [False]), ("cold", [True])])
        self.assertEqual((rows["before"]["classes"][0]["samples"], rows["before"]["hosts"]), (15100, ["db1"]))
        rows = list(csv.reader(io.StringIO(self.run_tool("--verbose=details", *sides, "--format=csv"), newline="")))
        self.assertEqual({row[1]: row[-1] for row in rows if row[0] == "symbol"}, {"warm": "no", "hot": "no", "cold": "yes"})
        self.assertEqual({row[2] for row in rows if row[:2] == ["before", "samples TIMER:1000000"]}, {"15100"})
        self.assertEqual(len({len(row) for row in rows}), 1)
        self.assertIn("needs two profiles", self.refused("-l", "--sort=change"))

    def put_two_hours(self):
        for number, (session, counts) in enumerate((("a", dict(hot=10000, warm=5000)), ("b", dict(hot=10000, warm=8000)))):
            self.put(session=session, **counts)
            self.ledger(("TIMER", 1000000, sum(counts.values()), 0), session=session, begin=BEGIN + 3600 * number)

    def test_diff_of_spans(self):
        """The earlier span is the base, whichever comes first. TZ is UTC in all calls."""
        self.put_two_hours()
        sides = self.run_tool("-l", "{", "session:a", "}", "{", "session:b", "}", "--sort=change")
        first, second = "2026-11-21 03:00 UTC..2026-11-21 03:25 UTC", "2026-11-21 04:05 UTC..2026-11-21 04:20 UTC"
        for pair in ((first, second), (second, first)):
            self.assertEqual(self.run_tool("-l", "--diff", *pair, "--sort=change"), sides)
        os.environ["TZ"] = "UTC"
        self.addCleanup(os.environ.pop, "TZ")
        self.assertEqual(self.run_tool("-l", "--diff=2026-11-21 03:00..03:25", "2026-11-21 04:05..04:20", "--sort=change"), sides)
        self.assertEqual(self.run_tool("-l", "--diff=2026-11-20 23:50..03:25", "2026-11-21 04:05..", "--sort=change"), sides)
        self.assertIn("needs a second span", self.refused("-l", "--diff", first))
        self.assertIn("--diff=03:00 is not a span of time", self.refused("-l", "--diff", "03:00", second))
        self.assertIn("ends before it begins", self.refused("-l", "--diff", "@9..@5", second))
        self.assertIn("spans of time of its own", self.refused("-l", "--diff", first, second, "--last=1h"))
        self.assertIn("use only one of them",
                      self.refused("-l", "--diff", first, second, "{", "session:a", "}", "{", "session:b", "}"))

    def test_top_changes(self):
        """What grew beyond noise since the span before; two spans of one session are refused."""
        for number, counts in enumerate((dict(hot=10000, warm=5000, cold=100), dict(hot=10000, warm=8000, cold=105))):
            self.put(session="s%d" % number, **counts)
            self.ledger(("TIMER", 1000000, sum(counts.values()), 0), session="s%d" % number, begin=BEGIN + 3600 * number,
                        seconds=3600)
        second = ["--since=@%d" % (BEGIN + 3600), "--until=@%d" % (BEGIN + 7200)]
        rows = json.loads(self.run_tool("--top-changes", "--format=json", *second))
        self.assertEqual([(row["symbol"], row["samples"]) for row in rows["symbols"]], [("warm", [8000])])
        self.assertEqual(rows["before"]["classes"][0]["samples"], 15100)
        part = ["--since=@%d" % (BEGIN + 5400), "--until=@%d" % (BEGIN + 7200)]
        rows = json.loads(self.run_tool("--top-changes", "--format=json", *part))  # of whole sessions, and said to be so
        self.assertEqual([row["symbol"] for row in rows["symbols"]], ["warm"])
        self.assertIn("from 2026-11-21 04:00:00 UTC to 2026-11-21 05:00:00 UTC", self.errors)
        self.run_tool("-l", "--diff", "@%d..@%d" % (BEGIN + 5, BEGIN + 9), "@%d..@%d" % (BEGIN + 9, BEGIN + 12), rc=1)
        self.assertIn("have samples in common", self.errors)
        self.assertIn("needs a span of time", self.refused("--top-changes"))

    def test_words_of_time(self):
        """--at and --last are other words for --since and --until."""
        self.put_two_hours()
        after = time.time() - BEGIN - 5400
        for words, wanted in ((["--at=@%d" % (BEGIN + 60)], 15000), (["--at=@%d" % (BEGIN + 60), "--window=3h"], 33000),
                              (["--at=@%d" % (BEGIN + 1890)], None), (["--at=@%d" % (BEGIN + 1890), "--window=4min"], 15000),
                              (["--last=%dmin" % (after // 60 + 10)], 18000), (["--last=%dmin" % (after // 60 + 70)], 33000)):
            if wanted is None:
                self.assertIn("no session was taken in that time", self.refused("-n", *words))
            else:
                self.assertEqual(self.run_tool("-n", *words).split()[0], str(wanted), words)
        for words in (["--window=1min"], ["--at=now", "--last=1h"], ["--since=now", "--last=1h"], ["--at=now", "--window=0"],
                      ["--last=yesterday"], ["--at=nonsense"]):
            self.assertIn(words[-1].split("=")[0], self.refused(*words), words)

    def test_limit_of_noise(self):
        """Equal totals: 100 and 129 differ by 29, the standard error is sqrt(229) = 15.13."""
        for count, is_noise in ((129, True), (131, False), (130, True)):
            for session, hot in (("a", 100), ("b", count)):
                self.put(session=session, hot=hot, warm=100000 - hot)
                self.ledger(("TIMER", 1000000, 100000, 0), session=session)
            rows = json.loads(self.run_tool("-l", "--format=json", "-i", "hot,warm", "{", "session:a", "}", "{", "session:b", "}"))
            self.assertEqual([row["noise"] for row in rows["symbols"] if row["symbol"] == "hot"], [[is_noise]], count)

    def test_new_and_gone(self):
        """Four samples more than none may be chance; five are not."""
        for session, counts in (("a", dict(hot=100000, warm=4)), ("b", dict(hot=100000, cold=5))):
            self.put(session=session, **counts)
            self.ledger(("TIMER", 1000000, sum(counts.values()), 0), session=session)
        shown = self.run_tool("-l", "-n", "{", "session:a", "}", "{", "session:b", "}").splitlines()
        self.assertEqual({line.split()[-1]: line.split()[2] for line in shown[1:]}, {"cold": "+++", "warm": "---~"})

    # ---- words ----

    def test_base_name(self):
        self.put(hot=60)
        self.put(image=self.other, hot=40)
        self.put(image="/usr/bin/else", hot=1)
        self.put(image="/usr/bin/[odd]", hot=2)
        self.ledger(("TIMER", 1000000, 103, 0))
        for words in (["prog"], ["image:prog"], ["image=prog"], ["lib-image:prog"], ["pr?g"], ["image-exclude:else,[odd]"]):
            self.assertEqual(self.rows_of(*words), ["60", "40"], words)
        self.assertEqual(self.rows_of("else"), ["1"])
        self.assertEqual(self.rows_of("[odd]"), ["2"])
        self.assertEqual(self.rows_of("prog", "else"), ["60", "40", "1"])
        self.assertEqual(self.rows_of("*two/bin/prog"), ["40"])
        os.unlink(os.path.join(self.dir, "samples", "current", "ledger"))
        self.assertIn("profile specification selects no samples", self.refused("prog"))

    def test_file_here(self):
        """A file of the working directory is meant before others of its name."""
        self.put(hot=60)
        self.put(image=os.path.join(self.images, "prog"), hot=3)
        self.ledger(("TIMER", 1000000, 63, 0))
        with open(os.path.join(self.images, "prog"), "w", encoding="ascii"):
            pass
        self.addCleanup(os.unlink, os.path.join(self.images, "prog"))
        self.assertEqual(self.rows_of("prog"), ["3"])
        self.assertEqual(self.rows_of("*/prog"), ["60", "3"])

    def test_relative_path(self):
        self.put(hot=60)
        below = os.path.relpath(self.program, self.images)
        for word in (below, "./" + below, "one/../" + below):
            self.assertEqual(self.rows_of(word), ["60"])
            self.assertEqual(self.errors, "")
            self.run_tool("-a", word, tool="opannotate")
            self.assertEqual(self.errors, "")

    def test_tags_twice(self):
        self.put(hot=60)
        self.put(image=self.other, hot=40)
        self.ledger(("TIMER", 1000000, 100, 0))
        self.assertEqual(self.rows_of("image:" + self.program, "image:" + self.other), ["60", "40"])

    def test_did_you_mean(self):
        self.put(hot=60)
        self.put(image="/usr/bin/redis-server", hot=40)
        self.put(session="monday", hot=1)
        self.ledger(("TIMER", 1000000, 100, 0))
        for words, hint in ((["--symbls"], "--symbols"), (["--formt=json"], "--format"), (["--format=jsn"], "json"),
                            (["--sort=smple"], "sample"), (["--merge=tig"], "tid"), (["--color=alway"], "always"),
                            (["-D", "smrt"], "smart"), (["-V", "stat"], "stats"),
                            (["redis-servr"], "redis-server"), (["image:porg"], "prog"), (["Prog"], "prog"),
                            (["/usr/bin/rediss-server"], "/usr/bin/redis-server"), (["event:TIMR"], "event:TIMER"),
                            (["session:mondya"], "session:monday"), (["sesion:monday"], "session"),
                            (["-l", "-i", "hto", "prog"], "hot")):
            line = self.refused(*words)
            self.assertTrue(line.endswith("did you mean '%s'?" % hint), line)
        self.assertTrue(self.refused("--symbols=3").endswith(": write --symbols"))
        self.assertRegex(self.refused("--session-dir"), ": write --session-dir=[a-z]+$")
        for tool, words, hint in (("ophelp", ["page-fualts"], "page-faults"), ("ophelp", ["--name"], "--names"),
                                  ("opcontrol", ["--sttaus"], "--status")):
            done = subprocess.run([os.path.join(TOOLS, tool), *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertTrue(done.stderr.endswith("did you mean '%s'?\n" % hint), done.stderr)
        self.assertNotIn("did you mean", self.refused("nothing-like-it"))
        self.assertNotIn("did you mean", self.refused("--nothing-like-it"))
        self.assertNotIn("did you mean", self.refused("-l", "-i", "nothing_like_it", "prog"))

    def test_word_of_several(self):
        """A report that has something warns of the word that matches nothing."""
        self.put(hot=60)
        self.ledger(("TIMER", 1000000, 60, 0))
        self.assertEqual(self.columns_of("prog", "porg"), ["60"])
        self.assertEqual(self.errors, "warning: no image matches porg; did you mean 'prog'?\n")
        self.assertEqual(self.columns_of("-l", "-i", "hot,warn"), ["60"])
        self.assertIn("there is no symbol warn in these images; did you mean 'warm'?", self.errors)
        self.assertIn("warm has no samples: it is a symbol of " + self.program, self.refused("-l", "-i", "warm"))
        self.assertIn("there is no symbol hotter", self.refused("-i", "hotter", "-a", tool="opannotate"))

    def test_hostile_names(self):
        """The time for a suggestion is bounded, and names do not reach the terminal."""
        for i in range(300):
            self.put(image="/bin/%s%d\033" % ("x" * 120, i), hot=1)
        self.put(image="/bin/\033[2Jabcdef", hot=1)
        self.ledger(("TIMER", 1000000, 301, 0))
        self.assertNotIn("\033", self.refused("y" * 120 + "1"))
        self.assertNotIn("\033", self.refused("[2Jabcdefg"))


if __name__ == "__main__":
    unittest.main()
