#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
When opd reads the rings: every so many bytes that one has (Watermark=), or every so many samples
(WakeupRecords=), and else when VisitInterval= is
over. The swaps of one CPU are counted against what it wrote: not fewer, and not more.

The samples are calls that nobody but this test makes, in bursts that are a part of what wakes opd.
After each of them opd can read: two answers of its
sync thread are waited for, and by the second it has done what was there to be done with the first.
"""
import math
import os
import time

import opdtest
from opdtest import require
from test_socket import ask

TRACEPOINT = "syscalls:sys_enter_sched_rr_get_interval"
BURSTS, CALLS = 40, 250
PAUSE = 0.05
FEWEST = 0.7  # of the swaps that there can be: each ring keeps what did not yet wake anybody
FEWEST_SEEN = 0.85  # of the intervals that opd could see; the last one may not be over
NEVER = 10000  # ms, longer than the bursts take
RECORDS, BYTES = 1000, 32 * 1024


def make_calls(box, cpu, pause):
    """When each burst ended."""
    before, times = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, {cpu})
    for _ in range(BURSTS):
        for _ in range(CALLS):
            os.sched_rr_get_interval(0)
        times.append(time.monotonic())
        for _ in range(2):
            require(ask(box, "STATUS") == 0, "no status")
        time.sleep(pause)
    os.sched_setaffinity(0, before)
    return times


def held_up(pid):
    """For how long threads of opd could have run, and another one had the CPU; in seconds."""
    return sum(int(text.split()[1]) for _task, text in opdtest.each_thread(pid, "schedstat")) / 1e9


def nr_intervals(begin, times, interval):
    """In how many intervals, one after the other, something was written: a burst that is later than
    the interval after the last one begins another.
    """
    nr, last = 0, begin
    for end in times:
        if end - last >= interval:
            nr, last = nr + 1, end
    return nr


def counts_of(box, cpu):
    row, = (r for r in box.status()["cpus"] if r["cpu"] == cpu)
    return row["swaps"], row["records_read"], row["bytes_read"]


def run_case(box, cpu, visit_ms, pause=0.0, **keys):
    """The swaps, but for that of the dump in the end; what they gave; how often the interval was
    over, and how often opd could see that.
    """
    box.configure(VisitInterval=visit_ms, RingSize="32M", **keys)
    box.start_daemon("--event=%s:1" % TRACEPOINT, "--separate=none")
    before, held_before = counts_of(box, cpu), held_up(box.daemon.pid)
    begin = time.monotonic()
    times = make_calls(box, cpu, pause)
    held = held_up(box.daemon.pid) - held_before
    seen = min(nr_intervals(begin, times, visit_ms / 1000), (times[-1] - begin - held) * 1000 / visit_ms)
    box.opcontrol("--dump")
    turns = (time.monotonic() - begin) * 1000 / visit_ms
    swaps, nr_records, nr_bytes = (now - then for now, then in zip(counts_of(box, cpu), before))
    box.opcontrol("--stop")
    event, = box.check_ledger(with_files=False)["events"]
    require(event["received"] == nr_records == BURSTS * CALLS,
            "%d samples, %d records of the CPU" % (event["received"], nr_records))
    box.shutdown()
    return swaps - 1, nr_records, nr_bytes, (turns, seen)


def check(what, swaps, fewest, most):
    print("%s: %d swaps, between %.1f and %.1f" % (what, swaps, fewest, most))
    require(fewest <= swaps <= most, "%s: %d swaps, not between %.1f and %.1f" % (what, swaps, fewest, most))


def test(box):
    cpu = min(os.sched_getaffinity(0))
    box.mount_tracefs()
    if not os.path.isdir(os.path.join(opdtest.TRACEFS, "events", *TRACEPOINT.split(":"))):
        raise opdtest.Skip("this kernel has no tracepoint %s (CONFIG_FTRACE_SYSCALLS)" % TRACEPOINT)
    for what, keys in ("neither", {}), ("WakeupRecords=1000000", {"WakeupRecords": 1000000}), ("Watermark=16M",
            {"Watermark": "16M"}):
        swaps, _, _, (turns, _) = run_case(box, cpu, NEVER, **keys)
        check(what, swaps, 0, math.ceil(turns))
    swaps, _, _, (turns, seen) = run_case(box, cpu, 200, PAUSE)
    check("VisitInterval=200", swaps, FEWEST_SEEN * seen - 1, math.ceil(turns))
    swaps, nr_records, _, (turns, _) = run_case(box, cpu, NEVER, WakeupRecords=RECORDS)
    check("WakeupRecords=%d" % RECORDS, swaps, FEWEST * nr_records / RECORDS, nr_records / RECORDS + math.ceil(turns))
    swaps, _, nr_bytes, (turns, _) = run_case(box, cpu, NEVER, Watermark=BYTES)
    check("Watermark=%d" % BYTES, swaps, FEWEST * nr_bytes / BYTES, nr_bytes / BYTES + math.ceil(turns))


if __name__ == "__main__":
    opdtest.run(test)
