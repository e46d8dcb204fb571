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


def nr_swaps(status):
    return sum(cpu["swaps"] for cpu in status["cpus"])


def sample(box):
    """Until there were enough swaps; the seconds that all CPUs together were busy meanwhile.
    Profiling goes on.
    """
    workers = [box.busy_until_ended(box.copy_work("busy-app-%d" % cpu), cpu) for cpu in sorted(os.sched_getaffinity(0))]
    box.opcontrol("--start")
    before = opdtest.busy_seconds()
    time.sleep(SECONDS)
    opdtest.wait_until(lambda: nr_swaps(box.status()) >= MIN_SWAPS, opdtest.HANG_SECONDS, "there are no %d swaps" % MIN_SWAPS)
    spent = opdtest.busy_seconds() - before
    box.opcontrol("--stop")
    for worker in workers:
        box.end_busy(worker)
    return spent


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
    require(event["taken"] >= 0.8 * spent * RATE, "%d samples, %d expected" % (event["taken"], spent * RATE))
    if opdtest.sees_all_processes():
        require(event["unattributed"] <= event["stored"] // 1000, "%d samples unattributed" % event["unattributed"])
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
