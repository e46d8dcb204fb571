#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Four events on all CPUs: the CPUs are swapped beside each other, the rings have the size that the
plan says, no CPU is swapped that has
written nothing, whether sampling is on or off, and the ledger is exact.
"""
import os
import time

import opdtest
from opdtest import require

EVENTS = ("--event=TIMER:1000000", "--event=cpu-clock:1000000", "--event=task-clock:1000000", "--event=page-faults:1")
SECONDS = 5
FAULTS = 20000
KIB = 1024
EVENT_RATE = 10000 # assumed of an event whose period says nothing
NOT_MEASURED_NS = 10000000
SAMPLE_BYTES = 40
VISIT_MS = 250
SELDOM = "TIMER:4294967295" # every 4.3 s
IDLE_LOOKS = 6
SPARE_KIB, SIDEBAND_KIB = 8192, 256


def needed_ring(need):
    size = 128 * KIB
    while size < need and size < 8192 * KIB:
        size *= 2
    return size


def check_plan(status, ring_kib=None, has_spare=True, timer_rate=1000, visit_ms=VISIT_MS):
    """The size of the rings, from the figures that the status gives: the formula of doc/ring.md
    once more. A given size is used as it is.
    """
    rate = 3 * timer_rate + EVENT_RATE
    need = 2 * rate * SAMPLE_BYTES * (status["turn_planned_ns"] / 1e9 + visit_ms / 1e3)
    require(abs(status["ring_need_bytes"] - need) <= need / 100, "%d bytes needed, not %d" % (status["ring_need_bytes"], need))
    size = needed_ring(need)
    online = sum(cpu["online"] for cpu in status["cpus"])
    if has_spare:
        most = min(4 * size, 8192 * KIB)
        while size < most and 2 * online * 2 * size <= SPARE_KIB * KIB:
            size *= 2
    require(status["ring_bytes"] == (ring_kib * KIB if ring_kib else size), "rings of %(ring_bytes)d bytes" % status)
    require(status["ring_is_auto"] == (ring_kib is None), "ring_is_auto is %(ring_is_auto)s" % status)
    require(1 <= status["swap_threads"] <= min(online, 16), "%(swap_threads)d swapping threads" % status)
    require(status["event_wait_ns"] not in (0, NOT_MEASURED_NS), "what one event waits was not measured")
    rounds = -(-online // status["swap_threads"])
    require(status["turn_planned_ns"] == rounds * len(EVENTS) * status["event_wait_ns"], "turn of %(turn_planned_ns)d ns" % status)


def work(box, path):
    """All CPUs busy, and page faults that are known; events that the kernel counted without a
    sample.
    """
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.opcontrol("--start")
    workers = box.busy_cpus(SECONDS)
    box.good(path, "faults", FAULTS)
    for worker in workers:
        require(worker.wait(SECONDS * 20) == 0, "a busy process failed")
    box.opcontrol("--dump")
    names = [comm.strip() for _task, comm in opdtest.each_thread(box.daemon.pid, "comm")]
    box.opcontrol("--stop")
    return oracle.not_sampled(), names


def check_overlap(status, names):
    """Were CPUs swapped one after another, the time asleep in swaps would be a part of the time
    that visits take for swapping.
    """
    asleep = sum(cpu["swap_wait_ns"] for cpu in status["cpus"])
    print("%d visits in %.2f s, swapping for %.2f s, %.2f s asleep in swaps, %d threads, longest turn %.1f ms, planned %.1f ms" %
          (status["visits"], status["visits_ns"] / 1e9, status["swapping_ns"] / 1e9, asleep / 1e9, status["swap_threads"],
           status["turn_longest_ns"] / 1e6, status["turn_planned_ns"] / 1e6))
    require(names.count("opd-swap") == status["swap_threads"] - 1, "threads: %s" % names)
    require(asleep > status["swapping_ns"], "swaps do not overlap: %d ns asleep of %d ns" % (asleep, status["swapping_ns"]))
    require(status["swapping_ns"] <= status["visits_ns"], "swapping for longer than visiting: %s" % status)
    require(0 < status["turn_ns"] <= status["turn_longest_ns"] <= status["visits_ns"], "turns: %s" % status)
    require(0 < status["turns"] <= status["visits"], "%(turns)d turns, %(visits)d visits" % status)


def check_cpus(status):
    for cpu in status["cpus"]:
        require(cpu["swap_longest_ns"] * cpu["swaps"] >= cpu["swap_wait_ns"], "longest swap: %s" % cpu)
        for what in ("bytes", "records"):
            most, total = cpu["turn_most_" + what], cpu[what + "_read"]
            require(cpu["turn_" + what] <= most <= total <= most * cpu["swaps"], "%s of CPU %s" % (what, cpu))


def check_idle(box):
    """Nothing is sampled, so nothing is swapped: the rings of a daemon that is paused cost nothing.
    """
    before = box.status()
    box.opcontrol("--dump")
    after = box.status()
    for key in ("visits", "turns"):
        require(after[key] == before[key], "%s rose from %d to %d" % (key, before[key], after[key]))
    swaps = [[cpu["swaps"] for cpu in status["cpus"]] for status in (before, after)]
    require(swaps[0] == swaps[1], "idle CPUs were swapped: %s" % swaps)


def check_idle_while_sampling(box):
    """The timer runs on all CPUs, and seldom has a sample, however busy the machine is. In between
    opd looks and does not swap.
    """
    box.start_daemon("--event=" + SELDOM)
    before, begin, used, looks = box.status(), time.monotonic(), opdtest.cpu_seconds(box.daemon.pid), 0
    require(before["state"] == "running", "sampling is off: %(state)s" % before)
    while looks < IDLE_LOOKS:
        after = box.await_look(before)
        pairs = list(zip(before["cpus"], after["cpus"]))
        idle = [p for p in pairs if p[0]["records_read"] == p[1]["records_read"]]
        require(all(a["swaps"] == b["swaps"] for a, b in idle), "idle CPUs were swapped: %s" % idle)
        if len(idle) == len(pairs):
            require(after["swapping_ns"] == before["swapping_ns"], "time went by in swaps of nothing")
            looks += 1
        before = after
    print("%d looks at idle CPUs in %.2f s: %.2f s of CPU time" % (looks, time.monotonic() - begin,
                                                                   opdtest.cpu_seconds(box.daemon.pid) - used))
    box.shutdown()


def check_auto(box, path):
    box.start_daemon(*EVENTS, "--separate=library,kernel", start=False)
    not_sampled, names = work(box, path)
    status = box.check_ledger(not_sampled=not_sampled)
    check_plan(status)
    require("are less than" not in box.log_text(), "rings that are large enough: %s" % box.log_text())
    if status["swap_threads"] > 1:
        check_overlap(status, names)
    check_cpus(status)
    check_idle(box)
    box.shutdown()
    return status


def check_limited(box, status):
    """Where the kernel limits the memory of rings, they are as large as needed."""
    if box.run_as != "root":
        return
    online, size = sum(cpu["online"] for cpu in status["cpus"]), needed_ring(status["ring_need_bytes"])
    if status["ring_bytes"] == size:
        return  # so many CPUs that they have no spare
    locked = online * (2 * size + SIDEBAND_KIB * KIB + 64 * KIB)
    limited = os.path.join(box.dir, "opd-limited")
    with open(limited, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\nexec prlimit --memlock=%d setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock '%s'\n" % (
                     locked, box.env["OPD_DAEMON"]))
    os.chmod(limited, 0o755)
    box.configure(SidebandSize="%dK" % SIDEBAND_KIB)
    own, box.env["OPD_DAEMON"] = box.env["OPD_DAEMON"], limited
    box.start_daemon(*EVENTS, "--separate=library,kernel", start=False)
    check_plan(box.status(), has_spare=False)
    box.shutdown()
    box.env["OPD_DAEMON"] = own


def check_explicit(box):
    """RingSize= wins; the log has one line when the plan needs more."""
    box.configure(RingSize="64K")
    box.start_daemon(start=False)
    check_plan(box.status(), 64)
    require(box.log_text().count("rings of 64 KiB are less than the") == 1, box.log_text())
    box.shutdown()


def test(box):
    check_limited(box, check_auto(box, box.copy_work("fault-app")))
    check_explicit(box)
    check_idle_while_sampling(box)


if __name__ == "__main__":
    opdtest.run(test)
