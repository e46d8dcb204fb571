#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""--separate: every combination of library, kernel, thread and cpu files its samples where it says.
"""
import itertools
import os
import subprocess

import opdtest
from opdtest import require

AXES = ("library", "kernel", "thread", "cpu")
PERIOD_NS = 497000


def is_kernel(sample_file):
    return sample_file.header.is_kernel


def check_file(sample_file, words):
    """One sample file against what the words say of its application and its class."""
    name, path = sample_file.name, sample_file.path
    own = name.app[1] == name.image[1]
    if "{dep}/{anon:" in path:
        require(not own, "%s: an anonymous region is its own application" % path)
    elif is_kernel(sample_file):
        require(own or "kernel" in words, "%s: a kernel sample under an application" % path)
    else:
        require(own or "library" in words or "kernel" in words, "%s: a library under an application" % path)
    for axis, fields in (("thread", (name.tgid, name.tid)), ("cpu", (name.cpu,))):
        for field in fields:
            if axis not in words:
                require(field is None, "%s: separated by %s" % (path, axis))
    if "cpu" in words:
        require(name.cpu in range(os.cpu_count()), "%s: not separated by cpu" % path)


def totals(files, test):
    return sum(f.total for f in files if test(f))


def check_work(files, words, work, pid):
    """What the test's own program did: in user code, in the C library, and in the kernel."""
    mine = [f for f in files if f.name.app[1] == work]
    require(totals(mine, lambda f: f.name.image[1] == work) > 50, "no samples in the program")
    under = totals(mine, is_kernel)
    if "kernel" in words:
        require(under > 50, "no kernel samples under the program: %d" % under)
    else:
        require(under == 0, "%d kernel samples under the program" % under)
        require(totals(files, is_kernel) > 50, "no kernel samples")
    if "thread" in words:
        found = {(f.name.tgid, f.name.tid) for f in mine}
        require((pid, pid) in found, "thread %d is not among %s" % (pid, found))
    return any("{dep}/{anon:" in f.path for f in mine)


def run_one(words):
    """True when the program had samples in the vdso, where it reads the clock now and then."""
    box = opdtest.Box()
    try:
        work = box.copy_work("separate-app")
        box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=" + (",".join(words) or "none"))
        for what in (("spin", 100), ("kernel", 150)):
            child = box.start(work, *what)
            require(child.wait() == 0, "the program failed")
            pid = child.pid if what[0] == "spin" else pid
        box.opcontrol("--dump")
        box.opcontrol("--stop")
        status = box.check_ledger()
        for axis, key in zip(AXES, ("separate_lib", "separate_kernel", "separate_thread", "separate_cpu")):
            expected = axis in words or (axis == "library" and "kernel" in words)
            require(status[key] == expected, "--status: %s is %s" % (key, status[key]))
        files = box.files()
        for sample_file in files:
            check_file(sample_file, words)
        in_vdso = check_work(files, words, work, pid)
        box.shutdown()
        return in_vdso
    finally:
        box.close()


def test(_):
    in_vdso = 0
    for count in range(len(AXES) + 1):
        for words in itertools.combinations(AXES, count):
            print("--separate=%s" % (",".join(words) or "none"), flush=True)
            in_vdso += run_one(words)
    require(in_vdso, "the program has no sample in the vdso in any of the runs")


def refuse_unknown_words(box):
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--setup", "--separate=library,socket")
    require("socket" in line and "cgroup" in line, line)


if __name__ == "__main__":
    opdtest.run(lambda box: (refuse_unknown_words(box), test(box)), larger_rings=True)
