#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A long run at 10 kHz per CPU under changing load: usage: long_soak.py [MINUTES], default 30.

Every half minute the ledger is checked, the files are read, and the daemon's memory is looked at:
nothing is lost, nothing
grows without end.
"""
import sys
import time

import opdtest
from opdtest import require

ROUND_SECONDS = 30
MAX_GROWTH = 1.25


def one_round(box, path):
    workers = box.busy_cpus(ROUND_SECONDS - 5)
    for _ in range(100):
        box.good(path, "spin", 5)
    box.good(path, "faults", 50000)
    for worker in workers:
        require(worker.wait() == 0, "a busy process failed")
        box.children.remove(worker)
    box.opcontrol("--stop")
    status = box.check_ledger()
    box.check_agreement()
    box.opcontrol("--start")
    return status


def soak(minutes):
    def test(box):
        path = box.copy_work("soak-app")
        box.start_daemon("--event=TIMER:100000", "--separate=library,kernel")
        end, rounds, first_rss = time.monotonic() + minutes * 60, 0, 0
        while time.monotonic() < end or rounds < 3:
            status, rounds = one_round(box, path), rounds + 1
            event = status["events"][0]
            print("round %d: taken %d, lost_kernel %d, rss %d KiB" %
                  (rounds, event["taken"], event["lost_kernel"], status["rss_bytes"] // 1024), flush=True)
            require(event["lost_kernel"] == 0, "lost_kernel is %d" % event["lost_kernel"])
            first_rss = status["rss_bytes"] if rounds == 3 else first_rss
        require(status["rss_bytes"] <= MAX_GROWTH * first_rss, "the daemon grew from %d to %d bytes" % (first_rss,
                status["rss_bytes"]))
        box.shutdown()
    return test


if __name__ == "__main__":
    opdtest.run(soak(float(sys.argv[1]) if len(sys.argv) > 1 else 30))
