#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Deep stacks: the truth is the depth of the program's own recursion (deep.c). A stack that is larger
than StackBytes= is complete up to 60 KiB, in the main thread and in others, also behind pages that
are not present; of a larger one, one sample of 8 has 60 KiB, the others StackBytes=, and the status
says by how much the copies are too short. A stack whose size is unknown has StackBytes= as before.
Each deep stack is in one counter, and each sample is taken: the ledger adds up. Without a budget,
without BPF, and with a ring that is too small, opd takes stacks as before.
"""
import os

import opdtest
from opdtest import require
from test_stack_shares import check_ledger, functions_of, stacks_of

import elfsyms

KIB = 1024
NEEDED = 0.98  # a swap of rings, or a sample in the first steps of a program, may cost one of 50
MS = "3000"
PARTS = ("copied", "passed", "denied", "unread", "lost")


def deep_of(box):
    status = box.status()
    return {key[5:]: value for key, value in status.items() if key.startswith("deep_")}, status


def start(box, env=None, **keys):
    if "OPD_WAITS" not in box.env:
        raise opdtest.Skip("opd was built without clang or libbpf")
    box.configure(Stacks="yes", **keys)
    box.start_daemon("--event=default", env=env)


def run(box, where, nr_kib, name):
    """Runs the program. How many stacks below leaf() are whole, and how many could be: those that had
    no room in the budget or the ring, when opd came late, and those that were not joined, are known.
    """
    path = box.copy_work(name, "deep")
    before, _ = deep_of(box)
    nr_frames = int(box.good(path, where, str(nr_kib * KIB), MS))
    box.opcontrol("--dump")
    opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")
    box.opcontrol("--dump")
    symbols = elfsyms.symbol_ranges(path, ("_start", "main", "run", "leaf", "descend", "above_hole", "leave_hole",
                                          "on_signal"))
    whole = total = 0
    for (end, frames), nr in stacks_of(box.session, name).items():
        names = functions_of(frames, symbols)
        if "leaf" not in names:
            continue
        total += nr
        nr_found = names.count("above_hole") if where == "hole" else names.count("descend")
        whole += nr if end == "complete" and nr_found == nr_frames else 0
    after, _ = deep_of(box)
    more = {key: after[key] - before[key] for key in after}
    absent = sum(more[key] for key in ("denied", "unread", "lost")) + max(0, more["copied"] - more["joined"])
    print("%s: %d of %d stacks are whole, %d are absent" % (name, whole, total, absent))
    require(total >= 50, "%s has %d samples" % (name, total))
    return whole, total - absent


def check_sums(box):
    deep, status = deep_of(box)
    require(deep["stacks"] == sum(deep[part] for part in PARTS), "deep stacks: %s" % deep)
    check_ledger(status)
    box.check_ledger(with_files=False)
    return deep, status


def test_sizes(box):
    start(box, StackRate="49")
    if box.status()["no_deep"]:
        raise opdtest.Skip("this kernel has no deep stacks: " + box.status()["no_deep"])
    run(box, "main", 4, "warm")  # the tables of libc are made
    for where, sizes in (("main", (4, 20, 50)), ("thread", (4, 20, 50)), ("hole", (2, 30))):
        for nr_kib in sizes:
            whole, total = run(box, where, nr_kib, "%s%d" % (where, nr_kib))
            require(whole and whole >= NEEDED * total, "%s, %d KiB: %d of %d are whole" % (where, nr_kib, whole, total))
    deep, _ = check_sums(box)
    require(deep["joined"] >= NEEDED * deep["copied"], "joined: %s" % deep)


def test_too_large(box):
    """One of 8 has 60 KiB; what is missing of the others is known."""
    start(box)
    whole, _ = run(box, "main", 200, "large")
    require(not whole, "200 KiB are more than a copy can have")
    deep, _ = check_sums(box)
    symbols = elfsyms.symbol_ranges(os.path.join(box.dir, "large"), ("leaf", "descend"))
    nr_small = nr_large = 0
    for (end, frames), nr in stacks_of(box.session, "large").items():
        nr_kib = functions_of(frames, symbols).count("descend")  # of a frame of 1 KiB and a little
        nr_small += nr if end == "cut" and nr_kib <= 8 else 0
        nr_large += nr if end == "cut" and 50 <= nr_kib <= 60 else 0
    total = nr_small + nr_large
    require(nr_large and nr_large < total / 8 + 5 * (total * 7 / 64) ** 0.5, "%d of %d stacks are large" % (nr_large, total))
    # other programs of the host are in the counters, too
    missing = 205 * total - 8 * nr_small - 60 * nr_large
    require(deep["cut"] >= NEEDED * total, "%d stacks are cut, and %d by the status" % (total, deep["cut"]))
    require(deep["cut_bytes"] >= 0.9 * missing * KIB, "copies are too short by %d KiB: %s" % (missing, deep))
    require(deep["cut_most_bytes"] >= 190 * KIB, "at most: %s" % deep)
    require("KiB on average" in box.opcontrol("--status"), "the status does not say by how much")


def test_other_stack(box):
    """Nobody knows how large a stack is that the program has made: it has StackBytes=, and is cut."""
    start(box)
    whole, total = run(box, "other", 50, "other")
    require(not whole, "%d of %d are whole" % (whole, total))
    check_sums(box)


def test_small_ring(box):
    """What has no room, in the budget or in the ring, is counted, and costs no sample."""
    start(box, DeepStackBudget="64K", StackRingMaxUse="256K", Waits="no")
    status = box.status()
    require(status["no_waits"] == "Waits=no" and not status["no_deep"], "waits: %(no_waits)s, deep: %(no_deep)s" % status)
    whole, total = run(box, "main", 50, "many")
    deep, _ = check_sums(box)
    require(deep["denied"] + deep["lost"] > 20, "%d of %d are whole: %s" % (whole, total, deep))


def test_without(box):
    """Each reason is said, and opd takes stacks all the same."""
    missing = os.path.join(box.dir, "missing")
    for keys, env, why in (({"Bpf": "no"}, {}, "Bpf=no"), ({"DeepStackBudget": "0"}, {}, "DeepStackBudget=0"),
                           ({"StackBytes": "0"}, {}, "no stacks are copied"), ({}, {"OPD_WAITS": missing}, missing)):
        start(box, env=env, **keys)
        require(why in box.status()["no_deep"], "%s: %s" % (why, box.status()["no_deep"]))
        whole, total = run(box, "main", 20, "without")
        require(not whole, "%d of %d are whole" % (whole, total))
        deep, _ = deep_of(box)
        require(not any(deep.values()), "deep stacks: %s" % deep)
        box.shutdown()
        box.opcontrol("--reset")


def test(box):
    for case in (test_sizes, test_too_large, test_other_stack, test_small_ring):
        case(box)
        box.shutdown()
        box.opcontrol("--reset")
    test_without(box)


if __name__ == "__main__":
    opdtest.run(test)
