#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Waits of as many threads as this host can have, 100,000 at most, which all end at once; and waits
while a CPU goes and comes. The truth is the clock of the program that waits (waits.c). Switches add
up, and so do the time in records and the time that is counted as lost.
"""
import contextlib
import glob
import sys
import time

import opdtest
from opdtest import require
from test_hotplug import last_cpu, standing_still, switch
from test_waits import STATES, US, WAITED, Waits, await_uptime, bound, check_close, dump, program_of, run, settle, use_waits
from test_waits_trouble import Program, check_all, check_between, lost_us

# of very many threads: what the kernel and the stack of one take
THREADS_MAX, THREAD_KB, THREAD_MAPPINGS, PROCESSES = 100000, 48, 2, 4
MEMORY_MAX_KB = 32 << 10  # 16 MiB of waiting stacks, 16,384 threads that are known, 4 MiB of copies


def number_in(path):
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as stream:
        return int(stream.read())
    return sys.maxsize


def nr_threads_allowed():
    """Half of what this host can have, and 100,000 at most: others have threads as well."""
    with open("/proc/meminfo", encoding="ascii") as stream:
        free_kb = next(int(line.split()[1]) for line in stream if line.startswith("MemAvailable:"))
    limits = [number_in("/proc/sys/kernel/" + name) for name in ("pid_max", "threads-max")]
    with open("/proc/self/cgroup", encoding="ascii") as stream:
        for line in stream:
            limits += map(number_in, glob.glob("/sys/fs/cgroup/**/%s/pids.max" % line.strip().split(":", 2)[2].strip("/")))
    limits += [PROCESSES * number_in("/proc/sys/vm/max_map_count") // THREAD_MAPPINGS, free_kb // THREAD_KB]
    return min(THREADS_MAX, min(limits) // 2)


def memory_kb(box):
    with open("/proc/%d/status" % box.daemon.pid, encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM:"))


def test_many(box):
    """All begin, wait and end at once. What opd keeps of them is bounded."""
    nr = nr_threads_allowed()
    use_waits(box)
    settle(box)
    before_kb = memory_kb(box)
    programs = [Program(box, "crowd", "still", str(nr // PROCESSES), "0") for _ in range(PROCESSES)]
    await_uptime(box, 7)
    for program in programs:
        program.process.stdin.close()
    waited = sum(program.await_end() for program in programs)
    dump(box)
    dump(box)  # a wait that has no record at its end is booked when three readings have not seen it
    found, lost, more_kb = Waits(box.session, "crowd"), lost_us(box), memory_kb(box) - before_kb
    print("%d threads waited %.0f s; found %.0f s in %d records, lost %.0f s; %d KiB more memory" %
          (nr, waited / US, found.total(*STATES) / US, found.nr_records, lost / US, more_kb))
    mains = sum(time.monotonic() - program.begin for program in programs) * US
    check_between("very many", found.total(*STATES), 0.97 * waited, 1.03 * waited + mains, lost)
    require(more_kb <= MEMORY_MAX_KB, "opd has %d KiB more" % more_kb)
    check_all(box)


def test_cpu(box):
    """A CPU goes and comes back, and waits go on; also when it is back before opd has looked."""
    cpu, path = last_cpu()
    use_waits(box)
    settle(box)
    program = Program(box, "moved", "sleep", "1", "12")
    try:
        for _ in range(2):
            await_uptime(box, 1)
            switch(path, False)
            opdtest.wait_until(lambda: not next(r for r in box.status()["cpus"] if r["cpu"] == cpu)["online"], opdtest.HANG_SECONDS,
                               "CPU %d is offline, and opd says online" % cpu)
            await_uptime(box, 1)
            switch(path, True)
            await_uptime(box, 1)
            with standing_still(box):
                switch(path, False)
                switch(path, True)
    finally:
        switch(path, True)
    waited = program.await_end()
    dump(box)
    check_close("sleeps", Waits(box.session, "moved").total(*STATES) - 12 * US, waited, bound(box, 2, *WAITED))
    waited = run(box, program_of(box, "later"), "sleep", "1", "4")[0]
    check_close("after", Waits(box.session, "later").total(*STATES) - 4 * US, waited, bound(box, 2, *WAITED))
    check_all(box)


def test(box):
    for case in (test_many, test_cpu):
        case(box)
        box.shutdown()
        box.opcontrol("--reset")


if __name__ == "__main__":
    opdtest.run(test)
