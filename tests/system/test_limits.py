#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Programs that try to make opd and its session grow. Storms of threads in a session that is separated
by thread: MaxSampleFiles= and SessionMaxUse= hold, also after a restart, no sample is lost by it,
and what is kept less apart is counted. Only samples of this test's programs are kept there: other
programs take no files. A process that executes from 10^5 files of different names, and one that
maps and unmaps code 10^6 times (less in emulation, where that takes an hour): opd's memory and disk
stay small, the ledger holds to the sample, the profile of others is right, also of those that live
for 10 ms, and what was held back is counted.

usage: test_limits.py [--long]: with a session that is closed before its time as well
"""
import os
import re
import shutil
import subprocess
import sys

import elfsyms
import faultload
import opdtest
from clock_oracle import ClockOracle
from opdtest import require

FAULTS = "--event=page-faults:1"
BY_THREAD = "--separate=library,kernel,thread"
PAGES = 3
RATE, MS, SHORT_MS = 1000, 1500, 200
MAX_FILES = 1200
NR_IMAGES = 1500
MAX_USE = 12 << 20
HELD_USE = 8 << 20
NR_GROWING = 8
TIME_NAME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(-\d\d)?$")

PERIOD_NS = 197000
TIMER = "--event=TIMER:%d" % PERIOD_NS
MAX_IMAGES = 400
NR_NAMES = 30000 if opdtest.is_emulated() else 100000
NR_MAPS = 100000 if opdtest.is_emulated() else 1000000
GROWTH_BYTES = 24 << 20
DISK_BYTES = 64 << 20
POINTS = 4.0
OF_ORACLE = 0.97  # of the samples that another timer had of the same functions
LOST_SHARE = 0.001
SIDEBAND_SHARE = 0.1
LAST_NS = 500000000
SIDEBAND_SIZES = ("auto", "4M", "16M", "64M")


def sample_files(box, session="current"):
    """Paths of the files in the session's directory, sorted."""
    top = os.path.join(box.session, "samples", session)
    return sorted(os.path.join(d, f) for part in ("{root}", "{kern}", "cgroup") for d, _,
                  files in os.walk(os.path.join(top, part)) for f in files)


def disk_bytes(path):
    return int(subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True, check=False, text=True).stdout.split()[0])


def storm(box, path, ms=MS):
    """Threads that touch their pages; how many pages."""
    child = box.start_piped(path, "threads", RATE, ms, PAGES)
    out, _ = child.communicate(timeout=opdtest.CALL_SECONDS)
    require(child.returncode == 0, "the storm failed")
    return int(out.split()[0])


def start(box, *setup):
    """A daemon, and a second opinion of the page faults while it runs."""
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*setup)
    return oracle


def only(*programs):
    """opd keeps the samples of these programs."""
    return "--image=" + ",".join(programs)


def settled_status(box, oracle, first=True):
    """first: the session has nothing of an earlier daemon."""
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger(with_files=first, not_sampled=oracle.not_sampled())
    for event in status["events"]:
        losses = {k: v for k, v in event.items() if k.startswith("lost_") and k != "lost_kernel" and v}
        require(not losses, "samples were lost: %s" % losses)
    files = sample_files(box)
    require(status["nr_session_files"] == len(files), "%d sample files, the status says %d" % (len(files),
            status["nr_session_files"]))
    return status


def touched(box, path):
    """Page faults in touch_pages' image, over all files, and over those that have no thread."""
    mine = [f for f in box.files() if f.name.image[1] == path]
    return sum(f.total for f in mine), sum(f.total for f in mine if f.name.tid is None)


def check_threads(box, path):
    box.configure(MaxSampleFiles=MAX_FILES, RingSize="8M", SidebandSize="8M")
    oracle = start(box, FAULTS, BY_THREAD, only(path))
    truth, is_merging = 0, False
    while not is_merging:  # the last storm begins behind the limit
        status = box.status()
        is_merging = status["classes_merged"] > 0
        require(status["nr_session_files"] <= MAX_FILES, "%(nr_session_files)d files" % status)
        truth += storm(box, path)
    status = settled_status(box, oracle)
    total, merged = touched(box, path)
    lost = status["events"][0]["lost_kernel"]
    print("%d files of at most %d, classes_merged %d, %d pages touched, %d samples in the program, %d of them merged, "
          "%d lost by the kernel" % (
        status["nr_session_files"], MAX_FILES, status["classes_merged"], truth, total, merged, lost))
    require(MAX_FILES * 3 // 4 <= status["nr_session_files"] <= MAX_FILES, "%d files" % status["nr_session_files"])
    require(status["classes_merged"] > 0 and status["too_many_sample_files"] == 0, "classes_merged %d, too_many_sample_files %d" % (
        status["classes_merged"], status["too_many_sample_files"]))
    require(0 < merged <= status["classes_merged"], "%d samples are merged, %d counted" % (merged, status["classes_merged"]))
    require(total + lost >= truth, "%d samples of %d" % (total, truth))
    require("classes_merged" in box.opcontrol("--status"), "--status does not show classes_merged")
    shown = box.opreport("--merge=tgid", "-n", "-f", "image:" + path, "lib-image:" + path)
    require(sum(int(line.split()[0]) for line in shown.splitlines() if not line.startswith("\t")) == total,
            "opreport --merge=tgid: %s, the files have %d" % (shown, total))
    box.shutdown()
    return sample_files(box)


def check_held(box, path):
    """A session that is never closed by time gets no more files when it takes all the space of the
    sessions, and its files do not grow.
    """
    box.configure(SessionMaxUse=HELD_USE, RingSize="8M", SidebandSize="8M")
    growing = ["%s/growing-%d" % (box.dir, i) for i in range(NR_GROWING)]
    oracle = start(box, FAULTS, BY_THREAD, only(path, *growing))
    opdtest.wait_until(lambda: storm(box, path) and box.status()["classes_merged"], opdtest.HANG_SECONDS,
                       "the session gets more and more files")
    growing = faultload.Growing(box, "growing", NR_GROWING)
    for _ in growing.SITES[1:]:
        growing.grow()
    status = settled_status(box, oracle)
    used = disk_bytes(os.path.join(box.session, "samples"))
    require(status["too_many_sample_files"], "every file grew")
    print("without SessionInterval: %d files, %d KiB of %d" % (status["nr_session_files"], used >> 10, HELD_USE >> 10))
    require(HELD_USE * 7 // 8 < used <= HELD_USE, "the session takes %d bytes" % used)
    require(os.listdir(os.path.join(box.session, "samples")) == ["current"], "a session was closed")
    box.shutdown()
    shutil.rmtree(box.session)


def rotated(box):
    return sorted(name for name in os.listdir(os.path.join(box.session, "samples")) if name != "current")


def check_early(box, path):
    """The current session is closed when it takes a quarter of what all may, and the oldest go.

    A short storm writes less than a quarter, and nobody else's samples count. The next one begins
    when the session is closed, so no session is larger because opd had no CPU to look at it.
    """
    box.configure(SessionInterval="365d", SessionMaxUse=MAX_USE, SessionKeepFree="0", RingSize="8M", SidebandSize="8M")
    box.start_daemon(FAULTS, BY_THREAD, only(path))
    samples = os.path.join(box.session, "samples")
    current = os.path.join(samples, "current")

    def removes_one():
        storm(box, path, SHORT_MS)
        opdtest.wait_until(lambda: disk_bytes(current) <= MAX_USE // 4, opdtest.HANG_SECONDS, "the current session stays open")
        return "is removed" in box.log_text()

    opdtest.wait_until(removes_one, opdtest.HANG_SECONDS, "the oldest session stays")
    box.opcontrol("--stop")
    opdtest.wait_until(lambda: disk_bytes(samples) <= MAX_USE * 5 // 4, opdtest.HANG_SECONDS,
                       "the sessions take %d bytes" % disk_bytes(samples))
    box.shutdown()
    closed = rotated(box)
    print("%d sessions closed before their time are left; %d KiB of %d" % (len(closed), disk_bytes(samples) >> 10, MAX_USE >> 10))
    require(closed and all(TIME_NAME.match(name) for name in closed), "sessions: %s" % closed)
    for name in closed:
        require(sample_files(box, name), "%s is empty" % name)
    shutil.rmtree(box.session)


def resident_bytes(box, status):
    """Of opd without its rings, which some kernels count."""
    with open("/proc/%d/smaps" % box.lock_pid(), encoding="utf-8") as stream:
        rings = re.findall(r"perf_event\]\n(?:.*\n)*?Rss: +(\d+) kB", stream.read())
    return status["rss_bytes"] - sum(map(int, rings)) * 1024


def check_growth(before, after, status, what):
    print("%s: resident %d KiB before, %d KiB after; %d images known, %d with samples" % (
        what, before >> 10, after >> 10, status["nr_images"], status["nr_images_counted"]))
    require(after - before <= GROWTH_BYTES, "%s: opd grew by %d bytes" % (what, after - before))


def hot_functions(path):
    return elfsyms.symbol_ranges(path, ("hot_a", "hot_b"))


def hot_counts(box, path):
    """The samples of a program in its own functions."""
    ranges = hot_functions(path)
    counts = dict.fromkeys(ranges, 0)
    for sample_file in box.files():
        if sample_file.name.image[1] == path and sample_file.name.app[1] == path:
            for name, (start, end) in ranges.items():
                counts[name] += sum(n for key, n in sample_file.keys.items() if start <= key < end)
    return counts


def run_beside(box, path, milliseconds, *crowd):
    """The crowd, and others as long as it lasts, one after the other, each with so much CPU time.
    Returns the times of the others in hot_a and hot_b, and the samples that another timer had there.
    """
    times, pids = [0, 0], set()
    with open(os.path.join(box.dir, "crowd.out"), "wb") as out, ClockOracle(PERIOD_NS) as oracle:
        child = box.start(box.crowd, *crowd, stdout=out)
        while child.poll() is None:
            other = box.start_piped(path, "shares", milliseconds)
            words = other.communicate(timeout=opdtest.CALL_SECONDS)[0].split()
            require(other.returncode == 0, "one of the others ended with %d" % other.returncode)
            box.children.remove(other)
            pids.add(other.pid)
            times = [a + int(b) for a, b in zip(times, words)]
    require(child.returncode == 0, "crowd failed")
    return times, oracle.nr_in(pids, hot_functions(path).values())


def check_others(box, path, spent, seen, event):
    """The others have the samples that another timer had of them, but not more than their CPU time,
    and three quarters of them in hot_a.
    """
    counts = hot_counts(box, path)
    total, expected = sum(counts.values()), sum(spent) / PERIOD_NS
    print("the others: %s of %d samples; another timer had %d; %d of %d lost by the kernel" % (
        counts, expected, seen, event["lost_kernel"], event["taken"]))
    require(event["lost_kernel"] <= LOST_SHARE * event["taken"],
            "%d of %d samples were lost by the kernel" % (event["lost_kernel"], event["taken"]))
    require(seen and total >= OF_ORACLE * seen, "the others have %d samples, another timer had %d" % (total, seen))
    require(total <= 1.1 * expected, "the others have %d samples of %d" % (total, expected))
    share = 100.0 * counts["hot_a"] / total
    require(abs(share - 100.0 * spent[0] / sum(spent)) <= POINTS, "hot_a has %.2f %% of the others" % share)


def check_restart(box, path, before):
    """The next daemon counts the files that are there, knows them again, and adds no thread to
    them.
    """
    oracle = start(box, FAULTS, BY_THREAD, only(path, box.crowd))
    nr = box.status()["nr_session_files"]
    box.opcontrol("--dump")
    now = len(sample_files(box))
    require(len(before) <= nr <= now, "%d files, then %d, and %s when it has begun" % (len(before), now, nr))
    storm(box, path)
    box.opcontrol("--dump")
    more = [f for f in sample_files(box) if f not in before]
    require(all(f.endswith(".all.all.all") for f in more), "after the restart: %s" % more)
    require(box.status()["classes_merged"] > 0, "nothing is merged after the restart")
    return oracle


def in_too_many(box):
    return sum(f.total for f in box.files() if "/too-many-images" in (f.name.app[1], f.name.image[1]))


def check_images(box, oracle):
    """New images until no file is left; then one file has them, and the reports show it."""
    box.good(box.crowd, "names", box.dir, NR_IMAGES)
    status = settled_status(box, oracle, first=False)
    nr = status["nr_session_files"]
    print("%d files of at most %d, too_many_sample_files %d" % (nr, MAX_FILES, status["too_many_sample_files"]))
    require(nr == MAX_FILES, "%d files" % nr)
    require(in_too_many(box) == status["too_many_sample_files"] > 0,
            "too_many_sample_files %d, the files have %d" % (status["too_many_sample_files"], in_too_many(box)))
    require("too-many-images" in box.opreport("--images"), "opreport --images does not show too-many-images")
    shown = sum(int(line.split()[0]) for line in box.opreport("-n", "-f", "--merge=tgid").splitlines() if not line.startswith("\t"))
    require(shown == sum(f.total for f in box.files()), "opreport shows %d samples" % shown)
    box.opcontrol("--reset")
    require(box.status()["nr_session_files"] == 0, "--reset leaves %d files" % box.status()["nr_session_files"])
    box.shutdown()
    shutil.rmtree(box.session)


def check_names(box, other):
    """New images until opd knows no more. The others are known before the crowd takes the room."""
    box.configure(MaxImages=MAX_IMAGES, RingSize="16M")
    box.start_daemon(TIMER, "--separate=library,kernel", "--image=all")
    box.good(other, "shares", 10)
    box.opcontrol("--dump")
    before = resident_bytes(box, box.status())
    spent, seen = run_beside(box, other, 1000, "names", box.dir, NR_NAMES)
    after = resident_bytes(box, box.status())
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_growth(before, after, status, "%d names" % NR_NAMES)
    check_others(box, other, spent, seen, status["events"][0])
    for counter in ("too_many_images", "images_forgotten"):
        print("%s: %d" % (counter, status[counter]))
        require(status[counter] > 0, "%s is 0" % counter)
    require(status["nr_images"] < 20000, "%d images are known" % status["nr_images"])
    require(in_too_many(box) == status["too_many_images"], "%d samples under too-many-images, %d counted" % (
        in_too_many(box), status["too_many_images"]))
    names = {f.name.image for f in box.files()} | {f.name.app for f in box.files()}
    files = [name for name in names if name[0] == "root" or "crowd" in str(name)]
    require(len(files) <= MAX_IMAGES + 10, "%d images in the session" % len(files))
    used = disk_bytes(box.session)
    print("the session takes %d KiB of disk" % (used >> 10))
    require(used <= DISK_BYTES, "the session takes %d bytes of disk" % used)
    shown = box.opcontrol("--status")
    require("too_many_images: %d" % status["too_many_images"] in shown,
            "opcontrol --status does not show too_many_images: %s" % shown)
    require("too-many-images" in box.opreport("--images"), "opreport --images does not show too-many-images")
    box.check_agreement()
    box.opcontrol("--reset")
    box.shutdown()


def check_last(box):
    """What the crowd ran in the end, in a mapping that was one too many."""
    counts = [sum(f.total for f in box.files() if f.name.image[1].endswith("/crowd-map-%d" % i)) for i in (0, 1)]
    print("samples in the files of the crowd: %s of %d" % (counts, LAST_NS / PERIOD_NS))
    require(counts[0] >= 0.9 * LAST_NS / PERIOD_NS, "the crowd has %d samples in the file that it ran" % counts[0])


def try_maps(box, other, sideband, last):
    """False: the machine was so busy that side-band records were lost, and with them the processes
    of the others. The test then runs again with a larger ring.
    """
    directory = os.path.join(box.dir, "maps-" + sideband)
    os.mkdir(directory)
    box.configure(RingSize="16M", SidebandSize=sideband)
    box.start_daemon(TIMER)
    box.good(other, "shares", 10)
    box.opcontrol("--dump")
    before = resident_bytes(box, box.status())
    spent, seen = run_beside(box, other, 10, "maps", directory, NR_MAPS)
    after = resident_bytes(box, box.status())
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    nr_lost = sum(cpu["sideband_lost"] for cpu in status["cpus"])
    print("SidebandSize=%s: mappings_dropped: %d, side-band records lost: %d" % (sideband, status["mappings_dropped"], nr_lost))
    is_good = not nr_lost or (nr_lost <= SIDEBAND_SHARE * NR_MAPS and sum(hot_counts(box, other).values()) >= OF_ORACLE * seen)
    if last or is_good:
        check_growth(before, after, status, "%d mappings" % NR_MAPS)
        check_others(box, other, spent, seen, status["events"][0])
        check_last(box)
        require(status["mappings_dropped"] > 0, "no mapping was dropped")
        require(nr_lost <= SIDEBAND_SHARE * NR_MAPS, "%d side-band records were lost" % nr_lost)
    box.opcontrol("--reset")
    box.shutdown()
    return is_good


def check_maps(box, other):
    require(any(try_maps(box, other, size, size == SIDEBAND_SIZES[-1]) for size in SIDEBAND_SIZES), "nothing was tried")


def test(box):
    path, other = box.copy_work("threads-app", "storm"), box.copy_work("other-app")
    check_held(box, path)
    if "--long" in sys.argv[1:]:
        check_early(box, path)
    before = check_threads(box, path)
    check_images(box, check_restart(box, path, before))
    check_names(box, other)
    check_maps(box, other)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
