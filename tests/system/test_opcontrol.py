#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol by itself: what goes with what, what is kept of a setup, and how it speaks of a daemon that is not as it should be."""
import json
import os
import subprocess

import opdtest
from opdtest import require

STATUS_KEYS = {"state", "pid", "uptime_ns", "running_ns", "cpu_ns", "rss_bytes", "nr_files", "nr_processes", "nr_images", "dumps", "has_pmu",
               "session_dir", "vmlinux", "kernel_note", "separate_lib", "separate_kernel", "separate_thread", "separate_cpu", "nr_events",
               "nr_cpus", "events", "cpus"}
LOSSES = {"lost_undecodable", "lost_no_space", "lost_too_many_files", "lost_io_error", "lost_no_memory"}
EVENT_KEYS = LOSSES | {"name", "count", "unit_mask", "every_event", "taken", "received", "stored", "unattributed", "lost_kernel",
                       "outstanding", "throttled_ns", "nr_throttles"}
CPU_KEYS = LOSSES | {"cpu", "online", "swaps", "swap_wait_ns", "bytes_read", "records_read", "sideband_bytes", "sideband_lost", "damaged", "received",
                     "lost_kernel", "throttled_ns"}


def opcontrol(box):
    return os.path.join(box.bin, "opcontrol")


def kept(box, name="daemonrc"):
    with open(os.path.join(box.session, name), encoding="ascii") as stream:
        return dict(line.rstrip("\n").split("=", 1) for line in stream)


def what_goes_with_what(box):
    cases = [(("--start", "--stop"), 'Option "--stop" not valid with other options.'),
             (("--dump", "--start-daemon"), 'Option "--start-daemon" not valid with other options.'),
             (("--dump", "--event=TIMER:100000"), 'Option "--setup" not valid with "--dump".'),
             (("--shutdown", "--session-dir=/x"), 'Option "--setup" not valid with "--shutdown".'),
             (("--verbose", "--stop"), 'Option "--verbose" not valid with "--stop".'),
             (("--setup",), "No options specified"),
             (("--json",), "--json"), (("word",), "word"), (("--event",), "--event"), (("-x",), "-x")]
    for words, text in cases:
        line = box.refused(opcontrol(box), *words)
        require(text in line, "%r, but expected %r" % (line, text))
    require(not os.path.exists(box.session), "a refused call made the session directory")
    require(box.run(opcontrol(box)).rc == 0 and "--separate" in box.run(opcontrol(box)).err, "no help")
    listed = box.good(opcontrol(box), "--list-events")
    require("TIMER" in listed and "page-faults" in listed, listed)
    require(box.status() == {"state": "not running"}, "status of no daemon: %s" % box.status())
    box.good(opcontrol(box), "--status", "--start", "--event=nonsense")


def what_is_kept(box):
    box.opcontrol("-e", "timer:200000", "-e", "page-faults:3:0:0", "-p", "kernel", "-c", "7")
    setup = kept(box)
    require(setup["CHOSEN_EVENTS_0"] == "TIMER:200000:0:1:1" and setup["CHOSEN_EVENTS_1"] == "page-faults:3:0:0:1", setup)
    require(setup["NR_CHOSEN"] == "2" and setup["CALLGRAPH"] == "7", setup)
    require(setup["SEPARATE_LIB"] == "1" and setup["SEPARATE_KERNEL"] == "1" and setup["SEPARATE_CPU"] == "0", setup)
    box.opcontrol("--separate=thread,cpu")
    setup = kept(box)
    require(setup["NR_CHOSEN"] == "2" and setup["SEPARATE_LIB"] == "0" and setup["SEPARATE_THREAD"] == "1", setup)
    for words in (("--event=TIMER:100000", "--event=timer:100000"), ("--event=default", "--event=TIMER:100000"), ("--separate=all,x",),
                  ("--event=page-faults:1", "--vmlinux=/no/such/file"), ("--callgraph=128",), ("--kernel-range=5,4",), ("--session-dir=/a b",),
                  ("--buffer-size=-1",)):
        box.refused(opcontrol(box), *words)
    require(kept(box) == setup, "a refused call changed the setup: %s" % kept(box))
    box.opcontrol("--event=default", "--no-vmlinux")
    require(kept(box)["NR_CHOSEN"] == "0", kept(box))
    os.unlink(os.path.join(box.session, "daemonrc"))


def stub(box, text):
    path = os.path.join(box.dir, "stub")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return {"OPD_DAEMON": path}


def bad_daemons(box):
    """A daemon that ends before it is ready: its last line is the reason."""
    line = box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000",
                       env=stub(box, "echo 'opd: all is well' >&2; echo 'opd: the disk burns' >&2; exit 1\n"))
    require(line == "opcontrol: opd does not start: the disk burns", line)
    line = box.refused(opcontrol(box), "--start-daemon", env=stub(box, "exit 3\n"))
    require("exit code 3" in line, line)
    line = box.refused(opcontrol(box), "--start-daemon", env=stub(box, "kill -9 $$\n"))
    require("signal 9" in line, line)
    line = box.refused(opcontrol(box), "--start-daemon", env={"OPD_DAEMON": "/no/such/opd"})
    require("/no/such/opd" in line, line)


def stale_locks(box):
    """The number of a process that has ended, of one that is no opd, and no number."""
    child = subprocess.Popen(["true"])
    child.wait()
    for text in (str(child.pid), str(os.getpid()), "x"):
        with open(os.path.join(box.session, "lock"), "w", encoding="ascii") as stream:
            stream.write(text)
        require(box.status() == {"state": "not running"}, "lock %r: %s" % (text, box.status()))
        result = box.run(opcontrol(box), "--stop")
        require("Detected stale lock file. Removing." in result.out and result.rc == 0, "lock %r: %r" % (text, result))
        require(not os.path.exists(os.path.join(box.session, "lock")), "lock %r is still there" % text)


def setup_while_it_runs(box):
    box.start_daemon("--event=TIMER:300000")
    box.opcontrol("--event=TIMER:400000")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:300000"), kept(box))
    require("Event 0: TIMER:300000:0:1:1\n" in box.opcontrol("--status"), "--status shows what is not in use")
    box.opcontrol("--separate=none")
    require(kept(box, "daemonrc_new")["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the second setup forgot the first")
    status = box.status()
    require(set(status) == STATUS_KEYS, "keys: %s" % sorted(set(status) ^ STATUS_KEYS))
    require(all(set(e) == EVENT_KEYS for e in status["events"]), "keys of an event: %s" % json.dumps(status["events"]))
    require(all(set(c) == CPU_KEYS for c in status["cpus"]), "keys of a CPU: %s" % json.dumps(status["cpus"]))
    require((len(status["events"]), len(status["cpus"])) == (status["nr_events"], status["nr_cpus"]), "numbers of events and CPUs")


def mute_daemon(box):
    """A daemon whose socket has gone is neither taken for dead nor started twice, and it can be ended."""
    os.rename(box.socket, box.socket + ".away")
    for request in ("--start", "--stop", "--reset"):
        line = box.refused(opcontrol(box), request)
        require("pid %d" % box.daemon.pid in line and box.socket in line, line)
    require(box.status() == {"state": "not answering", "pid": box.daemon.pid}, "status: %s" % box.status())
    require("Killing daemon." in box.opcontrol("--shutdown"), "nothing is said")
    require(box.daemon.wait(60) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket + ".away")
    box.check_rest()


def unreadable_setup(box):
    """What is wrong in daemonrc is said with its line; it does not keep a daemon from being ended."""
    box.opcontrol("--stop")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the setup that waited did not take effect")
    box.start_daemon()
    path = os.path.join(box.session, "daemonrc")
    with open(path, "a", encoding="ascii") as stream:
        stream.write("what is this\n")
    with open(path, encoding="ascii") as stream:
        where = "%s:%d" % (path, len(stream.readlines()))
    for words in (("--start",), ("--separate=all",)):
        line = box.refused(opcontrol(box), *words)
        require(where in line, line)
    result = box.run(opcontrol(box), "--shutdown")
    require(result.rc == 0 and where in result.err, "--shutdown: %s" % (result,))
    require(box.daemon.wait(60) == 0, "opd ended with %s" % box.daemon.returncode)
    line = box.refused(box.env["OPD_DAEMON"])
    require(where in line, line)


def test(box):
    what_goes_with_what(box)
    what_is_kept(box)
    bad_daemons(box)
    stale_locks(box)
    setup_while_it_runs(box)
    mute_daemon(box)
    unreadable_setup(box)


if __name__ == "__main__":
    opdtest.run(test)
