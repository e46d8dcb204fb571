#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
All CPUs busy at 10 kHz for 20 s, or for as long as many swaps take: the ring pairs are swapped
again and again, nothing is lost, and the ledger is exact.
Where opd is so long without a CPU that the rings are full, which the ledger says, they are larger
the next time.
"""
import os
import time

import opdtest
from opdtest import require

SECONDS = 20
RATE = 10000
MIN_SWAPS = 100
RINGS = ("auto", "8M", "64M")
ENOUGH = 0.8 * RATE # samples in a second of a busy CPU
ALONE_SECONDS, SELDOM_MS = 4, 10000


def nr_swaps(status):
    return sum(cpu["swaps"] for cpu in status["cpus"])


def sample(box, seconds=SECONDS, least_swaps=MIN_SWAPS):
    """Until there were enough swaps; the seconds that all CPUs together were busy meanwhile."""
    workers = [box.busy_until_ended(box.copy_work("busy-app-%d" % cpu), cpu) for cpu in sorted(os.sched_getaffinity(0))]
    box.opcontrol("--start")
    before = opdtest.busy_seconds()
    time.sleep(seconds)
    opdtest.wait_until(lambda: nr_swaps(box.status()) >= least_swaps, opdtest.HANG_SECONDS, "there are no %d swaps" % least_swaps)
    spent = opdtest.busy_seconds() - before
    box.opcontrol("--stop")
    for worker in workers:
        box.end_busy(worker)
    return spent


def rate_without_swaps(box):
    """What the timer of this machine does while nothing is swapped. An emulated one is too slow."""
    box.configure(RingSize=RINGS[-1], VisitInterval=SELDOM_MS)
    box.start_daemon("--event=TIMER:%d" % (1000000000 // RATE), start=False)
    spent = sample(box, ALONE_SECONDS, 0)
    return box.status()["events"][0]["taken"] / spent


def test(box):
    for ring in RINGS:
        box.configure(RingSize=ring)
        box.start_daemon("--event=TIMER:%d" % (1000000000 // RATE), "--separate=library,kernel", start=False)
        spent = sample(box)
        status = box.check_ledger()
        event = status["events"][0]
        print("RingSize=%s: %d swaps, taken %d of %d, lost_kernel %d" % (ring, nr_swaps(status), event["taken"],
                spent * RATE, event["lost_kernel"]))
        if not event["lost_kernel"]:
            break
        require(ring != RINGS[-1], "lost_kernel is %d" % event["lost_kernel"])
        box.opcontrol("--reset")
        box.shutdown()
    if opdtest.sees_all_processes():
        require(event["unattributed"] <= event["stored"] // 1000, "%d samples unattributed" % event["unattributed"])
    box.check_agreement()
    box.shutdown()
    if event["taken"] < ENOUGH * spent:
        box.opcontrol("--reset")
        alone = rate_without_swaps(box)
        print("SKIP of the rate: %d samples in a second of a CPU, %d without swaps" % (event["taken"] / spent, alone))
        require(alone < ENOUGH, "%d samples, %d expected" % (event["taken"], spent * RATE))


if __name__ == "__main__":
    opdtest.run(test)
