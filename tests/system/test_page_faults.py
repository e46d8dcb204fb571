#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Software event of period 1: the count of the event descriptors is received + lost_kernel to the last
one, also after an overflow.

Linux 6.18 counts a few page faults in a million and takes no sample of them. An oracle with
page-fault events of its own runs beside, so
that the test knows how many those were, and demands every other one.
"""
import os
import signal
import time

import opdtest
from opdtest import require

QUIET_FAULTS = 20000
FLOOD_FAULTS = 100000
VSYSCALLS = 2000
VSYSCALL_TIME = 0x400  # in its page
STOP_SECONDS = 5
BIG_RING = "4M"
PERF_COUNT_SW_PAGE_FAULTS = 2
PERF_SAMPLE_IDENTIFIER = 1 << 16


class Faults:
    """One daemon with its page faults; what the kernel did not sample adds up as its ledger does.
    """

    def __init__(self, box, path):
        self.box = box
        self.path = path
        self.not_sampled = 0

    def count(self, what, work):
        """Runs work(before) while sampling; the event's row of the ledger before and after."""
        before = self.box.status()["events"][0]
        oracle = opdtest.FaultOracle(self.box.fault_oracle)
        self.box.opcontrol("--start")
        work()
        self.box.opcontrol("--stop")
        self.not_sampled += oracle.not_sampled()
        after = self.box.check_ledger(not_sampled=self.not_sampled)["events"][0]
        print("%s: taken %d, received %d, lost_kernel %d, outstanding %d" %
              (what, after["taken"], after["received"], after["lost_kernel"], after["outstanding"]))
        return before, after

    def require_samples(self, faults):
        found = self.box.samples_in(self.path, "touch_pages")
        require(faults - self.not_sampled <= found <= faults, "%d samples in touch_pages, not %d" % (found, faults))


def check_quiet(faults):
    """Faults that the rings hold, however fast they come: each of them is a sample, at the
    instruction that caused it.
    """
    before, after = faults.count("quiet", lambda: faults.box.good(faults.path, "faults", QUIET_FAULTS))
    require(after["lost_kernel"] == before["lost_kernel"], "lost_kernel rose to %d" % after["lost_kernel"])
    require(after["taken"] - before["taken"] >= QUIET_FAULTS, "only %d faults taken" % after["taken"])
    faults.require_samples(QUIET_FAULTS)


def check_beside_another(faults):
    """Another profiler with the same event, opened later: each has its own samples all the same."""
    others = [opdtest.open_event(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_IDENTIFIER, cpu, False)
              for cpu in os.sched_getaffinity(0)]
    require(None not in others, "cannot open an event of another profiler")
    before, after = faults.count("beside another", lambda: faults.box.good(faults.path, "faults", QUIET_FAULTS))
    for descriptor in others:
        os.close(descriptor)
    require(after["lost_undecodable"] == before["lost_undecodable"], "%(lost_undecodable)d samples undecodable" % after)
    faults.require_samples(2 * QUIET_FAULTS)


def check_vsyscall(faults):
    """A call of the vsyscall page is a page fault there, which the kernel answers as if the call
    had been made.
    """
    result = faults.box.run(faults.path, "vsyscall", 1)
    if result.rc != 0:
        print("SKIP of vsyscall: this kernel or machine has none (exit code %d)" % result.rc)
        return
    before = sum(f.total for f in faults.box.files() if f.name.image[1].startswith("[vsyscall]"))
    faults.count("vsyscall", lambda: faults.box.good(faults.path, "vsyscall", VSYSCALLS))
    found = {f.name.image: f.keys for f in faults.box.files()
             if f.name.app[1] == faults.path and f.name.image[1].startswith("[vsyscall]")}
    print("vsyscall: %s" % found)
    require(before == 0 and len(found) == 1, "not one image of the vsyscall page: %s" % found)
    (image, keys), = found.items()
    require(image == ("anon", "[vsyscall] (range:0x0-0x1000)"), "the vsyscall page is %s" % (image,))
    require(set(keys) == {VSYSCALL_TIME}, "samples at %s, not where time() is" % keys)
    require(VSYSCALLS - faults.not_sampled <= keys[VSYSCALL_TIME] <= VSYSCALLS, "%s samples of %d calls" % (keys, VSYSCALLS))


def flood(faults):
    faults.box.daemon.send_signal(signal.SIGSTOP)
    end = time.monotonic() + STOP_SECONDS
    faults.box.good(faults.path, "faults", FLOOD_FAULTS)
    time.sleep(max(0.0, end - time.monotonic()))
    faults.box.daemon.send_signal(signal.SIGCONT)
    faults.box.good(faults.path, "faults", 1000)
    faults.box.opcontrol("--dump")


def check_flood(faults):
    """The daemon is stopped while the rings overflow; what was lost is known to the last one."""
    before, after = faults.count("flood", lambda: flood(faults))
    require(after["lost_kernel"] > before["lost_kernel"], "the rings did not overflow")
    require(after["taken"] - before["taken"] >= FLOOD_FAULTS + 1000, "only %d faults taken" % (after["taken"] - before["taken"]))


def test(box):
    path = box.copy_work("fault-app")
    box.configure(RingSize=BIG_RING)
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    faults = Faults(box, path)
    check_quiet(faults)
    check_beside_another(faults)
    check_vsyscall(faults)
    box.shutdown()
    box.opcontrol("--reset")
    box.configure()
    box.start_daemon()
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    faults = Faults(box, path)
    check_flood(faults)
    check_flood(faults)
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
