#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport and operf write a timeline: a burst of a made-up recording is in its seconds, whatever order
the samples come in; a recording of any length has 120 spans at most; all samples are in spans, and
opcheck finds them sound; oparchive takes them along.
"""
import calendar
import json
import os
import time

import importtest as made
import opdtest
from opdtest import require

SECONDS, BURST = 60, range(20, 25)


def course(box, name, session_dir=None):
    report = json.loads(box.good(os.path.join(box.bin, "opreport"), "--session-dir=" + (session_dir or box.session), "--over-time",
                                 "--format=json", "session:" + name))
    return [(bin_["begin"], bin_["all"]) for bin_ in report["course"]]


def check_sound(box, name, session_dir=None):
    done = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + (session_dir or box.session), name)
    require(done.rc == 0 and "minute" not in done.out, "opcheck: %s" % (done,))


def imported(box, name, times):
    records = made.put_attr(made.PLAIN, 0) + made.put_mapping()
    result = made.import_stream(box, name, records + b"".join(made.put_sample(made.PLAIN, time) for time in times))
    require(result.rc in (0, 1) and "no timeline" not in result.err, "%s: %s" % (name, result))
    require(made.totals(box, name)[0] == {"task-clock": len(times)}, "%s: %s" % (name, made.totals(box, name)))
    check_sound(box, name)
    return [nr for _, nr in course(box, name)]


def check_burst(box):
    begin = 1000 * made.SECOND
    times = [begin + second * made.SECOND + i for second in range(SECONDS) for i in range(51 if second in BURST else 1)]
    wanted = [51 if second in BURST else 1 for second in range(SECONDS)]
    require(imported(box, "burst", times) == wanted, "the burst: %s" % course(box, "burst"))
    # every second one is late, and the first stays the first
    late = times[:1] + times[2::2] + times[1::2]
    require(imported(box, "late", late) == wanted, "out of order: %s" % course(box, "late"))


def check_bounds(box):
    """Neighbours become one: 1000 seconds, and times that nobody believes."""
    times = [1000 * made.SECOND + second * made.SECOND for second in range(1000)]
    found = imported(box, "long", times)
    require(60 <= len(found) <= 120 and sum(found) == 1000 and set(found[:-1]) == {found[0]}, "1000 seconds: %s" % found)
    found = imported(box, "wild", [made.SECOND, made.SECOND + 1, 1 << 62, (1 << 63) - 1])
    require(len(found) <= 120 and sum(found) == 4, "wild times: %s" % found)


def check_windows(box):
    """Ten minutes with a burst in the fourth and the fifth: --since and --until find it to the span, as --over-time."""
    times = [1000 * made.SECOND + second * made.SECOND + i for second in range(600)
             for i in range(51 if 180 <= second < 300 else 1)]
    require(sum(imported(box, "bursts", times)) == len(times), "ten minutes: %s" % course(box, "bursts"))
    spans = [(calendar.timegm(time.strptime(begin, "%Y-%m-%dT%H:%M:%SZ")), nr) for begin, nr in course(box, "bursts")]
    first, step = spans[0][0], spans[1][0] - spans[0][0]
    require(step <= 10, "a span of a recording of ten minutes has %d s" % step)
    for since, until in ((180, 300), (0, 120), (360, 600), (180, 240)):
        inside = [(begin, nr) for begin, nr in spans if first + since - step < begin < first + until]
        # within the first and the last span: their ends are no whole seconds
        span = ["--since=@%d" % (inside[0][0] + 1), "--until=@%d" % (inside[-1][0] + step - 1)]
        rows = json.loads(box.opreport("-l", "--format=json", *span))["symbols"]
        found = sum(row["samples"][0] for row in rows)
        wanted = sum(51 if 180 <= second < 300 else 1 for second in range(since, until))
        require(found == sum(nr for _, nr in inside), "%s: %d, --over-time has %s" % (span, found, inside))
        require(wanted <= found <= wanted + 2 * step * 51, "from %d s to %d s: %d samples, not %d" % (since, until, found, wanted))


def check_archive(box):
    """oparchive takes the timeline along."""
    archive = os.path.join(box.dir, "archive")
    box.run(os.path.join(box.bin, "oparchive"), "--session-dir=" + box.session, "-o", archive, "session:burst")
    report = box.good(os.path.join(box.bin, "opreport"), "archive:" + archive, "session:burst", "--over-time", "--format=json")
    found = [bin_["all"] for bin_ in json.loads(report)["course"]]
    require(found == [nr for _, nr in course(box, "burst")], "the archive: %s" % found)


def check_operf(box):
    """Its run is a session; with --append the spans of the second run come behind those of the first."""
    home = os.path.join(box.dir, "run")
    operf = os.path.join(box.bin, "operf")
    counts = []
    for more in ([], ["--append"]):
        box.good(operf, *more, "--session-dir=" + home, box.work, "spin", "1500")
        counts.append(course(box, "current", home))
        check_sound(box, "current", home)
    require(counts[0] and sum(nr for _, nr in counts[0]) and counts[1][:len(counts[0])] == counts[0] and
            sum(nr for _, nr in counts[1][len(counts[0]):]), "operf: %s" % counts)


def test(box):
    check_windows(box)  # a window reads all sessions, so this one comes first
    check_burst(box)
    check_archive(box)
    check_bounds(box)
    check_operf(box)


if __name__ == "__main__":
    opdtest.run(test, needs=opdtest.needs_perf)
