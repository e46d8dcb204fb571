#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of runtimes (Python and its like) in reports, from stores that this test writes
(opd-stacks(5)). All figures are known.

Run from the build directory by `make check`.
"""
import collections
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import page_data  # noqa: E402
from test_export_pprof import fields, varints  # noqa: E402
from stack_session import CUT, FRAME, KERNEL, OTHER, PROG, RUNTIME, StackCase  # noqa: E402

# the program is an interpreter, and the other image a library of C that calls and is called
NAMES = ("long_add", "eval", "import_site", "main", "_start")
LIBRARY = (FRAME, OTHER, 64)
MAKER = os.path.abspath(os.path.join("tests", "unit", "make_timeline"))
BEGIN = 1795230000  # 2026-11-21 03:00:00 UTC
DEEP = 20000
HANDLER = ("python", "/srv/app/app.py", "handler", 41)
INNER = ("python", "/srv/app/lib/sums.py", "Sum.add", 7)
MODULE = ("python", "/srv/app/app.py", "<module>", 1)


class RuntimeCase(StackCase):
    maxDiff = None
    source = "".join("void %s(void) { }\n" % name for name in NAMES)
    functions = NAMES

    def runtime(self, name, line=0, image=PROG):
        """A frame: the name as (runtime, file, function, first line), or a text as it is; the line where it was."""
        text = name if isinstance(name, str) else "\x1f".join(map(str, name))
        return (RUNTIME, image, line << 32 | self.store.text(text))

    def native(self, name, at=5):
        return (FRAME, PROG, self.start[name] + at)

    def outer(self):
        return [self.native("_start"), self.native("main"), self.native("eval")]

    def fill(self, image=PROG):
        """100 samples: 40 in a function's own loop, 30 in C code of the interpreter that it calls,
        20 in a library that it calls, 6 in the kernel below that, 4 without Python."""
        module, handler, inner = self.runtime(MODULE, 50, image), self.runtime(HANDLER, 44, image), self.runtime(INNER, 9, image)
        handler_later = self.runtime(HANDLER, 45, image)
        self.store.add([*self.outer()[:2], self.native("eval", 0), module, handler, inner], 40)
        self.store.add([*self.outer(), module, handler_later, inner, self.native("long_add", 0)], 30)
        # a library of C that calls back into Python
        self.store.add([*self.outer(), module, LIBRARY, self.native("eval"), handler, LIBRARY], 20)
        self.store.add([*self.outer(), module, LIBRARY, self.native("eval"), handler, LIBRARY, (KERNEL, OTHER, 128)], 6)
        self.store.add([self.native("_start"), self.native("main"), self.native("import_site", 0)], 4)

    def folded(self, *options):
        text = self.report("--format=folded", *options)
        found = {}
        for line in text.splitlines():
            stack, count = line.rsplit(" ", 1)
            self.assertNotIn(stack, found)
            found[stack] = int(count)
        return found


FOLDED = {
    "prog;<module> (app.py:1);handler (app.py:41);Sum.add (sums.py:7)": 70,
    "prog;<module> (app.py:1);(no symbols);handler (app.py:41);(no symbols)": 20,
    "prog;<module> (app.py:1);(no symbols);handler (app.py:41);(no symbols);(no symbols)_[k]": 6,
    "prog;_start;main;import_site": 4,
}


class Stacks(RuntimeCase):
    def test_fold(self):
        """The interpreter's own frames are gone, its samples are those of the functions that it ran."""
        self.fill()
        self.assertEqual(self.folded(), FOLDED)
        self.assertEqual(self.folded("--native=fold"), FOLDED)

    def test_show(self):
        self.fill()
        below = "prog;_start;main;eval;<module> (app.py:1);"
        self.assertEqual(self.folded("--native=show"), {
            below + "handler (app.py:41);Sum.add (sums.py:7)": 40,
            below + "handler (app.py:41);Sum.add (sums.py:7);long_add": 30,
            below + "(no symbols);eval;handler (app.py:41);(no symbols)": 20,
            below + "(no symbols);eval;handler (app.py:41);(no symbols);(no symbols)_[k]": 6,
            "prog;_start;main;import_site": 4})

    def test_only(self):
        self.fill()
        self.assertEqual(self.folded("--native=only"), {
            "prog;<module> (app.py:1);handler (app.py:41);Sum.add (sums.py:7)": 70,
            "prog;<module> (app.py:1);handler (app.py:41)": 26,
            "prog;_start;main;import_site": 4})

    def test_sums_are_the_same(self):
        """However stacks are folded, by any group and for any tool, nothing is lost."""
        self.fill()
        self.store.add([self.runtime(HANDLER), self.runtime(INNER), self.native("long_add", 0)], 5, end=CUT)
        self.store.add([], 2, end=CUT)
        for native in ("fold", "show", "only"):
            for options in ((), ("--by=comm",), ("--invert",), ("--by=thread", "--invert")):
                self.assertEqual(sum(self.folded("--native=" + native, *options).values()), 107, (native, options))
            stacks = json.loads(self.report("--stacks", "--format=json", "--native=" + native))["stacks"]
            self.assertEqual((stacks["samples"], sum(node["self"] for node in stacks["nodes"])), (107, 107))
        self.assertEqual(self.folded()["prog;[cut];handler (app.py:41);Sum.add (sums.py:7)"], 5)

    def test_image_is_not_told(self):
        """A timeline does not keep the image of the runtime: the native frame above a function tells it."""
        self.fill(image=0)
        self.assertEqual(self.folded(), FOLDED)

    def test_selected_by_image(self):
        """The innermost frame decides, and a function has the image of its runtime."""
        for image in (PROG, 0):
            self.store.__init__()
            self.fill(image)
            found = self.folded("lib-image:" + self.program)
            self.assertEqual((sum(found.values()), found.get(next(iter(FOLDED)))), (74, 70))
            self.assertEqual(sum(self.folded("lib-image:/bin/other").values()), 26)

    def test_hostile_depth(self):
        """Interpreters that change at each of many depths cost no more than the nodes are worth."""
        node = self.store.child(0, 1, self.store.text("STACKS:99:0"))
        node = self.store.child(self.store.child(self.store.child(self.store.child(node, 2, 0, PROG), 3), 4), 5)
        name = self.store.text("\x1f".join(map(str, HANDLER)))
        for i in range(DEEP):
            node = self.store.child(node, FRAME, self.start["main"] + i % 6, PROG)
            self.store.nodes[self.store.child(node, RUNTIME, name, 1000 + i)][4] = 1
        for native in ("fold", "only"):
            stacks = json.loads(self.report("--stacks", "--format=json", "--depth=2", "--native=" + native))["stacks"]
            self.assertEqual((stacks["samples"], sum(node["self"] for node in stacks["nodes"])), (DEEP, DEEP))
            self.assertIn("some native frames of interpreters are shown", self.err)

    def test_text(self):
        self.fill()
        rows = [line for line in self.report("--stacks").splitlines() if "(" in line]
        self.assertEqual([row[37:] for row in rows if ".py" in row], [
            "  <module> (app.py:1)", "    handler (app.py:41)", "      Sum.add (sums.py:7)", "      handler (app.py:41)"])
        rows = self.report("--stacks", "--native=show").splitlines()
        self.assertTrue(any(row.endswith("        <module> (app.py:1)") for row in rows), rows)
        self.report("-l", "--native=show", rc=1)
        self.assertIn("--native is meaningless without --stacks", self.err)
        self.report("--stacks", "--native=both", rc=1)
        self.assertIn("unknown word for --native", self.err)

    def test_json_and_csv(self):
        self.fill()
        nodes = json.loads(self.report("--stacks", "--format=json"))["stacks"]["nodes"]
        inner = next(node for node in nodes if node["name"] == "Sum.add (sums.py:7)")
        self.assertEqual({key: inner[key] for key in ("kind", "image", "function", "file", "line", "self", "total")},
                         {"kind": "runtime", "image": "python", "function": "Sum.add", "file": "/srv/app/lib/sums.py", "line": 7,
                          "self": 70, "total": 70})
        self.assertFalse(any("file" in node for node in nodes if node["kind"] != "runtime"))
        rows = list(csv.DictReader(io.StringIO(self.report("--stacks", "--format=csv"))))
        self.assertEqual([(row["name"], row["file"], row["line"]) for row in rows if row["kind"] == "runtime"],
                         [("<module> (app.py:1)", "/srv/app/app.py", "1"), ("handler (app.py:41)", "/srv/app/app.py", "41"),
                          ("Sum.add (sums.py:7)", "/srv/app/lib/sums.py", "7"), ("handler (app.py:41)", "/srv/app/app.py", "41")])
        self.assertEqual({row["file"] for row in rows if row["kind"] != "runtime"}, {""})

    def test_names(self):
        """What is not known is not shown, and the same name in two files is two functions."""
        for name, count in ((("node", "", "[node: not readable]", 0), 1), (("php", "/srv/index.php", "", 0), 2),
                            (("perl", "lib.pm", "main::run", 0), 3), (("java", "A.java", "A.run", 12), 4),
                            (("java", "/src/A.java", "A.run", 12), 5), ("no name at all", 6), (("cobol", "a", "b", 1), 7)):
            self.store.add([self.native("eval", 0), self.runtime(name)], count)
        nodes = json.loads(self.report("--stacks", "--format=json"))["stacks"]["nodes"]
        self.assertEqual(sorted((node["name"], node["image"], node["self"]) for node in nodes if node["kind"] == "runtime"), [
            ("(damaged name)", "", 13), ("(no name) (index.php)", "php", 2), ("A.run (A.java:12)", "java", 4),
            ("A.run (A.java:12)", "java", 5), ("[node: not readable]", "node", 1), ("main::run (lib.pm)", "perl", 3)])


class Minutes(RuntimeCase):
    """A part of a session, by its timeline, which keeps neither the line nor the image of a runtime."""

    def setUp(self):
        super().setUp()
        self.fill()
        lines = []
        for minute in range(3):
            lines += ["event TIMER:1000000:0x0", "event STACKS:99:0x0 4"]
            def add(count, *frames):
                way = ["%d %s %d" % (9, self.start[frame], PROG) if isinstance(frame, str) else
                       "14 =%s 0" % "\x1f".join(map(str, frame)) for frame in frames]
                lines.append("add %d 2 1 0 3 0 %d %s" % (count, PROG, " ".join(way)))
            add(10 * (minute + 1), "_start", "main", "eval", MODULE, HANDLER, INNER)
            add(4, "_start", "main", "eval", MODULE, HANDLER, "long_add")
            add(1, "_start", "main", "import_site")
            lines.append("add 100 1 0 0 3 0 %d 8 0 %d 9 %d %d" % (PROG, PROG, self.start["eval"], PROG))
            lines += ["row 0 stored 100", "row 0 received 100", "row 1 stored %d" % (10 * minute + 15)]
            lines.append("block %d %d" % tuple((BEGIN + 60 * (minute + i)) * 10 ** 9 for i in (0, 1)))
        subprocess.run([MAKER, self.session], input="".join(line + "\n" for line in lines), text=True, check=True)
        self.span = ["--since=@%d" % (BEGIN + 60), "--until=@%d" % (BEGIN + 120)]

    def test_stacks(self):
        self.assertEqual(self.folded(*self.span), {
            "prog;<module> (app.py:1);handler (app.py:41);Sum.add (sums.py:7)": 20,
            "prog;<module> (app.py:1);handler (app.py:41)": 4, "prog;_start;main;import_site": 1})
        self.assertEqual(self.folded("--native=show", *self.span)["prog;_start;main;eval;<module> (app.py:1);handler (app.py:41);"
                                                                  "long_add"], 4)
        found = json.loads(self.report("-l", "--runtime", "--format=json", *self.span))["runtimes"]
        self.assertEqual([(row["function"], row["self"], row["total"]) for row in found["functions"]],
                         [("Sum.add", 20, 20), ("handler", 4, 24), ("<module>", 0, 24)])

    def test_over_time(self):
        """A stack counts for its innermost function, or for one that is in it, in each minute."""
        def course(*options):
            rows = list(csv.reader(io.StringIO(self.report("-l", "--runtime=python", "--format=csv", *options))))[1:]
            found = {}
            for _, _, name, samples, total in rows:
                found.setdefault(name, []).append((int(samples), int(total)))
            return found
        self.assertEqual(course("--over-time"), {"Sum.add (sums.py:7)": [(10, 15), (20, 25), (30, 35)],
                                                 "handler (app.py:41)": [(4, 15), (4, 25), (4, 35)]})
        for name in ("handler", "handler (app.py:41)"):
            self.assertEqual(course("--over-time=" + name), {name: [(14, 15), (24, 25), (34, 35)]})
        self.assertEqual(course("--over-time=Sum.add", *self.span), {"Sum.add": [(20, 25)]})
        text = self.report("-l", "--runtime", "--over-time")
        self.assertIn("Samples: ", text)
        self.assertIn("Sum.add (sums.py:7)", text)
        self.report("-l", "--runtime=java", "--over-time", rc=1)
        self.assertIn("no stack of that time has a function of java", self.err)
        self.report("-l", "--runtime", "--over-time=main", rc=1)
        self.assertIn("--over-time=main: no application and no function of a runtime has that name", self.err)

    def test_differences_of_time(self):
        spans = ["@%d..@%d" % (BEGIN + 60 * minute, BEGIN + 60 * minute + 60) for minute in (0, 2)]
        rows = list(csv.DictReader(io.StringIO(self.report("-l", "--runtime", "--format=csv", "--diff=" + spans[0], spans[1]))))
        self.assertEqual([(row["function"], row["before"], row["after"]) for row in rows],
                         [("Sum.add", "10", "30"), ("handler", "4", "4")])

    def test_page(self):
        """The map of time has them at the same nodes as the session."""
        path = os.path.join(self.dir, "page.html")
        self.report("--html=" + path)
        with open(path, encoding="utf-8") as stream:
            page = page_data.Page(stream.read())
        names = [tuple(page.name(number - 1) for number in path) for path, *_ in page.times]
        self.assertIn(("<module> (app.py:1)", "handler (app.py:41)", "Sum.add (sums.py:7)"), names)
        self.assertEqual(len({page.name(i) for i, one in enumerate(page.functions) if one[0] == 9}), 3)


class Functions(RuntimeCase):
    """opreport -l --runtime"""

    def test_functions(self):
        self.fill()
        self.store.add([*self.outer(), self.runtime(INNER), self.runtime(INNER), self.runtime(MODULE)], 3)  # recursion
        self.store.add([*self.outer(), self.runtime(("node", "file:///srv/a.js", "run", 3), image=OTHER)], 1)
        found = json.loads(self.report("-l", "--runtime", "--format=json"))["runtimes"]
        self.assertEqual((found["samples"], found["of"]), (104, {"python": 99, "node": 1}))
        self.assertEqual([(row["runtime"], row["function"], row["file"], row["line"], row["self"], row["total"])
                          for row in found["functions"]], [
            ("python", "Sum.add", "/srv/app/lib/sums.py", 7, 70, 73), ("python", "handler", "/srv/app/app.py", 41, 26, 96),
            ("python", "<module>", "/srv/app/app.py", 1, 3, 99), ("node", "run", "file:///srv/a.js", 3, 1, 1)])
        rows = list(csv.DictReader(io.StringIO(self.report("-l", "--runtime=node", "--format=csv"))))
        self.assertEqual(rows, [{"self": "1", "percent": "0.961538", "total": "1", "runtime": "node", "function": "run",
                                 "file": "file:///srv/a.js", "line": "3"}])
        text = self.report("-l", "--runtime", "--threshold=90").splitlines()
        self.assertEqual([line.split() for line in text[-3:]], [
            ["self", "%", "self", "total", "%", "total", "runtime", "function", "(file:line)"],
            ["26", "25.0000", "96", "92.3077", "python", "handler", "(app.py:41)"],
            ["3", "2.8846", "99", "95.1923", "python", "<module>", "(app.py:1)"]])
        self.assertIn("Runtime: python has 99 samples, 95.19 %", text)
        self.assertEqual(len(self.report("-l", "--runtime", "prog", "--top=2", "--no-header").splitlines()), 2)
        self.assertEqual(len(self.report("-l", "-n", "--runtime=python").splitlines()), 3)

    def test_difference(self):
        """A new version of a program has its functions at other lines and in another folder."""
        self.store.add([*self.outer(), self.runtime(MODULE), self.runtime(HANDLER)], 100)
        self.store.add([*self.outer(), self.runtime(MODULE), self.runtime(INNER)], 300)
        self.store.write(os.path.join(self.session, "stacks"))
        shutil.copytree(self.session, os.path.join(self.dir, "samples", "before"))
        self.store.__init__()
        self.store.add([*self.outer(), self.runtime(("python", "/srv/v2/app.py", "handler", 44))], 300)
        self.store.add([*self.outer(), self.runtime(("python", "/srv/v2/lib/sums.py", "Sum.add", 7))], 50)
        self.store.add([*self.outer(), self.runtime(("node", "/srv/a.js", "handler", 3), image=OTHER)], 1)
        self.store.add([self.native("_start")], 49)
        sides = ("{", "session:before", "}", "{", "session:current", "}")
        text = self.report("-l", "--runtime", *sides).splitlines()
        self.assertEqual([line.split() for line in text], [
            ["Stacks:", "400", "before,", "400", "after"],
            ["before", "after", "%", "before", "%", "after", "points", "runtime", "function", "(file:line)"],
            ["300", "50", "75.0000", "12.5000", "-62.50", "python", "Sum.add", "(sums.py:7)"],
            ["100", "300", "25.0000", "75.0000", "+50.00", "python", "handler", "(app.py:44)"],
            ["0", "1", "0.0000", "0.2500", "+0.25", "node", "handler", "(a.js:3)", "noise"]])
        found = json.loads(self.report("-l", "--runtime=python", "--format=json", "--top=1", *sides))["runtimes"]
        self.assertEqual(found["samples"], [400, 400])
        self.assertEqual([(row["function"], row["file"], row["self"], row["points"]) for row in found["functions"]],
                         [("Sum.add", "/srv/v2/lib/sums.py", [300, 50], -62.5)])
        self.assertEqual(len(self.report("-l", "--runtime", "--no-header", "--threshold=1", *sides).splitlines()), 2)
        self.report("-l", "--runtime=perl", *sides, rc=1)
        self.assertIn("no stack has a function of perl", self.err)

    def test_explain(self):
        """The page of --explain has the figures of the report that it names."""
        self.fill()
        page = self.report("--explain")
        self.assertIn("## Functions of runtimes\n\n- `Sum.add (sums.py:7)` of `python` took 70.00 % (70 stacks).\n"
                      "- `handler (app.py:41)` of `python` took 26.00 % (26 stacks).\n\nMore: `opreport -l --runtime ", page)
        facts = json.loads(self.report("--explain", "--format=json"))
        self.assertEqual([(fact["name"], fact["samples"]) for fact in facts["runtimes"]],
                         [("Sum.add (sums.py:7)", 70), ("handler (app.py:41)", 26)])

    def test_what_does_not_go_together(self):
        self.fill()
        self.report("-l", "--runtime=java", rc=1)
        self.assertIn("no stack has a function of java", self.err)
        for options in (["--runtime"], ["--runtime", "--stacks"], ["-l", "--runtime", "--waits"], ["-l", "--runtime", "-d"],
                        ["-l", "--runtime", "--by=cgroup"], ["-l", "--runtime", "--format=xml"], ["-l", "--runtime", "--inline"]):
            self.report(*options, rc=1)
            self.assertIn("--runtime ", self.err)
        self.report("-l", "--runtime", "--format=csv", "nothing", rc=1)
        self.store.add([*self.outer(), self.runtime(INNER)], 3, event="CPU_CLK_UNHALTED:100000:0")
        self.report("-l", "--runtime", rc=1)
        self.assertIn("several events", self.err)
        self.assertIn("Sum.add (sums.py:7)", self.report("-l", "--runtime", "event:CPU_CLK_UNHALTED"))


class Exports(RuntimeCase):
    """Files for other tools have function, file and line, and all samples."""

    def test_pprof(self):
        self.fill()
        path = os.path.join(self.dir, "out.pb.gz")
        self.report("--format=pprof", "--output-file=" + path)
        with open(path, "rb") as stream:
            profile = fields(gzip.decompress(stream.read()))
        strings = [text.decode() for text in profile[6]]
        functions = {one[1][0]: (strings[one[2][0]], strings[sum(one[4])], sum(one[5])) for one in map(fields, profile[5])}
        lines = {one[1][0]: [(functions[line[1][0]], sum(line[2])) for line in map(fields, one[4])]
                 for one in map(fields, profile[4])}
        module, inner = ("<module>", "/srv/app/app.py", 1), ("Sum.add", "/srv/app/lib/sums.py", 7)
        handler = ("handler", "/srv/app/app.py", 41)
        found = collections.Counter()
        for sample in map(fields, profile[2]):
            stack = tuple(lines[number][0] for number in varints(sample[1][0]))
            found[stack[:3] if len(stack) == 3 and stack[0][0] == inner else len(stack)] += varints(sample[2][0])[0]
        self.assertEqual(found, {((inner, 9), (handler, 44), (module, 50)): 40, ((inner, 9), (handler, 45), (module, 50)): 30,
                                 4: 20, 5: 6, 3: 4})
        self.assertEqual(sum(1 for one in functions.values() if one == handler), 1)

    def test_speedscope(self):
        self.fill()
        top = json.loads(self.report("--format=speedscope"))
        frames = top["shared"]["frames"]
        self.assertEqual([frame for frame in frames if "line" in frame], [
            {"name": "<module>", "file": "/srv/app/app.py", "line": 1}, {"name": "handler", "file": "/srv/app/app.py", "line": 41},
            {"name": "Sum.add", "file": "/srv/app/lib/sums.py", "line": 7}])
        self.assertEqual(sum(top["profiles"][0]["weights"]), 100)

    def test_firefox(self):
        self.fill()
        profile = json.loads(self.report("--format=firefox"))
        thread, = profile["threads"]
        strings, functions, frames = thread["stringArray"], thread["funcTable"], thread["frameTable"]
        self.assertEqual(sum(thread["samples"]["weight"]), 100)
        found = [(strings[functions["name"][i]], strings[functions["fileName"][i]], functions["lineNumber"][i],
                  frames["line"][i], profile["meta"]["categories"][frames["category"][i]]["name"])
                 for i in range(functions["length"]) if functions["fileName"][i] is not None]
        self.assertEqual(found, [
            ("<module>", "/srv/app/app.py", 1, 1, "Runtime"), ("handler", "/srv/app/app.py", 41, 41, "Runtime"),
            ("Sum.add", "/srv/app/lib/sums.py", 7, 7, "Runtime")])

    def test_callgrind(self):
        self.fill()
        self.store.add([self.native("eval", 0), self.runtime(("python", "/other/app.py", "handler", 41))], 5)
        text = self.report("--format=callgrind")
        files = dict(re.findall(r"^c?f[il]=\((\d+)\) (.*)$", text, re.M))
        found = re.findall(r"^fl=\((\d+)\) .*\nfn=\(\d+\) (.*)\n(\d+) (\d+)$", text, re.M)
        self.assertEqual({(files[number], name, line, count) for number, name, line, count in found if line != "0"}, {
            ("/srv/app/app.py", "<module> (app.py:1)", "1", "0"), ("/other/app.py", "handler (app.py:41)", "41", "5"),
            ("/srv/app/lib/sums.py", "Sum.add (sums.py:7)", "7", "70"),
            ("/srv/app/app.py", "handler (app.py:41) (/srv/app/app.py)", "41", "0")})
        self.assertIn("calls=70 7\n41 70\n", text)
        self.assertIn("totals: 105", text)

    def test_perf(self):
        """It has addresses, and so the native frames."""
        self.fill()
        path = os.path.join(self.dir, "perf.data")
        self.report("--format=perf", "--output-file=" + path)
        if shutil.which("perf"):
            done = subprocess.run(["perf", "script", "-i", path, "-F", "period,ip"], capture_output=True, timeout=60, check=False,
                                  stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=self.dir, LC_ALL="C"))
            blocks = [block.split() for block in done.stdout.decode().strip().split("\n\n")]
            self.assertEqual(sorted((int(block[0]), len(block) - 1) for block in blocks),
                             [(4, 3), (6, 7), (20, 6), (30, 4), (40, 3)])
        self.report("--format=perf", "--output-file=" + path, "--native=only", rc=1)
        self.assertIn("--native=only", self.err)

    def test_calls(self):
        """opreport -c is of native functions, and knows them through functions of runtimes."""
        self.fill()
        rows = [line.split() for line in self.report("-c").splitlines()]
        self.assertIn("long_add", [row[-1] for row in rows if row])


class Pages(RuntimeCase):
    """opreport --html"""

    def page(self, *options):
        path = os.path.join(self.dir, "page.html")
        self.report("--html=" + path, *options)
        with open(path, encoding="utf-8") as stream:
            return page_data.Page(stream.read())

    def folded_of(self, page):
        found = collections.Counter()
        for path, _, count in page.counts:
            found[";".join(["prog", *(page.name(number - 1) for number in path)])] += count
        return {path: count for path, count in found.items() if count}

    def test_functions(self):
        self.fill()
        page = self.page()
        plain = {path.replace("_[k]", ""): count for path, count in FOLDED.items()}
        self.assertEqual(self.folded_of(page), plain)
        found = {page.string(name): (kind, page.string(image), page.string(source)) for kind, name, image, source in page.functions}
        self.assertEqual(found["handler (app.py:41)"], (9, "python", "/srv/app/app.py:41"))
        self.assertEqual(found["Sum.add (sums.py:7)"], (9, "python", "/srv/app/lib/sums.py:7"))
        only = self.folded_of(self.page("--native=only"))
        self.assertEqual((sum(only.values()), len(only)), (100, 3))
        self.assertIn("prog;_start;main;eval;<module> (app.py:1);handler (app.py:41);Sum.add (sums.py:7)",
                      self.folded_of(self.page("--native=show")))

    def test_sources(self):
        """A hot function has its source, with the samples of stacks; one whose file is gone has none."""
        path = os.path.join(self.dir, "app.py")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("".join("line %d <\n" % i for i in range(1, 30)))
        handler = ("python", path, "handler", 3)
        for line, count in ((4, 30), (5, 25), (28, 5)):
            self.store.add([*self.outer(), self.runtime(MODULE, 50), self.runtime(handler, line)], count)
        self.store.add([*self.outer(), self.runtime(MODULE, 50), self.runtime(handler, 5), LIBRARY], 10)
        self.store.add([*self.outer(), self.runtime(MODULE, 50)], 10)
        code, = (code for code in self.page().data["sides"][0]["code"] if code["image"] == "python")
        self.assertEqual({key: code[key] for key in ("name", "event", "line", "samples")},
                         {"name": "handler (app.py:3)", "event": "STACKS:99:0", "line": 3, "samples": 70})
        block, = code["blocks"]
        self.assertEqual((block["file"], block["code"]), (path, False))
        self.assertEqual({line[0]: line[1] for line in block["lines"] if line and line[1]}, {4: 30, 5: 35, 28: 5})
        self.assertIn([3, 0, "line 3 <"], block["lines"])
        self.assertIn(0, block["lines"])
        self.store.write(os.path.join(self.session, "stacks"))
        shutil.copytree(self.session, os.path.join(self.dir, "samples", "before"))
        sides = self.page("{", "session:before", "}", "{", "session:current", "}").data["sides"]
        self.assertEqual([[code["name"] for code in side["code"] if code["image"] == "python"] for side in sides],
                         [["handler (app.py)"]] * 2)

    def test_difference(self):
        """After a change a function begins at another line, and is the same function."""
        self.store.add([self.native("eval", 0), self.runtime(HANDLER)], 10)
        self.store.write(os.path.join(self.session, "stacks"))
        shutil.copytree(self.session, os.path.join(self.dir, "samples", "before"))
        self.store.__init__()
        self.store.add([self.native("eval", 0), self.runtime(("python", "/srv/v2/app.py", "handler", 44))], 30)
        page = self.page("{", "session:before", "}", "{", "session:current", "}")
        self.assertEqual([(page.string(name), page.string(source)) for _, name, _, source in page.functions],
                         [("handler (app.py)", "/srv/v2/app.py:44")])
        self.assertEqual((page.samples(0), page.samples(1)), (10, 30))


class Sources(RuntimeCase):
    """opannotate -s"""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "app.py")
        with open(self.path, "w", encoding="ascii") as stream:
            stream.write("".join("line %d\n" % i for i in range(1, 11)))
        handler = ("python", self.path, "handler", 3)
        self.store.add([*self.outer(), self.runtime(MODULE, 50), self.runtime(handler, 4)], 30)
        self.store.add([*self.outer(), self.runtime(MODULE, 50), self.runtime(handler, 4), self.native("long_add", 0)], 20)
        self.store.add([*self.outer(), self.runtime(MODULE, 50), self.runtime(handler, 5), LIBRARY, (KERNEL, OTHER, 3)], 25)
        self.store.add([*self.outer(), self.runtime(("node", "file://" + self.path, "late", 9), 9)], 5)
        self.store.add([*self.outer(), self.runtime(("python", "/gone/sums.py", "Sum.add", 7), 9)], 10)
        self.store.add([*self.outer()], 10)

    def annotate(self, *options, rc=0):
        self.store.write(os.path.join(self.session, "stacks"))
        done = subprocess.run([os.path.join(os.path.abspath("bin"), "opannotate"), "--session-dir=" + self.dir, *options],
                              capture_output=True, timeout=60, check=False, env=dict(os.environ, TZ="UTC", LC_ALL="C"))
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, rc, self.err)
        return done.stdout.decode()

    def lines(self, text):
        """Samples and percent of the lines of app.py, and what stands behind them."""
        found = re.findall(r"^( *(\d+) +([\d.]+) |) *:(line \d+)( /\*.*\*/)?$", text, re.M)
        self.assertEqual([line for _, _, _, line, _ in found], ["line %d" % i for i in range(1, 11)])
        return {int(line.split()[1]): (int(count), float(percent)) for _, count, percent, line, _ in found if count}

    def test_lines(self):
        text = self.annotate("-s")
        self.assertEqual(self.lines(text), {4: (50, 50), 5: (25, 25), 9: (5, 5)})
        self.assertRegex(text, r":line 3 /\* handler \(app.py:3\) total: +75 75.0000 \*/\n")
        self.assertRegex(text, r":line 9 /\* late \(app.py:9\) total: +5  5.0000 \*/\n")
        self.assertIn(' * Total samples for file : "%s"\n * \n *     80 80.0000\n' % self.path, text)
        self.assertIn(" * Stacks of STACKS:99:0\n", text)
        self.assertIn("unable to open for reading: /gone/sums.py", self.err)
        self.assertRegex(text, r"\n +10 10.0000 :/\* Sum.add \(sums.py:7\) total: +10 10.0000 \*/\n")
        self.assertIn("prog.c", text)  # the native sources come first

    def test_selection(self):
        text = self.annotate("-s", "-i", "handler")
        self.assertEqual(self.lines(text), {4: (50, 50), 5: (25, 25)})
        self.assertNotIn("sums.py", text)
        self.assertNotIn("app.py", self.annotate("-s", "-i", "long_add"))
        self.annotate("-s", "-i", "nothing", rc=1)
        self.assertNotIn("/gone", self.annotate("-s", "--threshold=20"))
        self.assertNotIn("app.py", self.annotate("-s", "--exclude-file=*.py"))
        self.assertNotIn("app.py", self.annotate("-a"))

    def test_directories(self):
        """A copy of the source is found as for native code, and output goes to files."""
        os.makedirs(os.path.join(self.dir, "src"))
        with open(os.path.join(self.dir, "src", "sums.py"), "w", encoding="ascii") as stream:
            stream.write("a sum\n" * 9)
        text = self.annotate("-s", "--base-dirs=/gone", "--search-dirs=" + os.path.join(self.dir, "src"))
        self.assertRegex(text, r"(?m)^ +10 10.0000 :a sum$")
        out = os.path.join(self.dir, "out")
        self.annotate("-s", "-o", out)
        with open(out + self.path, encoding="ascii") as stream:
            self.assertEqual(self.lines(stream.read()), {4: (50, 50), 5: (25, 25), 9: (5, 5)})

    def test_files_that_are_not_for_everybody(self):
        """A program that runs can name any file as its source, and the report is for others."""
        pages = [os.path.join(self.dir, name) for name in ("listing.html", "page.html")]

        def shown(*options):
            """The text, and both pages."""
            text = self.annotate("-s", *options) + self.annotate("-s", "-a", *options)
            self.annotate("--html=" + pages[0], *options)
            self.report("--html=" + pages[1])
            for page in pages:
                with open(page, encoding="utf-8") as stream:
                    text += stream.read()
            return text

        def is_shown(*options):
            return "line 4" in shown(*options)
        self.assertTrue(is_shown())
        os.chmod(self.path, 0o640)
        self.assertFalse(is_shown())
        self.assertIn(self.path + " is not shown: others may not read it", self.annotate("-s") + self.err)
        self.assertTrue(is_shown("--search-dirs=/"))
        self.assertFalse(is_shown("--search-dirs=" + self.images))
        link = os.path.join(self.dir, "link.py")
        os.symlink(self.path, link)
        self.store.__init__()
        self.store.add([*self.outer(), self.runtime(("python", link, "handler", 3), 4)], 30)
        self.assertFalse(is_shown())
        # nor does debugging information show one
        self.assertIn("void main(void)", shown())
        os.chmod(self.program + ".c", 0o600)
        self.addCleanup(os.chmod, self.program + ".c", 0o644)
        self.assertNotIn("void main(void)", shown())
        self.assertIn("void main(void)", shown("--search-dirs=/"))

    @unittest.skipIf(os.geteuid(), "gives files to another user")
    def test_files_of_others_in_closed_directories(self):
        os.chmod(self.dir, 0o755)
        closed = os.path.join(self.dir, "closed")
        os.mkdir(closed)
        path = os.path.join(closed, "app.py")
        shutil.copy(self.path, path)
        self.store.add([*self.outer(), self.runtime(("python", path, "handler", 3), 4)], 30)
        os.unlink(self.path)
        self.assertIn("line 4", self.annotate("-s"))
        for where in (path, closed):
            os.chown(where, 65534, 65534)
        self.assertIn("line 4", self.annotate("-s"))
        os.chmod(closed, 0o750)
        self.assertNotIn("line 4", self.annotate("-s"))

    def test_names_do_not_lead_out(self):
        """Above a search directory nothing is looked for."""
        below = os.path.join(self.dir, "src", "a")
        os.makedirs(below)
        os.chmod(self.path, 0o600)
        for name in ("../../app.py", "/../../app.py", "x/../../../app.py", "./.././../app.py"):
            self.store.__init__()
            self.store.add([*self.outer(), self.runtime(("python", name, "handler", 3), 4)], 30)
            os.makedirs(os.path.join(below, "x"), exist_ok=True)
            self.assertNotIn("line 4", self.annotate("-s", "--search-dirs=" + below))
        shutil.copy(self.path, below)
        self.store.add([*self.outer(), self.runtime(("python", "x/../app.py", "handler", 3), 4)], 30)
        self.assertIn("line 4", self.annotate("-s", "--search-dirs=" + below))

    def test_what_is_no_file(self):
        """A FIFO has no reader, not even for a moment, and a device is not opened."""
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        for name in (fifo, "file://" + fifo, "/dev/zero", "/dev/full", "/proc/self/mem", self.dir, "", ".", "/"):
            self.store.add([*self.outer(), self.runtime(("python", name, "handler", 3), 4)], 30)
        self.assertIn("unable to open for reading: " + fifo, self.annotate("-s") + self.err)
        self.report("--html=" + os.path.join(self.dir, "page.html"))
        if shutil.which("strace"):
            log = os.path.join(self.dir, "log")
            subprocess.run(["strace", "-f", "-o", log, "-e", "trace=open,openat", os.path.abspath("bin/opannotate"),
                            "--session-dir=" + self.dir, "-s"], capture_output=True, check=True, timeout=60)
            with open(log, encoding="utf-8", errors="replace") as stream:
                opened = [line for line in stream if '"' + fifo + '"' in line or '"/dev/zero"' in line]
            self.assertTrue(opened)
            self.assertEqual([line for line in opened if "O_PATH" not in line], [])


if __name__ == "__main__":
    unittest.main()
