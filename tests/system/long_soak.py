#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A long run with whole stacks under changing load, beside a storm of processes that live for
milliseconds.

usage: long_soak.py [MINUTES [COUNT]]    default 30 minutes of TIMER:100000, 10 kHz per CPU

Every half minute the ledger is checked, the files are read, and the daemon is looked at: nothing is
lost, nothing grows without end. Memory of opd's own (RssAnon) may grow by the index of new stacks of
other programs on the machine, but not beyond that. The rest of its resident memory are pages of
files: sample files, stacks and row tables, which are as large as what is in them. The programs of
the soak are the same all the time.
"""
import os
import struct
import sys
import time

import opdtest
from opdtest import STACKS, require

ROUND_SECONDS = 30
MAX_GROWTH = 1.25
NODE_BYTES = 22  # a slot of 8 bytes in the index, of which three eighths are used at least
NR_IMAGES = 8
STORM = (100, (ROUND_SECONDS - 5) * 1000, 8, 2000)  # processes per second, ms, pages, turns of a loop
WARM_ROUNDS, LOOKS = 3, 10
MAX_OPEN = 8  # files that opd may have open for a moment, when it is looked at


def one_round(box, path, images):
    workers = box.busy_cpus(ROUND_SECONDS - 5)
    storm = box.start_piped(os.path.join(os.path.dirname(box.work), "storm"), "execs", *STORM, *images)
    for _ in range(100):
        box.good(path, "spin", 5)
    box.good(path, "faults", 50000)
    storm.communicate(timeout=10 * opdtest.CALL_SECONDS)
    for worker in workers + [storm]:
        require(worker.wait(10 * opdtest.CALL_SECONDS) == 0, "a busy process failed")
        box.children.remove(worker)
    box.opcontrol("--stop")
    status = box.check_ledger()
    box.check_agreement()
    box.opcontrol("--start")
    return status


def directory_bytes(path):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _dirs, names in os.walk(path) for name in names)


def nr_threads(process):
    """Those that stay: a thread that writes to the disk may be there for a moment."""
    found = []
    for _ in range(LOOKS):
        found.append(len(os.listdir(process + "/task")))
        time.sleep(0.1)
    return min(found)


def look(box, status):
    """What could grow: bytes of memory, descriptors, threads, nodes of stacks, bytes of row tables,
    stacks that wait.
    """
    process = "/proc/%d" % box.daemon.pid
    with open(os.path.join(box.session, "samples/current/stacks"), "rb") as stream:
        nodes, = struct.unpack_from("<I", stream.read(16), 12)
    with open(process + "/status", encoding="ascii") as stream:
        anon = next(int(line.split()[1]) << 10 for line in stream if line.startswith("RssAnon:"))
    return {"rss": status["rss_bytes"], "anon": anon, "fds": len(os.listdir(process + "/fd")), "files": status["nr_files"],
            "threads": nr_threads(process), "nodes": nodes,
            "tables": directory_bytes(os.path.join(box.dir, "tables")), "waiting": status["stacks_waiting"],
            "processes": status["nr_processes"], "images": status["nr_images"]}


def check_growth(first, last):
    allowed = MAX_GROWTH * first["anon"] + NODE_BYTES * (last["nodes"] - first["nodes"])
    require(last["anon"] <= allowed, "the daemon grew: first %s, then %s" % (first, last))
    require(last["threads"] == first["threads"], "threads: %d, then %d" % (first["threads"], last["threads"]))
    open_first, open_last = (what["fds"] - what["files"] for what in (first, last))
    require(open_last <= open_first + MAX_OPEN, "descriptors beside sample files: %d, then %d" % (open_first, open_last))


def soak(minutes, count):
    def test(box):
        path, images = box.copy_work("soak-app"), [box.copy_work("storm-%d" % i, "storm_worker") for i in range(NR_IMAGES)]
        box.start_daemon("--event=TIMER:%d" % count, "--separate=library,kernel", "--stacks=on")
        begin, rounds, first = time.monotonic(), 0, {}
        while time.monotonic() < begin + minutes * 60 or rounds < WARM_ROUNDS:
            status, rounds = one_round(box, path, images), rounds + 1
            event, stacks = status["events"][0], next(e for e in status["events"] if e["role"] == STACKS)
            now = look(box, status)
            print("%4d s: taken %d, lost_kernel %d, stacks %d, lost %d, complete %d, %s" %
                  (time.monotonic() - begin, event["taken"], event["lost_kernel"], stacks["received"], stacks["lost_kernel"],
                   stacks["end_complete"],
                   ", ".join("%s %d" % pair for pair in now.items())), flush=True)
            for what in (event, stacks):
                require(what["lost_kernel"] == 0, "%s: lost_kernel is %d" % (what["name"], what["lost_kernel"]))
            first = now if rounds == WARM_ROUNDS else first
        check_growth(first, now)
        box.shutdown()
    return test


if __name__ == "__main__":
    opdtest.run(soak(float(sys.argv[1]) if len(sys.argv) > 1 else 30, int(sys.argv[2]) if len(sys.argv) > 2 else 100000))
