#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A kernel that refuses opd all events, as Debian's does: opd-events opens them, also those of a CPU
that comes later and when it was killed in between. Without opd-events opd says what to do. Whoever
has taken opd over gets no other events from it, and cannot make it do something else.
"""
import array
import contextlib
import os
import socket
import struct

import event_opener
import opdtest
import test_hotplug
from opdtest import require

EVENTS = ("--event=TIMER:1000000", "--stacks=99")
WORK_MS = 500
ANSWER = struct.Struct("=i")
EPERM = 1
KEPT = {"CapPrm": 1 << 21, "CapEff": 1 << 21, "CapInh": 0, "CapAmb": 0}  # CAP_SYS_ADMIN

# perf_event_attr: the words of it that requests of this test set, by their offset
TYPE, SIZE, CONFIG, SAMPLE_TYPE, READ_FORMAT, FLAGS = (
    (0, "I"), (4, "I"), (8, "Q"), (24, "Q"), (32, "Q"), (40, "Q"))
BP_TYPE, CONFIG1, CONFIG2, BRANCHES, REGS_INTR, AUX_WATERMARK, CLOCKID = (
    (52, "I"), (56, "Q"), (64, "Q"), (72, "Q"), (96, "Q"), (104, "I"), (92, "i"))
DISABLED, INHERIT, PINNED, EXCLUSIVE, CONTEXT_SWITCH, AUX_OUTPUT, TEXT_POKE, SIGTRAP = (
    1 << bit for bit in (0, 1, 2, 3, 26, 31, 33, 37))
IP, ADDR, READ, BRANCH_STACK, INTR, PHYS_ADDR, RAW = (1 << bit for bit in (0, 3, 4, 11, 18, 19, 10))
SOFTWARE, TRACEPOINT, BREAKPOINT = 1, 2, 5
DUMMY, BPF_OUTPUT = 9, 10

# What no opd asks for.
HOSTILE = {
    "all CPUs of a task": {"cpu": -1},
    "another CPU number": {"cpu": -2},
    "a reserved word": {"reserved": 1},
    "a breakpoint": {TYPE: BREAKPOINT, BP_TYPE: 3, CONFIG1: 0xffffffff81000000, CONFIG2: 8},
    "a PMU of a number": {TYPE: 6},
    "a PMU of a high number": {TYPE: 0xffffffff},
    "an event of BPF": {CONFIG: BPF_OUTPUT},
    "a pointer": {CONFIG1: 0x400000},
    "another pointer": {CONFIG2: 0x400000},
    "inheritance": {FLAGS: INHERIT},
    "a pinned counter": {FLAGS: PINNED},
    "a counter alone": {FLAGS: EXCLUSIVE},
    "context switches": {FLAGS: CONTEXT_SWITCH},
    "the code that the kernel changes": {FLAGS: TEXT_POKE},
    "an AUX area": {FLAGS: AUX_OUTPUT, AUX_WATERMARK: 1},
    "a signal": {FLAGS: SIGTRAP},
    "a flag that is not known": {FLAGS: 1 << 63},
    "addresses": {SAMPLE_TYPE: IP | ADDR},
    "other counters": {SAMPLE_TYPE: IP | READ},
    "branches": {SAMPLE_TYPE: IP | BRANCH_STACK, BRANCHES: 1},
    "registers of the kernel": {SAMPLE_TYPE: IP | INTR, REGS_INTR: 1},
    "physical addresses": {SAMPLE_TYPE: IP | PHYS_ADDR},
    "raw data": {SAMPLE_TYPE: IP | RAW},
    "data of a tracepoint": {TYPE: TRACEPOINT, CONFIG: 1, SAMPLE_TYPE: IP | RAW},
    "a sample type that is not known": {SAMPLE_TYPE: 1 << 63},
    "a read format of groups": {READ_FORMAT: 8},
    "another clock": {CLOCKID: 7},
    "another size": {SIZE: 64},
}


class Asker:
    """Speaks to opd-events as an opd that was taken over would."""

    def __init__(self, opener, nr_bytes):
        self.opener, self.attr_bytes, self.socket = opener, nr_bytes, None
        self.connect()

    def connect(self):
        if self.socket:
            self.socket.close()
        self.socket = self.opener.connect()

    def request(self, changes=()):
        attr, head = bytearray(self.attr_bytes), {"cpu": 0, "reserved": 0}
        for (offset, form), value in {TYPE: SOFTWARE, SIZE: self.attr_bytes, CONFIG: DUMMY, SAMPLE_TYPE: IP,
                                      FLAGS: DISABLED, **{k: v for k, v in dict(changes).items() if k not in head}}.items():
            struct.pack_into("=" + form, attr, offset, value)
        head.update((k, v) for k, v in dict(changes).items() if k in head)
        return struct.pack("=iI", head["cpu"], head["reserved"]) + bytes(attr)

    def ask(self, message, fds=()):
        """(err, nr of descriptors); None: the connection has ended."""
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([message], control)
        try:
            answer, rights, _, _ = self.socket.recvmsg(64, socket.CMSG_SPACE(64))
        except ConnectionResetError:
            return None
        got = array.array("i", b"".join(data for _, _, data in rights))
        for fd in got:
            require("perf_event" in os.readlink("/proc/self/fd/%d" % fd), "this is no event")
            os.close(fd)
        return (ANSWER.unpack(answer)[0], len(got)) if answer else None


def attr_bytes(box):
    """The size of perf_event_attr that opd-events was built with: the one that it takes."""
    opener = event_opener.Opener(box, event_opener.refusing(box)[0])
    for size in range(64, 256, 8):
        asker = Asker(opener, size)
        if asker.ask(asker.request()) == (0, 1):
            asker.socket.close()
            opener.close()
            return size
        asker.socket.close()
    if "no filter of system calls" in opener.said():
        raise opdtest.Skip("opd-events is built without libseccomp, or with sanitizers: it does not serve")
    raise opdtest.Failure("opd-events takes no request: %s" % opener.said())


def descriptors_of(pid):
    return sorted(int(fd) for fd in os.listdir("/proc/%d/fd" % pid))


def check_hostile(box):
    """Requests that opd does not make are refused, messages that are none end the connection, and a
    good one is answered afterwards.
    """
    size = attr_bytes(box)
    opener = event_opener.Opener(box, event_opener.refusing(box)[0])
    asker = Asker(opener, size)
    require(asker.ask(asker.request()) == (0, 1), "a good request is refused: %s" % opener.said())
    pid = opener.child.pid
    for what, changes in HOSTILE.items():
        answer = asker.ask(asker.request(changes))
        require(answer == (-EPERM, 0), "%s: the answer is %s" % (what, answer))
        require(asker.ask(asker.request()) == (0, 1), "after %s a good request is refused" % what)
    for nr in (1, 2, 20):
        answer = asker.ask(asker.request(), [0] * nr)
        require(answer == (0, 1), "with %d descriptors: %s" % (nr, answer))
    require(opener.child.pid == pid and opener.nr_started == 1, "opd-events has ended")
    # it closes an event after it has sent it
    opdtest.wait_until(lambda: descriptors_of(pid) == [0, 1, 2, 3], opdtest.HANG_SECONDS, "opd-events keeps descriptors")
    check_rights(pid)
    for message in (b"x", asker.request()[:-1], asker.request() + b"x", asker.request() * 100):
        require(asker.ask(message) is None, "a message of %d bytes has an answer" % len(message))
        asker.connect()
        require(asker.ask(asker.request()) == (0, 1), "after a message of %d bytes nobody answers" % len(message))
    asker.socket.close()
    opener.close()


def check_rights(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as stream:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in stream if ":\t" in line)
    for name, value in KEPT.items():
        require(int(fields[name], 16) == value, "%s of opd-events is %s" % (name, fields[name]))
    require(fields["Seccomp"] == "2" and fields["NoNewPrivs"] == "1", "opd-events has no filter, or may gain rights: %s" % fields)


def check_not_needed(box):
    """Where the kernel lets opd open events, the program answers nobody, and opd does not ask it."""
    if event_opener.level() > 2:
        return
    opener = event_opener.Opener(box)
    asker = Asker(opener, 64)
    require(asker.ask(b"") is None, "opd-events answers where it is not needed")
    require("not needed" in opener.said(), "opd-events says: %s" % opener.said())
    asker.socket.close()
    nr_started = opener.nr_started
    box.start_daemon(*EVENTS)
    box.shutdown()
    require(opener.nr_started == nr_started, "opd asks opd-events where it need not")
    opener.close()


def check_refused(box):
    """Without opd-events opd does not start, and says what to do."""
    try:
        box.start_daemon(*EVENTS)
    except opdtest.Failure as failure:
        for words in ("opd-events.socket", "'sysctl kernel.perf_event_paranoid=2'"):
            require(words in str(failure), "opd does not say why it does not start: %s" % failure)
    else:
        raise opdtest.Failure("the kernel refuses opd nothing")


def check_impostor(box):
    """A socket of another user is not asked: its owner would choose opd's descriptors."""
    code = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind(sys.argv[1]); s.listen(); "
            "print(flush=True); c = s.accept()[0]; print(len(c.recv(4096)), flush=True)")
    path = os.path.join(box.dir, "events")
    child = box.start("setpriv", "--reuid=%d" % opdtest.DAEMON_UID, "--clear-groups", "python3", "-c", code, path,
                      stdout=opdtest.subprocess.PIPE)
    child.stdout.readline()
    check_refused(box)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other, contextlib.suppress(ConnectionRefusedError):
        other.connect(path)  # in the place of an opd that does not connect
    require(child.stdout.readline() == b"0\n", "opd asks a socket that is not root's")
    require("is not root's socket" in box.log_text(), "opd does not say whom it does not ask")
    os.unlink(path)


def samples(box):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == box.work and f.name.event == "TIMER")


def check_sampled(box):
    opener = event_opener.Opener(box, event_opener.refusing(box)[0])
    box.start_daemon(*EVENTS)
    before = samples(box)
    box.work_until(lambda: box.opcontrol("--dump") is not None and samples(box) > before + 100, "the program has no samples",
                   box.work, "shares", WORK_MS)
    require(opener.nr_started == 1, "opd-events was started %d times" % opener.nr_started)
    check_rights(opener.child.pid)
    try:
        check_later_cpu(box, opener)
    except opdtest.Skip as reason:
        print("no CPU that comes later: %s" % reason)
    box.opcontrol("--stop")
    box.check_ledger()
    require("hot_a" in box.opreport("-l", box.work), "no symbols")
    require(";hot_a" in box.opreport("--format=folded", box.work), "no stacks")
    box.shutdown()
    opdtest.wait_until(lambda: opener.child.poll() is not None, opdtest.HANG_SECONDS, "opd-events does not end with opd")
    opener.close()


def check_later_cpu(box, opener):
    """The second time, systemd starts another opd-events, since the first was killed."""
    cpu, path = test_hotplug.last_cpu()
    for times in (1, 2):
        if times == 2:
            opener.kill()
        try:
            away = test_hotplug.take_away(box, cpu, path, times)
        finally:
            test_hotplug.switch(path, True)
        row = test_hotplug.await_row(box, cpu, lambda r: r["online"], "CPU %d came back, opd does not sample it" % cpu)
        require(row["online"] and row["received"] >= away["received"], "CPU %d: %s" % (cpu, row))
    require(opener.nr_started == 2, "opd-events was started %d times" % opener.nr_started)


def test(box):
    if box.run_as != "root":
        raise opdtest.Skip("the daemon has a user and rights of its own here")
    check_not_needed(box)
    check_hostile(box)
    event_opener.use_refused_daemon(box)
    check_refused(box)
    check_impostor(box)
    check_sampled(box)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
