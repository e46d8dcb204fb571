#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
JIT code has the same names in stacks as in flat reports: of maps that come before, while and after
the code ran, and of jitdumps. The daemon and operf name them, also in a saved session and in an
archive. A process without a map has no names.
"""
import collections
import os
import time

import opdtest
import operftest
from opdtest import require
from test_jit import ALPHA, BETA, clean, jit_functions, run_part, work

MS = 1500
PERIOD_NS = 997000
POINTS = 15.0
PUT_OFF_SECONDS = 30  # no verdict: the part runs again
NO_NAME = "(no symbols)"
VDSO = 0.1  # of the stacks end in it, which has no names either, at most


def leaves(box, app, *words):
    """{innermost function of the program: stacks} of an application, without frames of the kernel.
    Where another test has a program of that name, reports name the directory, too.
    """
    found = collections.Counter()
    for line in box.opreport("--format=folded", *words).splitlines():
        path, count = line.rsplit(" ", 1)
        frames = [frame for frame in path.split(";") if not frame.endswith("_[k]")]
        if app.endswith("/" + frames[0]):
            found[frames[-1]] += int(count)
    return found


def has_unnamed(found):
    return found[NO_NAME] > VDSO * sum(found.values())


def check_shares(what, found, spent, names):
    of_jit = [found[name] for name in names]
    print("%s: %s, %s ms spent" % (what, dict(found), [n // 1000000 for n in spent]))
    require(not has_unnamed(found), "%s: %d stacks end in code without a name" % (what, found[NO_NAME]))
    require(sum(of_jit) > 0.5 * sum(found.values()), "%s: few stacks end in JIT code: %s" % (what, found))
    for nr, ns in zip(of_jit, spent):
        got, wanted = 100.0 * nr / sum(of_jit), 100.0 * ns / sum(spent)
        require(abs(got - wanted) < POINTS, "%s: %.1f %% of the stacks, not %.1f %%" % (what, got, wanted))


def unnamed(box, works):
    """The applications whose stacks wait for row tables, or have no names yet."""
    box.opcontrol("--dump")
    found = {app: leaves(box, app) for app, _ in works}
    return [app for app in found if jit_functions(box, app, live=True)[1] or not found[app] or has_unnamed(found[app])]


def await_names(box, works):
    """Where opd had no time for a look, names may never come: run_part then runs all of it again."""
    begin = time.monotonic()
    while left := unnamed(box, works):
        status = box.status()
        limit = PUT_OFF_SECONDS if status["jit_put_off"] + status["looks_unanswered"] else opdtest.HANG_SECONDS
        require(time.monotonic() - begin < limit, "names of JIT code do not come: %s; %s" % (
            {app: (jit_functions(box, app, live=True), dict(leaves(box, app))) for app in left},
            {name: number for name, number in status.items() if name.startswith("jit_") and number}))
        time.sleep(0.5)


def daemon(box):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--stacks=199")
    works = {kind: work(box, kind, *more, ms=MS) for kind, *more in (
        ("map",), ("late",), ("after",), ("grow",), ("dump", box.dir))}
    silent = work(box, "silent", ms=MS)
    await_names(box, works.values())
    box.opcontrol("--dump")
    for kind, (app, spent) in works.items():
        check_shares(kind, leaves(box, app), spent, (ALPHA, BETA) if kind != "dump" else ("jit_alpha", "jit_beta"))
    opdtest.wait_until(lambda: box.opcontrol("--dump") is not None and has_unnamed(leaves(box, silent[0])), opdtest.HANG_SECONDS,
                       "the stacks of a process without a map do not come")
    found = leaves(box, silent[0])
    require(not set(found) & {ALPHA, BETA}, "a process without a map: %s" % found)
    status = box.status()
    require(not status["jit_refused_waiting"], "%d waits were refused" % status["jit_refused_waiting"])
    app, spent = works["after"]
    box.opcontrol("--save=saved")
    check_shares("saved", leaves(box, app, "session:saved"), spent, (ALPHA, BETA))
    archive = os.path.join(box.dir, "archive")
    box.good(os.path.join(box.bin, "oparchive"), "-o", archive, "session:saved")
    check_shares("archive", leaves(box, app, "archive:" + archive, "session:saved"), spent, (ALPHA, BETA))
    box.shutdown()


def operf(box):
    home = operftest.Home(box)
    program = box.copy_work("jit_operf", "jit_work")
    for kind in "map", "after":
        result = home.profile("--stacks", program, kind, MS)
        spent = [int(n) for n in result.out.split()]
        found = collections.Counter()
        for line in home.opreport("--format=folded").splitlines():
            path, count = line.rsplit(" ", 1)
            found[[f for f in path.split(";") if not f.endswith("_[k]")][-1]] += int(count)
        check_shares("operf " + kind, found, spent, (ALPHA, BETA))
    # The map comes when the child ends. operf forgets the child long before its own end.
    result = home.profile("sh", "-c", '"$1" after %d && sleep 4' % MS, "sh", program)
    spent = [int(n) for n in result.out.split()]
    lines = home.opreport("-l").splitlines()
    found = collections.Counter({name: sum(int(line.split()[0]) for line in lines if line.endswith(" " + name))
                                 for name in (ALPHA, BETA)})
    require(all(found.values()), "operf of a child: %s" % "\n".join(lines))
    check_shares("operf of a child", found, spent, (ALPHA, BETA))


def test(box):
    run_part(box, daemon)
    operf(box)


if __name__ == "__main__":
    try:
        opdtest.run(test, larger_rings=True)
    finally:
        clean()
