#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A machine on which nothing happens: how often all threads of opd and its helpers wake. They are
counted by the times that a thread went to sleep. Only a machine without other programs shows that.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import require  # noqa: E402

SETTLE_SECONDS, SECONDS = 20, 40  # after the start of opd, and of counting: eight turns
MOST = 5                          # sleeps a second
TIMES = 3                         # that it is counted, until once they are as few


def family(pid):
    """The process and all below it."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stream:
                parents[int(name)] = int(stream.read().rpartition(")")[2].split()[1])
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def sleeps(pids):
    """{(process, thread, name): how often it went to sleep}."""
    counts = {}
    for pid in pids:
        for thread in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/status" % (pid, thread), encoding="utf-8", errors="replace") as stream:
                    fields = dict(line.split(":", 1) for line in stream.read().splitlines() if ":" in line)
            except FileNotFoundError:  # it has ended
                continue
            counts[pid, thread, fields["Name"].strip()] = int(fields["voluntary_ctxt_switches"])
    return counts


def rate(pids):
    """Sleeps a second of all threads of these processes."""
    before, begin = sleeps(pids), time.monotonic()
    time.sleep(SECONDS)
    after, seconds = sleeps(pids), time.monotonic() - begin
    for key, nr in sorted(after.items()):
        print("%-12s %5.2f sleeps a second" % (key[2], (nr - before.get(key, 0)) / seconds))
    total = (sum(after.values()) - sum(before.values())) / seconds
    print("all together: %.2f a second" % total)
    return total


def test(box):
    box.configure(Stacks="yes")
    box.start_daemon()
    time.sleep(SETTLE_SECONDS)
    pids = family(box.daemon.pid)
    # The guest has work of its own at times, and is slow where its host is busy.
    rates = []
    while len(rates) < TIMES and min(rates, default=MOST + 1) > MOST:
        rates.append(rate(pids))
    require(min(rates) <= MOST, "opd wakes %s times a second where nothing happens" % ["%.2f" % r for r in rates])
    box.opcontrol("--stop")
    box.check_ledger()


if __name__ == "__main__":
    sys.exit(opdtest.run(test))
