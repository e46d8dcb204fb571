#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Java without flags for profilers: stacks cross its frames, and they have names and lines. A program
that knows its own shares, interpreted, compiled, and in a pool of threads: each path is reported
within 3 sigma. At least 98 % of the samples in Java have complete stacks with all names, also those
of javac, which are deep, with the default StackBytes=. Besides the installed Java, JAVA_OTHER=DIR
names the folder with the java and javac of another one.
"""
import collections
import math
import os
import re
import shutil
import struct
import subprocess

import opdtest
from opdtest import Skip, require

RATE = 199
NEEDED = 0.98
DEPTH = 21
PATHS = ("alpha", "beta", "gamma")  # in the order of the program's output
APP, COMM, END, FRAME, KERNEL_FRAME, TEXT, STATE, RUNTIME = 2, 3, 6, 7, 8, 9, 10, 11
ENDS = ("complete", "cut", "no_row", "left_code", "no_table_yet", "too_deep", "no_room", "guessed")
PROGRAM = """
import java.lang.management.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongUnaryOperator;

public class Shares {
    static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    static final AtomicLongArray spent = new AtomicLongArray(3);
    static volatile long sink;
    static int size = 1000;

    static long leaf(long x) {
        for (int i = 0; i < size; i++)
            x = (x ^ x >>> 17) * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
    static long alpha(int depth, long x) {
        if (depth > 0)
            return alpha(depth - 1, x) + 1;
        return leaf(x);
    }
    interface Step {
        long step(long x);
    }
    static class Inner implements Step {
        public long step(long x) {
            return leaf(x) ^ 1;
        }
    }
    static long beta(Step step, long x) {
        return step.step(x) + 1;
    }
    static long gamma(LongUnaryOperator operator, long x) {
        return operator.applyAsLong(x) + 1;
    }
    static void part(int which, int times) {
        long before = CPU.getCurrentThreadCpuTime(), x = which;
        Step step = new Inner();
        LongUnaryOperator operator = y -> leaf(y) + 2;
        for (int i = 0; i < times; i++)
            x = which == 0 ? alpha(20, x) : which == 1 ? beta(step, x) : gamma(operator, x);
        sink = x;
        spent.addAndGet(which, CPU.getCurrentThreadCpuTime() - before);
    }
    static void run(long ms) {
        long begin = CPU.getCurrentThreadCpuTime();
        for (int times = 10; CPU.getCurrentThreadCpuTime() - begin < ms * 1000000;) {
            long before = CPU.getCurrentThreadCpuTime();
            part(0, times * 5);
            part(1, times * 3);
            part(2, times * 2);
            if (CPU.getCurrentThreadCpuTime() - before < 20000000)
                times++;
        }
    }
    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[0]);
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(args[1]));
        for (int i = 0; i < Integer.parseInt(args[1]); i++)
            pool.execute(() -> run(ms / Integer.parseInt(args[1])));
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        System.out.println(spent.get(0) + " " + spent.get(1) + " " + spent.get(2));
        System.out.flush();
        while (!new java.io.File(args[2]).exists())
            Thread.sleep(20);
    }
}
"""
LINE_OF_LEAF = PROGRAM.splitlines().index("            x = (x ^ x >>> 17) * 6364136223846793005L + 1442695040888963407L;") + 1
COMPILER = """
public class Compiler {
    public static void main(String[] args) throws Exception {
        System.out.println(com.sun.tools.javac.Main.compile(java.util.Arrays.copyOfRange(args, 1, args.length)));
        System.out.flush();
        while (!new java.io.File(args[0]).exists())
            Thread.sleep(20);
    }
}
"""
SOURCE = "class C%d {\n%s\n}\n"
METHOD = """int f%d(int a, java.util.List<String> l) {
  int s = a; for (String x : l) { s += x.length() * %d; if (s > %d) s = g%d(s, l); }
  return s + switch (a %% 3) { case 0 -> 1; case 1 -> l.stream().map(y -> y + "%d").mapToInt(String::length).sum();
                              default -> 3; }; }
int g%d(int a, java.util.List<String> l) { return a + %d; }"""

Frame = collections.namedtuple("Frame", "kind file function line")


def stacks_of(session, comm):
    """{(end, frames of code in user space, the outermost first): count} of a process name, without waits."""
    with open(os.path.join(session, "samples", "current", "stacks"), "rb") as stream:
        data = stream.read()
    nr_nodes, = struct.unpack_from("<I", data, 12)
    nodes = [struct.unpack_from("<IHHQQQ", data, 64 + 32 * i) for i in range(nr_nodes)]

    def text(node):
        pieces = []
        while nodes[node][1] == TEXT:
            pieces.append(struct.pack("<QQ", nodes[node][3], nodes[node][4]))
            node = nodes[node][0]
        return b"".join(reversed(pieces)).rstrip(b"\0").decode()

    stacks = collections.Counter()
    for node in nodes:
        count, path = node[5], []
        while count and node[1]:
            path.append(node)
            node = nodes[node[0]]
        fields = {n[1]: n for n in path}
        if COMM not in fields or STATE in fields or struct.pack("<QQ", *fields[COMM][3:5]).rstrip(b"\0") != comm.encode():
            continue
        frames = []
        for _, kind, _, value, _, _ in reversed(path):
            if kind == RUNTIME:
                runtime, file, function, _ = text(value & 0xffffffff).split("\x1f")
                frames.append(Frame(runtime, file, function, value >> 32))
            elif kind in (FRAME, KERNEL_FRAME):
                frames.append(Frame("native", None, None, value))
        stacks[ENDS[fields[END][3]] if END in fields else "complete", tuple(frames)] += count
    return stacks


def is_named(frames):
    return not any(f.kind == "java" and f.function.startswith("[") for f in frames)


def check_complete(what, stacks):
    """Stacks with a Java frame are complete and named, but for those that came before the tables of native
    images.
    """
    ends, good, total = collections.Counter(), 0, 0
    for (end, frames), count in stacks.items():
        if not any(f.kind == "java" for f in frames):
            continue
        ends[end] += count
        if end != "no_table_yet":
            total += count
            good += count * (end == "complete" and is_named(frames))
    print("%s: %d of %d samples complete and named, ends %s" % (what, good, total, dict(ends)))
    require(good >= NEEDED * total, "%s: complete and named: %d of %d, %s" % (what, good, total, dict(ends)))
    return total


def is_whole(frames):
    """The names and lines of a stack with a leaf of the program. False: its recursion has another depth:
    of compiled code the leaf is known as exactly as the machine describes it, which is at calls and
    at the ends of loops.
    """
    names = [f.function for f in frames if f.kind == "java"]
    leaf = next(f for f in reversed(frames) if f.kind == "java")
    require(leaf.file == "Shares.java", "the file of leaf is %s" % leaf.file)
    require(abs(leaf.line - LINE_OF_LEAF) <= 2, "line %d of leaf, not about %d" % (leaf.line, LINE_OF_LEAF))
    require("java.lang.Thread.run" in names and "Shares.run" in names, "the callers of leaf: %s" % names)
    return "Shares.alpha" not in names or names.count("Shares.alpha") == DEPTH


def run_program(box, flags, name, args):
    """Runs a program while it is profiled, and returns the words of its first line. It waits before it
    ends, so that its names can be read: those of the last quarter of a second may not be.
    """
    may_end = os.path.join(box.dir, "may_end")
    if os.path.exists(may_end):
        os.unlink(may_end)
    program = box.start(box.java, *flags, "-cp", box.dir, name, *[may_end if arg is None else arg for arg in args],
                        stdout=subprocess.PIPE, text=True)
    words = program.stdout.readline().split()
    box.opcontrol("--dump")
    with open(may_end, "w", encoding="utf-8"):
        pass
    require(program.wait(timeout=opdtest.HANG_SECONDS) == 0, "the program failed")
    return words


def run_shares(box, ms, *flags, threads=1):
    """The CPU time of the program below each path."""
    return [int(word) for word in run_program(box, flags, "Shares", (ms, threads, None))]


def check_shares(box, what, ms, *flags, threads=1):
    """Chance puts one of 60 such measurements outside of 3 sigma. More samples tell chance from a wrong share."""
    work, below, whole = collections.Counter(), collections.Counter(), collections.Counter()
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for repeat in (1, 1, 2, 4):
        for _ in range(repeat):
            work.update(dict(zip(PATHS, run_shares(box, ms, *flags, threads=threads))))
        box.opcontrol("--stop")
        stacks = stacks_of(box.session, "java")
        below.clear()
        whole.clear()
        for (end, frames), count in stacks.items():
            names = [f.function for f in frames if f.kind == "java"]
            if end != "complete" or not is_named(frames) or "Shares.part" not in names:
                continue
            found = [path for path in PATHS if "Shares." + path in names]
            if names[-1] == "Shares.leaf" and found:
                whole[is_whole(frames)] += count
            for path in found:
                below[path] += count
        total = sum(below.values())
        wrong = []
        for path in PATHS:
            share = work[path] / sum(work.values())
            sigma = math.sqrt(total * share * (1 - share))
            if abs(below[path] - total * share) > 3 * sigma:
                wrong.append("%s: %d of %d, expected %.0f +- %.1f" % (path, below[path], total, total * share, sigma))
        print("%s: %s" % (what, dict(below)))
        if not wrong:
            break
        box.opcontrol("--start")
    require(not wrong, "%s: %s" % (what, wrong))
    require(whole[True] >= NEEDED * sum(whole.values()), "%s: depth of the recursion: %s" % (what, whole))
    require(total > RATE * ms / 1000 / 10, "%s: only %d samples" % (what, total))
    check_complete(what, stacks)
    box.shutdown()
    box.opcontrol("--reset")


def make_tables(box):
    """The row tables of libjvm.so and of the libraries are in the cache afterwards."""
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    run_shares(box, 500)
    opdtest.wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")
    box.shutdown()
    box.opcontrol("--reset")


def check_javac(box):
    """A real program: its compiler, which is interpreted at first, then compiled, and loads classes."""
    sources = [os.path.join(box.dir, "C%d.java" % c) for c in range(6)]
    for c, path in enumerate(sources):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(SOURCE % (c, "\n".join(METHOD % (k, k + 1, k * 7, k, k, k, k) for k in range(60))))
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    require(run_program(box, (), "Compiler", (None, "-d", box.dir, *sources)) == ["0"], "javac failed")
    box.opcontrol("--stop")
    total = check_complete("javac", stacks_of(box.session, "java"))
    require(total > 50, "only %d samples of javac" % total)
    box.shutdown()
    box.opcontrol("--reset")


def check_java(box, folder):
    """The Java of a folder; "": that of PATH."""
    version = box.run(os.path.join(folder, "java"), "-XshowSettings:properties", "-version").err
    known = re.search(r"java\.specification\.version = (17|21)\b", version)
    if not known or os.uname().machine != "x86_64":
        return False
    print("Java " + known.group(1))
    box.java = os.path.join(folder, "java")
    for name, text in (("Shares", PROGRAM), ("Compiler", COMPILER)):
        with open(os.path.join(box.dir, name + ".java"), "w", encoding="utf-8") as stream:
            stream.write(text)
        box.good(os.path.join(folder, "javac"), "-d", box.dir, os.path.join(box.dir, name + ".java"))
    make_tables(box)
    check_shares(box, "compiled", 3000)
    check_shares(box, "interpreted", 3000, "-Xint")
    check_shares(box, "a pool of threads", 3000, threads=4)
    check_javac(box)
    return True


def java(box):
    others = [os.environ["JAVA_OTHER"]] if "JAVA_OTHER" in os.environ else []
    if not shutil.which("javac") and not others:
        raise Skip("there is no Java (openjdk-17-jdk-headless)")
    known = [check_java(box, folder) for folder in ([""] if shutil.which("javac") else []) + others]
    if not any(known):
        raise Skip("only Java 17 and 21 on x86-64 are known")


if __name__ == "__main__":
    opdtest.run(java)
