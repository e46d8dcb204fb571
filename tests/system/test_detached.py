#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A program that has no path: a user without privileges mounts it in a name space of his own, opens
it, takes the mount away and runs it by its descriptor. The kernel calls it "/". Its
samples are counted and shown, and the session is one that every reader takes. What an opimport that
was killed has left is gone when the daemon is there.
"""
import os

import opdtest
from opdtest import require

NAME = "/(no path)"
NOBODY = 65534
SPIN_MS = 200
SCRIPT = 'mount --bind "$0" "$1"; exec 5<"$1"; umount -l "$1"; exec /proc/self/fd/5 spin %d' % SPIN_MS


def of_detached(box):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == NAME)


def leave_import(box):
    """As a killed opimport would: a directory that nobody has locked."""
    left = os.path.join(box.session, "tmp", "import.abcdef")
    os.makedirs(os.path.join(left, "samples", "current"), mode=0o755)
    with open(os.path.join(left, "samples", "current", "ledger"), "wb"):
        pass
    if box.run_as != "root":
        opdtest.shutil.rmtree(left)
    return left


def test(box):
    program, place = box.copy_work("spinning"), os.path.join(box.dir, "place")
    with open(place, "wb"):
        pass
    command = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", SCRIPT, program, place)
    if box.run("unshare", "--user", "--map-root-user", "--mount", "true", user=NOBODY).rc != 0:
        raise opdtest.Skip("a user without privileges has no name spaces here")

    def run():
        box.good(*command, user=NOBODY)
        box.opcontrol("--dump")
        return of_detached(box) > 0
    left = leave_import(box)
    box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel")
    require(not os.path.exists(left), "%s is still there" % left)
    opdtest.wait_until(run, opdtest.HANG_SECONDS, "no sample of a program without a path")
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    counted = sum(f.total for f in box.files() if f.name.app[1] == NAME)
    require(os.path.basename(NAME) in box.opreport("-n"), "opreport does not show it")
    with open(os.path.join(box.session, "samples", "current", "dcookies"), encoding="utf-8") as stream:
        rows = [line.split("\t") for line in stream if line[0].isdigit()]
    require([row[3] for row in rows if row[2].startswith(NAME)] == ["/"], "not one row for it: %s" % rows)
    result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-l")
    require(result.rc == 0 and "not a name" not in result.err, result.err)
    box.shutdown()
    require("sound" in box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session), "not sound")
    print("%d samples of a program without a path" % counted)


if __name__ == "__main__":
    opdtest.run(test)
