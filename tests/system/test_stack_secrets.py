#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Copies of stacks hold what programs keep there. While samples wait for the table of their image, the
copies are in memory of opd that no core dump has, and that is not swapped out. After the walk they
are gone. They are in no file, and opd itself can be looked into only by root.
"""
import os
import re

import opdtest
from hot import compile_to
from opdtest import require, wait_until
from test_table_helper import Liar

RATE = 997
PIECE = 32  # bytes: no walk takes so much out of a copy
WAITING = 20  # samples


class Memory:
    """The mappings of a process that can be read, and what they are."""

    def __init__(self, pid):
        self.pid, self.flags, self.names = pid, {}, {}
        with open("/proc/%d/smaps" % pid, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                found = re.match("([0-9a-f]+)-([0-9a-f]+) (.*)", line)
                if found:
                    place = (int(found[1], 16), int(found[2], 16))
                    self.names[place] = found[3]
                elif line.startswith("VmFlags:"):
                    self.flags[place] = line.split()[1:]

    def read(self):
        """(mapping, bytes) of each; a ring of the kernel's cannot be read so."""
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as stream:
            for place in self.flags:
                for at in range(place[0], place[1], 16 << 20):
                    try:
                        stream.seek(at)
                        yield place, stream.read(min(16 << 20, place[1] - at))
                    except (OSError, ValueError, OverflowError):
                        continue

    def places_of(self, secret):
        """The mappings with a piece of it."""
        return {place for place, text in self.read() if has(text, secret)}


def has(text, secret):
    return any(text.find(secret[at:at + PIECE]) >= 0 for at in range(0, len(secret), PIECE))


def check_memory(pid, secret):
    """Each mapping with a copy, and each ring, is left out of core dumps."""
    memory = Memory(pid)
    places = memory.places_of(secret)
    places &= Memory(pid).places_of(secret)  # what wraps in a ring is elsewhere for one turn
    require(places, "the copies that wait are not found")
    rings = {place for place, name in memory.names.items() if "perf_event" in name}
    require(rings, "opd has no rings")
    for place in places | rings:
        require("dd" in memory.flags[place], "a core dump would have %s, flags %s" % (memory.names[place], memory.flags[place]))
    for place in places - rings:  # the pages of rings are the kernel's, which are never swapped out
        require("lo" in memory.flags[place], "it can be swapped out: %s, flags %s" % (memory.names[place], memory.flags[place]))
    print("copies are in %s" % [memory.names[place] for place in places])


def check_files(box, secret):
    nr = 0
    for where, _, names in os.walk(box.dir):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as stream:
                    require(not has(stream.read(), secret), "%s has a copy of the stack" % path)
                nr += 1
    require(nr > 10, "only %d files are there" % nr)


def check_not_dumpable(pid):
    """The kernel gives /proc/PID of such a process to root, whoever runs it."""
    with open("/proc/%d/status" % pid, encoding="ascii") as stream:
        uid = int(re.search(r"^Uid:\s+(\d+)", stream.read(), re.M)[1])
    require(uid, "opd is root, where nothing can be seen")
    require(os.stat("/proc/%d/environ" % pid).st_uid == 0, "opd, of user %d, can be dumped" % uid)


def nr_walked(box):
    return sum(v for e in box.status()["events"] if e["role"] == opdtest.STACKS for k, v in e.items() if k.startswith("end_"))


def test(box):
    liar, path = Liar(box), os.path.join(box.dir, "secret")
    compile_to(box, path, "-fomit-frame-pointer", file="secret.c")
    liar.faults[os.stat(path).st_ino] = "changed"  # it waits for a word of this test
    liar.save()
    if box.run_as == "root":  # opd becomes the owner of its session
        os.mkdir(box.session)
        for directory in (box.dir, box.session):
            os.chown(directory, opdtest.DAEMON_UID, opdtest.DAEMON_UID)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    pid = box.daemon.pid
    check_not_dumpable(pid)
    child = box.start_piped(path)
    secret = bytes.fromhex(child.stdout.readline().decode().strip())
    require(len(secret) == 1024, "the program says nothing")
    liar.process("changed")
    wait_until(lambda: box.status()["stacks_waiting"] >= WAITING, opdtest.HANG_SECONDS, "no stacks wait for a table")
    check_memory(pid, secret)
    check_files(box, secret)
    before = nr_walked(box)
    box.end_busy(child)
    with open(os.path.join(box.dir, "go"), "w", encoding="ascii"):
        pass
    wait_until(lambda: not box.status()["tables_waiting"] and not box.status()["stacks_waiting"], opdtest.HANG_SECONDS,
               "stacks wait for ever")
    require(nr_walked(box) >= before + WAITING, "the waiting stacks were not walked")
    box.opcontrol("--dump")
    memory = Memory(pid)
    left = memory.places_of(secret)
    require(not left, "after the walk copies are left in %s" % [memory.names[place] for place in left])
    check_files(box, secret)
    box.check_ledger(with_files=False)
    box.shutdown()
    check_files(box, secret)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
