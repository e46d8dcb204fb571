#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control socket in the real daemon: who may send what, clients that mean harm, and starting and stopping again and again."""
import contextlib
import errno
import os
import re
import select
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
NR_REQUESTS, NR_CYCLES = 10000, 50  # in make check-long 10^5 and 1,000
MAX_GROWTH_KIB = 2048
SETTLE_SECONDS = 0.2


def protocol_version():
    with open(os.path.join(os.environ["OPD_SOURCE"], "libop", "control.h"), encoding="utf-8") as stream:
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


def ask_as(box, uid, gid, command):
    """The same as another user; the exit code of a child."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            code = -ask(box, command, b"as-%d" % uid if command == "SAVE" else b"")
        except OSError as error:
            code = error.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_access(box):
    """Every user and every command. The group is the one that opd would have given to the socket."""
    os.chown(box.socket, -1, GROUP)
    for command in COMMANDS:
        wanted = {(NOBODY, GROUP): 0 if command in GROUP_MAY else errno.EPERM, (NOBODY, NOBODY): errno.EACCES}
        for (uid, gid), code in wanted.items():
            got = ask_as(box, uid, gid, command)
            require(got == code, "%s as %d:%d: %s, not %s" % (command, uid, gid, os.strerror(got), os.strerror(code)))
    require(box.status()["state"] == "running", "somebody who may not stop profiling did")
    for command in sorted(set(COMMANDS) - {"SHUTDOWN", "SAVE"}):
        require(ask_as(box, 0, 0, command) == 0, "root may not send %s" % command)
    require(ask(box, "START") == 0, "START")


def flood(box, nr_requests):
    """Sends requests as fast as they are taken, and reads no more than it must for that: a client with one request under way at a time."""
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
        with connect(box) as client:
            client.send(request(command))


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
def member(uid):
    """Connections that are made here are those of a member of the group."""
    os.setegid(GROUP)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def crowds_of_members(box):
    """Users who may only ask have as many clients as they can, all with answers that they do not take: root is served all the same, and so is another one."""
    os.chown(box.socket, -1, GROUP)
    silent = []
    for uid, others in ((NOBODY, (0, SOMEBODY)), (SOMEBODY, (0,))):
        with member(uid):
            silent += never_reading(box, 40)
        for other in others:
            got = ask_as(box, other, GROUP, "STATUS")
            require(got == 0, "beside %d clients of members that never read, user %d: %s" % (len(silent), other, os.strerror(got)))
    for client in silent:
        client.close()


def never_read(box):
    """As many as there may be, and then one who behaves."""
    silent = never_reading(box, 80)
    wait_until(lambda: box.run(os.path.join(box.bin, "opcontrol"), "--dump").rc == 0, opdtest.HANG_SECONDS, "nobody is served beside clients that never read")
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
    wait_until(lambda: time.sleep(SETTLE_SECONDS) or seen.append(resources(pid)[:2]) or seen[-2:] == [seen[-1]] * 2, opdtest.HANG_SECONDS, "descriptors come and go")
    return seen[-1]


def check_hostile(box, nr_requests):
    """None of it loses a sample or a descriptor."""
    pid = box.daemon.pid
    before = at_rest(pid)
    mean_harm(box)
    crowds_of_members(box)
    never_read(box)
    answered = flood(box, nr_requests)
    wait_until(lambda: resources(pid)[:2] == before, opdtest.HANG_SECONDS, "descriptors before and after: %s, %s" % (before, resources(pid)))
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
    wait_until(lambda: resources(pid)[2] - seen[0][2] <= MAX_GROWTH_KIB, opdtest.HANG_SECONDS, "memory grows from %d to %d KiB" % (seen[0][2], resources(pid)[2]))


def number_of(option, preset):
    return next((int(word.split("=")[1]) for word in sys.argv[1:] if word.startswith(option + "=")), preset)


def test(box):
    box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel")
    check_access(box)
    check_hostile(box, number_of("--requests", NR_REQUESTS))
    check_cycles(box, number_of("--cycles", NR_CYCLES))
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
