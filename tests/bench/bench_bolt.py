#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures what llvm-bolt makes of a profile from operf. Usage: bench_bolt.py [PAIRS], default 20.

The program has 3,000 functions in the order in which a linker finds them: hot ones between cold
ones, each with cold code in its middle. It is profiled once with operf; llvm-bolt makes a second
program from `opreport --format=bolt`. Each pair runs both, every second one backwards. The verdict
is of pairs: user CPU time of the new program divided by that of the old one, and the 95 % interval
of the median of these ratios.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys

import bench
import opdtest
from bench_operf import interval
from opdtest import Skip, require

FUNCTIONS, HOT, ROUNDS = 3000, 800, 60000
BOLT = next(filter(None, map(shutil.which, ["llvm-bolt"] + ["llvm-bolt-%d" % n for n in range(30, 15, -1)])), None)
HEAD = """
#include <stdio.h>
static volatile unsigned int never;
#define COLD __asm__ volatile (".rept 150; addl $77777, %%eax; .endr" : : : "eax", "cc")
"""


def source_text():
    """Hot functions are called in an order of chance, so that their place matters."""
    chance = random.Random(1)
    hot = set(chance.sample(range(FUNCTIONS), HOT))
    lines = [HEAD]
    for n in range(FUNCTIONS):
        lines.append("__attribute__((noinline)) static unsigned int f%d(unsigned int x) { if (x == %du) COLD; "
                     "x = x * 17 + %d; if (x == %du) COLD; return x ^ x >> 3; }" % (n, 4000000000 + n, n, n + 1))
    order = sorted(hot)
    chance.shuffle(order)
    lines.append("int main(void) { unsigned int x = 1; for (int i = 0; i < %d; i++) {" % ROUNDS)
    lines += ["x = f%d(x & 0xffffff);" % n for n in order]
    lines.append("if (never) {")
    lines += ["x += f%d(x);" % n for n in range(FUNCTIONS) if n not in hot]
    lines.append('} } printf("%u\\n", x); return 0; }')
    return "\n".join(lines)


def run(words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **options)
    require(done.returncode == 0, "%s: %s" % (words[0], done.stderr[-1000:]))
    return done.stdout


def user_seconds(program):
    with subprocess.Popen([program], stdout=subprocess.PIPE) as child:
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    require(status == 0, "%s: %d" % (program, status))
    return usage.ru_utime, text


def measure(pairs):
    def test(box):
        if not BOLT:
            raise Skip("llvm-bolt is not installed (Debian package bolt-19)")
        old, new = os.path.join(box.dir, "prog"), os.path.join(box.dir, "prog.bolt")
        with open(old + ".c", "w", encoding="ascii") as stream:
            stream.write(source_text())
        run(["gcc", "-O1", "-fno-reorder-blocks", "-fno-reorder-functions", "-fno-pie", "-no-pie", "-Wl,--emit-relocs", "-o", old,
             old + ".c"])
        session = os.path.join(box.dir, "oprofile_data")
        run([os.path.join(box.bin, "operf"), "--session-dir=" + session, "--events=cpu-clock:250000:0:0:1", old], cwd=box.dir)
        run([os.path.join(box.bin, "opreport"), "--session-dir=" + session, "--format=bolt", "-o", old + ".fdata", old])
        text = run([BOLT, old, "-o", new, "-data=" + old + ".fdata", "-reorder-blocks=ext-tsp", "-reorder-functions=hfsort",
                    "-split-functions", "-split-all-cold"])
        bench.say(next(line for line in text.splitlines() if "non-empty execution profile" in line))
        ratios, seconds = [], []
        for i in range(pairs):
            taken = {name: user_seconds(name) for name in ((old, new) if i % 2 else (new, old))}
            require(taken[old][1] == taken[new][1], "the two programs differ")
            ratios.append(taken[new][0] / taken[old][0])
            seconds.append((taken[old][0], taken[new][0]))
        low, high = interval(ratios)
        print("user CPU time: %.3f s before, %.3f s after; ratio %.3f, %.3f to %.3f" % (
            *(statistics.median(pair[i] for pair in seconds) for i in range(2)), statistics.median(ratios), low, high))
        print("aim (the program is faster after llvm-bolt): %s" % bench.verdict(high < 1 or low > 1, high < 1))
        require(high < 1, "an aim is not met, or not shown")
    return test


if __name__ == "__main__":
    opdtest.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
