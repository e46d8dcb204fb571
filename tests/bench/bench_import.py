#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures opimport beside perf report --sort dso, on the same file.

Usage: bench_import.py [SECONDS], the length of the recording, default 10.

The file is a system-wide recording of clock samples and page faults. Times are CPU times, user and
system. The best of five alternating runs counts, because the machine may have other work. perf
report prints a table; opimport also writes a session, with a file for each image of each
application. The aim is for a session in memory (tmpfs). The same on the disk is printed below: ext4
needs long to find an inode for a new file when many files were removed in the last seconds, as in
the run before (recently_deleted in fs/ext4/ialloc.c took three quarters of the system time).
"""
import os
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import importtest  # noqa: E402
import opdtest  # noqa: E402
import perf_swap  # noqa: E402

AIM = 5.0
NR_RUNS = 5


def cpu_seconds(box, command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env={**box.env, **importtest.PERF_ENV}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    opdtest.require(done.returncode == 0, "%s: %s" % (command[0], done.stderr.decode()[-300:]))
    return after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def bench(box):
    path = os.path.join(box.dir, "perf.data")
    importtest.record(box, path, seconds=int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    data = perf_swap.PerfData(path)
    data.mend_flags()
    data.write(path)
    nr_samples = sum(r.type == perf_swap.SAMPLE for r in data.records())
    opdtest.require(nr_samples, "the aim is not shown: there are no samples")
    sessions = (os.path.join(box.tmpfs("memory", "size=1g"), "session"), box.session)
    tool = os.path.join(box.bin, "opimport")
    commands = {"opimport, tmpfs": [tool, "--session-dir=" + sessions[0], "-q", path],
                "opimport, disk": [tool, "--session-dir=" + sessions[1], "-q", path],
                "perf report --sort dso": ["perf", "report", "-i", path, "--sort", "dso", "-n", "--stdio"]}
    best = {}
    for _ in range(NR_RUNS):
        for session in sessions:
            shutil.rmtree(session, ignore_errors=True)
        for name, command in commands.items():
            best[name] = min(best.get(name, (1e9, 0)), cpu_seconds(box, command), key=sum)
    print("%d samples, %.1f MB; CPU time, the best of %d runs" % (nr_samples, len(data.bytes) / 1e6, NR_RUNS))
    for name, (user, system) in best.items():
        print("%-24s %8.3f s user %8.3f s system %8.0f ns for a sample" % (name, user, system, (user + system) / nr_samples * 1e9))
    ratio = sum(best["perf report --sort dso"]) / sum(best["opimport, tmpfs"])
    print("opimport is %.1f times faster; aim (%g): %s" % (ratio, AIM, "met" if ratio >= AIM else "NOT met"))
    opdtest.require(ratio >= AIM, "the aim is missed")


if __name__ == "__main__":
    opdtest.run(bench, importtest.needs_perf)
