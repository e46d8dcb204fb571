#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
IBS samples through a memory pair into a running opd that samples TIMER live: both end in one
session with exact ledgers, and each
derived event has what the predicates say. What may be asked of IBS, and what is said where it
cannot be.
"""
import os
import random
import re
import struct
import subprocess

import elfsyms
import opdtest
import test_ibs_import
import test_import_stop
from opdtest import require

import ibsdata
import ibswork

NR_FED, NR_RUSHED = 10000, 20000
FED_SECONDS = 60
FED_CPU = 4000
TIMER = "TIMER:1000000"
RUSH = struct.Struct("<IHH")
RUSH_TYPE = 0x7fff0000
LDLAT_FILTER = "IBS_OP_LOAD:100000:1:1:1:ldlat=128"
COUNT = ":%d" % ibsdata.PERIOD


def use_fed_programs(box):
    directory = os.path.join(os.environ["OPD_BUILD"], "tests", "system")
    box.use_program(os.path.join(directory, "fed_opd"))
    box.env["OPD_FED_FIFO"] = os.path.join(box.dir, "fifo")
    box.env["OPROFILE_EVENTS_DIR"] = os.path.join(test_ibs_import.SOURCE, "events")
    os.mkfifo(box.env["OPD_FED_FIFO"])
    box.give(box.env["OPD_FED_FIFO"])
    fed_opcontrol = os.path.join(directory, "fed_opcontrol")
    box.opcontrol = lambda *args: box.good(fed_opcontrol, *args)
    return fed_opcontrol


def check_requests(box, opcontrol):
    """On a Zen 4."""
    for spec, pattern in (
            ("IBS_OP_LOAD:100001", "the nearest is 100000"), ("IBS_OP_LOAD:100", "the nearest is 144"),
            ("IBS_OP_LOAD:100000:2", "no unit mask 2"), (LDLAT_FILTER, "does not have the filter 'ldlat=128'"),
            ("IBS_OP_RESYNC:100000", "the IBS of this CPU does not have it"), ("IBS_FETCH_ALL:100000:ldlat=128", "for ops only"),
            ("IBS_OP_NOTHING:100000", "no such event")):
        line = box.refused(opcontrol, "--setup", "--event=" + spec)
        require(re.search(pattern, line), "--event=%s: %r" % (spec, line))
    line = box.refused(opcontrol, "--setup", "--event=IBS_OP_LOAD:100000", "--event=IBS_OP_STORE:200000")
    require("its count differs from that of IBS_OP_LOAD" in line, line)
    events = box.good(opcontrol, "--list-events")
    require("IBS_OP_DC_LOAD_LAT: (min count: 144)" in events and "(cycles, not samples)" in events, events)
    box.good(opcontrol, "--setup", "--event=IBS_FETCH_ALL:100000:rand:l3miss")
    box.good(opcontrol, "--setup", "--event=default")


def check_absence(box):
    """On this host, unless it has IBS."""
    if os.path.exists("/sys/bus/event_source/devices/ibs_op"):
        return
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--setup", "--event=IBS_OP_LOAD:100000")
    require(re.search("another vendor's|has no IBS|hypervisor hides|firmware|kernel does not offer", line), line)
    print(line)


def exec_base(pid, image):
    """Where offset 0 of the image would be for the addresses of its code."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        for line in maps:
            fields = line.split()
            if fields[-1] == image and "x" in fields[1]:
                return int(fields[0].split("-")[0], 16) - int(fields[2], 16)
    raise opdtest.Failure("%s is not mapped in process %d" % (image, pid))


class Feeder:
    def __init__(self, path):
        self.stream = open(path, "wb")  # blocks until opd reads

    def feed(self, samples, pid):
        for number, placed in enumerate(samples):
            self.stream.write(ibsdata.sample(placed.record, number, placed.ip, pid))
        self.stream.flush()

    def rush(self, on):
        self.stream.write(RUSH.pack(RUSH_TYPE, on, RUSH.size))


def rows(box):
    return {event["name"]: event for event in box.status()["events"]}


def await_samplers(box, wanted):
    """Until all that was fed has arrived or was lost."""
    def arrived():
        now = rows(box)
        return all(now[name]["received"] + now[name]["lost_kernel"] == nr for name, nr in wanted.items())

    opdtest.wait_until(arrived, FED_SECONDS, "what was fed has not arrived: %s" % wanted)


def by_kind(samples):
    return {name: sum(placed.record.kind == kind for placed in samples) for kind, name in ((0, "ibs_fetch"), (1, "ibs_op"))}


def check_reasons(box, reasons):
    status = box.status()
    both = reasons[0] + reasons[1]
    names = {"decoded": "decoded", "cut short": "cut", "too few registers": "short", "no whole number of registers": "uneven",
             "no capability word": "no_caps", "more registers than announced": "extra", "not valid": "not_valid"}
    for reason, name in names.items():
        require(status["ibs_" + name] == both[reason], "%s: %d, not %d" % (name, status["ibs_" + name], both[reason]))
    for kind, name in enumerate(("ibs_fetch", "ibs_op")):
        row = rows(box)[name]
        require(row["stored"] == reasons[kind]["decoded"], "%s: %r, not %r" % (name, row, reasons[kind]))


def fed_counts(box, functions, image):
    report = test_ibs_import.report_of(box, "current", "event:" + ",".join(n for n in test_ibs_import.numbers_of_names()),
                                       "image:" + image)
    return test_ibs_import.counts_of_report(report, test_ibs_import.numbers_of_names())


def test(box):
    opcontrol = use_fed_programs(box)
    check_absence(box)
    check_requests(box, opcontrol)
    image = box.copy_work("reader", os.path.join(os.environ["OPD_BUILD"], "bin", "opimport"))
    reader = box.start_piped(image, "--session-dir=" + os.path.join(box.dir, "unused"))
    opdtest.wait_until(lambda: test_import_stop.waits(reader), opdtest.HANG_SECONDS, "the process does not wait")
    functions = test_ibs_import.functions_of(image)
    functions.base = exec_base(reader.pid, image)
    listed = box.good(opcontrol, "--list-events")
    events = [name for name in test_ibs_import.numbers_of_names() if "\n%s: " % name in listed]
    setup = ["--event=" + TIMER] + ["--event=" + name + COUNT for name in events]
    box.start_daemon(*setup)
    feeder = Feeder(box.env["OPD_FED_FIFO"])
    busy = box.busy_cpus(3)
    rng = random.Random(random.SystemRandom().getrandbits(32))
    samples = [ibswork.random_placed(rng, test_ibs_import.ZEN4, functions, 0.1) for _ in range(NR_FED)]
    feeder.feed(samples, reader.pid)
    await_samplers(box, by_kind(samples))
    for child in busy:
        child.wait()
    box.opcontrol("--stop")
    wanted, _, reasons = ibswork.expected(test_ibs_import.ZEN4, samples, functions)
    check_reasons(box, reasons)
    test_ibs_import.compare_events(fed_counts(box, functions, image), wanted, "live")
    box.check_ledger()
    timer = rows(box)["TIMER"]
    require(timer["stored"] >= 1000, "TIMER has %d samples only" % timer["stored"])
    print("%d IBS samples beside %d of TIMER, %d events" % (NR_FED, timer["stored"], len(wanted)))
    check_rush(box, feeder, samples, reader.pid)
    feeder.stream.close()
    box.shutdown()
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "current")


def fed_cpu(box):
    """A LOST record of a memory ring is for the ring and names no event."""
    return next(cpu for cpu in box.status()["cpus"] if cpu["cpu"] == FED_CPU)


def check_rush(box, feeder, samples, pid):
    """A writer that does not wait: what finds no room is lost_kernel, to the last one."""
    box.opcontrol("--start")
    rushed = (samples * 2)[:NR_RUSHED]
    feeder.rush(1)
    feeder.feed(rushed, pid)
    feeder.rush(0)
    feeder.feed(samples[:1000], pid)
    total = len(samples) + len(rushed) + 1000

    def arrived():
        return sum(fed_cpu(box)[key] for key in ("received", "lost_kernel")) == total

    opdtest.wait_until(arrived, FED_SECONDS, "%d were fed: %s" % (total, fed_cpu(box)))
    box.opcontrol("--stop")
    box.check_ledger()
    lost = fed_cpu(box)["lost_kernel"]
    require(lost > 0, "the ring held everything")
    print("in a rush: %d lost of %d" % (lost, len(rushed)))


if __name__ == "__main__":
    opdtest.run(test)
