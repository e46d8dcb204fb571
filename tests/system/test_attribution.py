#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples go to the program that caused them: short-lived ones, forks without exec, exec, deleted
files, and what ran before opd.
"""
import os
import subprocess
import time

import opdtest
from opdtest import require

PERIOD_NS = 100000
NR_STORM = 200
EARLY_S = 0.5


def children_cpu_s():
    times = os.times()
    return times.children_user + times.children_system


def totals(box):
    """{application: samples}, {(application, image): samples}."""
    apps, images = {}, {}
    for sample_file in box.files():
        app, image = sample_file.name.app[1], sample_file.name.image[1]
        apps[app] = apps.get(app, 0) + sample_file.total
        images[app, image] = images.get((app, image), 0) + sample_file.total
    return apps, images


def check_share(apps, path, cpu_s, what):
    """The application has at least four fifths of the CPU time that it spent, and not more than all
    of it.
    """
    expected = cpu_s * 1e9 / PERIOD_NS
    found = apps.get(path, 0)
    print("%s: %d samples of about %d" % (what, found, expected))
    require(found >= 0.8 * expected, "%s: %d samples, about %d expected" % (what, found, expected))
    require(found <= 1.25 * expected + 50, "%s: %d samples, about %d expected" % (what, found, expected))


def timed(box, *command):
    """Runs a program; the CPU seconds that it and its children took."""
    before = children_cpu_s()
    box.good(*command)
    return children_cpu_s() - before


def storm(box, path):
    """Many processes that live a few milliseconds."""
    before = children_cpu_s()
    for _ in range(NR_STORM):
        subprocess.run([path, "spin", "4"], env=box.env, check=True)
    return children_cpu_s() - before


def deleted(box, path):
    """A program whose file is removed while it runs."""
    before = children_cpu_s()
    child = subprocess.Popen([path, "spin", "500"], env=box.env)
    time.sleep(0.1)
    os.unlink(path)
    require(child.wait() == 0, "the deleted program failed")
    return children_cpu_s() - before


def test(box):
    names = ("early", "storm", "forks", "exec-old", "exec-new", "gone", "kernel")
    path = {name: box.copy_work(name + "-app") for name in names}
    early = box.busy_until_ended(path["early"])
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.good(path["exec-old"], "exec", 400, path["exec-new"], "spin", 400)
    spent = {"storm": storm(box, path["storm"]), "forks": timed(box, path["forks"], "forks", 40, 20),
             "gone": deleted(box, path["gone"]),
             "kernel": timed(box, path["kernel"], "kernel", 500)}
    opdtest.await_cpu_seconds(early.pid, EARLY_S)
    box.end_busy(early)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    apps, images = totals(box)
    for name, cpu_s in spent.items():
        check_share(apps, path[name], cpu_s, name)
    check_share(apps, path["exec-old"], 0.4, "exec, before")
    check_share(apps, path["exec-new"], 0.4, "exec, after")
    require(images.get((path["early"], path["early"]), 0) > 0.8 * EARLY_S * 1e9 / PERIOD_NS,
            "what ran before opd has %d samples" % apps.get(path["early"], 0))
    own = images.get((path["kernel"], path["kernel"]), 0)
    kernel = sum(f.total for f in box.files() if f.name.app[1] == path["kernel"] and f.header.is_kernel)
    print("kernel work: %d kernel samples, %d of its own" % (kernel, own))
    require(kernel > 10 * own, "the work in the kernel has %d kernel samples and %d of its own" % (kernel, own))
    event = status["events"][0]
    print("unattributed %d of %d" % (event["unattributed"], event["stored"]))
    if opdtest.sees_all_processes():
        require(event["unattributed"] * 100 <= event["stored"],
                "%d of %d samples unattributed" % (event["unattributed"], event["stored"]))
    shown = box.opreport("-n", "-f")
    for name in names:
        require(path[name] in shown, "opreport does not show %s" % path[name])
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
