#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of any bytes in every form of stacks: functions, processes and cgroups with line breaks,
quotes, semicolons, bytes that are no UTF-8, and of 10 KB. Each form is well-formed and has all
samples; different names stay different.

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
import test_export_pprof  # noqa: E402
from stack_session import StackCase  # noqa: E402

NAMES = [b"first\nsecond 7", b"a;b", b"\"quote\"", b"it's", b"back\\slash", b"\\\"", b"\xff\xfe!", b"\xc3(", b"\xed\xa0\x80",
         b"\x1b[31mred", b"tab\there", b"\r\nfn=(1) x",
         b"fn=(1) x", b"(2)", b"calls=9 0", b"</script>", b"<!--", b"%s%n", b" blanks ", b"\x7f\x01",
         "\u202eevil".encode(), "\ufffe\u2028".encode(), b"a|b,c", b"x" * 10240, b"\xff" * 10240, b"'\n;" * 3413]
PLACES = ["Q%02d" % i + "q" * max(0, len(name) - 3) for i, name in enumerate(NAMES)]
NAMES = [name.ljust(3, b"_") for name in NAMES]
EACH = 3  # samples of a stack


class Names(StackCase):
    source = "".join("void f%d(void) __asm__(\"%s\");\nvoid f%d(void) { }\n" % (i, place, i) for i, place in enumerate(PLACES)) + \
        "void hot(void) { f0(); }\nvoid _start(void) { hot(); }\n"
    functions = ("hot", "_start", *PLACES)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.program, "rb") as stream:
            data = stream.read()
        for place, name in zip(PLACES, NAMES):
            assert len(place) == len(name) and place.encode() in data
            data = data.replace(place.encode() + b"\0", name + b"\0")
        with open(cls.program, "wb") as stream:
            stream.write(data)

    def setUp(self):
        super().setUp()
        for i, (place, name) in enumerate(zip(PLACES, NAMES)):
            text = name[:4000].decode("latin-1")
            self.store.add([*self.frames("_start", place)], EACH, comm="%x" % i, cgroup="/" + text)
        self.total = EACH * len(NAMES)

    def export(self, form, *options):
        path = os.path.join(self.dir, "out")
        self.report("--format=" + form, "--output-file=" + path, *options)
        with open(path, "rb") as stream:
            return stream.read()

    def lines(self, data):
        """A name makes no line of its own and controls no terminal."""
        self.assertFalse(re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", data))
        return data.decode("utf-8", "surrogateescape").split("\n")

    def groups(self):
        return ["--by=cgroup"], ["--by=comm"]

    def test_folded(self):
        for options in self.groups():
            *lines, last = self.lines(self.export("folded", *options))
            self.assertEqual(last, "")
            stacks = collections.Counter()
            for line in lines:
                stack, count = line.rsplit(" ", 1)
                self.assertEqual(stack.count(";"), 2, line[:200])
                stacks[stack] += int(count)
            self.assertEqual(set(stacks.values()), {EACH}, options)
            self.assertEqual(len(stacks), len(NAMES))

    def test_text(self):
        lines = self.lines(self.report("--stacks", "--by=comm", text=False))
        at = next(i for i, line in enumerate(lines) if line.startswith(" samples")) + 1
        rows = [re.fullmatch(r" *(\d+) +[\d.]+ +[\d.]+ +(\d+)  .+", line) for line in lines[at:-1]]
        self.assertEqual((len(rows), sum(int(row.group(2)) for row in rows)), (3 * len(NAMES), self.total))

    def test_json_and_csv(self):
        for options in self.groups():
            nodes = json.loads(self.export("json", "--stacks", *options).decode())["stacks"]["nodes"]
            self.assertEqual((len(nodes), sum(node["self"] for node in nodes)), (3 * len(NAMES), self.total))
            self.assertEqual(len({node["name"] for node in nodes if node["self"]}), len(NAMES))
            text = self.export("csv", "--stacks", *options).decode()
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            self.assertEqual(sum(int(row["self"]) for row in rows), self.total)
            self.assertEqual(len({row["name"] for row in rows if row["self"] != "0"}), len(NAMES))

    def test_pprof(self):
        message = gzip.decompress(self.export("pprof"))
        profile = test_export_pprof.fields(message)
        strings = [text.decode() for text in profile[6]]
        self.assertFalse([text for text in strings if re.search("[\x00-\x1f\x7f]", text)])
        self.assertEqual((len(profile[2]), len(profile[5])), (len(NAMES), len(NAMES) + 1))
        self.assertEqual(len(set(strings)), len(strings))
        values = [test_export_pprof.varints(test_export_pprof.fields(sample)[2][0]) for sample in profile[2]]
        self.assertEqual(values, [[EACH]] * len(NAMES))
        if shutil.which("protoc"):
            done = subprocess.run(["protoc", "--decode=Profile", "-I" + os.path.join(SOURCE, "tests/unit"), "pprof.proto"],
                                  input=message, capture_output=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertFalse(re.findall(rb"^ *\d+[:{ ]", done.stdout, re.M))

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed (linux-perf)")
    def test_perf(self):
        path = os.path.join(self.dir, "out")
        self.export("perf")
        done = subprocess.run(["perf", "script", "-i", path, "-F", "period,ip", "-G"], capture_output=True, timeout=99, check=False,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=self.dir, LC_ALL="C", PERF_CONFIG="/dev/null"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sum(int(line.split()[0]) for line in done.stdout.decode().splitlines() if line.strip()), self.total)

    def test_speedscope(self):
        for options in self.groups():
            top = json.loads(self.export("speedscope", *options).decode())
            (profile,) = top["profiles"]
            self.assertEqual((len(profile["samples"]), sum(profile["weights"])), (len(NAMES), self.total))
            self.assertEqual(len({top["shared"]["frames"][stack[-1]]["name"] for stack in profile["samples"]}), len(NAMES))

    def test_firefox(self):
        for options in self.groups():
            threads = json.loads(self.export("firefox", *options).decode())["threads"]
            self.assertEqual(sum(sum(thread["samples"]["weight"]) for thread in threads), self.total)
            self.assertEqual(len({text for thread in threads for text in thread["stringArray"]} - {"_start", "prog"}), len(NAMES))

    def test_callgrind(self):
        for options in self.groups():
            lines = self.lines(self.export("callgrind", *options))
            body = lines[lines.index(""):]
            known = re.compile(r"(c?(fn|ob)|c?f[li])=\(\d+\)( .+)?|calls=\d+ 0|0 \d+|totals: \d+|")
            strange = [line for line in body if not known.fullmatch(line)]
            self.assertEqual(strange, [])
            self.assertIn("totals: %d" % self.total, body)
            if shutil.which("callgrind_annotate"):
                done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", os.path.join(self.dir, "out")],
                                      capture_output=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                own = [int(count) for count in re.findall(rb"^ *(\d+) \([ \d.]+%\)  \?\?\?:", done.stdout, re.M)]
                self.assertEqual(own, [EACH] * len(NAMES))

    def test_page(self):
        self.report("--html=" + os.path.join(self.dir, "out"))
        with open(os.path.join(self.dir, "out"), "rb") as stream:
            page = page_data.Page(stream.read().decode())
        self.assertEqual(page.samples(), self.total)


if __name__ == "__main__":
    unittest.main()
