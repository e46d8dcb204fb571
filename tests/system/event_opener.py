# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd-events beside a test's daemon, as opd-events.socket of systemd has it: root's socket beside the
control socket, and a process from the first connection on. And a kernel that wants more than
CAP_PERFMON: where the kernel of this machine has no such level, opd has not even CAP_PERFMON, and
it and opd-events read another level.
"""
import os
import select
import shutil
import signal
import socket
import subprocess
import threading

import opdtest

PARANOID = "/proc/sys/kernel/perf_event_paranoid"


def level():
    with open(PARANOID, encoding="ascii") as stream:
        return int(stream.read())


def program():
    path = os.path.join(os.environ.get("OPD_BUILD", ""), "tools", "opd-events", "opd-events")
    if not os.path.exists(path):
        raise opdtest.Skip("no opd-events of a build")
    return path


def refusing(box):
    """(command line before a program, what the daemon may not have)."""
    if level() > 2:
        return [], ()
    if level() < 1:
        raise opdtest.Skip("kernel.perf_event_paranoid is %d: nothing is refused" % level())
    path = os.path.join(box.dir, "paranoid")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("3\n")
    os.chmod(path, 0o644)
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" %s && exec "$@"' % PARANOID, path], ("perfmon",)


def use_refused_daemon(box):
    """The daemon is a user of its own, and the kernel refuses it all events."""
    words, left_out = refusing(box)
    path = os.path.join(box.dir, "opd-refused")
    caps = ",".join("+" + name for name in opdtest.CAPABILITIES if name not in left_out)
    text = opdtest.AS_USER.format(uid=opdtest.DAEMON_UID, caps=caps, program=box.program)
    if words:
        text = text.replace("exec setpriv", "exec %s setpriv" % " ".join("'%s'" % w for w in words))
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(path, 0o755)
    box.env["OPD_DAEMON"] = path
    os.chown(box.dir, opdtest.DAEMON_UID, opdtest.DAEMON_UID)
    shutil.rmtree(box.session, ignore_errors=True)


class Opener:
    """The socket, and a thread that starts the program as often as there is a connection."""

    def __init__(self, box, words=()):
        self.path, self.words, self.program = os.path.join(box.dir, "events"), list(words), program()
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(self.path)
        os.chown(self.path, opdtest.DAEMON_UID, opdtest.DAEMON_UID)
        os.chmod(self.path, 0o600)
        self.listening.listen()
        self.log, self.child, self.nr_started, self.ends = os.path.join(box.dir, "opd-events.log"), None, 0, False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.ends:
            # what systemd does: the process is started by the first connection, and accepts it
            select.select([self.listening], [], [])
            if self.ends:
                return
            with open(self.log, "ab") as log:
                self.child = subprocess.Popen(["sh", "-c", 'exec "$@" 3<&%d' % self.listening.fileno(), "sh", *self.words,
                                               self.program], pass_fds=[self.listening.fileno()], stdout=log, stderr=log)
            self.nr_started += 1
            self.child.wait()

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(opdtest.HANG_SECONDS)
        client.connect(self.path)
        return client

    def said(self):
        with open(self.log, encoding="utf-8") as stream:
            return stream.read()

    def close(self):
        self.ends = True
        client = self.connect()  # wakes the thread
        client.close()
        if self.child and self.child.poll() is None:
            self.kill()
        self.thread.join(opdtest.HANG_SECONDS)
        self.listening.close()
        os.unlink(self.path)
