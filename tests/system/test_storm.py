#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Storms of processes that live for milliseconds, beside thousands that sleep: each causes a number of page faults in a file that is known, so the
truth is counted and not estimated. usage: test_storm.py [--long]: 10,000 sleepers and a minute instead of a short one.
"""
import os
import re
import shutil
import sys
import time

import elfsyms
import opdtest
from opdtest import require

FAULTS = "page-faults"
EVENTS = ("--event=TIMER:1000000", "--event=page-faults:1")
NR_IMAGES = 8
PAGES = 8
SPINS = 20000
MAPS = 8
MIN_SHARE = 0.999
MAX_RSS_BYTES = 64 << 20
MAX_LEFT = 1.1
SHORT = {"sleepers": int(os.environ.get("N", "1500")), "seconds": int(os.environ.get("S", "8")), "rate": 2000}
LONG = {"sleepers": 10000, "seconds": 60, "rate": 2000}
SETTLE_SECONDS = 4
PID_MAX = 400


def program(box, name):
    return os.path.join(os.path.dirname(box.work), name)


def copy(box, name, to):
    path = os.path.join(box.dir, to)
    shutil.copy(program(box, name), path)
    os.chmod(path, 0o755)
    return path


def memory_bytes(box, field):
    with open("/proc/%d/status" % box.daemon.pid, encoding="utf-8") as stream:
        return 1024 * int(re.search(r"^%s:\s+(\d+) kB" % field, stream.read(), re.M).group(1))


def cpu_seconds(box):
    total = 0
    for task in os.listdir("/proc/%d/task" % box.daemon.pid):
        with open("/proc/%d/task/%s/schedstat" % (box.daemon.pid, task), encoding="ascii") as stream:
            total += int(stream.read().split()[0])
    return total / 1e9


def found_touches(files, path):
    """Samples of the instruction of touch_pages that touches: the one with the most samples, the others have none or fetched the page."""
    start, end = elfsyms.symbol_ranges(path, ("touch_pages",))["touch_pages"]
    keys = {}
    for sample_file in files:
        if sample_file.name.image[1] == path and sample_file.name.event == FAULTS:
            for key, count in sample_file.keys.items():
                if start <= key < end:
                    keys[key] = keys.get(key, 0) + count
    return max(keys.values(), default=0)


def read_truth(out, paths):
    lines = out.split()
    return dict(zip(paths, map(int, lines))), int(lines[-2]), int(lines[-1]) / 1000


def check_truth(files, truth, what, min_share=MIN_SHARE):
    """Nearly all samples in the right file, and none too many in any."""
    found = {path: found_touches(files, path) for path in truth}
    wanted, have = sum(truth.values()), sum(found.values())
    wrong = {os.path.basename(p): (found[p], truth[p]) for p in truth if found[p] != truth[p]}
    print("%s: %d of %d samples in the right image, %.5f; others than known: %s" % (what, have, wanted, have / wanted, wrong or "none"))
    for path in truth:
        require(found[path] <= truth[path], "%s: %d samples in %s, which had %d" % (what, found[path], path, truth[path]))
    require(have >= min_share * wanted, "%s: %d of %d samples in the right image" % (what, have, wanted))


def check_pseudo(files, images):
    """What could not be attributed, of the processes of the storm; who else runs on this machine is not the test's business."""
    nobody = {}
    for sample_file in files:
        kind, name = sample_file.name.image[0], sample_file.name.image[1]
        if "no-" in name:
            print("%s: %d samples of %s in %s" % (sample_file.name.event, sample_file.total, sample_file.name.app[1], name))
        if "no-" in name and sample_file.name.app[1] in images:
            nobody[name] = nobody.get(name, 0) + sample_file.total
    return nobody


def check_events(box):
    """The ledger of all that was counted; what the kernel does not sample is few in a million (doc/ring.md)."""
    status = box.check_ledger(not_sampled=10000)
    for event in status["events"]:
        print("%s: taken %d, lost_kernel %d, outstanding %d, unattributed %d" % tuple(
            [event["name"]] + [event[k] for k in ("taken", "lost_kernel", "outstanding", "unattributed")]))
    lost = sum(cpu["sideband_lost"] for cpu in status["cpus"])
    print("side band: %d bytes, %d records lost" % (sum(cpu["sideband_bytes"] for cpu in status["cpus"]), lost))
    return status, lost


def start_sleepers(box, number):
    if not number:
        return None
    sleepers = box.start_piped(program(box, "storm"), "sleepers", number, MAPS, copy(box, "storm_worker", "sleeper-app"))
    require(sleepers.stdout.readline() == b"ready\n", "the sleepers do not sleep")
    return sleepers


def end_sleepers(box, sleepers):
    sleepers.communicate(b"", timeout=opdtest.CALL_SECONDS)
    require(sleepers.returncode == 0, "the sleepers failed")
    box.children.remove(sleepers)


def storm(box, size, images):
    """Two drivers; {path: touches}, processes, seconds."""
    words = [program(box, "storm"), "execs", size["rate"] // 2, size["seconds"] * 1000, PAGES, SPINS] + images
    drivers = [box.start_piped(*words) for _ in range(2)]
    truth, number, longest = {path: 0 for path in images}, 0, 0
    for driver in drivers:
        out, _ = driver.communicate(timeout=opdtest.CALL_SECONDS)
        require(driver.returncode == 0, "the driver of the storm failed")
        box.children.remove(driver)
        touched, processes, seconds = read_truth(out.decode(), images)
        truth = {path: truth[path] + touched[path] for path in images}
        number, longest = number + processes, max(longest, seconds)
    return truth, number, longest


def settle(box):
    """Until what ended is forgotten; the memory then."""
    box.opcontrol("--dump")
    time.sleep(SETTLE_SECONDS)
    return memory_bytes(box, "VmRSS")


def idle_cost(box, what):
    before = cpu_seconds(box)
    time.sleep(SETTLE_SECONDS)
    percent = 100 * (cpu_seconds(box) - before) / SETTLE_SECONDS
    print("idle, %s: %.3f %% of one CPU" % (what, percent))
    return percent


def check_memory(before, storm_rss, after, peak):
    print("RSS: %.1f MB before, %.1f at the end of the storm, %.1f afterwards, peak %.1f" % tuple(b / 1e6 for b in (before, storm_rss, after, peak)))
    require(peak < MAX_RSS_BYTES, "opd had %d bytes" % peak)
    require(after <= MAX_LEFT * before, "opd had %d bytes before and %d after the storm" % (before, after))


def exec_storm(box, size):
    images = [copy(box, "storm_worker", "storm-%d" % i) for i in range(NR_IMAGES)]
    sleepers = start_sleepers(box, size["sleepers"])
    box.configure(RingSize="4M")
    begin = time.monotonic()
    box.start_daemon(*EVENTS, "--separate=library,kernel", start=False)
    print("ready in %.2f s, %d processes known" % (time.monotonic() - begin, box.status()["nr_processes"]))
    idle_cost(box, "%d processes" % size["sleepers"])
    box.opcontrol("--start")
    storm(box, dict(size, seconds=2), images) # the files and tables that the first samples make are there
    before = settle(box)
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")
    cpu = cpu_seconds(box)
    truth, number, seconds = storm(box, size, images)
    storm_rss = memory_bytes(box, "VmRSS")
    box.opcontrol("--dump")
    cpu = cpu_seconds(box) - cpu
    print("%d processes in %.1f s, %.0f per second; opd: %.2f s of CPU time, %.1f us per process" % (
        number, seconds, number / seconds, cpu, 1e6 * cpu / number))
    box.opcontrol("--stop")
    status, lost = check_events(box)
    files = box.files()
    check_pseudo(files, truth)
    check_truth(files, truth, "exec")
    require(lost == 0, "%d side-band records lost" % lost)
    after = settle(box)
    check_memory(before, storm_rss, after, memory_bytes(box, "VmHWM"))
    if sleepers:
        end_sleepers(box, sleepers)
        left = settle(box)
        print("RSS when the sleepers have ended: %.1f MB, %d processes known" % (left / 1e6, box.status()["nr_processes"]))
    box.check_agreement()
    box.shutdown()
    shutil.rmtree(box.session)


def test(size):
    def run(box):
        exec_storm(box, size)
    return run


if __name__ == "__main__":
    opdtest.run(test(LONG if "--long" in sys.argv[1:] else SHORT))
