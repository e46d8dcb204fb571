#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol's requests in every order that its manual promises: words, exit codes, and what each of
them leaves.
"""
import os

import opdtest
from opdtest import require

SETUP = ("--event=TIMER:200000", "--separate=library,kernel")


def opcontrol(box, *args):
    """Exit code, output and errors of a request that must succeed."""
    result = box.run(os.path.join(box.bin, "opcontrol"), *args)
    require(result.rc == 0, "opcontrol %s: exit code %d: %s" % (" ".join(args), result.rc, result.err))
    return result


def said(result, text):
    require(text in result.out, "'%s' is not said, but %r, %r" % (text, result.out, result.err))


def silent(result):
    require(not result.out and not result.err, "not silent: %r %r" % (result.out, result.err))


def samples(box):
    return sum(f.total for f in box.files(live=True))


def before_any_daemon(box):
    said(opcontrol(box, "--version"), "opcontrol")
    opcontrol(box, "--help")
    said(opcontrol(box, "--status"), "Daemon not running")
    for request in ("--stop", "--shutdown"):
        require(opcontrol(box, request).err.strip(), "%s without a daemon gives no notice" % request)
    box.refused(os.path.join(box.bin, "opcontrol"), "--dump")


def start_and_stop(box, path):
    """--start also starts the daemon. A second --start or --stop changes nothing. --dump works
    while paused.
    """
    opcontrol(box, "--setup", *SETUP)
    first = opcontrol(box, "--start")
    said(first, "Daemon started.")
    said(first, "Profiler running.")
    pid = box.status()["pid"]
    box.known_pids.add(pid)
    require(pid == box.lock_pid() and box.is_opd(pid), "the lock says %d, the daemon is %d" % (box.lock_pid(), pid))
    again = opcontrol(box, "--start")
    require(again.out.split("\n")[0] == "Profiler running.", "the second --start says %r" % again.out)
    require(box.status()["pid"] == pid, "the second --start made another daemon")
    said(opcontrol(box, "--status"), "Daemon running: pid %d" % pid)
    box.good(path, "spin", 300)
    short_status(box)
    said(opcontrol(box, "--stop"), "Stopping profiling.")
    silent(opcontrol(box, "--stop"))
    said(opcontrol(box, "--status"), "Daemon paused: pid %d" % pid)
    counted = samples(box)
    require(counted > 500, "%d samples after 300 ms at 5 kHz" % counted)
    box.good(path, "spin", 200)
    opcontrol(box, "--dump")
    require(samples(box) == counted, "a paused daemon counts")
    box.check_ledger()
    return pid


def dump_is_complete(box, path):
    """Samples taken before --dump are in the files when it returns: the end of profiling adds none.
    """
    def counted():
        return sum(f.total for f in box.files(live=True) if f.name.app[1] == path)

    opcontrol(box, "--start")
    before = counted()
    box.good(path, "spin", 500)
    opcontrol(box, "--dump")
    dumped = counted()
    opcontrol(box, "--stop")
    require(dumped > before + 500, "%d samples before 500 ms at 5 kHz, %d after the dump" % (before, dumped))
    require(counted() == dumped, "%d samples after the dump, %d after the stop" % (dumped, counted()))


def reset(box, path):
    """--reset empties the current session, keeps the others, and counting goes on."""
    saved = os.path.join(box.session, "samples", "kept", "{root}")
    os.makedirs(saved)
    opcontrol(box, "--start")
    opcontrol(box, "--reset")
    box.good(path, "spin", 300)
    opcontrol(box, "--stop")
    require(samples(box) > 500, "nothing is counted after a reset: %d" % samples(box))
    require(os.path.isdir(saved), "a saved session was touched")
    opcontrol(box, "--reset")
    require(not box.files(), "a reset leaves %d files" % len(box.files()))
    box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session)


def short_status(box):
    """--status fits 80 columns, but for paths, and agrees with the ledger."""
    shown = opcontrol(box, "--status").out
    for line in shown.splitlines():
        require(len(line) <= 80 or box.dir in line, "--status has a line of %d columns: %r" % (len(line), line))
    for word in ("Daemon running: pid ", "Up ", "Profiles: TIMER:200000 on %d CPU" % len(box.status()["cpus"]), "Separate: ",
                 "Cost: ", " % of one CPU", " MiB of memory", "History: 0 closed sessions", "Session-dir: " + box.session):
        require(word in shown, "--status does not show %r: %s" % (word, shown))
    row = next(line.split() for line in shown.splitlines() if line.startswith("  TIMER:200000 "))
    event = box.status()["events"][0]
    require(0 < int(row[1]) <= event["stored"] and int(row[2]) <= event["lost_kernel"],
            "--status: %s, the ledger: %s" % (row, event))
    every = opcontrol(box, "--status", "--verbose").out
    require("lost_kernel" in every and "Rings: " in every and len(every) > len(shown), "--verbose adds nothing: %s" % every)


def setup_while_running(box):
    """A setup made while a daemon runs waits until it has gone."""
    kept = os.path.join(box.session, "daemonrc")
    with open(kept, encoding="utf-8") as stream:
        old = stream.read()
    opcontrol(box, "--setup", "--event=page-faults:3")
    with open(kept, encoding="utf-8") as stream:
        require(stream.read() == old, "the setup of a running daemon was changed")
    require(os.path.exists(os.path.join(box.session, "daemonrc_new")), "no daemonrc_new")
    said(opcontrol(box, "--status", "--verbose"), "TIMER:200000:0:1:1")


def shutdown(box, pid):
    said(opcontrol(box, "--shutdown"), "Daemon stopped.")
    opdtest.wait_until(lambda: not opdtest.is_alive(pid), opdtest.HANG_SECONDS, "the daemon is still there after --shutdown")
    require(not os.path.exists(os.path.join(box.session, "lock")), "the lock is still there")
    require(opcontrol(box, "--shutdown").err.strip(), "a second --shutdown gives no notice")
    said(opcontrol(box, "--status"), "Daemon not running")
    opcontrol(box, "--reset")


def new_setup_counts(box):
    """The waiting setup is now in use, and --start-daemon alone does not count."""
    said(opcontrol(box, "--start-daemon"), "Daemon started.")
    status = box.status()
    box.known_pids.add(status["pid"])
    require(status["state"] == "paused", "after --start-daemon the state is %s" % status["state"])
    require(status["events"][0]["name"] == "page-faults" and status["events"][0]["count"] == 3, "events: %s" % status["events"])
    silent(opcontrol(box, "--start-daemon"))
    opcontrol(box, "--shutdown")
    opdtest.wait_until(lambda: not opdtest.is_alive(status["pid"]), opdtest.HANG_SECONDS,
                       "the daemon is still there after --shutdown")


def apply(box):
    """--apply: the setup takes effect at once, and the next daemon profiles if this one did.
    --deinit ends it.
    """
    for request, state in (("--start-daemon", "paused"), ("--start", "running")):
        opcontrol(box, request)
        before = box.status()
        count = before["events"][0]["count"] + 1
        out = opcontrol(box, "--apply", "--event=page-faults:%d" % count)
        said(out, "Daemon started.")
        after = box.status()
        box.known_pids.add(after["pid"])
        require(after["pid"] != before["pid"] and after["state"] == state == before["state"], "%s, then %s" % (before, after))
        require(after["events"][0]["count"] == count and not after["setup_waits"], "--apply: %s" % after["events"])
    said(opcontrol(box, "--deinit"), "Daemon stopped.")
    said(opcontrol(box, "--status"), "Daemon not running")


def stale_lock(box):
    with open(os.path.join(box.session, "lock"), "w", encoding="ascii") as stream:
        stream.write("4194303")
    box.give(stream.name)
    opcontrol(box, "--start")
    box.known_pids.add(box.status()["pid"])
    opcontrol(box, "--shutdown")
    require(not os.path.exists(os.path.join(box.session, "lock")), "the lock is still there")
    require(not os.path.exists(os.path.join(box.session, "unclean")), "the session was not looked at")


def test(box):
    path = box.copy_work("control-app")
    before_any_daemon(box)
    pid = start_and_stop(box, path)
    dump_is_complete(box, path)
    reset(box, path)
    setup_while_running(box)
    shutdown(box, pid)
    new_setup_counts(box)
    apply(box)
    stale_lock(box)


if __name__ == "__main__":
    opdtest.run(test)
