#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --format=speedscope and callgrind: read by this test from their descriptions, and by
callgrind_annotate.

Run from the build directory by `make check`.
"""
import collections
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
from stack_session import FRAME, OTHER, PROG, StackCase  # noqa: E402

HOSTILE = ["\"\n\\\x1b", "</script>", "(3) x", "a;b", "\x01\x7f", "fn=(1)"]


class Forms(StackCase):
    def put_hostile(self):
        for name in HOSTILE:
            self.store.add(self.frames("cold", "hot"), 2, comm=name)
        self.store.add(self.frames("hot"), 3, cgroup="/" + 400 * "long name ")

    def totals(self):
        """Of each function: samples of its own, and of the stacks that it is in."""
        own, whole = collections.Counter(), collections.Counter()
        for stack, count in self.folded().items():
            names = stack.split(";")
            own[names[-1]] += count
            whole.update({name: count for name in set(names)})
        return own, whole

    def folded(self, *options):
        lines = self.report("--format=folded", *options).splitlines()
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}

    def put_recursion(self):
        self.store.add(self.frames("_start", "cold", "warm", "cold", "warm", "hot"), 8)
        self.store.add(self.frames("_start", "cold", "cold", "cold"), 4)
        self.store.add(self.frames("_start", "warm", "cold", "warm"), 1)


class Speedscope(Forms):
    def speedscope(self, *options):
        """The file as its schema (file-format-spec.ts of speedscope) says, and its stacks by profile."""
        text = self.report("--format=speedscope", *options)
        self.assertFalse(re.search("[\x00-\x09\x0b-\x1f]", text))
        top = json.loads(text)
        self.assertEqual(top["$schema"], "https://www.speedscope.app/file-format-schema.json")
        self.assertEqual(set(top), {"$schema", "shared", "profiles", "name", "exporter"})
        frames = top["shared"]["frames"]
        for frame in frames:
            self.assertIsInstance(frame["name"], str)
            self.assertIsInstance(frame.get("file", ""), str)
            self.assertLessEqual(set(frame), {"name", "file"})
        profiles = {}
        for profile in top["profiles"]:
            self.assertEqual(set(profile), {"type", "name", "unit", "startValue", "endValue", "samples", "weights"})
            self.assertEqual((profile["type"], profile["unit"], profile["startValue"]), ("sampled", "none", 0))
            self.assertEqual(profile["endValue"], sum(profile["weights"]))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            profiles[profile["name"]] = {";".join(frames[i]["name"] for i in stack): weight
                                         for stack, weight in zip(profile["samples"], profile["weights"])}
        return profiles

    def test_stacks(self):
        self.fill()
        self.assertEqual(self.speedscope(), {"STACKS:99:0": self.folded()})
        self.assertEqual(self.speedscope("--by=comm", "--focus=hot"), {"STACKS:99:0": self.folded("--by=comm", "--focus=hot")})
        self.assertEqual(self.speedscope("--threshold=10"), {"STACKS:99:0": self.folded("--threshold=10")})

    def test_events(self):
        self.store.add(self.frames("hot"), 5)
        self.store.add(self.frames("hot"), 2, event="page-faults:100:0")
        self.assertEqual(self.speedscope(), {"STACKS:99:0": {"prog;hot": 5}, "page-faults:100:0": {"prog;hot": 2}})

    def test_hostile(self):
        self.put_hostile()
        stacks = self.speedscope("--by=comm")["STACKS:99:0"]
        self.assertEqual(sum(stacks.values()), 2 * len(HOSTILE) + 3)
        self.assertEqual(stacks["</script>;cold;hot"], 2)
        self.assertEqual(sum(self.speedscope("--by=cgroup")["STACKS:99:0"].values()), 2 * len(HOSTILE) + 3)


class Callgrind(Forms):
    def callgrind(self, *options):
        self.path = os.path.join(self.dir, "callgrind.out")
        self.report("--format=callgrind", "--output-file=" + self.path, *options)
        with open(self.path, encoding="utf-8") as stream:
            return stream.read()

    def read(self, text):
        """Own samples and calls, by the names of functions. Each line must be one of the format."""
        names, own, calls, total = {}, collections.Counter(), collections.Counter(), None
        head, body = text.split("\n\n", 1)
        self.assertRegex(head, r"\A# callgrind format\nversion: 1\ncreator: opd\n(desc: [^\n]+\n)+positions: line\nevents: \w+\Z")
        function = callee = calling = None
        for line in body.splitlines():
            name = re.fullmatch(r"(c?)fn=\((\d+)\) (.+)", line)
            if name:
                self.assertEqual(names.setdefault(name.group(2), name.group(3)), name.group(3))
                if name.group(1):
                    callee = name.group(3)
                else:
                    function = name.group(3)
            elif re.fullmatch(r"0 \d+", line):
                if calling:
                    calls[function, callee] += int(line.split()[1])
                else:
                    own[function] += int(line.split()[1])
                calling = None
            elif line.startswith("totals:"):
                total = int(line.split()[1])
            else:
                calling = re.fullmatch(r"calls=\d+ 0", line)
                self.assertTrue(calling or re.fullmatch(r"(ob|cob|fl|cfi)=\(\d+\) .+|", line), line)
        self.assertEqual(total, sum(own.values()))
        self.assertEqual(len(names), len(set(names.values())))
        return +own, calls

    def annotate(self, *options):
        """The table of callgrind_annotate."""
        done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", *options, self.path], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return {row.group(2): int(row.group(1).replace(",", ""))
                for row in re.finditer(r"^ *([\d,]+) \([ \d.]+%\)  \?\?\?:(.*?) \[.*\]$", done.stdout, re.M)}

    def check(self, *options):
        own, calls = self.read(self.callgrind(*options))
        expected, whole = self.totals()
        self.assertEqual(own, expected)
        callers = collections.Counter()
        for (_, callee), count in calls.items():
            callers[callee] += count
        self.assertEqual(callers, {name: count for name, count in whole.items() if name != "prog"})
        if shutil.which("callgrind_annotate"):
            self.assertEqual(self.annotate(), {name: count for name, count in own.items() if count})
            self.assertEqual(self.annotate("--inclusive=yes"), whole)

    def test_stacks(self):
        self.fill()
        self.check()

    def test_recursion(self):
        self.put_recursion()
        self.check()

    def test_one_name_in_two_images(self):
        self.store.add(self.frames("cold") + [(FRAME, OTHER, 64)], 5)
        self.store.add(self.frames("cold") + [(FRAME, PROG, 1)], 6)
        own, _ = self.read(self.callgrind())
        self.assertEqual(sorted(own.values()), [5, 6])

    def test_hostile(self):
        self.put_hostile()
        own, _ = self.read(self.callgrind("--by=comm"))
        self.assertEqual(own, {"hot": 2 * len(HOSTILE) + 3})
        if shutil.which("callgrind_annotate"):
            self.assertEqual(self.annotate(), {"hot": 2 * len(HOSTILE) + 3})
        self.read(self.callgrind("--by=cgroup"))

    def test_events(self):
        self.store.add(self.frames("cold", "hot"), 5)
        self.store.add(self.frames("cold", "hot"), 2, event="page-faults:100:0")
        text = self.callgrind()
        self.assertIn("\nevents: STACKS_99_0 page_faults_100_0\n", text)
        self.assertIn("\ntotals: 5 2\n", text)


if __name__ == "__main__":
    unittest.main()
