#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Sessions that rotate every second while page faults, each of them a sample, are counted: what the
closed sessions hold, by their files and by
their ledgers, adds up to what the daemon stored, with dumps and a save in between; and after kills
of the daemon every ledger says what is in the files.
"""
import os
import re
import time

import opdtest
import reader
from opdtest import require

EVENT = "page-faults:1"
INTERVAL_S = 1
CLOCK_S = 0.05
TIME_NAME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(-\d\d)?$")

SUMMED = ("stored", "lost_kernel", "enabled_ns", "counted_ns")


def read_ledger(path):
    """The ledger file: (words, {event: {name: number}})."""
    words, events = {}, {}
    with open(os.path.join(path, "ledger"), encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    require(lines[0] == "opd-ledger 1" and lines[-1] == "", "%s: not a ledger: %r" % (path, lines[:1]))
    for line in lines[1:-1]:
        columns = line.split("\t")
        if columns[0] == "event":
            events[tuple(columns[1:4])] = {k: int(v) for k, v in (c.split("=") for c in columns[4:])}
        else:
            words[columns[0]] = columns[1]
    return words, events


def files_total(path):
    return sum(f.total for f in reader.read_session(os.path.dirname(os.path.dirname(path)),
                                                    session=os.path.basename(path), strict=True))


def check_session(path, ended):
    """A session whose ledger, files and stats say the same; what it has of SUMMED."""
    words, events = read_ledger(path)
    require(words["ended"] == ended, "%s ended as %s, not %s" % (path, words["ended"], ended))
    require(float(words["begin"]) <= float(words["end"]), "%s ends before it begins" % path)
    for event, row in events.items():
        sum_lost = sum(v for k, v in row.items() if k.startswith("lost_") and k != "lost_kernel")
        require(row["received"] == row["stored"] + sum_lost, "%s: %s: %s" % (path, event, row))
    sums = {name: sum(row.get(name, 0) for row in events.values()) for name in SUMMED}
    total = files_total(path)
    require(total == sums["stored"], "%s: the files have %d samples, the ledger %d" % (path, total, sums["stored"]))
    with open(os.path.join(path, "stats", "total_samples"), encoding="ascii") as stream:
        require(int(stream.read()) == sum(r["received"] + r["lost_kernel"] for r in events.values()),
                "%s: stats say otherwise" % path)
    return sums


def end_of(path):
    """How a session ended; None where it was removed meanwhile."""
    try:
        return read_ledger(path)[0]["ended"]
    except FileNotFoundError:
        return None


def closed(samples, ended):
    """The sessions that ended so, in the order of their names."""
    return [n for n in sorted(os.listdir(samples)) if n != "current" and end_of(os.path.join(samples, n)) == ended]


def has_files(path):
    return any(names for top in ("{root}", "{kern}") for _, _, names in os.walk(os.path.join(path, top)))


def is_empty(path):
    return not any(row["received"] or row["lost_kernel"] for row in read_ledger(path)[1].values())


def check_times(samples, names):
    """
    One ends where the next begins, whatever it took to close it: what may lie between is two
    readings of the clock. An interval without a sample leaves no session; the
    next one then begins at a boundary, or as late after it as the daemon came to it.
    """
    names = [n for n in names if n != "current" or not is_empty(os.path.join(samples, n))]
    times = sorted(tuple(float(read_ledger(os.path.join(samples, n))[0][w]) for w in ("begin", "end")) for n in names)
    for before, after in zip(times, times[1:]):
        require(after[0] - before[1] > -CLOCK_S, "a session begins at %f, before the last ends at %f" % (after[0], before[1]))
        if int(after[0] / INTERVAL_S) == int(before[1] / INTERVAL_S):
            require(after[0] - before[1] < CLOCK_S, "a session ends at %f, the next begins at %f" % (before[1], after[0]))


def check_all(samples):
    """Every session, also that of a daemon that was killed."""
    for name in sorted(os.listdir(samples)):
        words, _ = read_ledger(os.path.join(samples, name))
        check_session(os.path.join(samples, name), words["ended"])
        require(name == "current" or words["ended"] in ("rotated", "saved"), "%s ended as %s" % (name, words["ended"]))


def check_killed(box, samples):
    """A daemon that is killed leaves samples that its last ledger does not know of; the next one
    finds them.
    """
    box.start_daemon()
    load = box.start(box.copy_work("killed-app"), "busy", 6000, min(os.sched_getaffinity(0)))
    fault = box.start("/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")
    for delay in (0.3, 1.2, 0.7):
        time.sleep(delay)
        box.daemon.kill()
        box.daemon.wait()
        box.start_daemon()
    load.wait()
    fault.wait()
    box.shutdown()
    check_all(samples)
    box.configure(SessionInterval="%ds" % INTERVAL_S, SessionMaxUse="1")
    box.start_daemon(start=False)
    # What was counted before is closed at the first boundary.
    opdtest.wait_until(lambda: not has_files(os.path.join(samples, "current"))
                       and sorted(os.listdir(samples)) == ["current", "mine"],
                       opdtest.HANG_SECONDS, "old sessions are not removed")
    box.shutdown()
    require(sorted(os.listdir(samples)) == ["current", "mine"], "left: %s" % os.listdir(samples))


def test(box):
    samples = os.path.join(box.session, "samples")
    box.configure(SessionInterval="%ds" % INTERVAL_S, SessionKeepFree="0", SessionMaxUse="0", RingSize="8M")
    box.start_daemon("--event=" + EVENT)
    load = box.start(box.copy_work("fault-app"), "busy", 7000, min(os.sched_getaffinity(0)))
    faults = [box.start("/bin/sh", "-c", "while :; do /bin/true; done") for _ in range(2)]
    for _ in range(3):
        box.opcontrol("--dump")
        time.sleep(0.3)
    box.opcontrol("--save=mine")
    opdtest.wait_until(lambda: len(closed(samples, "rotated")) >= 3, opdtest.HANG_SECONDS, "sessions do not rotate")
    load.wait()
    box.opcontrol("--stop")
    for child in faults:
        child.terminate()
        child.wait()
    event = box.status()["events"][0]
    box.shutdown()
    rotated = closed(samples, "rotated")
    require(all(TIME_NAME.match(n) for n in rotated), "names of sessions: %s" % rotated)
    require(closed(samples, "saved") == ["mine"], "saved: %s" % closed(samples, "saved"))
    sums = [check_session(os.path.join(samples, n), "rotated") for n in rotated]
    sums += [check_session(os.path.join(samples, "mine"), "saved"), check_session(os.path.join(samples, "current"), "stopped")]
    print("%d sessions: %s" % (len(sums), sums))
    for name in SUMMED:
        found = sum(s[name] for s in sums)
        require(found == event[name], "%s: the sessions have %d, the daemon %d" % (name, found, event[name]))
    require(event["counted_ns"] == event["enabled_ns"] > 0, "a software event needs no counter: %s" % event)
    check_times(samples, rotated + ["mine", "current"])
    check_killed(box, samples)


if __name__ == "__main__":
    opdtest.run(test)
