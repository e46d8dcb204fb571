#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport and operf write a timeline: a burst of a made-up recording is in its seconds, whatever order
the samples come in; a recording of any length has 120 spans at most; all samples are in spans, and
opcheck finds them sound; oparchive takes them along.
"""
import json
import os

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
    check_burst(box)
    check_archive(box)
    check_bounds(box)
    check_operf(box)


if __name__ == "__main__":
    opdtest.run(test, needs=opdtest.needs_perf)
