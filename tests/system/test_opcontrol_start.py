#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol starts and ends a daemon: one that ends before it is ready, and one of systemd."""
import os
import re
import subprocess

import opdtest
import test_cgroup
from opcontroltest import opcontrol, stub
from opdtest import require


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


def with_systemctl(box, text, *words, before=""):
    """
    opcontrol where systemd is said to have been booted and to have the units of opd, and systemctl
    is a shell script with this in it, after `before`; None without a mount
    name space. Only its own processes are seen there.
    """
    if box.run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "opd-test", "/run").rc != 0:
        print("no mount name space here: systemctl's words are not looked at")
        return None
    path = os.path.join(box.dir, "systemctl")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\n%s\n" % text)
    os.chmod(path, 0o755)
    script = ("mount -t tmpfs opd-test /run && mount -t tmpfs opd-test /var/lib && mkdir -p /run/systemd/system && "
              "touch /run/systemd/system/opd.service /run/systemd/system/opd.socket && { " + (before or ":") + "\n\"$@\"; }")
    env = {k: v for k, v in box.env.items() if k not in ("OPD_CONFIG", "OPD_DAEMON")}
    env["PATH"] = box.dir + ":" + os.environ["PATH"]
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                           script, "sh", opcontrol(box), *words], env=env, cwd=box.dir, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=opdtest.CALL_SECONDS, check=False)


def at_systemds_word(box):
    """Where the daemon is systemd's, what systemctl says against it is handed on."""
    for text, rc, words in (("echo Unit $2 is masked. >&2; echo See the journal. >&2; exit 5", 1,
                             ": Unit opd.service is masked. ("),
                            ("case $*:$1 in *StatusText*:show) echo the disk burns;; *:start) echo Job for $2 failed. "
                             ">&2; exit 1;; esac", 1,
                             ": opd does not start: the disk burns ("),
                            ("case $*:$1 in *StatusText*:show) echo It ran once.;; *:start) echo Unit $2 is masked. "
                             ">&2; exit 1;; esac", 1,
                             "failed: Unit opd.service is masked. ("),
                            ("exit 1", 1, "failed ("), ("echo a warning >&2", 0, "")):
        done = with_systemctl(box, text, "--start-daemon")
        require(not done or (done.returncode == rc and words in done.stderr and len(done.stderr.splitlines()) == rc),
                "%s: %s" % (text, done))


def shut_down_for_good(box):
    """What root ends stays so: --shutdown and --deinit close the socket by which systemd would
    start it for whoever connects, also when nothing runs.
    """
    said = os.path.join(box.dir, "systemctl.said")
    for request in ("--shutdown", "--deinit"):
        done = with_systemctl(box, "echo $* >>%s" % said, request)
        if done:
            require(done.returncode == 0, "%s: %s" % (request, done))
            with open(said, encoding="ascii") as stream:
                require([line for line in stream if not line.startswith("show ")] == ["stop opd.socket\n"],
                        "%s does not close the socket" % request)
            os.unlink(said)
        done = with_systemctl(box, "echo no bus >&2; exit 1", request)
        require(not done or (done.returncode == 1 and "no bus: a connection to it starts opd "
                                                      "again" in done.stderr), "%s: %s" % (request, done))


LISTENER = """
import fcntl, os, socket, sys
session, control, pid, cgroup, lock = sys.argv[1:]
os.makedirs(os.path.dirname(control))
os.makedirs(session)
held = open(session + "/lock", "w")
if lock:
    fcntl.flock(held, fcntl.LOCK_EX)
if pid:
    held.write(str(os.getpid()))
    held.flush()
if cgroup:
    with open(cgroup + "/cgroup.procs", "w") as stream:
        stream.write("0")
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(control + ".new")
listening.listen()
os.rename(control + ".new", control)
listening.accept()[0].close()
listening.accept()
"""


def without_systemctls_word(box):
    """A user whom systemctl does not answer, for example without D-Bus, asks a running daemon at
    the socket, and starts no other one.
    """
    session = re.search("^Session-dir: (.*)$", box.good("env", "-u", "OPD_CONFIG", opcontrol(box), "--status"), re.M).group(1)
    state = os.path.dirname(os.path.dirname(session))
    control = os.path.join("/run" if state == "/var" else state + "/run", "opd", "control")
    while not os.path.isdir(state):
        state = os.path.dirname(state)
    mount = "" if state == "/var" else "mount -t tmpfs opd-test %s && " % state
    if state in ("/", "/usr"):
        print("there is no place for a file system instead of %s: what is asked without systemctl's word is not "
              "looked at" % session)
        return
    path = os.path.join(box.dir, "listener.py")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(LISTENER)
    top = test_cgroup.hierarchy()
    group = test_cgroup.Groups(top, "opd-test-%d" % os.getpid()) if top and os.access(os.path.join(top,
            "cgroup.procs"), os.W_OK) else None
    try:
        unit = group.top + group.make("opd.service") if group else None
        for pid, cgroup, lock, is_asked in (("", "", "lock", False), ("pid", "", "", False),
                                            ("pid", "", "lock", True), ("", unit, "", True)):
            if cgroup is None:
                print("no cgroup to move processes to: one case is left out")
                continue
            before = "%s{ python3 %s %s %s '%s' '%s' '%s' & } && while ! [ -e %s ]; do sleep 0.05; done" % (
                mount, path, session, control, pid, cgroup, lock, control)
            done = with_systemctl(box, "exit 1", "--dump", before=before)
            require(not done or (done.returncode == 1 and ("closed the connection" in done.stderr) == is_asked),
                    "%s: %s" % ((pid, cgroup, lock), done))
    finally:
        if group:
            group.close()


def test(box):
    bad_daemons(box)
    at_systemds_word(box)
    shut_down_for_good(box)
    without_systemctls_word(box)


if __name__ == "__main__":
    opdtest.run(test)
