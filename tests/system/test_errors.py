#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""An error is reported in one line on stderr with exit code 1, and leaves nothing half-written."""
import os
import shutil

import opdtest
from opdtest import require

NOBODY = 65534


def listing(path):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(path) for f in files)


def without_root(box):
    """Programs that nobody can reach, so that only the privilege is missing, not the file."""
    away = os.path.join(box.dir, "programs")
    os.makedirs(away)
    names = {}
    for directory, name in ((box.sbin, "opd"), (box.bin, "opcontrol"), (box.bin, "opreport")):
        names[name] = shutil.copy(os.path.join(directory, name), away)
    env = {"OPD_DAEMON": names["opd"]}
    box.refused(names["opd"], user=NOBODY, env=env)
    for request in ("--start", "--start-daemon", "--stop", "--shutdown", "--reset", "--setup"):
        more = ["--event=TIMER:100000"] if request == "--setup" else []
        box.refused(names["opcontrol"], request, *more, user=NOBODY, env=env)
    require(not os.path.exists(box.session), "a session was made without root: %s" % listing(box.session))


def without_daemon(box):
    opcontrol, opreport = os.path.join(box.bin, "opcontrol"), os.path.join(box.bin, "opreport")
    box.refused(opcontrol, "--dump")
    box.refused(opreport, "--session-dir=" + os.path.join(box.dir, "nothing-here"))
    require(not os.path.exists(os.path.join(box.dir, "nothing-here")), "opreport made the session directory")


def bad_words(box):
    opcontrol, opreport = os.path.join(box.bin, "opcontrol"), os.path.join(box.bin, "opreport")
    for program in (opcontrol, opreport, box.env["OPD_DAEMON"]):
        line = box.refused(program, "--no-such-option")
        require("no-such-option" in line, "the option is not named: %s" % line)
    for event in ("NO_SUCH_EVENT:1000", "TIMER", "TIMER:", "TIMER:x", "TIMER:0", "TIMER:-5", "TIMER:1000:0:2",
                  "page-faults:1:0:1:1:1", ":5"):
        line = box.refused(opcontrol, "--setup", "--event=" + event)
        require(event.split(":")[0] in line, "the event is not named: %s" % line)
    box.refused(opcontrol, "--setup", "--separate=nonsense")
    box.refused(opcontrol, "--start", "--stop")
    require(not os.path.exists(os.path.join(box.session, "daemonrc")), "a refused setup was kept")
    box.opcontrol("--setup", "--event=page-faults:7")
    with open(os.path.join(box.session, "daemonrc"), encoding="utf-8") as stream:
        kept = stream.read()
    box.refused(opcontrol, "--setup", "--event=NO_SUCH_EVENT:1000")
    with open(os.path.join(box.session, "daemonrc"), encoding="utf-8") as stream:
        require(stream.read() == kept, "a refused setup changed what was kept")
    os.unlink(os.path.join(box.session, "daemonrc"))


def bad_configuration(box):
    missing = os.path.join(box.dir, "missing.conf")
    line = box.refused(box.env["OPD_DAEMON"], "--config=" + missing)
    require(missing in line, "the file is not named: %s" % line)


def unwritable(box):
    """A session directory on a read-only file system, and one below something that is no directory.
    """
    place = box.tmpfs("read-only", "size=1m")
    box.good("mount", "-o", "remount,ro", place)
    plain = os.path.join(box.dir, "plain-file")
    with open(plain, "w", encoding="ascii"):
        pass
    for session in (os.path.join(place, "session"), os.path.join(plain, "session")):
        box.configure(session=session)
        line = box.refused(box.env["OPD_DAEMON"])
        require(session in line, "the directory is not named: %s" % line)
        line = box.refused(os.path.join(box.bin, "opcontrol"), "--setup", "--event=TIMER:100000")
        require(session in line, "the directory is not named: %s" % line)
        require(not os.path.exists(box.socket), "a socket is left")
    box.configure()


def full_at_start(box):
    """No byte is free from the begin: opd reports it and leaves neither lock nor socket."""
    place = box.tmpfs("full", "size=64k")
    with open(os.path.join(place, "ballast"), "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    box.configure(session=os.path.join(place, "session"))
    box.refused(box.env["OPD_DAEMON"])
    box.refused(os.path.join(box.bin, "opcontrol"), "--setup", "--event=TIMER:100000")
    require(not os.path.exists(box.socket), "a socket is left")
    require(listing(os.path.join(place, "session")) == [], "left behind: %s" % listing(os.path.join(place, "session")))
    box.configure()


def full_while_running(box):
    """The disk fills up during the work: samples are counted as lost, every existing file is whole,
    and opd lives.
    """
    place = box.tmpfs("small", "size=256k")
    box.session = os.path.join(place, "session")
    box.configure()
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    for i in range(60):
        box.good(box.copy_work("filler-%d" % i), "faults", 500)
        box.good(os.path.join(box.bin, "opcontrol"), "--status", "--json")
    box.run(os.path.join(box.bin, "opcontrol"), "--dump")
    box.stop_on_full_disk()
    event = box.check_ledger(not_sampled=oracle.not_sampled())["events"][0]
    print("full disk: stored %d, lost_no_space %d" % (event["stored"], event["lost_no_space"]))
    require(event["stored"] > 0 and event["lost_no_space"] > 0, "stored %(stored)d, lost_no_space %(lost_no_space)d" % event)
    box.check_agreement()
    box.good("mount", "-o", "remount,size=16m", place)  # else the stop cannot write all, and says so with its exit code
    box.shutdown()


def no_such_session(box):
    opreport = os.path.join(box.bin, "opreport")
    box.refused(opreport, "--session-dir=" + box.session, "session:nope")
    box.refused(opreport, "--session-dir=" + box.session, "-l", "/no/such/image")
    empty = os.path.join(box.dir, "empty-session")
    os.makedirs(os.path.join(empty, "samples", "current"))
    box.refused(opreport, "--session-dir=" + empty)


def event_the_host_has_not(box):
    """A raw event on a machine without PMU is an error that names the event. With a PMU there is
    nothing to test.
    """
    if os.path.isdir("/sys/bus/event_source/devices/cpu") or os.path.isdir("/sys/bus/event_source/devices/cpu_core"):
        return
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--setup", "--event=cycles:1000000")
    require("cycles" in line, "the event is not named: %s" % line)


def test(box):
    without_root(box)
    without_daemon(box)
    bad_words(box)
    bad_configuration(box)
    event_the_host_has_not(box)
    unwritable(box)
    full_at_start(box)
    full_while_running(box)
    no_such_session(box)


if __name__ == "__main__":
    opdtest.run(test)
