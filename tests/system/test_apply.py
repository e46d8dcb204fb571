#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Daemons that do not start or do not end as they should: what --start, --start-daemon, --apply and
--shutdown do, and that they report it.
"""
import errno
import os
import signal
import subprocess
import types

import opdtest
from opcontroltest import SHUTDOWN, STATUS, FakeDaemon, kept, opcontrol, status_payload, stub
from opdtest import require

LINGER_SECONDS = 2


def profiling(box):
    with open(os.path.join(box.session, "profiling"), encoding="ascii") as stream:
        return stream.read()


def know(box):
    """The daemon that opcontrol has started is one of the test's."""
    status = box.status()
    box.known_pids.add(status["pid"])
    return status


class Unkillable:
    """A daemon that neither answers nor obeys SIGTERM, with files of its own, and its --shutdown,
    which takes a minute.
    """

    def __init__(self, box):
        self.place = types.SimpleNamespace(session=os.path.join(box.dir, "unkillable"), socket=os.path.join(box.dir,
                "unkillable.socket"))
        os.mkdir(self.place.session)
        config = os.path.join(box.dir, "unkillable.conf")
        with open(config, "w", encoding="utf-8") as stream:
            stream.write("SessionDir=%s\nControlSocket=%s\n" % (self.place.session, self.place.socket))
        heeded = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.daemon = FakeDaemon(self.place, {}, locked=True)
        signal.signal(signal.SIGTERM, heeded)
        self.call = subprocess.Popen([opcontrol(box), "--config=" + config, "--shutdown"], env=box.env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def check(self):
        out, err = self.call.communicate(timeout=opdtest.HANG_SECONDS)
        require(self.daemon.ended_by() == signal.SIGKILL, "it was not killed: %s, %s" % (out, err))
        require(self.call.returncode == 1 and "Daemon stopped.\n" in out, "exit code %d: %s" % (self.call.returncode, out))
        require(err == "opcontrol: opd (pid %d) had to be killed: samples that it had not written are "
                       "lost\n" % self.daemon.pid, err)
        require(os.path.exists(os.path.join(self.place.session, "unclean")), "the next daemon does not look at the session")


def answered_with_an_error(box):
    """A daemon that ends and could not write everything: opcontrol reports it, and waits for the
    daemon although its lock is free already.
    """
    with FakeDaemon(box, {STATUS: (0, status_payload), SHUTDOWN: (errno.ENOSPC, b"the disk is full")},
                    end_after=SHUTDOWN, locked=True, linger=LINGER_SECONDS) as daemon:
        result = box.run(opcontrol(box), "--shutdown")
        require((result.rc, result.err) == (1, "opcontrol: --shutdown: the disk is full\n"), "--shutdown: %s" % (result,))
        require(not opdtest.is_alive(daemon.pid), "the daemon was not waited for")


def paused_once(box):
    """--start-daemon pauses only the daemon that it starts. The state of the last --start or --stop
    stays as it is, also when no daemon starts.
    """
    box.opcontrol("--start", "--event=TIMER:1000000")
    know(box)
    box.opcontrol("--shutdown")
    require(profiling(box) == "on\n", profiling(box))
    box.refused(opcontrol(box), "--start-daemon", env=stub(box, "exit 3\n"))
    require(profiling(box) == "on\n", "a failed --start-daemon makes it %s" % profiling(box))
    box.start_process(box.env)
    require(box.status()["state"] == "running", "a failed --start-daemon pauses the next daemon")
    box.shutdown()
    box.opcontrol("--start-daemon")
    require(know(box)["state"] == "paused", "--start-daemon profiles")
    require(profiling(box) == "on\n" and not os.path.exists(os.path.join(box.session, "paused")),
            "--start-daemon leaves: %s" % os.listdir(box.session))
    box.opcontrol("--shutdown")
    box.start_process(box.env)
    require(box.status()["state"] == "running", "--start-daemon pauses the next daemon, too")
    box.shutdown()
    os.unlink(os.path.join(box.session, "profiling"))
    box.refused(opcontrol(box), "--start-daemon", env=stub(box, "exit 3\n"))
    require(not os.path.exists(os.path.join(box.session, "profiling")), "a failed --start-daemon says what to do")


def one_of_two_starts(box):
    """Somebody else has started a daemon just before: that is what was asked for."""
    program = box.env["OPD_DAEMON"]
    other = "mkdir %s/first 2>/dev/null && OPD_DAEMON=%s %s --start-daemon >/dev/null\nexec %s\n" % (box.dir, program,
            opcontrol(box), program)
    result = box.run(opcontrol(box), "--start", env=stub(box, other))
    status = know(box)
    require((result.rc, result.out, result.err) == (0, "Using default event: %s" % result.out.split(": ", 1)[-1], ""),
            "--start: %s" % (result,))
    require("Daemon started." not in result.out and result.out.endswith("\nProfiler running.\n"), result.out)
    require(os.path.isdir(os.path.join(box.dir, "first")) and status["state"] == "running", "after two starts: %s" % status)
    box.opcontrol("--shutdown")


def starts_at_once(box):
    calls = [subprocess.Popen([opcontrol(box), "--start"], env=box.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) for _ in range(5)]
    said = [call.communicate(timeout=opdtest.HANG_SECONDS) + (call.returncode,) for call in calls]
    know(box)
    require(all(rc == 0 and not err and "Profiler running." in out for out, err, rc in said), "five starts at once: %s" % said)
    require(sum("Daemon started." in out for out, _, _ in said) == 1, "five starts at once: %s" % said)
    box.opcontrol("--shutdown")


def apply_to_the_mute(box):
    """A daemon that does not answer is ended. The next one does what the last request said."""
    for request, state in (("--start", "running"), ("--stop", "paused")):
        box.opcontrol("--start")
        box.opcontrol(request)
        before = know(box)
        os.rename(box.socket, box.socket + ".away")
        result = box.run(opcontrol(box), "--apply", "--event=TIMER:%d" % (before["events"][0]["count"] + 1000))
        require(result.rc == 0 and "opd (pid %d) does not answer: the next one " % before["pid"] in result.err,
                "--apply: %s" % (result,))
        os.unlink(box.socket + ".away")
        after = know(box)
        require(after["state"] == state and after["pid"] != before["pid"], "%s, --apply: %s" % (request, after["state"]))
        require(profiling(box) == ("on\n" if state == "running" else "off\n"), profiling(box))


def refused_at_once(box, result, pid):
    """The owner of the session directory cannot make root create directories that belong to root;
    the daemon goes on.
    """
    require(result.rc == 1 and "SESSION_DIR: /proc/none belongs to user 0, but this file to user " in result.err, "%s" % (result,))
    after = know(box)
    require(after["pid"] == pid and not after["setup_waits"], "after what was refused: %s" % after)


def apply_what_cannot_be(box):
    """A setup with which no daemon starts is reported and taken back: the earlier daemon goes on.
    """
    program = box.env["OPD_DAEMON"]
    picky = stub(box, "grep -q SEPARATE_CPU=1 %s/daemonrc && { echo 'opd: not with CPUs' >&2; exit 1; }\nexec "
                      "%s\n" % (box.session, program))
    for request, state in (("--start", "running"), ("--shutdown", "paused")):
        box.opcontrol(request)
        if state == "paused":
            box.opcontrol("--start-daemon")
        pid, before = know(box)["pid"], kept(box)
        for words, reason in ((("--separate=cpu",), "opd does not start: not with CPUs"),
                              (("--session-dir=/proc/none",), "/proc/none")):
            result = box.run(opcontrol(box), "--apply", *words, env=picky)
            if "/proc/none" in words[0] and os.stat(box.session).st_uid:
                refused_at_once(box, result, pid)
                continue
            lines = result.err.splitlines()
            require(result.rc == 1 and len(lines) == 2 and reason in lines[0]
                    and "the previous setup is in force again" in lines[1], "%s" % (result,))
            after = know(box)
            require(after["state"] == state and after["pid"] != pid, "after %s: %s" % (words, after))
            require(kept(box) == before and not after["setup_waits"], "after %s: %s" % (words, kept(box)))
            pid = after["pid"]
    box.opcontrol("--shutdown")


NO_PROFILER = """
import errno, os, signal, socket, sys, types
sys.path.insert(0, sys.argv[1])
from opcontroltest import SHUTDOWN, START, STATUS, FakeDaemon, status_payload
place = types.SimpleNamespace(session=sys.argv[2], socket=sys.argv[3])
daemon = FakeDaemon(place, {STATUS: (0, lambda: status_payload(0)), START: (errno.EMFILE, b"no events left"),
                            SHUTDOWN: (0, b"")}, end_after=SHUTDOWN, locked=True)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
signal.signal(signal.SIGALRM, lambda *_: os.kill(daemon.pid, signal.SIGKILL))  # nobody has ended it
signal.alarm(300)
os.waitpid(daemon.pid, 0)
os.unlink(place.socket)
"""


def apply_what_cannot_profile(box):
    """A daemon that starts with the new setup but cannot profile is ended, and the earlier one goes
    on.
    """
    path = os.path.join(box.dir, "no-profiler.py")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(NO_PROFILER)
    tests = os.path.dirname(os.path.abspath(__file__))
    picky = stub(box, "grep -q SEPARATE_CPU=1 %s/daemonrc && exec python3 %s %s %s %s\nexec %s\n" % (
        box.session, path, tests, box.session, box.socket, box.env["OPD_DAEMON"]))
    box.opcontrol("--start", "--event=TIMER:1000000")
    pid, before = know(box)["pid"], kept(box)
    result = box.run(opcontrol(box), "--apply", "--separate=cpu", env=picky)
    lines = result.err.splitlines()
    require(result.rc == 1 and len(lines) == 2 and "--start: no events left" in lines[0]
            and "the previous setup is in force again" in lines[1], "%s" % (result,))
    after = know(box)
    require(after["state"] == "running" and after["pid"] != pid and kept(box) == before and not after["setup_waits"],
            "%s, %s" % (after, kept(box)))
    box.opcontrol("--shutdown")


def test(box):
    box.not_as_unit("opcontrol starts the daemons")
    os.mkdir(box.session)
    box.give(box.session)
    unkillable = Unkillable(box)
    with unkillable.daemon:
        answered_with_an_error(box)
        paused_once(box)
        box.opcontrol("--event=default")
        one_of_two_starts(box)
        starts_at_once(box)
        box.opcontrol("--event=TIMER:1000000")
        apply_to_the_mute(box)
        apply_what_cannot_be(box)
        apply_what_cannot_profile(box)
        unkillable.check()


if __name__ == "__main__":
    opdtest.run(test)
