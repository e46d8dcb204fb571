#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Pages of sample files that go away under the daemon: a foreign hand cuts a file short that is counted in. opd lives, what is gone is counted and named, what
comes after it is stored.
"""
import os

import opdtest
from opdtest import require

FAULTS = 600
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
    box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    before = {f.path: f.total for f in files_of(box, app)}
    require(before, "nothing is counted")
    lost_before = book_of(box)[1]
    for path in before:
        os.truncate(current(box, path), nr_bytes)

    def is_noticed():
        box.good(app, "faults", FAULTS)
        box.run(os.path.join(box.bin, "opcontrol"), "--dump")
        return all(path in box.log_text() for path in before) and book_of(box)[1] > lost_before
    opdtest.wait_until(is_noticed, 60, "a file of %d bytes is not noticed" % nr_bytes)
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


def test(box):
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=none")
    total = sum(cut_short(box, number, nr_bytes) for number, nr_bytes in enumerate(LEFT))
    event = check(box, oracle)
    print("of %d samples %d are lost" % (total, event["lost_io_error"]))
    require("has lost" in box.log_text() and "damaged/" in box.log_text(), "the log does not name the file: %s" % box.log_text())
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
