#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What opd promises a service manager: READY, STATUS, WATCHDOG, RELOADING, STOPPING, socket
activation, and the state of the one before.
"""
import os
import re
import signal
import socket
import subprocess
import time

import opdtest
from opdtest import require, wait_until

WATCHDOG_SECONDS = 1.5
STATUS = re.compile(r"^Profiling \d+ CPUs?(, \d+ samples per second)?; of (\d+) samples (\d+) are stored, none is lost$")


class Manager:
    """Starts opd as systemd does, and hears what it says."""

    def __init__(self, box):
        self.box, self.path, self.heard, self.lines = box, os.path.join(box.dir, "notify"), [], []
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path)
        os.chmod(self.path, 0o777)
        self.notify.settimeout(0.05)

    def start(self, listener=None):
        """`listener`: a socket that opd gets as its first descriptor after the three."""
        env = {**self.box.env, "NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "%d" % (WATCHDOG_SECONDS * 1e6)}
        words = [self.box.env["OPD_DAEMON"]]
        if listener:
            env["LISTEN_FDS"] = "1"
            words = ["sh", "-c", 'exec env LISTEN_PID=$$ "$0" 3<&%d' % listener.fileno()] + words
        self.lines = []
        with open(self.box.log, "ab") as log:
            self.box.daemon = subprocess.Popen(words, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               pass_fds=[listener.fileno()] if listener else [])
        self.box.known_pids.add(self.box.daemon.pid)
        self.wait_for("READY=1")

    def listen(self):
        """Takes what was said since the last call."""
        new = []
        try:
            while True:
                new += self.notify.recv(4096).decode().split("\n")
        except socket.timeout:
            pass
        self.lines += new
        return new

    def wait_for(self, *wanted, seconds=opdtest.HANG_SECONDS):
        """Until each of the lines was heard, in that order."""
        rest, end = list(wanted), time.monotonic() + seconds
        while rest:
            for line in self.listen():
                if rest and re.fullmatch(rest[0], line):
                    rest.pop(0)
            require(not rest or time.monotonic() < end, "'%s' is not said, but %s; log: %s" % (
                rest and rest[0], self.lines, self.box.log_text()))

    def count_for(self, seconds, line):
        """How often a line is said in the time to come."""
        end, heard = time.monotonic() + seconds, []
        while time.monotonic() < end:
            heard += self.listen()
        return heard.count(line)


def check_status(box, manager, path):
    """Words with a rate, and numbers that are those of the ledger."""
    manager.wait_for("WATCHDOG=1", "WATCHDOG=1")
    box.good(path, "spin", 1200)
    manager.wait_for(r"STATUS=Profiling \d+ CPUs?, \d+ samples per second.*")
    words = [line[len("STATUS="):] for line in manager.lines if line.startswith("STATUS=Profiling ")]
    matches = [STATUS.match(w) for w in words]
    require(all(matches), "STATUS is not in the words that were promised: %s" % words)
    taken, stored = (int(g) for g in matches[-1].groups()[1:])
    require(0 < stored <= taken <= box.status()["events"][0]["taken"], "the ledger in STATUS: %s" % words[-1])
    box.opcontrol("--stop")
    manager.wait_for("STATUS=Paused; of .*")
    box.opcontrol("--start")


def check_watchdog(box, manager):
    """Clients that are stuck are no reason; a sync thread that is stuck is one."""
    stuck = []
    for _ in range(70):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(box.socket)
        stuck.append(client)
    manager.listen()
    manager.wait_for("WATCHDOG=1", "WATCHDOG=1")
    for client in stuck:
        client.close()
    tid = opdtest.thread_of(box.daemon.pid, "opd-sync")
    opdtest.hold(tid, True)
    manager.listen()
    # What the thread had done when it was stopped may be told yet, once.
    require(manager.count_for(2 * WATCHDOG_SECONDS, "WATCHDOG=1") <= 1, "a sync thread that is stuck counts as alive")
    opdtest.hold(tid, False)
    manager.wait_for("WATCHDOG=1")


def check_reload(box, manager):
    """SIGHUP: some changes take effect at once, others are reported as waiting, and an unknown key
    is reported with its line.
    """
    box.configure(SessionInterval="1", RingSize="256K")
    drop_ins = box.config + ".d"
    os.mkdir(drop_ins)
    with open(os.path.join(drop_ins, "10-test.conf"), "w", encoding="utf-8") as stream:
        stream.write("\nNonsense=1\n")
    manager.lines = []
    box.daemon.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING=1", r"MONOTONIC_USEC=\d+", "READY=1")
    log = box.log_text()
    require("takes effect at the next start: RingSize" in log, log)
    require("10-test.conf:2: unknown key 'Nonsense'" in log, log)
    samples = os.path.join(box.session, "samples")
    wait_until(lambda: len(os.listdir(samples)) > 1, opdtest.HANG_SECONDS, "SessionInterval= does not take effect at SIGHUP")
    os.unlink(os.path.join(drop_ins, "10-test.conf"))
    box.configure(ProfileOnStart="yes")
    box.daemon.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING=1", "READY=1")


def check_resume(box, manager):
    """What was said last, --start or --stop, is what the next daemon does, after an end in order
    and after a kill.
    """
    for request, state in (("--stop", "paused"), ("--start", "running")):
        for end in (signal.SIGTERM, signal.SIGKILL):
            box.opcontrol(request)
            box.daemon.send_signal(end)
            box.daemon.wait()
            manager.start()
            require(box.status()["state"] == state, "after %s and signal %d the next opd is %s" % (request, end,
                    box.status()["state"]))
    box.opcontrol("--shutdown")
    box.daemon.wait()
    manager.start()
    require(box.status()["state"] == "running", "--shutdown is no --stop, but the next opd is %s" % box.status()["state"])
    box.opcontrol("--shutdown")
    box.daemon.wait()
    os.unlink(os.path.join(box.session, "profiling"))
    for preset, state in (("yes", "running"), ("no", "paused")):
        box.configure(ProfileOnStart=preset)
        manager.start()
        require(box.status()["state"] == state, "ProfileOnStart=%s: %s" % (preset, box.status()["state"]))
        box.daemon.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")
        require(box.daemon.wait() == 0, "SIGTERM: %s" % box.daemon.returncode)


def check_activation(box, manager):
    """The socket is the manager's: opd uses it and leaves it, also when it was asked before it was
    there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(box.socket)
        listener.listen(8)
        asker = box.start(os.path.join(box.bin, "opcontrol"), "--dump", stdout=subprocess.DEVNULL)
        manager.start(listener)
        require(asker.wait(opdtest.HANG_SECONDS) == 0, "who asked before opd was there got no answer")
        require(box.status()["pid"] == box.daemon.pid, "another opd answers")
        box.opcontrol("--shutdown")
        require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
        require(os.path.exists(box.socket), "opd removed the manager's socket")
    os.unlink(box.socket)


def refused_socket(box, kind, path):
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(path)
        listener.listen(8)
        done = subprocess.run(["sh", "-c", 'exec env LISTEN_PID=$$ "$0" 3<&%d' % listener.fileno(), box.env["OPD_DAEMON"]],
                              env={**box.env, "LISTEN_FDS": "1"}, pass_fds=[listener.fileno()], capture_output=True,
                              check=False, timeout=opdtest.HANG_SECONDS)
    require(done.returncode == 1 and b"ListenSequentialPacket=" in done.stderr, "%s at %s: %s" % (kind.name, path, done))
    os.unlink(path)


def check_where_it_listens(box, manager):
    """The manager's socket is of the right kind and at ControlSocket=, by whatever path: systemd
    makes /run of /var/run.
    """
    refused_socket(box, socket.SOCK_STREAM, box.socket)
    refused_socket(box, socket.SOCK_SEQPACKET, os.path.join(box.dir, "elsewhere"))
    link = os.path.join(box.dir, "link")
    os.symlink(box.dir, link)
    box.configure(ControlSocket=os.path.join(link, os.path.basename(box.socket)))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(box.socket)
        listener.listen(8)
        manager.start(listener)
        require(box.status()["pid"] == box.daemon.pid, "another opd answers")
        box.opcontrol("--shutdown")
        require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket)
    os.unlink(link)
    box.configure()


def check_owner(box, manager):
    """Started by root, opd becomes the owner of the session directory, keeps the capabilities of
    the unit, and profiles.
    """
    allowed = sum(1 << n for n in (2, 14, 19, 34, 38, 40))
    user_of_tabler = 1 << 6 | 1 << 7  # it may change its user and group; opd itself may not
    for top, _, names in os.walk(box.session):
        for name in [top] + [os.path.join(top, n) for n in names]:
            os.chown(name, opdtest.DAEMON_UID, opdtest.DAEMON_UID)
    manager.start()
    with open("/proc/%d/status" % box.daemon.pid, encoding="ascii") as stream:
        fields = dict(line.split(":", 1) for line in stream.read().splitlines())
    require(fields["Uid"].split() == [str(opdtest.DAEMON_UID)] * 4, "the user of opd: %s" % fields["Uid"])
    require(int(fields["CapEff"], 16) and not int(fields["CapPrm"], 16) & ~allowed and
            not int(fields["CapBnd"], 16) & ~(allowed | user_of_tabler) and
            fields["NoNewPrivs"].strip() == "1", "what opd may: %s" % fields)
    box.opcontrol("--start")
    box.good(box.work, "spin", 300)
    box.opcontrol("--stop")
    require(box.check_ledger(with_files=False)["events"][0]["stored"] > 0, "nothing is counted")
    box.opcontrol("--shutdown")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    # Where the directory is not its own, socket and lock lie there still, nobody's, and the next
    # opd takes them.
    is_own = os.stat(box.dir).st_uid == opdtest.DAEMON_UID
    left = [path for path in (box.socket, box.socket + ".lock") if os.path.exists(path)]
    require(len(left) == (0 if is_own else 2), "opd ends in a directory that is %s, and leaves %s" % ("its own"
            if is_own else "root's", left))
    require("Daemon not running" in box.opcontrol("--status"), "what is left is taken for a daemon")
    manager.start()
    require(box.status()["pid"] == box.daemon.pid, "the next opd does not answer")
    box.opcontrol("--shutdown")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "the next opd ended with %s" % box.daemon.returncode)
    for path in left:
        os.unlink(path)


def test(box):
    box.not_as_unit("this test is the manager itself; tests/systemd/test_container.py asks systemd")
    path = box.copy_work("service-app")
    manager = Manager(box)
    box.configure(ProfileOnStart="yes")
    box.opcontrol("--setup", "--event=TIMER:1000000", "--separate=library,kernel")
    manager.start()
    require("STATUS=Profiling" in manager.lines, "READY, but %s" % manager.lines)
    check_status(box, manager, path)
    check_watchdog(box, manager)
    check_reload(box, manager)
    check_resume(box, manager)
    check_activation(box, manager)
    check_where_it_listens(box, manager)
    check_owner(box, manager)
    box.check_rest()


if __name__ == "__main__":
    opdtest.run(test)
