#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A disk that takes no minutes, full and read-only: the samples are counted as ever, each lost minute
is counted (minutes_lost), the next one says that minutes are missing, and the file stays whole.
"""
import os
import sys

import faultload
import opdtest
from opdtest import require, wait_until
from test_fault_space import empty, full
from test_timeline import INTERVAL_S, await_blocks, blocks, check_sums, path_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import timeline  # noqa: E402

GAP_NONE, GAP_UNWRITTEN = 0, 6


def lose_a_minute(box):
    """Waits until one more is lost. The samples go on."""
    lost, received = box.status()["minutes_lost"], box.status()["events"][0]["received"]
    wait_until(lambda: box.status()["minutes_lost"] > lost, opdtest.HANG_SECONDS, "no minute is lost")
    require(box.status()["events"][0]["received"] > received, "no samples beside a disk that takes no minutes")


def go_on(box, nr, gap):
    """Minutes are written again; nothing of what failed is left in the file."""
    await_blocks(box, nr + 2)
    found = blocks(box)
    require(found[nr].gap == gap, "gap %d after lost minutes" % found[nr].gap)
    require(found[nr + 1].gap == GAP_NONE, "gap %d after a minute that was written" % found[nr + 1].gap)
    check_sums(found)
    return len(found)


def test(box):
    place = box.tmpfs("small", "size=16m")
    box.session = os.path.join(place, "session")
    shim = faultload.Shim(box)
    box.configure(TimelineInterval="%ds" % INTERVAL_S)
    box.start_daemon("--event=default", env=shim.env)
    busy = box.busy_until_ended(box.copy_work("counted"))
    await_blocks(box, 1)
    with full(place):
        nr = len(blocks(box))
        lose_a_minute(box)
    empty(place)
    nr = go_on(box, nr, GAP_UNWRITTEN)
    require("cannot write a minute" in box.log_text(), "the log says nothing of lost minutes")
    # 30, EROFS: a file that is gone cannot be made anew
    shim.say("fail openat 30 /timeline")
    os.unlink(path_of(box))
    lose_a_minute(box)
    shim.say()
    go_on(box, 0, GAP_UNWRITTEN)
    lost = box.status()["minutes_lost"]
    box.end_busy(busy)
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    box.check_ledger()
    box.shutdown()
    out = box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "current")
    require("minute does not" not in out, "opcheck: %s" % out)
    require(not timeline.read(path_of(box)).torn, "the file is torn")
    print("%d blocks before, %d minutes lost" % (nr, lost))


if __name__ == "__main__":
    opdtest.run(test)
