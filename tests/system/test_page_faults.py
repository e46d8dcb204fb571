#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Software event of period 1: the count of the event descriptors is received + lost_kernel to the last one, also after an overflow."""
import os
import signal
import time

import elfsyms
import opdtest
from opdtest import require

QUIET_FAULTS = 20000
FLOOD_FAULTS = 100000
STOP_SECONDS = 5
BIG_RING = "4M"
PERF_COUNT_SW_PAGE_FAULTS = 2
PERF_SAMPLE_IDENTIFIER = 1 << 16


def samples_in(box, path, symbol):
    start, end = elfsyms.symbol_ranges(path, (symbol,))[symbol]
    return sum(n for f in box.files() if f.name.image[1] == path for key, n in f.keys.items() if start <= key < end)


def check_quiet(box, path):
    """Faults that the rings hold, however fast they come: each of them is a sample, at the instruction that caused it."""
    before = box.status()["events"][0]
    box.good(path, "faults", QUIET_FAULTS)
    box.opcontrol("--stop")
    event = box.check_ledger()["events"][0]
    print("quiet: taken %(taken)d, received %(received)d, lost_kernel %(lost_kernel)d" % event)
    require(event["lost_kernel"] == before["lost_kernel"], "lost_kernel rose to %d" % event["lost_kernel"])
    require(event["taken"] - before["taken"] >= QUIET_FAULTS, "only %d faults taken" % event["taken"])
    found = samples_in(box, path, "touch_pages")
    require(found == QUIET_FAULTS, "%d samples in touch_pages, not %d" % (found, QUIET_FAULTS))


def check_beside_another(box, path):
    """Another profiler with the same event, opened later: each has its own samples all the same."""
    before = box.status()["events"][0]
    others = [opdtest.open_event(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_IDENTIFIER, cpu, False) for cpu in os.sched_getaffinity(0)]
    require(None not in others, "cannot open an event of another profiler")
    box.event_mark += len(others)
    box.opcontrol("--start")
    box.good(path, "faults", QUIET_FAULTS)
    box.opcontrol("--stop")
    for descriptor in others:
        os.close(descriptor)
    event = box.check_ledger()["events"][0]
    print("beside another: stored %(stored)d, lost_undecodable %(lost_undecodable)d" % event)
    require(event["lost_undecodable"] == before["lost_undecodable"], "%(lost_undecodable)d samples undecodable" % event)
    found = samples_in(box, path, "touch_pages")
    require(found == 2 * QUIET_FAULTS, "%d samples in touch_pages, not %d" % (found, 2 * QUIET_FAULTS))


def check_flood(box, path):
    """The daemon is stopped while the rings overflow; what was lost is known to the last one."""
    before = box.status()["events"][0]
    box.opcontrol("--start")
    box.daemon.send_signal(signal.SIGSTOP)
    end = time.monotonic() + STOP_SECONDS
    box.good(path, "faults", FLOOD_FAULTS)
    time.sleep(max(0.0, end - time.monotonic()))
    box.daemon.send_signal(signal.SIGCONT)
    box.good(path, "faults", 1000)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    event = box.check_ledger()["events"][0]
    print("flood: taken %(taken)d, received %(received)d, lost_kernel %(lost_kernel)d" % event)
    require(event["lost_kernel"] > before["lost_kernel"], "the rings did not overflow")
    require(event["taken"] - before["taken"] >= FLOOD_FAULTS + 1000, "only %d faults taken" % (event["taken"] - before["taken"]))


def test(box):
    path = box.copy_work("fault-app")
    box.configure(RingSize=BIG_RING)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    check_quiet(box, path)
    check_beside_another(box, path)
    box.shutdown()
    box.opcontrol("--reset")
    box.configure()
    box.start_daemon()
    check_flood(box, path)
    check_flood(box, path)
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
