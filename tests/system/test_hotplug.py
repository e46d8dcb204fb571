#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A CPU goes and comes back while all are busy and sampled, also between two looks of opd: its samples
are kept, and go on when it is back.

With page faults of period 1 to the last one: opd stands still while a known number of them goes
into the rings of the CPU, and until that has gone,
so that all of them are read from the rings of a CPU that is offline. What the kernel itself passes
over is what a FaultOracle says.
"""
import contextlib
import os
import signal
import threading

import opdtest
from opdtest import require

ROUNDS = 3
WAIT_SECONDS = opdtest.HANG_SECONDS
BUSY_SECONDS = 300 # ended by the test
MORE_SAMPLES = 200 # of the CPU after its return, at 1 kHz
NR_STARTS = 2 # while the CPU goes and comes
FAULTS = 20000 # before the CPU goes, and after its return
FAULT_RING = "16M" # for those and for what a machine faults that is busy, while opd stands still
FAULT_LOAD = "while :; do %s faults 200 > /dev/null; sleep 0.05; done"


def switch(path, online):
    with open(path, "w", encoding="ascii") as stream:
        stream.write("1" if online else "0")


def last_cpu():
    """The last CPU that is online and can be switched, and the file that switches it."""
    cpus = sorted(os.sched_getaffinity(0))
    path = "/sys/devices/system/cpu/cpu%d/online" % cpus[-1]
    if len(cpus) < 2:
        raise opdtest.Skip("one CPU only: none can go offline")
    if not os.access(path, os.W_OK):
        raise opdtest.Skip("%s is not there or cannot be written: the CPU cannot go offline" % path)
    return cpus[-1], path


def row(box, cpu):
    rows = [r for r in box.status()["cpus"] if r["cpu"] == cpu]
    require(len(rows) == 1, "%d rows of CPU %d" % (len(rows), cpu))
    return rows[0]


def await_row(box, cpu, condition, text):
    opdtest.wait_until(lambda: condition(row(box, cpu)), WAIT_SECONDS, text)
    return row(box, cpu)


def take_away(box, cpu, path, times):
    before = row(box, cpu)
    require(before["online"] is True, "CPU %d is offline before it goes: %s" % (cpu, before))
    try:
        switch(path, False)
    except OSError as error:
        if times > 1:
            raise opdtest.Failure("CPU %d does not go offline again: %s" % (cpu, error)) from error
        raise opdtest.Skip("CPU %d does not go offline: %s" % (cpu, error)) from error
    away = await_row(box, cpu, lambda r: not r["online"], "CPU %d is offline, opd says online" % cpu)
    require(away["online"] is False and away["received"] >= before["received"],
            "samples of CPU %d were forgotten: %s, %s" % (cpu, before, away))
    require(box.log_text().count("CPU %d went offline" % cpu) == times, "the log does not say that CPU %d went" % cpu)
    return away


def bring_back(box, cpu, path, times, away):
    others = sum(r["received"] for r in box.status()["cpus"])
    opdtest.wait_until(lambda: sum(r["received"] for r in box.status()["cpus"]) > others + MORE_SAMPLES, WAIT_SECONDS,
                       "no samples of the other CPUs while CPU %d is offline" % cpu)
    require(row(box, cpu)["received"] == away["received"], "samples of a CPU that is offline")
    switch(path, True)
    back = await_row(box, cpu, lambda r: r["online"], "CPU %d is online, opd says offline" % cpu)
    require(back["online"] is True, "online is %r" % back["online"])
    require(box.log_text().count("CPU %d came online" % cpu) == times, "the log does not say that CPU %d came" % cpu)
    box.start(os.path.join(box.dir, "busy-app"), "busy", BUSY_SECONDS * 1000, cpu)
    more = await_row(box, cpu, lambda r: r["received"] > away["received"] + MORE_SAMPLES,
                     "no samples of CPU %d after its return" % cpu)
    print("round %d: CPU %d had %d samples when it went, %d after its return" % (times, cpu, away["received"], more["received"]))


def all_rounds(box, cpu, path):
    try:
        for times in range(1, ROUNDS + 1):
            bring_back(box, cpu, path, times, take_away(box, cpu, path, times))
            require(box.daemon.poll() is None, "opd ended with %s" % box.daemon.returncode)
    finally:
        switch(path, True)


def blink(box, cpu, path, times):
    """It is back before opd has looked: the kernel has taken its events off all the same."""
    before = row(box, cpu)
    try:
        switch(path, False)
    finally:
        switch(path, True)
    opdtest.wait_until(lambda: box.log_text().count("CPU %d came online" % cpu) == times, WAIT_SECONDS,
                       "nobody saw that CPU %d went and came" % cpu)
    require(box.log_text().count("CPU %d went offline" % cpu) == times, "the log does not say that CPU %d went" % cpu)
    box.start(os.path.join(box.dir, "busy-app"), "busy", BUSY_SECONDS * 1000, cpu)
    more = await_row(box, cpu, lambda r: r["received"] > before["received"] + MORE_SAMPLES,
                     "no samples of CPU %d after its return" % cpu)
    print("a blink: CPU %d had %d samples before, %d after its return" % (cpu, before["received"], more["received"]))


def check_sums(status):
    """What the CPUs have is what the events have, the times before a CPU went included."""
    for key in ("received", "lost_kernel"):
        of_cpus, of_events = (sum(r[key] for r in status[rows]) for rows in ("cpus", "events"))
        require(of_cpus == of_events, "%s: %d of the CPUs, %d of the events" % (key, of_cpus, of_events))


@contextlib.contextmanager
def standing_still(box):
    """opd does nothing meanwhile."""
    box.daemon.send_signal(signal.SIGSTOP)
    try:
        opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), WAIT_SECONDS, "opd does not stop")
        yield
    finally:
        box.daemon.send_signal(signal.SIGCONT)


class FaultRounds:
    """Each time sampling is started, the CPU goes with its rings full, and comes back, and sampling
    is stopped.
    """

    def __init__(self, box, cpu, path):
        self.box, self.cpu, self.path = box, cpu, path
        self.app, self.nr, self.not_sampled = box.copy_work("fault-app"), 0, 0
        self.seen = {word: box.log_text().count(self.line(word)) for word in ("went offline", "came online")}

    def line(self, word):
        return "CPU %d %s" % (self.cpu, word)

    def await_log(self, word):
        self.seen[word] += 1
        opdtest.wait_until(lambda: self.box.log_text().count(self.line(word)) == self.seen[word], WAIT_SECONDS,
                           "the log does not say once that CPU %d %s" % (self.cpu, word))

    def fault(self):
        self.box.good("taskset", "-c", self.cpu, self.app, "faults", FAULTS)

    def come(self):
        """The first oracle has no event on the CPU any more; opd gets its own there after the
        second one.
        """
        switch(self.path, True)
        return opdtest.FaultOracle(self.box.fault_oracle)

    def go_and_come(self, blink):
        with standing_still(self.box):
            self.fault()
            switch(self.path, False)
            oracle = self.come() if blink else None
        self.await_log("went offline")
        if not blink:
            with standing_still(self.box):
                oracle = self.come()
        self.await_log("came online")
        return oracle

    def one(self, blink):
        oracle = opdtest.FaultOracle(self.box.fault_oracle)
        self.box.opcontrol("--start")
        another = self.go_and_come(blink)
        self.fault()
        self.box.opcontrol("--stop")
        self.not_sampled += oracle.not_sampled() + another.not_sampled()
        self.nr += 1
        self.check()

    def check(self):
        status = self.box.check_ledger(not_sampled=self.not_sampled)
        check_sums(status)
        event, faults = status["events"][0], 2 * FAULTS * self.nr
        found = self.box.samples_in(self.app, "touch_pages")
        print("%d faults, %d samples of them; taken %d, received %d, outstanding %d of %d that the kernel did not sample" % (
            faults, found, event["taken"], event["received"], event["outstanding"], self.not_sampled))
        require(event["lost_kernel"] == 0, "the rings were too small: lost_kernel %d" % event["lost_kernel"])
        nobodys = sum(f.total for f in self.box.files() if f.name.image[1] == "/no-process")
        require(faults - self.not_sampled <= found <= faults,
                "%d samples in touch_pages, not %d; %d of no process, which another profiler "
                "in a pid name space of its own would explain (doc/ring.md)" % (found, faults, nobodys))


def all_fault_rounds(box, cpu, path):
    box.configure(RingSize=FAULT_RING)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel", start=False)
    box.start("sh", "-c", FAULT_LOAD % box.copy_work("load-app"))
    rounds = FaultRounds(box, cpu, path)
    try:
        for blink in (False, True):
            rounds.one(blink)
    finally:
        switch(path, True)
    box.check_agreement()
    box.shutdown()


@contextlib.contextmanager
def going_and_coming(path):
    """As fast as it can. Gives a list that has a line for each time that it came back."""
    end, back, errors = threading.Event(), [], []

    def go_and_come():
        try:
            while not end.is_set():
                try:
                    switch(path, False)
                finally:
                    switch(path, True)
                back.append(True)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=go_and_come)
    thread.start()
    try:
        yield back
    finally:
        end.set()
        thread.join()
    if errors:
        raise errors[0]


def came_during_start(box, path):
    """Starts opd while the CPU goes and comes. False: opd was faster than the CPU, and has ended."""
    with going_and_coming(path) as back:
        opdtest.wait_until(lambda: back, WAIT_SECONDS, "the CPU does not go and come")
        before = len(back)
        box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel")
        came = len(back) > before
    if not came:
        box.shutdown()
    return came


def starts_meanwhile(box, cpu, path):
    """A CPU that goes while opd opens its events is one that is offline, and is sampled when it is
    back.
    """
    for _ in range(NR_STARTS):
        opdtest.wait_until(lambda: came_during_start(box, path), WAIT_SECONDS, "CPU %d never comes back while opd starts" % cpu)
        box.start(os.path.join(box.dir, "busy-app"), "busy", BUSY_SECONDS * 1000, cpu)
        await_row(box, cpu, lambda r: r["online"] and r["received"] > MORE_SAMPLES,
                  "no samples of CPU %d, which came and went at the start" % cpu)
        box.opcontrol("--stop")
        check_sums(box.check_ledger())
        box.shutdown()
        box.opcontrol("--reset")


def test(box):
    cpu, path = last_cpu()
    box.start_daemon("--event=TIMER:1000000", "--separate=library,kernel")
    box.busy_cpus(BUSY_SECONDS)
    await_row(box, cpu, lambda r: r["received"] > MORE_SAMPLES, "no samples of CPU %d" % cpu)
    all_rounds(box, cpu, path)
    for times in range(ROUNDS + 1, ROUNDS + 3):
        blink(box, cpu, path, times)
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_sums(status)
    box.check_agreement()
    event = status["events"][0]
    print("received %d, stored %d, lost_kernel %d" % (event["received"], event["stored"], event["lost_kernel"]))
    box.shutdown()
    box.opcontrol("--reset")
    starts_meanwhile(box, cpu, path)
    all_fault_rounds(box, cpu, path)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
