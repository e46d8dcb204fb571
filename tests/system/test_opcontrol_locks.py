#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol finds the daemon by the lock of its session directory, whoever holds it."""
import fcntl
import os
import shutil
import signal
import subprocess

import opdtest
from opcontroltest import FakeDaemon, opcontrol
from opdtest import require


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
        require(os.path.exists(os.path.join(box.session, "unclean")),
                "lock %r: the next daemon does not look at the session" % text)


def held_by_a_tool(box):
    """A lock that something else than the daemon whose pid is in it holds."""
    path = os.path.join(box.session, "lock")
    with FakeDaemon(box, {}) as other, open(path, "w", encoding="ascii") as stream:
        os.unlink(box.socket)
        stream.write(str(other.pid))
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        for request in ("--stop", "--shutdown"):
            result = box.run(opcontrol(box), request)
            require((result.rc, result.out, result.err) == (0, "", "Daemon not running\n"), "%s: %s" % (request, result))
        require(os.path.exists(path) and opdtest.is_alive(other.pid), "the lock or a daemon that does not hold it is gone")
    os.unlink(path)


def held_without_a_number(box):
    """A daemon that has just begun holds the lock, and does not answer yet: its files stay."""
    current = os.path.join(box.session, "samples", "current", "stats")
    path = os.path.join(box.session, "lock")
    os.makedirs(current, exist_ok=True)
    with open(path, "w", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        result = box.run(opcontrol(box), "--reset")
        require(result.rc == 1 and "uses " + box.session in result.err, "--reset beside a daemon: %s" % (result,))
    require(os.path.isdir(current), "--reset has removed what a daemon writes")
    os.unlink(path)
    require(box.run(opcontrol(box), "--reset").rc == 0 and not os.path.exists(current), "--reset without a daemon")


def unpacked_twice(box):
    """Two --unpack of one session."""
    some = os.path.join(box.session, "samples", "some")
    os.makedirs(some)
    fd = os.open(some, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    result = box.run(opcontrol(box), "--unpack=some")
    require(result.rc == 1 and "another opcontrol unpacks it" in result.err, "--unpack beside another: %s" % (result,))
    os.close(fd)
    require(box.run(opcontrol(box), "--unpack=some").rc == 0, "--unpack alone")
    os.rmdir(some)


def copied_lock(box):
    """The lock of a daemon that runs, in a copy of its session directory: nobody holds that one,
    and the daemon is not that session's.
    """
    running, copy, away = box.session, os.path.join(box.dir, "copy"), box.socket + ".copy"
    box.start_daemon("--event=TIMER:300000", start=False)
    os.mkdir(copy)
    shutil.copy(os.path.join(running, "lock"), copy)
    box.configure(session=copy, ControlSocket=away)
    require(box.status() == {"state": "not running"}, "status of the copy: %s" % box.status())
    result = box.run(opcontrol(box), "--shutdown")
    require(result.rc == 0 and "Killing" not in result.out and "Removing" in result.out, "--shutdown of the copy: %s" % (result,))
    box.configure()
    require(box.status()["pid"] == box.daemon.pid, "the daemon of another session was ended")
    box.shutdown()


def under_another_name(box):
    """The daemon is the process that holds the lock, whatever its program is called: it is ended by
    a request, and by signals when it does not answer, by the lock of its session directory and by
    that of its socket.
    """
    link = os.path.join(box.dir, "oprofiled")
    os.symlink(box.env["OPD_DAEMON"], link)
    box.env["OPD_DAEMON"] = link
    for make_mute, codes in ((None, (0,)), (lambda: os.rename(box.socket, box.socket + ".away"), (0,)),
                             (lambda: (box.daemon.send_signal(signal.SIGSTOP), os.rename(box.session, box.session + ".away")),
                              (0, 1))):  # 1: it has noticed first that its session directory is gone
        box.start_daemon(start=False)
        with open("/proc/%d/comm" % box.daemon.pid, encoding="ascii") as stream:
            require(box.run_as != "root" or stream.read() == "oprofiled\n", "the name of the daemon is opd all the same")
        if make_mute:
            make_mute()
        require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
        require(box.daemon.wait(opdtest.HANG_SECONDS) in codes, "opd ended with %s" % box.daemon.returncode)
        if os.path.exists(box.socket + ".away"):
            os.unlink(box.socket + ".away")
        if os.path.exists(box.session + ".away"):
            os.rename(box.session + ".away", box.session)
        if box.daemon.returncode == 0:
            box.check_rest()
        else:
            os.unlink(os.path.join(box.session, "lock"))
    box.env["OPD_DAEMON"] = os.path.realpath(link)


def test(box):
    box.opcontrol("--setup", "--event=TIMER:300000")
    stale_locks(box)
    held_by_a_tool(box)
    held_without_a_number(box)
    unpacked_twice(box)
    copied_lock(box)
    under_another_name(box)


if __name__ == "__main__":
    opdtest.run(test)
