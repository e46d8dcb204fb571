#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A disk that is full, a real one, when files are made, when they grow, when the table of images and
the ledger are written: what is lost is counted
exactly, every file stays whole, opd lives, and stores again as soon as there is room.
"""
import contextlib
import os
import threading

import faultload
import opdtest
from test_dcookies import rows_and_missing
from test_fault_tree import current, own_files
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


@contextlib.contextmanager
def full(place):
    """Takes all space, also what other programs give back meanwhile."""
    ended = threading.Event()

    def go_on():
        while not ended.wait(0.005):
            fill(place)
    fill(place)
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def empty(place):
    os.unlink(os.path.join(place, "ballast"))


def event_of(box):
    return box.status()["events"][0]


def stored_of(box, app):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == app)


def write_nothing(box, place):
    """Neither the table nor the ledger has room: the dump that would write them reports it."""
    errors = box.status()["dcookie_errors"]
    refused = []

    def is_refused():
        fill(place)  # again: a file that takes the place of another gives room back
        refused.append(box.run(os.path.join(box.bin, "opcontrol"), "--dump"))
        return refused[-1].rc != 0
    opdtest.wait_until(is_refused, opdtest.HANG_SECONDS, "a full disk has room for a table again and again")
    require("No space left on device" in refused[-1].err, "the dump does not say why: %s" % refused[-1].err)
    require(box.status()["dcookie_errors"] > errors, "the table of images has no error")
    opdtest.wait_until(lambda: "cannot write the session's ledger: No space left" in box.log_text(),
                       opdtest.HANG_SECONDS, "the log says nothing of the ledger")


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
    opdtest.wait_until(lambda: event_of(box)["lost_no_space"] > before["lost_no_space"], opdtest.HANG_SECONDS,
                       "nothing is lost on a full disk")
    require(stored_of(box, app) == 0, "a full disk has room for %s" % app)


def find_room(box, place, number):
    empty(place)
    app = box.copy_work("housed-%d" % number)

    def is_stored():
        box.good(app, "faults", 500)
        return stored_of(box, app) > 0
    opdtest.wait_until(is_stored, opdtest.HANG_SECONDS, "nothing is stored although there is room")


def forget(box, place):
    """--stop cannot be noted on the full disk, and says so. A note that exists needs no room."""
    def is_forgotten():
        with full(place):
            is_kept = box.stop_on_full_disk()
            if not is_kept:
                box.opcontrol("--start")
        empty(place)
        if is_kept:
            box.opcontrol("--start")
        return not is_kept
    opdtest.wait_until(is_forgotten, opdtest.HANG_SECONDS, "a full disk has room for another file again and again")


def own_file(box, app):
    """Bytes and samples of the file with what the program itself did."""
    (path,) = own_files(box, app)
    return os.path.getsize(current(box, path)), sum(f.total for f in box.files(live=True) if f.path == path)


def keeps_its_size(box, place, growing):
    """One run of the program with more addresses than its file has nodes, on a full disk. False
    when it found room all the same.
    """
    app, before = growing.apps[0], event_of(box)
    nr_bytes, nr_samples = own_file(box, app)
    with full(place):
        growing.grow()
        opdtest.wait_until(lambda: event_of(box)["received"] > before["received"]
                           and event_of(box)["lost_no_space"] > before["lost_no_space"], 60,
                           "nothing is lost on a full disk")
        box.stop_on_full_disk()  # all that was taken is counted
        after, (bytes_after, samples_after) = event_of(box), own_file(box, app)
        box.opcontrol("--start")
    if bytes_after != nr_bytes:
        return False
    missing = growing.SITES[growing.nr_calls - 1] - (samples_after - nr_samples)
    lost = sum(after[name] - before[name] for name in ("lost_no_space", "lost_kernel"))
    print("a file of %d bytes: %d samples more on a full disk, %d have no room, %d are lost in all" % (nr_bytes,
            samples_after - nr_samples, missing, lost))
    require(samples_after > nr_samples, "addresses that the file has are not counted any more")
    require(0 < missing <= lost, "%d samples have no room, and %d are counted as lost" % (missing, lost))
    return True


def grow(box, place, number):
    """A full file keeps its size: known addresses are counted, new ones are lost, and it grows when
    there is room again.
    """
    growing = faultload.Growing(box, "growing-%d" % number)
    app = growing.apps[0]
    opdtest.wait_until(lambda: own_files(box, app) or growing.again(), opdtest.HANG_SECONDS, "nothing is counted")
    box.opcontrol("--dump")
    kept = keeps_its_size(box, place, growing)
    empty(place)
    nr_bytes, _ = own_file(box, app)

    def is_larger():
        box.good(app, "sites", growing.SITES[growing.nr_calls])
        return own_file(box, app)[0] > nr_bytes
    opdtest.wait_until(is_larger, opdtest.HANG_SECONDS, "a file does not grow although there is room")
    return kept


def test(box):
    place = box.tmpfs("small", "size=16m")
    box.session = os.path.join(place, "session")
    box.configure()
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    for number in range(3):
        with full(place):
            lose(box, number)
        write_nothing(box, place)
        find_room(box, place, number)
    forget(box, place)
    require(any(grow(box, place, number) for number in range(4)), "a full disk has room for a larger file again and again")
    write_all(box)
    event = box.check_ledger(not_sampled=oracle.not_sampled())["events"][0]
    others = {key: value for key, value in event.items() if key.startswith("lost_") and key not in ("lost_no_space", "lost_kernel")}
    require(not any(others.values()), "a full disk is counted as something else: %s" % others)
    print("stored %(stored)d, lost_no_space %(lost_no_space)d" % event)
    box.check_agreement()
    opdtest.wait_until(lambda: "lost_no_space" in box.log_text(), opdtest.HANG_SECONDS, "the log does not say what is lost")
    stats = os.path.join(box.session, "samples", "current", "stats", "total_samples")
    with open(stats, encoding="ascii") as stream:
        total = int(stream.read())
    require(total == event["received"] + event["lost_kernel"], "total_samples is %d" % total)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
