#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
When and how opd swaps the rings. Four events on busy CPUs: the CPUs are swapped beside each other,
again and again, the rings have the size of the plan, nothing is lost, and the ledger is exact.
Snapshots in overwrite mode (kernel_overwrite) are taken beside that. An idle CPU is not swapped. A
CPU that wrote is swapped after so many bytes (Watermark=), after so many samples (WakeupRecords=),
and otherwise when VisitInterval= is over.

Some samples are calls that only this test makes, so their number is known.

usage: test_turns.py [--long]: 120 snapshots of each CPU in each mode instead of 30.
"""
import concurrent.futures
import math
import os
import sys
import time

import opdtest
from clock_oracle import ClockOracle
from opdtest import require
from test_socket import ask

TRACEPOINT = "syscalls:sys_enter_sched_rr_get_interval"
PERIOD_NS = 100000
CLOCKS = {"TIMER": PERIOD_NS, "cpu-clock": 1000000, "task-clock": 1000000}
SETUP = (*("--event=%s:%d" % clock for clock in CLOCKS.items()), "--separate=library,kernel")
OTHER_EVENT = "major-faults"  # where the kernel has no such tracepoint
RINGS = ("auto", "8M", "64M")  # the next one when opd was so long without a CPU that one was full
MIN_SWAPS = 100
LOOKS_AT_THREADS = 100
OF_ORACLE = 0.97  # of the samples that another timer had of the same process
SWAP_CALL = "0x2405"  # PERF_EVENT_IOC_SET_OUTPUT

KIB = 1024
EVENT_RATE = 10000  # assumed of an event whose period says nothing
NOT_MEASURED_NS = 10000000
SAMPLE_BYTES = 40
VISIT_MS = 250
SPARE_KIB, SIDEBAND_KIB = 8192, 256
MAX_STARTS = 10

SNAPSHOTS = 120 if "--long" in sys.argv else 30
LARGER = (0, 1, 0, 1, 2, 0, 1, 2)  # in powers of two; a larger ring holds more, and takes longer to be looked at
DISTURBED = 75  # the machine was so busy that the rings were too small

IDLE_LOOKS = 6
BURSTS, CALLS = 40, 250
FEWEST = 0.7  # of the swaps that there can be: each ring keeps what did not yet wake opd
NEVER_MS = 10000  # longer than the bursts take
OFTEN_MS, INTERVALS = 100, 10
IN_TIME, MAX_WINDOWS = 0.75, 60
RECORDS, BYTES = 1000, 32 * 1024


def needed_ring(need):
    size = 128 * KIB
    while size < need and size < 8192 * KIB:
        size *= 2
    return size


def check_plan(status, ring_kib=None, has_spare=True, visit_ms=VISIT_MS):
    """The size of the rings, from the figures that the status gives: the formula of doc/ring.md
    once more. A given size is used as it is.
    """
    rate = sum(1e9 / event["count"] if event["name"] in CLOCKS else EVENT_RATE for event in status["events"])
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
    require(status["turn_planned_ns"] == rounds * len(status["events"]) * status["event_wait_ns"],
            "turn of %(turn_planned_ns)d ns" % status)


def check_log(box, status):
    """The log has one line when the plan needs more than there is."""
    nr_lines = box.log_text().count("rings of %d KiB are less than the" % (status["ring_bytes"] // KIB))
    require(nr_lines == (status["ring_need_bytes"] > status["ring_bytes"]), box.log_text())


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


# ---- all CPUs are busy ----


def nr_swaps(status):
    return sum(cpu["swaps"] for cpu in status["cpus"])


def make_calls(nr):
    for _ in range(nr):
        os.sched_rr_get_interval(0)


def is_shown(box, program, mode):
    """False: the machine was too busy, each time."""
    for larger in LARGER:
        result = box.run(program, "--snapshots=%d" % SNAPSHOTS, "--larger=%d" % larger, mode)
        print(result.out, end="")
        if result.rc != DISTURBED:
            break
    if result.rc == 77:
        raise opdtest.Skip(result.out.strip().replace("skip: ", "", 1))
    require(result.rc in (0, DISTURBED), "kernel_overwrite: exit code %d: %s" % (result.rc, result.err))
    return result.rc == 0


def take_snapshots(box):
    """In rings that are too small each snapshot is the newest part, otherwise they join. Every record
    is whole.
    """
    if os.environ.get("OPD_VARIANT") in ("asan", "tsan"):
        return  # sanitizers do not follow the stacks of its load, and its reader is too slow
    program = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "ring", "kernel_overwrite")
    not_shown = [mode for mode in box.good(program, "--list").split() if not is_shown(box, program, mode)]
    if not_shown:
        raise opdtest.Skip("too busy a machine for %s: its rings were full %d times" % (", ".join(not_shown), len(LARGER)))


def asleep_in_swap(pid):
    """{thread: its scheduling figures} for the threads of opd that wait for a swap."""
    figures = dict(opdtest.each_thread(pid, "schedstat"))
    return {task: figures.get(task) for task, call in opdtest.each_thread(pid, "syscall") if call.split()[2:3] == [SWAP_CALL]}


def swaps_overlap(pid):
    """True when two threads wait for swaps at once. A thread that ran meanwhile has other figures."""
    first, second = asleep_in_swap(pid), asleep_in_swap(pid)
    return sum(second.get(task) == figures for task, figures in first.items()) > 1


def run_busy(box, workers):
    """Until there were enough swaps, and CPUs were swapped beside each other. Returns the samples of
    another timer, how many calls were made, and the names of opd's threads.
    """
    box.opcontrol("--start")
    nr_calls, overlap = 0, box.status()["swap_threads"] == 1
    with ClockOracle(PERIOD_NS) as oracle:
        end = time.monotonic() + opdtest.HANG_SECONDS
        while nr_swaps(box.status()) < MIN_SWAPS or not overlap:
            require(time.monotonic() < end, "swaps %s" % ("are too few" if overlap else "do not overlap"))
            make_calls(CALLS)
            nr_calls += CALLS
            for _ in range(LOOKS_AT_THREADS):
                overlap = overlap or swaps_overlap(box.daemon.pid)
                time.sleep(0.002)
    for worker in workers:
        require(worker.poll() is None, "a busy process ended with %s" % worker.returncode)
    names = [comm.strip() for _task, comm in opdtest.each_thread(box.daemon.pid, "comm")]
    box.opcontrol("--stop")
    return oracle, nr_calls, names


def check_turns(status, names):
    waits = sum(cpu["swap_wait_ns"] for cpu in status["cpus"])
    print("%d swaps, %d visits in %.2f s, swapping for %.2f s, %.2f s asleep in swaps, %d threads, longest turn %.1f ms, planned "
          "%.1f ms" % (nr_swaps(status), status["visits"], status["visits_ns"] / 1e9, status["swapping_ns"] / 1e9, waits / 1e9,
                       status["swap_threads"], status["turn_longest_ns"] / 1e6, status["turn_planned_ns"] / 1e6))
    require(names.count("opd-swap") == status["swap_threads"] - 1, "threads: %s" % names)
    require(0 < waits <= status["swapping_ns"] * status["swap_threads"], "asleep in swaps: %s" % status)
    require(status["swapping_ns"] <= status["visits_ns"], "swapping for longer than visiting: %s" % status)
    require(0 < status["turn_ns"] <= status["turn_longest_ns"] <= status["visits_ns"], "turns: %s" % status)
    require(0 < status["turns"] <= status["visits"], "%(turns)d turns, %(visits)d visits" % status)


def check_samples(box, status, workers, oracle, nr_calls):
    """Each busy process has the samples that another timer had of it, and each call is a sample."""
    timer, last = status["events"][0], status["events"][-1]
    for path, worker in workers.items():
        total = sum(f.total for f in box.files() if f.name.app[1] == path and f.name.event == timer["name"])
        seen = oracle.nr_of(worker.pid)
        print("%s: %d samples, another timer had %d" % (os.path.basename(path), total, seen))
        require(seen and total >= OF_ORACLE * seen, "%d samples of %s, another timer had %d" % (total, path, seen))
    require(last["name"] == OTHER_EVENT or last["received"] == nr_calls, "%d calls, %s" % (nr_calls, last))
    # Beyond what opd follows of other processes, their samples are counted as unattributed.
    if opdtest.sees_all_processes() and not status["mappings_dropped"] + status["processes_dropped"]:
        require(timer["unattributed"] <= timer["stored"] // 1000, "%(unattributed)d samples unattributed" % timer)


def check_busy(box, event):
    """The status of the first opd."""
    workers, planned = {}, None
    for cpu in sorted(os.sched_getaffinity(0)):
        path = box.copy_work("busy-app-%d" % cpu)
        workers[path] = box.busy_until_ended(path, cpu)
    for ring in RINGS:
        box.configure(RingSize=ring, SidebandSize=ring)
        box.start_daemon(*SETUP, "--event=%s:1" % event, start=False)
        oracle, nr_calls, names = run_busy(box, workers.values())
        status = box.check_ledger()
        lost = {e["name"]: e["lost_kernel"] for e in status["events"]}
        sideband_lost = sum(cpu["sideband_lost"] for cpu in status["cpus"])
        print("RingSize=%s: lost_kernel %s, %d side-band records lost" % (ring, lost, sideband_lost))
        if not planned:
            check_plan(status)
        planned = planned or status
        check_log(box, status)
        if status["swap_threads"] > 1:
            check_turns(status, names)
        check_cpus(status)
        if not any(lost.values()) and not sideband_lost:
            break
        require(ring != RINGS[-1], "lost_kernel is %s, %d side-band records lost" % (lost, sideband_lost))
        box.opcontrol("--reset")
        box.shutdown()
    for worker in workers.values():
        box.end_busy(worker)
    check_samples(box, status, workers, oracle, nr_calls)
    box.check_agreement()
    check_idle(box)
    box.shutdown()
    return planned


# ---- the size of the rings ----


def start_limited(box, online, size):
    """A daemon that may lock as much memory as rings of this size take on all CPUs."""
    locked = online * (2 * size + SIDEBAND_KIB * KIB + 64 * KIB)
    limited = os.path.join(box.dir, "opd-limited")
    with open(limited, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\nexec prlimit --memlock=%d setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock '%s'\n" % (
                     locked, box.launcher))
    os.chmod(limited, 0o755)
    box.env["OPD_DAEMON"] = limited
    box.start_daemon(start=False)
    box.env["OPD_DAEMON"] = box.launcher


def check_limited(box, status):
    """Where the kernel limits the memory of rings, they are as large as needed. Each start measures
    anew how long a swap takes, and may need other rings than the one before.
    """
    if box.run_as != "root":
        return
    box.configure(SidebandSize="%dK" % SIDEBAND_KIB)
    online, size, wanted = sum(cpu["online"] for cpu in status["cpus"]), None, needed_ring(status["ring_need_bytes"])
    if status["ring_bytes"] == wanted:
        return  # so many CPUs that they have no spare
    for _ in range(MAX_STARTS):
        size = wanted
        start_limited(box, online, size)
        status = box.status()
        box.shutdown()
        wanted = needed_ring(status["ring_need_bytes"])
        if wanted == size:
            break
    require(wanted == size, "each of %d starts needs rings of another size" % MAX_STARTS)
    check_plan(status, has_spare=False)


def check_explicit(box):
    """RingSize= wins."""
    box.configure(RingSize="64K")
    box.start_daemon(start=False)
    check_plan(box.status(), 64)
    check_log(box, box.status())
    box.shutdown()


# ---- when a CPU is swapped ----


def start_calls(box, visit_ms, **keys):
    """Only calls are samples. The other rings are so large that they wake nobody."""
    box.configure(VisitInterval=visit_ms, RingSize="32M", SidebandSize="16M", **keys)
    box.start_daemon("--event=%s:1" % TRACEPOINT, "--separate=none")


def end_calls(box, nr_calls):
    box.opcontrol("--stop")
    event, = box.check_ledger(with_files=False)["events"]
    require(event["received"] == nr_calls, "%d samples of %d calls" % (event["received"], nr_calls))
    box.shutdown()


def make_bursts(box, cpu):
    """Two answers of the sync thread are waited for after each burst: by the second it has done what
    was there to be done with the first.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    for _ in range(BURSTS):
        make_calls(CALLS)
        for _ in range(2):
            require(ask(box, "STATUS") == 0, "no status")
    os.sched_setaffinity(0, before)


def counts_of(box, cpu):
    row, = (r for r in box.status()["cpus"] if r["cpu"] == cpu)
    return row["swaps"], row["records_read"], row["bytes_read"]


def check(what, swaps, fewest, most):
    print("%s: %d swaps, between %.1f and %.1f" % (what, swaps, fewest, most))
    require(fewest <= swaps <= most, "%s: %d swaps, not between %.1f and %.1f" % (what, swaps, fewest, most))


def check_wakeups(box, cpu, nr_wakeups, **keys):
    """The swaps of a CPU, but for that of the dump in the end, are as many as its calls can cause, and
    one more for each interval that is over.
    """
    start_calls(box, NEVER_MS, **keys)
    begin, before = time.monotonic(), counts_of(box, cpu)
    make_bursts(box, cpu)
    box.opcontrol("--dump")
    swaps, nr_records, nr_bytes = (now - then for now, then in zip(counts_of(box, cpu), before))
    turns = math.ceil((time.monotonic() - begin) * 1000 / NEVER_MS)
    require(nr_records == BURSTS * CALLS, "%d records of %d calls" % (nr_records, BURSTS * CALLS))
    expected = nr_wakeups(nr_records, nr_bytes)
    check(" ".join("%s=%s" % key for key in keys.items()), swaps - 1, FEWEST * expected, expected + turns)
    end_calls(box, BURSTS * CALLS)


def check_idle_while_sampling(box):
    """The event is on, and nothing is sampled. opd looks and does not swap."""
    before, begin, used = box.status(), time.monotonic(), opdtest.cpu_seconds(box.daemon.pid)
    require(before["state"] == "running", "sampling is off: %(state)s" % before)
    after = before
    for _ in range(IDLE_LOOKS):
        after = box.await_look(after)
    for key in ("swapping_ns", "visits", "turns"):
        require(after[key] == before[key], "%s rose from %d to %d" % (key, before[key], after[key]))
    require(nr_swaps(before) == nr_swaps(after), "idle CPUs were swapped: %s" % after)
    print("%d looks at idle CPUs in %.2f s: %.2f s of CPU time" % (IDLE_LOOKS, time.monotonic() - begin,
                                                                   opdtest.cpu_seconds(box.daemon.pid) - used))


def check_interval(box, cpu):
    """Never more than one swap in an interval, though much is written; and nearly one in each, once
    the machine gives opd the time.
    """
    start_calls(box, OFTEN_MS)
    check_idle_while_sampling(box)
    own, nr_calls = os.sched_getaffinity(0), 0
    for _ in range(MAX_WINDOWS):
        begin, before, visiting = time.monotonic(), counts_of(box, cpu)[0], box.status()["visits_ns"]
        first = time.monotonic()
        os.sched_setaffinity(0, {cpu})
        while time.monotonic() < first + INTERVALS * OFTEN_MS / 1000:
            make_calls(CALLS)
            nr_calls += CALLS
            time.sleep(OFTEN_MS / 10000)
        os.sched_setaffinity(0, own)
        last = time.monotonic()
        visiting, swaps = (box.status()["visits_ns"] - visiting) / 1e9, counts_of(box, cpu)[0] - before
        fewest = (last - first - visiting) * 1000 / OFTEN_MS * IN_TIME
        check("VisitInterval=%d" % OFTEN_MS, swaps, 0, math.ceil((time.monotonic() - begin) * 1000 / OFTEN_MS))
        if swaps >= fewest:
            break
    require(swaps >= fewest, "VisitInterval=%d: %d swaps, not %.1f" % (OFTEN_MS, swaps, fewest))
    end_calls(box, nr_calls)


def has_tracepoint(box):
    box.mount_tracefs()
    return os.path.isdir(os.path.join(opdtest.TRACEFS, "events", *TRACEPOINT.split(":")))


def check_opd(box):
    is_known, cpu = has_tracepoint(box), min(os.sched_getaffinity(0))
    check_limited(box, check_busy(box, TRACEPOINT if is_known else OTHER_EVENT))
    check_explicit(box)
    if not is_known:
        raise opdtest.Skip("this kernel has no tracepoint %s (CONFIG_FTRACE_SYSCALLS)" % TRACEPOINT)
    check_interval(box, cpu)
    check_wakeups(box, cpu, lambda _records, _bytes: 0, WakeupRecords=1000000, Watermark="16M")
    check_wakeups(box, cpu, lambda nr_records, _bytes: nr_records / RECORDS, WakeupRecords=RECORDS)
    check_wakeups(box, cpu, lambda _records, nr_bytes: nr_bytes / BYTES, Watermark=BYTES)


def test(box):
    """The snapshots are a part of the load."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        snapshots = pool.submit(take_snapshots, box)
        check_opd(box)
        snapshots.result()


if __name__ == "__main__":
    opdtest.run(test)
