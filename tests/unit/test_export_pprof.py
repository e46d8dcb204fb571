#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --format=pprof, read by this test, by protoc and by go tool pprof.

Run from the build directory by `make check`.
"""
import collections
import gzip
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
from stack_session import FRAME, PROG, TOOLS, StackCase  # noqa: E402
from sample_files import write_ledger  # noqa: E402

PROGRAM = """
void hot(void) { }
static inline __attribute__((always_inline)) void inner(void) {
	hot();
}
void warm(void) {
	inner();
}
void cold(void) { warm(); }
void _start(void) { cold(); }
"""


def fields(data):
    """The fields of a message: numbers to lists of values."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            found[tag >> 3].append(varint())
        else:
            assert tag & 7 == 2, tag
            length = varint()
            found[tag >> 3].append(data[at:at + length])
            at += length
            assert at <= len(data)
    return found


def varints(data):
    return fields(b"".join(b"\x08" + part for part in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data)))[1]


class Pprof(StackCase):
    source = PROGRAM

    def pprof(self, *options):
        """The file, and what this test reads in it."""
        path = os.path.join(self.dir, "out.pb.gz")
        self.report("--format=pprof", "--output-file=" + path, *options)
        with open(path, "rb") as stream:
            self.message = gzip.decompress(stream.read())
        profile = fields(self.message)
        self.strings = [text.decode() for text in profile[6]]
        functions = {function[1][0]: function for function in map(fields, profile[5])}
        lines = {}
        for location in map(fields, profile[4]):
            lines[location[1][0]] = [(self.strings[functions[line[1][0]][2][0]], sum(line[2]))
                                     for line in map(fields, location[4])]
        self.samples = []
        for sample in map(fields, profile[2]):
            labels = {self.strings[label[1][0]]: self.strings[label[2][0]] if label[2] else sum(label[3])
                      for label in map(fields, sample[3])}
            stack = [line for number in varints(sample[1][0]) for line in lines[number]]
            self.samples.append((stack, varints(sample[2][0]), labels))
        self.comments = [self.strings[number] for number in profile[13]]
        self.mappings = [(self.strings[m[5][0]], self.strings[sum(m[6])], m[3][0]) for m in map(fields, profile[3])]
        return path

    def by_stack(self):
        stacks = collections.Counter()
        for stack, values, _ in self.samples:
            stacks[";".join(name for name, _ in reversed(stack))] += sum(values)
        return stacks

    def test_stacks(self):
        self.fill()
        write_ledger(self.session, 50, event="STACKS", count=99, lost_kernel=3, end_complete=94)
        self.pprof()
        self.assertEqual(self.by_stack(), {"_start;cold;warm;hot": 70, "_start;cold;warm": 20, "[cut];cold;warm": 6,
                                           "_start;cold": 4})
        self.assertIn({"application": "prog", "process": "other", "cgroup": "/a.slice/b", "pid": 7, "thread": 9},
                      [labels for _, _, labels in self.samples])
        self.assertTrue(any("94 % complete, 6 % cut" in comment for comment in self.comments), self.comments)
        self.assertIn("Lost:   3 stack samples", self.comments)
        note = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        (name, build_id, limit), = self.mappings
        self.assertEqual((name, build_id), (self.program, re.search(r"Build ID: (\w+)", note).group(1)))
        self.assertGreater(limit, 0x400000)

    def test_inlined(self):
        self.store.add(self.frames("_start", "cold", "warm", "hot"), 9)
        self.pprof("--inline")
        (stack, values, _), = self.samples
        self.assertEqual(values, [9])
        self.assertEqual(stack[1:], [("inner", 4), ("warm", 7), ("cold", 9), ("_start", 10)])

    def test_selected(self):
        self.fill()
        self.pprof("--focus=hot")
        self.assertEqual(self.by_stack(), {"_start;cold;warm;hot": 70})
        self.assertTrue(any("Left out: 30 samples" in comment for comment in self.comments), self.comments)
        self.pprof("--threshold=10")
        self.assertEqual(sum(self.by_stack().values()), 100)

    def test_events(self):
        self.store.add(self.frames("hot"), 5)
        self.store.add(self.frames("hot"), 2, event="page-faults:100:0x0")
        self.pprof()
        self.assertEqual(sorted(values for _, values, _ in self.samples), [[0, 2], [5, 0]])

    def test_hostile(self):
        self.store.add(self.frames("hot"), 1, comm="\"\n\\\x1b\u202e")
        self.store.add(self.frames("hot"), 2, cgroup="/" + 250 * "long name </script>")
        self.store.child(0, 9, 0xfffe, 0)
        self.store.add([(FRAME, PROG, 1 << 60), (FRAME, 77, (1 << 64) - 1)], 4)
        path = self.pprof()
        self.assertEqual(sum(self.by_stack().values()), 7)
        self.assertFalse([text for text in self.strings if "\n" in text or "\x1b" in text])
        self.check_by_protoc()
        self.check_by_go(path)

    def test_deep(self):
        self.store.add([(FRAME, PROG, self.start["cold"] + n % 5) for n in range(1000)], 3)
        path = self.pprof()
        self.assertEqual(len(self.samples[0][0]), 1000)
        self.check_by_go(path)

    def test_refused(self):
        self.fill()
        self.report("--format=pprof", "--invert", rc=1)
        self.assertIn("--invert", self.err)
        self.report("--format=pprof", "--by=comm", rc=1)
        self.assertIn("labels", self.err)
        main, terminal = os.openpty()
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "--format=pprof"], stdout=terminal,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(main)
        os.close(terminal)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--output-file=FILE", done.stderr)

    def check_by_protoc(self):
        if not shutil.which("protoc"):
            return
        done = subprocess.run(["protoc", "--decode=Profile", "-I" + os.path.join(SOURCE, "tests/unit"), "pprof.proto"],
                              input=self.message, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        self.assertFalse(re.findall(r"^ *\d+[:{ ]", text, re.M), "fields that the format does not have")
        self.assertEqual(len(re.findall("^sample {", text, re.M)), len(self.samples))

    def go(self, *arguments):
        done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", *arguments], capture_output=True, text=True, timeout=120,
                              check=False, env=dict(os.environ, TZ="UTC", HOME=self.dir, PPROF_TMPDIR=self.dir))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_by_go(self, path):
        """The traces that go tool pprof shows add up to the samples."""
        if shutil.which("go"):
            traces = self.go("-traces", path)
            self.assertEqual(sum(map(int, re.findall(r"^ +(\d+)   \S", traces, re.M))), sum(self.by_stack().values()), traces)

    def test_protoc(self):
        self.fill()
        self.pprof("--inline")
        self.check_by_protoc()

    def peek(self, path):
        """Of each function that go tool pprof -peek shows: own samples, all of them, callers, callees."""
        found = {}
        for block in re.split(r"-+\+-+\n", self.go("-peek=.", path))[1:-1]:
            rows = [line.split("|") for line in block.splitlines() if "|" in line]
            if not rows:
                continue
            middle = next(i for i, (_, name) in enumerate(rows) if not name.startswith("  "))
            own, whole = (int(rows[middle][0].split()[i]) for i in (0, 3))
            sides = [{name.strip(): int(left.split()[0]) for left, name in side} for side in (rows[:middle], rows[middle + 1:])]
            self.assertNotIn(rows[middle][1].strip(), found)
            found[rows[middle][1].strip()] = (own, whole, *sides)
        return found

    @unittest.skipUnless(shutil.which("go"), "go is not installed (golang-go)")
    def test_peek(self):
        """All functions with all callers and callees. A call counts once in a sample; pprof leaves out
        calls of a function by itself.
        """
        self.fill()
        self.store.add(self.frames("_start", "cold", "warm", "cold", "cold", "warm"), 13)
        self.store.add(self.frames("_start", "hot"), 8, comm="other")
        own, whole = collections.Counter(), collections.Counter()
        callers, callees = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for line in self.report("--format=folded").splitlines():
            stack, count = line.rsplit(" ", 1)
            names = stack.split(";")[1:]
            own[names[-1]] += int(count)
            whole.update({name: int(count) for name in set(names)})
            for caller, callee in set(zip(names, names[1:])):
                if caller != callee:
                    callers[callee][caller] += int(count)
                    callees[caller][callee] += int(count)
        self.assertEqual(self.peek(self.pprof()), {name: (own[name], whole[name], callers[name], callees[name])
                                                   for name in whole})

    @unittest.skipUnless(shutil.which("go"), "go is not installed (golang-go)")
    def test_go(self):
        """The tables of go tool pprof are those of opreport."""
        self.fill()
        path = self.pprof()
        rows = {row[5]: (int(row[0]), int(row[3])) for row in map(str.split, self.go("-top", path).splitlines())
                if len(row) == 6 and row[0].isdigit()}
        self_of = collections.Counter()
        total_of = collections.Counter()
        folded = {}
        for line in self.report("--format=folded").splitlines():
            stack, count = line.rsplit(" ", 1)
            folded[tuple(stack.split(";")[:0:-1])] = int(count)
            self_of[stack.split(";")[-1]] += int(count)
            for name in set(stack.split(";")[1:]):
                total_of[name] += int(count)
        self.assertEqual(rows, {name: (self_of[name], total_of[name]) for name in total_of})
        traces = {}
        for block in re.split(r"-+\+-+\n", self.go("-traces", path))[1:-1]:
            lines = [line for line in block.splitlines() if ":  " not in line]
            traces[tuple(line.split()[-1] for line in lines)] = int(lines[0].split()[0])
        self.assertEqual(traces, folded)
        self.assertRegex(self.go("-tags", "-tagfocus=process=other", path), r"cgroup: Total 4.*\n +4.*/a.slice/b")


if __name__ == "__main__":
    unittest.main()
