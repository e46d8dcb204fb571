#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What the memory ring's writer makes, taken out of the ring and put into a perf.data file, is what
perf script prints: every sample,
mapping, name and LOST record, and nothing else.
"""
import os
import re
import shutil
import subprocess

import opdtest
from opdtest import require

MODES = ("ring", "in-page", "pair")
SEEDS = (1, 22, 333)
FIELDS = "comm,pid,tid,time,event,ip,sym,dso"
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4

# COMM PID/TID SECONDS.NANOSECONDS: and what the kind of record adds.
HEAD = r"\s*(\S+)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+"
SAMPLE = re.compile(HEAD + r"([a-z-]+):\S*\s+([0-9a-f]+) \[unknown\] \((\S+)\)\s*$")
COMM = re.compile(HEAD + r"PERF_RECORD_COMM: (\S+):(\d+)/(\d+)\s*$")
MMAP = re.compile(HEAD + r"PERF_RECORD_MMAP2 (\d+)/\d+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]+) "
                  r"([0-9a-f]+):([0-9a-f]+) (\d+) (\d+)\]: ([r-])([w-])([x-])p (\S+)\s*$")
LOST = re.compile(HEAD + r"PERF_RECORD_LOST lost (\d+)\s*$")


def hexadecimal(number):
    return "%#x" % int(number, 16)


def parse_line(line):
    """A line of perf script as (kind, values)."""
    match = SAMPLE.match(line)
    if match:
        comm, pid, tid, seconds, nanoseconds, event, address, image = match.groups()
        return "sample", (event, pid, tid, str(int(seconds) * 10 ** 9 + int(nanoseconds)), hexadecimal(address), comm, image)
    match = COMM.match(line)
    if match:
        return "comm", (match.group(7), match.group(6))
    match = MMAP.match(line)
    if match:
        pid, start, size, offset, major, minor, inode, generation, r, w, x, name = match.groups()[5:]
        prot = (r != "-") * PROT_READ + (w != "-") * PROT_WRITE + (x != "-") * PROT_EXEC
        return "mmap", (pid, start, size, offset, str(int(major, 16)), str(int(minor, 16)), inode, generation, str(prot), name)
    match = LOST.match(line)
    require(match, "perf script prints %r" % line)
    return "lost", (match.group(6),)


def expect(lines):
    """What perf_data says it wrote, with the names that perf has to find for a sample."""
    kinds = {"sample": [], "comm": [], "mmap": [], "lost": []}
    comms, images = {}, {}
    for line in lines:
        kind, *values = line.split()
        if kind == "comm":
            comms[values[0]] = values[1]
        elif kind == "mmap":
            images[values[0]] = values[-1]
        elif kind == "sample":
            values += [comms[values[1]], images[values[1]]]
        kinds[kind].append(tuple(values))
    return kinds


def perf_script(box, path):
    out = box.good("perf", "script", "-i", path, "-F", FIELDS, "--ns", "--show-mmap-events", "--show-task-events",
                   "--show-lost-events",
                   env={"PERF_CONFIG": "/dev/null", "HOME": box.dir})
    kinds = {"sample": [], "comm": [], "mmap": [], "lost": []}
    for line in out.splitlines():
        kind, values = parse_line(line)
        kinds[kind].append(values)
    return kinds


def check_mode(box, mode, seed):
    path = os.path.join(box.dir, "perf.data")
    expected = expect(box.good(box.perf_data, mode, seed, path).splitlines())
    found = perf_script(box, path)
    for kind, rows in expected.items():
        for number, (want, got) in enumerate(zip(rows, found[kind])):
            require(want == got, "%s, seed %d: %s %d is %s, not %s" % (mode, seed, kind, number, got, want))
        require(len(rows) == len(found[kind]), "%s, seed %d: %d %s records, not %d" %
                (mode, seed, len(found[kind]), kind, len(rows)))
    lost = sum(int(row[0]) for row in expected["lost"])
    print("%s, seed %d: %d samples, %d lost in %d LOST records" % (mode, seed, len(expected["sample"]), lost,
                                                                   len(expected["lost"])))
    require(expected["sample"] and lost, "%s, seed %d: nothing was written, or nothing was lost" % (mode, seed))


def test(box):
    box.perf_data = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "system", "perf_data")
    for mode in MODES:
        for seed in SEEDS:
            check_mode(box, mode, seed)


def needs_perf_program():
    perf = shutil.which("perf")
    if not perf:
        raise opdtest.Skip("perf is not installed (Debian: linux-perf)")
    done = subprocess.run([perf, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise opdtest.Skip("perf does not run: %s" % done.stderr.strip())
    print(done.stdout.strip())


if __name__ == "__main__":
    opdtest.run(test, needs_perf_program)
