#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends that were not meant: kill -9 in full work, the session goes on where it was; a stale lock; a
second daemon.
"""
import os
import signal
import time

import opdtest
from opdtest import require


def total_of(files):
    return sum(f.total for f in files)


def kill_in_full_work(box, path):
    """kill -9 while both CPUs are sampled: every file stays readable and what was dumped before is
    there.
    """
    box.start_daemon("--event=TIMER:100000", "--separate=library,kernel")
    workers = box.busy_cpus(4)
    box.good(path, "spin", 300)
    box.opcontrol("--dump")
    dumped = total_of(box.files(live=True))
    time.sleep(0.5)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    for worker in workers:
        worker.wait()
    left = total_of(box.files(live=True))
    print("dumped %d, after kill -9 %d" % (dumped, left))
    require(left >= dumped > 0, "%d samples were dumped, %d are left" % (dumped, left))
    require(os.path.exists(os.path.join(box.session, "lock")), "the lock went away by itself")
    box.opreport("-n", "-f")
    return left


def check_second_daemon(box):
    """A session has one daemon: another one is refused and does no harm."""
    line = box.refused(box.env["OPD_DAEMON"])
    require("pid %d" % box.daemon.pid in line, "the first daemon is not named: %s" % line)
    require(box.lock_pid() == box.daemon.pid, "the lock is not the first daemon's any more, after: %s" % line)
    require(box.status()["pid"] == box.daemon.pid, "the first daemon does not answer any more")
    other = os.path.join(box.dir, "other.conf")
    with open(other, "w", encoding="utf-8") as stream:
        stream.write("SessionDir=%s\nControlSocket=%s\n" % (box.session, os.path.join(box.dir, "other")))
    box.refused(box.env["OPD_DAEMON"], "--config=" + other)
    require(box.lock_pid() == box.daemon.pid, "a daemon with another socket took the session")


def check_goes_on(box, path, before):
    """The next daemon takes over stale lock and socket and adds to the same files."""
    box.start_daemon()
    check_second_daemon(box)
    box.good(path, "spin", 500)
    box.opcontrol("--stop")
    event = box.check_ledger(with_files=False)["events"][0]
    after = total_of(box.files())
    print("before %d, stored since %d, now %d" % (before, event["stored"], after))
    require(after == before + event["stored"], "%d + %d samples, but the files have %d" % (before, event["stored"], after))
    box.check_agreement()
    box.shutdown()


def check_lock_of_a_stranger(box):
    """A lock with the number of a process that is alive but no opd is stale, too."""
    with open(os.path.join(box.session, "lock"), "w", encoding="ascii") as stream:
        stream.write("%d" % os.getpid())
    box.give(stream.name)
    box.start_daemon()
    require(box.lock_pid() == box.daemon.pid, "the lock is not the daemon's")
    box.shutdown()


def test(box):
    path = box.copy_work("restart-app")
    check_goes_on(box, path, kill_in_full_work(box, path))
    check_lock_of_a_stranger(box)


if __name__ == "__main__":
    opdtest.run(test)
