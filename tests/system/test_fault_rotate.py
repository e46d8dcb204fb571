#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A power cut while the disk is slow and a session is closed: what a dump had promised is in one of
the sessions afterwards, also what lay in files that grew
and had not been written, and every session can be read. What could not be written is written when
the disk takes it again. usage: test_fault_rotate.py [CUTS], default 2.
"""
import errno
import os
import shutil
import signal
import subprocess
import sys

import faultload
import opdtest
from opdtest import reader, require
from test_rotation import read_ledger

NR_WAITING = 2  # one is being written, another is behind it


def sessions_of(session):
    return sorted(os.listdir(os.path.join(session, "samples")))


def counts(session, names):
    """What sessions have together, by file and key."""
    sums = {}
    for name in names:
        for f in reader.read_session(session, session=name, live=True):
            for key, count in f.keys.items():
                sums[f.path, key] = sums.get((f.path, key), 0) + count
    return sums


def links(box):
    return [name for name in os.listdir(os.path.join(box.session, "tmp")) if ".for-" in name]


def close_session(box, name):
    """The call returns only after the disk answers. The session has its name at once."""
    saving = box.start(os.path.join(box.bin, "opcontrol"), "--save=" + name, stderr=subprocess.DEVNULL)
    opdtest.wait_until(lambda: name in sessions_of(box.session), opdtest.HANG_SECONDS, "the session is not closed")
    return saving


def check_session(box, name):
    """The session can be read and is no longer marked, and its ledger agrees with its files."""
    path = os.path.join(box.session, "samples", name)
    total = sum(f.total for f in reader.read_session(box.session, session=name, strict=True))
    if not total and name == "current" and not os.path.exists(os.path.join(path, "ledger")):
        return
    words, events = read_ledger(path)
    stored = sum(row["stored"] for row in events.values())
    require(not os.path.exists(os.path.join(path, "closing")), "%s is still marked" % name)
    require(total == stored, "%s: the files have %d, the ledger %d" % (name, total, stored))
    require(words["ended"] == ("stopped" if name == "current" else "saved"), "%s ended as %s" % (name, words["ended"]))
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, name)
    if stored:
        box.opreport("-n", "-f", "session:" + name)


def start_after_the_cut(session, names, promised):
    """The next daemon starts on the contents of the disk: the promised samples are in these
    sessions. Returns the sum of their samples.
    """
    box = opdtest.Box()
    try:
        box.session = session
        box.configure()
        os.unlink(os.path.join(session, "daemonrc"))  # opcontrol's, whose disk is another
        box.start_daemon(start=False)
        found = counts(session, names)
        for what, count in promised.items():
            require(found.get(what, 0) >= count, "%s: key 0x%x: %d promised, %d found" % (*what, count, found.get(what, 0)))
        box.shutdown()
        print("\n".join(line for line in box.log_text().splitlines() if "not a sample file" not in line))
        for name in sessions_of(session):
            check_session(box, name)
        links_left = [name for name in os.listdir(os.path.join(session, "tmp")) if "sample" in name]
        require(not links_left, "%s are left" % links_left)
        return found
    finally:
        box.close()


def cut(box, shim, number, promised):
    after = os.path.join(os.path.dirname(box.session), "after-the-cut-%d" % number)
    box.daemon.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "the daemon does not stop")
    shim.cut_power_of_data(box.session, after)
    box.daemon.send_signal(signal.SIGCONT)
    start_after_the_cut(after, ["cut-%d" % number, "current"], promised)
    shutil.rmtree(after)


def check_written_later(box, name, waiting):
    """The disk works again: the running daemon writes the rest and keeps nothing more of it."""
    mark = os.path.join(box.session, "samples", name, "closing")
    opdtest.wait_until(lambda: not os.path.exists(mark) and not waiting & set(links(box)), opdtest.HANG_SECONDS,
                       "%s is not written later" % name)
    opdtest.wait_until(lambda: box.status()["sessions_not_written"] == 0, opdtest.HANG_SECONDS, "the status still counts %s" % name)


def one_round(box, shim, number):
    """The disk is held, and a session that is closed now cannot be written; or the disk works
    again, and only the closed session has errors.
    """
    name = "cut-%d" % number
    growing = faultload.Growing(box, "growing-%d" % number, NR_WAITING)
    box.opcontrol("--dump")
    promised = counts(box.session, ["current"])
    box.opcontrol("--dump")
    shim.say("hold")
    growing.grow()
    opdtest.wait_until(lambda: len(links(box)) >= NR_WAITING, opdtest.HANG_SECONDS, "not enough files grew")
    waiting = set(links(box))
    saving = close_session(box, name)
    if number % 2:
        shim.say("fail fsync %d samples/%s" % (errno.EIO, name))
        require(saving.wait(opdtest.HANG_SECONDS) == 1, "a session that cannot be written is saved")
        require(box.status()["sessions_not_written"] == 1, "the status does not say it")
        require(waiting <= set(links(box)), "what a dump promised is not kept: %s" % (waiting - set(links(box))))
    cut(box, shim, number, promised)
    shim.say()
    saving.wait(opdtest.HANG_SECONDS)
    if number % 2:
        check_written_later(box, name, waiting)
    print("cut %d: %d counts promised, %d files waited for the disk, sessions %s" %
          (number, len(promised), len(waiting), sessions_of(box.session)))


def cuts(nr_cuts):
    def test(box):
        shim = faultload.Shim(box)
        box.session = os.path.join(box.tmpfs("volume", "size=400m"), "session")
        box.configure()
        box.start_daemon("--event=page-faults:1", "--separate=none", env=shim.env)
        for number in range(nr_cuts):
            one_round(box, shim, number)
        box.opcontrol("--dump")
        cut(box, shim, nr_cuts - 1, {})  # what was written later is on the disk
        box.opcontrol("--shutdown")
        box.daemon.wait(opdtest.START_SECONDS)
        box.start_daemon(start=False)  # on a disk without errors: what could not be written is looked at
        box.shutdown()
        for name in sessions_of(box.session):
            check_session(box, name)
    return test


if __name__ == "__main__":
    opdtest.run(cuts(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
