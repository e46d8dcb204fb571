#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport: what a recording had lost is in the ledger once, whoever tells it: LOST of a full ring,
LOST_SAMPLES of a driver, or those in which perf writes what
PERF_FORMAT_LOST has counted; by made-up streams with exact figures, and by a recording with rings
that are too small, against its own records and perf report.
"""
import collections
import os
import re
import shutil
import struct

import importtest as made
import opdtest
import perf_swap
from opdtest import require

CLOCK, FAULTS, CLOCK_ID, FAULTS_ID, UNKNOWN_ID = 0, 2, 71, 72, 999
FORMAT_ID, FORMAT_LOST = 4, 16
READ, TO_FILTER = 8, 1 << 15
AT_ALL, BY_PERF = 40, 0  # times
LEDGER = re.compile(r"^(\S+):\d+ received (\d+), stored (\d+)(?:, unattributed \d+)?(?:, lost_kernel (\d+))?$", re.MULTILINE)
UNKNOWN_LINE = re.compile(r"(\d+) samples were lost when it was recorded, of events that the file does not list")
STATS_EVENT, STATS_LOST = re.compile(r"^(\S+) stats:$"), re.compile(r"^\s*LOST_SAMPLES events:\s+(\d+)$")
ATTEMPTS = 5
RECORDING = ("-e", "cpu-clock/period=100000,name=cpu-clock/", "-e", "page-faults/period=1,name=page-faults/", "-m", "1", "-g")


def put_attr(config, identifier, read_format, sample_type=made.SAMPLE_TYPE):
    flags = 1 << 8 | 1 << 18  # mmap, sample_id_all
    attr = struct.pack("<IIQQQQQ", 1, 112, config, 1000000, sample_type, read_format, flags).ljust(112, b"\0")
    return made.put(made.ATTR, 0, attr + (struct.pack("<Q", identifier) if identifier else b""))


def who(identifier, time):
    return struct.pack("<IIQQ", made.PID, made.PID, time, identifier)


def lost(identifier, nr, time=AT_ALL):
    return made.put(perf_swap.LOST, 0, struct.pack("<QQ", identifier, nr) + who(identifier, time))


def lost_samples(identifier, nr, time, misc=0):
    return made.put(perf_swap.LOST_SAMPLES, misc, struct.pack("<Q", nr) + who(identifier, time))


def read_record(identifier, nr):
    return made.put(READ, 0, struct.pack("<IIQQQ", made.PID, made.PID, 5000, identifier, nr) + who(identifier, AT_ALL))


def told(out):
    return {name: int(nr or 0) for name, _, _, nr in LEDGER.findall(out)}


# records, what is lost with PERF_FORMAT_LOST and without it (of cpu-clock, of page-faults), and
# what is on no event's account
CASES = {
    "ring": (lost(CLOCK_ID, 5), (5, 0), (5, 0), 0),
    "driver": (lost(CLOCK_ID, 5) + lost_samples(CLOCK_ID, 6, AT_ALL) + lost_samples(FAULTS_ID, 7, AT_ALL), (11, 7), (11, 7), 0),
    "sums": (lost(CLOCK_ID, 5) + lost(FAULTS_ID, 1) + lost_samples(CLOCK_ID, 6, BY_PERF) + lost_samples(FAULTS_ID, 7,
            BY_PERF), (6, 7), (11, 8), 0),
    "both": (lost(CLOCK_ID, 5) + lost_samples(CLOCK_ID, 2, AT_ALL) + lost_samples(CLOCK_ID, 6, BY_PERF), (8, 0), (13, 0), 0),
    "read": (read_record(CLOCK_ID, 40) + lost(FAULTS_ID, 5) + lost_samples(CLOCK_ID, 5,
            BY_PERF) + read_record(FAULTS_ID, 40), (5, 0), (5, 5), 0),
    "filter": (lost_samples(CLOCK_ID, 90, BY_PERF, TO_FILTER) + lost(CLOCK_ID, 5), (5, 0), (5, 0), 0),
    "nobody": (lost(UNKNOWN_ID, 100) + lost(0, 1000) + lost_samples(UNKNOWN_ID, 9, AT_ALL) + lost(CLOCK_ID, 5),
               (5, 0), (5, 0), 1109),
}


def check_stream(box, name, read_format, records, wanted, unknown):
    begin = put_attr(CLOCK, CLOCK_ID, read_format) + put_attr(FAULTS, FAULTS_ID, read_format) + made.put_mapping()
    samples = b"".join(made.put_sample(identifier, 10 + i) for i, identifier in enumerate([CLOCK_ID] * 3 + [FAULTS_ID] * 2))
    result = made.import_stream(box, name, begin + samples + records)
    require(result.rc == 0, "%s: exit code %d: %s" % (name, result.rc, result.err))
    require(sorted(match[1:3] for match in LEDGER.findall(result.out)) == [("2", "2"), ("3", "3")], "%s: %s" % (name, result.out))
    require(tuple(told(result.out)[event] for event in ("cpu-clock", "page-faults")) == wanted,
            "%s: not %s: %s" % (name, wanted, result.out))
    line = UNKNOWN_LINE.search(result.err)
    require((int(line[1]) if line else 0) == unknown, "%s: not %d on no event's account: %s" % (name, unknown, result.err))
    with open(os.path.join(box.session, "samples", name, "stats", "lost_records_by_kernel"), encoding="ascii") as stats:
        require(int(stats.read()) == sum(wanted), "%s: the session has not what opimport says" % name)


def check_streams(box):
    for name, (records, counted, uncounted, unknown) in CASES.items():
        check_stream(box, name + "-counted", FORMAT_ID | FORMAT_LOST, records, counted, unknown)
        check_stream(box, name, FORMAT_ID, records, uncounted, unknown)


def check_late_event(box):
    """What an event lost that is told when samples of others have been counted."""
    begin = put_attr(CLOCK, CLOCK_ID, 0) + made.put_mapping() + made.put_sample(CLOCK_ID,
            made.SECOND) + made.put(made.ROUND, 0, b"")
    result = made.import_stream(box, "late", begin + made.put_sample(CLOCK_ID, 2 * made.SECOND) + made.put(made.ROUND,
            0, b"") + put_attr(FAULTS, FAULTS_ID, 0) +
                          lost(FAULTS_ID, 4) + lost_samples(FAULTS_ID, 5, AT_ALL))
    require(UNKNOWN_LINE.search(result.err) and UNKNOWN_LINE.search(result.err)[1] == "9", result.err)
    require(told(result.out) == {"cpu-clock": 0}, result.out)


def check_no_identifiers(box):
    """Two events are not told apart by samples that have no identifier, nor by records that have it
    elsewhere; one event needs none.
    """
    without = 1 | 2 | 4
    sample = made.put(perf_swap.SAMPLE, made.USER, struct.pack("<QIIQ", made.IMAGE + 0x100, made.PID, made.PID, 10))
    for name, second in (("none", put_attr(FAULTS, 0, 0, without)), ("some", put_attr(FAULTS, FAULTS_ID, 0))):
        result = made.import_stream(box, "two-" + name, put_attr(CLOCK, 0, 0, without) + second + sample)
        require(result.rc == 1 and "do not say to which event they belong" in result.err,
                "%s: %d: %s" % (name, result.rc, result.err))
        require(not made.totals(box, "two-" + name)[0], "samples of either event are counted as the first's")
    elsewhere = put_attr(CLOCK, CLOCK_ID, 0) + put_attr(FAULTS, FAULTS_ID, 0, made.SAMPLE_TYPE | 128)
    result = made.import_stream(box, "two-trailers", elsewhere + made.put_sample(CLOCK_ID, 10))
    require(result.rc == 1 and "do not say to which event they belong" in result.err, "%d: %s" % (result.rc, result.err))
    result = made.import_stream(box, "one", put_attr(CLOCK, 0, 0, without) + sample)
    require(result.rc == 0 and LEDGER.search(result.out)[3] == "1", result.out + result.err)


# ---- a recording ----

def events_of_ids(data):
    """{identifier: index of its event}."""
    found = {}
    for index, at in enumerate(range(data.attrs[0], sum(data.attrs), data.attr_size)):
        offset, size = struct.unpack_from("<QQ", data.bytes, at + data.attr_size - 16)
        found.update((identifier, index) for identifier in struct.unpack_from("<%dQ" % (size // 8), data.bytes, offset))
    return found


def losses_of(data):
    """What LOST says in all, and LOST_SAMPLES for each event; where the first of these stands."""
    events, sums, by_ring, first = events_of_ids(data), collections.Counter(), 0, None
    trailer = sum(perf_swap.SIZES[c] for c in data.trailer())
    bit = perf_swap.IDENTIFIER if data.sample_type & perf_swap.IDENTIFIER else perf_swap.ID
    place = trailer - made.offset_of(perf_swap.TRAILER_WORDS, bit, data.sample_type)
    for r in data.records():
        if r.type == perf_swap.LOST:
            by_ring += struct.unpack_from("<Q", data.bytes, r.offset + 16)[0]
        elif r.type == perf_swap.LOST_SAMPLES:
            first = first or r.offset
            identifier, = struct.unpack_from("<Q", data.bytes, r.offset + r.size - place)
            sums[events[identifier]] += struct.unpack_from("<Q", data.bytes, r.offset + 8)[0]
    return by_ring, sums, first


def check_perf_report(box, path, ours):
    result = box.run("perf", "report", "-i", path, "--stats", env=made.PERF_ENV)
    if result.rc != 0:
        print("perf report does not read what perf record wrote: %s" % result.err[-200:])
        return
    theirs, event = collections.Counter(), None
    for line in result.out.splitlines():
        event = STATS_EVENT.match(line)[1].replace(":", "_") if STATS_EVENT.match(line) else event
        if event and STATS_LOST.match(line):
            theirs[event] += int(STATS_LOST.match(line)[1])
    require(theirs == collections.Counter({name: nr for name, nr in ours.items() if nr}),
            "perf report has %s lost, opimport %s" % (theirs, ours))


def check_recording(box):
    path, cut = os.path.join(box.dir, "small.data"), os.path.join(box.dir, "cut.data")
    for _ in range(ATTEMPTS):
        box.good("perf", "record", "-q", "-B", "-a", *RECORDING, "-o", path, "--", "sh", "-c",
                 made.WORK.format(1), env=made.PERF_ENV)
        data = perf_swap.PerfData(path)
        data.mend_flags()
        data.write(path)
        by_ring, sums, first = losses_of(data)
        if by_ring and sums:
            break
    else:
        raise opdtest.Skip("rings of a page lost nothing, or perf does not ask what was lost (%d of full rings)" % by_ring)
    out = made.imported(box, "small", path)
    ours = told(out)
    require(sum(ours.values()) == sum(sums.values()) and sorted(nr for nr in ours.values() if nr) == sorted(sums.values()),
            "perf wrote %s, opimport says %s" % (sums, out))
    check_perf_report(box, path, ours)
    data.write(cut, data.bytes[:first])
    result = made.opimport(box, "--session-dir=" + box.session, "-o", "killed", cut)
    require(result.rc == 1 and sum(told(result.out).values()) == by_ring, "%d lost by full rings: %s" % (by_ring, result.out))
    print("%s lost as perf has summed it up; %d as the rings told, where it did not" % (ours, by_ring))


def test(box):
    check_streams(box)
    check_late_event(box)
    check_no_identifiers(box)
    check_recording(box)
    shutil.rmtree(os.path.join(box.session, "samples"))


if __name__ == "__main__":
    opdtest.run(test, made.needs_perf)
