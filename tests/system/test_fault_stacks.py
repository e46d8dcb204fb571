#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The file of stacks in the life of a session: usage: test_fault_stacks.py [KILLS], default 6.

opd is killed with -9 at random moments. After each kill the independent reader takes the whole file,
and it has what was stored before. Then the ledger follows the file, a saved session has its stacks
and opcheck finds nothing; a reset empties the store.
"""
import os
import random
import signal
import subprocess
import sys
import time

import opdtest
from opdtest import require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import stacks  # noqa: E402  (after the path is set)


def look(box, session="current"):
    found = stacks.read(os.path.join(box.session, "samples", session, "stacks"))
    require(found.fault is None and not found.nr_cut, "damaged: %s" % found.fault)
    return found.total()


def stored(box):
    return next(e for e in box.status()["events"] if e["name"] == "STACKS")["stored"]


def one_round(box, before, rng):
    box.start_daemon("--event=default", "--stacks=997")
    time.sleep(0.3 + rng.random() * 0.7)
    if rng.random() < 0.5:
        box.opcontrol("--dump")
    expected = before + stored(box)
    time.sleep(rng.random() * 0.2)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    if not os.path.exists(os.path.join(box.session, "samples", "current", "stacks")):
        return before
    after = look(box)
    require(after >= expected, "%d expected, %d in the file" % (expected, after))
    return after


def sessions(box, total):
    """A start after a kill, a save, a reset."""
    box.start_daemon("--event=default", "--stacks=997")
    box.opcontrol("--dump")
    require(look(box) >= total, "a start changed what was counted")
    box.opcontrol("--save=kept")
    require(look(box, "kept") >= total, "the saved session has not all stacks")
    done = subprocess.run([os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "kept"],
                          capture_output=True, text=True, check=False)
    require(done.returncode == 0, "opcheck: %s" % (done.stdout + done.stderr))
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    path = os.path.join(box.session, "samples", "current", "stacks")
    require(not os.path.exists(path) or not look(box), "a reset left stacks")
    box.shutdown()


def kills(nr_kills):
    def test(box):
        rng, total = random.Random(nr_kills), 0
        busy = [box.start("sh", "-c", "while :; do :; done") for _ in range(2)]
        for _ in range(nr_kills):
            total = one_round(box, total, rng)
        require(total, "no stacks")
        sessions(box, total)
        for child in busy:
            child.kill()
        print("%d kills, %d stacks" % (nr_kills, total))
    return test


if __name__ == "__main__":
    opdtest.run(kills(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
