#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
When opd reads the rings: as soon as one has so many bytes (Watermark=), or so many samples (WakeupRecords=), and else not before
VisitInterval= is over, which is 10 seconds here.
"""
import os
import time

import opdtest
from opdtest import require

FAULTS = 1500  # on one CPU: 40 bytes and more each, less than the watermark of the first case
PATIENCE = 1.5  # much less than VisitInterval=


def visits_of(box, cpu, app):
    """Visits while a program faults, on one CPU, and a little later."""
    box.opcontrol("--dump")
    before, begin = box.status()["visits"], time.monotonic()
    box.good("taskset", "-c", cpu, app, "faults", FAULTS)
    while time.monotonic() - begin < PATIENCE and box.status()["visits"] == before:
        time.sleep(0.05)
    visits = box.status()["visits"] - before
    return visits


def case(box, cpu, what, is_woken, **keys):
    box.configure(VisitInterval="10000", RingSize="32M", SidebandSize="32M", **keys)  # other programs do not fill them
    box.start_daemon("--event=page-faults:1", "--separate=none")
    app = box.copy_work("wake-app")
    time.sleep(1)
    seen = [visits_of(box, cpu, app) for _ in range(3)]
    print("%s: %s visits" % (what, seen))
    if is_woken:
        require(all(seen), "%s: nobody woke opd: %s visits" % (what, seen))
    else:
        require(not all(seen), "%s: opd is woken each time: %s visits" % (what, seen))
    box.opcontrol("--stop")
    box.check_ledger(not_sampled=1 << 40, with_files=False)
    box.shutdown()


def test(box):
    cpu = min(os.sched_getaffinity(0))
    case(box, cpu, "neither", False)
    case(box, cpu, "Watermark=16K", True, Watermark="16K")
    case(box, cpu, "WakeupRecords=1000", True, WakeupRecords=1000)
    case(box, cpu, "WakeupRecords=1000000", False, WakeupRecords=1000000)


if __name__ == "__main__":
    opdtest.run(test)
