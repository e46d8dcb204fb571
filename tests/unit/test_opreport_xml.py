#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What opreport shares with the genuine one: the order in reverse, details and calls in XML.

The rules are those of the source of oprofile 1.4. Run from the build directory by `make check`; a
compiler makes the image that the samples are of.
"""
import csv
import io
import json
import os
import shutil
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

OPREPORT = os.path.abspath(os.environ.get("OPREPORT", "bin/opreport"))
SCHEMA = os.path.join(SOURCE, "doc", "opreport.xsd")
PROGRAM = "void hot(void) { }\nvoid warm(void) { hot(); }\nvoid _start(void) { warm(); }\n"
NEHALEM = 47
CYCLES, RETIRED = "CPU_CLK_UNHALTED.100000.0.", "INST_RETIRED.100000.0."


class Session(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        source, cls.lib = os.path.join(cls.images, "prog.c"), os.path.join(cls.images, "lib")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-nostdlib", "-static", "-fno-pie",
                        "-no-pie", "-o", cls.lib, source], check=True)
        cls.apps = [os.path.join(cls.images, name) for name in ("app1", "app2")]
        for app in cls.apps:
            shutil.copy(cls.lib, app)
        for image in [cls.lib] + cls.apps:
            os.utime(image, (1, 1))
        ranges = elfsyms.symbol_ranges(cls.lib, ["hot", "warm"])
        cls.hot, cls.warm = ranges["hot"][0], ranges["warm"][0]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def report(self, *arguments):
        done = subprocess.run([OPREPORT, "--session-dir=" + self.dir] + list(arguments), capture_output=True, text=True,
                              check=True)
        return done.stdout

    def xml(self, *arguments):
        text = self.report("-X", *arguments)
        if shutil.which("xmllint"):
            done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, "-"], input=text, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        return xml.etree.ElementTree.fromstring(text), text


class Reverse(Session):
    """-r without -l: few samples come first, in applications and below them; equal counts stay in
    the order of names.
    """

    def setUp(self):
        super().setUp()
        for app, image, count in (("/big", "/big", 60), ("/big", "/lib/c", 20), ("/big", "/lib/b", 20), ("/big", "/lib/a", 30),
                                  ("/x", "/x", 7), ("/a", "/a", 7), ("/small", "/small", 3)):
            put_image(self.dir, image, [(1, count)], app=app)

    SUMMARY = ["small", "a", "x", "big", "\tb", "\tc", "\ta", "\tbig"]

    def test_summary(self):
        lines = self.report("-n", "-r").splitlines()
        self.assertEqual([line[:1].strip(" ") + line.split()[2] for line in lines], self.SUMMARY)
        lines = self.report("-n").splitlines()
        self.assertEqual([line[:1].strip(" ") + line.split()[2] for line in lines],
                         ["big", "\tbig", "\ta", "\tb", "\tc", "a", "x", "small"])

    def test_other_forms(self):
        rows = list(csv.DictReader(io.StringIO(self.report("-r", "--format=csv"))))
        self.assertEqual([os.path.basename(r["application"]) for r in rows if r["kind"] == "application"],
                         ["small", "a", "x", "big"])
        self.assertEqual([os.path.basename(r["image"]) for r in rows if r["kind"] == "image"][-4:], ["b", "c", "a", "big"])
        names = [os.path.basename(a["name"]) for a in json.loads(self.report("-r", "--format=json"))["applications"]]
        self.assertEqual(names, ["small", "a", "x", "big"])
        self.assertEqual(len(self.report("-n", "-r", "--top=1").splitlines()), 1)
        self.assertIn("small", self.report("-n", "-r", "--top=1"))

    def test_images(self):
        lines = self.report("-n", "-r", "-f", "--images").splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], [3, 7, 7, 20, 20, 30, 60])
        self.assertEqual([name for line in lines for name in line.split() if name in ("/a", "/x", "/lib/b", "/lib/c")],
                         ["/a", "/x", "/lib/b", "/lib/c"])

    def test_cgroups(self):
        for name, count in (("a", 5), ("b", 1)):
            write_samples(os.path.join(self.dir, "samples/current/cgroup", name, "{root}/x/{dep}/{root}/x/TIMER.0.0." + ALL),
                          [(1, count)])
        self.assertEqual([line.split()[2] for line in self.report("-n", "-r", "--cgroups").splitlines()], ["/b", "/a"])

    def test_xml(self):
        forward, _ = self.xml()
        backward, _ = self.xml("-r")
        names = [binary.get("name") for binary in forward.iter("binary")]
        self.assertEqual([binary.get("name") for binary in backward.iter("binary")], names[::-1])
        modules = [[module.get("name") for module in root.iter("module")] for root in (forward, backward)]
        self.assertEqual(modules[0], modules[1][::-1])


def counts_of(element):
    """The counts directly below an element, by class."""
    sums = {}
    for count in element.findall("count"):
        sums[count.get("class") or ""] = sums.get(count.get("class") or "", 0) + int(count.text)
    return sums


class Details(Session):
    def check_details(self, root):
        """In each <symboldetails>, numbers begin at 0, and every <symbol> has its own part of them,
        with its samples. Returns the <symboldetails> by the name of the symbol.
        """
        tables = {}
        for details in root.find("detailtable"):
            self.assertNotIn(details.get("id"), tables)
            tables[details.get("id")] = list(details)
            self.assertEqual([int(detail.get("id")) for detail in details], list(range(len(details))))
        used = {number: [] for number in tables}
        for symbol in root.iter("symbol"):
            numbers = range(int(symbol.get("detaillo")), int(symbol.get("detailhi")) + 1)
            used[symbol.get("idref")] += numbers
            sums = {}
            for number in numbers:
                counts = counts_of(tables[symbol.get("idref")][number])
                self.assertEqual(len(counts), 1)
                for name, count in counts.items():
                    sums[name] = sums.get(name, 0) + count
            self.assertEqual(sums, counts_of(symbol))
        for number, table in tables.items():
            self.assertEqual(used[number], list(range(len(table))))
        self.assertEqual(list(tables), sorted(tables, key=int))
        names = {data.get("id"): data.get("name") for data in root.iter("symboldata")}
        return {names[number]: table for number, table in tables.items()}

    def test_several_applications(self):
        """A symbol under several applications continues in its own <symboldetails>."""
        for app, count in zip(self.apps, (10, 1)):
            put_image(self.dir, self.lib, [(self.hot, 4 * count), (self.hot + 1, count), (self.warm, 2 * count)], app=app)
        root, text = self.xml("-d")
        tables = self.check_details(root)
        self.assertEqual({name: len(table) for name, table in tables.items()}, {"hot": 4, "warm": 2})
        first = tables["hot"][0].get("vmaoffset")
        self.assertEqual([(d.get("vmaoffset") == first, counts_of(d)[""]) for d in tables["hot"]],
                         [(True, 40), (False, 10), (True, 4), (False, 1)])
        self.assertIn('<symbol  idref="0" detaillo="2" detailhi="3">', text)
        self.assertIn('<detaildata  id="0"  vmaoffset="%s">\n<count  class="">\n40</count>\n</detaildata>\n' % first, text)

    def test_classes(self):
        """An address has a <detaildata> for each class."""
        for event, count in ((CYCLES, 5), (RETIRED, 3)):
            put_image(self.dir, self.lib, [(self.hot, count), (self.hot + 1, 2 * count)], event=event + ALL, cpu_type=NEHALEM)
        put_image(self.dir, self.apps[0], [(self.warm, 1)], event=RETIRED + ALL, cpu_type=NEHALEM)
        tables = self.check_details(self.xml("-d")[0])
        self.assertEqual(len(tables["hot"]), 4)
        self.assertEqual(len(tables["warm"]), 1)

    def test_threads(self):
        """Each thread has the details of its own samples."""
        for thread, offset, count in (("5.6", 0, 5), ("5.7", 0, 3), ("5.7", 1, 2), ("8.8", 1, 1)):
            put_image(self.dir, self.lib, [(self.hot + offset, count), (self.warm, 7)], app=self.apps[offset],
                      event="TIMER.0.0.%s.all" % thread)
        tables = self.check_details(self.xml("-d")[0])
        self.assertEqual([counts_of(detail)[""] for detail in tables["hot"]], [5, 3, 2, 1])
        self.assertEqual(len(tables["warm"]), 4)


class Calls(Session):
    def test_modules(self):
        """Callers and callees below <binary> have no <module>; those below <module> have one each."""
        app = self.apps[0]
        for image, callee, count in ((app, self.lib, 5), (self.lib, app, 4), (self.lib, self.lib, 3), (app, app, 2)):
            below = "samples/current/{root}%s/{dep}/{root}%s/" % (app, image)
            write_samples(os.path.join(self.dir, below + "TIMER.0.0." + ALL), [(self.hot, 10), (self.warm, 6)])
            write_samples(os.path.join(self.dir, below + "{cg}/{root}%s/TIMER.0.0." % callee + ALL),
                          [(self.warm << 32 | self.hot, count)])
        root, _ = self.xml("-c")
        binary = root.find("binary")
        names = {data.get("id"): data.get("name") for data in root.iter("symboldata")}
        for arcs in ("callers", "callees"):
            own = [symbol.find(arcs) for symbol in binary.findall("symbol")]
            below = [symbol.find(arcs) for symbol in binary.findall("module/symbol")]
            self.assertEqual((len(own), len(below)), (2, 2))
            self.assertEqual({arc.tag for element in own for arc in element}, {"symbol"})
            self.assertEqual({arc.tag for element in below for arc in element}, {"module"})
            self.assertTrue(all(len(module) == 1 for element in below for module in element))
        callers = next(symbol for symbol in binary.findall("module/symbol") if names[symbol.get("idref")] == "hot").find("callers")
        self.assertEqual([(module.get("name"), int(module.find("symbol/count").text)) for module in callers],
                         [(self.lib, 3), (app, 5)])

    def test_threads(self):
        """A thread has the calls of its own."""
        for thread, count in ((6, 5), (7, 3)):
            below = "samples/current/{root}%s/{dep}/{root}%s/" % (self.lib, self.lib)
            write_samples(os.path.join(self.dir, below + "TIMER.0.0.5.%u.all" % thread), [(self.hot, 10)])
            write_samples(os.path.join(self.dir, below + "{cg}/{root}%s/TIMER.0.0.5.%u.all" % (self.lib, thread)),
                          [(self.warm << 32 | self.hot, count)])
        root, _ = self.xml("-c")
        self.assertEqual([[int(count.text) for count in thread.findall("module/symbol/callers/module/symbol/count")]
                          for thread in root.iter("thread")], [[5], [3]])


if __name__ == "__main__":
    if not os.access(OPREPORT, os.X_OK):
        print("SKIP: %s is not built" % OPREPORT)
        sys.exit(77)
    unittest.main()
