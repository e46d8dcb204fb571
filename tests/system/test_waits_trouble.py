#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Waits when something goes wrong for them: threads that end, also by a kill, opd that is killed, full
rings, a process number that is used again, a frozen cgroup, a suspend. The truth is the clock of
the program that waits (waits.c), or that of the test. Switches add up each time, and time that no
record has is counted as lost.
"""
import contextlib
import ctypes
import glob
import math
import os
import re
import signal
import time

import opdtest
from opdtest import require
from test_clock import Clock, HOUR
from test_hotplug import standing_still
from test_waits import STATES, US, WAITED, Waits, await_uptime, bound, check_close, check_switches, dump, program_of, \
    quantum_us, run, settle, use_waits

CLONE3, BPF = {"x86_64": (435, 321), "aarch64": (435, 280)}.get(os.uname().machine, (None, None))
BPF_PROG_GET_FD_BY_ID = 13


class Program:
    """A program that waits."""

    def __init__(self, box, name, *arguments, before=()):
        self.name, self.path, self.begin = name, os.path.join(box.dir, name), time.monotonic()
        if not os.path.exists(self.path):
            program_of(box, name)
        self.process = box.start_piped(*before, self.path, *arguments)
        require(self.process.stdout.readline() == b"ready\n", "%s does not begin" % name)
        self.ready = time.monotonic()

    def await_end(self):
        """What it says: microseconds of waiting. The mode `still` ends with its input."""
        self.process.stdin.close()
        out = self.process.stdout.read()
        require(self.process.wait() == 0, "%s failed" % self.name)
        return int(out.split()[0])

    def kill(self):
        """For how long it has run: at least, at most."""
        before = time.monotonic()
        self.process.kill()
        self.process.wait()
        return before - self.ready, time.monotonic() - self.begin


def lost_us(box):
    """Time that no record has, of all programs."""
    return next(event["lost_kernel"] for event in box.status()["events"] if event["role"] == opdtest.WAITS)


def check_between(what, found, at_least, at_most, lost):
    require(at_least - lost <= found <= at_most, "%s: %.3f s found, not %.3f to %.3f, %.3f of all programs are lost" %
            (what, found / US, at_least / US, at_most / US, lost / US))


def check_all(box):
    check_switches(box)
    box.check_ledger(with_files=False)


def test_ends(box):
    """Threads of 30 ms: a short one has a fair chance to be recorded. What they owe is lost."""
    use_waits(box)
    waited = run(box, program_of(box, "ends"), "ends", "8", "6")[0]
    found, lost = Waits(box.session, "ends").total(*STATES) - 6 * US, lost_us(box)
    allowed = 0.03 * waited + bound(box, 9, *WAITED) + 4 * math.sqrt(quantum_us(box) * waited)
    check_between("threads that end", found, waited - allowed, waited + allowed, lost)
    check_all(box)


def test_killed(box):
    """A kill ends many waits at once."""
    use_waits(box)
    settle(box)
    program = Program(box, "killed", "poll", "50", "3600")
    time.sleep(2)
    least, most = program.kill()
    dump(box)
    check_between("a kill", Waits(box.session, "killed").states["blocked"], 0.97 * 51 * least * US, 51 * most * US, lost_us(box))
    check_all(box)


def program_ids(pid):
    """Of the BPF programs of a process."""
    ids = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as stream:
            ids.update(int(number) for number in re.findall(r"^prog_id:\s+(\d+)", stream.read(), re.MULTILINE))
    return ids


def is_loaded(number):
    attr = (ctypes.c_uint32 * 32)(number)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(BPF, BPF_PROG_GET_FD_BY_ID, attr, ctypes.sizeof(attr))
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def helpers_of(pid):
    """The processes below one."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as stream:
        children = [int(word) for word in stream.read().split()]
    return [process for child in children for process in [child, *helpers_of(child)]]


def check_helpers(pid):
    """opd writes into maps of the kernel; what looks at files of strangers for it has no part in that."""
    helpers = helpers_of(pid)
    require(helpers, "opd has no helpers")
    for helper in helpers:
        with contextlib.suppress(OSError), open("/proc/%d/maps" % helper, encoding="utf-8") as stream:
            require("bpf-map" not in stream.read(), "helper %d has maps of the kernel" % helper)
        require(not program_ids(helper), "helper %d has programs of the kernel" % helper)


def test_killed_opd(box):
    """Nothing is left in the kernel, and the next opd has no part of the time between."""
    use_waits(box)
    program = Program(box, "lasting", "poll", "20", "3600")
    await_uptime(box, 4)
    ids = program_ids(box.daemon.pid)
    require(len(ids) >= 4 and all(map(is_loaded, ids)), "programs of opd: %s" % ids)
    check_helpers(box.daemon.pid)
    dump(box)
    box.daemon.kill()
    box.daemon.wait()
    opdtest.wait_until(lambda: not any(map(is_loaded, ids)), opdtest.HANG_SECONDS, "a program of opd is left in the kernel")
    end = time.monotonic()
    before = Waits(box.session, "lasting").total(*STATES)
    require(before > 21 * 3 * US, "before the kill: %.3f s" % (before / US))
    time.sleep(4)
    box.start_daemon()
    begin = time.monotonic()
    await_uptime(box, 3)
    dump(box)
    _, most = program.kill()
    found = Waits(box.session, "lasting").total(*STATES)
    require(before + 0.97 * 21 * 3 * US <= found <= 21 * US * (most - (begin - end - 1)), "%.3f s, %.3f before, %.3f without opd" %
            (found / US, before / US, begin - end))
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    check_all(box)


def test_full_rings(box):
    """opd stands still, and others fill the rings: what had no room is in later records."""
    use_waits(box, StackRingMaxUse="256K", StackRate="997", WaitBudget="64M")
    settle(box)
    before = box.status()
    program = Program(box, "sleepy", "sleep", "1", "9")
    busy = box.busy_cpus(60)
    with standing_still(box):
        time.sleep(3)
    for process in busy:
        box.end_busy(process)
    waited = program.await_end()
    dump(box)
    after = box.status()
    require(after["wait_lost"] > before["wait_lost"], "the rings had room for all: %d lost" % after["wait_lost"])
    found, allowed = Waits(box.session, "sleepy").total(*STATES) - 9 * US, 0.03 * waited + bound(box, 2, *WAITED)
    check_between("sleeps", found, waited - allowed, waited + allowed, lost_us(box))
    check_all(box)


def start_with_number(number, path, *arguments):
    """A process whose number is known. Its output is gone."""
    numbers = (ctypes.c_int * 1)(number)
    attr = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(numbers), 1, 0)
    pid = ctypes.CDLL(None, use_errno=True).syscall(CLONE3, attr, ctypes.sizeof(attr))
    if not pid:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.execv(path, [path, *arguments])
        finally:
            os._exit(127)
    return pid


def test_numbers(box):
    """A process has the number of one whose wait opd was told of, and opd learns all of that at once."""
    use_waits(box)
    settle(box)
    old = Program(box, "old", "poll", "4", "3600")
    path = program_of(box, "new")
    await_uptime(box, 6)
    with standing_still(box):
        times = old.kill()
        begin = time.monotonic()
        if start_with_number(old.process.pid, path, "poll", "4", "3600") < 0:
            raise opdtest.Skip("clone3 gives no number: another process has it, or this kernel cannot")
        time.sleep(1)
    await_uptime(box, 4)
    least = time.monotonic() - begin
    dump(box)
    os.kill(old.process.pid, signal.SIGKILL)
    os.waitpid(old.process.pid, 0)
    most = time.monotonic() - begin
    dump(box)
    for name, (shortest, longest) in (("old", times), ("new", (least - 1, most))):
        found = Waits(box.session, name)
        check_between(name, found.states["blocked"], 0.97 * 5 * shortest * US, 5 * longest * US, lost_us(box))
        require(found.complete > 0.9 * found.states["blocked"], "%s: %d us are complete: %s" % (name, found.complete, found.states))
    check_all(box)


def cgroup2():
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        return next((line.split()[4] for line in stream if line.split(" - ")[1].split()[0] == "cgroup2"), None)


def test_frozen_cgroup(box):
    """Frozen threads wait for nothing. The rest of their time is blocked, as before."""
    top = cgroup2()
    group = os.path.join(top or "", "opd-frozen-%d" % os.getpid())
    try:
        os.mkdir(group)
    except OSError as error:
        print("no cgroup can be made: %s" % error)
        return
    use_waits(box)
    settle(box)

    def freeze(is_on):
        with open(group + "/cgroup.freeze", "w", encoding="ascii") as stream:
            stream.write("1" if is_on else "0")
        with open(group + "/cgroup.events", encoding="ascii") as stream:
            opdtest.wait_until(lambda: stream.seek(0) or "frozen %d\n" % is_on in stream.read(), opdtest.HANG_SECONDS, "no change")
        return time.monotonic()

    program = Program(box, "frosty", "still", "4", "0", before=("sh", "-c", 'echo $$ >"$0" && exec "$@"', group + "/cgroup.procs"))
    try:
        time.sleep(2)
        before, frozen = time.monotonic(), freeze(True)
        await_uptime(box, 6)
        thawing, thawed = time.monotonic(), freeze(False)
        time.sleep(2)
        shortest, longest = program.kill()
    finally:
        program.kill()
        os.rmdir(group)
    dump(box)
    found = Waits(box.session, "frosty")
    check_between("frozen", found.states["frozen"], 0.97 * 5 * (thawing - frozen) * US, 5 * (thawed - before) * US, lost_us(box))
    check_between("blocked", found.states["blocked"], 0.97 * 5 * (shortest - (thawed - before)) * US,
                  5 * (longest - (thawing - frozen)) * US, lost_us(box))
    check_all(box)


def test_suspend(box):
    """The clock of waits stands still in a suspend: an hour of it is no wait."""
    clock = Clock(box)
    use_waits(box, env=clock.env)
    settle(box)
    program = Program(box, "slept", "poll", "20", "8")
    await_uptime(box, 2)
    clock.step(HOUR, HOUR)
    waited = program.await_end()
    dump(box)
    check_close("a suspend", Waits(box.session, "slept").states["blocked"] - 8 * US, waited, 20 * US / 100)
    check_all(box)


def test(box):
    for case in (test_ends, test_killed, test_killed_opd, test_full_rings, test_numbers, test_frozen_cgroup, test_suspend):
        case(box)
        box.shutdown()
        box.opcontrol("--reset")


if __name__ == "__main__":
    opdtest.run(test)
