#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd's helper processes are killed and stopped beside sampling: each one by itself, and all at once.
opd counts them, says so in the log and starts others: programs that begin later have whole stacks.
The kernel would end all of them before opd (oom_score_adj). None is left as a zombie.
"""
import os
import shutil
import signal

import opdtest
from opdtest import require, wait_until
from test_table_cache import Program, sample
from test_table_helper import descendants

RATE = 997
FIRST_TO_END = "1000"
NURSERY, LOOKER, TABLER = "opd-nursery", "opd-looker", "opd-tabler"


def read(pid, name):
    """Of a process that may be gone."""
    try:
        with open("/proc/%d/%s" % (pid, name), encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


class Helpers:
    def __init__(self, box):
        self.box, self.nr = box, 0

    def named(self, *names):
        return sorted(pid for pid in descendants(self.box.daemon.pid) if read(pid, "comm") in names)

    def await_named(self, name, nr=1):
        wait_until(lambda: len(self.named(name)) >= nr, opdtest.HANG_SECONDS, "there is no %s" % name)
        return self.named(name)

    def send(self, number, pids, what):
        """What opd does about it, and the stacks of a program that begins then."""
        ended = self.box.status()["helpers_ended"]
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        self.nr += 1
        sample(self.box, Program(self.box, "helper%d" % self.nr))
        wait_until(lambda: self.box.status()["helpers_ended"] > ended, opdtest.HANG_SECONDS, what + " is not counted")
        print("%s: %d more helpers ended" % (what, self.box.status()["helpers_ended"] - ended))
        wait_until(lambda: not [pid for pid in pids if opdtest.is_alive(pid) and not opdtest.is_stopped(pid)],
                   opdtest.HANG_SECONDS, what + ": processes are left")
        wait_until(lambda: not [pid for pid in descendants(self.box.daemon.pid) if self.is_zombie(pid)], opdtest.HANG_SECONDS,
                   what + ": zombies are left")
        self.await_named(NURSERY, 2)

    @staticmethod
    def is_zombie(pid):
        return read(pid, "stat").rpartition(")")[2].split()[:1] == ["Z"]

    def nursery(self):
        """The one that has a spare, and the spare."""
        pids = self.await_named(NURSERY, 2)
        first = next(pid for pid in pids if int(read(pid, "stat").rpartition(")")[2].split()[1]) not in pids)
        return first, next(pid for pid in pids if pid != first)


def check_tabler(box, helpers, number, what):
    """The process that runs opd-tables, while that makes a table."""
    hold, ended, program = os.path.join(box.dir, "hold"), box.status()["helpers_ended"], Program(box, "tabler%d" % number)
    open(hold, "w", encoding="ascii").close()
    child = box.start(program.path, 1000 * opdtest.CALL_SECONDS)
    pid = helpers.await_named(TABLER)[0]
    os.kill(pid, number)
    wait_until(lambda: box.status()["helpers_ended"] > ended, opdtest.HANG_SECONDS, what + " is not counted")
    os.unlink(hold)
    box.end_busy(child)
    sample(box, program)
    if opdtest.is_alive(pid):
        os.kill(pid, signal.SIGCONT)
    print("%s: %d more helpers ended" % (what, box.status()["helpers_ended"] - ended))


def test(box):
    real, program, copy = box.env.get("OPD_TABLES"), os.path.join(box.dir, "opd-tables"), os.path.join(box.dir, "real")
    if not real:
        raise opdtest.Skip("no opd-tables of a build")
    shutil.copy(real, copy)
    with open(program, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\nwhile [ -e %s/hold ]; do sleep 0.1; done\nexec %s \"$@\"\n" % (box.dir, copy))
    os.chmod(program, 0o755)
    box.env["OPD_TABLES"] = program
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    own, helpers = read(box.daemon.pid, "oom_score_adj"), Helpers(box)
    sample(box, Program(box, "before"))
    helpers.await_named(LOOKER)
    for pid in helpers.named(NURSERY, LOOKER):
        require(read(pid, "oom_score_adj") in (FIRST_TO_END, ""), "%s is not the first to end" % read(pid, "comm"))
    require(own == read(os.getpid(), "oom_score_adj"), "opd has %s" % own)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        word = "killed" if number == signal.SIGKILL else "stopped"
        helpers.send(number, helpers.await_named(LOOKER), "all lookers are " + word)
        helpers.send(number, [helpers.nursery()[0]], "the nursery is " + word)
        check_tabler(box, helpers, number, "the tabler is " + word)
    helpers.send(signal.SIGKILL, [helpers.nursery()[1]], "the spare is killed")
    require("others take their place" in box.log_text(), "the log: " + box.log_text())
    helpers.send(signal.SIGKILL, descendants(box.daemon.pid), "all are killed")
    require("helpers now have only the rights of opd" in box.log_text(), "the log: " + box.log_text())
    helpers.send(signal.SIGSTOP, descendants(box.daemon.pid), "all are stopped")
    box.opcontrol("--stop")
    box.check_ledger()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
