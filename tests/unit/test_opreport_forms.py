#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport's reports of calls and of changes, and its other forms, on sessions written here.

Run from the build directory by `make check`; a compiler makes the image that the samples are of.
"""
import csv
import io
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
sys.dont_write_bytecode = True
import elfsyms  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
from sample_files import ALL, put_image, write_samples  # noqa: E402
from terminals import read_terminal  # noqa: E402

OPREPORT = os.path.abspath(os.environ.get("OPREPORT", "bin/opreport"))
SCHEMA = os.path.join(SOURCE, "doc", "opreport.xsd")
PROGRAM = "void hot(void) { }\nvoid warm(void) { hot(); }\nvoid cold(void) { warm(); }\nvoid _start(void) { cold(); }\n"
FUNCTIONS = ("hot", "warm", "cold")
FAMILY10, NEHALEM = 35, 47
HANG_SECONDS = 60


class Forms(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        source, cls.program = os.path.join(cls.images, "prog.c"), os.path.join(cls.images, "prog")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-g", "-O0", "-nostdlib", "-static",
                        "-fno-pie", "-no-pie",
                        "-o", cls.program, source], check=True)
        os.utime(cls.program, (1, 1))
        ranges = elfsyms.symbol_ranges(cls.program, FUNCTIONS)
        cls.at = {name: ranges[name][0] for name in FUNCTIONS}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def put(self, samples, event="TIMER.0.0." + ALL, session="current", callee=None, event_number=0, **header):
        part = "{root}%s/" % self.program
        below = part + "{dep}/" + part + ("{cg}/%s/" % callee if callee else "")
        fields = event.split(".")
        write_samples(os.path.join(self.dir, "samples", session, below + event), samples, event=event_number, mask=int(fields[2]),
                      count=int(fields[1]), **header)

    def put_functions(self, session="current", **counts):
        self.put([(self.at[name], counts[name]) for name in counts], session=session)

    def put_calls(self, *calls):
        self.put([(self.at[a] << 32 | self.at[b], n) for a, b, n in calls], callee="{root}" + self.program)

    def run_tool(self, *arguments, rc=0, env=None, **options):
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir] + list(arguments), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, env=dict(os.environ, **(env or {})), **options)
        self.assertEqual(done.returncode, rc, done.stderr.decode())
        if rc:
            self.assertEqual(done.stdout, b"")
        return done.stdout.decode() if not rc else done.stderr.decode()

    # ---- sessions ----

    def put_link(self):
        self.put_functions(hot=60, warm=20)
        os.symlink("current", os.path.join(self.dir, "samples", "again"))

    def test_one_session_twice(self):
        """The samples of one session are counted once, whatever its second name is, and the tool
        reports it.
        """
        self.put_link()
        alone = self.run_tool("-l", "-n")
        self.assertIn("60", alone)
        for more in ("current", "again", os.path.join(self.dir, "samples", "current")):
            for merge in ((), ("-m", "lib"), ("-m", "all")):
                done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-l", "-n", *merge, "session:current," + more],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
                self.assertEqual(done.stdout.decode(), alone)
                self.assertIn(b"counted once", done.stderr)

    # ---- callgraph ----

    def test_callgraph(self):
        self.put_functions(hot=60, warm=20)
        self.put_calls(("warm", "hot", 30), ("cold", "warm", 10), ("cold", "hot", 10))
        rule = "-" * 79 + "\n"
        blocks = [
            "  10       25.0000  cold\n  30       75.0000  warm\n60       75.0000  hot\n  60       100.000  hot [self]\n",
            "  10       100.000  cold\n20       25.0000  warm\n  30       60.0000  hot\n  20       40.0000  warm [self]\n",
            "0              0  cold\n  10       50.0000  hot\n  10       50.0000  warm\n  0              0  cold [self]\n",
        ]
        self.assertEqual(self.run_tool("-c", "-n"), rule + rule.join(blocks) + rule)
        self.assertEqual(self.run_tool("-c", "-n", "-i", "warm"),
                         rule + blocks[1].replace("20       25.0000", "20       100.000") + rule)
        self.assertEqual(self.run_tool("-c", "-n", "-t", "70"), rule + blocks[0].split("\n", 1)[1] + rule)
        self.assertEqual(self.run_tool("-c", "-n", "--top=1"), rule + blocks[0].split("\n", 1)[1] + rule)
        self.assertEqual(self.run_tool("-c", "-n", "--top=2"), rule + rule.join(blocks[:2]) + rule)
        self.assertIn("  30       37.5000  warm\n", self.run_tool("-c", "-n", "-%"))
        self.assertIn("  30       75.0000  prog.c:2                    warm\n",
                      self.run_tool("-c", "-n", "-g"))
        self.assertNotIn("[self]", self.run_tool("-l", "-n"))

    def test_calls_alone(self):
        self.put_calls(("warm", "hot", 30))
        self.assertIn("profile specification selects no samples", self.run_tool("-l", rc=1))
        report = self.run_tool("-c", "-n")
        self.assertIn("0              0  hot\n", report)
        self.assertIn("  30       100.000  warm\n", report)

    def test_calls_to_nowhere(self):
        self.put_functions(hot=1)
        self.put([(self.at["warm"] << 32 | 1, 7)], callee="{root}" + self.program)
        command = [OPREPORT, "--session-dir=" + self.dir, "-c"]
        done = subprocess.run(command + ["--symbols-from=symtab"], capture_output=True, check=True)
        self.assertIn(b"dropping hyperspace sample", done.stderr)
        self.assertNotIn(b"warm", done.stdout)
        done = subprocess.run(command, capture_output=True, check=True)
        self.assertNotIn(b"dropping", done.stderr)
        self.assertIn(b"warm", done.stdout)

    def test_kernel_that_is_nowhere(self):
        part = "{kern}/no-vmlinux/"
        self.put_functions(hot=1)
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "{cg}/{root}" + self.program +
                                   "/TIMER.0.0." + ALL), [(self.at["hot"] | 5 << 32, 9)], kernel=1)
        self.assertNotIn("no-vmlinux", self.run_tool("-c", "-n"))

    def test_callgraph_is_refused(self):
        self.put_functions(hot=1)
        self.assertIn("--callgraph is incompatible with --details", self.run_tool("-c", "-d", rc=1))

    def test_callgraph_of_merged_libraries(self):
        """What another image calls is where the samples are: not once more under the caller's
        application.
        """
        self.put_functions(hot=60)
        other = "{root}/no/other/"
        write_samples(os.path.join(self.dir, "samples/current",
                                   other + "{dep}/" + other + "{cg}/{root}" + self.program, "TIMER.0.0." + ALL),
                      [(1 << 32 | self.at["hot"], 30)])
        report = json.loads(self.run_tool("-c", "-m", "lib", "--format=json"))
        blocks = {block["symbol"]: block for block in report["symbols"]}
        self.assertEqual(len(blocks), len(report["symbols"]))
        self.assertEqual((blocks["hot"]["samples"], [caller["samples"] for caller in blocks["hot"]["callers"]]), ([60], [[30]]))

    # ---- differences ----

    def test_difference(self):
        self.put_functions(session="old", hot=50, cold=50)
        self.put_functions(hot=75, warm=25)
        rows = ["75       75.0000  +50.0000  hot\n", "50       ---      ---       cold\n", "25       25.0000  +++       warm\n"]
        for words in (["{", "session:old", "}", "{", "}"], ["{", "session:old", "}", "{}"],
                      [self.program, "{", "session:old", "}", "{", "session:current", "}"]):
            self.assertEqual(self.run_tool("-l", "-n", *words), "".join(rows))
        self.assertEqual([line.split() for line in self.run_tool("-l", "-n", "-a", "{", "session:old", "}", "{}").splitlines()],
                         [["75", "75", "75.0000", "75.0000", "+50.0000", "hot"], ["50", "75", "---", "75.0000", "---", "cold"],
                          ["25", "100", "25.0000", "100.000", "+++", "warm"]])
        self.assertEqual(self.run_tool("-l", "-n", "-t", "60", "{", "session:old", "}", "{}"), "".join(rows[1:]))
        self.assertEqual(self.run_tool("-l", "-n", "--top=1", "{", "session:old", "}", "{}"), rows[0])
        self.assertIn("samples  %        diff %    symbol name\n", self.run_tool("-l", "{", "session:old", "}", "{}"))
        self.assertEqual(self.run_tool("-l", "-n", self.program, "{}", "{}"),
                         "75       75.0000       +0   hot\n25       25.0000       +0   warm\n")
        self.assertEqual(self.run_tool("-n", "{}", "{}"), self.run_tool("-n"))

    def test_difference_of_a_rebuilt_program(self):
        """Functions moved and have other lengths, and the image has another build-id: they are the same.
        An archive has each program beside its session.
        """
        others = PROGRAM.split("\n", 1)[1]
        parts = {"old": "void hot(void) { }\n" + others,
                 "new": "int more(int a) { return a * 3; }\nvoid hot(void) { more(4); more(5); }\n" + others}
        words = []
        for name, text in parts.items():
            top = os.path.join(self.dir, name)
            program = top + "/opt/prog"
            os.makedirs(os.path.dirname(program))
            with open(program + ".c", "w", encoding="utf-8") as stream:
                stream.write(text)
            subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static", "-fno-pie",
                            "-no-pie", "-Wl,--build-id", "-o", program, program + ".c"], check=True)
            os.utime(program, (1, 1))
            ranges = elfsyms.symbol_ranges(program, ("hot", "warm", "_start"))
            below = top + "/var/lib/oprofile/samples/current/{root}/opt/prog/{dep}/{root}/opt/prog/TIMER.0.0." + ALL
            counts = (50, 50) if name == "old" else (75, 25)
            write_samples(below, [(ranges["hot"][0], counts[0]), (ranges["warm"][0], counts[1])])
            words += ["{", "archive:" + top, "}"]
        self.assertNotEqual(*[elfsyms.symbol_ranges(os.path.join(self.dir, name, "opt/prog"), ("warm",)) for name in parts])
        done = subprocess.run([OPREPORT, "-l", "-n", *words], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "75       75.0000  +50.0000  hot\n25       25.0000  -50.0000  warm\n", done.stderr)

    def test_difference_of_functions_of_one_name(self):
        """Two static functions of one name stay two; each is compared with the one of its length."""
        sizes = {"old": (1, 9), "new": (1, 4, 9)}
        for name, lengths in sizes.items():
            top = os.path.join(self.dir, name)
            os.makedirs(top + "/opt")
            for i, length in enumerate(lengths):
                with open("%s/%d.c" % (top, i), "w", encoding="utf-8") as stream:
                    stream.write("static int same(int a) { %s return a; }\nint f%d(void) { return same(1); }\n%s" %
                                 ("a *= 3; " * length, i, "void _start(void) { f0(); }\n" if not i else ""))
            subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static", "-fno-pie",
                            "-no-pie", "-Wl,--build-id", "-w", "-o", top + "/opt/prog",
                            *["%s/%d.c" % (top, i) for i in range(len(lengths))]], check=True)
            os.utime(top + "/opt/prog", (1, 1))
            listed = subprocess.run(["nm", "-S", top + "/opt/prog"], capture_output=True, text=True, check=True).stdout
            same = sorted(line.split() for line in listed.split("\n") if line.endswith(" same"))
            self.assertEqual(len(same), len(lengths))
            with open(top + "/opt/prog", "rb") as stream:
                data = stream.read()
            start, = struct.unpack_from("<Q", data, 24)  # e_entry
            code = elfsyms.symbol_ranges(top + "/opt/prog", ("_start",))["_start"][0] - start  # address to position
            below = top + "/var/lib/oprofile/samples/current/{root}/opt/prog/{dep}/{root}/opt/prog/TIMER.0.0." + ALL
            write_samples(below, [(int(line[0], 16) + code, 10 * length) for line, length in zip(same, lengths)])
        words = ["{", "archive:%s/old" % self.dir, "}", "{", "archive:%s/new" % self.dir, "}"]
        done = subprocess.run([OPREPORT, "-l", "-n", *words], capture_output=True, text=True, check=True)
        self.assertEqual([line.split() for line in done.stdout.splitlines()],
                         [["90", "64.2857", "-28.5714", "same"], ["40", "28.5714", "+++", "same"],
                          ["10", "7.1429", "-28.5714", "same"]], done.stderr)

    def test_difference_of_classes(self):
        hot, warm = self.at["hot"], self.at["warm"]
        for session, other in (("old", [(warm, 1)]), ("current", [(hot, 3), (warm, 1)])):
            self.put([(hot, 1)], event="A.1.0." + ALL, session=session)
            self.put(other, event="B.1.0." + ALL, session=session)
        report = json.loads(self.run_tool("-l", "--format=json", "{", "session:old", "}", "{}"))
        self.assertEqual([(s["symbol"], s["change"]) for s in report["symbols"]], [("hot", [0, "new"]), ("warm", [0, -75])])

    def test_difference_is_refused(self):
        self.put_functions(hot=1)
        self.put([(self.at["hot"], 1)], session="other", event="OTHER.5.0." + ALL)
        for words in (["{"], ["}"], ["{", "}"], ["{", "{", "}", "}"], ["{}", "{", "image:x", "}"], ["{}", "{}", "{}"]):
            self.assertIn("invalid profile specification", self.run_tool("-l", *words, rc=1))
        for options in ([], ["-l", "-d"], ["-c"], ["-X"], ["--format=pprof"], ["--stacks"]):
            self.assertIn("two profiles are compared by --html, or by --symbols as text, JSON or CSV",
                          self.run_tool(*options, "{", "session:current", "}", "{}", rc=1))
        self.assertIn("profile classes are incompatible", self.run_tool("-l", "{", "session:other", "}", "{}", rc=1))

    # ---- forms ----

    def check_xml(self, *arguments):
        text = self.run_tool(*arguments)
        if shutil.which("xmllint"):
            done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, "-"], input=text.encode(),
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        return text

    def test_xml(self):
        self.put_functions(hot=60, warm=20)
        self.put_calls(("warm", "hot", 30))
        text = self.check_xml("-X")
        self.assertIn('<binary  name="%s">\n<count>\n80</count>\n<symbol  '
                      'idref="0">\n<count>\n60</count>\n</symbol>\n' % self.program, text)
        self.assertIn('title="opreport --session-dir=%s -X ">' % self.dir, text)
        self.assertEqual(text.replace(" -X ", " --format=xml "), self.run_tool("--format=xml"))
        text = self.check_xml("-X", "-d", "-g", "-m", "all", "-e", "cold")
        self.assertIn('<options  debuginfo="true" details="true" merge="all" excludesymbols="cold"/>', text)
        self.assertIn('<symbol  idref="0" detaillo="0" detailhi="0">', text)
        with open(self.program, "rb") as stream:
            stream.seek(self.at["hot"])
            self.assertIn('<bytes  id="0">\n' + stream.read(4).hex().upper(), text)
        text = self.check_xml("-X", "-c")
        self.assertIn('<callers>\n<symbol  idref="1">\n<count>\n30</count>', text)
        self.assertIn('idref="0" self="true">', text)
        for options in (["-a"], ["-%"], ["--cgroups"]):
            self.assertIn("--xml", self.run_tool("-X", "-l", *options, rc=1))
        self.assertIn("meaningless without --symbols", self.run_tool("-X", "-w", rc=1))

    def test_by_cgroup(self):
        """One line for each, whether it is the kernel, a library or a program."""
        cgroups = os.path.join(self.dir, "samples/current/cgroup")
        for name, count in (("{root}/app/{dep}/{root}/app", 1), ("{root}/app/{dep}/{root}/lib", 2),
                            ("{kern}/no-process/{dep}/{kern}/no-process", 4),
                            ("{root}/app/{dep}/{kern}/ext4", 8)):
            for cgroup in ("a", "a/b"):
                write_samples(os.path.join(cgroups, cgroup, name, "TIMER.0.0." + ALL), [(1, count)])
        self.assertEqual([line.split() for line in self.run_tool("--cgroups", "-n").splitlines()],
                         [["15", "50.0000", "/a"], ["15", "50.0000", "/a/b"]])

    def test_more_cgroups_than_descriptors(self):
        """The soft limit is raised. Without room to raise it the message names what to do."""
        for i in range(100):
            write_samples(os.path.join(self.dir, "samples/current/cgroup/c%d/{root}/app/{dep}/{root}/app/TIMER.0.0.%s" % (i, ALL)),
                          [(1, 1)])

        def limit(hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))

        rows = self.run_tool("--cgroups", "-n", preexec_fn=limit(4096)).splitlines()
        self.assertEqual([row.split()[0] for row in rows], ["1"] * 100)
        self.assertIn("raise the hard limit of ulimit -n", self.run_tool("--cgroups", "-n", rc=1, preexec_fn=limit(64)))

    def test_xml_of_threads_and_cpus(self):
        for name, count in (("5.6.0", 1), ("5.7.1", 2), ("8.8.1", 4)):
            self.put([(self.at["hot"], count)], event="TIMER.0.0." + name)
        text = self.check_xml("-X")
        self.assertIn('separatedcpus="2"', text)
        self.assertIn('<class  name="c1" cpu="1"/>', text)
        self.assertIn('<process  pid="5" name="%s">\n<count  class="c0">\n1</count>\n<count  '
                      'class="c1">\n2</count>\n<thread  tid="6">'
                      % self.program, text)
        self.assertIn("conflicts with parameter", self.run_tool("-l", rc=1))

    def test_xml_escapes(self):
        write_samples(os.path.join(self.dir,
                                   'samples/current/{root}/a<&">b\x01/{dep}/{root}/a<&">b\x01/TIMER.0.0.' + ALL), [(1, 1)])
        self.assertIn('name="/a&lt;&amp;&quot;&gt;b\\x01"', self.check_xml("-X"))

    def test_every_name_in_every_form(self):
        """Names are different in every form, and each is the original after the quoting of the form
        and \\xHH are undone.
        """
        names = [b"/n/" + name for name in (
            b" a name with  blanks ", b"blanks", b"blanks ", b"first\nsecond", b"first\\x0asecond",
            b"first\\\\x0asecond", b"first\\nsecond",
            b"tab\t", b"..app", b"...", b"{root}", b"comma,\"quote\"", b"<&>'", b"&lt;", b"\xff", b"\xfe", b"\\xff",
            b"\xef\xbf\xbd", b"\xef\xbf\xbe", b"?", b"\xc3", b"\xc3\xa9", b"\x9b", b"\xc2\x9b", b"\x7f\x1b[31m",
            b"%s%n", b"c" * 255,
            b"/".join([b"d" * 200] * 8 + [b"app"]), b"/".join([b"d" * 200] * 8 + [b"apq"]))]
        names += [b"/n/{..}", b"/n/{{dep}}", b"/n/{{cg}}"]  # as doc/format.md has them
        for name in names:
            write_samples(os.path.join(os.fsencode(self.dir),
                                       b"samples/current/{root}%s/{dep}/{root}%s/TIMER.0.0." % (name, name) + ALL.encode()),
                          [(1, 1)])
        forms = {
            "text": [re.match(r" *\d+ +[\d.]+ (.*)", line).group(1) for line in self.run_tool("-n", "-f").split("\n")[:-1]],
            "csv": [row[1] for row in csv.reader(io.StringIO(self.run_tool("--format=csv", "-n"), newline=""))
                    if row[0] == "application"],
            "json": [app["name"] for app in json.loads(self.run_tool("--format=json"))["applications"]],
            "xml": [element.get("name") for element in xml.etree.ElementTree.fromstring(self.check_xml("-X")).iter("binary")],
        }
        for form, found in forms.items():
            self.assertEqual(sorted(re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m.group(1), 16)]),
                                           text.encode()) for text in found),
                             sorted(names), form)

    def test_json(self):
        self.put_functions(session="old", hot=1)
        self.put_functions(hot=60, warm=20)
        self.put_calls(("warm", "hot", 30))
        report = json.loads(self.run_tool("--format=json"))
        self.assertEqual([(a["name"], a["samples"]) for a in report["applications"]], [(self.program, [80])])
        report = json.loads(self.run_tool("--format=json", "-d", "-g", "-a"))
        hot = report["symbols"][0]
        self.assertEqual((hot["symbol"], hot["samples"], hot["percent"], hot["line"]), ("hot", [60], [75], 1))
        self.assertEqual((hot["details"][0]["samples"], hot["details"][0]["line"]), ([60], 1))
        self.assertEqual(report["symbols"][1]["accumulated"], [80])
        block = json.loads(self.run_tool("--format=json", "-c"))["symbols"][0]
        self.assertEqual([(c["symbol"], c["samples"]) for c in block["callers"]], [("warm", [30])])
        self.assertTrue(block["callees"][0]["self"])
        report = json.loads(self.run_tool("--format=json", "-l", "{", "session:old", "}", "{}"))
        self.assertEqual([s["change"] for s in report["symbols"]], [[-25], ["new"]])

    def test_csv(self):
        self.put_functions(hot=60, warm=20)
        self.put_calls(("warm", "hot", 30))
        rows = list(csv.DictReader(io.StringIO(self.run_tool("--format=csv", "-l", "-g"))))
        self.assertEqual([(r["symbol"], r["line"], r["TIMER:0 samples"], r["TIMER:0 %"]) for r in rows],
                         [("hot", "1", "60", "75"), ("warm", "2", "20", "25")])
        rows = list(csv.DictReader(io.StringIO(self.run_tool("--format=csv", "-c"))))
        self.assertEqual([(r["kind"], r["symbol"], r["around"]) for r in rows][:3],
                         [("caller", "warm", "hot"), ("symbol", "hot", ""), ("self", "hot", "hot")])
        self.assertEqual(self.run_tool("--format=csv", "-n").count("\r\n"), 2)

    def test_unknown_values(self):
        self.put_functions(hot=1)
        for option in ("--format=yaml", "--top=0", "--top=x", "--color=red", "--demangle=clever"):
            self.assertIn(option.split("=")[1], self.run_tool(option, rc=1))

    # ---- archives and events ----

    def test_archive(self):
        archive = os.path.join(self.dir, "archive")
        self.put_functions(hot=3)
        os.makedirs(archive + "/var/lib/oprofile")
        shutil.move(self.dir + "/samples", archive + "/var/lib/oprofile/samples")
        self.assertIn("does not exist", self.run_tool(rc=1))
        self.assertEqual(self.run_tool("-l", "-n", "archive:" + archive), "3        100.000  hot\n")
        shutil.copytree(self.images, archive + self.images)
        done = subprocess.run([OPREPORT, "-l", "-V", "bfd", "archive:" + archive], capture_output=True, check=True)
        self.assertIn(archive + self.program, done.stderr.decode())

    def put_event(self, name="EV", number=0xf203, mask=1, cpu_type=FAMILY10):
        self.put([(self.at["hot"], 1)], event="%s.50000.%d.%s" % (name, mask, ALL), cpu_type=cpu_type, event_number=number)

    def events_env(self):
        return {"OPROFILE_EVENTS_DIR": os.path.join(SOURCE, "events")}

    def test_event_descriptions(self):
        self.put_event()
        self.assertIn("Counted IBS_OP_L1_DTLB_HITS events (Sampled accesses that hit the first data TLB) with a unit mask of 0x01 "
                      "(Count dispatched ops) count 50000\n", self.run_tool(env=self.events_env()))
        self.put_event(name="EW", mask=3)
        self.assertIn("0x03 (multiple flags)", self.run_tool(env=self.events_env()))
        self.assertIn('eventname="EV" unitmask="1" setupcount="50000"/>', self.run_tool("-X"))
        self.assertIn('cputype="x86-64" processor="family10"', self.run_tool("-X"))

    def test_included_event_descriptions(self):
        self.put_event(number=0x2e, mask=0x41, cpu_type=NEHALEM)
        self.assertIn("Counted LLC_MISSES events (References that missed", self.run_tool(env=self.events_env()))

    def test_event_files_that_multiply(self):
        """Each of seven files includes the next one a hundred times: the error comes at once."""
        self.put_event(number=0x99, mask=0)
        names = ["x86-64/family10"] + ["cpu-%u" % i for i in range(7)]
        for name, following in zip(names, names[1:] + [None]):
            os.makedirs(os.path.join(self.dir, "events", name))
            with open(os.path.join(self.dir, "events", name, "events"), "w", encoding="ascii") as stream:
                stream.write(100 * ("include:%s\n" % following) if following else "")
        self.assertIn("parse error in ", self.run_tool(rc=1,
                                                       env={"OPROFILE_EVENTS_DIR": os.path.join(self.dir, "events")},
                                                       timeout=HANG_SECONDS))

    def test_event_files_by_the_form(self):
        self.put_event(number=0x99, mask=0)
        place = os.path.join(self.dir, "events", "x86-64", "family10")
        env = {"OPROFILE_EVENTS_DIR": os.path.join(self.dir, "events")}
        self.assertIn("Unknown event", self.run_tool(env=env))
        os.makedirs(place)
        for events, wanted in (("event:0x99 counters:0 um:u minimum:1 name:MINE : text\n", None),
                               ("event:0x99 event:0x98 name:A : t\n", "events, line 1"),
                               ("# comment\nevent:0x99 name:A colour:red : t\n", "events, line 2"),
                               ("event:zz name:A : t\n", "events, line 1"), ("name:A : t\n", "events, line 1"),
                               ("event:0x1 name:A/B : t\n", "events, line 1"), ("include:nothing\n", "events, line 1"),
                               ("include:x86-64/family10\n", "parse error")):
            with open(place + "/events", "w", encoding="utf-8") as stream:
                stream.write(events)
            with open(place + "/unit_masks", "w", encoding="utf-8") as stream:
                stream.write("name:u type:mandatory default:0x0\n\t0x0 no mask\n")
            if wanted:
                self.assertIn(wanted, self.run_tool(rc=1, env=env))
            else:
                self.assertIn("Counted MINE events (text) with a unit mask of 0x00 (no mask) count 50000", self.run_tool(env=env))
        os.unlink(place + "/unit_masks")
        with open(place + "/events", "w", encoding="utf-8") as stream:
            stream.write("event:0x99 name:MINE : text\n")
        self.assertIn("could not open unit mask description file", self.run_tool(rc=1, env=env))

    # ---- terminals ----

    def on_terminal(self, *arguments, rc=0, **env):
        primary, secondary = pty.openpty()
        settings = {**os.environ, "TERM": "xterm", "COLUMNS": "60", "LINES": "1", **env}
        settings = {name: value for name, value in settings.items() if value is not None}
        done = subprocess.Popen([OPREPORT, "--session-dir=" + self.dir] + list(arguments), stdout=secondary,
                                stderr=subprocess.PIPE, env=settings)
        text = read_terminal(primary, secondary, done)
        self.errors = done.communicate()[1].decode()
        self.assertEqual(done.returncode, rc, self.errors)
        return text.decode().replace("\r\n", "\n")

    def test_terminal(self):
        self.put_functions(hot=199, warm=1)
        hot = "\x1b[31m99.5000\x1b[m"
        self.assertIn("199      %s  hot\n" % hot, self.on_terminal("-l", "-n", "--no-pager"))
        self.assertIn("1        \x1b[32m 0.5000\x1b[m  warm\n", self.on_terminal("-l", "-n", PAGER="cat"))
        self.assertNotIn("\x1b", self.on_terminal("-l", "-n", "--no-pager", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("-l", "-n", "--no-pager", "--color=never"))
        self.assertNotIn("\x1b", self.run_tool("-l", "-n", env={"COLUMNS": "20"}))
        self.assertIn(hot, self.run_tool("-l", "-n", "--color=always"))

    def test_terminal_columns(self):
        name = "/" + "n" * 100
        part = "{root}%s/" % name
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL), [(1, 1)])
        line = self.on_terminal("-l", "-n", "--no-pager", "--color=never").splitlines()[-1]
        self.assertEqual((len(line), line[-3:]), (60, "..."))
        self.assertIn(name, self.run_tool("-l", "-n"))

    def test_pager(self):
        self.put_functions(hot=1)
        self.assertIn("page:1        100.000  hot", self.on_terminal("-l", "-n", "--color=never", PAGER="sed s/^/page:/"))
        self.assertIn("FRX", self.on_terminal("-n", PAGER="cat >/dev/null; echo $LESS", LESS=None))
        self.assertNotIn("page:", self.on_terminal("-n", "--no-pager", PAGER="sed s/^/page:/"))
        self.assertNotIn("page:", self.run_tool("-n", env={"PAGER": "sed s/^/page:/"}))
        self.assertEqual(self.on_terminal("-n", PAGER="true"), "")

    def test_short_report_has_no_pager(self):
        """The pager starts when the report and the next prompt do not fit on the screen."""
        self.put_functions(hot=3, warm=2, cold=1)
        for lines, columns, term, is_paged in (("3", "60", "xterm", True), ("4", "60", "xterm", False), ("4", "20", "xterm", True),
                                               ("3", "60", "dumb", False), ("3", "60", None, False), ("3", "60", "", False)):
            text = self.on_terminal("-l", "-n", "--color=always", PAGER="sed s/^/page:/", LINES=lines, COLUMNS=columns, TERM=term)
            self.assertEqual(text.count("page:"), 3 * is_paged, (lines, columns, term))
            self.assertEqual(text.count("hot"), 1)

    def test_pager_that_cannot_be_run(self):
        """The report is complete all the same. The user is told of a pager that fails, and the exit
        code is 1.
        """
        self.put_functions(hot=1)
        for i in range(400):  # more than a pipe can hold
            part = "{root}/gone/%s%d/" % (50 * "long", i)
            os.makedirs(os.path.join(self.dir, "samples/current", part + "{dep}/" + part))
            os.link(os.path.join(self.dir, "samples/current/{root}%s/{dep}/{root}%s/TIMER.0.0.%s" % (self.program,
                    self.program, ALL)),
                    os.path.join(self.dir, "samples/current", part + "{dep}/" + part, "TIMER.0.0." + ALL))
        for arguments in (("-l", "-n", self.program), ("-n", "-f")):
            plain = self.run_tool(*arguments)
            for pager, whole in (("/nonexistent/pager", True), ("nonexistent-pager -R", True), ("exit 126", True),
                                 ("cat >/dev/null; exit 127", len(plain) < 65536)):
                text = self.on_terminal(*arguments, "--color=never", PAGER=pager, COLUMNS="10000", rc=0 if whole else 1)
                self.assertEqual(text, plain if whole else "", pager)
                self.assertEqual("the pager '%s' cannot be run" % pager in self.errors, whole)
            for pager, words in (("false", "ended with 1"), ("exit 3", "ended with 3"), ("kill -9 $$", "was ended by signal 9")):
                self.assertEqual(self.on_terminal(*arguments, "--color=never", PAGER=pager, rc=1), "")
                self.assertIn("the pager '%s' %s" % (pager, words), self.errors)

    def test_images_as_csv_and_json(self):
        self.put_functions(hot=3)
        rows = list(csv.DictReader(io.StringIO(self.run_tool("--images", "--format=csv"))))
        self.assertEqual([(r["image"], r["symbols"], r["TIMER:0 samples"]) for r in rows], [(self.program, "debug info", "3")])
        self.assertEqual(json.loads(self.run_tool("--images", "--format=json"))["images"][0]["samples"], [3])
        self.assertIn("--images", self.run_tool("--images", "-X", rc=1))

    def test_images_of_threads_and_cpus(self):
        """Samples by thread, process and CPU are added up; classes of events have titles."""
        part = "{root}/gone/"
        for number, counts in enumerate(("TIMER.0.0.10.10.0", "TIMER.0.0.10.11.1", "TIMER.0.0.12.12.1",
                                         "TIMER.0.0.all.all.all", "EVENT_OF_A_LONG_NAME.7.0.10.10.1")):
            write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + counts), [(1, 1 << number)])
        self.assertIn("conflicts", self.run_tool("--images", "--merge=unitmask", rc=1))
        self.assertEqual(self.run_tool("-n", "--images", "event:TIMER").split()[0], "15")
        rows = self.run_tool("--images").splitlines()
        self.assertEqual(rows[-3], "EVENT_OF_A_LON... TIMER:0")
        self.assertEqual(rows[-2].split()[:5], ["samples", "%", "samples", "%", "build-id"])
        self.assertEqual(rows[-1].split()[:4], ["16", "100.000", "15", "100.000"])
        self.assertEqual(rows[-3].index("TIMER"), rows[-2].rindex("samples"))

    def test_stripped_image(self):
        stripped = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", stripped, self.program], check=True)
        part = "{root}%s/" % stripped
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL), [(1, 1)])
        self.put_functions(hot=3)
        for sources, told in (("symtab", "no symbols: its samples are one line"),
                              ("symtab,ranges", "no names for functions with 25.0")):
            done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-l", "--symbols-from=" + sources],
                                  capture_output=True, check=True)
            self.assertIn("warning: %s has %s" % (stripped, told), done.stderr.decode())
            self.assertNotIn("warning: %s has" % self.program, done.stderr.decode())
        for sources, word in (("symtab", "none"), ("symtab,ranges", "ranges")):
            done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "--images", "--format=json", "--symbols-from=" + sources],
                                  capture_output=True, check=True)
            states = {row["name"]: row["symbols"] for row in json.loads(done.stdout)["images"]}
            self.assertEqual(states, {stripped: word, self.program: "debug info"})

    def test_many_symbols_without_lines(self):
        """Lines of 200,000 addresses in 100,000 functions that have none: all functions for each
        address would be more than a child's minute of processor time.
        """
        number, source, image = 100000, os.path.join(self.dir, "many.s"), os.path.join(self.dir, "many")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(".text\n.globl _start\n_start:\n" + "".join(".type f%u,@function\nf%u:\n.byte 0, 0\n" % (i,
                    i) for i in range(number)))
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-nostdlib", "-static", "-o", image,
                        source], check=True)
        with open(image, "rb") as stream:
            data = stream.read()
        programs = [struct.unpack_from("<IIQ", data, struct.unpack_from("<Q", data, 32)[0] + 56 * i)
                    for i in range(struct.unpack_from("<H", data, 56)[0])]
        start = next(offset for kind, flags, offset in programs if kind == 1 and flags & 1)  # PT_LOAD, PF_X
        part = "{root}%s/" % image
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL),
                      [(start + i, 1) for i in range(2 * number)])
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-d", "-g", "-n"], capture_output=True, check=True)
        self.assertNotIn("cannot be read", done.stderr.decode())
        self.assertEqual(done.stdout.count(b"(no location information)"), 3 * number)

    def test_names_that_cannot_be_read(self):
        """Of a symbol table whose table of names is itself: functions without names, in their
        places, and a line that names the file.
        """
        damaged = os.path.join(self.dir, "damaged")
        with open(self.program, "rb") as stream:
            data = bytearray(stream.read())
        table, number = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
        for i in range(number):
            if struct.unpack_from("<I", data, table + 64 * i + 4)[0] == 2:  # SHT_SYMTAB
                struct.pack_into("<I", data, table + 64 * i + 40, i)
        with open(damaged, "wb") as stream:
            stream.write(data)
        part = "{root}%s/" % damaged
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL), [(self.at["hot"], 1)])
        cache = os.path.join(self.dir, "cache")
        for name in ("", "warm"):  # the sound one has the same build-id
            if name:
                self.put_functions(warm=3)
            done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-l", "-n"], capture_output=True,
                                  check=True, env=dict(os.environ, OPD_CACHE_DIR=cache))
            self.assertIn("the symbol table of %s is damaged: symbols are missing, or have no names" % damaged,
                          done.stderr.decode())
            self.assertNotIn("the symbol table of %s " % self.program, done.stderr.decode())
            self.assertNotIn("(null)", done.stdout.decode())
            self.assertIn("anonymous symbol from section .text", done.stdout.decode())
            self.assertIn(name, done.stdout.decode())

    def test_image_that_is_gone(self):
        """The facts about the image: its build-id, the place of its debug file and, for an image of
        a package, the package.
        """
        self.put_functions(hot=300)
        rows, build_ids = [], {"/gone/image": "0123456789abcdef", os.path.realpath("/bin/ls"): "00112233"}
        for cookie, (image, build_id) in enumerate(build_ids.items(), 1):
            name = image if cookie == 1 else image + " (build-id 00112233)"
            part = "{root}%s/" % name
            write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL), [(1, 10)])
            rows.append((cookie, "file", name, image, "-", "-", build_id, "0:0", 0, 0, "0.000000000", 0, 1, 1, 1))
        with open(os.path.join(self.dir, "samples/current/dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t3\n" + "".join("%s\n" % "\t".join(map(str, row)) for row in rows))
        for urls in ("", "https://localhost"):
            done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-l"], capture_output=True, check=True,
                                  env=dict(os.environ, DEBUGINFOD_URLS=urls), text=True)
            for image, build_id in build_ids.items():
                words = "warning: %s that ran has build-id %s, debug file /usr/lib/debug/.build-id/%s/" % (image,
                        build_id, build_id[:2])
                line = [line for line in done.stderr.splitlines() if line.startswith(words)]
                self.assertEqual(len(line), 1, done.stderr)
                self.assertEqual("debuginfod-find executable " + build_id in line[0], bool(urls))
                if shutil.which("dpkg-query") and image != "/gone/image":
                    self.assertIn("package coreutils-dbgsym", line[0])
            self.assertNotIn("has no symbols", done.stderr)
            notes = [line for line in done.stderr.splitlines() if "NAME-dbgsym" in line]
            self.assertEqual(notes, self.archive_notes() if "-dbgsym" in done.stderr else [])
        self.put([(self.at["hot"], 100000)])
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-l"], capture_output=True, check=True, text=True)
        self.assertNotIn("that ran has build-id", done.stderr, "less than one percent")

    def archive_notes(self):
        """The note that names the archive of Debian's debug packages; none on other systems."""
        with open("/etc/os-release", encoding="utf-8") as stream:
            values = dict(line.rstrip().split("=", 1) for line in stream if "=" in line)
        if values.get("ID") != "debian" or "VERSION_CODENAME" not in values:
            return []
        return ["note: packages NAME-dbgsym are in an archive of their own: deb http://deb.debian.org/debian-debug/ "
                "%s-debug main" % values["VERSION_CODENAME"]]

    def test_empty_session_dir(self):
        done = subprocess.run([OPREPORT, "--session-dir="], capture_output=True, check=False, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--session-dir: the name is empty", done.stderr)

    def test_verbose(self):
        """Each topic prints something, and `all` prints everything; the report stays the same."""
        self.put_functions(hot=3, warm=2)
        plain, lines = self.run_tool("-X"), set()
        for topic in ("debug", "bfd", "level1", "sfile", "stats", "xml"):
            done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-X", "-V", topic], capture_output=True,
                                  check=True, text=True)
            self.assertEqual(done.stdout.replace(" -V " + topic, ""), plain)
            self.assertNotEqual(done.stderr, "", topic)
            lines |= set(done.stderr.splitlines())
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir, "-X", "-V", "all"], capture_output=True,
                              check=True, text=True)
        self.assertEqual(set(done.stderr.splitlines()), lines)

    def test_top(self):
        self.put_functions(hot=3, warm=2, cold=1)
        self.assertEqual(self.run_tool("-l", "-n", "--top=2").count("\n"), 2)
        self.assertEqual(self.run_tool("-n", "--top=5").count("\n"), 1)
        part = "{root}/gone/"
        write_samples(os.path.join(self.dir, "samples/current", part + "{dep}/" + part + "TIMER.0.0." + ALL), [(1, 1)])
        self.assertEqual(self.run_tool("-n", "--images").count("\n"), 2)
        self.assertEqual(self.run_tool("-n", "--images", "--top=1").count("\n"), 1)
        self.assertEqual(self.run_tool("-n", "--top=1").count("\n"), 1)
        names = [symbol.get("name") for symbol in xml.etree.ElementTree.fromstring(self.run_tool("-X",
                "--top=1")).iter("symboldata")]
        self.assertEqual(names, ["hot"], "/gone is the first in the order of XML")


NR_COPIES, NR_FUNCTIONS = 40, 230  # enough rows for several threads in each stage


class ManyRows(unittest.TestCase):
    """Several threads make the same report as one, to the byte, and the same warnings."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        names = ["f%d" % i for i in range(NR_FUNCTIONS)]
        source, program = os.path.join(self.dir, "many.c"), os.path.join(self.dir, "many")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write("".join("void %s(void) { }\n" % name for name in names) + "void _start(void) { }\n")
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static",
                        "-fno-pie", "-no-pie", "-o", program, source],
                       check=True)
        ranges = elfsyms.symbol_ranges(program, names)
        for i in range(NR_COPIES):
            image = "%s%d" % (program, i)
            shutil.copyfile(program, image)
            for j, event in enumerate(("CPU_CLK_UNHALTED.100000.0.", "INST_RETIRED.100000.0.")):
                samples = [(ranges[name][0], 1 + (7 * i + 5 * k + 3 * j) % 11) for k, name in enumerate(names) if (i + k + j) % 97]
                put_image(self.dir, image, samples, event=event + ALL, cpu_type=NEHALEM)
        self.damage(program)

    def damage(self, program):
        for i in (3, 20, 21, 37):
            path = os.path.join(self.dir,
                                "samples/current/{root}%s%d/{dep}/{root}%s%d/INST_RETIRED.100000.0." % (program, i,
                                        program, i) + ALL)
            with open(path, "r+b") as stream:
                stream.write(b"X")

    def run_tool(self, cache, cpus, *arguments):
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir] + list(arguments), capture_output=True,
                              check=False, timeout=10 * HANG_SECONDS,
                              env=dict(os.environ, OPD_CACHE_DIR=cache), preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        return done.returncode, done.stdout, done.stderr

    def test_threads(self):
        cpus = os.sched_getaffinity(0)
        cache = os.path.join(self.dir, "cache")
        for arguments in ((), ("-l",), ("-l", "--accumulated"), ("-d",), ("-l", "--format=json", "--accumulated"),
                          ("-l", "--format=csv"), ("-X",),
                          ("-l", "--reverse-sort", "--sort=symbol,image"), ("-l", "--threshold=0.01"), ("-c",),
                          ("-l", "-w", "--exclude-symbols=f7")):
            with self.subTest(arguments=arguments):
                alone = self.run_tool("", {min(cpus)}, *arguments)
                self.assertEqual(alone[0], 1)
                self.assertIn(b"4 files and directories were left out", alone[2])
                self.assertTrue(alone[1])
                for kept in ("", cache, cache):
                    self.assertTrue(self.run_tool(kept, cpus, *arguments) == alone,
                                    kept)  # what differs would be sought for minutes


if __name__ == "__main__":
    if not os.access(OPREPORT, os.X_OK):
        print("SKIP: %s is not built" % OPREPORT)
        sys.exit(77)
    unittest.main()
