#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opd lives and counts with each option of opcontrol --setup, alone and in all pairs, while programs
begin and end. Where a CPU gets idle, context switches give stacks without a process;
test_stack_samples makes such stacks on any machine.
"""
import itertools
import os
import re

import opdtest
from opdtest import require

ENOUGH = 30
INERT = ("--kernel-range=1000,2000", "--buffer-size=100", "--buffer-watershed=50", "--cpu-buffer-size=7", "--xen=/no/such",
         "--active-domains=1,2", "--s390hwsampbufsize=4")
SWITCHES = "--event=context-switches:15"
STACKS = ("--stacks=on", "--stacks=off", "--stacks=event", "--stacks=997:1K")


def values_of(box, program):
    """For each option its values, the preset first."""
    return {"stacks": STACKS,
            "event": ("--event=TIMER:497000", "--event=page-faults:15",
                      "--event=TIMER:497000 --event=page-faults:16", SWITCHES),
            "image": ("--image=all", "--image=" + program, "--image=no-vmlinux", "--image=%s/never-run" % box.dir),
            "separate": ("--separate=none", "--separate=library", "--separate=kernel,process-name,user",
                         "--separate=cgroup,thread,cpu", "--separate=all"),
            "callgraph": ("--callgraph=0", "--callgraph=5"),
            "vmlinux": ("--no-vmlinux", "--vmlinux=" + program),
            "inert": ("--init", " ".join(INERT))}


def pairs_of(setup):
    return set(itertools.combinations(sorted(setup.items()), 2))


def setups_of(values):
    """Each value beside the presets; then setups until each pair was in one."""
    preset = {option: words[0] for option, words in values.items()}
    setups = [{**preset, option: word} for option, words in values.items() for word in words[1:]]
    setups += [{**preset, "stacks": "--stacks=event", "event": SWITCHES, "image": word} for word in values["image"]]
    left = set().union(*(pairs_of(dict(zip(values, words))) for words in itertools.product(*values.values())))
    for setup in setups:
        left -= pairs_of(setup)
    while left:
        setup = dict(min(left))
        for option, words in sorted(values.items()):
            if option not in setup:
                found = [(len(pairs_of({**setup, option: word}) & left), word) for word in words]
                setup[option] = max(found, key=lambda pair: pair[0])[1]
        left -= pairs_of(setup)
        setups.append(setup)
    return setups


def has_counted(box, with_stacks, enough):
    events = [event for event in box.status()["events"] if event["role"] in (0, opdtest.STACKS)]
    wanted = [event for event in events if event["role"] == 0 or with_stacks]
    return wanted and all(event["received"] >= enough for event in wanted)


def run_one(box, program, setup):
    words = [word for value in setup.values() for word in value.split(" ") if word != "--init"]
    print(" ".join(words), flush=True)
    box.start_daemon(*words)
    work = "for i in 1 2 3; do %s spin 10; %s library 10; (ls / | sort) >/dev/null; done" % (program, box.work)
    if setup["event"] == SWITCHES:
        work += "; for i in 1 2 3 4 5 6 7 8; do sleep 0.002 & sleep 0.003; done"
    with_stacks = setup["stacks"] not in ("--stacks=off", "--stacks=event")
    enough = 4 * ENOUGH if setup["event"] == SWITCHES else ENOUGH
    box.work_until(lambda: has_counted(box, with_stacks, enough), "no samples with %s" % words, "sh", "-c", work)
    box.require_alive()
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    status = box.check_ledger()
    require(status["state"] == "paused", "%s: %s" % (words, status["state"]))
    box.opcontrol("--reset")
    box.shutdown()


def test(box):
    program = box.copy_work("wanted-app")
    values = values_of(box, program)
    usage = box.good(os.path.join(box.bin, "opcontrol"), "--help")
    known = re.findall(r"--([a-z0-9-]+)", " ".join(word for words in values.values() for word in words))
    listed = re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", usage, re.M)
    others = ("init start-daemon start dump stop shutdown reset save deinit list-events session-dir setup apply status json config "
                  "verbose help usage version completion unpack history format").split()
    untried = set(listed) - set(known) - set(others)
    require(not untried, "an option of --setup is not tried: %s" % untried)
    require(len(listed) > 20, "--help: %s" % usage)
    for setup in setups_of(values):
        run_one(box, program, setup)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
