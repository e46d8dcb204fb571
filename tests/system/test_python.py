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


def own_stacks(box, name):
    """{stack: samples} of STACKS, of the processes of this name."""
    return {line: count for line, count in read(box) if line.startswith("STACKS") and ";%s;" % name[:15] in line}


def check_short(box, python):
    """Processes of half a second that come one after the other, once one of them was seen. What C code
    does before Python runs has no function of Python: -I and -S make it short.
    """
    script = os.path.join(box.dir, "short.py")
    with open(script, "w", encoding="ascii") as stream:
        stream.write("import ctypes, time\nctypes.CDLL(None).prctl(15, b'shortlived')\n"
                     "def short():\n    while time.process_time() < 0.5: pass\nshort()\n")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for _ in range(2):
        box.good(python, "-I", "-S", script)
        box.opcontrol("--dump")
        opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")
    for _ in range(6):
        box.good(python, "-I", "-S", script)
    box.opcontrol("--stop")
    found = own_stacks(box, os.path.basename(os.path.realpath(python)))
    found.update(own_stacks(box, "shortlived"))
    named, total = sum(count for line, count in found.items() if "(python:" in line), sum(found.values())
    print("short processes: %d of %d samples have names" % (named, total))
    require(total >= LEAST and named >= 0.9 * total, "%d of %d samples of short processes have names" % (named, total))
    box.shutdown()
    box.opcontrol("--reset")


def check_calls(box, python, script):
    """The loop of the interpreter, which runs all functions of this program, does not call itself."""
    loop = "_PyEval_EvalFrameDefault"
    box.start_daemon("--event=default", "--stacks=%d" % RATE, "--callgraph=16")
    for _ in range(2):  # the first one makes opd know the file
        box.good(python, script, "plain", 1)
        box.opcontrol("--dump")
    box.opcontrol("--stop")
    require(sum(count for line, count in read(box) if "alpha(python:" in line) >= 100, "too few stacks have functions")
    blocks = [block.splitlines() for block in re.split(r"^-+$", box.opreport("-c"), flags=re.M)]
    of_loop = [block for block in blocks if any(not line.startswith(" ") and line.endswith(" " + loop) for line in block)]
    require(of_loop, "%s is in no call" % loop)
    for line in (line for block in of_loop for line in block):
        require(not line.startswith(" ") or not line.endswith(" " + loop), "the loop calls itself: %s" % line)
    box.shutdown()
    box.opcontrol("--reset")


def check_alone(box, python, script, **keys):
    """Names need neither waits nor deep stacks."""
    box.configure(**keys)
    box.start_daemon("--event=default", "--stacks=199")
    for _ in range(2):  # the first one makes opd know the file
        box.good(python, script, "plain", 1)
        box.opcontrol("--dump")
    box.opcontrol("--stop")
    require(any("alpha(python:" in line for line, _ in read(box)), "no names with %s" % keys)
    require(box.status()["no_deep"] == "DeepStackBudget=0" and not box.status()["deep_samples"], "deep stacks")
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


# How a forged Python lies, what most of its stacks have then, and what counts them.
LIES = (("loop", "[too deep]", "python_deep"), ("lengths", "[not readable]", "python_unnamed"),
        ("wild", "[not readable]", "python_fault"), ("state", "", "python_none"),
        ("bits", "[not readable]", "python_unnamed"), ("good", "forged(python:/a/forged.py:7)", "python_complete"))


def check_forged(box):
    """opd lives, and its rings do not fill; each way to lie is a counter or a name that is no name."""
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for way, wanted, counter in LIES:
        name = "forged_" + way
        path = box.copy_work(name, "forged_python")
        before = box.status()
        for _ in range(2):  # the first one makes opd know the file
            box.good(path, way, "600", timeout=opdtest.HANG_SECONDS)
            box.opcontrol("--dump")
            opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
        found = own_stacks(box, name)
        as_wanted = sum(count for line, count in found.items()
                        if (";" + wanted in line if wanted else "(python:" not in line))
        total = sum(found.values())
        more = box.status()[counter] - before[counter]
        print("%s: %d of %d stacks with %r, %s %d" % (way, as_wanted, total, wanted, counter, more))
        require(total >= LEAST and as_wanted > 0.4 * total, "%s: %d of %d" % (way, as_wanted, total))
        require(more > 0.3 * total, "%s: %s is %d of %d" % (way, counter, more, total))
    names = [step for line, _ in read(box) for step in line.split(";") if "(python:" in step]
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
    check_calls(box, pythons[0], script)
    check_alone(box, pythons[0], script, DeepStackBudget="0")
    check_alone(box, pythons[0], script, DeepStackBudget="0", Waits="no")
    check_off(box, pythons[0], script, DeepStackBudget="4M", Waits="yes", Runtimes="no")
    check_off(box, pythons[0], script, Runtimes="perl,ruby", Bpf="yes")
    check_off(box, pythons[0], script, Runtimes="yes", Bpf="no")


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
