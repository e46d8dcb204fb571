#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A process that executes from 10^5 files of different names, and one that maps and unmaps code 10^6 times: opd's memory and disk stay small, the
ledger holds to the sample, another process's profile is right, and what was held back is counted.
"""
import os

import elfsyms
import opdtest
from opdtest import require

PERIOD_NS = 200000
MAX_IMAGES = 400
NR_NAMES = 100000
NR_MAPS = 1000000
GROWTH_BYTES = 24 << 20
DISK_BYTES = 64 << 20
POINTS = 4.0


def disk_bytes(directory):
    """What the files and directories below take on the disk."""
    total = 0
    for path, _, names in os.walk(directory):
        total += sum(os.lstat(os.path.join(path, name)).st_blocks * 512 for name in names + ["."])
    return total


def check_growth(before, status, what):
    grown = status["rss_bytes"] - before["rss_bytes"]
    print("%s: resident %d KiB before, %d KiB after; %d images known, %d with samples" % (
        what, before["rss_bytes"] >> 10, status["rss_bytes"] >> 10, status["nr_images"], status["nr_images_counted"]))
    require(grown <= GROWTH_BYTES, "%s: opd grew by %d bytes" % (what, grown))


def check_other(box, path, spent, event):
    """The other process: three quarters of its samples in hot_a, and as many as its CPU time has room for; full rings may have taken some."""
    ranges = elfsyms.symbol_ranges(path, ("hot_a", "hot_b"))
    counts = dict.fromkeys(ranges, 0)
    for sample_file in box.files():
        if sample_file.name.image[1] == path and sample_file.name.app[1] == path:
            for name, (start, end) in ranges.items():
                counts[name] += sum(n for key, n in sample_file.keys.items() if start <= key < end)
    total, expected = sum(counts.values()), sum(spent) / PERIOD_NS
    print("the other process: %s of about %d samples" % (counts, expected))
    require(0.75 * expected <= total + event["lost_kernel"] and total <= 1.1 * expected, "the other process has %d samples, about %d expected" % (total, expected))
    share = 100.0 * counts["hot_a"] / total
    require(abs(share - 100.0 * spent[0] / sum(spent)) <= POINTS, "hot_a has %.2f %% of the other process" % share)


def run_beside(box, path, *crowd):
    """
    The crowd, and the other process as long as it lasts: the other's times in hot_a and hot_b. It is known before the crowd begins, which has
    as many images as there is room for within a moment.
    """
    times = [int(n) for n in box.good(path, "shares", 200).split()]
    box.opcontrol("--dump")
    with open(os.path.join(box.dir, "crowd.out"), "wb") as out:
        child = box.start(box.crowd, *crowd, stdout=out)
    while child.poll() is None:
        more = [int(n) for n in box.good(path, "shares", 1000).split()]
        times = [a + b for a, b in zip(times, more)]
    require(child.returncode == 0, "crowd failed")
    return times


def too_many_samples(box):
    return sum(f.total for f in box.files() if "/too-many-images" in (f.name.app[1], f.name.image[1]))


def check_names(box, path):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.good(path, "shares", 200)
    box.opcontrol("--reset")
    before = box.status()
    spent = run_beside(box, path, "names", box.dir, NR_NAMES)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_growth(before, status, "10^5 names")
    check_other(box, path, spent, status["events"][0])
    for counter in ("too_many_images", "images_forgotten"):
        print("%s: %d" % (counter, status[counter]))
        require(status[counter] > 0, "%s is 0" % counter)
    require(status["nr_images"] < 20000, "%d images are known" % status["nr_images"])
    require(too_many_samples(box) == status["too_many_images"], "%d samples under too-many-images, %d counted" % (
        too_many_samples(box), status["too_many_images"]))
    names = {f.name.image for f in box.files()} | {f.name.app for f in box.files()}
    files = [name for name in names if name[0] == "root" or "crowd" in str(name)]
    require(len(files) <= MAX_IMAGES + 10, "%d images in the session" % len(files))
    used = disk_bytes(box.session)
    print("the session takes %d KiB of disk" % (used >> 10))
    require(used <= DISK_BYTES, "the session takes %d bytes of disk" % used)
    shown = box.opcontrol("--status")
    require("too_many_images: %d" % status["too_many_images"] in shown, "opcontrol --status does not show too_many_images: %s" % shown)
    require("too-many-images" in box.opreport("--images"), "opreport --images does not show too-many-images")
    box.check_agreement()
    box.shutdown()


def check_maps(box, path):
    box.configure(RingSize="1M")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.opcontrol("--reset")
    before = box.status()
    spent = run_beside(box, path, "maps", box.dir, NR_MAPS)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_growth(before, status, "10^6 mappings")
    check_other(box, path, spent, status["events"][0])
    sideband_lost = sum(cpu["sideband_lost"] for cpu in status["cpus"])
    print("mappings_dropped: %d, side-band records lost: %d" % (status["mappings_dropped"], sideband_lost))
    require(status["mappings_dropped"] > 0 or sideband_lost > 0, "no mapping was dropped")
    box.shutdown()


def test(box):
    path = box.copy_work("other-app")
    box.configure(MaxImages=MAX_IMAGES, RingSize="1M")
    check_names(box, path)
    check_maps(box, path)


if __name__ == "__main__":
    opdtest.run(test)
