#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A disk that is full, a real one, when files are made, when they grow, when the table of images and the ledger are written: what is lost is counted
exactly, every file stays whole, opd lives, and stores again as soon as there is room.
"""
import os

import opdtest
from test_dcookies import rows_and_missing
from test_rotation import read_ledger
from opdtest import require


def fill(place):
    with open(os.path.join(place, "ballast"), "ab", buffering=0) as stream:
        for nr_bytes in (65536, 4096, 512, 1):
            try:
                while True:
                    stream.write(bytes(nr_bytes))
            except OSError:
                pass


def event_of(box):
    return box.status()["events"][0]


def stored_of(box, app):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == app)


def write_nothing(box, place):
    """Neither the table nor the ledger has room: the dump that would write them says so."""
    errors = box.status()["dcookie_errors"]
    refused = []

    def is_refused():
        fill(place)  # again: a file that takes the place of another gives room back
        refused.append(box.run(os.path.join(box.bin, "opcontrol"), "--dump"))
        return refused[-1].rc != 0
    opdtest.wait_until(is_refused, 60, "a full disk has room for a table again and again")
    require("No space left on device" in refused[-1].err, "the dump does not say why: %s" % refused[-1].err)
    require(box.status()["dcookie_errors"] > errors, "the table of images has no error")
    opdtest.wait_until(lambda: "cannot write the session's ledger: No space left" in box.log_text(), 60, "the log says nothing of the ledger")


def write_all(box):
    """With room, both say what there is."""
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    _, missing = rows_and_missing(box)
    require(not missing, "images without a row: %s" % missing)
    _, events = read_ledger(os.path.join(box.session, "samples", "current"))
    stored, lost = sum(row["stored"] for row in events.values()), sum(row["lost_no_space"] for row in events.values())
    in_files = sum(f.total for f in box.files())
    require(stored == in_files, "the ledger has %d, the files %d" % (stored, in_files))
    require(lost == event_of(box)["lost_no_space"], "the ledger has %d lost, the status %s" % (lost, event_of(box)))


def lose(box, number):
    """New files have no room; what there is already goes on."""
    before = event_of(box)
    app = box.copy_work("homeless-%d" % number)
    box.good(app, "faults", 1000)
    opdtest.wait_until(lambda: event_of(box)["lost_no_space"] > before["lost_no_space"], 60, "nothing is lost on a full disk")
    require(stored_of(box, app) == 0, "a full disk has room for %s" % app)


def find_room(box, place, number):
    os.unlink(os.path.join(place, "ballast"))
    app = box.copy_work("housed-%d" % number)

    def is_stored():
        box.good(app, "faults", 500)
        return stored_of(box, app) > 0
    opdtest.wait_until(is_stored, 60, "nothing is stored although there is room")


def grow(box, place):
    """A file whose nodes are used up: known addresses go on, new ones are lost, then there is room again."""
    box.opcontrol("--dump")
    fill(place)
    before = event_of(box)
    box.good("sh", "-c", "for i in 1 2 3; do python3 -c 'import json, re, socket'; done")
    opdtest.wait_until(lambda: event_of(box)["lost_no_space"] > before["lost_no_space"], 60, "nothing is lost on a full disk")
    os.unlink(os.path.join(place, "ballast"))


def test(box):
    place = box.tmpfs("small", "size=2m")
    box.session = os.path.join(place, "session")
    box.configure()
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    for number in range(3):
        fill(place)
        lose(box, number)
        write_nothing(box, place)
        find_room(box, place, number)
    grow(box, place)
    write_all(box)
    event = box.check_ledger(not_sampled=oracle.not_sampled())["events"][0]
    others = {key: value for key, value in event.items() if key.startswith("lost_") and key not in ("lost_no_space", "lost_kernel")}
    require(not any(others.values()), "a full disk is counted as something else: %s" % others)
    print("stored %(stored)d, lost_no_space %(lost_no_space)d" % event)
    box.check_agreement()
    opdtest.wait_until(lambda: "lost_no_space" in box.log_text(), 60, "the log does not say what is lost")
    stats = os.path.join(box.session, "samples", "current", "stats", "total_samples")
    with open(stats, encoding="ascii") as stream:
        total = int(stream.read())
    require(total == event["received"] + event["lost_kernel"], "total_samples is %d" % total)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
