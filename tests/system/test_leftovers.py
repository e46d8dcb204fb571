#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What a daemon finds that another one, oprofile's or somebody left: files that went while none ran, a
ledger of the stop before the last one beside a kill, files of
oprofile 0.9, a reset that cannot remove all. The ledger adds up after each, and says what the files
hold.
"""
import os
import shutil
import signal

import opdtest
from opdtest import require
from test_opcheck import SOUND, Copies, old_file, read, stored_and_lost, write

SETUP = ("--event=page-faults:1", "--separate=library,kernel")
FAULTS = 300


def current(box, *parts):
    return os.path.join(box.session, "samples", "current", *parts)


def in_files(box, app=None):
    return sum(f.total for f in box.files() if app is None or f.name.app[1] == app)


def end_in_order(box):
    """The daemon ends; its ledger adds up, and opcheck says so. Received, stored and lost."""
    box.shutdown()
    book = stored_and_lost(box.session)
    require(book[0] == book[1] + book[2] and book[1] == in_files(box),
            "received, stored, lost: %s, in the files %d" % (book, in_files(box)))
    Copies(box).opcheck(box.session, SOUND)
    return book


def removed_while_down(box, app):
    gone, before = in_files(box, app), stored_and_lost(box.session)
    require(gone >= FAULTS, "the program has %d samples" % gone)
    shutil.rmtree(current(box, "{root}" + app))
    box.start_daemon()
    box.opcontrol("--dump")
    received, _, lost = end_in_order(box)
    require(lost == before[2] + gone and received >= before[0], "%d are gone: %s, before %s" % (gone, (received, lost), before))
    require("in no file any more" in box.log_text(), "the log does not say so")


def killed_beside_an_old_ledger(box, app):
    """Its ledger said nothing else than the one before, as on a disk that was full."""
    old, before = read(current(box, "ledger")), in_files(box)
    require(b"ended\tstopped\n" in old, "of a daemon that ended in order: %s" % old)
    box.start_daemon()
    box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    write(current(box, "ledger"), old)
    left = in_files(box)
    require(left >= before + FAULTS, "%d samples before, %d after" % (before, left))
    Copies(box).opcheck(box.session, SOUND)
    box.start_daemon()
    require(end_in_order(box)[1] >= left, "samples are in no ledger")


def taken_over(box, app):
    """A session of oprofile 0.9 goes on with all that it has, and is none of it any more."""
    for name in ("dcookies", "ledger", "stats"):
        (shutil.rmtree if name == "stats" else os.unlink)(current(box, name))
    before, said = in_files(box), len(box.log_text())
    paths = [f.path for f in box.files()]
    for path in paths:
        write(current(box, path), old_file(read(current(box, path))))
    box.start_daemon()
    box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    received, stored, lost = end_in_order(box)
    require(stored >= before + FAULTS and received == stored and lost == 0,
            "%d samples before; received, stored, lost: %s" % (before, (received, stored, lost)))
    versions = {read(current(box, path))[4] for path in paths}
    require(versions == {0x13}, "versions of the files: %s" % versions)
    require("damaged/" not in box.log_text()[said:], "something was thrown out: %s" % box.log_text()[said:])


def reset_in_part(box, app):
    box.start_daemon()
    box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    stuck = current(box, "{root}" + app)
    directories = [where for where, _, _ in os.walk(stuck)]
    if box.run("chattr", "+i", *directories).rc:
        print("no file can be made immutable here: no reset that fails")
        return
    try:
        line = box.refused(os.path.join(box.bin, "opcontrol"), "--reset")
        require("{root}" + app in line and "not permitted" in line and "all other files are removed" in line
                and "lsattr" in line, "what stays is not told: %s" % line)
    finally:
        box.good("chattr", "-i", *directories)
    require(all(os.listdir(where) for where in directories), "nothing is left of %s" % app)
    box.opcontrol("--stop")
    os.rename(current(box), current(box) + ".away")
    write(current(box), b"what")
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--reset")
    require("nothing is removed" in line and "samples/current" in line, "what is in the way is not told: %s" % line)
    os.unlink(current(box))
    os.rename(current(box) + ".away", current(box))
    box.opcontrol("--start")
    box.good(app, "faults", FAULTS)
    _, stored, lost = end_in_order(box)
    require(stored >= FAULTS and lost == 0, "%d stored, %d lost" % (stored, lost))


def in_the_way(box):
    """What keeps the ledger from being written is named, wherever it is."""
    box.start_daemon()
    for path in ("tmp/ledger", "tmp/stats", "samples/current/stats/total_samples"):
        place = os.path.join(box.session, path)
        if os.path.exists(place):
            os.unlink(place)
        os.mkdir(place)
        line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
        require(path + ": " in line and "remove that" in line, "what is in the way is not named: %s" % line)
        os.rmdir(place)
    box.opcontrol("--dump")
    end_in_order(box)


def test(box):
    apps = [box.copy_work(name) for name in ("gone", "stays")]
    box.start_daemon(*SETUP)
    for app in apps:
        box.good(app, "faults", FAULTS)
    end_in_order(box)
    removed_while_down(box, apps[0])
    killed_beside_an_old_ledger(box, apps[1])
    taken_over(box, apps[1])
    reset_in_part(box, apps[1])
    in_the_way(box)


if __name__ == "__main__":
    opdtest.run(test)
