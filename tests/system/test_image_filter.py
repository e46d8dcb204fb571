#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""--image: of two programs, their C library and the kernel, those are kept that were asked for; the
others are in the ledger, and the reports say so.
"""
import json
import os
import re

import opdtest
from opdtest import require

ENOUGH = 30
KINDS = ("spin", "library", "kernel")


def libc_of(program, box):
    """As the kernel names it."""
    return os.path.realpath(re.search(r"libc\.so\.6 => (\S+)", box.good("ldd", program)).group(1))


def is_kernel(sample_file):
    return sample_file.header.is_kernel


def is_region(sample_file):
    return "{dep}/{anon:" in sample_file.path


def total(box, test):
    box.opcontrol("--dump")
    return sum(f.total for f in box.files(live=True) if test(f))


def take(box, programs, wanted):
    """Both programs work in all places, until there is enough of each that is wanted."""
    for kind in KINDS:
        for program in programs:
            box.good(program, kind, 60)
    for kind, test in wanted:
        box.work_until(lambda test=test: total(box, test) >= ENOUGH, "no samples in the place of '%s'" % kind,
                       programs[0], kind, 100)


def check_told(box, status):
    """As many as the ledger has are told, as a note, and are no loss."""
    event = status["events"][0]
    result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session)
    note = "note: %d of %d samples of %s/samples/current were filtered when they were taken: " % (event["filtered"],
            event["received"], box.session)
    require(result.rc == 0 and note in result.err and "ost samples" not in result.err, "%s: %s" % (event, result.err))
    rows = json.loads(box.opreport("--format=json"))["ledger"]
    require([(row["filtered"], row["stored"]) for row in rows] == [(event["filtered"], event["stored"])],
            "--format=json: %s" % rows)
    shown = box.opcontrol("--status")
    require("    filtered: %d (" % event["filtered"] in shown and "Warning" not in shown, shown)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)


def run_one(box, programs, separate, image, wanted, is_allowed):
    print("--separate=%s --image=%s" % (separate, image), flush=True)
    box.start_daemon("--event=TIMER:497000", "--separate=" + separate, "--image=" + image)
    box.opcontrol("--reset")
    take(box, programs, wanted)
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    status = box.check_ledger()
    require(status["image_filter"] == image, "--status: %s" % status["image_filter"])
    require(status["events"][0]["filtered"] >= ENOUGH, "nothing is left out: %s" % status["events"][0])
    for sample_file in box.files():
        require(is_allowed(sample_file), "%s was not asked for" % sample_file.path)
    with open(os.path.join(box.session, "samples", "current", "dcookies"), encoding="utf-8") as stream:
        require(programs[1] not in stream.read(), "an image that was left out is in the table of images")
    check_told(box, status)
    box.shutdown()


def nothing_is_kept(box, program):
    """Of an image that does not run: that there are no samples is explained."""
    box.start_daemon("--event=TIMER:497000", "--image=" + box.copy_work("never-run"))
    box.opcontrol("--reset")
    box.good(program, "spin", 100)
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    event = box.check_ledger()["events"][0]
    require(event["stored"] == 0 and event["filtered"] == event["received"] >= ENOUGH, "all is left out: %s" % event)
    result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session)
    require(result.rc == 1 and "No sample found" in result.err and "note: %d of %d samples" % (event["filtered"],
            event["received"]) in result.err, result.err)
    box.shutdown()


def all_is_kept(box, programs):
    box.start_daemon("--event=TIMER:497000", "--separate=library", "--image=all")
    box.opcontrol("--reset")
    take(box, programs[::-1], [("spin", lambda f: f.name.app[1] == programs[1])])
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    status = box.check_ledger()
    require(status["image_filter"] == "" and status["events"][0]["filtered"] == 0, "%s" % status["events"][0])
    require("note:" not in box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session).err,
            "a note without a filter")
    box.shutdown()


def test(box):
    programs = [box.copy_work("wanted-app"), box.copy_work("other-app")]
    mine, libc = programs[0], libc_of(box.work, box)

    def of_mine(sample_file):
        return sample_file.name.app[1] == mine

    def in_libc(sample_file):
        return sample_file.name.image[1] == libc

    run_one(box, programs, "library,kernel", mine, [("spin", of_mine), ("library", lambda f: of_mine(f) and in_libc(f)),
                                                    ("kernel", lambda f: of_mine(f) and is_kernel(f))], of_mine)
    run_one(box, programs, "library", mine, [("spin", of_mine), ("library", lambda f: of_mine(f) and in_libc(f))],
            lambda f: of_mine(f) and not is_kernel(f))
    run_one(box, programs, "none", mine, [("spin", of_mine)], lambda f: f.name.image[1] == mine or (of_mine(f) and is_region(f)))
    run_one(box, programs, "none", libc, [("library", in_libc)], in_libc)
    nothing_is_kept(box, mine)
    all_is_kept(box, programs)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
