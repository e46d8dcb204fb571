#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The timeline: spans of a real daemon add up to the ledger and the sample files; a burst is in the
spans of its time; a kill takes the span that was collected, and nothing of the sample files; a torn
end is dropped; a session that is saved has all of its spans, and the next one begins anew; a reset
beside a slow disk leaves no span of what it removed.
"""
import calendar
import json
import os
import re
import signal
import sys
import time

import faultload
import opdtest
from opdtest import require, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import timeline  # noqa: E402

INTERVAL_S = 10  # the shortest
GAP_NONE, GAP_FIRST, GAP_OFF, GAP_PAUSED = 0, 1, 2, 5


def path_of(box, session="current"):
    return os.path.join(box.session, "samples", session, "timeline")


def blocks(box, session="current"):
    path = path_of(box, session)
    return timeline.read(path).blocks if os.path.exists(path) else []


def await_blocks(box, nr):
    wait_until(lambda: len(blocks(box)) >= nr, opdtest.HANG_SECONDS, "there are no %d spans" % nr)


def row(block, event, name):
    return sum(amount for number, row_name, amount in block.ledger if number == event and row_name == name)


def check_sums(found):
    """Each span has what it says was stored, and goes on where the one before ended, unless there is a gap."""
    before = None
    for block in found:
        for number, (name, _, role) in enumerate(block.events):
            kind = timeline.STACKS if role in (opdtest.STACKS, opdtest.WAITS) else timeline.SAMPLES
            require(block.total(kind, number) == row(block, number, "stored"), "block %d, %s: %d, not %d" % (
                block.number, name, block.total(kind, number), row(block, number, "stored")))
            lost = sum(amount for event, row_name, amount in block.ledger if event == number and row_name.startswith("lost_")
                       and row_name != "lost_kernel")
            require(row(block, number, "received") == row(block, number, "stored") + row(block, number, "filtered") + lost,
                    "block %d, %s: received samples are neither stored nor lost: %s" % (block.number, name, block.ledger))
        if before and block.gap == GAP_NONE:
            require(block.begin == before.end, "block %d begins at %s, the one before ended at %s" % (
                block.number, block.begin, before.end))
        before = block


def check_whole(box, session):
    """All samples of a session that ended in order are in its spans: opcheck has nothing to say."""
    output = box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, session)
    require("timeline" not in output, "opcheck: %s" % output)


def share_of(block, path_end, box, session):
    """The share of the samples of a program in a span."""
    total = sum(node.own + node.rest for node in block.nodes if top_of(node).kind == timeline.SAMPLES)
    cookies = cookies_of(box, path_end, session)
    own = sum(node.own + node.rest for node in block.nodes if top_of(node).kind == timeline.SAMPLES and app_of(node) in cookies)
    return own / total if total else 0


def top_of(node):
    while node.parent.parent:
        node = node.parent
    return node


def app_of(node):
    while node.parent:
        if node.kind == timeline.APP:
            return node.image
        node = node.parent
    return 0


def cookies_of(box, path_end, session):
    with open(os.path.join(box.session, "samples", session, "dcookies"), encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream if line[0].isdigit()]
    return {int(columns[0]) for columns in rows if columns[2].endswith(path_end)}


def check_burst(box):
    """A program that runs from one moment to another is in the spans of that time, and in no others."""
    await_blocks(box, 1)
    begin = time.time_ns()
    child = box.busy_until_ended(box.copy_work("timeline-app"))
    wait_until(lambda: any(block.begin[0] > begin for block in blocks(box)), opdtest.HANG_SECONDS, "no span beside the burst")
    box.end_busy(child)
    end = time.time_ns()
    wait_until(lambda: blocks(box)[-1].begin[0] > end, opdtest.HANG_SECONDS, "no span after the burst")
    for block in blocks(box):
        share = share_of(block, "/timeline-app", box, "current")
        is_outside = block.end[0] < begin or block.begin[0] > end
        require(not is_outside or not share, "block %d is outside of the burst and has %.3f of it" % (block.number, share))
        if block.begin[0] >= begin and block.end[0] <= end:
            require(share, "block %d is inside of the burst and has nothing of it" % block.number)
    require(any(share_of(block, "/timeline-app", box, "current") for block in blocks(box)), "the burst is in no span")


def check_reports(box):
    """The reports find the burst: --over-time in its spans, --since and --until all of it, --top-changes names it."""
    box.opcontrol("--dump")
    course = json.loads(box.opreport("--over-time=timeline-app", "--format=json"))
    shares = {block.begin[0] // 10**9: share_of(block, "/timeline-app", box, "current") for block in blocks(box)}
    seen = {calendar.timegm(time.strptime(row["begin"], "%Y-%m-%dT%H:%M:%SZ")): row["samples"][0] for row in course["course"]}
    require({second for second, samples in seen.items() if samples} == {second for second, share in shares.items() if share},
            "--over-time has the burst at %s, the spans have it at %s" % (seen, shares))
    inside = [second for second, samples in seen.items() if samples]
    span = ["--since=@%d" % inside[0], "--until=@%d" % (inside[-1] + 1)]
    rows = json.loads(box.opreport("-l", "--format=json", *span))["symbols"]
    require(sum(row["samples"][0] for row in rows if row.get("application", "").endswith("/timeline-app")) == sum(seen.values()),
            "the span of the burst has not all of it: %s" % rows[:3])
    grown = json.loads(box.opreport("--top-changes", "--format=json", *span))["symbols"]
    require(any(row.get("application", "").endswith("/timeline-app") for row in grown), "--top-changes: %s" % grown[:3])
    facts = json.loads(box.opreport("--explain", "--format=json", *span))
    require(facts["comparisons"][0]["state"] == "compared", "--explain: %s" % facts)


def check_reset(box, shim):
    """A span that waits for the disk while the session is emptied does not come back into it."""
    shim.say("hold")
    wait_until(lambda: any(comm.strip() == "opd-minutes" for _, comm in opdtest.each_thread(box.daemon.pid, "comm")),
               opdtest.HANG_SECONDS, "no span is written")
    box.opcontrol("--reset")
    shim.say()
    await_blocks(box, 1)
    require(row(blocks(box)[0], 0, "before") == 0 and blocks(box)[0].gap == GAP_FIRST, "spans go on after a reset")
    require(not box.status()["minutes_lost"], "minutes are lost")


def check_kill(box, shim):
    """A killed daemon loses no closed span. What lies torn behind them is dropped."""
    before = blocks(box)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    with open(path_of(box), "ab") as stream:
        stream.write(b"torn" * 10)
    box.start_daemon(env=shim.env)
    await_blocks(box, len(before) + 1)
    after = blocks(box)
    require([block.weights() for block in after[:len(before)]] == [block.weights() for block in before], "spans have changed")
    require(after[len(before)].gap == GAP_OFF, "gap %d after a kill" % after[len(before)].gap)
    check_sums(after)


def test(box):
    shim = faultload.Shim(box)
    box.configure(TimelineInterval="%ds" % INTERVAL_S, Stacks="yes")
    box.start_daemon("--event=default", "--stacks=99")
    check_burst(box)
    check_reports(box)
    check_sums(blocks(box))
    require(blocks(box)[0].gap == GAP_FIRST, "the first gap is %d" % blocks(box)[0].gap)
    require(all(block.context for block in blocks(box)), "a span does not say what the host was like")
    nr = len(blocks(box))
    box.opcontrol("--stop")
    await_blocks(box, nr + 1)
    box.opcontrol("--start")
    await_blocks(box, nr + 2)
    require(blocks(box)[nr + 1].gap == GAP_PAUSED, "gap %d after --stop" % blocks(box)[nr + 1].gap)
    box.opcontrol("--save=one")
    await_blocks(box, 1)
    require(blocks(box)[0].gap == GAP_FIRST and blocks(box)[0].number == 0, "the next session does not begin anew")
    check_whole(box, "one")
    require(row(blocks(box, "one")[0], 0, "before") == 0, "the session had samples before its first span")
    check_kill(box, shim)
    check_reset(box, shim)
    summary = box.good(os.path.join(box.bin, "opcontrol"), "--status")
    require(re.search(r"^Timeline: since \S+ \S+ UTC, [\d.]+ KiB, \d+ KiB\s+an hour$", summary, re.M), "--status: %s" % summary)
    box.shutdown()
    check_whole(box, "current")
    print("%d spans in the saved session, %d in the current one" % (len(blocks(box, "one")), len(blocks(box))))


if __name__ == "__main__":
    opdtest.run(test)
