#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""operf --pid: all threads of a process that runs already, and those that it starts later; it ends
with the process or with a signal, and the process goes on. A process of another user is refused.
operf --system-wide as root.
"""
import os
import signal
import subprocess

import opdtest
import operftest
from opdtest import require

THREADS = 4  # of `family serve`
SAMPLES = 300


class Served:
    """`family serve`, as the user of a home."""

    def __init__(self, home, threads=THREADS):
        self.home, self.file = home, os.path.join(home.path, "serving")
        self.child = subprocess.Popen(home.words(home.family, "serve", self.file), cwd=home.path, stdin=subprocess.DEVNULL)
        home.box.children.append(self.child)
        opdtest.wait_until(lambda: len(self.tids()) == 1 + threads, opdtest.HANG_SECONDS, "the threads do not start")

    def tids(self):
        try:
            return set(map(int, os.listdir("/proc/%d/task" % self.child.pid)))
        except FileNotFoundError:
            return set()

    def await_cpu(self, seconds):
        opdtest.await_cpu_seconds(self.child.pid, seconds)

    def more(self):
        """Each thread starts another one."""
        before = len(self.tids())
        with open(self.file + ".more", "w", encoding="ascii"):
            pass
        opdtest.wait_until(lambda: len(self.tids()) == before + THREADS, opdtest.HANG_SECONDS, "no more threads")

    def end(self):
        for path in (self.file, self.file + ".more"):
            if os.path.exists(path):
                os.unlink(path)
        require(self.child.wait(opdtest.CALL_SECONDS) == 0, "family serve: %s" % self.child.returncode)


def await_profiling(home, child, before):
    """Until operf has said that it profiles: its ledger is new."""
    path = os.path.join(home.session, "samples", "current", "ledger")
    opdtest.wait_until(lambda: os.path.exists(path) and os.stat(path).st_ino != before, opdtest.HANG_SECONDS,
                       "operf does not begin")
    require(child.poll() is None, "operf has ended")


def ledger_inode(home):
    path = os.path.join(home.session, "samples", "current", "ledger")
    return os.stat(path).st_ino if os.path.exists(path) else 0


def attach(home, served, *options):
    before = ledger_inode(home)
    child = home.start("--pid=%d" % served.child.pid, *options)
    await_profiling(home, child, before)
    return child


def threads_and_more(home, *options):
    """Each thread has samples, also one that was started while operf looked on."""
    served = Served(home)
    child = attach(home, served, "--separate-thread", *options)
    served.await_cpu(1)
    served.more()
    old = served.tids() - {served.child.pid}
    served.await_cpu(2)
    cpu_ns = dict(opdtest.each_thread(served.child.pid, "schedstat"))
    result = home.end(child, signal.SIGINT)
    summary = home.check(result)
    require(served.child.poll() is None, "the process ended with operf")
    require(list(summary.samples.values())[0] >= SAMPLES, "%s" % (summary,))
    found = {f.name.tid: f.total for f in home.files() if f.name.image[1] == home.family}
    require(old <= set(found), "threads without samples: %s of %s" % (old - set(found), found))
    require({f.name.tgid for f in home.files()} == {served.child.pid}, "files of other processes")
    ranked = sorted(old, key=lambda tid: int(cpu_ns[tid].split()[0]))
    print("samples of the threads: %s" % [found[tid] for tid in ranked])
    served.end()


def ends_with_it(home):
    served = Served(home)
    child = attach(home, served)
    served.await_cpu(1)
    served.end()
    home.check(home.end(child))
    served = Served(home)
    child = attach(home, served)
    served.await_cpu(1)
    served.child.kill()
    served.child.wait()
    home.check(home.end(child))
    os.unlink(served.file)


def many_threads(home):
    """As many as make swaps long: they are read in place. Two events, so that samples are told apart
    by their identifiers.
    """
    threads_and_more(home, "--events=TIMER:1000000,cpu-clock:3000000")
    events, _ = home.ledger()
    rows = {name: row["received"] for name, row in events.items()}
    ratio = rows["TIMER:1000000"] / rows["cpu-clock:3000000"]
    require(2.5 < ratio < 3.5, "three times as many samples of TIMER are wanted: %s" % rows)


def faults_of_threads(home):
    """Each fault of the new threads is a sample: the kernel's counts of all threads are added."""
    for _ in range(5):
        served = Served(home)
        oracle = opdtest.FaultOracle(home.box.fault_oracle)
        child = attach(home, served, "--events=page-faults:1")
        served.more()
        result = home.end(child, signal.SIGINT)
        not_sampled = oracle.not_sampled()
        served.end()
        row = home.ledger()[0]["page-faults:1"]
        taken = int(operftest.SUMMARY.search(result.err).group(1).split()[0])
        print("%d faults were taken, %s" % (taken, row))
        require(0 <= taken - row["received"] - row["lost_kernel"] <= not_sampled, "%d of %s, %d not sampled" %
                (taken, row, not_sampled))
        require(taken >= THREADS, "%d faults of %d new threads" % (taken, THREADS))
        if not not_sampled:
            return


def refusals(home, root):
    served = Served(root)
    line = home.refused("--pid=%d" % served.child.pid)
    require("not permitted" in line and "another user" in line, line)
    served.end()
    served = Served(home)
    limited = home.run("prlimit", "--nofile=64:64", home.operf, "--pid=%d" % served.child.pid)
    require(limited.rc == 1 and "file descriptors" in limited.err and "ulimit -n" in limited.err, "%s" % (limited,))
    tid = max(served.tids())
    line = home.profile("--pid=%d" % tid, rc=1).err
    require("that is a thread" in line, line)
    served.end()


def system_wide(home, root):
    """Root sees all processes, with the kernel; nobody may not."""
    require("--system-wide: not permitted" in home.refused("--system-wide"), "nobody may profile all")
    served = Served(home)
    before = ledger_inode(root)
    child = root.start("--system-wide", "--events=TIMER:1000000")
    await_profiling(root, child, before)
    served.await_cpu(1)
    own = subprocess.run(root.words(home.family, 300, 1, 1), cwd=root.path, capture_output=True, check=True)
    require(own.returncode == 0, "family")
    result = root.end(child, signal.SIGTERM)
    root.check(result)
    line = "operf: Press Ctl-c or 'kill -SIGINT %d' to stop profiling" % child.pid  # as of oprofile's operf
    require(result.out.splitlines() == [line], "operf --system-wide prints %r" % result.out)
    files = root.files()
    mine = sum(f.total for f in files if f.name.image[1] == home.family)
    require(mine >= SAMPLES, "%d samples of a process that was there before" % mine)
    kernel = sum(f.total for f in files if f.name.image[0] == "kern" or f.name.image[1] == "/proc/kallsyms")
    require(kernel, "no samples of the kernel: %s" % {f.name.image for f in files})
    served.end()


def test(box):
    home = operftest.Home(box)
    root = operftest.Home(box, user=0, name="root-home")
    threads_and_more(home)
    many_threads(home)
    faults_of_threads(home)
    ends_with_it(home)
    refusals(home, root)
    system_wide(home, root)


if __name__ == "__main__":
    opdtest.run(test, operftest.needs_operf)
