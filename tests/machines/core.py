#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A core of ARM that has a name: its type, its events with their descriptions and codes, and samples
of an event by libpfm4's name of it.
"""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import require  # noqa: E402
from pmu import PERIOD, lift_rate_limit  # noqa: E402

DEVICES = "/sys/bus/event_source/devices/"
KERNEL_NAME, PFM_NAME, CORE = "armv8_cortex_a57", "arm_ac57", "ARM Cortex-A57"
# The Arm Architecture Reference Manual gives these numbers to all cores.
NUMBERS = {"INST_RETIRED": 0x8, "EXCEPTION_TAKEN": 0x9, "CPU_CYCLES": 0x11, "BUS_ACCESS": 0x19}
WORK_MS, EVENT = 3000, "CPU_CYCLES"


def events_of(text):
    """{name: (description, number)} of the core, as ophelp lists them."""
    pattern = r"^%s::(\S+): .*((?:\n\t.*)+?)\n\t\(opcontrol --event=r([0-9a-f]+):COUNT\)$" % PFM_NAME
    return {name: (description, int(number, 16)) for name, description, number in re.findall(pattern, text, re.M)}


def check_names(box):
    ophelp = os.path.join(box.bin, "ophelp")
    kind, text = box.good(ophelp, "-r").strip(), box.good(ophelp)
    require(kind == CORE and 'CPU type "%s"' % CORE in text, "ophelp takes the core for %s" % kind)
    require("%s/cpu_cycles/" % KERNEL_NAME in text, "ophelp does not list the events of the kernel's driver")
    events = events_of(text)
    require(len(events) == text.count("\n%s::" % PFM_NAME), "some events have no description or no code")
    require(all(description.strip() for description, _ in events.values()), "some descriptions are empty: %s" % events)
    require(len({number for _, number in events.values()}) == len(events), "two events have one number: %s" % events)
    for name, number in NUMBERS.items():
        require(events.get(name, (None, None))[1] == number, "%s is %s, not %d" % (name, events.get(name), number))
    print("%s: %d events" % (kind, len(events)))


def check_samples(box):
    lift_rate_limit()
    app = box.copy_work("busy-app")
    box.start_daemon("--event=%s::%s:%d" % (PFM_NAME, EVENT, PERIOD))
    box.good(app, "spin", WORK_MS)
    box.opcontrol("--stop")
    row = next(row for row in box.check_ledger()["events"] if row["name"] == EVENT)
    names = {f.name.event for f in box.files()}
    print("%s: %d samples, of %s in sample files" % (EVENT, row["stored"], names))
    require(row["stored"] >= WORK_MS / 20 and names == {EVENT}, "%s, in files of %s" % (row, names))
    report = box.opreport("-l", app)
    require(report.startswith("CPU: %s\nCounted %s events" % (CORE, EVENT)) and re.search(r"busy-app +spin_", report), report)
    box.shutdown()


def test(box):
    require(os.path.isdir(DEVICES + KERNEL_NAME), "the kernel's PMUs are %s" % glob.glob(DEVICES + "*"))
    check_names(box)
    check_samples(box)


if __name__ == "__main__":
    opdtest.run(test)
