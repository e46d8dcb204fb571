#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A program that looks like a Java machine and lies (forged_java.c): circles, sizes, pointers, tables
without an end, names, numbers that change, and thousands of methods. Each way is a counter or a
name. opd lives, its memory does not grow, another program has its whole stacks meanwhile, and the
ledger adds up.
"""
import collections
import os
import re

import opdtest
import stacks
from opdtest import Skip, require
from test_stack_shares import check_ledger

RATE = 199
MS = 1000
LEAST = 60  # samples of MS
MORE_KB = 64 << 10  # what opd may take more of memory
UNREADABLE = "[java: not readable]"
GOOD = "forged.Java.spin(java:forged/Java.java:%d)"
# How it lies, what most of its stacks have then, and what counts them; "": any counter.
LIES = (("good", GOOD % 7, "complete"), ("circle", UNREADABLE, "fault"), ("hops", UNREADABLE, "fault"),
        ("heaps", UNREADABLE, "fault"), ("sizes", UNREADABLE, "fault"), ("wild", UNREADABLE, "fault"),
        ("table", GOOD % 7, "complete"), ("names", "(java:", "complete"), ("lines", GOOD % 0, "complete"),
        ("changing", "", ""), ("many", "", ""), ("version", "", "fault"))
OUTCOMES = ("complete", "none", "fault", "deep", "moved", "unnamed")


def read(box):
    return stacks.read(os.path.join(box.session, "samples", "current", "stacks")).stacks()


def own_stacks(box, name):
    return collections.Counter({line: count for line, count in read(box).items()
                                if line.startswith("STACKS") and ";%s;" % name in line})


def memory_kb(box):
    with open("/proc/%d/status" % box.daemon.pid, encoding="ascii") as stream:
        return int(re.search(r"VmRSS:\s+(\d+) kB", stream.read()).group(1))


def run_lie(box, path, way):
    """Runs it beside an honest program, and returns what the counters of Java have more."""
    before = box.status()
    honest = box.start(box.work, "spin", MS)
    box.good(path, way, MS, timeout=opdtest.HANG_SECONDS)
    require(honest.wait(timeout=opdtest.HANG_SECONDS) == 0, "the honest program failed")
    box.opcontrol("--dump")
    opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait")
    after = box.status()
    return {key: after["java_" + key] - before["java_" + key] for key in OUTCOMES + ("samples",)}


def check_lie(box, path, way, wanted, counter):
    more = run_lie(box, path, way)
    found = own_stacks(box, "java_" + way)
    total, as_wanted = sum(found.values()), sum(count for line, count in found.items() if wanted in line)
    print("%s: %d of %d stacks with %r, %s" % (way, as_wanted, total, wanted, more))
    require(total >= LEAST and as_wanted > 0.7 * total, "%s: %d of %d stacks have %r" % (way, as_wanted, total, wanted))
    require(more["samples"] == sum(more[key] for key in OUTCOMES), "%s: a sample has no outcome, or two: %s" % (way, more))
    require(more["samples"] > (0.7 * total if counter else LEAST), "%s: not counted: %s" % (way, more))
    require(not counter or more[counter] > 0.7 * more["samples"], "%s: %s" % (way, more))
    require(not any(re.search("[\0-\x1f]", line) or len(line) > 8192 for line in found), "%s: a name is too long, or raw" % way)


def test(box):
    if os.uname().machine != "x86_64":
        raise Skip("Java is known on x86-64 only")
    path = box.copy_work("libjvm.so", "forged_java")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    run_lie(box, path, "good")  # opd knows the file, and has the tables of its libraries
    opdtest.wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")
    before_kb = memory_kb(box)
    for lie in LIES:
        check_lie(box, path, *lie)
    more_kb = memory_kb(box) - before_kb
    require(more_kb < MORE_KB, "opd has %d kB more" % more_kb)
    whole = own_stacks(box, os.path.basename(box.work))
    cut = sum(count for line, count in whole.items() if re.search(r";\[[a-z_]+\];", line))
    require(sum(whole.values()) >= LEAST and cut < 0.1 * sum(whole.values()), "the honest program: %s" % whole)
    require(box.status()["java_refused"] == 1, "refused processes: %d" % box.status()["java_refused"])
    box.opcontrol("--stop")
    check_ledger(box.status())
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
