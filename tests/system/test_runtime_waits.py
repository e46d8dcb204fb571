#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Waits of Java and Node have the functions that wait: a monitor that another thread holds, a nap, and
a wait that was open all the time, whose stack a looker copies.
"""
import os
import re
import shutil

import opdtest
import stacks
from opdtest import Skip, require

JAVA = """
public class Waiter {
    static final Object lock = new Object(), never = new Object();
    static long count;
    static void naps() throws Exception { synchronized (lock) { Thread.sleep(50); } Thread.sleep(5); }
    static void blocks() { synchronized (lock) { count++; } }
    static void waitsLong() throws Exception { synchronized (never) { never.wait(); } }
    interface Part { void run() throws Exception; }
    static void start(Part part) {
        Thread thread = new Thread(() -> { try { for (;;) part.run(); } catch (Exception e) { } });
        thread.setDaemon(true);
        thread.start();
    }
    public static void main(String[] args) throws Exception {
        start(Waiter::waitsLong);
        start(Waiter::blocks);
        start(Waiter::naps);
        while (!new java.io.File(args[0]).exists()) Thread.sleep(20);
    }
}
"""
NODE = """'use strict';
const fs = require('fs');
const { Worker, isMainThread } = require('worker_threads');
const cell = new Int32Array(new SharedArrayBuffer(4));
function waitsLong() { Atomics.wait(cell, 0, 0); }
function naps() { Atomics.wait(cell, 0, 0, 50); }
if (isMainThread) {
  new Worker(__filename);
  while (!fs.existsSync(process.argv[2])) naps();
  process.exit(0);
}
waitsLong();
"""
WAIT = re.compile(r";\[blocked\];")


def waiting_functions(box, runtime, names):
    """{function: microseconds} of WAIT. A copy of StackBytes= may not have the outermost callers."""
    box.opcontrol("--dump")
    found = {}
    for line, count in stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks().items():
        if not line.startswith("WAIT") or not WAIT.search(line):
            continue
        for name in names:
            if re.search(r"[;.]%s\(%s:" % (name, runtime), line):
                found[name] = found.get(name, 0) + count
    return found


def run_until(box, is_reached, text, *command):
    """Runs a program until a state is reached."""
    may_end = os.path.join(box.dir, "may_end")
    program = box.start(*command, may_end)
    opdtest.wait_until(is_reached, opdtest.HANG_SECONDS, text)
    with open(may_end, "w", encoding="ascii"):
        pass
    require(program.wait(timeout=opdtest.HANG_SECONDS) == 0, "the program failed")
    os.unlink(may_end)


def check(box, runtime, names, *command):
    """The first run is for the tables of native images: the stack of an open wait is walked once."""
    run_until(box, lambda: waiting_functions(box, runtime, names[:1]) and not box.status()["tables_waiting"],
              "%s: no tables" % runtime, *command)
    box.opcontrol("--reset")
    run_until(box, lambda: set(waiting_functions(box, runtime, names)) == set(names),
              "%s: not all waits have their function" % runtime, *command)
    print("%s: %s" % (runtime, waiting_functions(box, runtime, names)))


def test(box):
    if "OPD_WAITS" not in box.env:
        raise Skip("opd was built without clang or libbpf")
    if not shutil.which("javac") and not shutil.which("node"):
        raise Skip("neither Java nor Node is installed")
    for name, text in (("Waiter.java", JAVA), ("waiter.js", NODE)):
        with open(os.path.join(box.dir, name), "w", encoding="ascii") as stream:
            stream.write(text)
    box.configure(Stacks="yes")
    box.start_daemon("--event=default")
    if box.status()["no_waits"]:
        raise Skip("this kernel has no waits: " + box.status()["no_waits"])
    if shutil.which("javac") and os.uname().machine == "x86_64":
        box.good("javac", "-d", box.dir, os.path.join(box.dir, "Waiter.java"))
        check(box, "java", ("naps", "blocks", "waitsLong"), "java", "-cp", box.dir, "Waiter")
    if shutil.which("node"):
        check(box, "node", ("naps", "waitsLong"), "node", os.path.join(box.dir, "waiter.js"))


if __name__ == "__main__":
    opdtest.run(test)
