#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
kill -9 of opd at a random moment while it samples at 10 kHz: usage: test_fault_kill.py [KILLS],
default 30.

After each one every file is read by the independent reader and by opreport, no count is lower than
at the last look, and what was stored before
the kill is there.
"""
import os
import random
import signal
import subprocess
import sys
import time

import faultload
import opdtest
from opdtest import require


RESET_EVERY = 20


def one_round(box, looks, before, rng):
    """Starts the daemon, samples for a moment, kills it. Returns the number of samples in the files
    after that.
    """
    box.start_daemon()
    time.sleep(rng.random() * 0.6)
    if rng.random() < 0.5:
        box.opcontrol("--dump")
    stored = sum(e["stored"] for e in box.status()["events"])
    dump = box.start(os.path.join(box.bin, "opcontrol"), "--dump", stderr=subprocess.DEVNULL) if rng.random() < 0.3 else None
    time.sleep(rng.random() * 0.2)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    if dump:
        dump.wait()
        box.children.remove(dump)
    after = looks.look()
    require(after >= before + stored, "%d in the files, %d stored, then %d in the files" % (before, stored, after))
    if after:
        box.opreport("-n", "-f")
    return after


def empty(box, looks):
    """Short-lived processes make ever new files, and each file is read after each kill."""
    box.start_daemon(start=False)
    box.opcontrol("--reset")
    box.opcontrol("--shutdown")
    box.daemon.wait()
    looks.forget()
    return 0


def kills(nr_kills):
    def test(box):
        rng, looks = random.Random(nr_kills), faultload.Looks(box)
        print("seed %d" % nr_kills)
        busy = faultload.start_busy(box)
        box.opcontrol("--setup", "--event=TIMER:100000", "--event=page-faults:3", "--separate=library,kernel")
        total = 0
        for i in range(nr_kills):
            total = one_round(box, looks, total, rng)
            if i % 25 == 0:
                print("kill %d: %d samples in %d files" % (i + 1, total, len(looks.last)), flush=True)
            if i % RESET_EVERY == RESET_EVERY - 1 and i + 1 < nr_kills:
                total = empty(box, looks)
        os.killpg(busy.pid, signal.SIGKILL)
        box.start_daemon(start=False)
        require(looks.look() == total, "a start changed what was counted")
        box.shutdown()
        aside = [line for line in box.log_text().splitlines() if "put aside" in line and " 0 put aside" not in line]
        require(not aside, "a file was put aside: %s" % "\n".join(aside))
        print("%d kills, %d samples in %d files" % (nr_kills, total, len(looks.last)))
    return test


if __name__ == "__main__":
    opdtest.run(kills(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
