#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A host that is full: real-time programs take nine tenths of each CPU, 40 workers share the rest, and
each program that they run is a new file. No flat sample is lost.
"""
import os
import sys

import opdtest
from opdtest import STACKS, require

NR_WORKERS = 40
SECONDS = 20
NEW_IMAGES_PER_MINUTE = 1000
# All of a CPU but for a tenth, in slices of 100 ms.
HOG = """import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    until = time.monotonic() + 0.09
    while time.monotonic() < until:
        pass
    time.sleep(0.01)
"""
# Each copy is a file of its own: a program once, and for as long as it takes to be sampled.
WORKER = """n=0
while [ ! -e stop ]; do
    n=$((n + 1))
    cp "$1" "$2.$n" && "./$2.$n" spin 3; rm -f "$2.$n"
    echo >> "$2.count"
done
"""


def hogs(box):
    return [box.start(sys.executable, "-c", HOG, cpu, SECONDS) for cpu in sorted(os.sched_getaffinity(0))]


def test(box):
    directory = os.path.join(box.dir, "crowded")
    os.mkdir(directory)
    box.start_daemon("--event=TIMER:997000", "--stacks=on")
    workers = [box.start("sh", "-c", 'cd "$3" && ' + WORKER, "sh", box.work, "w%d" % i, directory) for i in range(NR_WORKERS)]
    for child in hogs(box):
        require(child.wait(opdtest.HANG_SECONDS) == 0, "a real-time program ends with %s" % child.returncode)
    with open(os.path.join(directory, "stop"), "w", encoding="ascii"):
        pass
    for child in workers:
        child.wait(opdtest.HANG_SECONDS)
    nr_images = sum(os.path.getsize(os.path.join(directory, "w%d.count" % i)) for i in range(NR_WORKERS))
    box.opcontrol("--stop")
    status = box.check_ledger()
    flat, stacks = (next(e for e in status["events"] if (e["role"] == STACKS) == is_stacks) for is_stacks in (False, True))
    print("%d new images in %d s; %d of %d flat samples and %d of %d stacks are lost; the longest turn took %.1f s, "
          "%d questions had no answer" % (nr_images, SECONDS, flat["lost_kernel"], flat["taken"], stacks["lost_kernel"],
                                          stacks["taken"], status["turn_longest_ns"] / 1e9, status["looks_unanswered"]))
    require(nr_images * 60 >= NEW_IMAGES_PER_MINUTE * SECONDS, "too few new images: %d" % nr_images)
    require(flat["lost_kernel"] == 0, "%d flat samples are lost" % flat["lost_kernel"])
    box.check_agreement()


if __name__ == "__main__":
    opdtest.run(test)
