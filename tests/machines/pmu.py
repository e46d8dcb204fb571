#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A real PMU: samples times period are what the kernel has counted of opd's own event, but for the
last period on each CPU. perf stat and perf record beside opd see the same; of user code and of the
kernel apart.

The PMU of QEMU counts by the clock of the machine. Where that is the host's clock, an interrupt may
be many periods late. The kernel takes one sample then and skips the other periods. So samples times
period are less than the count, of perf as well as of opd, and only that they are not more can be
checked. With -icount the clock goes with the instructions, and no interrupt is late. Only there does
QEMU count instructions.
"""
import contextlib
import os
import re
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import require  # noqa: E402

PERF_TYPE_HARDWARE = 0
CYCLES, INSTRUCTIONS = 0, 1  # PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS
PERIOD = 1000003
HZ = 10 ** 9  # of QEMU's cycles
WORK_MS = 2000
EXCLUDE_USER, EXCLUDE_KERNEL, EXCLUDE_HV = 1 << 4, 1 << 5, 1 << 6


def open_events(config, flags=0, period=0):
    """An event that counts on each CPU from now on, for all processes. With a period it interrupts,
    but no one takes its samples. None: the kernel has no counter for it.
    """
    events = [opdtest.open_event(config, period, 0, cpu, False, flags, PERF_TYPE_HARDWARE)
              for cpu in sorted(os.sched_getaffinity(0))]
    if None not in events:
        return events
    close_events(events)
    return None


def count_of(events):
    return sum(struct.unpack("=Q", os.read(event, 8))[0] for event in events)


def close_events(events):
    for event in events:
        if event is not None:
            os.close(event)


def under_perf(box, event, *command):
    """Runs a command below perf stat and perf record: what the one counts, and the samples of the
    other times the period.
    """
    data = os.path.join(box.dir, "perf.data")
    done = box.run("perf", "stat", "-x,", "-a", "-e", event, "perf", "record", "-q", "-a", "-e", event, "-c", PERIOD, "-o", data,
                   *command)
    require(done.rc == 0, "perf: %s" % done.err)
    counted = int(re.search(r"^(\d+),,%s" % event, done.err, re.M).group(1))
    nr_samples = len(box.good("perf", "script", "-i", data, "-F", "period").split())
    os.unlink(data)
    return counted, nr_samples * PERIOD


# Event, its filter for opd and for perf, and the event and the flags of counters of the test. The
# kernel may file samples of user code in the kernel: the interrupt comes when the program has made
# a system call. But it counts what it should.
COUNTS = (
    ("cycles", "", "", CYCLES, 0),
    ("cycles", ":0:0:1", ":u", CYCLES, EXCLUDE_KERNEL | EXCLUDE_HV),
    ("cycles", ":0:1:0", ":k", CYCLES, EXCLUDE_USER),
    ("instructions", "", "", INSTRUCTIONS, 0),
)


def check_count(box, name, ours, theirs, config, flags, is_exact):
    """The samples are as many as the kernel counted periods of opd's own event, but for the last,
    unfinished period on each CPU. Counters of the test that began before that event and end after
    it counted more, and others that began after it and end before counted less: so it is the event
    that was asked for. perf stat and perf record run within that time.
    """
    nr_cpus, what = len(os.sched_getaffinity(0)), name + theirs
    box.start_daemon("--event=%s:%d%s" % (name, PERIOD, ours), start=False)
    outer, begin = open_events(config, flags), time.monotonic()
    box.opcontrol("--start")
    inner = open_events(config, flags)
    box.good(os.path.join(box.dir, "busy-app"), "kernel", WORK_MS // 2)
    before = count_of(inner)
    stat, record = under_perf(box, what, os.path.join(box.dir, "busy-app"), "spin", WORK_MS // 2)
    least = count_of(inner)
    box.opcontrol("--stop")
    counted, most, seconds = box.event_count(), count_of(outer), time.monotonic() - begin
    row = next(row for row in box.check_ledger()["events"] if row["name"] == name)
    taken = PERIOD * (row["received"] + row["lost_kernel"])
    of_kernel = sum(f.total for f in box.files() if f.header.is_kernel)
    print("%s in %.3f s: %d counted, by the test %d to %d, opd has samples of %d: %+.2f periods, %d of %d in the kernel" % (
        what, seconds, counted, least, most, taken, (taken - counted) / PERIOD, of_kernel, row["stored"]))
    print("    meanwhile perf stat counts %d, the test %d, perf record has samples of %d" % (
        stat, least - before, record), flush=True)
    require(row["received"] >= WORK_MS / 20, "only %d samples" % row["received"])
    # Where interrupts are late, other counters of QEMU count more than there were cycles.
    require(counted <= nr_cpus * seconds * HZ or config != CYCLES, "%d cycles in %.3f s" % (counted, seconds))
    require(taken <= counted, "samples of %d %s, %d counted" % (taken, what, counted))
    require(not row["nr_throttles"], "the event was throttled: %s" % row)
    require(record <= stat, "perf stat counts %d, perf record has samples of %d" % (stat, record))
    if is_exact:
        require(least <= counted <= most, "%d %s counted, but between %d and %d by the test" % (counted, what, least, most))
        require(stat <= least - before, "perf stat counts %d, the test %d" % (stat, least - before))
        require(taken > counted - nr_cpus * PERIOD, "samples of %d %s, %d counted" % (taken, what, counted))
        require(record - nr_cpus * PERIOD < taken, "opd has samples of %d %s, perf record of %d" % (taken, what, record))
    box.shutdown()
    box.opcontrol("--reset")
    close_events(inner + outer)


def lift_rate_limit():
    """Interrupts of an emulated CPU take long, so the kernel would allow fewer and fewer of them, and
    stop the event for most of each tick.
    """
    for name, value in ("cpu_time_max_percent", 25), ("event_max_sample_rate", 100000), ("cpu_time_max_percent", 0):
        with open("/proc/sys/kernel/perf_" + name, "w", encoding="ascii") as stream:
            stream.write(str(value))


@contextlib.contextmanager
def exact_clock(box):
    """No interrupt of the machine with -icount is late by a period. While that machine is idle, its
    clock jumps over many periods, so one process is always busy. And QEMU sets its timer one count
    too early for counters other than the cycle counter. When the timer comes just then, QEMU sets no
    other, and there is no interrupt until something accesses the PMU. So the first event, which gets
    the cycle counter, interrupts four times in each period.
    """
    cycles = open_events(CYCLES, period=PERIOD // 4)
    busy = box.busy_until_ended(os.path.join(box.dir, "busy-app"))
    os.sched_setscheduler(busy.pid, os.SCHED_IDLE, os.sched_param(0))
    yield
    box.end_busy(busy)
    close_events(cycles)


def test(box):
    is_exact = "--exact" in sys.argv  # a machine with a clock of instructions
    instructions = open_events(INSTRUCTIONS)
    require(bool(instructions) == is_exact, "instructions can%s be counted" % ("not" if is_exact else ""))
    close_events(instructions or [])
    lift_rate_limit()
    box.copy_work("busy-app")
    with exact_clock(box) if is_exact else contextlib.nullcontext():
        for name, ours, theirs, config, flags in COUNTS:
            if config == CYCLES or is_exact:
                check_count(box, name, ours, theirs, config, flags, is_exact)


if __name__ == "__main__":
    opdtest.run(test)
