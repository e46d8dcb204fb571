#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd as systemd runs it, for OPD_RUN_AS=unit: the installed unit with its user, capabilities and
sandbox. A drop-in says which program with which
configuration, where it may write besides its own session directory, and where its log goes.

Beside a daemon that runs, another one has a copy of the unit.

As a program, it stands for opd where a test or opcontrol starts that itself: unit_daemon.py
DIRECTORY PROGRAM [ARGUMENT...], with the same exit code, and with
a copy of the unit.
"""
import glob
import os
import pwd
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import time

UNIT, COPY = "opd.service", "opd-copy-"
UNIT_DIR = "/run/systemd/system"
PASSED_ON = ("OPD_", "OPROFILE_", "LC_", "LD_", "FAULTSHIM_", "CLOCKSHIM_", "ASAN_", "LSAN_", "UBSAN_")
EXITED = 1  # CLD_EXITED; the others are ends by a signal

DROP_IN = """[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=
ExecStart={command}
Restart=no
# The socket is the test's, not that of opd.socket.
UnsetEnvironment=LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
ReadWritePaths={directory}
ReadWritePaths=-{session}
StandardOutput=append:{log}
StandardError=append:{log}
"""


def systemctl(*words):
    return subprocess.run(["systemctl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def quoted(word):
    return '"%s"' % word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def uid():
    return pwd.getpwnam("opd").pw_uid


def own(path):
    os.chown(path, uid(), pwd.getpwnam("opd").pw_gid, follow_symlinks=False)


def read_text(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        return ""


def lifts_memory_lock():
    """False where systemd itself is limited and may not lift that, so that the unit does not get
    its LimitMEMLOCK=infinity.
    """
    return resource.prlimit(1, resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY


def ring_lines():
    """What doc/security.md says for such a host."""
    return [] if lifts_memory_lock() else ["AmbientCapabilities=CAP_IPC_LOCK", "CapabilityBoundingSet=CAP_IPC_LOCK"]


def session_of(config):
    found = re.search("^SessionDir=(.*)$", config, re.M)
    return found.group(1) if found else ""


def own_session(session):
    """What StateDirectory= does for the session directory of an installation: it is there, and the
    daemon's with all that is in it.
    """
    try:
        if not os.path.exists(session):
            os.mkdir(session)
        if os.stat(session).st_uid == uid():
            return
        for top, _, names in os.walk(session):
            for path in [top] + [os.path.join(top, name) for name in names]:
                own(path)
    except OSError:
        pass  # what is wrong with it is for opd to say


def write_unit(path, text):
    """True when it was another one before."""
    if read_text(path) == text:
        return False
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return True


def is_installed():
    return os.path.isdir("/run/systemd/system") and systemctl("cat", UNIT).returncode == 0


def installed_unit():
    with open(systemctl("show", UNIT, "--property=FragmentPath", "--value").stdout.strip(), encoding="utf-8") as stream:
        return stream.read()


def remove_unit(name):
    systemctl("stop", name)
    systemctl("reset-failed", name)
    for path in (os.path.join(UNIT_DIR, name), drop_in_of(name)):
        if os.path.exists(path):
            os.unlink(path)


def drop_in_of(unit):
    return os.path.join(UNIT_DIR, unit + ".d", "test.conf")


def remove_units(directory):
    """The end of a test: nothing of it runs, and the unit is as it was installed."""
    mine = "ReadWritePaths=%s\n" % directory
    for unit in [UNIT] + [os.path.basename(path) for path in glob.glob(os.path.join(UNIT_DIR, COPY + "*.service"))]:
        if mine in read_text(drop_in_of(unit)):
            remove_unit(unit)
    systemctl("daemon-reload")


def new_copy():
    return "%s%d-%d.service" % (COPY, os.getpid(), time.monotonic_ns())


def free_unit():
    """The unit, or a copy where a daemon runs in it, as when a test has two."""
    return new_copy() if systemctl("is-active", UNIT).stdout.strip() in ("active", "activating", "reloading") else UNIT


class UnitDaemon:
    """A daemon of systemd's with what a test uses of subprocess.Popen; `more` are further lines of
    its [Service] section.
    """

    def __init__(self, unit, directory, words, env, log, more=()):
        self.unit, self.pid, self.returncode, self.pidfd = unit, 0, None, -1
        session = session_of(read_text(env.get("OPD_CONFIG", "")))
        own_session(session)
        text = DROP_IN.format(command=" ".join(quoted(w) for w in words), directory=directory, log=log, session=session)
        text += "".join("Environment=%s\n" % quoted("%s=%s" % row) for row in sorted(env.items()) if row[0].startswith(PASSED_ON))
        text += "".join(line + "\n" for line in [*ring_lines(), *more])
        is_new = unit != UNIT and write_unit(os.path.join(UNIT_DIR, unit), installed_unit())
        if write_unit(drop_in_of(unit), text) or is_new:
            systemctl("daemon-reload")
        done = systemctl("start", "--no-block", unit)
        if done.returncode != 0:
            raise OSError("systemctl start: " + done.stderr.strip())

    def show(self):
        out = systemctl("show", self.unit,
                        "--property=ActiveState,MainPID,ExecMainPID,ExecMainCode,ExecMainStatus,Job,Result").stdout
        return dict(line.split("=", 1) for line in out.splitlines())

    def has_started(self):
        """True when systemd has heard READY, or when that will not come: returncode says which."""
        rows = self.show()
        if rows["ActiveState"] == "active":
            self.pid = int(rows["MainPID"])
            try:
                self.pidfd = os.pidfd_open(self.pid)
            except ProcessLookupError:
                pass
            return True
        if rows["ActiveState"] in ("inactive", "failed") and rows.get("Job", "0") in ("", "0"):
            self.take_code(rows)
            return True
        return False

    def take_code(self, rows):
        status = int(rows["ExecMainStatus"])
        self.returncode = status if int(rows["ExecMainCode"]) in (0, EXITED) else -status
        if self.returncode == 0 and rows["Result"] != "success":
            self.returncode = 1  # systemd's own reason, as a start that takes too long
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def poll(self):
        if self.returncode is not None or (self.pidfd >= 0 and not select.select([self.pidfd], [], [], 0)[0]):
            return self.returncode
        rows = self.show()
        if rows["ActiveState"] in ("inactive", "failed"):
            self.take_code(rows)
        return self.returncode

    def wait(self, timeout=None):
        end = time.monotonic() + timeout if timeout is not None else None
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.unit, timeout)
            time.sleep(0.02)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def say_ready():
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1\n", "\0" + where[1:] if where.startswith("@") else where)


def copy_log(path):
    """What it wrote becomes this program's own."""
    with open(path, "rb") as stream:
        sys.stderr.buffer.write(stream.read())
    sys.stderr.flush()
    os.unlink(path)


def stand_for_opd(directory, program, *arguments):
    """Runs a copy of the unit to its end; its exit code."""
    env = dict(os.environ)
    for word in arguments:
        if word.startswith("--config="):
            env["OPD_CONFIG"] = word.partition("=")[2]
    log, is_file = os.path.join(directory, "copy-%d.log" % os.getpid()), stat.S_ISREG(os.fstat(2).st_mode)
    if is_file:
        log = os.readlink("/proc/self/fd/2")
    # Another program of this kind, which ends at this time, will not take it for its own.
    daemon = UnitDaemon(new_copy(), directory, [program, *arguments], env, log)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda caught, _: daemon.send_signal(caught))
    while not daemon.has_started():
        time.sleep(0.02)
    if daemon.returncode is None:
        say_ready()
    code = daemon.wait()
    if not is_file:
        copy_log(log)
    remove_unit(daemon.unit)
    return code


if __name__ == "__main__":
    ended = stand_for_opd(*sys.argv[1:])
    if ended < 0:
        if -ended != signal.SIGKILL:
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    sys.exit(ended)
