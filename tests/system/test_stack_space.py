#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The file of stacks has no room: StackMaxUse= is reached, then the disk is full. Such stacks are
counted as no_room at a caller that has a place, and none is lost. Flat samples go on, opcheck finds
nothing, and reports have as many stacks as the ledger. With room again stacks have places.
"""
import os
import re
import signal

import opdtest
from opdtest import require, wait_until
from test_fault_space import empty, full
from test_stack_shares import check_ledger

RATE = 997
NO_ROOM = 50  # stacks
WORK = "import json, re, socket, subprocess, decimal, email.parser, http.client, unittest"


def stacks(status):
    return next(e for e in status["events"] if e["role"] == opdtest.STACKS)


def flat(status):
    return next(e for e in status["events"] if e["role"] != opdtest.STACKS)


def store_bytes(box):
    path = os.path.join(box.session, "samples", "current", "stacks")
    return os.path.getsize(path) if os.path.exists(path) else 0


def work_until(box, condition, text):
    """Stacks of many places: each import is another path of calls."""
    box.work_until(lambda: condition(box.status()), text, "python3", "-c", WORK)


def check_report(box, event):
    """The stacks in the reports are those of the ledger."""
    box.opcontrol("--dump")
    total = sum(int(line.rsplit(" ", 1)[1]) for line in box.opreport("--format=folded").splitlines())
    require(total == event["stored"], "folded stacks have %d samples, the ledger %d" % (total, event["stored"]))
    require(re.search(r"^Stacks: .* no_room", box.opreport(), re.M), "the report does not say that stacks had no room")


def check_session(box):
    """All at rest. Returns the events of stacks."""
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_ledger(status)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    check_report(box, stacks(status))
    require(not any(v for k, v in stacks(status).items() if k.startswith("lost_") and k != "lost_kernel"),
            "stacks are lost: %s" % stacks(status))
    return stacks(status)


def lose(box, begin):
    """Until enough stacks have no room; flat samples go on."""
    work_until(box, lambda now: stacks(now)["end_no_room"] >= stacks(begin)["end_no_room"] + NO_ROOM, "every stack has room")
    now = box.status()
    require(flat(now)["received"] > flat(begin)["received"], "no flat sample beside stacks without room: %s" % flat(now))


def find_room(box):
    """More and more stacks, all of them with a place."""
    box.await_look()
    begin, nr_bytes = box.status(), store_bytes(box)
    work_until(box, lambda now: stacks(now)["stored"] >= stacks(begin)["stored"] + 5 * NO_ROOM, "no stacks are stored")
    require(stacks(box.status())["end_no_room"] == stacks(begin)["end_no_room"], "stacks have no room, although there is: %s" %
            stacks(box.status()))
    require(store_bytes(box) >= nr_bytes, "the file of stacks became smaller")


def check_limit(box):
    """StackMaxUse= is reached, and then it is more."""
    box.configure(StackMaxUse="64K")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    lose(box, box.status())
    nr_bytes = store_bytes(box)
    require(nr_bytes <= 64 << 10, "the file of stacks has %d bytes" % nr_bytes)
    event = check_session(box)
    print("StackMaxUse=64K: %d stacks, %d without room" % (event["stored"], event["end_no_room"]))
    box.opcontrol("--start")
    box.configure(StackMaxUse="64M")
    box.daemon.send_signal(signal.SIGHUP)
    wait_until(lambda: has_place(box), opdtest.HANG_SECONDS, "a larger StackMaxUse= makes no room")
    find_room(box)
    require(store_bytes(box) > nr_bytes, "the file of stacks does not grow")
    check_session(box)
    box.shutdown()
    box.opcontrol("--reset")


def has_place(box):
    """Work that fitted into no file of 64 KiB has room now."""
    box.await_look()
    before = stacks(box.status())
    box.good("python3", "-c", WORK)
    box.await_look()
    after = stacks(box.status())
    return after["stored"] > before["stored"] and after["end_no_room"] == before["end_no_room"]


def check_full_disk(box, place):
    """The file of stacks is there, and cannot grow."""
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    work_until(box, lambda now: stacks(now)["stored"] > NO_ROOM, "no stacks are stored")
    box.opcontrol("--dump")
    with full(place):
        lose(box, box.status())
        print("a full disk: %s" % {k: v for k, v in stacks(box.status()).items() if v and k.startswith("end_")})
    empty(place)
    wait_until(lambda: has_place(box), opdtest.HANG_SECONDS, "room on the disk is not used")
    find_room(box)
    check_session(box)
    box.shutdown()


def test(box):
    place = box.tmpfs("small", "size=16m")
    box.session = os.path.join(place, "session")
    check_limit(box)
    box.configure()
    check_full_disk(box, place)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
