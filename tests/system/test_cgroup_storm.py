#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Separation by cgroup together with that by thread, and a storm of cgroups that live for a
millisecond: more than there are slots, and each has its samples.
usage: test_cgroup_storm.py [--long]: 10,000 cgroups instead of 4,500
"""
import os
import subprocess
import sys

import opdtest
from opdtest import Skip, require, wait_until
from test_cgroup import CPU_MS, PERIOD_NS, Groups, about, files_of, hierarchy, listed, spend, total

NR_CGROUPS = 10000 if "--long" in sys.argv[1:] else 4500
# 16 MiB of it are pages of 4,096 open files, 16 MiB are rings; freed memory is given back every few
# seconds
GROWTH_BYTES = 48 << 20


def check_threads(box, groups):
    """Each cgroup has the files of its threads, and the reports list cgroups and images without
    --merge.
    """
    app, one, two = box.copy_work("cgroup-app"), groups.make("one"), groups.make("two")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread,cpu,cgroup")
    for cgroup in (one, two, two):
        spend(box, groups, cgroup, app, CPU_MS)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    require(status["not_split"] == 0 and status["classes_merged"] == 0, "not everything is kept apart: %s" % status)
    for cgroup, processes in ((one, 1), (two, 2)):
        mine = [f for f in files_of(box, cgroup) if f.name.app[1] == app]
        found = {f.name.tgid for f in mine}
        require(len(found) == processes and None not in found, "%s has the processes %s" % (cgroup, found))
        about(total(mine), processes * CPU_MS, cgroup)
        ordinary = [f for f in box.files() if f.name.app[1] == app and f.name.tgid in found]
        require(total(ordinary) == total(mine) > 0,
                "%s has %d samples, the ordinary files %d" % (cgroup, total(mine), total(ordinary)))
    rows = listed(box)
    require(sum(rows.values()) == total(box.files()), "opreport --cgroups: %s" % rows)
    require(rows[two] == total(files_of(box, two)), "opreport --cgroups: %d of %s" % (rows[two], two))
    line = next(line for line in box.opreport("--images", "-n", "-f").splitlines() if app in line)
    require(int(line.split()[0]) == sum(f.total for f in box.files() if f.name.image[1] == app), "opreport --images: %s" % line)
    box.opcontrol("--reset")
    box.shutdown()


def check_storm(box, groups):
    directory = groups.top + groups.make("storm")
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon("--event=page-faults:1", "--separate=library,cgroup")
    # when opd is in a cgroup namespace, a cgroup that stays tells it the prefix of the paths
    groups.make("stays")
    before = box.status()["rss_bytes"]
    child = box.start(box.crowd, "cgroups", directory, NR_CGROUPS, stdout=subprocess.DEVNULL)
    require(child.wait() == 0, "crowd failed")
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger(not_sampled=oracle.not_sampled())
    top = os.path.join(box.session, "samples/current/cgroup", os.path.relpath(directory, groups.top))
    found = len(os.listdir(top))
    print("%d of %d cgroups have samples, %d slots were taken back, %d KiB grown" % (
        found, NR_CGROUPS, status["cgroup_slots_taken_back"], (status["rss_bytes"] - before) >> 10))
    lost = status["events"][0]["lost_kernel"]
    require(NR_CGROUPS - lost <= found <= NR_CGROUPS, "%d cgroups have samples, %d samples were lost" % (found, lost))
    require(status["cgroup_slots_taken_back"] > 0 and status["not_split"] == 0, "taken back: %d, not split: %d" % (
        status["cgroup_slots_taken_back"], status["not_split"]))
    wait_until(lambda: box.status()["rss_bytes"] - before < GROWTH_BYTES, opdtest.HANG_SECONDS,
               "opd grew by more than %d bytes and does not give them back" % GROWTH_BYTES)
    require("cgroup_slots_taken_back" in box.opcontrol("--status"), "--status does not show what was taken back")
    rows = listed(box)
    require(sum(rows.values()) == status["events"][0]["stored"],
            "the cgroups have %d samples, %d are stored" % (sum(rows.values()), status["events"][0]["stored"]))
    box.shutdown()


def test(box):
    top = hierarchy()
    if top is None or not os.access(os.path.join(top, "cgroup.procs"), os.W_OK):
        raise Skip("no cgroup file system is mounted that processes can be moved in")
    box.session = box.tmpfs("memory", "size=1g")  # ten directories for each cgroup: a disk with other work would hold opd up
    box.configure(MaxSampleFiles="0", RingSize="8M", SidebandSize="8M")
    groups = Groups(top, "opd-storm-%d" % os.getpid())
    try:
        check_threads(box, groups)
        check_storm(box, groups)
    finally:
        groups.close()


if __name__ == "__main__":
    opdtest.run(test)
