#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
--stacks: an event of its own takes stacks at its rate beside the flat samples, which stay as small
as they were. Its samples are in the ledger and in no sample file. A stop and a start continue the
ledger. The rings have what StackRingMaxUse= gives, and the rate follows. While opd does not run,
stacks take no room of the flat samples. With --stacks=event the configured events carry stacks.
What is asked for is checked.
"""
import os
import signal
import time

import opdtest
from opdtest import STACKS, require

FLAT_BYTES = 40  # of a sample without a stack
RATE = 99
BYTES = 8192
BUSY_SECONDS = 3
STOPPED_SECONDS = 5  # the rings hold stacks of 2 s and flat samples of 13 s
SMALLEST_RING = 128 * 1024


def stacks_of(status):
    return next((e for e in status["events"] if e["role"] == STACKS), None)


def ends_of(event):
    return sum(v for k, v in event.items() if k.startswith("end_"))


def be_busy(box):
    for child in box.busy_cpus(BUSY_SECONDS):
        require(child.wait(opdtest.CALL_SECONDS) == 0, "the busy program ends with %s" % child.returncode)


def take_some(box, *setup, with_files=False):
    """Profiles a busy program. Returns the status, with a ledger that adds up."""
    box.start_daemon("--event=TIMER:997000", *setup)
    be_busy(box)
    box.opcontrol("--stop")
    return box.check_ledger(with_files)


def bytes_per_record(status):
    return sum(c["bytes_read"] for c in status["cpus"]) / max(1, sum(c["records_read"] for c in status["cpus"]))


def check_rate(box):
    """Both clocks run while a CPU is busy."""
    status = take_some(box, "--stacks=on", with_files=True)
    event, flat = stacks_of(status), next(e for e in status["events"] if e["name"] == "TIMER")
    require(status["stack_rate_hz"] == status["stack_wanted_hz"] == RATE, "%s of %s Hz" % (
        status["stack_rate_hz"], status["stack_wanted_hz"]))
    require(status["stack_bytes"] == BYTES and event["count"] == 10 ** 9 // RATE, "bytes or count: %s" % event)
    taken, expected = event["received"] + event["lost_kernel"], (flat["received"] + flat["lost_kernel"]) * RATE / 1000
    print("%d stacks, %.0f expected of %d flat samples, %.0f bytes a record" % (
        taken, expected, flat["received"], bytes_per_record(status)))
    require(abs(taken - expected) < 0.1 * expected + 5, "%d stacks, %.0f expected" % (taken, expected))
    nr_bytes = sum(c["bytes_read"] for c in status["cpus"]) - FLAT_BYTES * flat["received"]
    require(FLAT_BYTES * event["received"] < nr_bytes < (BYTES + 2048) * event["received"] + 65536,
            "%d bytes of %d stacks: flat samples are not %d bytes" % (nr_bytes, event["received"], FLAT_BYTES))
    require(not [f for f in box.files() if f.name.event == event["name"]], "stacks have sample files")
    text = box.opcontrol("--status")
    require("Stacks: %d Hz on each CPU" % RATE in text, "the status does not show the rate: %s" % text)
    with open(os.path.join(box.session, "samples/current/stats/total_samples"), encoding="ascii") as stream:
        require(int(stream.read()) == flat["received"] + flat["lost_kernel"], "the genuine tools would count stacks")
    box.check_agreement()
    return event["received"]


def check_continued(box, nr_before):
    """The next daemon adds its stacks to the same row."""
    box.shutdown()
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    now = stacks_of(take_some(box))
    box.shutdown()
    with open(os.path.join(box.session, "samples/current/ledger"), encoding="ascii") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream if line.startswith("stacks\t")]
    require(len(rows) == 1 and rows[0][1:4] == ["STACKS", str(10 ** 9 // RATE), "0"], "the ledger has %s" % rows)
    numbers = {k: int(v) for k, v in (word.split("=") for word in rows[0][4:])}
    require(numbers["received"] == nr_before + now["received"], "%d before, %d now, the ledger has %s" % (
        nr_before, now["received"], numbers))
    require(ends_of(numbers) == numbers["received"], "the ends do not add up: %s" % numbers)


def check_off(box):
    status = take_some(box, "--stacks=off")
    require(stacks_of(status) is None and status["stack_bytes"] == 0, "stacks, which are off")
    require(bytes_per_record(status) == FLAT_BYTES, "%.1f bytes a record" % bytes_per_record(status))
    require("Stacks: off" in box.opcontrol("--status"), "the status does not say that stacks are off")
    box.shutdown()


def check_small_rings(box):
    box.configure(StackRingMaxUse="0", Waits="no")
    status = take_some(box, "--stacks=1000")
    event = stacks_of(status)
    require(status["stack_wanted_hz"] == 1000 and 1 <= status["stack_rate_hz"] < 1000, "%d Hz" % status["stack_rate_hz"])
    require(event["count"] == 10 ** 9 // status["stack_rate_hz"], "the count is not that of the rate: %s" % event)
    require(status["stack_ring_bytes"] == SMALLEST_RING, "rings of %(stack_ring_bytes)d bytes for stacks" % status)
    require("(not 1000: " in box.opcontrol("--status"), "the status does not say that the rate is another one")
    box.shutdown()
    box.configure(Waits="no")


def check_stopped(box):
    """Of what does not fit into the rings of a daemon that gets no CPU, all is stacks."""
    box.start_daemon("--event=TIMER:997000", "--stacks=on")
    busy = box.busy_cpus(STOPPED_SECONDS + BUSY_SECONDS)
    box.daemon.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    box.daemon.send_signal(signal.SIGCONT)
    for child in busy:
        require(child.wait(opdtest.CALL_SECONDS) == 0, "the busy program ends with %s" % child.returncode)
    box.opcontrol("--stop")
    status = box.check_ledger(with_files=False)
    stacks, flat = stacks_of(status), next(e for e in status["events"] if e["name"] == "TIMER")
    print("stopped: lost %d of %d stacks, %d of %d flat samples; rings of %d and %d bytes" % (
        stacks["lost_kernel"], stacks["taken"], flat["lost_kernel"], flat["taken"], status["stack_ring_bytes"],
        status["ring_bytes"]))
    require(flat["lost_kernel"] == 0, "%d flat samples are lost" % flat["lost_kernel"])
    require(stacks["lost_kernel"], "no stack was lost: nothing is shown")
    box.shutdown()


def check_event(box):
    """Each sample of the event has one end, and is in its sample file as well."""
    box.start_daemon("--stacks=event", "--event=page-faults:100")
    for _ in range(200):
        box.run("/bin/true")
    box.opcontrol("--stop")
    status = box.check_ledger()
    event = status["events"][0]
    require(len(status["events"]) == 1 and event["role"] == 0 and status["stack_rate_hz"] == 0, "events: %s" % status["events"])
    print("%d page faults with stacks" % event["received"])
    require(ends_of(event) == event["received"] > 0, "ends and samples differ: %s" % event)
    require("Stacks: with each sample" in box.opcontrol("--status"), "the status does not show it")
    box.shutdown()


def check_refusals(box):
    opcontrol = os.path.join(box.bin, "opcontrol")
    for word in ("maybe", "0", "10001", "99:63K", "99:", ":8K", "-1", "99:8K:1"):
        require("allowed: on, off, event" in box.refused(opcontrol, "--setup", "--stacks=" + word), word)
    said = box.refused(opcontrol, "--setup", "--stacks=event", "--event=page-faults:14")
    require("--stacks=event the count must be 15 or more" in said, said)


def test(box):
    box.configure(Waits="no")  # which share the rings: their bytes and records are counted here
    check_refusals(box)
    check_continued(box, check_rate(box))
    check_off(box)
    check_small_rings(box)
    check_stopped(box)
    check_event(box)


if __name__ == "__main__":
    opdtest.run(test)
