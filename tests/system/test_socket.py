#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control socket in the real daemon: who may send what, clients that mean harm, and starting
and stopping again and again.
"""
import contextlib
import errno
import grp
import os
import re
import select
import signal
import socket
import struct
import sys
import time

import opdtest
from opdtest import require, wait_until

REQUEST = struct.Struct("=IHHII208s")
REPLY = struct.Struct("=IHHiI")
MAGIC = 0x4443504F
COMMANDS = {"STATUS": 1, "START": 2, "STOP": 3, "DUMP": 4, "RESET": 5, "SHUTDOWN": 6, "SAVE": 7}
GROUP_MAY = {"STATUS", "DUMP"}
GROUP, NOBODY, SOMEBODY = 54321, 65534, 65533
ROOTS_GROUP = 0
NR_REQUESTS, NR_CYCLES = 10000, 50  # in make check-long 10^5 and 1,000
MAX_GROWTH_KIB = 2048
LEAVERS, BATCH = 4, 24  # processes that ask and leave, and how many connections of each at once
MAX_FLOOD_GROWTH_KIB = 16384  # a job has 5 KiB, the flood makes some ten thousand
MAX_PLACES = 64
SETTLE_SECONDS = 0.2


def protocol_version():
    with open(os.path.join(os.environ["OPD_SOURCE"], "libop", "control", "protocol.h"), encoding="utf-8") as stream:
        return int(re.search(r"OP_CONTROL_VERSION (\d+)", stream.read()).group(1))


def request(command, name=b""):
    return REQUEST.pack(MAGIC, protocol_version(), COMMANDS[command], 0, 0, name)


def connect(box):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(box.socket)  # waits for room in the queue
    client.settimeout(opdtest.HANG_SECONDS)
    return client


def ask(box, command, name=b""):
    """The error of the reply, 0 for none."""
    with connect(box) as client:
        client.send(request(command, name))
        return REPLY.unpack_from(client.recv(1 << 18))[3]


def is_served(box):
    """False when there was no place."""
    try:
        return ask(box, "DUMP") == 0
    except (BrokenPipeError, ConnectionResetError, struct.error):
        return False


def become(uid, gid, groups=()):
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def ask_as(box, uid, gid, command, groups=()):
    """The same as another user; the exit code of a child."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            become(uid, gid, groups)
            code = -ask(box, command, b"as-%d" % uid if command == "SAVE" else b"")
        except OSError as error:
            code = error.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def group_of(pid):
    """Whose members may ask: opd, or where there is no such group, that of the daemon."""
    try:
        return grp.getgrnam("opd").gr_gid
    except KeyError:
        with open("/proc/%d/status" % pid, encoding="ascii") as stream:
            return int(re.search(r"^Gid:\s+\d+\s+(\d+)", stream.read(), re.M).group(1))


def check_access(box, group):
    """Every user and every command, and it is not only the mode of the socket that keeps others
    out.
    """
    for mode, stranger in ((0o660, errno.EACCES), (0o666, errno.EPERM)):
        os.chmod(box.socket, mode)
        os.chown(box.socket, -1, group)
        for command in COMMANDS:
            member_may = 0 if command in GROUP_MAY else errno.EPERM
            for gid, groups, code in ((group, (), member_may), (NOBODY, (1, 2, group), member_may),
                                      (NOBODY, (1, 2), stranger), (ROOTS_GROUP, (), stranger)):
                got = ask_as(box, NOBODY, gid, command, groups)
                require(got == code, "%s as %d:%d, groups %s, at a socket of mode %o: %s, not %s" % (
                    command, NOBODY, gid, groups, mode, os.strerror(got), os.strerror(code)))
    os.chmod(box.socket, 0o660)
    require(box.status()["state"] == "running", "somebody who may not stop profiling did")
    for command in sorted(set(COMMANDS) - {"SHUTDOWN", "SAVE"}):
        require(ask_as(box, 0, 0, command) == 0, "root may not send %s" % command)
    require(ask(box, "START") == 0, "START")


def ask_and_leave(box, command):
    """Many connections, a request on each, and all are left; False when nobody listens any more."""
    clients = []
    try:
        for _ in range(BATCH):
            clients.append(connect(box))
            clients[-1].send(request(command))
    except (ConnectionResetError, BrokenPipeError, ConnectionAbortedError):
        pass  # there is no place for this one
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    finally:
        for client in clients:
            client.close()
    return True


def start_leaver(box, group, command, nr_batches):
    """A member of the group who asks and leaves, so often or, with None, as long as there is
    somebody to ask.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        become(NOBODY, group)
        while ask_and_leave(box, command) and nr_batches != 1:
            nr_batches = nr_batches and nr_batches - 1
    finally:
        os._exit(0)
    return 0


@contextlib.contextmanager
def leavers(box, group, nr_batches=None):
    """Processes that do so; what is left of them in the end is ended."""
    pids = [start_leaver(box, group, ("DUMP", "STATUS")[i % 2], nr_batches) for i in range(LEAVERS)]
    try:
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def has_ended(pid):
    return not opdtest.is_alive(pid)


def check_leavers(box, group, nr_requests):
    """Who asks and hangs up leaves no work behind that others wait for: root is answered beside it,
    and at its end no dumps are left to be made.
    """
    before, answered = resources(box.daemon.pid)[2], 0
    with leavers(box, group, max(1, nr_requests // (LEAVERS * BATCH))) as pids:
        while not all(has_ended(pid) for pid in pids):
            require(ask(box, "STATUS") == 0, "root gets no answer beside clients that leave")
            answered += 1
        made = box.status()["dumps"]
        require(ask(box, "DUMP") == 0, "DUMP after clients that have left")
        left = box.status()["dumps"] - made
        grown = resources(box.daemon.pid)[2] - before
    require(left <= MAX_PLACES, "%d dumps were left to be made for clients that have gone" % left)
    require(grown <= MAX_FLOOD_GROWTH_KIB, "memory grows by %d KiB for clients that have gone" % grown)
    print("%d answers to root beside clients that leave; then %d dumps, %d KiB more" % (answered, left, grown))


def shut_down_beside_leavers(box, group):
    """The end does not wait for what was asked for before, and is in order."""
    with leavers(box, group):
        wait_until(lambda: box.status()["dumps"] > 0, opdtest.HANG_SECONDS, "nobody asks for dumps")
        box.shutdown()


def flood(box, nr_requests):
    """Sends requests as fast as they are taken, and reads no more than it must for that: a client
    with one request under way at a time.
    """
    answered, sent, one = 0, 0, request("STATUS")
    with connect(box) as client:
        client.setblocking(False)
        while answered < nr_requests:
            try:
                while sent - answered < 64 and sent < nr_requests:
                    client.send(one)
                    sent += 1
            except BlockingIOError:
                pass
            select.select([client], [], [], 60)
            try:
                while True:
                    require(client.recv(1 << 18), "opd hung up after %d requests" % answered)
                    answered += 1
            except BlockingIOError:
                pass
            if answered % 5000 == 0:
                require(ask(box, "STATUS") == 0, "another client gets no answer beside a flood")
    return answered


def mean_harm(box):
    """Garbage, halves, too much, and leaving with requests under way."""
    for message in (b"\0", b"x" * 224, request("STATUS")[:100], request("STATUS") + b"x", b"y" * 60000):
        with connect(box) as client:
            client.send(message)
            require(client.recv(1 << 18) == b"", "a request that is none is answered")
    for command in ("DUMP", "STATUS", "STATUS") * 30:
        # Those who have left keep their places until what they asked for is done: one beyond them
        # may find none.
        with connect(box) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(request(command))
    wait_until(lambda: is_served(box), opdtest.HANG_SECONDS, "nobody is served after clients that have left")


def never_reading(box, number):
    """Clients that ask and take no answer."""
    silent = []
    for _ in range(number):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.setblocking(False)
        try:
            client.connect(box.socket)
            while True:
                client.send(request("STATUS"))
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        silent.append(client)
    return silent


@contextlib.contextmanager
def member(uid, group):
    """Connections that are made here are those of a member of the group."""
    os.setegid(group)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def crowds_of_members(box, group):
    """Users who may only ask for the status have as many clients as they can, and none reads its
    answers: root and other users are served all the same.
    """
    silent = []
    for uid, others in ((NOBODY, (0, SOMEBODY)), (SOMEBODY, (0,))):
        with member(uid, group):
            silent += never_reading(box, 40)
        for other in others:
            got = ask_as(box, other, group, "STATUS")
            require(got == 0, "beside %d clients of members that never read, user %d: %s" % (len(silent), other, os.strerror(got)))
    for client in silent:
        client.close()


def never_read(box):
    """As many as there may be, and then one who behaves."""
    silent = never_reading(box, 80)
    wait_until(lambda: box.run(os.path.join(box.bin, "opcontrol"), "--dump").rc == 0, opdtest.HANG_SECONDS,
               "nobody is served beside clients that never read")
    for client in silent:
        client.close()


def resources(pid):
    """Descriptors, perf events among them, and resident memory in KiB."""
    links = []
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            links.append(os.readlink("/proc/%d/fd/%s" % (pid, name)))
        except OSError:
            continue
    with open("/proc/%d/status" % pid, encoding="ascii") as stream:
        rss = int(re.search(r"^VmRSS:\s+(\d+)", stream.read(), re.M).group(1))
    return len(links), sum("perf_event" in link for link in links), rss


def at_rest(pid):
    """Descriptors and events when those of clients who have gone are closed."""
    seen = []
    wait_until(lambda: time.sleep(SETTLE_SECONDS) or seen.append(resources(pid)[:2]) or seen[-2:] == [seen[-1]] * 2,
               opdtest.HANG_SECONDS, "descriptors come and go")
    return seen[-1]


def check_hostile(box, group, nr_requests):
    """None of it loses a sample or a descriptor."""
    pid = box.daemon.pid
    before = at_rest(pid)
    mean_harm(box)
    crowds_of_members(box, group)
    never_read(box)
    answered = flood(box, nr_requests)
    wait_until(lambda: resources(pid)[:2] == before, opdtest.HANG_SECONDS,
               "descriptors before and after: %s, %s" % (before, resources(pid)))
    box.opcontrol("--stop")
    event = box.check_ledger()["events"][0]
    lost = {k: v for k, v in event.items() if k.startswith("lost_") and v}
    require(not lost and event["stored"] > 0, "%s beside hostile clients, of %d samples" % (lost, event["taken"]))
    print("%d requests answered, %d samples beside them" % (answered, event["stored"]))


def check_cycles(box, nr_cycles):
    """START and STOP again and again: the same descriptors, the same events, and no more memory."""
    pid, seen = box.daemon.pid, []
    for cycle in range(nr_cycles):
        require(ask(box, "START") == 0 and ask(box, "STOP") == 0, "cycle %d" % cycle)
        if cycle == nr_cycles // 5:
            seen.append(resources(pid))
    # The client of the last cycle may be there when it is counted.
    wait_until(lambda: all(a <= b for a, b in zip(resources(pid)[:2], seen[0])), opdtest.HANG_SECONDS,
               "descriptors and events: %s, then %s" % (seen[0], resources(pid)))
    print("%d cycles: %s, then %s" % (nr_cycles, seen[0], resources(pid)))
    # What other programs of the host cost is given back when they have ended, what is lost is not.
    wait_until(lambda: resources(pid)[2] - seen[0][2] <= MAX_GROWTH_KIB, opdtest.HANG_SECONDS,
               "memory grows from %d to %d KiB" % (seen[0][2], resources(pid)[2]))


def number_of(option, preset):
    return next((int(word.split("=")[1]) for word in sys.argv[1:] if word.startswith(option + "=")), preset)


def check_versions(box):
    """A request of another version is told the daemon's, in a form that any version can read."""
    for version, length in ((protocol_version() - 1, REQUEST.size), (protocol_version() + 1, REQUEST.size + 100), (60000, 8)):
        with connect(box) as client:
            client.send(struct.pack("=IHH", MAGIC, version, 99).ljust(length, b"x"))
            answer = client.recv(1 << 18)
            magic, own, command, error, nr_bytes = REPLY.unpack_from(answer)
            require((magic, own, command, error) == (MAGIC, protocol_version(), 99, -errno.EPROTO)
                    and len(answer) == REPLY.size + nr_bytes,
                    "to version %d opd says %r" % (version, answer))
            require(client.recv(1 << 18) == b"", "the connection goes on")


def start(box):
    """Where the host has no group opd, the daemon's own is taken."""
    os.setegid(GROUP)
    try:
        box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel")
    finally:
        os.setegid(0)
    return group_of(box.daemon.pid)


def test(box):
    nr_requests = number_of("--requests", NR_REQUESTS)
    group = start(box)
    check_access(box, group)
    check_versions(box)
    check_hostile(box, group, nr_requests)
    check_cycles(box, number_of("--cycles", NR_CYCLES))
    require(ask(box, "START") == 0, "START")
    check_leavers(box, group, 2 * nr_requests)
    shut_down_beside_leavers(box, group)


if __name__ == "__main__":
    opdtest.run(test)
