#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Waits: where threads spend the time that they do not run. The truth is the clock of the program that
waits (waits.c). A wait of at least a quantum is recorded with its exact time; of shorter ones, what
a thread waits in a state is known to within two quanta. This is how far a sum may be away.
Switches add up: idle + kernel + emitted + skipped + lost. A kill -9 leaves a session that is sound.
Without the program in the kernel opd profiles as before, and says why there are no waits.
"""
import collections
import json
import math
import os
import re
import signal
import struct
import subprocess

import opdtest
from opdtest import require

EVENT, APP, COMM, CGROUP, THREAD, END, FRAME, KERNEL, TEXT, STATE = range(1, 11)
STATES = ("running", "blocked", "disk", "uninterruptible", "runnable", "preempted", "frozen")
WAITED = ("blocked", "runnable", "preempted")
US = 1000000
QUANTUM_MIN_US = 20000
RUNNABLE_FACTOR = 4  # the quantum of a thread that wants a CPU is so many times that of others


class Waits:
    """The waits of the processes of a name, from the file of stacks."""

    def __init__(self, session, comm):
        with open(os.path.join(session, "samples", "current", "stacks"), "rb") as stream:
            data = stream.read()
        nr_nodes, = struct.unpack_from("<I", data, 12)
        nodes = [struct.unpack_from("<IHHQQQ", data, 64 + 32 * i) for i in range(nr_nodes)]
        self.states, self.nr_records, self.complete, self.images = collections.Counter(), 0, 0, set()
        for node in nodes:
            count, nr_records, path = node[5], node[2], []
            while count and node[1]:
                path.append(node)
                node = nodes[node[0]]
            fields = {kind: (value, image) for _, kind, _, value, image, _ in path if kind not in (FRAME, KERNEL)}
            if STATE not in fields or struct.pack("<QQ", *fields[COMM]).rstrip(b"\0") != comm.encode():
                continue
            self.states[STATES[fields[STATE][0]]] += count
            self.nr_records += nr_records
            self.complete += 0 if END in fields else count
            self.images |= {image for _, kind, _, _, image, _ in path if kind in (APP, FRAME, KERNEL) and image}

    def total(self, *states):
        return sum(self.states[state] for state in states)


def use_waits(box, env=None, **keys):
    """opd with the program in the kernel. Skips where this kernel or this build has none."""
    if "OPD_WAITS" not in box.env:
        raise opdtest.Skip("opd was built without clang or libbpf")
    box.configure(Stacks="yes", **keys)
    box.start_daemon("--event=default", env=env)
    why = box.status()["no_waits"]
    if why:
        raise opdtest.Skip("this kernel has no waits: " + why)


def program_of(box, name):
    return box.copy_work(name, "waits")


def await_uptime(box, seconds):
    begin = box.status()["uptime_ns"]
    opdtest.wait_until(lambda: box.status()["uptime_ns"] - begin > seconds * 1e9, opdtest.HANG_SECONDS, "opd's clock stands still")


def dump(box):
    """Stacks whose tables are being made are not in the file yet."""
    box.opcontrol("--dump")
    opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
    box.opcontrol("--dump")


def run(box, path, *arguments):
    """Runs the program beside opd. What it says: microseconds of waiting, of long and short sleeps."""
    settle(box)
    out = box.good(path, *arguments).split("\n")
    dump(box)
    return [int(word) for word in out[1].split()]


def folded(box, comm):
    """{function names: microseconds} of the waits of a name."""
    sums = collections.Counter()
    for line in box.opreport("--stacks=wait", "--idle=show", "--format=folded").splitlines():
        if line.split(";")[0].split("/")[-1] == comm:
            sums[line.rsplit(" ", 1)[0]] += int(line.rsplit(" ", 1)[1])
    return sums


def quantum_us(box, factor=1):
    return min(box.status()["wait_quantum_ns"] / 1000 * factor, US)


def settle(box):
    """opd begins with a quantum that is large, and takes what the host allows: it falls no more for
    three seconds of opd's clock, or is the smallest one.
    """
    lowest, since = US, box.status()["uptime_ns"]
    while lowest > QUANTUM_MIN_US and box.status()["uptime_ns"] - since < 3e9:
        now = quantum_us(box)
        if now < lowest:
            lowest, since = now, box.status()["uptime_ns"]
        box.await_look()


def bound(box, nr_threads, *states):
    """How far the sum of some threads may be away: two quanta for each thread and state."""
    factors = (RUNNABLE_FACTOR if state in ("runnable", "preempted") else 1 for state in states)
    return sum(2 * nr_threads * quantum_us(box, factor) for factor in factors)


def check_close(what, found, truth, allowed):
    require(abs(found - truth) <= allowed + 0.03 * truth, "%s: %.3f s found, %.3f s by its clock, %.3f s allowed" %
            (what, found / US, truth / US, (allowed + 0.03 * truth) / US))


def check_switches(box):
    """When sampling has stopped: a switch that happens now is in no part yet."""
    box.opcontrol("--stop")
    status = box.status()
    parts = {name: status["wait_" + name] for name in ("idle", "kernel", "emitted", "skipped", "lost")}
    require(status["wait_switches"] == sum(parts.values()), "switches: %d, and %s" % (status["wait_switches"], parts))
    require(status["wait_emitted"], "no wait was recorded")


def test_sleeps(box):
    use_waits(box)
    path = program_of(box, "sleepy")
    waited, long_us, short_us = run(box, path, "sleep", "1", "8")
    found = Waits(box.session, "sleepy")
    # main() waits for the thread, all of the time
    check_close("sleeps", found.total(*STATES) - 8 * US, waited, bound(box, 2, *WAITED))
    sums = folded(box, "sleepy")
    long_found = sum(us for names, us in sums.items() if "long_sleep" in names)
    short_found = sum(us for names, us in sums.items() if "short_sleep" in names)
    # Longer than a quantum: each is recorded. Else the sites of a thread share points by chance.
    chance = 0 if quantum_us(box) < 0.5 * US else 4 * math.sqrt(quantum_us(box) * waited / 4)
    check_close("long sleeps", long_found, long_us, bound(box, 1, *WAITED) + chance)
    check_close("short sleeps", short_found, short_us, bound(box, 1, *WAITED) + chance)
    require(found.nr_records <= 500, "%d records" % found.nr_records)
    check_switches(box)
    box.check_ledger(with_files=False)


def test_states(box):
    use_waits(box)
    truth = {}
    for mode, nr in (("mutex", 8), ("spin", 10), ("poll", 20)):
        truth[mode] = run(box, program_of(box, mode), mode, str(nr), "4")[0]
    lock, spin, poll = (Waits(box.session, mode) for mode in ("mutex", "spin", "poll"))
    check_close("mutex", lock.total(*STATES) - 4 * US, truth["mutex"], bound(box, 9, *WAITED))
    require(lock.states["blocked"] - 4 * US > truth["mutex"] / 3, "mutex: %s" % lock.states)
    check_close("spin", spin.total("runnable", "preempted"), truth["spin"], bound(box, 11, "runnable", "preempted"))
    check_close("poll", poll.states["blocked"] - 4 * US, truth["poll"], 20 * US / 100)
    require(poll.complete > 0.9 * poll.states["blocked"], "poll: %d us of %s are complete" % (poll.complete, poll.states))
    check_switches(box)
    box.check_ledger(with_files=False)


def test_waits_before_opd(box):
    """Threads that wait since before opd, and still wait, are found, with their stacks."""
    box.configure(Stacks="yes")
    path = program_of(box, "early")
    program = box.start(path, "poll", "20", "3600", stdout=subprocess.PIPE, text=True)
    require(program.stdout.readline() == "ready\n", "the program does not begin")
    tasks = "/proc/%d/task" % program.pid
    opdtest.wait_until(lambda: all(opdtest.state_of("%d/task/%s" % (program.pid, task)) == "S" for task in os.listdir(tasks)),
                       opdtest.HANG_SECONDS, "not all threads wait")
    use_waits(box)
    await_uptime(box, 3)
    dump(box)
    found = Waits(box.session, "early")
    require(found.states["blocked"] >= 20 * 3 * US, "blocked: %s" % found.states)
    require(found.complete > 0.9 * found.states["blocked"], "%d us of %s are complete" % (found.complete, found.states))
    names = max(folded(box, "early").items(), key=lambda row: row[1])[0]
    require("await_nothing" in names and "epoll_wait" in names, names)
    # a kill ends the waits
    program.kill()
    program.wait()
    dump(box)
    after = Waits(box.session, "early")
    require(after.states["blocked"] >= found.states["blocked"], "a part was taken away")
    check_switches(box)


def test_frozen(box):
    """A stopped thread does not wait for anything: its time is frozen."""
    use_waits(box)
    path = program_of(box, "stopped")
    program = box.start(path, "spin", "1", "3600", stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    program.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(program.pid), opdtest.HANG_SECONDS, "it is not stopped")
    await_uptime(box, 2)
    dump(box)
    found = Waits(box.session, "stopped")
    require(found.states["frozen"] >= 2 * 2 * US, "two threads for two seconds: %s" % found.states)
    program.kill()


def test_wakers(box):
    """Who ended the waits of a lock: the thread that had it. Sleeps are ended by an interrupt."""
    use_waits(box)
    settle(box)
    box.good(program_of(box, "locked"), "held", "2", "6")
    dump(box)
    rows = json.loads(box.opreport("--wakers", "--idle=show", "--format=json", program_of(box, "locked")))["waits"]["symbols"]
    shares = {}
    for row in rows:
        for waker in row["wakers"]:
            shares.setdefault(row["symbol"], {})[waker["thread"]] = waker["us"]
            require(waker["image"].endswith("locked") == (waker["thread"] != "(interrupt)"), "the program: %s" % waker)
    lock, sleep = shares["await_lock"], shares["keep_or_wait"]
    require(lock.get("keeper", 0) > 0.9 * sum(lock.values()) > 3 * US, "the lock: %s" % shares)
    require(sleep.get("(interrupt)", 0) > 0.9 * sum(sleep.values()), "sleeps: %s" % shares)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)


def test_kill(box):
    use_waits(box)
    run(box, program_of(box, "sleepy"), "sleep", "2", "2")
    before = Waits(box.session, "sleepy").total(*STATES)
    box.daemon.kill()
    box.daemon.wait()
    box.start_daemon()
    run(box, program_of(box, "sleepy2"), "sleep", "1", "2")
    require(Waits(box.session, "sleepy").total(*STATES) >= before, "waits are gone after kill -9")
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    check_switches(box)


def test_save(box):
    """The next session has the images of its own waits, also of those that began before it."""
    use_waits(box)
    program = box.start(program_of(box, "saved"), "poll", "20", "3600", stdout=subprocess.PIPE, text=True)
    require(program.stdout.readline() == "ready\n", "the program does not begin")
    await_uptime(box, 5.5)  # each was told once, and its stack counts when it is told again
    box.opcontrol("--save=before")
    await_uptime(box, 2)
    dump(box)
    found = Waits(box.session, "saved")
    require(found.states["blocked"] >= 20 * 2 * US, "blocked: %s" % found.states)
    with open(os.path.join(box.session, "samples", "current", "dcookies"), encoding="utf-8", errors="replace") as stream:
        rows = {line.split("\t")[0] for line in stream}
    require(found.images and all(str(image) in rows for image in found.images), "images %s are not in %s" % (found.images, rows))
    program.kill()


def test_without(box):
    """Each reason is said, and opd profiles all the same."""
    missing = os.path.join(box.dir, "missing")
    for keys, env, why in (({"Bpf": "no"}, {}, "Bpf=no"), ({"Waits": "no"}, {}, "Waits=no"),
                           ({"Stacks": "no"}, {}, "no stacks"), ({}, {"OPD_WAITS": missing}, missing)):
        box.configure(**{"Stacks": "yes", **keys})
        box.start_daemon("--event=default", env=env)
        status = box.status()
        require(why in status["no_waits"], "%s: %s" % (why, status["no_waits"]))
        require("WAIT" not in [event["name"] for event in status["events"]], "there are waits")
        require(re.search("Waits: +not sampled: .*" + re.escape(why)[:20], box.opcontrol("--status")), "the status does not say it")
        box.shutdown()


def test(box):
    for case in (test_without, test_sleeps, test_states, test_waits_before_opd, test_frozen, test_save,
                 test_wakers, test_kill):
        case(box)
        box.shutdown()
        box.opcontrol("--reset")


if __name__ == "__main__":
    opdtest.run(test)
