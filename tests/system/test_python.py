#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Functions of Python have names in whole stacks, with nothing prepared. Programs know how much CPU time
they spent in each function: recursion, threads, generators, asyncio, and C code that calls back. opd's
shares are within 3 sigma of that. Frames come in the order of the calls, with file and line. A process
of half a second is named, too. A forged Python, whose lists have loops and whose lengths lie, costs
opd nothing but a counter. PYTHON_OTHER=PROGRAM... names further interpreters.
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

RATE = 997
SECONDS = 2
LEAST = 300
NEEDED = 0.995 # of the samples that have a frame
PARTS = {"alpha": 5, "Beta.beta": 3, "gamma": 2}
FRAME = re.compile(r"(.*)\(python:(.*):(\d+)\):(\d+)@\d+$")

SCRIPT = """import asyncio, functools, sys, threading, time
used = {}
def work(n):
    x = 0
    for i in range(n):
        x += i * i
    return x
def alpha(n): return work(n)
class Beta:
    @staticmethod
    def beta(n): return work(n)
def gamma(n):
    return work(n)
PARTS = ((alpha, 5), (Beta.beta, 3), (gamma, 2))
def deeper(n, function):
    return deeper(n - 1, function) if n else function(3000)
def ways():
    yield "plain", lambda f: f(3000)
    yield "deep", lambda f: deeper(40, f)
    yield "native", lambda f: functools.reduce(lambda _, n: f(n), (1000, 1000, 1000), 0)
    yield "sorted", lambda f: sorted((1500, 1500), key=f)
    yield "generator", lambda f: sum(f(n) for n in (1000, 1000, 1000))
def burn(call, seconds, spent):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        function, share = min(PARTS, key=lambda part: spent.get(part[0].__qualname__, 0) / part[1])
        before = time.thread_time()
        for _ in range(20):
            call(function)
        spent[function.__qualname__] = spent.get(function.__qualname__, 0) + time.thread_time() - before
    for name, seconds in spent.items():
        used[name] = used.get(name, 0) + seconds
async def task(seconds):
    burn(lambda f: f(3000), seconds, {})
    await asyncio.sleep(0)
async def tasks(seconds):
    await asyncio.gather(*(task(seconds) for _ in range(4)))
def main(way, seconds):
    if way == "threads":
        threads = [threading.Thread(target=burn, args=(lambda f: f(3000), seconds / 4, {})) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif way == "asyncio":
        asyncio.run(tasks(seconds / 4))
    else:
        burn(dict(ways())[way], seconds, {})
    print(" ".join("%s=%f" % item for item in used.items()))
main(sys.argv[1], float(sys.argv[2]))
"""
WAYS = ("plain", "deep", "native", "sorted", "generator", "threads", "asyncio")
LINES = SCRIPT.splitlines()
BEGINS = {"work": "def work", "alpha": "def alpha", "Beta.beta": "    @staticmethod", "gamma": "def gamma", "burn": "def burn"}


def line_of(begin):
    return 1 + next(i for i, line in enumerate(LINES) if line.startswith(begin))


def read(box):
    return stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks().items()


class Found:
    def __init__(self):
        self.used, self.below = collections.Counter(), collections.Counter()
        self.named = self.unnamed = 0

    def add(self, box, script):
        self.below.clear()
        self.named = self.unnamed = 0
        for line, count in read(box):
            frames = [FRAME.match(step) for step in line.split(";")]
            frames = [frame for frame in frames if frame]
            if not frames or line.startswith("WAIT"):
                continue
            bad = any(frame.group(1).startswith("[") for frame in frames)
            self.named += 0 if bad else count
            self.unnamed += count if bad else 0
            own = [frame.group(1) for frame in frames if frame.group(2) == script]
            parts = [name for name in own if name in PARTS]
            if not parts:
                continue
            self.below[parts[0]] += count
            require(own[0] == "<module>" or "Thread.run" in (frame.group(1) for frame in frames), line)
            require("burn" in own[:own.index(parts[0])], line)
            for frame in frames:
                if frame.group(2) == script and frame.group(1) in BEGINS:
                    check_line(frame.group(1), int(frame.group(3)), int(frame.group(4)))

    def wrong(self):
        total = sum(self.below.values())
        for name in PARTS:
            share = self.used[name] / sum(self.used.values())
            sigma = math.sqrt(total * share * (1 - share))
            if abs(self.below[name] - total * share) > 3 * sigma:
                yield "%s: %d of %d samples, expected %.0f +- %.1f" % (name, self.below[name], total, total * share, sigma)


def check_line(name, first, line):
    begin = line_of(BEGINS[name])
    require(first in (begin, begin + 1), "%s begins in line %d, not %d" % (name, begin, first))
    require(not line or begin <= line <= begin + 12, "%s is in line %d" % (name, line))


def check(box, python, way, script):
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    found = Found()
    for repeat in (1, 1, 2, 4):
        box.opcontrol("--start")
        for _ in range(repeat):
            out = box.good(python, script, way, SECONDS, timeout=opdtest.HANG_SECONDS)
            for word in out.split():
                name, seconds = word.split("=")
                found.used[name] += float(seconds)
        box.opcontrol("--stop")
        check_ledger(box.status())
        found.add(box, script)
        print("%s %s: %s, %d of %d have all names" % (
            python, way, dict(found.below), found.named, found.named + found.unnamed))
        wrong = list(found.wrong())
        if not wrong:
            break
    require(sum(found.below.values()) >= LEAST, "only %d samples" % sum(found.below.values()))
    require(found.named >= NEEDED * (found.named + found.unnamed), "%d named, %d not" % (found.named, found.unnamed))
    require(not wrong, "\n".join(wrong))
    box.shutdown()
    box.opcontrol("--reset")


def know(box, python):
    """Afterwards opd has the row table of this Python in its cache."""
    box.start_daemon("--event=default", "--stacks=99")
    box.good(python, "-c", "for i in range(10 ** 7): pass")
    opdtest.wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")
    box.shutdown()
    box.opcontrol("--reset")


def check_short(box, python):
    """Processes of half a second that come one after the other, once one of them was seen. What C code
    does before Python runs, about a tenth of the time, has no function of Python.
    """
    script = os.path.join(box.dir, "short.py")
    with open(script, "w", encoding="ascii") as stream:
        stream.write("import time\ndef short():\n    while time.process_time() < 0.5: pass\nshort()\n")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for _ in range(2):
        box.good(python, script)
        box.opcontrol("--dump")
        opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")
    before = box.status()
    for _ in range(6):
        box.good(python, script)
    box.opcontrol("--stop")
    after = box.status()
    running, complete, none = (after["python_" + key] - before["python_" + key] for key in ("samples", "complete", "none"))
    named = total = 0
    for line, count in read(box):
        if line.startswith("STACKS") and re.search(r";%s;" % os.path.basename(os.path.realpath(python))[:15], line):
            total += count
            named += count if "(python:" in line else 0
    print("short processes: %d of %d samples have names, %d come before Python runs" % (named, total, none))
    require(total >= LEAST and named >= 0.8 * total, "%d of %d samples of short processes have names" % (named, total))
    require(complete >= NEEDED * (running - none), "%d of %d - %d samples" % (complete, running, none))
    require(running >= 0.9 * total, "%d of %d samples are of a process that is known" % (running, total))
    box.shutdown()
    box.opcontrol("--reset")


def check_off(box, python, script, **keys):
    box.configure(**keys)
    box.start_daemon("--event=default", "--stacks=99")
    box.good(python, script, "plain", 1)
    box.opcontrol("--stop")
    require(not any("(python:" in line for line, _ in read(box)), "functions have names with %s" % keys)
    require(not box.status()["python_samples"], "samples are counted with %s" % keys)
    box.shutdown()
    box.opcontrol("--reset")


def check_forged(box):
    """opd lives, and its rings do not fill; each way to lie is a counter or a name that is no name."""
    path = box.copy_work("forged_python", "forged_python")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for way in ("loop", "lengths", "wild", "state", "bits", "good"):
        before = box.status()
        for _ in range(2):  # the first one makes opd know the file
            box.good(path, way, "600", timeout=opdtest.HANG_SECONDS)
            box.opcontrol("--dump")
            opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
        after = box.status()
        more = {key: after[key] - before[key] for key in after if key.startswith("python_")}
        print(way, {key: value for key, value in more.items() if value})
        require(more["python_samples"], "%s has no samples" % way)
        kind = {"loop": "python_deep", "wild": "python_fault", "lengths": "python_samples", "state": "python_none",
                "bits": "python_samples", "good": "python_complete"}[way]
        require(more[kind] > 0.5 * more["python_samples"], "%s: %s" % (way, more))
    names = [step for line, _ in read(box) for step in line.split(";") if "(python:" in step]
    require(any(step.startswith("forged(python:/a/forged.py:7)") for step in names), "the good one has no name")
    require(all(len(step) < 1100 and not re.search("[\0-\x1f]", step) for step in names), "a name is too long, or raw")
    box.opcontrol("--stop")
    check_ledger(box.status())
    box.shutdown()
    box.opcontrol("--reset")


def test(box):
    if "OPD_WAITS" not in box.env:
        raise Skip("opd was built without clang or libbpf")
    pythons = [path for path in [shutil.which("python3.11") or shutil.which("python3")] + os.environ.get(
        "PYTHON_OTHER", "").split() if path]
    script = os.path.join(box.dir, "parts.py")
    with open(script, "w", encoding="ascii") as stream:
        stream.write(SCRIPT)
    for python in pythons:
        know(box, python)
        for way in WAYS:
            check(box, python, way, script)
        check_short(box, python)
    check_forged(box)
    check_off(box, pythons[0], script, Runtimes="no")
    check_off(box, pythons[0], script, Runtimes="perl,ruby", Bpf="yes")
    check_off(box, pythons[0], script, Runtimes="yes", Bpf="no")


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
