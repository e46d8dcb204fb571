#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel threads are applications by the name of their kind, [kworker], and no process can pose as
one. Another reader finds the same files.
"""
import os
import re
import sys

import opdtest
from opdtest import Skip, require, wait_until

PF_KTHREAD = 0x00200000
COMM = 15  # bytes of a name
# Each switch to another task is a sample in the kernel, so a thread need not be busy.
EVENT = "context-switches:1"
POSE = """import ctypes, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
for i in range(400):
    time.sleep(0.001)
"""


def kernel_threads():
    """The names of the threads that the kernel says are its own, as in /proc/PID/stat."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as stream:
                name, fields = stream.read().rsplit(")", 1)
            if int(fields.split()[6]) & PF_KTHREAD:
                found.add(name.split("(", 1)[1])
        except OSError:
            continue
    return found


def kind_of(name):
    """[KIND] of a thread: the name without its number. Newer kernels show longer names in /proc."""
    name = name[:COMM]
    if re.search("[/:]", name):
        return "[%s]" % re.split("[/:]", name)[0]
    return "[%s]" % re.sub("[-_.]*$", "", re.sub("[0-9]+$", "", name)) if name[-1].isdigit() else "[%s]" % name


def applications(box, live=False):
    """The samples of each application, as (kind, name)."""
    found = {}
    for sample_file in box.files(live=live):
        found[sample_file.name.app] = found.get(sample_file.name.app, 0) + sample_file.total
    return found


def threads_in(box):
    box.opcontrol("--dump")
    found = applications(box, live=True).items()
    return {name[1:]: total for (kind, name), total in found if kind == "kern" and name.startswith("/[")}


def disturb(box):
    """Work for kernel threads: pages that are written back, and processes on all CPUs that end."""
    with open(os.path.join(box.dir, "written"), "wb") as stream:
        stream.write(bytes(1 << 20))
        os.fsync(stream.fileno())
    box.good("/bin/true")


def check_names(box, seen):
    """Every kernel thread with samples has the kind of one that ran, and none has a number."""
    seen |= {kind_of(name) for name in kernel_threads()}
    found = threads_in(box)
    unknown = set(found) - seen
    require(not unknown, "no kernel thread is called like %s (there are %s)" % (sorted(unknown), sorted(seen)))
    require(not any("/" in name for name in found), "a number stayed in %s" % sorted(found))
    return found


def check_report(box, found):
    """The tools name them as applications, with the samples of the files."""
    out = box.opreport("--merge=all")
    require("[kworker]" not in out.split(), "--merge=all has applications: %s" % out)
    rows = dict(re.findall(r"^\s*(\d+)\s+\S+ (\[\S+\])$", box.opreport("--no-header"), re.MULTILINE)[i][::-1]
                for i in range(len(found)))
    require(rows == {name: str(total) for name, total in found.items()}, "opreport says %s, the files %s" % (rows, found))
    out = box.opreport("-l", "[kworker]")
    require(out.count("\n") > 3, "no symbols of [kworker]: %s" % out)
    for form in ("--format=json", "--format=csv", "-X"):
        require("[kworker]" in box.opreport(form), "%s has no [kworker]" % form)


def check_poses(box):
    """A name, also as the first argument, or a file called like a kernel thread, changes nothing."""
    python = os.path.realpath(sys.executable)
    file_name = "[ksoftirqd]"
    fake = box.copy_work(file_name)
    for name in ("kworker/0:1", "ksoftirqd/0", "[kworker]"):
        box.good(python, "-c", POSE, name)
        require(box.start("bash", "-c", 'exec -a "$0" "$@"', name, python, "-c", POSE, name).wait() == 0, "%s failed" % name)
    box.good(fake, "kernel", 50)
    box.opcontrol("--dump")
    found = applications(box, live=True)
    require(found.get(("root", python), 0) > 600, "the process of %s has no samples of its own: %s" % (python, found))
    require(found.get(("root", fake), 0) > 0, "%s has no samples of its own: %s" % (fake, found))
    out = box.opreport("--no-header")
    require(fake in out.split(), "%s looks like a kernel thread: %s" % (fake, out))


def test(box):
    if not opdtest.sees_all_processes():
        raise Skip("in a pid namespace kernel threads have no number")
    box.start_daemon("--event=" + EVENT, "--separate=kernel")
    seen = {kind_of(name) for name in kernel_threads()}
    wait_until(lambda: disturb(box) or "[kworker]" in threads_in(box), opdtest.HANG_SECONDS, "no samples of [kworker]")
    check_poses(box)
    box.opcontrol("--stop")
    found = check_names(box, seen)
    print("samples of kernel threads:", found)
    box.opcontrol("--dump")
    check_report(box, threads_in(box))
    # The kernel counts a few switches without a sample, so `taken` is not looked at.
    stored = sum(event["stored"] for event in box.status()["events"])
    require(stored == sum(applications(box).values()), "stored %d, in files %s" % (stored, applications(box)))
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
