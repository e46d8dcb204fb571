#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Storms of threads in a session that is separated by thread: MaxSampleFiles= and SessionMaxUse= hold
for the current session, also after a restart, no sample
is lost by it, and what is kept less apart is counted. usage: test_limits.py [--long]: with a
session that is closed before its time as well
"""
import os
import re
import shutil
import subprocess
import sys

import faultload
import opdtest
from opdtest import require

EVENT = "page-faults:1"
PAGES = 3
RATE, MS, SHORT_MS = 1000, 1500, 200
MAX_FILES = 1200
MAX_USE = 12 << 20
HELD_USE = 8 << 20
NR_GROWING = 8
NR_NAMES = 1500
TIME_NAME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(-\d\d)?$")


def program(box, name):
    return os.path.join(os.path.dirname(box.work), name)


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
    oracle = start(box, "--event=" + EVENT, "--separate=library,kernel,thread")
    truth, is_merging = 0, False
    while not is_merging:  # the last storm begins behind the limit, which others may reach, too
        is_merging = box.status()["classes_merged"] > 0
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


def check_restart(box, path, before):
    """The next daemon counts the files that are there, knows them again, and adds no thread to
    them.
    """
    oracle = start(box)
    nr = box.status()["nr_session_files"]
    box.opcontrol("--dump")
    now = len(sample_files(box))  # others run meanwhile
    require(len(before) <= nr <= now, "%d files, then %d, and %s when it has begun" % (len(before), now, nr))
    storm(box, path)
    status = settled_status(box, oracle, first=False)
    more = [f for f in sample_files(box) if f not in before]
    require(all(f.endswith(".all.all.all") for f in more), "after the restart: %s" % more)
    require(status["classes_merged"] > 0, "nothing is merged after the restart")
    box.shutdown()


def check_images(box):
    """New images until no file is left; then one file has them, and the reports show it."""
    before = sum(f.total for f in box.files() if f.name.image[1] == "/too-many-images")
    oracle = start(box)
    child = box.start(box.crowd, "names", box.dir, NR_NAMES, stdout=subprocess.DEVNULL)
    require(child.wait() == 0, "crowd failed")
    status = settled_status(box, oracle, first=False)
    nr = status["nr_session_files"]
    print("%d files of at most %d, too_many_sample_files %d" % (nr, MAX_FILES, status["too_many_sample_files"]))
    require(nr == MAX_FILES, "%d files" % nr)
    there = sum(f.total for f in box.files() if f.name.image[1] == "/too-many-images") - before
    require(there == status["too_many_sample_files"] > 0,
            "too_many_sample_files %d, the files have %d" % (status["too_many_sample_files"], there))
    require("too-many-images" in box.opreport("--images"), "opreport --images does not show too-many-images")
    shown = sum(int(line.split()[0]) for line in box.opreport("-n", "-f", "--merge=tgid").splitlines() if not line.startswith("\t"))
    require(shown == sum(f.total for f in box.files()), "opreport shows %d samples" % shown)
    box.opcontrol("--reset")
    require(box.status()["nr_session_files"] == 0, "--reset leaves %d files" % box.status()["nr_session_files"])
    box.shutdown()
    shutil.rmtree(box.session)


def check_held(box, path):
    """A session that is never closed by time gets no more files when it takes all the space of the
    sessions, and its files do not grow.
    """
    box.configure(SessionMaxUse=HELD_USE, RingSize="8M", SidebandSize="8M")
    oracle = start(box, "--event=" + EVENT, "--separate=library,kernel,thread")
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
    box.start_daemon("--event=" + EVENT, "--separate=library,kernel,thread", "--image=" + path)
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


def test(box):
    path = os.path.join(box.dir, "threads-app")
    shutil.copy(program(box, "storm"), path)
    check_held(box, path)
    if "--long" in sys.argv[1:]:
        check_early(box, path)
    check_restart(box, path, check_threads(box, path))
    check_images(box)


if __name__ == "__main__":
    opdtest.run(test)
