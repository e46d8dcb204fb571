#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Pages of sample files that go away under the daemon. A foreign hand cuts a file short that is
counted in: opd lives, what is gone is counted and named, what
comes after it is stored. A disk fails to write: the kernel takes the pages for written and says so
once; the next --dump that says
all is well has written them, as the power cut right after it shows. So it is with the symbols of
JIT code.
"""
import errno
import os

import faultload
import opdtest
import test_jit
from opdtest import reader, require

FAULTS = 600
JIT_MS = 300
LEFT = (0, 76, 112)  # bytes of a file: nothing, no number of nodes, no node


def current(box, path):
    return os.path.join(box.session, "samples", "current", path)


def files_of(box, app):
    return [f for f in box.files(live=True) if f.name.app[1] == app]


def book_of(box):
    event = box.status()["events"][0]
    return event["stored"], event["lost_io_error"]


def cut_short(box, number, nr_bytes):
    """All files of a program; what they had is lost_io_error, and only that."""
    app = box.copy_work("short-%d" % number)
    box.work_until(lambda: files_of(box, app), "nothing is counted", app, "faults", FAULTS)
    box.opcontrol("--dump")
    before = {f.path: f.total for f in files_of(box, app)}
    lost_before = book_of(box)[1]
    for path in before:
        os.truncate(current(box, path), nr_bytes)

    def is_noticed():
        box.good(app, "faults", FAULTS)
        box.run(os.path.join(box.bin, "opcontrol"), "--dump")
        return book_of(box)[1] > lost_before
    opdtest.wait_until(is_noticed, opdtest.HANG_SECONDS, "a file of %d bytes is not noticed" % nr_bytes)
    # The next ones are told after a while, as a number of files.
    require(number or all(path in box.log_text() for path in before), "the log does not name what was cut: %s" % box.log_text())
    require(box.daemon.poll() is None, "opd died: %s" % box.log_text())
    print("%d files cut to %d bytes: %d samples of them lost" % (len(before), nr_bytes, book_of(box)[1] - lost_before))
    return sum(before.values())


def check(box, oracle):
    """The ledger has what the files have."""
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger(not_sampled=oracle.not_sampled())
    box.check_agreement()
    return status["events"][0]


# ---- a disk that fails ----


def counts(files):
    return {(f.path, key): count for f in files for key, count in f.keys.items()}


def disk_that_fails(box, shim, name, *faults):
    """Data that could not be written is on the disk when the next dump succeeds: the kernel alone
    does not try again.
    """
    app = box.copy_work(name)
    box.work_until(lambda: files_of(box, app), "nothing is counted", app, "faults", FAULTS)
    before = counts(box.files(live=True))
    shim.say(*faults)
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
    require(os.strerror(errno.EIO) in line, "the dump does not say why: %s" % line)
    shim.say()
    box.opcontrol("--dump")
    after = os.path.join(box.dir, name + "-after")
    shim.cut_power(box.session, after)
    found = counts(reader.read_session(after, live=True))
    missing = {what: (count, found.get(what, 0)) for what, count in before.items() if found.get(what, 0) < count}
    require(not missing, "%d of %d counts are not on the disk after a dump that said so: %s" % (len(missing),
            len(before), list(missing.items())[:3]))
    print("%s: %d counts on the disk" % (name, len(before)))


def syncer_that_fails(box, shim):
    """A file that grows is written separately. The next dump reports the error of that write, too.
    """
    growing = faultload.Growing(box, "settled")
    box.opcontrol("--dump")
    shim.say("fail fsync %d samples/current" % errno.EIO)
    growing.grow()
    opdtest.wait_until(lambda: "has grown to the disk" in box.log_text(), opdtest.HANG_SECONDS, "no file grew")
    shim.say()
    box.opcontrol("--dump")
    before = counts(box.files(live=True))
    box.opcontrol("--dump")
    after = os.path.join(box.dir, "settled-after")
    shim.cut_power(box.session, after)
    found = counts(reader.read_session(after, live=True))
    missing = [what for what, count in before.items() if found.get(what, 0) < count]
    require(not missing, "%d of %d counts are not on the disk: %s" % (len(missing), len(before), missing[:3]))


def objects_that_fail(box, shim):
    """The symbols of JIT code are on the disk when a dump after the failed one succeeds, whichever
    daemon made them.
    """
    box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel", env=shim.env)
    app = test_jit.work(box, "map", ms=JIT_MS)[0]
    shim.say("fail fsync %d .jo" % errno.EIO, "fail syncfs %d" % errno.EIO)
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
    require(os.strerror(errno.EIO) in line, "the dump does not say why: %s" % line)
    objects = test_jit.objects_of(box, app)
    require(objects, "no object was written")
    shim.say()
    box.opcontrol("--dump")
    after = os.path.join(box.dir, "objects-after")
    shim.cut_power(box.session, after)
    for path in objects:
        with open(path, "rb") as there, open(os.path.join(after, os.path.relpath(path, box.session)), "rb") as kept:
            require(there.read() == kept.read(), "%s is not on the disk after a dump that said so" % path)
    box.shutdown()


def disks(box):
    shim = faultload.Shim(box)
    box.session = os.path.join(box.tmpfs("volume", "size=200m"), "session")  # no inode twice
    box.configure()
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel", env=shim.env)
    disk_that_fails(box, shim, "each", "fail fsync %d {dep}" % errno.EIO, "fail syncfs %d" % errno.EIO)
    for number in range(70):
        box.good(box.copy_work("many-%d" % number), "faults", 10)
    disk_that_fails(box, shim, "together", "fail syncfs %d" % errno.EIO)
    syncer_that_fails(box, shim)
    box.opcontrol("--stop")
    box.check_ledger(not_sampled=1 << 40)
    box.opcontrol("--shutdown")
    box.daemon.wait(opdtest.START_SECONDS)
    box.start_daemon(start=False)  # what the syncer gave up is checked
    box.shutdown()
    objects_that_fail(box, shim)


def test(box):
    disks(box)
    box.session = os.path.join(box.dir, "session")
    box.configure()
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=none")
    total = sum(cut_short(box, number, nr_bytes) for number, nr_bytes in enumerate(LEFT))
    event = check(box, oracle)
    print("of %d samples %d are lost" % (total, event["lost_io_error"]))
    log = box.log_text()
    require("are gone from" in log and "damaged/" in log, "the log does not name the file: %s" % log)
    box.shutdown()


if __name__ == "__main__":
    try:
        opdtest.run(test)
    finally:
        test_jit.clean()
