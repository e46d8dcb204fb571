#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Many CPUs: every CPU is sampled and swapped, rings and turns are as planned, memory is what the plan
says, half of the CPUs go and come back under load, and the ledger is exact. What it prints are the
figures of turns beside the plan.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
import test_hotplug  # noqa: E402
import test_turns  # noqa: E402
from opdtest import require, wait_until  # noqa: E402

# All emulated CPUs share the few of the host. A grace period lasts until each of them had its turn
# there, so a swap does as well. Hence few interrupts, few samples and few looks.
EVENTS = ("--event=TIMER:1000000000", "--event=cpu-clock:1000000000", "--event=task-clock:1000000000", "--event=page-faults:1")
VISIT_MS = 2000
FAULTS = 100  # on each CPU, each time
FAULT_ON_EACH = 'app=$1; nr=$2; shift 2; for cpu; do taskset -c "$cpu" "$app" faults "$nr" >/dev/null || exit 1; done'
SIDEBAND_KIB, LEAST_SIDEBAND_KIB, ALL_SIDEBAND_KIB = 1024, 256, 4096
WAIT_SECONDS = 1200  # ends a test that hangs
TURN_FACTOR = 4  # of a mean turn to the plan, which was made without load; 0.90 to 1.95 were seen
OTHERS_KIB = 16 * 1024  # what opd holds beside its rings, in memory that is there; 6 MiB were seen


def fault_on_each(box, app, cpus):
    """Page faults of period 1, in a process of each CPU: as many samples there at least, but for one
    that the kernel may not sample.
    """
    box.good("sh", "-c", FAULT_ON_EACH, "sh", app, FAULTS, *cpus, timeout=WAIT_SECONDS)


def rows(box):
    return {row["cpu"]: row for row in box.status()["cpus"]}


def await_rows(box, condition, text):
    wait_until(lambda: condition(rows(box)), WAIT_SECONDS, text)


def check_memory(box, status):
    """Each CPU has two rings and a side band, each with a control page. The sizes are those of the
    plan.
    """
    nr, page = len(status["cpus"]), os.sysconf("SC_PAGE_SIZE") // 1024
    sideband = SIDEBAND_KIB
    while sideband > LEAST_SIDEBAND_KIB and nr * sideband > ALL_SIDEBAND_KIB:
        sideband //= 2
    planned = nr * (2 * (status["ring_bytes"] // 1024 + page) + sideband + page)
    mapped, resident = 0, 0
    with open("/proc/%d/smaps" % box.daemon.pid, encoding="ascii", errors="replace") as stream:
        is_ring = False
        for line in stream:
            words = line.split()
            if not words[0].endswith(":"):
                is_ring = line.rstrip().endswith("anon_inode:[perf_event]")
            elif words[0] == "Size:":
                mapped += int(words[1]) if is_ring else 0
            elif words[0] == "Rss:":
                resident += 0 if is_ring else int(words[1])
    print("%d CPUs: rings of %d KiB mapped, %d KiB planned; %d KiB of other memory" % (nr, mapped, planned, resident))
    require(mapped == planned, "%d KiB of rings are mapped, not %d" % (mapped, planned))
    require(resident < OTHERS_KIB, "%d KiB of memory beside the rings" % resident)


def show_turns(status, text):
    waits = sum(cpu["swap_wait_ns"] for cpu in status["cpus"])
    swaps = sum(cpu["swaps"] for cpu in status["cpus"])
    mean = status["swapping_ns"] / max(status["turns"], 1)
    print("%s: %d turns, %d swaps of CPUs, swapping %.1f ms a turn in the mean, the longest turn %.1f ms, planned %.1f ms (%.2f "
          "times); %.1f ms a swap, %.1f ms planned for an event; rings of %d KiB for %d KiB; %d swapping threads" % (
              text, status["turns"], swaps, mean / 1e6, status["turn_longest_ns"] / 1e6, status["turn_planned_ns"] / 1e6,
              mean / status["turn_planned_ns"], waits / max(swaps, 1) / 1e6, status["event_wait_ns"] / 1e6,
              status["ring_bytes"] // 1024, status["ring_need_bytes"] // 1024, status["swap_threads"]), flush=True)
    require(mean <= TURN_FACTOR * status["turn_planned_ns"], "a turn takes %.2f times as long as planned" % (
        mean / status["turn_planned_ns"]))


def check_half_goes(box, app, cpus):
    """The second half of the CPUs goes while the first half works, and comes back."""
    half = cpus[len(cpus) // 2:]
    path = "/sys/devices/system/cpu/cpu%d/online"
    load = box.start("sh", "-c", "while :; do taskset -c 0 %s faults 100 >/dev/null; sleep 0.2; done" % app)
    try:
        for cpu in half:
            test_hotplug.switch(path % cpu, False)
        await_rows(box, lambda r: not any(r[cpu]["online"] for cpu in half), "half of the CPUs are offline, opd says online")
        gone = rows(box)
        fault_on_each(box, app, cpus[:len(cpus) // 2])
        require(all(rows(box)[cpu]["received"] == gone[cpu]["received"] for cpu in half), "samples of CPUs that are offline")
    finally:
        for cpu in half:
            test_hotplug.switch(path % cpu, True)
    oracle = opdtest.FaultOracle(box.fault_oracle)  # the first one has no events there any more
    await_rows(box, lambda r: all(r[cpu]["online"] for cpu in half), "the CPUs are back, opd says offline")
    fault_on_each(box, app, half)
    box.end_process(load.pid)
    box.opcontrol("--dump")
    back = rows(box)
    for cpu in half:
        new = sum(back[cpu][part] - gone[cpu][part] for part in ("received", "lost_kernel"))
        require(new >= FAULTS - 1, "CPU %d had %d samples of %d page faults after its return" % (cpu, new, FAULTS))
    print("CPUs %d to %d went and came back" % (half[0], half[-1]), flush=True)
    return oracle


def test(box):
    cpus = sorted(os.sched_getaffinity(0))
    app = box.copy_work("fault-app")
    box.configure(VisitInterval=VISIT_MS)
    box.start_daemon(*EVENTS, "--separate=library,kernel", start=False)
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.opcontrol("--start")
    require([row["cpu"] for row in box.status()["cpus"]] == cpus, "CPUs of the status: %s" % box.status()["cpus"])
    fault_on_each(box, app, cpus)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    not_sampled = oracle.not_sampled()
    status = box.check_ledger(not_sampled=not_sampled)
    test_turns.check_plan(status, visit_ms=VISIT_MS)
    test_turns.check_cpus(status)
    test_hotplug.check_sums(status)
    show_turns(status, "%d CPUs" % len(cpus))
    few = [row["cpu"] for row in status["cpus"] if row["received"] + row["lost_kernel"] < FAULTS - not_sampled]
    require(not few, "CPUs with fewer samples than page faults: %s" % few)
    check_memory(box, status)
    test_turns.check_idle(box)
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.opcontrol("--start")
    another = check_half_goes(box, app, cpus)
    box.opcontrol("--stop")
    not_sampled += oracle.not_sampled() + another.not_sampled()
    after = box.check_ledger(not_sampled=not_sampled)
    show_turns(after, "with half of them away")
    test_hotplug.check_sums(after)
    box.check_agreement()
    box.shutdown()
    print(box.log_text())


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
