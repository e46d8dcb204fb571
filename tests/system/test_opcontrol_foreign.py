#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol and the descriptors of its caller, and things that the owner of the session directory has
made for root to fall over.
"""
import os
import shutil
import subprocess

import opdtest
from opcontroltest import opcontrol, stub
from opdtest import require

STUB_FDS = "echo \"$(ls -l /proc/$$/fd | grep -c /callers-own) of the caller's\" >&2; exit 1\n"


def no_foreign_descriptors(box):
    """The daemon does not inherit the caller's open files: it would keep a lock, or keep a pipe
    from ending.
    """
    with open(os.path.join(box.dir, "callers-own"), "w", encoding="ascii") as stream:
        done = subprocess.run([opcontrol(box), "--start-daemon"], env={**box.env, **stub(box, STUB_FDS)}, cwd=box.dir,
                              pass_fds=[stream.fileno()], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=opdtest.CALL_SECONDS, check=False)
    require(done.stderr == "opcontrol: opd does not start: 0 of the caller's\n", done.stderr)


def pipe_as_log(box, path):
    """What nobody reads would hold the daemon up."""
    if os.path.exists(path):
        os.unlink(path)
    for make in (os.mkfifo, lambda pipe: os.symlink("/dev/null", pipe)):
        make(path)
        line = box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000", env=stub(box, "exit 3\n"))
        require("cannot open the log %s: " % path in line, line)
        os.unlink(path)


def foreign_things(box):
    """What the owner of the session directory has put into it leads root nowhere else, and does not
    make him wait; no daemon runs.
    """
    victim = os.path.join(box.dir, "victim")
    below = os.path.join(victim, "current", "{root}", "bin")
    os.makedirs(below)
    os.makedirs(os.path.join(victim, "{root}", "bin"))
    before = sorted(path for path, _, _ in os.walk(victim))
    samples, kept_samples = os.path.join(box.session, "samples"), os.path.join(box.dir, "kept")
    os.rename(samples, kept_samples)
    for make in (lambda: os.symlink(victim, samples), lambda: (os.unlink(samples), os.mkdir(samples),
                                                               os.symlink(victim, samples + "/current"))):
        make()
        for request in ("--reset", "--save=taken"):
            box.refused(opcontrol(box), request)
        box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000", env=stub(box, "echo opd: stub >&2; exit 3\n"))
        require(not os.path.exists(os.path.join(victim, "oprofiled.log")), "the log is where a link of the session directory leads")
        require(sorted(path for path, _, _ in os.walk(victim)) == before, "opcontrol follows a link of the session directory")
    os.unlink(samples + "/current")
    shutil.rmtree(samples)
    os.rename(kept_samples, samples)
    pipe_as_log(box, os.path.join(samples, "oprofiled.log"))
    for name in ("daemonrc", "lock"):
        path = os.path.join(box.session, name)
        if os.path.exists(path):
            os.unlink(path)
        os.mkfifo(path)
        box.run(opcontrol(box), "--status")
        if os.path.lexists(path):
            os.unlink(path)


def test(box):
    box.start_daemon("--event=TIMER:300000")
    box.shutdown()
    no_foreign_descriptors(box)
    foreign_things(box)


if __name__ == "__main__":
    opdtest.run(test)
