#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Functions of JavaScript have names in whole stacks, with nothing prepared. The program makes
closures that the collector moves, and reads how much CPU time its thread spent in each function;
opd's shares are within 3 sigma of that, with V8's compilers and without. Nearly all stacks are
whole and have all names, with file and line; a frame of the interpreter has the line in which it
is, and one of optimized code that of its call. Besides the installed node, NODE_OTHER=PROGRAM names another one.
"""
import collections
import math
import os
import re
import shutil

import opdtest
import stacks
from opdtest import Skip, require
from test_stack_shares import check_ledger

RATE = 199
SECONDS = 6  # so that the start weighs little: much code runs once there
LEAST = 300  # samples in the three functions
NEEDED = 0.99
NR_LINES = 6  # of each of these functions, at most
PARTS = {"alpha": 5, "beta": 3, "Gamma.run": 2}
# How V8 runs the program: with its compilers, with the interpreter alone, with the baseline one.
WAYS = ((), ("--jitless",), ("--no-opt",))
WAIT = re.compile(r";\[(blocked|disk|runnable|preempted|uninterruptible)\]")
UNFINISHED = re.compile(r";\[(cut|no_row|left_code|no_table_yet|too_deep|no_room|guessed)\];")
FRAME = re.compile(r"(.*)\(node:(.*):(\d+)\):(\d+)@\d+$")

# Each call makes a closure and garbage, so the collector moves the closures all the time.
SCRIPT = """'use strict';
const fs = require('fs');
function spent() { return Number(fs.readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]); }
let kept = [];
function alpha(n) {
  let sum = 0;
  const step = (i) => { const pair = { i, sum }; sum += pair.i % 7; return pair; };
  for (let i = 0; i < n; i++) kept[i & 255] = step(i);
  return sum;
}
const beta = function (n) {
  let text = '';
  const join = (i) => { text = (text + i).slice(-50); };
  for (let i = 0; i < n; i++) join(i);
  return text.length;
};
class Gamma {}
Gamma.run = function (n) {
  const list = [];
  for (let i = 0; i < n; i++) list.push(() => i);
  return list.map((f) => f()).length;
};
const parts = [[alpha, 5], [beta, 3], [Gamma.run, 2]];
const used = [0, 0, 0];
const wanted = Number(process.argv[2]) * 1e9;
const began = spent();
while (spent() - began < wanted) {
  let least = 0;
  for (let i = 1; i < 3; i++) if (used[i] / parts[i][1] < used[least] / parts[least][1]) least = i;
  const before = spent();
  // the kernel counts by its tick
  for (const until = Date.now() + 100; Date.now() < until;) (() => parts[least][0](2000))();
  used[least] += spent() - before;
}
console.log(used.join(' '));
"""
LINES = {name: 1 + next(i for i, line in enumerate(SCRIPT.splitlines()) if line.startswith(begin))
         for name, begin in (("alpha", "function alpha"), ("beta", "const beta"), ("Gamma.run", "Gamma.run ="))}


class Found:
    def __init__(self):
        self.work, self.below, self.ends = collections.Counter(), collections.Counter(), collections.Counter()
        self.good = self.bad = self.inner_lines = 0

    def add(self, box, script):
        """Samples of the thread that runs the script: those with a frame of JavaScript."""
        self.below.clear()
        self.ends.clear()
        self.good = self.bad = self.inner_lines = 0
        for line, count in stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks().items():
            end = re.search(r";\[([a-z_]+)\];", line)
            frames = [FRAME.match(step) for step in line.split(";")]
            frames = [frame for frame in frames if frame]
            if not frames or WAIT.search(line):
                continue
            end = end.group(1) if end else "complete"
            is_named = not any("not readable" in frame.group(1) for frame in frames)
            self.ends[end] += count
            self.good += count if is_named and end == "complete" else 0
            self.bad += 0 if is_named and end == "complete" else count
            names = [frame.group(1) for frame in frames if frame.group(2) == script]
            parts = [name for name in names if name in PARTS]
            if parts:
                self.below[parts[0]] += count
            for frame in frames:
                if frame.group(2) == script and frame.group(1) in LINES:
                    self.check_lines(*frame.groups())

    def check_lines(self, name, _, first, line):
        require(int(first) == LINES[name], "%s begins in line %s" % (name, first))
        require(0 <= int(line) - int(first) < NR_LINES, "line %s of %s, which begins in %s" % (line, name, first))
        self.inner_lines += line != first

    def wrong(self):
        total = sum(self.below.values())
        for name in PARTS:
            share = self.work[name] / sum(self.work.values())
            sigma = math.sqrt(total * share * (1 - share))
            if abs(self.below[name] - total * share) > 3 * sigma:
                yield "%s: %d of %d samples, expected %.0f +- %.1f" % (name, self.below[name], total, total * share, sigma)


def check(box, node, way, script):
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    found = Found()
    for repeat in (1, 1, 2, 4):
        box.opcontrol("--start")
        for _ in range(repeat):
            out = box.good(node, *way, script, SECONDS, timeout=opdtest.HANG_SECONDS)
            found.work.update(dict(zip(PARTS, (float(word) for word in out.split()))))
        box.opcontrol("--stop")
        check_ledger(box.status())
        found.add(box, script)
        print("%s %s: %s, %d of %d whole and named, ends %s" % (
            node, " ".join(way), dict(found.below), found.good, found.good + found.bad, dict(found.ends)))
        wrong = list(found.wrong())
        print("\n".join(wrong))
        if not wrong:
            break
    require(sum(found.below.values()) >= LEAST, "only %d samples" % sum(found.below.values()))
    require(found.good >= NEEDED * (found.good + found.bad), "%d whole and named, %d not" % (found.good, found.bad))
    # compiled code has the first line of its function
    require(found.inner_lines or "--jitless" not in way, "no frame of the interpreter is in a line of its own")
    require(not wrong, "\n".join(wrong))
    box.shutdown()
    box.opcontrol("--reset")


# A module with a worker thread: each function has a name, a file and a first line.
MODULE = """import { Worker, isMainThread, workerData } from 'node:worker_threads';
import vm from 'node:vm';
class Klass { static hash(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; } }
async function later(n) { await null; return text(n); }
function text(n) { let s = ''; for (let i = 0; i < n; i++) s = JSON.stringify({ a: [i, s.length] }); return s; }
function* items(n) { for (let i = 0; i < n; i++) yield Klass.hash(900); }
const fromEval = (0, eval)('(function fromEval(n) { let t = 0; for (let i = 0; i < n; i++) t += Math.sin(i); return t; })');
const inVm = vm.runInThisContext('\\n\\n(function inVm(n){ return "x".repeat(n).replace(/x+/g, (m) => m.length); })',
  { filename: 'made by vm.js', lineOffset: 10 });
const pattern = () => /(a+)+b/.test('a'.repeat(12));
if (isMainThread) new Worker(new URL(import.meta.url), { workerData: process.argv[2] });
const end = Date.now() + 1000 * Number(isMainThread ? process.argv[2] : workerData);
while (Date.now() < end) {
  await later(300);
  for (const item of items(50)) fromEval(item & 255);
  fromEval(9000);
  inVm(30000);
  pattern();
}
"""
MODULE_NAMES = {("hash", "mod ule.mjs", 3), ("text", "mod ule.mjs", 5), ("later", "mod ule.mjs", 4), ("items", "mod ule.mjs", 6),
                ("fromEval", "", 1), ("inVm", "made by vm.js", 13)}
MODULE_NEEDED = 0.95  # libuv has 12 KiB on the stack, and functions that ran once are gone soon


def check_module(box, node):
    """An ES module whose path has a blank, in two threads: async functions, generators, eval, vm."""
    path = os.path.join(box.dir, "mod ule.mjs")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(MODULE)
    box.start_daemon("--event=default", "--stacks=%d" % RATE, "--separate=library,kernel,thread")
    box.good(node, path, SECONDS, timeout=opdtest.HANG_SECONDS)
    box.opcontrol("--stop")
    check_ledger(box.status())
    names, good, bad, threads = set(), 0, 0, set()
    for line, count in stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks().items():
        frames = [frame for frame in map(FRAME.match, line.split(";")) if frame]
        if not frames or WAIT.search(line):
            continue
        is_good = not UNFINISHED.search(line) and not any("not readable" in frame.group(1) for frame in frames)
        good, bad = good + count * is_good, bad + count * (not is_good)
        names.update((frame.group(1), os.path.basename(frame.group(2)), int(frame.group(3))) for frame in frames)
        threads.add(re.search(r";(\d+:\d+)[;@]", line).group(1))
    print("%s: a module: %d of %d whole and named, %d threads" % (node, good, good + bad, len(threads)))
    require(MODULE_NAMES <= names, "missing: %s" % (MODULE_NAMES - names))
    require(good >= MODULE_NEEDED * (good + bad), "%d whole and named, %d not" % (good, bad))
    require(len(threads) >= 2, "JavaScript runs in %s" % threads)
    box.shutdown()
    box.opcontrol("--reset")


# What calls() does in V8's own code is below the call of inner(), also where inner() is inlined.
CALLS = """'use strict';
function inner(i) {
  return JSON.stringify({ a: [i, 'text', i + 1] }).length;
}
function calls(n) {
  let sum = 0;

  for (let i = 0; i < n; i++)
    sum += inner(i);
  return sum;
}
const end = Date.now() + 1000 * Number(process.argv[2]);
while (Date.now() < end) calls(1000);
"""
LINE_OF_CALL = 1 + CALLS.splitlines().index("    sum += inner(i);")
CALLS_NEEDED = 0.9  # the rest: baseline code, which has the function's first line


def check_calls(box, node):
    """Optimized code has the line of the call that it is in."""
    path = os.path.join(box.dir, "calls.js")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(CALLS)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    lines = collections.Counter()

    def has_enough():
        box.opcontrol("--dump")
        lines.clear()
        for stack, count in stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks().items():
            steps = [] if WAIT.search(stack) else stack.split(";")
            for step in steps[:-1]:  # the leaf is the last one
                frame = FRAME.match(step)
                if frame and frame.group(1) == "calls":
                    lines[int(frame.group(4))] += count
        return sum(lines.values()) >= LEAST

    box.work_until(has_enough, "too few samples of calls()", node, path, 2)
    print("%s: lines of calls(): %s" % (node, dict(lines)))
    require(lines[LINE_OF_CALL] >= CALLS_NEEDED * sum(lines.values()), "lines of calls(): %s" % dict(lines))
    box.shutdown()
    box.opcontrol("--reset")


def make_tables(box, nodes, script):
    """Afterwards the row tables of Node are in the cache."""
    box.start_daemon("--event=default", "--stacks=99")
    for node in nodes:
        box.good(node, script, 1)
    opdtest.wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")
    box.shutdown()
    box.opcontrol("--reset")


def test(box):
    nodes = [path for path in (shutil.which("node"), os.environ.get("NODE_OTHER")) if path]
    if not nodes:
        raise Skip("Node is not installed")
    script = os.path.join(box.dir, "parts.js")
    with open(script, "w", encoding="ascii") as stream:
        stream.write(SCRIPT)
    make_tables(box, nodes, script)
    for node in nodes:
        for way in WAYS:
            check(box, node, way, script)
        check_module(box, node)
        check_calls(box, node)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
