#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""All CPUs busy at 10 kHz for 20 s: the ring pairs are swapped again and again, nothing is lost, and the ledger is exact."""
import opdtest
from opdtest import require

SECONDS = 20
MIN_SWAPS = 100


def test(box):
    box.start_daemon("--event=TIMER:100000", "--separate=library,kernel", start=False)
    workers = box.busy_cpus(SECONDS + 0.5)
    box.opcontrol("--start")
    for worker in workers:
        require(worker.wait(SECONDS * 4) == 0, "a busy process failed")
    box.opcontrol("--stop")
    status = box.check_ledger()
    event = status["events"][0]
    swaps = sum(cpu["swaps"] for cpu in status["cpus"])
    print("%d CPUs, %d swaps, taken %d, lost_kernel %d" % (len(workers), swaps, event["taken"], event["lost_kernel"]))
    require(swaps >= MIN_SWAPS, "%d swaps" % swaps)
    require(event["lost_kernel"] == 0, "lost_kernel is %d" % event["lost_kernel"])
    expected = len(workers) * SECONDS * 10000
    require(event["taken"] >= 0.8 * expected, "%d samples, %d expected" % (event["taken"], expected))
    if opdtest.sees_all_processes():
        require(event["unattributed"] <= event["stored"] // 1000, "%d samples unattributed" % event["unattributed"])
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
