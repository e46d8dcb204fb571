#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What --dump promises, and what waits for the disk. The daemon runs on a disk that remembers what was synced (faultshim.c): right after a
dump the power is cut, and all that was taken before the call is there. And while the disk does not answer, samples are counted.
"""
import errno
import os
import shutil
import signal

import faultload
import opdtest
from opdtest import reader, require

FAULTS = 2000


def counts(files):
    return {(f.path, key): count for f in files for key, count in f.keys.items()}


def read_what_is_whole(session):
    """The files; one that was made after the dump began may be there by its name only."""
    base, files, nr_empty = os.path.join(session, "samples", "current"), [], 0
    for path in reader.list_files(base):
        with open(os.path.join(base, path), "rb") as stream:
            data = stream.read()
        if not data:
            nr_empty += 1
            continue
        header, keys, nr_nodes = reader.parse_samples(path, data, check_links=False)
        files.append(reader.SampleFile(path, reader.parse_name(path), header, keys, nr_nodes))
    return files, nr_empty


def inodes(session):
    base = os.path.join(session, "samples", "current")
    return {path: os.stat(os.path.join(base, path)).st_ino for path in reader.list_files(base)}


def dump_then_cut(box, shim, number):
    app = box.copy_work("dumped-%d" % number)
    lost_before = box.status()["events"][0]["lost_kernel"]
    box.good(app, "faults", FAULTS)
    as_before, before = inodes(box.session), counts(box.files(live=True))
    box.opcontrol("--dump")
    after = os.path.join(box.dir, "after-the-cut-%d" % number)
    shim.cut_power(box.session, after)
    now = inodes(box.session)
    # A file that grows just then takes the place of the one that was written: what holds for these is in test_fault_rotate.
    grown = {path for path, inode in as_before.items() if now.get(path) != inode}
    require(not any(app in path for path in grown), "the file of %s has grown" % app)
    files, nr_empty = read_what_is_whole(after)
    found = counts(files)
    for what, count in before.items():
        if what[0] in grown:
            continue
        require(found.get(what, 0) >= count, "%s: key 0x%x: %d before the dump, %d after the cut" % (*what, count, found.get(what, 0)))
    of_app = sum(f.total for f in files if f.name.app[1] == app and f.name.event == "page-faults")
    lost = box.status()["events"][0]["lost_kernel"] - lost_before
    print("cut %d: %d files, %d that grew meanwhile, %d more by name only, %d samples; of %d faults just before the dump %d are there" %
          (number, len(files), len(grown), nr_empty, sum(found.values()), FAULTS, of_app))
    require(of_app + lost >= FAULTS, "%d faults before the dump, %d after the cut" % (FAULTS, of_app))
    return after, found


def links(box):
    return [name for name in os.listdir(os.path.join(box.session, "tmp")) if ".for-" in name]


def total_of(box, app):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == app)


def counts_while_the_disk_is_held(box, shim):
    """Files that a dump has promised grow: they wait for the disk, the samples do not."""
    growing = faultload.Growing(box, "growing")
    box.opcontrol("--dump")
    shim.say("hold")
    faultload.start_busy(box)
    growing.grow()
    opdtest.wait_until(lambda: links(box), 60, "no file grew")
    for i in range(3):
        app = box.copy_work("unhindered-%d" % i)
        box.good(app, "faults", FAULTS)
        opdtest.wait_until(lambda name=app: total_of(box, name) > 0, 60, "nothing is counted while the disk is held")
    waiting = links(box)
    require(waiting, "what had to wait for the disk did not")
    shim.say()
    opdtest.wait_until(lambda: not set(links(box)) & set(waiting), 60, "%s are left when the disk answers again" % waiting)
    print("%d files waited for the disk" % len(waiting))


def starts_after_the_cut(box, after, found):
    """The next daemon on what the disk had: every reader takes the session, and all that was there is there."""
    shutil.rmtree(box.session)
    shutil.copytree(after, box.session)
    box.start_daemon(start=False)
    require("did not end in order" in box.log_text(), "the session was not looked at: %s" % box.log_text())
    have = counts(box.files())
    require(have == found, "the start changed what was there: %s" % sorted(set(have.items()) ^ set(found.items()))[:5])
    box.opreport("-n", "-f")
    box.shutdown()


def stop_that_cannot_write(box, shim):
    """The daemon says so with its exit code and keeps the lock; also when opcontrol removes that, the next one looks at the session."""
    for removed in (False, True):
        box.start_daemon(env=shim.env)
        box.good(box.copy_work("unwritten-%d" % removed), "faults", FAULTS)
        shim.say("fail fsync %d samples/current" % errno.EIO, "fail syncfs %d" % errno.EIO)
        box.daemon.send_signal(signal.SIGTERM)
        code = box.daemon.wait(opdtest.START_SECONDS)
        require(code == 2, "a stop that cannot write ends with %s" % code)
        last = box.log_text().splitlines()[-1]
        require("the lock stays" in last and os.strerror(errno.EIO) in last, "the log says %s" % last)
        require(os.path.exists(os.path.join(box.session, "lock")), "the lock is gone")
        shim.say()
        if removed:
            box.opcontrol("--status")
            require(not os.path.exists(os.path.join(box.session, "lock")), "opcontrol left the stale lock")
        with open(os.path.join(box.session, "tmp", "dcookies-closed-7"), "wb"):
            pass  # of a write-out that a kill has ended: the start removes it
        looks = box.log_text().count("did not end in order")
        box.start_daemon(start=False)
        require(box.log_text().count("did not end in order") == looks + 1, "the session was not looked at: %s" % box.log_text())
        box.shutdown()


def test(box):
    shim = faultload.Shim(box)
    box.start_daemon("--event=page-faults:1", "--event=TIMER:1000000", "--separate=library,kernel", env=shim.env)
    for i in range(5):
        dump_then_cut(box, shim, i)
    counts_while_the_disk_is_held(box, shim)
    after, found = dump_then_cut(box, shim, 5)
    box.shutdown()
    stop_that_cannot_write(box, shim)
    starts_after_the_cut(box, after, found)


if __name__ == "__main__":
    opdtest.run(test)
