#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""--separate=cgroup: the ordinary files are complete, and each cgroup has its samples once more, in
files that every tool reads. Stacks are kept by cgroup in any case.
"""
import os
import re
import sys

import opdtest
from opdtest import Skip, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import reader  # noqa: E402

PERIOD_NS = 497000
CPU_MS = 500
ENDING = 0.05  # the share of its stacks at most for which a task ends
BRIEF_GROUPS, BRIEF_MS = 8, 40  # gone before anybody could look for them in the file system


def hierarchy():
    """The directory of the cgroups that perf reports: version 1's own controller, else version 2.
    """
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        for line in stream:
            fields, rest = line.split(" - ")
            kind, _, options = rest.split()
            if kind == "cgroup" and "perf_event" in options.split(","):
                return fields.split()[4]
            if kind == "cgroup2" and found is None:
                found = fields.split()[4]
    return found


class Groups:
    """cgroups of the test, removed at its end."""

    def __init__(self, top, name):
        self.top, self.name, self.made = top, name, []

    def make(self, *parts):
        path = self.top
        for part in (self.name,) + parts:
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path)
                self.made.append(path)
        return "/" + os.path.relpath(path, self.top)

    def move(self, pid, cgroup):
        with open(self.top + cgroup + "/cgroup.procs", "w", encoding="ascii") as stream:
            stream.write(str(pid))

    def remove(self, cgroup):
        os.rmdir(self.top + cgroup)
        self.made.remove(self.top + cgroup)

    def close(self):
        for path in reversed(self.made):
            try:
                os.rmdir(path)
            except OSError as error:
                print("%s: %s" % (path, error))


def spend(box, groups, cgroup, program, milliseconds):
    """A program that spends CPU time in a cgroup, from its exec on."""
    child = box.start("sh", "-c", 'echo $$ >"$1" && shift && exec "$@"', "sh", groups.top + cgroup + "/cgroup.procs",
                      program, "spin",
                      milliseconds)
    require(child.wait() == 0, "the program in %s failed" % cgroup)


def files_of(box, cgroup):
    name = "current/cgroup" + "".join("/" + ("{%s}" % part if re.fullmatch(r"\{.*\}", part) else part)
                                      for part in cgroup.split("/")[1:])
    return reader.read_session(box.session, session=name, strict=True)


def total(files, program=None):
    return sum(f.total for f in files if program is None or f.name.app[1] == program)


def about(found, milliseconds, what):
    expected = milliseconds * 1e6 / PERIOD_NS
    print("%s: %d samples of about %d" % (what, found, expected))
    require(0.8 * expected <= found <= 1.3 * expected + 50, "%s: %d samples, about %d expected" % (what, found, expected))


def all_of(box, cgroup, program, milliseconds):
    """The samples of a program that ran in one cgroup only: it has all of them there."""
    found, everywhere = total(files_of(box, cgroup), program), total(box.files(), program)
    about(found, milliseconds, cgroup)
    require(found == everywhere, "%s: %d samples of its program, which has %d" % (cgroup, found, everywhere))
    return found


def listed(box):
    """{cgroup: samples} as opreport --cgroups has it."""
    rows = {}
    for line in box.opreport("--cgroups", "-n").splitlines():
        count, _, name = line.split(None, 2)
        rows[name] = int(count)
    return rows


def check_reports(box, names, apps):
    rows = listed(box)
    require(sum(rows.values()) == total(box.files()), "opreport --cgroups does not add up: %s" % rows)
    for cgroup in names:
        require(rows.get(cgroup) == total(files_of(box, cgroup)), "opreport --cgroups: %s of %s" % (rows.get(cgroup), cgroup))
    out = box.opreport("cgroup:" + names[0], "-n", "-f")
    require(apps[names[0]] in out, "opreport cgroup:%s does not show its program: %s" % (names[0], out))
    shown = sum(int(line.split()[0]) for line in out.splitlines() if not line.startswith("\t"))
    below = sum(count for name, count in rows.items() if name == names[0] or name.startswith(names[0] + "/"))
    require(shown == below, "opreport cgroup:%s shows %d samples, it and what is below have %d" % (names[0], shown, below))
    nested_session = box.opreport("session:current/cgroup" + names[0], "-n")
    require(sum(int(line.split()[0]) for line in nested_session.splitlines() if not line.startswith("\t")) == rows[names[0]],
            "the cgroup's directory is not a session of its own: %s" % nested_session)
    require("spin_here" in box.opreport("-l", "cgroup:" + names[0]), "no symbols by cgroup")
    line = box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "cgroup:/no-such-group")
    require("--cgroups" in line, line)


def stacks_listed(box, *words):
    """{group: stacks} of opreport --stacks --by=cgroup."""
    report = box.opreport("--stacks", "--by=cgroup", "--depth=1", "-n", *words)
    return {name: int(count) for count, name in re.findall(r"^ *(\d+) +\S+ +\S+ +\d+  (\S.*)$", report, re.M)}


def check_stacks(box, groups):
    """Nobody asked for cgroups: one that is older than opd, one that is younger, and one that is
    gone.
    """
    old = groups.make("stacks-old")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=none", "--stacks=500")
    young, gone = groups.make("stacks-young"), groups.make("stacks-gone")
    apps = {cgroup: box.copy_work("stacks-app-%d" % i) for i, cgroup in enumerate((old, young, gone))}
    for cgroup, app in apps.items():
        spend(box, groups, cgroup, app, CPU_MS)
    groups.remove(gone)
    box.opcontrol("--stop")
    rows = stacks_listed(box)
    for cgroup, app in apps.items():
        its_rows = stacks_listed(box, app)
        unknown = its_rows.pop("/(unknown cgroup)", 0)  # of a task that ends, see doc/limits.md
        require(unknown <= ENDING * rows[cgroup], "%d stacks of %s have no cgroup" % (unknown, app))
        expected = CPU_MS / 2
        require(0.5 * expected < its_rows.get(cgroup, 0) < 1.5 * expected,
                "%s has %s stacks, about %d expected" % (cgroup, its_rows, expected))
        require(list(its_rows) == [cgroup] and rows[cgroup] >= its_rows[cgroup] > 0, "%s ran in %s and has stacks in %s" % (
            app, cgroup, its_rows))
    stacks = next(event for event in box.status()["events"] if event["name"] == "STACKS")
    require(sum(rows.values()) == stacks["stored"], "%s, and %d stacks are stored" % (rows, stacks["stored"]))
    require(stacks_listed(box, "cgroup:" + young) == {young: rows[young]}, "cgroup:%s does not select its stacks" % young)
    require(not os.path.exists(os.path.join(box.session, "samples/current/cgroup")), "samples are kept by cgroup")
    box.shutdown()


def check_operf(box, groups):
    """The stacks of operf have their cgroups, too."""
    cgroup, session, app = groups.make("stacks-operf"), os.path.join(box.dir, "operf"), box.copy_work("operf-app")
    operf = box.start(os.path.join(box.bin, "operf"), "--stacks", "--session-dir=" + session, "sh", "-c",
                      'echo $$ >"$1" && shift && exec "$@"', "sh", groups.top + cgroup + "/cgroup.procs", app, "spin", 4 * CPU_MS)
    require(operf.wait() == 0, "operf failed")
    rows = stacks_listed(box, "--session-dir=" + session, app)
    expected = 4 * CPU_MS * 99 / 1000
    require(0.5 * expected < rows.get(cgroup, 0) < 1.5 * expected, "operf: %s, about %d expected in %s" % (
        rows, expected, cgroup))
    require(list(rows) == [cgroup] and rows[cgroup] > 0, "operf: %s ran in %s and has stacks in %s" % (app, cgroup, rows))


def test(box):
    top = hierarchy()
    if top is None or not os.access(os.path.join(top, "cgroup.procs"), os.W_OK):
        raise Skip("no cgroup file system is mounted that processes can be moved in")
    groups = Groups(top, "opd-test-%d" % os.getpid())
    try:
        old, hidden = groups.make("old"), groups.make(".hidden")
        box.configure(RingSize="4M")  # on a busy machine opd reads late
        box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,cgroup")
        require(box.status()["separate_cgroup"], "--status does not know of the separation")
        nested, braces, gone = groups.make("old", "nested"), groups.make("{root}"), groups.make("gone after all")
        apps = {cgroup: box.copy_work("app-%d" % i) for i, cgroup in enumerate((old, hidden, nested, braces, gone))}
        for cgroup, app in apps.items():
            spend(box, groups, cgroup, app, CPU_MS)
        groups.remove(gone)
        brief = {}
        for i in range(BRIEF_GROUPS):
            cgroup = groups.make("brief-%d" % i)
            brief[cgroup] = box.copy_work("brief-app-%d" % i)
            spend(box, groups, cgroup, brief[cgroup], BRIEF_MS)
            groups.remove(cgroup)
        wanderer = box.copy_work("cgroup-wanderer")
        child = box.busy_until_ended(wanderer)
        for cgroup in (old, braces):
            groups.move(child.pid, cgroup)
            opdtest.await_cpu_seconds(child.pid, CPU_MS / 1000)
        box.end_busy(child)
        box.opcontrol("--dump")
        box.opcontrol("--stop")
        status = box.check_ledger()
        require(status["not_split"] == 0, "%d samples are not kept by cgroup" % status["not_split"])
        for cgroup, app in apps.items():
            require(all_of(box, cgroup, app, CPU_MS) > 0, "no samples in %s" % cgroup)
        require(sum(all_of(box, cgroup, app, BRIEF_MS) for cgroup, app in brief.items()) > 0, "no samples in brief cgroups")
        require(total(files_of(box, old), wanderer) > 50 and total(files_of(box, braces), wanderer) > 50, "the one that was moved")
        stored = sum(event["stored"] for event in status["events"])
        require(sum(listed(box).values()) == stored,
                "the cgroups have %d samples, %d are stored" % (sum(listed(box).values()), stored))
        box.check_agreement()
        unknown = listed(box).get("/(unknown cgroup)", 0)
        require(status["of_unknown_cgroups"] == unknown, "%d samples of unknown cgroups, %d counted" % (unknown,
                status["of_unknown_cgroups"]))
        check_reports(box, list(apps), apps)
        box.opcontrol("--reset")
        require(not os.path.exists(os.path.join(box.session, "samples/current/cgroup")), "--reset leaves the cgroups")
        box.shutdown()
        check_stacks(box, groups)
        check_operf(box, groups)
    finally:
        groups.close()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
